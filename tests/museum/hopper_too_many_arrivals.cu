// Every thread arrives on a barrier that counts warps.
//
// Symptom: cudaErrorLaunchFailure at the arrive.
// Why: The barrier was initialised for one arrival a warp. The arrive of the second lane goes below zero, which
//   hardware takes for a fault.
// Fix: One elected lane arrives for its warp, after __syncwarp(), or the barrier is initialised for all threads.
// Rule: PTX ISA, mbarrier.arrive: the count must not exceed what is pending
// Theme: bytes and arrivals
// Expect: barrier-overflow of tile_empty
#include "common/ptx/bulk.cuh"
#include "common/ptx/fence.cuh"
#include "common/ptx/shared.cuh"
#include "common/ptx/warp.cuh"
#include "tests/museum/exhibit.cuh"
#include "tests/museum/exhibit.h"

using namespace ladder;

constexpr int kReaderWarps = 4, kThreads = 32 + 32 * kReaderWarps, kWords = 1024, kTiles = 3;

// Each CTA copies kTiles tiles through one buffer. Who does what:
//   role      threads           waits for    signals
//   producer  warp 0, one lane  tile_empty   tile_full: the bytes of the tile
//   readers   warps 1-4         tile_full    tile_empty: one lane for its warp
template <bool kBroken>
__global__ void __launch_bounds__(kThreads) copy_tiles(const uint32_t* in, uint32_t* out) {
  __shared__ alignas(128) uint32_t buffer[kWords];
  __shared__ uint64_t tile_full;
  __shared__ uint64_t tile_empty;
  const uint32_t warp = warp_index();
  if (threadIdx.x == 0) {
    mbarrier_init(shared_address(tile_full), 1);
    mbarrier_init(shared_address(tile_empty), kReaderWarps);
    fence_mbarrier_init();
  }
  __syncthreads();

  const unsigned first = blockIdx.x * kTiles * kWords;
  if (warp == 0 && elect_sync()) {
    for (int tile = 0; tile < kTiles; ++tile) {
      museum::wait_parity(shared_address(tile_empty), (tile & 1) ^ 1);  // passes at once in the first round
      mbarrier_arrive_expect_tx(shared_address(tile_full), sizeof buffer);
      cp_async_bulk_load(shared_address(buffer), in + first + tile * kWords, sizeof buffer, shared_address(tile_full));
    }
  } else if (warp > 0) {
    for (int tile = 0; tile < kTiles; ++tile) {
      museum::wait_parity(shared_address(tile_full), tile & 1);
      for (unsigned i = threadIdx.x - 32; i < kWords; i += 32 * kReaderWarps) {
        out[first + tile * kWords + i] = buffer[i];
      }
      __syncwarp();
      // The mistake: 32 lanes arrive where one is counted.
      if (kBroken || elect_sync()) mbarrier_arrive(shared_address(tile_empty));  // reported
    }
  }
}

int main(int argc, char** argv) {
  constexpr unsigned kCtas = 2;
  museum::Exhibit exhibit(argc, argv);
  const std::vector<uint32_t> in = museum::numbers(kCtas * kTiles * kWords);
  exhibit.launches(exhibit.broken ? copy_tiles<true> : copy_tiles<false>, {.ctas = kCtas, .threads = kThreads},
                   exhibit.memory(in), exhibit.output<uint32_t>(in.size()));
  return exhibit.compare(in);
}
