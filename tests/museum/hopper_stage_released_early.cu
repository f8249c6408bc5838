// The readers of a ring release a stage first and read it then.
//
// Symptom: Words of a later K tile, more often the slower the readers are; a debugger or a printf in the readers makes
//   it worse.
// Why: An arrive on tile_empty tells the producer that the stage may be overwritten. Reads that come after the arrive
//   in the program are not covered by it.
// Fix: Arrive when the values are in registers: read first, arrive then.
// Rule: PTX ISA, mbarrier.arrive, .release
// Theme: stages and buffers
// Expect: read-too-early of ring
#include "common/ptx/bulk.cuh"
#include "common/ptx/fence.cuh"
#include "common/ptx/shared.cuh"
#include "common/ptx/warp.cuh"
#include "tests/museum/exhibit.cuh"
#include "tests/museum/exhibit.h"

using namespace ladder;

constexpr int kReaders = 128, kThreads = 32 + kReaders, kWords = 1024, kStages = 2, kTiles = 6;

// Each CTA copies kTiles tiles through a ring of kStages buffers. Who does what:
//   role      threads           waits for           signals
//   producer  warp 0, one lane  tile_empty[stage]   tile_full[stage]: the bytes of the tile
//   readers   warps 1-4         tile_full[stage]    tile_empty[stage]
template <bool kBroken>
__global__ void __launch_bounds__(kThreads) copy_tiles(const uint32_t* in, uint32_t* out) {
  __shared__ alignas(128) uint32_t ring[kStages][kWords];
  __shared__ uint64_t tile_full[kStages];
  __shared__ uint64_t tile_empty[kStages];
  const uint32_t warp = warp_index();
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kStages; ++stage) {
      mbarrier_init(shared_address(tile_full[stage]), 1);
      mbarrier_init(shared_address(tile_empty[stage]), kReaders);
    }
    fence_mbarrier_init();
  }
  __syncthreads();

  const unsigned first = blockIdx.x * kTiles * kWords;
  int stage = 0;
  uint32_t parity = 0;
  if (warp == 0 && elect_sync()) {
    for (int tile = 0; tile < kTiles; ++tile) {
      museum::wait_parity(shared_address(tile_empty[stage]), parity ^ 1);  // passes at once in the first round
      mbarrier_arrive_expect_tx(shared_address(tile_full[stage]), sizeof ring[stage]);
      // reported:
      cp_async_bulk_load(shared_address(ring[stage]), in + first + tile * kWords, sizeof ring[stage],
                         shared_address(tile_full[stage]));
      if (++stage == kStages) stage = 0, parity ^= 1;
    }
  } else if (warp > 0) {
    for (int tile = 0; tile < kTiles; ++tile) {
      museum::wait_parity(shared_address(tile_full[stage]), parity);
      // The mistake: the stage is released before it has been read.
      if constexpr (kBroken) mbarrier_arrive(shared_address(tile_empty[stage]));
      museum::linger(2000);
      // reported:
      for (unsigned i = threadIdx.x - 32; i < kWords; i += kReaders) out[first + tile * kWords + i] = ring[stage][i];
      if constexpr (!kBroken) mbarrier_arrive(shared_address(tile_empty[stage]));
      if (++stage == kStages) stage = 0, parity ^= 1;
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
