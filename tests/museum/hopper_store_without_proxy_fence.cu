// A tile written by threads is handed to TMA without a fence between the proxies.
//
// Symptom: Usually none. Now and then a few words of the stored tile are the ones of the round before, more often the
//   busier the SM is: the ordinary stores were still on their way when TMA read the tile.
// Why: Ordinary stores reach shared memory through the generic proxy, TMA reads it through the async proxy. A barrier
//   orders accesses of one proxy; between the two it orders nothing.
// Fix: Every thread that has written executes fence.proxy.async.shared::cta, then the barrier, then one thread stores.
// Rule: PTX ISA, async proxy; membar/fence, fence.proxy.async
// Theme: proxies
// Expect: proxy-fence of tile
#include "common/ptx/bulk.cuh"
#include "common/ptx/fence.cuh"
#include "common/ptx/shared.cuh"
#include "tests/museum/exhibit.h"

using namespace ladder;

constexpr int kThreads = 128, kWords = 1024, kRounds = 4;

// Each CTA writes kRounds tiles. Who does what:
//   role      threads   waits for       signals
//   writers   all       -               CTA barrier: the tile is written
//   store     thread 0  its bulk group  CTA barrier: the tile may be written again
template <bool kBroken>
__global__ void __launch_bounds__(kThreads) store_tiles(const uint32_t* in, uint32_t* out) {
  __shared__ alignas(128) uint32_t tile[kWords];
  for (int round = 0; round < kRounds; ++round) {
    const int first = (static_cast<int>(blockIdx.x) * kRounds + round) * kWords;
    for (int i = static_cast<int>(threadIdx.x); i < kWords; i += kThreads) tile[i] = in[first + i] + 1;  // reported
    // The mistake: what the threads wrote is not handed over to the async proxy.
    if constexpr (!kBroken) fence_proxy_async_shared_cta();
    __syncthreads();
    if (threadIdx.x == 0) {
      cp_async_bulk_store(out + first, shared_address(tile), sizeof tile);  // reported
      cp_async_bulk_commit_group();
      cp_async_bulk_wait_group<0>();
    }
    __syncthreads();
  }
}

int main(int argc, char** argv) {
  constexpr unsigned kCtas = 8;
  museum::Exhibit exhibit(argc, argv);
  const std::vector<uint32_t> in = museum::numbers(kCtas * kRounds * kWords);
  std::vector<uint32_t> expected;
  for (const uint32_t word : in) expected.push_back(word + 1);
  exhibit.launches(exhibit.broken ? store_tiles<true> : store_tiles<false>, {.ctas = kCtas, .threads = kThreads},
                   exhibit.memory(in), exhibit.output<uint32_t>(in.size()));
  return exhibit.compare(expected);
}
