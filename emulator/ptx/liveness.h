#pragma once
// How long each register matters, so that registers which never matter together can share storage.
//
// An interval covers, in the order of the text, every instruction at which the register is read or written or at which
// it holds a value that may still be read. Registers whose intervals do not overlap may share a slot.
//
// Why this holds when the lanes of a warp are at different places: a slot is storage for 32 lanes, and a lane touches
// its own part only. Each lane runs through the text as a sequential program would, on some path through the flow
// graph, and the intervals cover every path; so on its path a lane never finds another register's value where it
// expects its own. What other lanes do meanwhile, or that they are inside another register's interval of the same slot,
// cannot reach its part. The machine must keep three promises:
//  - A write changes the lanes that execute it and no others; inactive lanes and lanes with a false guard keep their
//  bits. (A write under
//    a guard is therefore no end of the old value here.)
//  - Lanes read other lanes' registers (shfl, mma, vote, ...) only while these are at the same instruction.
//  - What is kept once a warp, not once a lane (a scalar copy of a register known to be uniform), does not share slots.
// Asynchronous instructions may write registers (tcgen05.ld, wgmma) or read them (tcgen05.st, wgmma) after they issue:
// those registers' intervals go on to the wait on every path. A read and a write of one instruction never share.

#include <cstdint>
#include <vector>

#include "emulator/ptx/ast.h"
#include "emulator/ptx/control_flow.h"

namespace emu::ptx {

/// Both inclusive, instruction indices of the flat body. Empty (first > last): no instruction names the register.
struct Interval {
  uint32_t first = 1, last = 0;
  bool empty() const { return first > last; }
  void include(uint32_t instruction);
  bool overlaps(const Interval& other) const {
    return !empty() && !other.empty() && first <= other.last && other.first <= last;
  }
};

/// Which registers an instruction reads and writes. A register that is only written in part, or by an opcode that is
/// not known to write its first operand, is in both.
struct Effects {
  std::vector<uint32_t> reads, writes;
};
Effects effects(const Instruction& instruction);

/// By register.
std::vector<Interval> live_intervals(const Function& function, const ControlFlow& flow);

/// Storage for a function's registers. Only registers of one width share a place: lanes that are elsewhere in the text
/// may hold another register there, and lanes lie as far apart as the register is wide.
struct Slots {
  std::vector<uint32_t> slot;  ///< by register, within its class; kNone when nothing names it
  uint32_t predicates = 0;     ///< slots of the class of .pred registers
  uint32_t words =
      0;  ///< slots of 32 bits: a register of up to 32 bits takes one, of 64 two, of 128 four; aligned to its size
  uint32_t apart_words = 0;  ///< the first so many of them hold the registers that are kept apart, and no others
};
/// `apart`, by register: shares no place with a register that is not. Empty: none is.
Slots assign_slots(const Function& function, const std::vector<Interval>& intervals,
                   const std::vector<bool>& apart = {});

}  // namespace emu::ptx
