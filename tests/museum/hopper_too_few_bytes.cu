// The barrier of a tile of two boxes is told the bytes of one.
//
// Symptom: One half of the tile is now and then what was there before: which half, and how often, changes from run to
//   run.
// Why: The phase ends when the bytes that were announced have arrived. The box that comes first ends it for both.
// Fix: expect_tx announces the bytes of all copies that the phase stands for.
// Rule: PTX ISA, mbarrier.expect_tx; tx-count
// Theme: bytes and arrivals
// Expect: barrier-bytes of tile_full; read-too-early, overwrite-too-early of tile
#include "common/ptx/bulk.cuh"
#include "common/ptx/fence.cuh"
#include "common/ptx/shared.cuh"
#include "tests/museum/exhibit.cuh"
#include "tests/museum/exhibit.h"

using namespace ladder;

constexpr int kThreads = 128, kWords = 2048, kBoxWords = kWords / 2;
constexpr uint32_t kBoxBytes = kBoxWords * 4;

// Each CTA copies a tile of two boxes. Who does what:
//   role      threads   waits for          signals
//   load      thread 0  -                  tile_full: the bytes of both boxes
//   readers   all       tile_full          -
//   end       thread 0  tile_full, again   - (a CTA must not end under a copy into it)
template <bool kBroken>
__global__ void __launch_bounds__(kThreads) copy_tile(const uint32_t* in, uint32_t* out) {
  __shared__ alignas(128) uint32_t tile[kWords];
  __shared__ uint64_t tile_full;
  if (threadIdx.x == 0) {
    mbarrier_init(shared_address(tile_full), 1);
    fence_mbarrier_init();
  }
  __syncthreads();

  const unsigned first = blockIdx.x * kWords;
  // The mistake: the second box is not counted.
  constexpr uint32_t kExpected = kBroken ? kBoxBytes : 2 * kBoxBytes;
  if (threadIdx.x == 0) {
    mbarrier_arrive_expect_tx(shared_address(tile_full), kExpected);
    for (int box = 0; box < 2; ++box) {
      // reported:
      cp_async_bulk_load(shared_address(tile[box * kBoxWords]), in + first + box * kBoxWords, kBoxBytes,
                         shared_address(tile_full));
    }
  }
  museum::wait_parity(shared_address(tile_full), 0);
  for (unsigned i = threadIdx.x; i < kWords; i += kThreads) out[first + i] = tile[i];  // reported

  if (threadIdx.x == 0) {  // what the phase has not waited for, the next one does
    mbarrier_arrive_expect_tx(shared_address(tile_full), 2 * kBoxBytes - kExpected);
    museum::wait_parity(shared_address(tile_full), 1);
  }
}

int main(int argc, char** argv) {
  constexpr unsigned kCtas = 8;
  museum::Exhibit exhibit(argc, argv);
  const std::vector<uint32_t> in = museum::numbers(kCtas * kWords);
  exhibit.launches(exhibit.broken ? copy_tile<true> : copy_tile<false>, {.ctas = kCtas, .threads = kThreads},
                   exhibit.memory(in), exhibit.output<uint32_t>(in.size()));
  return exhibit.compare(in);
}
