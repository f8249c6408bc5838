#pragma once
// How long each register matters, so that registers which never matter together can share storage.

#include <cstdint>
#include <vector>

#include "emulator/ptx/ast.h"
#include "emulator/ptx/control_flow.h"

namespace emu::ptx {

/// Both inclusive, instruction indices of the flat body. A register that no instruction names has first > last.
struct Interval {
  uint32_t first = 1, last = 0;
  bool empty() const { return first > last; }
  bool overlaps(const Interval& other) const {
    return !empty() && !other.empty() && first <= other.last && other.first <= last;
  }
};

/// By register. Two registers whose intervals do not overlap may share storage.
std::vector<Interval> live_intervals(const Function& function, const ControlFlow& flow);

/// Storage for a function's registers.
struct Slots {
  std::vector<uint32_t> slot;  ///< by register, within its class; kNone when nothing names it
  uint32_t predicates = 0;     ///< slots of the class of pred registers
  uint32_t words =
      0;  ///< slots of 32 bits: 8, 16 and 32-bit registers take one, 64-bit two, 128-bit four, aligned to their size
};
Slots assign_slots(const Function& function, const std::vector<Interval>& intervals);

}  // namespace emu::ptx
