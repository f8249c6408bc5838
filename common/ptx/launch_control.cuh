// Cluster launch control (sm_100): a cluster that runs takes over one of the same grid that has not started. The answer
// is 16 bytes in shared memory, written through the async proxy; an mbarrier is credited with them.
#pragma once

#include <cstdint>

namespace ladder {

/// Asks for a cluster that has not started, and so will not start. The answer goes to `answer` (16-byte aligned shared
/// address) and credits `barrier` with its 16 bytes. One thread. After an answer that says no, asking again is
/// undefined. PTX ISA: clusterlaunchcontrol.try_cancel.
__device__ __forceinline__ void clusterlaunchcontrol_try_cancel(uint32_t answer, uint32_t barrier) {
  asm volatile(
      "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%0], [%1];" ::"r"(answer),
      "r"(barrier)
      : "memory");
}

/// The same, answered to every CTA of the cluster: at the offset of `answer`, crediting its barrier at the offset of
/// `barrier`. One thread of one CTA. PTX ISA: clusterlaunchcontrol.try_cancel, .multicast::cluster::all.
__device__ __forceinline__ void clusterlaunchcontrol_try_cancel_multicast(uint32_t answer, uint32_t barrier) {
  asm volatile(
      "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128 "
      "[%0], [%1];" ::"r"(answer),
      "r"(barrier)
      : "memory");
}

/// Reads an answer. True: `first_block` is the blockIdx.x of the first CTA of the cluster that was taken over. False:
/// there was none left. PTX ISA: clusterlaunchcontrol.query_cancel.
__device__ __forceinline__ bool clusterlaunchcontrol_query_cancel(uint32_t answer, uint32_t& first_block) {
  uint32_t taken;
  asm volatile(
      "{ .reg .pred p; .reg .b128 answer; ld.shared.b128 answer, [%2];\n"
      "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, answer; selp.u32 %0, 1, 0, p; mov.u32 %1, 0;\n"
      "@p clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %1, answer; }"
      : "=r"(taken), "=r"(first_block)
      : "r"(answer)
      : "memory");
  return taken != 0;
}

}  // namespace ladder
