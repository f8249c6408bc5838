// Clusters: who am I, cluster-wide barrier, addresses in other CTAs. All of it also runs in a launch without a cluster,
// which counts as a cluster of one CTA.
#pragma once

#include <cstdint>

namespace ladder {

/// Rank of this CTA in its cluster: x + y * nx + z * nx * ny. PTX ISA: %cluster_ctarank.
__device__ __forceinline__ uint32_t cluster_ctarank() {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

/// Number of CTAs in the cluster. PTX ISA: %cluster_nctarank.
__device__ __forceinline__ uint32_t cluster_nctarank() {
  uint32_t count;
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(count));
  return count;
}

/// Arrives at the cluster's barrier with release semantics; every thread of every CTA counts. Whole warps.
/// PTX ISA: barrier.cluster.arrive.
__device__ __forceinline__ void barrier_cluster_arrive() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

/// The same without ordering memory: says no more than that the thread has come this far. Whole warps. PTX ISA:
/// barrier.cluster.arrive.
__device__ __forceinline__ void barrier_cluster_arrive_relaxed() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}

/// Waits, with acquire semantics, until all threads of the cluster have arrived. Whole warps. PTX ISA:
/// barrier.cluster.wait.
__device__ __forceinline__ void barrier_cluster_wait() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

/// The shared::cluster address, in CTA `rank` of the cluster, of what `address` (shared::cta) names here. PTX ISA:
/// mapa.
__device__ __forceinline__ uint32_t mapa_shared_cluster(uint32_t address, uint32_t rank) {
  uint32_t mapped;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(address), "r"(rank));
  return mapped;
}

/// Stores 4 bytes in the shared memory of any CTA of the cluster (`address`: shared::cluster). An arrive with cluster
/// scope, and a wait with it, show them to its threads. PTX ISA: st, .shared::cluster.
__device__ __forceinline__ void st_shared_cluster_u32(uint32_t address, uint32_t value) {
  asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(address), "r"(value) : "memory");
}

}  // namespace ladder
