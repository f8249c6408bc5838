// The producer of a ring begins with the wrong parity on the empty barriers.
//
// Symptom: A hang at once: the producer waits for a stage to be released that nobody has ever filled.
// Why: wait(0) on a fresh barrier waits for its first phase, which the first release ends. wait(1) passes: the phase
//   before the first counts as over.
// Fix: The producer begins with parity 1 on tile_empty, the readers with parity 0 on tile_full.
// Rule: PTX ISA, mbarrier.try_wait, .parity: the phase before the current one
// Theme: waits and phases
// Expect: hang of tile_empty
#include "common/ptx/bulk.cuh"
#include "common/ptx/fence.cuh"
#include "common/ptx/shared.cuh"
#include "common/ptx/warp.cuh"
#include "tests/museum/exhibit.cuh"
#include "tests/museum/exhibit.h"

using namespace ladder;

constexpr unsigned kReaders = 128, kThreads = 32 + kReaders, kWords = 1024, kStages = 2, kTiles = 4;

// Each CTA copies kTiles tiles through a ring of kStages buffers. Who does what:
//   role      threads           waits for           signals
//   producer  warp 0, one lane  tile_empty[stage]   tile_full[stage]: the bytes of the tile
//   readers   warps 1-4         tile_full[stage]    tile_empty[stage]
template <bool kBroken>
__global__ void __launch_bounds__(kThreads) copy_tiles(const uint32_t* in, uint32_t* out, uint32_t tries) {
  __shared__ alignas(128) uint32_t ring[kStages][kWords];
  __shared__ uint64_t tile_full[kStages];
  __shared__ uint64_t tile_empty[kStages];
  const uint32_t warp = warp_index();
  if (threadIdx.x == 0) {
    for (unsigned stage = 0; stage < kStages; ++stage) {
      mbarrier_init(shared_address(tile_full[stage]), 1);
      mbarrier_init(shared_address(tile_empty[stage]), kReaders);
    }
    fence_mbarrier_init();
  }
  __syncthreads();

  const unsigned first = blockIdx.x * kTiles * kWords;
  unsigned stage = 0;
  if (warp == 0 && elect_sync()) {
    // The mistake: no phase of tile_empty has ended yet.
    uint32_t parity = kBroken ? 0 : 1;
    for (unsigned tile = 0; tile < kTiles; ++tile) {
      museum::wait_parity(shared_address(tile_empty[stage]), parity, tries);  // reported
      mbarrier_arrive_expect_tx(shared_address(tile_full[stage]), sizeof ring[stage]);
      cp_async_bulk_load(shared_address(ring[stage]), in + first + tile * kWords, sizeof ring[stage],
                         shared_address(tile_full[stage]));
      if (++stage == kStages) stage = 0, parity ^= 1;
    }
  } else if (warp > 0) {
    uint32_t parity = 0;
    for (unsigned tile = 0; tile < kTiles; ++tile) {
      museum::wait_parity(shared_address(tile_full[stage]), parity, tries);
      for (unsigned i = threadIdx.x - 32; i < kWords; i += kReaders) out[first + tile * kWords + i] = ring[stage][i];
      mbarrier_arrive(shared_address(tile_empty[stage]));
      if (++stage == kStages) stage = 0, parity ^= 1;
    }
  }
}

int main(int argc, char** argv) {
  constexpr unsigned kCtas = 2;
  museum::Exhibit exhibit(argc, argv);
  const std::vector<uint32_t> in = museum::numbers(kCtas * kTiles * kWords);
  exhibit.launches(exhibit.broken ? copy_tiles<true> : copy_tiles<false>, {.ctas = kCtas, .threads = kThreads},
                   exhibit.memory(in), exhibit.output<uint32_t>(in.size()), exhibit.tries());
  return exhibit.compare(in);
}
