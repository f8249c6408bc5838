// A barrier is initialised, and no fence stands between that and the copies that signal it.
//
// Symptom: None known, and by the newer text nothing is wrong here: this is a note.
// Why: mbarrier.init is an ordinary write of one thread, and __syncthreads() orders it before the copy is issued. Until
//   PTX ISA 9.2 the text left open whether an asynchronous copy sees it then, or fence.mbarrier_init must show it to
//   the copy; from 9.3 on it says that copies reach their mbarrier through the generic proxy, where the order is enough.
// Fix: fence.mbarrier_init in the thread that initialises, as published kernels have it: older texts can be read to ask
//   for it, and across a cluster it lets the cluster barrier behind it be a relaxed one.
// Rule: PTX ISA, cp.async.bulk, mbar; membar/fence, fence.mbarrier_init
// Theme: the life of a barrier
// Expect: barrier-init-fence of tile_full
#include "common/ptx/bulk.cuh"
#include "common/ptx/fence.cuh"
#include "common/ptx/shared.cuh"
#include "tests/museum/exhibit.cuh"
#include "tests/museum/exhibit.h"

using namespace ladder;

constexpr unsigned kThreads = 128, kWords = 1024;

// Each CTA copies a tile. Who does what:
//   role      threads    waits for     signals
//   init      thread 32  -             CTA barrier: tile_full is initialised
//   load      thread 0   CTA barrier   tile_full: the bytes of the tile
//   readers   all        tile_full     -
template <bool kBroken>
__global__ void __launch_bounds__(kThreads) copy_tile(const uint32_t* in, uint32_t* out) {
  __shared__ alignas(128) uint32_t tile[kWords];
  __shared__ uint64_t tile_full;
  const unsigned first = blockIdx.x * kWords;
  if (threadIdx.x == 32) {
    mbarrier_init(shared_address(tile_full), 1);  // reported
    // The mistake: no fence shows the init to the copies that will signal the barrier.
    if constexpr (!kBroken) fence_mbarrier_init();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    mbarrier_arrive_expect_tx(shared_address(tile_full), sizeof tile);
    cp_async_bulk_load(shared_address(tile), in + first, sizeof tile, shared_address(tile_full));  // reported
  }
  museum::wait_parity(shared_address(tile_full), 0);
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
