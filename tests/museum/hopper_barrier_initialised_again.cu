// A barrier is ended and initialised anew for each tile, while threads still wait on it for the last one.
//
// Symptom: A hang, or words of the next tile: threads that come late find a fresh barrier, and wait for the copy that
//   it now stands for.
// Why: mbarrier.init on a live barrier is not an operation of that barrier. Who still waits sees neither the end of
//   the old phase nor that there was one.
// Fix: All threads meet after their wait and before the init. (Better still: initialise once, and turn the parity
//   over.)
// Rule: PTX ISA, mbarrier.init: on memory of a live mbarrier it is undefined; mbarrier.inval first
// Theme: the life of a barrier
// Expect: barrier-reuse of tile_full
// Also: barrier-invalid
#include "common/ptx/bulk.cuh"
#include "common/ptx/fence.cuh"
#include "common/ptx/shared.cuh"
#include "tests/museum/exhibit.cuh"
#include "tests/museum/exhibit.h"

using namespace ladder;

constexpr unsigned kThreads = 128, kWords = 1024, kTiles = 3;

// Each CTA copies kTiles tiles, each into memory of its own. Who does what:
//   role      threads   waits for                    signals
//   load      thread 0  CTA barrier                  tile_full: the bytes of the tile
//   readers   all       CTA barrier, tile_full       CTA barrier: nobody waits on tile_full any more
template <bool kBroken>
__global__ void __launch_bounds__(kThreads) copy_tiles(const uint32_t* in, uint32_t* out) {
  __shared__ alignas(128) uint32_t tiles[kTiles][kWords];
  __shared__ uint64_t tile_full;
  for (unsigned tile = 0; tile < kTiles; ++tile) {
    const unsigned first = (blockIdx.x * kTiles + tile) * kWords;
    if (threadIdx.x == 0) {
      mbarrier_init(shared_address(tile_full), 1);
      fence_mbarrier_init();
      mbarrier_arrive_expect_tx(shared_address(tile_full), sizeof tiles[tile]);
      cp_async_bulk_load(shared_address(tiles[tile]), in + first, sizeof tiles[tile], shared_address(tile_full));
    }
    __syncthreads();
    if (threadIdx.x >= 32) museum::linger(3000);
    museum::wait_parity(shared_address(tile_full), 0);  // reported
    for (unsigned i = threadIdx.x; i < kWords; i += kThreads) out[first + i] = tiles[tile][i];
    // The mistake: thread 0 goes on to the next barrier while others have yet to see this phase end.
    if constexpr (!kBroken) __syncthreads();
    if (threadIdx.x == 0) mbarrier_inval(shared_address(tile_full));  // reported
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
