// Cluster launch control (sm_100): a CTA that runs takes over one that has not started.
#pragma once

#include <cstdint>

namespace museum {

/// Asks for a CTA that has not started. The answer, 16 bytes, is written to shared memory at `response` through the
/// async proxy, and `barrier` is credited with them. PTX ISA: clusterlaunchcontrol.try_cancel.
__device__ __forceinline__ void try_cancel(uint32_t response, uint32_t barrier) {
  asm volatile(
      "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%0], [%1];" ::"r"(response),
      "r"(barrier)
      : "memory");
}

/// Reads an answer: true and the CTA's blockIdx.x, or false: there is none left. PTX ISA:
/// clusterlaunchcontrol.query_cancel.
__device__ __forceinline__ bool query_cancel(uint32_t response, uint32_t& block) {
  uint32_t taken;
  asm volatile(
      "{ .reg .pred p; .reg .b128 answer; ld.shared.b128 answer, [%2];\n"
      "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, answer; selp.u32 %0, 1, 0, p; mov.u32 %1, 0;\n"
      "@p clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %1, answer; }"
      : "=r"(taken), "=r"(block)
      : "r"(response)
      : "memory");
  return taken != 0;
}

}  // namespace museum
