// One lane releases a stage for its warp before the other lanes have read it.
//
// Symptom: A lane that lags gets words of a later tile. Right where the lanes happen to run together.
// Why: The arrive releases what its own thread has done, and what other threads had done when they met it. Lanes of a
//   warp do not meet by themselves: since Volta each has a program counter of its own.
// Fix: __syncwarp() between the reads and the arrive of the elected lane.
// Rule: PTX ISA, bar.warp.sync; mbarrier.arrive, .release
// Theme: warps and lanes
// Expect: overwrite-too-early of buffer
#include "common/ptx/bulk.cuh"
#include "common/ptx/fence.cuh"
#include "common/ptx/shared.cuh"
#include "common/ptx/warp.cuh"
#include "tests/museum/exhibit.cuh"
#include "tests/museum/exhibit.h"

using namespace ladder;

constexpr int kThreads = 64, kWords = 1024, kTiles = 4;

// Each CTA copies kTiles tiles through one buffer. Who does what:
//   role      threads           waits for    signals
//   producer  warp 1, one lane  tile_empty   tile_full: the bytes of the tile
//   readers   warp 0            tile_full    tile_empty: by lane 0, for the warp
template <bool kBroken>
__global__ void __launch_bounds__(kThreads) copy_tiles(const uint32_t* in, uint32_t* out) {
  __shared__ alignas(128) uint32_t buffer[kWords];
  __shared__ uint64_t tile_full;
  __shared__ uint64_t tile_empty;
  const uint32_t warp = warp_index();
  if (threadIdx.x == 0) {
    mbarrier_init(shared_address(tile_full), 1);
    mbarrier_init(shared_address(tile_empty), 1);
    fence_mbarrier_init();
  }
  __syncthreads();

  const unsigned first = blockIdx.x * kTiles * kWords;
  if (warp == 1 && elect_sync()) {
    for (int tile = 0; tile < kTiles; ++tile) {
      museum::wait_parity(shared_address(tile_empty), (tile & 1) ^ 1);  // passes at once in the first round
      mbarrier_arrive_expect_tx(shared_address(tile_full), sizeof buffer);
      // reported:
      cp_async_bulk_load(shared_address(buffer), in + first + tile * kWords, sizeof buffer, shared_address(tile_full));
    }
  }
  if (warp == 0) {
    for (int tile = 0; tile < kTiles; ++tile) {
      museum::wait_parity(shared_address(tile_full), tile & 1);
      const auto read = [&] {
        for (unsigned i = threadIdx.x; i < kWords; i += 32) out[first + tile * kWords + i] = buffer[i];  // reported
      };
      if (threadIdx.x != 0) {
        museum::linger(2000);
        read();
      }
      // The mistake: lane 0 goes on to its own words and the arrive, wherever the other lanes are.
      if constexpr (!kBroken) __syncwarp();
      if (threadIdx.x == 0) {
        read();
        mbarrier_arrive(shared_address(tile_empty));
      }
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
