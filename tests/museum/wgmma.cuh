// wgmma (sm_90a): 64 rows of D in the registers of four warps, A and B in shared memory.
#pragma once

#include <cstdint>

namespace museum {

/// Orders registers and ordinary accesses before the wgmma that follow. PTX ISA: wgmma.fence.
__device__ __forceinline__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

/// PTX ISA: wgmma.commit_group.
__device__ __forceinline__ void wgmma_commit_group() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/// Waits until all groups are complete: D may be read, A and B may be written. PTX ISA: wgmma.wait_group.
__device__ __forceinline__ void wgmma_wait_all() {
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}

/// Where the calling thread's d[i] lies in D.
__device__ __forceinline__ uint32_t wgmma_row(uint32_t i) {
  return threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4 + 8 * (i / 2);
}
__device__ __forceinline__ uint32_t wgmma_column(uint32_t i) {
  return threadIdx.x % 4 * 2 + i % 2;
}

/// D (64 x 8, f32) = A (64 x 16, f16) B (8 x 16, f16)^T + (accumulate ? D : 0). PTX ISA: wgmma.mma_async.
__device__ __forceinline__ void wgmma_m64n8k16(float (&d)[4], uint64_t a, uint64_t b, bool accumulate) {
  asm volatile(
      "{ .reg .pred p; setp.ne.u32 p, %6, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, p, 1, 1, 0, 0; }"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "l"(a), "l"(b), "r"(static_cast<uint32_t>(accumulate))
      : "memory");
}

}  // namespace museum
