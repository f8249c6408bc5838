// The producer of a ring refills a stage without waiting for it to be empty.
//
// Symptom: Slow readers get words of a later K tile; right as long as everybody keeps pace.
// Why: The producer's own wait for tile_full says that the copy has landed, nothing about who has read it.
// Fix: The producer waits for tile_empty[stage], on which every reader arrives when it has read, before it refills.
// Rule: PTX ISA, mbarrier; async proxy
// Theme: stages and buffers
// Expect: overwrite-too-early of ring
#include "common/ptx/bulk.cuh"
#include "common/ptx/fence.cuh"
#include "common/ptx/shared.cuh"
#include "tests/museum/exhibit.cuh"
#include "tests/museum/exhibit.h"

using namespace ladder;

constexpr int kThreads = 128, kWords = 1024, kStages = 2, kTiles = 3;

// Each CTA copies kTiles tiles through a ring of kStages buffers. Who does what:
//   role      threads   waits for           signals
//   producer  thread 0  tile_empty[stage]   tile_full[stage]: the bytes of the tile
//   readers   all       tile_full[stage]    tile_empty[stage]
template <bool kBroken>
__global__ void __launch_bounds__(kThreads) copy_tiles(const uint32_t* in, uint32_t* out) {
  __shared__ alignas(128) uint32_t ring[kStages][kWords];
  __shared__ uint64_t tile_full[kStages];
  __shared__ uint64_t tile_empty[kStages];
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kStages; ++stage) {
      mbarrier_init(shared_address(tile_full[stage]), 1);
      mbarrier_init(shared_address(tile_empty[stage]), kThreads);
    }
    fence_mbarrier_init();
  }
  __syncthreads();

  const unsigned first = blockIdx.x * kTiles * kWords;
  const auto load = [&](int tile) {
    const int stage = tile % kStages;
    mbarrier_arrive_expect_tx(shared_address(tile_full[stage]), sizeof ring[stage]);
    cp_async_bulk_load(shared_address(ring[stage]), in + first + tile * kWords, sizeof ring[stage],
                       shared_address(tile_full[stage]));
  };
  if (threadIdx.x == 0) {
    for (int tile = 0; tile < kStages; ++tile) load(tile);
  }
  for (int tile = 0; tile < kTiles; ++tile) {
    const int stage = tile % kStages;
    const uint32_t parity = tile / kStages % 2;
    museum::wait_parity(shared_address(tile_full[stage]), parity);
    if (threadIdx.x >= 32) museum::linger(2000);
    // reported:
    for (unsigned i = threadIdx.x; i < kWords; i += kThreads) out[first + tile * kWords + i] = ring[stage][i];
    mbarrier_arrive(shared_address(tile_empty[stage]));
    if (threadIdx.x == 0 && tile + kStages < kTiles) {
      // The mistake: the other threads may still be reading the stage.
      if constexpr (!kBroken) museum::wait_parity(shared_address(tile_empty[stage]), parity);
      load(tile + kStages);  // reported
    }
  }
}

int main(int argc, char** argv) {
  constexpr unsigned kCtas = 8;
  museum::Exhibit exhibit(argc, argv);
  const std::vector<uint32_t> in = museum::numbers(kCtas * kTiles * kWords);
  exhibit.launches(exhibit.broken ? copy_tiles<true> : copy_tiles<false>, {.ctas = kCtas, .threads = kThreads},
                   exhibit.memory(in), exhibit.output<uint32_t>(in.size()));
  return exhibit.compare(in);
}
