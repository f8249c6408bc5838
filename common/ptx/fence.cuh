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

/// The same for global memory only: ordinary stores to global memory before a TMA load of it.
/// PTX ISA: membar/fence, fence.proxy.async.
__device__ __forceinline__ void fence_proxy_async_global() {
  asm volatile("fence.proxy.async.global;" ::: "memory");
}

}  // namespace ladder
