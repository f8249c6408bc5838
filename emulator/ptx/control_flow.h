#pragma once
// Where lanes of a warp can part, and where they meet again.
//
// Lanes that part at a branch meet at its immediate post-dominator: the first instruction that every way onwards leads
// to. Ways that end a thread (exit, trap, a kernel's ret before its last) or that loop for ever do not count: nobody on
// them will arrive, and so
//     if (a) { if (b) return; x(); }  y();
// meets at y(), as it does on hardware. Where only one way remains after that, nobody is left to wait for.

#include <cstdint>
#include <vector>

#include "emulator/ptx/ast.h"

namespace emu::ptx {

struct Block {
  uint32_t first = 0, last = 0;     ///< instructions, both inclusive
  std::vector<uint32_t> next;       ///< blocks that may follow, the one behind it in the text first
  std::vector<uint32_t> previous;   ///< blocks that it may follow
  bool leaves = false;              ///< may end in ret, exit or trap
  uint32_t post_dominator = kNone;  ///< immediate; kNone: only the end of the function
  bool reachable = false;           ///< from the first instruction
};

struct ControlFlow {
  std::vector<Block> blocks;       ///< in the order of the text
  std::vector<uint32_t> block_of;  ///< by instruction
  /// By instruction: kNone when it cannot split lanes. Else the instruction where the parted lanes meet again, or
  /// body.size() when they do not meet before the function returns.
  std::vector<uint32_t> reconvergence;
};

/// What splits lanes: a guarded bra, a brx.idx, a guarded ret, exit or trap, and a guarded call (the lanes that do not
/// call wait at the next instruction). A lane that waits at a meeting point must not wait for lanes that have exited
/// meanwhile. Time: near-linear in the number of instructions.
ControlFlow analyse(const Function& function);

}  // namespace emu::ptx
