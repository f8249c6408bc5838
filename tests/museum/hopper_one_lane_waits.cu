// One lane waits for the tile, and the other lanes of its warp read it.
//
// Symptom: Garbage from the lanes that did not wait, wherever hardware takes up their branch first; right where it
//   does not, or where the compiler has brought the lanes together: after a change far away it may be the other way
//   round.
// Why: A wait orders the accesses of the thread that waits. The other lanes have neither waited nor met the one that
//   has.
// Fix: __syncwarp() between the wait and the reads: the lanes meet, and what the waiting lane knows is known to all.
// Rule: PTX ISA, bar.warp.sync; mbarrier.try_wait, .acquire
// Theme: warps and lanes
// Expect: read-too-early of tile
#include "common/ptx/bulk.cuh"
#include "common/ptx/fence.cuh"
#include "common/ptx/shared.cuh"
#include "tests/museum/exhibit.cuh"
#include "tests/museum/exhibit.h"

using namespace ladder;

constexpr int kThreads = 32, kReaders = 31, kWords = 1024;

// One warp per CTA copies a tile. Who does what:
//   role      threads      waits for    signals
//   load      lane 0       tile_full    tile_full: the bytes of the tile; its warp: they are there
//   readers   lanes 1-31   the warp     -
template <bool kBroken>
__global__ void __launch_bounds__(kThreads) copy_tile(const uint32_t* in, uint32_t* out) {
  __shared__ alignas(128) uint32_t tile[kWords];
  __shared__ uint64_t tile_full;
  const unsigned first = blockIdx.x * kWords;
  if (threadIdx.x == 0) {
    mbarrier_init(shared_address(tile_full), 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(shared_address(tile_full), sizeof tile);
    cp_async_bulk_load(shared_address(tile), in + first, sizeof tile, shared_address(tile_full));  // reported
    museum::wait_parity(shared_address(tile_full), 0);
  }
  // The mistake: lane 0 has waited, and nothing brings the other lanes to where it is.
  if constexpr (!kBroken) __syncwarp();
  if (threadIdx.x != 0) {
    for (unsigned i = threadIdx.x - 1; i < kWords; i += kReaders) out[first + i] = tile[i];  // reported
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
