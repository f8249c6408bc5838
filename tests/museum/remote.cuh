// Shared memory of other CTAs of the cluster by ordinary loads and stores, and arrives that are weaker than
// ladder::mbarrier_arrive_cluster. `address`: shared::cluster address (ladder::mapa_shared_cluster).
#pragma once

#include <cstdint>

namespace museum {

/// PTX ISA: ld, .shared::cluster.
__device__ __forceinline__ uint32_t ld_shared_cluster(uint32_t address) {
  uint32_t value;
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
  return value;
}

/// PTX ISA: st, .shared::cluster.
__device__ __forceinline__ void st_shared_cluster(uint32_t address, uint32_t value) {
  asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(address), "r"(value) : "memory");
}

/// Arrives on a barrier of any CTA of the cluster, but releases to its own CTA only. PTX ISA: mbarrier.arrive.
__device__ __forceinline__ void mbarrier_arrive_remote_cta_scope(uint32_t barrier) {
  asm volatile("mbarrier.arrive.release.cta.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}

}  // namespace museum
