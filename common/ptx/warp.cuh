// Instructions that the lanes of one warp execute together.
#pragma once

#include <cstdint>

namespace ladder {

/// True in exactly one of the 32 lanes, the same one every time. All lanes of the warp must execute it together: call
/// it where the warp has not diverged. The compiler knows that code under it runs in one lane, and needs no loop over
/// lanes around instructions such as cp.async.bulk and tcgen05.mma, which are issued once per active lane. PTX ISA:
/// elect.sync.
__device__ __forceinline__ bool elect_sync() {
  uint32_t elected;
  asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p; }" : "=r"(elected));
  return elected != 0;
}

/// The index of the calling thread's warp in its CTA (one-dimensional blocks), in a form that the compiler knows to be
/// the same for all lanes: branches on it stay uniform. PTX ISA: shfl.sync.
__device__ __forceinline__ uint32_t warp_index() {
  return __shfl_sync(0xffffffff, threadIdx.x / 32, 0);
}

}  // namespace ladder
