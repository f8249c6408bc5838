// mbarrier: a 64-bit object in shared memory (8-byte aligned) that counts arrivals and the bytes of asynchronous
// copies. A phase ends when no arrival and no byte is pending; the next one then begins with the arrival count of the
// init. `barrier` is always a 32-bit shared address. Unless a function says otherwise: arrive is .release.cta, wait
// .acquire.cta.
#pragma once

#include <cstddef>
#include <cstdint>

// What a failed assert calls on the device: the runtime prints the message with block and thread, and the launch fails.
// (assert itself is compiled out of release builds.)
extern "C" __device__ void __assertfail(const char* message, const char* file, unsigned line, const char* function,
                                        size_t character_bytes);

namespace ladder {

/// Guarded builds (-DLADDER_GUARD) bound every wait: a wait that outlasts kGuardedTries stops the kernel and names the
/// source line that waits, where an ordinary build would hang. One try lasts about 4 us on an H200, so the bound is
/// some seconds.
#ifdef LADDER_GUARD
inline constexpr bool kGuardWaits = true;
#else
inline constexpr bool kGuardWaits = false;
#endif
inline constexpr uint32_t kGuardedTries = 1u << 20;

/// Initialises `barrier` for `arrivals` (1 to 2^20 - 1) arrivals a phase. One thread; fence_mbarrier_init and a barrier
/// must follow before anyone else, TMA included, touches it. PTX ISA: mbarrier.init.
__device__ __forceinline__ void mbarrier_init(uint32_t barrier, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

/// Ends the life of `barrier`, so that its memory may hold something else. No arrive or wait may be under way.
/// PTX ISA: mbarrier.inval.
__device__ __forceinline__ void mbarrier_inval(uint32_t barrier) {
  asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}

/// Takes one pending arrival off the current phase. PTX ISA: mbarrier.arrive.
__device__ __forceinline__ void mbarrier_arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/// Takes `count` pending arrivals off the current phase. PTX ISA: mbarrier.arrive.
__device__ __forceinline__ void mbarrier_arrive(uint32_t barrier, uint32_t count) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

/// Arrives on a barrier of any CTA of the cluster (`barrier`: shared::cluster address) with cluster scope.
/// PTX ISA: mbarrier.arrive.
__device__ __forceinline__ void mbarrier_arrive_cluster(uint32_t barrier) {
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/// The same with CTA scope, as wgmma and TMA need it: they reach memory through the async proxy, and what a warp has
/// waited for they have read. With cluster scope, this would be a fence that waits for all of the thread's stores. PTX
/// ISA: mbarrier.arrive.
__device__ __forceinline__ void mbarrier_arrive_remote(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/// The same without ordering memory: for tensor memory, which tcgen05 fences order, and for what other fences do. With
/// release, this would be a fence that waits for all of the thread's stores. PTX ISA: mbarrier.arrive; tcgen05 memory
/// consistency model, canonical synchronization patterns.
__device__ __forceinline__ void mbarrier_arrive_relaxed_cluster(uint32_t barrier) {
  asm volatile("mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/// Adds `bytes` to what the current phase still expects, then arrives once, as one step. At most 2^20 - 1 bytes may be
/// outstanding. PTX ISA: mbarrier.arrive.expect_tx.
__device__ __forceinline__ void mbarrier_arrive_expect_tx(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

/// The same on a barrier of any CTA of the cluster (`barrier`: shared::cluster address) with cluster scope.
/// PTX ISA: mbarrier.arrive.expect_tx.
__device__ __forceinline__ void mbarrier_arrive_expect_tx_cluster(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

/// Adds `bytes` to what the current phase still expects, without arriving. PTX ISA: mbarrier.expect_tx.
__device__ __forceinline__ void mbarrier_expect_tx(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

/// Looks once: true when the phase of the given parity is over. A fresh barrier is in phase 0, so parity 1 passes at
/// once and parity 0 does not. When true, what the completing arrivals and copies wrote is visible. PTX ISA:
/// mbarrier.test_wait.
__device__ __forceinline__ bool mbarrier_test_wait_parity(uint32_t barrier, uint32_t parity) {
  uint32_t done;
  asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
               : "=r"(done)
               : "r"(barrier), "r"(parity)
               : "memory");
  return done != 0;
}

/// As mbarrier_test_wait_parity, but the hardware may suspend the thread for a while first. False means nothing more
/// than that this while has passed: call it in a loop. PTX ISA: mbarrier.try_wait.
__device__ __forceinline__ bool mbarrier_try_wait_parity(uint32_t barrier, uint32_t parity) {
  uint32_t done;
  asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
               : "=r"(done)
               : "r"(barrier), "r"(parity)
               : "memory");
  return done != 0;
}

/// The same with cluster scope: needed when threads of another CTA wrote the data with ordinary stores.
/// PTX ISA: mbarrier.try_wait.
__device__ __forceinline__ bool mbarrier_try_wait_parity_cluster(uint32_t barrier, uint32_t parity) {
  uint32_t done;
  asm volatile(
      "{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
      : "=r"(done)
      : "r"(barrier), "r"(parity)
      : "memory");
  return done != 0;
}

/// The counterpart of mbarrier_arrive_relaxed_cluster: when true, the arrivals have come, from whichever CTA of the
/// cluster, and fences say what else is known. PTX ISA: mbarrier.try_wait.
__device__ __forceinline__ bool mbarrier_try_wait_parity_relaxed_cluster(uint32_t barrier, uint32_t parity) {
  uint32_t done;
  asm volatile(
      "{ .reg .pred p; mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
      : "=r"(done)
      : "r"(barrier), "r"(parity)
      : "memory");
  return done != 0;
}

/// Tries until the phase of the given parity is over. For the functions below, which say what is known then.
template <bool (*kTry)(uint32_t barrier, uint32_t parity)>
__device__ __forceinline__ void mbarrier_keep_trying(uint32_t barrier, uint32_t parity, const char* file, uint32_t line,
                                                     const char* function) {
  if constexpr (kGuardWaits) {
    for (uint32_t tries = 0; !kTry(barrier, parity); ++tries) {
      if (tries == kGuardedTries) {
        __assertfail("the phase this line waits for never ended", file, line, function, sizeof(char));
      }
    }
  } else {
    while (!kTry(barrier, parity)) {
    }
  }
}

/// Blocks until the phase of the given parity is over; on return, what the completing arrivals and bulk copies wrote is
/// visible. A waiter may lag by one phase at most: two phases on, the parity looks the same again. `file` and `line`
/// are the caller's, for guarded builds. PTX ISA: mbarrier.try_wait.
__device__ __forceinline__ void mbarrier_wait_parity(uint32_t barrier, uint32_t parity,
                                                     const char* file = __builtin_FILE(),
                                                     uint32_t line = __builtin_LINE()) {
  mbarrier_keep_trying<mbarrier_try_wait_parity>(barrier, parity, file, line, "mbarrier_wait_parity");
}

/// The same with cluster scope, for threads of other CTAs that arrive with it.
__device__ __forceinline__ void mbarrier_wait_parity_cluster(uint32_t barrier, uint32_t parity,
                                                             const char* file = __builtin_FILE(),
                                                             uint32_t line = __builtin_LINE()) {
  mbarrier_keep_trying<mbarrier_try_wait_parity_cluster>(barrier, parity, file, line, "mbarrier_wait_parity_cluster");
}

/// The same for arrivals that may be other CTAs', and are relaxed: only they are known to have come.
__device__ __forceinline__ void mbarrier_wait_parity_relaxed_cluster(uint32_t barrier, uint32_t parity,
                                                                     const char* file = __builtin_FILE(),
                                                                     uint32_t line = __builtin_LINE()) {
  mbarrier_keep_trying<mbarrier_try_wait_parity_relaxed_cluster>(barrier, parity, file, line,
                                                                 "mbarrier_wait_parity_relaxed_cluster");
}

}  // namespace ladder
