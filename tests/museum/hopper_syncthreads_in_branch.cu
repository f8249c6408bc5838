// A CTA barrier stands inside the branch of one lane.
//
// Symptom: Undefined: a hang, an error, or nothing, by chip and compiler.
// Why: __syncthreads() is barrier.sync.aligned: all threads of a warp execute it together. Here one lane of warp 0
//   executes it in its branch, and its 31 neighbours another one.
// Fix: The barrier stands after the branch, where all threads come by.
// Rule: PTX ISA, bar.sync, .aligned
// Theme: warps and lanes
// Expect: hang of barrier 0
#include "common/ptx/bulk.cuh"
#include "common/ptx/fence.cuh"
#include "common/ptx/shared.cuh"
#include "tests/museum/exhibit.cuh"
#include "tests/museum/exhibit.h"

using namespace ladder;

constexpr unsigned kThreads = 128, kWords = 1024;

// Each CTA copies a tile. Who does what:
//   role      threads   waits for     signals
//   load      thread 0  tile_full     tile_full: the bytes of the tile; CTA barrier: they are there
//   readers   all       CTA barrier   -
template <bool kBroken>
__global__ void __launch_bounds__(kThreads) copy_tile(const uint32_t* in, uint32_t* out) {
  __shared__ alignas(128) uint32_t tile[kWords];
  __shared__ uint64_t tile_full;
  const unsigned first = blockIdx.x * kWords;
  if (threadIdx.x == 0) {
    mbarrier_init(shared_address(tile_full), 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(shared_address(tile_full), sizeof tile);
    cp_async_bulk_load(shared_address(tile), in + first, sizeof tile, shared_address(tile_full));
    museum::wait_parity(shared_address(tile_full), 0);
    // The mistake: this barrier is one lane's, and the one below all others'.
    if constexpr (kBroken) __syncthreads();  // reported
  }
  if (!kBroken || threadIdx.x != 0) __syncthreads();  // reported
  for (unsigned i = threadIdx.x; i < kWords; i += kThreads) out[first + i] = tile[i];
}

int main(int argc, char** argv) {
  constexpr unsigned kCtas = 2;
  museum::Exhibit exhibit(argc, argv);
  const std::vector<uint32_t> in = museum::numbers(kCtas * kWords);
  exhibit.launches(exhibit.broken ? copy_tile<true> : copy_tile<false>, {.ctas = kCtas, .threads = kThreads},
                   exhibit.memory(in), exhibit.output<uint32_t>(in.size()));
  return exhibit.compare(in);
}
