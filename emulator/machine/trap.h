#pragma once
// A device-side fault. Thrown where an instruction (or an asynchronous operation) does what the hardware refuses; the
// machine adds who did it and where (kernel, block, warp, lane, source line) and turns it into a report and a sticky
// CUDA error.

#include <stdexcept>
#include <string>

namespace emu {

/// cudaError_t values that a kernel can end with (driver_types.h).
enum class FaultCode : int {
  illegal_address = 700,
  launch_timeout = 702,
  assert_failed = 710,
  hardware_stack = 714,
  illegal_instruction = 715,
  misaligned_address = 716,
  invalid_address_space = 717,
  invalid_pc = 718,
  launch_failure = 719,
};

struct Trap : std::runtime_error {
  /// `message` names the value, the rule and the way out; `source` is the section of the PTX ISA or the public source
  /// of the rule.
  Trap(FaultCode code, const std::string& message, std::string source = {})
      : std::runtime_error(message), code(code), source(std::move(source)) {}
  FaultCode code;
  std::string source;
};

/// assert() in a kernel: one line for each thread whose condition was false, as CUDA prints them.
struct AssertionFailed : Trap {
  AssertionFailed(const std::string& message, std::string lines)
      : Trap(FaultCode::assert_failed, message, "CUDA programming guide, Assertion"), lines(std::move(lines)) {}
  std::string lines;
};

/// The trap instruction: the kernel's own decision.
struct KernelTrap : Trap {
  KernelTrap()
      : Trap(FaultCode::launch_failure, "the kernel executed trap: a check of its own failed", "PTX ISA, trap") {}
};

/// An instruction, modifier or type that the emulator knows of but does not execute.
struct Unimplemented : Trap {
  explicit Unimplemented(const std::string& what) : Trap(FaultCode::illegal_instruction, what) {}
};

}  // namespace emu
