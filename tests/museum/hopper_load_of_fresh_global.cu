// Words that another CTA has stored to global memory are loaded by TMA without a fence between the proxies.
//
// Symptom: Stale words in the loaded tile, rarely, though the flag was seen and ordinary loads would get it right.
// Why: The acquire of the flag orders this thread's later accesses through the generic proxy. A TMA load goes through
//   the async proxy, which the acquire does not speak for.
// Fix: fence.proxy.async.global after the flag has been acquired, before the load is issued.
// Rule: PTX ISA, async proxy; membar/fence, fence.proxy.async
// Theme: proxies
// Expect: proxy-fence of global memory
#include "common/ptx/bulk.cuh"
#include "common/ptx/fence.cuh"
#include "common/ptx/shared.cuh"
#include "tests/museum/exhibit.cuh"
#include "tests/museum/exhibit.h"

using namespace ladder;

constexpr unsigned kThreads = 128, kWords = 1024;

// CTA 2i makes a tile in global memory, CTA 2i + 1 loads it and adds one: a cluster, so that both run. Who does what:
//   role      CTA    threads   waits for        signals
//   maker     2i     all       -                CTA barrier: the tile is written
//             2i     thread 0  CTA barrier      tile_ready[i], in global memory
//   load      2i+1   thread 0  tile_ready[i]    tile_full: the bytes of the tile
//   user      2i+1   all       tile_full        -
template <bool kBroken>
__global__ void __launch_bounds__(kThreads)
    pass_on(const uint32_t* in, uint32_t* between, uint32_t* tile_ready, uint32_t* out) {
  __shared__ alignas(128) uint32_t tile[kWords];
  __shared__ uint64_t tile_full;
  const unsigned pair = blockIdx.x / 2, first = pair * kWords;
  if (blockIdx.x % 2 == 0) {
    for (unsigned i = threadIdx.x; i < kWords; i += kThreads) between[first + i] = in[first + i] + 1;  // reported
    __syncthreads();
    if (threadIdx.x == 0) museum::st_release_gpu(&tile_ready[pair], 1);
  } else {
    if (threadIdx.x == 0) {
      mbarrier_init(shared_address(tile_full), 1);
      fence_mbarrier_init();
      museum::wait_for_flag(&tile_ready[pair]);
      // The mistake: what the flag stands for is not handed over to the async proxy.
      if constexpr (!kBroken) fence_proxy_async_global();
      mbarrier_arrive_expect_tx(shared_address(tile_full), sizeof tile);
      cp_async_bulk_load(shared_address(tile), between + first, sizeof tile, shared_address(tile_full));  // reported
    }
    __syncthreads();
    museum::wait_parity(shared_address(tile_full), 0);
    for (unsigned i = threadIdx.x; i < kWords; i += kThreads) out[first + i] = tile[i] + 1;
  }
}

int main(int argc, char** argv) {
  constexpr unsigned kPairs = 4;
  museum::Exhibit exhibit(argc, argv);
  const std::vector<uint32_t> in = museum::numbers(kPairs * kWords);
  std::vector<uint32_t> expected;
  for (const uint32_t word : in) expected.push_back(word + 2);
  exhibit.launches(exhibit.broken ? pass_on<true> : pass_on<false>,
                   {.ctas = 2 * kPairs, .threads = kThreads, .cluster = 2}, exhibit.memory(in),
                   exhibit.memory(std::vector<uint32_t>(in.size(), 0)),
                   exhibit.memory(std::vector<uint32_t>(kPairs, 0)), exhibit.output<uint32_t>(in.size()));
  return exhibit.compare(expected);
}
