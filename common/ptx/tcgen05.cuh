// tcgen05: matrix multiplication into tensor memory, its completion, and its fences (sm_100a, sm_100f).
// kCtaGroup is 1, or 2 for a CTA pair; all tcgen05 instructions of a kernel must agree on it.
// An MMA is asynchronous: it is issued by one thread, runs later, and only a commit by that thread tells when it is
// done.
#pragma once

#include <cstdint>

namespace ladder {

/// D = A B^T + (accumulate ? D : 0) for 16-bit inputs, K = 16; A and B in shared memory, D in tensor memory.
/// `d`: tensor-memory address. `a`, `b`: shared-memory matrix descriptors (common/layout/smem_descriptor.h).
/// `instruction`: types, majors, M and N (common/layout/instruction_descriptor.h). One thread; MMAs that one thread
/// issues on one accumulator run in order. PTX ISA: tcgen05.mma, kind::f16.
template <int kCtaGroup>
__device__ __forceinline__ void tcgen05_mma_f16(uint32_t d, uint64_t a, uint64_t b, uint32_t instruction,
                                                bool accumulate) {
  static_assert(kCtaGroup == 1 || kCtaGroup == 2);
  asm volatile(
      "{ .reg .pred p; setp.ne.u32 p, %4, 0; tcgen05.mma.cta_group::%5.kind::f16 [%0], %1, %2, %3, p; }" ::"r"(d),
      "l"(a), "l"(b), "r"(instruction), "r"(static_cast<uint32_t>(accumulate)), "n"(kCtaGroup)
      : "memory");
}

/// The same with A in tensor memory at `a`: two 16-bit values a column, even k in the low half.
/// PTX ISA: tcgen05.mma, kind::f16.
template <int kCtaGroup>
__device__ __forceinline__ void tcgen05_mma_f16_tmem_a(uint32_t d, uint32_t a, uint64_t b, uint32_t instruction,
                                                       bool accumulate) {
  static_assert(kCtaGroup == 1 || kCtaGroup == 2);
  asm volatile(
      "{ .reg .pred p; setp.ne.u32 p, %4, 0; tcgen05.mma.cta_group::%5.kind::f16 [%0], [%1], %2, %3, p; }" ::"r"(d),
      "r"(a), "l"(b), "r"(instruction), "r"(static_cast<uint32_t>(accumulate)), "n"(kCtaGroup)
      : "memory");
}

/// As tcgen05_mma_f16 for tf32 inputs (32-bit words of which the low 13 bits are ignored), K = 8.
/// PTX ISA: tcgen05.mma, kind::tf32.
template <int kCtaGroup>
__device__ __forceinline__ void tcgen05_mma_tf32(uint32_t d, uint64_t a, uint64_t b, uint32_t instruction,
                                                 bool accumulate) {
  static_assert(kCtaGroup == 1 || kCtaGroup == 2);
  asm volatile(
      "{ .reg .pred p; setp.ne.u32 p, %4, 0; tcgen05.mma.cta_group::%5.kind::tf32 [%0], %1, %2, %3, p; }" ::"r"(d),
      "l"(a), "l"(b), "r"(instruction), "r"(static_cast<uint32_t>(accumulate)), "n"(kCtaGroup)
      : "memory");
}

/// Arrives once on `barrier` when all MMAs that this thread has issued so far are complete: they have read their
/// operands from shared memory and written D. Carries a tcgen05_fence_before_thread_sync. `barrier`: shared address;
/// never counts bytes. PTX ISA: tcgen05.commit.
template <int kCtaGroup>
__device__ __forceinline__ void tcgen05_commit(uint32_t barrier) {
  static_assert(kCtaGroup == 1 || kCtaGroup == 2);
  asm volatile("tcgen05.commit.cta_group::%1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(barrier),
               "n"(kCtaGroup)
               : "memory");
}

/// The same, arriving in every CTA of the cluster whose rank's bit is set in `ctas`, on its barrier at the offset that
/// `barrier` has in this CTA's shared memory. PTX ISA: tcgen05.commit, .multicast::cluster.
template <int kCtaGroup>
__device__ __forceinline__ void tcgen05_commit_multicast(uint32_t barrier, uint16_t ctas) {
  static_assert(kCtaGroup == 1 || kCtaGroup == 2);
  asm volatile(
      "tcgen05.commit.cta_group::%2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;" ::"r"(
          barrier),
      "h"(ctas), "n"(kCtaGroup)
      : "memory");
}

/// Orders the thread's earlier tcgen05 operations before its later arrives and barriers. PTX ISA: tcgen05.fence.
__device__ __forceinline__ void tcgen05_fence_before_thread_sync() {
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
}

/// Orders the thread's later tcgen05 operations after its earlier waits and barriers. PTX ISA: tcgen05.fence.
__device__ __forceinline__ void tcgen05_fence_after_thread_sync() {
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}

}  // namespace ladder
