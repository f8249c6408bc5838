// Threads use a barrier that another thread may not have initialised yet.
//
// Symptom: A hang or an error now and then: who comes first finds any bits for a barrier.
// Why: mbarrier.init is an ordinary write of one thread. The other threads of the CTA see it after a barrier.
// Fix: __syncthreads() between the init and the first use.
// Rule: PTX ISA, mbarrier.init
// Theme: the life of a barrier
// Expect: barrier-invalid of tile_full
#include "common/ptx/bulk.cuh"
#include "common/ptx/fence.cuh"
#include "common/ptx/shared.cuh"
#include "tests/museum/exhibit.cuh"
#include "tests/museum/exhibit.h"

using namespace ladder;

constexpr unsigned kThreads = 128, kWords = 1024;

// Each CTA copies a tile. Who does what:
//   role        threads    waits for     signals
//   init, load  thread 32  -             CTA barrier: tile_full is initialised; tile_full: the bytes of the tile
//   readers     all        tile_full     -
template <bool kBroken>
__global__ void __launch_bounds__(kThreads) copy_tile(const uint32_t* in, uint32_t* out) {
  __shared__ alignas(128) uint32_t tile[kWords];
  __shared__ uint64_t tile_full;
  const unsigned first = blockIdx.x * kWords;
  if (threadIdx.x == 32) {
    mbarrier_init(shared_address(tile_full), 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(shared_address(tile_full), sizeof tile);
    cp_async_bulk_load(shared_address(tile), in + first, sizeof tile, shared_address(tile_full));
  }
  // The mistake: the other threads do not wait for the init.
  if constexpr (!kBroken) __syncthreads();
  museum::wait_parity(shared_address(tile_full), 0);  // reported
  for (unsigned i = threadIdx.x; i < kWords; i += kThreads) out[first + i] = tile[i];
}

int main(int argc, char** argv) {
  constexpr unsigned kCtas = 8;
  museum::Exhibit exhibit(argc, argv);
  const std::vector<uint32_t> in = museum::numbers(kCtas * kWords);
  exhibit.launches(exhibit.broken ? copy_tile<true> : copy_tile<false>, {.ctas = kCtas, .threads = kThreads},
                   exhibit.memory(in), exhibit.output<uint32_t>(in.size()));
  return exhibit.compare(in);
}
