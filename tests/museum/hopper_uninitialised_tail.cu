// A reduction goes over a whole tile of which only the first part has been loaded.
//
// Symptom: Sums that differ from run to run; right in the first run on a fresh GPU, whose shared memory happens to
//   hold zeros.
// Why: Shared memory begins with whatever the last CTA on that SM left there. The copy brought the rows there are, and
//   nobody wrote the rest of the tile.
// Fix: The threads fill the tail with zeros before they sum up. (A tensor map would have: what lies outside of the
//   tensor arrives as zeros.)
// Rule: PTX ISA, state spaces, shared: not initialised
// Theme: contents and layouts
// Expect: uninitialised of tile
#include "common/ptx/bulk.cuh"
#include "common/ptx/fence.cuh"
#include "common/ptx/shared.cuh"
#include "tests/museum/exhibit.cuh"
#include "tests/museum/exhibit.h"

using namespace ladder;

constexpr unsigned kThreads = 128, kRows = 8, kFilledRows = 5, kWords = kRows * kThreads;

// Each CTA sums up the columns of a tile whose last rows do not exist. Who does what:
//   role      threads   waits for     signals
//   load      thread 0  -             tile_full: the bytes of the rows that exist
//   zeros     all       -             - (each thread sums up the column it has filled)
//   sum       all       tile_full     -
template <bool kBroken>
__global__ void __launch_bounds__(kThreads) sum_columns(const uint32_t* in, uint32_t* out) {
  __shared__ alignas(128) uint32_t tile[kWords];
  __shared__ uint64_t tile_full;
  if (threadIdx.x == 0) {
    mbarrier_init(shared_address(tile_full), 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(shared_address(tile_full), kFilledRows * kThreads * 4);
    cp_async_bulk_load(shared_address(tile), in + blockIdx.x * kFilledRows * kThreads, kFilledRows * kThreads * 4,
                       shared_address(tile_full));
  }
  __syncthreads();
  // The mistake: the rows that were not loaded are summed up all the same.
  if constexpr (!kBroken) {
    for (unsigned row = kFilledRows; row < kRows; ++row) tile[row * kThreads + threadIdx.x] = 0;
  }
  museum::wait_parity(shared_address(tile_full), 0);
  uint32_t sum = 0;
  for (unsigned row = 0; row < kRows; ++row) sum += tile[row * kThreads + threadIdx.x];  // reported
  out[blockIdx.x * kThreads + threadIdx.x] = sum;
}

int main(int argc, char** argv) {
  constexpr unsigned kCtas = 8;
  museum::Exhibit exhibit(argc, argv);
  const std::vector<uint32_t> in = museum::numbers(kCtas * kFilledRows * kThreads);
  std::vector<uint32_t> expected(kCtas * kThreads, 0);
  for (size_t i = 0; i < in.size(); ++i) expected[i / (kFilledRows * kThreads) * kThreads + i % kThreads] += in[i];
  exhibit.launches(exhibit.broken ? sum_columns<true> : sum_columns<false>, {.ctas = kCtas, .threads = kThreads},
                   exhibit.memory(in), exhibit.output<uint32_t>(expected.size()));
  return exhibit.compare(expected);
}
