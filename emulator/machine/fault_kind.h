#pragma once
// What ends a launch, by kind: the id under which `./ladder check` lists it, beside the hazard rules.

#include <cstddef>
#include <cstdint>
#include <string_view>

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

enum class FaultKind : uint8_t {
  out_of_bounds,
  use_after_free,
  misaligned,
  address_space,
  descriptor,
  tensor_map,
  tensor_memory_unallocated,
  tensor_memory_unwritten,
  tensor_memory_leak,
  tensor_memory_free,
  tensor_memory_alloc,
  tensor_memory_quarter,
  cta_group,
  aligned_divergence,
  sync_mask,
  barrier_invalid,
  barrier_overflow,
  barrier_misuse,
  no_such_cta,
  peer_gone,
  launch_control,
  illegal_instruction,
  invalid_target,
  stack,
  invalid_free,
  assertion,
  trap,
  hang,
  livelock,
  time_limit,
  not_emulated,
};
inline constexpr size_t kFaultKinds = 31;

struct FaultTraits {
  std::string_view id;     ///< "out-of-bounds": in reports, for tests and filters
  FaultCode code;          ///< the usual one
  std::string_view title;  ///< one line
  std::string_view sees;   ///< for docs/hazards.md
};
const FaultTraits& traits(FaultKind kind);

/// Of a fault of which no more is known than its code.
FaultKind usual_kind(FaultCode code);

}  // namespace emu
