// Named CTA barriers: `barrier` is 0 to 15 (0 is __syncthreads), `threads` a multiple of 32.
// A barrier orders the generic-proxy accesses of the threads that take part; asynchronous work needs its own wait.
#pragma once

#include <cstdint>

namespace ladder {

/// Waits until `threads` threads have arrived at `barrier`, the waiting ones included. Whole warps. PTX ISA:
/// barrier.cta.sync.
__device__ __forceinline__ void barrier_cta_sync(uint32_t barrier, uint32_t threads) {
  asm volatile("barrier.cta.sync.aligned %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

/// Arrives at `barrier` without waiting; `threads` counts those that wait as well. Whole warps. PTX ISA:
/// barrier.cta.arrive.
__device__ __forceinline__ void barrier_cta_arrive(uint32_t barrier, uint32_t threads) {
  asm volatile("barrier.cta.arrive.aligned %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

}  // namespace ladder
