#pragma once
// Where lanes of a warp can part, and where they meet again.

#include <cstdint>
#include <vector>

#include "emulator/ptx/ast.h"

namespace emu::ptx {

struct Block {
  uint32_t first = 0, last = 0;          ///< instructions, both inclusive
  std::vector<uint32_t> next, previous;  ///< block indices
  uint32_t post_dominator = kNone;       ///< immediate; kNone: only the function's end
  bool reachable = true;
};

struct ControlFlow {
  std::vector<Block> blocks;       ///< in the order of the text
  std::vector<uint32_t> block_of;  ///< by instruction
  /// By instruction: kNone when it cannot split lanes. Else the instruction where the parted lanes meet again: the
  /// first of the immediate post-dominator; body.size() when that is only where the function returns (or never: the
  /// paths exit or loop for ever).
  std::vector<uint32_t> reconvergence;
};

/// Splits lanes: a guarded bra, any brx.idx with several targets, a guarded ret, exit or trap, and a guarded call (the
/// lanes that do not call wait at the next instruction). Near-linear in the number of instructions.
ControlFlow analyse(const Function& function);

}  // namespace emu::ptx
