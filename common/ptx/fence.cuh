// Fences between proxies. The generic proxy is what ordinary loads and stores use; TMA, wgmma and tcgen05 reach memory
// through the async proxy. The fences of the tcgen05 family are in tcgen05.cuh.
#pragma once

namespace ladder {

/// Makes the calling thread's earlier mbarrier.init visible to the cluster and to asynchronous operations that will
/// signal those barriers. A CTA barrier (or cluster barrier) must follow before other threads use them. PTX ISA:
/// membar/fence, fence.mbarrier_init.
__device__ __forceinline__ void fence_mbarrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/// Orders the calling thread's generic-proxy accesses to any memory against async-proxy accesses, both ways.
/// PTX ISA: membar/fence, fence.proxy.async.
__device__ __forceinline__ void fence_proxy_async() {
  asm volatile("fence.proxy.async;" ::: "memory");
}

/// The same for the CTA's shared memory only. Whoever writes shared memory with ordinary stores executes it before the
/// barrier after which TMA or an MMA reads those bytes. PTX ISA: membar/fence, fence.proxy.async.
__device__ __forceinline__ void fence_proxy_async_shared_cta() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/// Half of such a fence: the calling thread's earlier generic accesses to its CTA's shared memory come before the async
/// accesses of a thread of the cluster that is told by a relaxed signal, and executes the other half.
/// PTX ISA: membar/fence, fence.proxy.async::generic.release.
__device__ __forceinline__ void fence_proxy_async_release_shared_cta() {
  asm volatile("fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;" ::: "memory");
}

/// The other half: the calling thread's later async accesses to shared memory of the cluster come after the generic
/// ones before those fences. PTX ISA: membar/fence, fence.proxy.async::generic.acquire.
__device__ __forceinline__ void fence_proxy_async_acquire_shared_cluster() {
  asm volatile("fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;" ::: "memory");
}

/// The same for global memory only: ordinary stores to global memory before a TMA load of it.
/// PTX ISA: membar/fence, fence.proxy.async.
__device__ __forceinline__ void fence_proxy_async_global() {
  asm volatile("fence.proxy.async.global;" ::: "memory");
}

}  // namespace ladder
