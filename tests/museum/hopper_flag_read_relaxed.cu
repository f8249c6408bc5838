// A flag in global memory is polled by relaxed loads, and nothing behind them lets go of the L1 cache.
//
// Symptom: The CTA that waits reads the old data, always, if it has read that data before: each poll goes to L2, the
// data
//   comes from L1. Where it has not, all is well.
// Why: A relaxed or volatile load of the flag orders nothing. An acquire, or a fence behind the poll, makes later loads
//   see what the writer released; on a chip it empties the L1 cache.
// Fix: ld.acquire.gpu for the poll, or __threadfence() behind it.
// Rule: PTX ISA, Memory Consistency Model: Release and Acquire Patterns
// Theme: waits and phases
// Expect: weak-order of global memory
#include "tests/museum/exhibit.cuh"
#include "tests/museum/exhibit.h"

using namespace ladder;

constexpr unsigned kThreads = 128, kWords = 1024;

__device__ __forceinline__ void poll_relaxed(const uint32_t* flag) {
  uint32_t value = 0;
  for (uint32_t tried = 0; value == 0; ++tried) {
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(__cvta_generic_to_global(flag)) : "memory");
    if (tried >= 64 * museum::kTries) __trap();
  }
}

// CTA 2i + 1 adds up a tile in global memory, CTA 2i renews it, and CTA 2i + 1 adds it up again: a cluster, so that
// both run. Who does what:
//   role    CTA    threads  waits for         signals
//   maker   2i     all      tile_seen[i]      tile_ready[i]: it is new
//   user    2i+1   all      tile_ready[i]     tile_seen[i]: it has been read
template <bool kBroken>
__global__ void __launch_bounds__(kThreads)
    renew(uint32_t* tiles, uint32_t* tile_seen, uint32_t* tile_ready, uint32_t* sums, uint32_t* out) {
  const unsigned pair = blockIdx.x / 2, first = pair * kWords;
  if (blockIdx.x % 2 == 0) {
    museum::wait_for_flag(&tile_seen[pair]);
    for (unsigned i = threadIdx.x; i < kWords; i += kThreads) tiles[first + i] = 3 * i + pair;  // reported
    __syncthreads();
    if (threadIdx.x == 0) museum::st_release_gpu(&tile_ready[pair], 1);
  } else {
    uint32_t sum = 0;
    for (unsigned i = threadIdx.x; i < kWords; i += kThreads) sum += tiles[first + i];
    __syncthreads();
    if (threadIdx.x == 0) museum::st_release_gpu(&tile_seen[pair], 1);
    // The mistake: the flag is seen, and what it speaks of need not be.
    if constexpr (kBroken) poll_relaxed(&tile_ready[pair]);
    if constexpr (!kBroken) museum::wait_for_flag(&tile_ready[pair]);
    for (unsigned i = threadIdx.x; i < kWords; i += kThreads) out[first + i] = 7 * tiles[first + i];  // reported
    sums[pair * kThreads + threadIdx.x] = sum;
  }
}

int main(int argc, char** argv) {
  constexpr unsigned kPairs = 4;
  museum::Exhibit exhibit(argc, argv);
  std::vector<uint32_t> expected;
  for (unsigned pair = 0; pair < kPairs; ++pair)
    for (unsigned i = 0; i < kWords; ++i) expected.push_back(7 * (3 * i + pair));
  exhibit.launches(exhibit.broken ? renew<true> : renew<false>, {.ctas = 2 * kPairs, .threads = kThreads, .cluster = 2},
                   exhibit.memory(museum::numbers(kPairs * kWords)), exhibit.memory(std::vector<uint32_t>(kPairs, 0)),
                   exhibit.memory(std::vector<uint32_t>(kPairs, 0)),
                   exhibit.memory(std::vector<uint32_t>(kPairs * kThreads, 0)),
                   exhibit.output<uint32_t>(kPairs * kWords));
  return exhibit.compare(expected);
}
