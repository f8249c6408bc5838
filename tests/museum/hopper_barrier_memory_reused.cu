// The memory of a barrier is used for something else, without mbarrier.inval.
//
// Symptom: None on an H200 so long as nothing else touches the barrier; it keeps a live barrier's state apart from the
//   word in memory, and no promise says when the two meet.
// Why: An mbarrier is an object with a life of its own, from mbarrier.init to mbarrier.inval. Until then its 64 bits
//   are not memory for anything else.
// Fix: mbarrier.inval when nobody uses the barrier any more, then a CTA barrier, then the other use.
// Rule: PTX ISA, mbarrier.inval
// Theme: the life of a barrier
// Expect: barrier-overwritten of tile_full
#include "common/ptx/bulk.cuh"
#include "common/ptx/fence.cuh"
#include "common/ptx/shared.cuh"
#include "tests/museum/exhibit.cuh"
#include "tests/museum/exhibit.h"

using namespace ladder;

constexpr unsigned kThreads = 128, kWords = 1024;

// Each CTA sums up a tile. Who does what:
//   role      threads             waits for     signals
//   load      thread 0            -             tile_full: the bytes of the tile
//   readers   all                 tile_full     CTA barrier: nobody uses tile_full any more
//   sum       all                 CTA barrier   sums, in the memory that was tile_full: a word for each half of the CTA
template <bool kBroken>
__global__ void __launch_bounds__(kThreads) sum_tile(const uint32_t* in, uint32_t* out) {
  __shared__ alignas(128) uint32_t tile[kWords];
  __shared__ uint64_t tile_full;
  if (threadIdx.x == 0) {
    mbarrier_init(shared_address(tile_full), 1);  // reported
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(shared_address(tile_full), sizeof tile);
    cp_async_bulk_load(shared_address(tile), in + blockIdx.x * kWords, sizeof tile, shared_address(tile_full));
  }
  __syncthreads();
  museum::wait_parity(shared_address(tile_full), 0);
  uint32_t sum = 0;
  for (unsigned i = threadIdx.x; i < kWords; i += kThreads) sum += tile[i];
  __syncthreads();

  uint32_t* const sums = reinterpret_cast<uint32_t*>(&tile_full);
  if (threadIdx.x == 0) {
    // The mistake: the barrier is still one when its memory becomes two sums.
    if constexpr (!kBroken) mbarrier_inval(shared_address(tile_full));
    sums[0] = sums[1] = 0;  // reported
  }
  __syncthreads();
  atomicAdd(&sums[threadIdx.x / 64], sum);
  __syncthreads();
  if (threadIdx.x < 2) out[blockIdx.x * 2 + threadIdx.x] = sums[threadIdx.x];
}

int main(int argc, char** argv) {
  constexpr unsigned kCtas = 8;
  museum::Exhibit exhibit(argc, argv);
  const std::vector<uint32_t> in = museum::numbers(kCtas * kWords);
  std::vector<uint32_t> expected(kCtas * 2, 0);
  for (size_t i = 0; i < in.size(); ++i) expected[i / kWords * 2 + i % kThreads / 64] += in[i];
  exhibit.launches(exhibit.broken ? sum_tile<true> : sum_tile<false>, {.ctas = kCtas, .threads = kThreads},
                   exhibit.memory(in), exhibit.output<uint32_t>(expected.size()));
  return exhibit.compare(expected);
}
