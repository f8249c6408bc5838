// The device side that all exhibits share: waits that give up, and time that passes.
#pragma once

#include <cstdint>

#include "common/ptx/mbarrier.cuh"

namespace museum {

/// How often a wait asks before it gives up. One try lasts about 4 us on an H200.
constexpr uint32_t kTries = 1u << 14;

/// As ladder::mbarrier_wait_parity, but after `tries` tries (0: never) the launch fails with cudaErrorAssert, and the
/// line that waits is named: no exhibit can hang a GPU by it.
__device__ __forceinline__ void wait_parity(uint32_t barrier, uint32_t parity, uint32_t tries = kTries,
                                            const char* file = __builtin_FILE(), uint32_t line = __builtin_LINE()) {
  if (tries == 0) ladder::mbarrier_wait_parity(barrier, parity);
  for (uint32_t tried = 1; !ladder::mbarrier_try_wait_parity(barrier, parity); ++tried) {
    if (tried >= tries) {
      __assertfail("the phase this line waits for never ended", file, line, "wait_parity", sizeof(char));
    }
  }
}

/// The same with cluster scope: ladder::mbarrier_try_wait_parity_cluster.
__device__ __forceinline__ void wait_parity_cluster(uint32_t barrier, uint32_t parity,
                                                    const char* file = __builtin_FILE(),
                                                    uint32_t line = __builtin_LINE()) {
  for (uint32_t tried = 1; !ladder::mbarrier_try_wait_parity_cluster(barrier, parity); ++tried) {
    if (tried >= kTries) {
      __assertfail("the phase this line waits for never ended", file, line, "wait_parity_cluster", sizeof(char));
    }
  }
}

/// Stores a flag in global memory; who acquires it sees what this thread has done. PTX ISA: st, .release.
__device__ __forceinline__ void st_release_gpu(uint32_t* flag, uint32_t value) {
  asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(__cvta_generic_to_global(flag)), "r"(value) : "memory");
}

/// Waits until the flag is not 0, and sees what was done before it was stored. It gives up like the others. PTX ISA:
/// ld, .acquire.
__device__ __forceinline__ void wait_for_flag(const uint32_t* flag, const char* file = __builtin_FILE(),
                                              uint32_t line = __builtin_LINE()) {
  uint32_t value = 0;
  for (uint32_t tried = 0; value == 0; ++tried) {
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(__cvta_generic_to_global(flag)) : "memory");
    if (tried >= 64 * kTries) {  // these do not suspend, so they are shorter
      __assertfail("the flag this line waits for was never stored", file, line, "wait_for_flag", sizeof(char));
    }
  }
}

/// Passes some cycles, as if there was something to compute. It makes a race go the wrong way more often; what orders
/// the accesses, or fails to, is the same without it.
__device__ __forceinline__ void linger(uint32_t cycles) {
  uint32_t begin, now;
  asm volatile("mov.u32 %0, %%clock;" : "=r"(begin)::"memory");
  do {
    asm volatile("mov.u32 %0, %%clock;" : "=r"(now)::"memory");
  } while (now - begin < cycles);
}

}  // namespace museum
