#pragma once
// A device-side fault. Thrown where an instruction (or an asynchronous operation) does what the hardware refuses; the
// machine adds who did it and where (kernel, block, warp, lane, source line) and turns it into a report and a sticky
// CUDA error.

#include <stdexcept>
#include <string>

#include "emulator/machine/fault_kind.h"

namespace emu {

struct Trap : std::runtime_error {
  /// `message` names the value, the rule and the way out; `source` is the section of the PTX ISA or the public source
  /// of the rule.
  Trap(FaultKind kind, FaultCode code, const std::string& message, std::string source = {})
      : std::runtime_error(message), kind(kind), code(code), source(std::move(source)) {}
  Trap(FaultKind kind, const std::string& message, std::string source = {})
      : Trap(kind, traits(kind).code, message, std::move(source)) {}
  Trap(FaultCode code, const std::string& message, std::string source = {})
      : Trap(usual_kind(code), code, message, std::move(source)) {}
  FaultKind kind;
  FaultCode code;
  std::string source;
  int lane = -1;  ///< whose fault it is, where it is not the first active one's
};

/// Runs `f` for a lane: a trap is that lane's.
template <class F>
auto in_lane(int lane, F&& f) {
  try {
    return f();
  } catch (Trap& trap) {
    trap.lane = lane;
    throw;
  }
}

/// assert() in a kernel: one line for each thread whose condition was false, as CUDA prints them.
struct AssertionFailed : Trap {
  AssertionFailed(const std::string& message, std::string lines)
      : Trap(FaultCode::assert_failed, message, "CUDA programming guide, Assertion"), lines(std::move(lines)) {}
  std::string lines;
};

/// The trap instruction: the kernel's own decision.
struct KernelTrap : Trap {
  KernelTrap() : Trap(FaultKind::trap, "the kernel executed trap: a check of its own failed", "PTX ISA, trap") {}
};

/// An instruction, modifier or type that the emulator knows of but does not execute.
struct Unimplemented : Trap {
  explicit Unimplemented(const std::string& what) : Trap(FaultKind::not_emulated, what) {}
};

}  // namespace emu
