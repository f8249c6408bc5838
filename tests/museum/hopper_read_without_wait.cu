// A tile that TMA loads is read before its mbarrier has been waited for.
//
// Symptom: Garbage, zeros or the words of an earlier kernel in the output, nearly always.
// Why: cp.async.bulk returns at once, and a CTA barrier only says that the copy was issued. That its bytes are there
//   is told by the mbarrier that counts them, to whoever waits on it.
// Fix: Every reader waits for the phase of tile_full before it reads.
// Rule: PTX ISA, cp.async.bulk; mbarrier.try_wait
// Theme: waits and phases
// Expect: read-too-early of tile
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
//   end       thread 0  tile_full    - (a CTA must not end under a copy into it)
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
  if (threadIdx.x == 0) {
    mbarrier_arrive_expect_tx(shared_address(tile_full), sizeof tile);
    cp_async_bulk_load(shared_address(tile), in + first, sizeof tile, shared_address(tile_full));  // reported
  }
  __syncthreads();
  // The mistake: the copy has been issued, and nobody waits for it.
  if constexpr (!kBroken) museum::wait_parity(shared_address(tile_full), 0);
  for (unsigned i = threadIdx.x; i < kWords; i += kThreads) out[first + i] = tile[i];  // reported

  if (threadIdx.x == 0) museum::wait_parity(shared_address(tile_full), 0);
}

int main(int argc, char** argv) {
  constexpr unsigned kCtas = 8;
  museum::Exhibit exhibit(argc, argv);
  const std::vector<uint32_t> in = museum::numbers(kCtas * kWords);
  exhibit.launches(exhibit.broken ? copy_tile<true> : copy_tile<false>, {.ctas = kCtas, .threads = kThreads},
                   exhibit.memory(in), exhibit.output<uint32_t>(in.size()));
  return exhibit.compare(in);
}
