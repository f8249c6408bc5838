// The readers of a ring forget to turn the parity over when the ring wraps.
//
// Symptom: From the second round on, the tiles of the round before; or a hang, when the copy was faster than the
//   reader.
// Why: wait(parity) passes when the running phase has the other parity. In the second round the first phase is long
//   over, so wait(0) passes at once, whether or not the second copy has landed. After that copy it would wait for the
//   third.
// Fix: The parity is that of the round: it turns over where the ring wraps.
// Rule: PTX ISA, mbarrier.try_wait, .parity
// Theme: waits and phases
// Expect: read-too-early of buffer
#include "common/ptx/bulk.cuh"
#include "common/ptx/fence.cuh"
#include "common/ptx/shared.cuh"
#include "common/ptx/warp.cuh"
#include "tests/museum/exhibit.cuh"
#include "tests/museum/exhibit.h"

using namespace ladder;

constexpr int kReaders = 128, kThreads = 32 + kReaders, kWords = 1024, kTiles = 2;

// Each CTA copies kTiles tiles through one buffer. Who does what:
//   role      threads           waits for    signals
//   producer  warp 0, one lane  tile_empty   tile_full: the bytes of the tile
//             at the end        tile_full    - (a CTA must not end under a copy into it)
//   readers   warps 1-4         tile_full    tile_empty
template <bool kBroken>
__global__ void __launch_bounds__(kThreads) copy_tiles(const uint32_t* in, uint32_t* out) {
  __shared__ alignas(128) uint32_t buffer[kWords];
  __shared__ uint64_t tile_full;
  __shared__ uint64_t tile_empty;
  const uint32_t warp = warp_index();
  if (threadIdx.x == 0) {
    mbarrier_init(shared_address(tile_full), 1);
    mbarrier_init(shared_address(tile_empty), kReaders);
    fence_mbarrier_init();
  }
  __syncthreads();

  const unsigned first = blockIdx.x * kTiles * kWords;
  if (warp == 0 && elect_sync()) {
    uint32_t parity = 0;
    for (int tile = 0; tile < kTiles; ++tile, parity ^= 1) {
      museum::wait_parity(shared_address(tile_empty), parity ^ 1);  // passes at once in the first round
      museum::linger(2000);
      mbarrier_arrive_expect_tx(shared_address(tile_full), sizeof buffer);
      // reported:
      cp_async_bulk_load(shared_address(buffer), in + first + tile * kWords, sizeof buffer, shared_address(tile_full));
    }
    museum::wait_parity(shared_address(tile_full), parity ^ 1);
  } else if (warp > 0) {
    uint32_t parity = 0;
    for (int tile = 0; tile < kTiles; ++tile) {
      museum::wait_parity(shared_address(tile_full), parity);
      // reported:
      for (unsigned i = threadIdx.x - 32; i < kWords; i += kReaders) out[first + tile * kWords + i] = buffer[i];
      mbarrier_arrive(shared_address(tile_empty));
      // The mistake: the ring has wrapped, the parity stays.
      if constexpr (!kBroken) parity ^= 1;
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
