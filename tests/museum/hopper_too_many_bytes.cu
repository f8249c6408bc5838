// The barrier of a tile is told more bytes than the copies bring.
//
// Symptom: A hang, in the first tile.
// Why: The phase ends when the bytes that were announced have arrived. Sixteen of them are not under way.
// Fix: expect_tx announces what the copies bring: the bytes of their boxes, neither more nor less.
// Rule: PTX ISA, mbarrier.expect_tx; tx-count
// Theme: bytes and arrivals
// Expect: hang of tile_full
#include "common/ptx/bulk.cuh"
#include "common/ptx/fence.cuh"
#include "common/ptx/shared.cuh"
#include "tests/museum/exhibit.cuh"
#include "tests/museum/exhibit.h"

using namespace ladder;

constexpr int kThreads = 128, kWords = 1024;

// Each CTA copies a tile. Who does what:
//   role      threads   waits for    signals
//   load      thread 0  -            tile_full: the bytes of the tile
//   readers   all       tile_full    -
template <bool kBroken>
__global__ void __launch_bounds__(kThreads) copy_tile(const uint32_t* in, uint32_t* out, uint32_t tries) {
  __shared__ alignas(128) uint32_t tile[kWords];
  __shared__ uint64_t tile_full;
  if (threadIdx.x == 0) {
    mbarrier_init(shared_address(tile_full), 1);
    fence_mbarrier_init();
  }
  __syncthreads();

  const unsigned first = blockIdx.x * kWords;
  // The mistake: the tile has grown a pad of 16 bytes here, which nobody copies.
  constexpr uint32_t kExpected = kBroken ? sizeof tile + 16 : sizeof tile;
  if (threadIdx.x == 0) {
    mbarrier_arrive_expect_tx(shared_address(tile_full), kExpected);  // reported
    cp_async_bulk_load(shared_address(tile), in + first, sizeof tile, shared_address(tile_full));
  }
  museum::wait_parity(shared_address(tile_full), 0, tries);  // reported
  for (unsigned i = threadIdx.x; i < kWords; i += kThreads) out[first + i] = tile[i];
}

int main(int argc, char** argv) {
  constexpr unsigned kCtas = 2;
  museum::Exhibit exhibit(argc, argv);
  const std::vector<uint32_t> in = museum::numbers(kCtas * kWords);
  exhibit.launches(exhibit.broken ? copy_tile<true> : copy_tile<false>, {.ctas = kCtas, .threads = kThreads},
                   exhibit.memory(in), exhibit.output<uint32_t>(in.size()), exhibit.tries());
  return exhibit.compare(in);
}
