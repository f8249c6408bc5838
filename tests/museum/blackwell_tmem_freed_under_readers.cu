// One warp frees tensor memory while other warps still read the accumulator.
//
// Symptom: Right while the SM has one CTA; with a second one waiting for columns, its values in the last rows of this
//   tile.
// Why: tcgen05.dealloc orders nothing. That the allocating warp has read its own lanes says nothing about the others.
// Fix: tcgen05.fence::before_thread_sync and a CTA barrier between everybody's reads and the tcgen05.dealloc.
// Rule: PTX ISA, tcgen05.dealloc; tcgen05.fence
// Theme: tensor core results and tensor memory
// Expect: overwrite-too-early of columns 0 to 31
// Also: tensor-memory-unallocated
#include "common/ptx/bulk.cuh"
#include "common/ptx/fence.cuh"
#include "tests/museum/blackwell.cuh"
#include "tests/museum/exhibit.cuh"
#include "tests/museum/exhibit.h"
#include "tests/museum/operands.h"

using namespace ladder;
using namespace museum;

constexpr unsigned kThreads = 128;

// One tile of D. Who does what:
//   role        threads           waits for          signals
//   load, MMA   warp 0, one lane  tile_full          tile_full: the bytes; accumulator_full: the MMAs are complete
//   epilogue    all               accumulator_full   CTA barrier: tensor memory may be freed
template <bool kBroken>
__global__ void __launch_bounds__(kThreads) multiply(const uint32_t* a, const uint32_t* b, float* out) {
  __shared__ alignas(128) uint32_t a_tile[kABytes / 4];
  __shared__ alignas(128) uint32_t b_tile[kBBytes / 4];
  __shared__ uint64_t tile_full;
  __shared__ uint64_t accumulator_full;
  __shared__ uint32_t tmem_address;
  const uint32_t warp = warp_index();
  if (warp == 0) {
    tcgen05_alloc<1>(shared_address(tmem_address), kTmemColumns);
    tcgen05_relinquish_alloc_permit<1>();
  }
  if (warp == 1 && elect_sync()) {
    mbarrier_init(shared_address(tile_full), 1);
    mbarrier_init(shared_address(accumulator_full), 1);
    fence_mbarrier_init();
  }
  tcgen05_fence_before_thread_sync();
  __syncthreads();
  tcgen05_fence_after_thread_sync();
  const uint32_t accumulator = tmem_address;

  if (warp == 0 && elect_sync()) {
    mbarrier_arrive_expect_tx(shared_address(tile_full), kABytes + kBBytes);
    cp_async_bulk_load(shared_address(a_tile), a, kABytes, shared_address(tile_full));
    cp_async_bulk_load(shared_address(b_tile), b, kBBytes, shared_address(tile_full));
    wait_parity(shared_address(tile_full), 0);
    tcgen05_fence_after_thread_sync();
    issue_mmas(accumulator, a_descriptor(a_tile), b_descriptor(b_tile), false);
    tcgen05_commit<1>(shared_address(accumulator_full));
  }
  wait_parity(shared_address(accumulator_full), 0);
  tcgen05_fence_after_thread_sync();
  if (warp != 0) linger(3000);
  __syncwarp();
  store_row(out, threadIdx.x, accumulator);  // reported

  tcgen05_fence_before_thread_sync();
  // The mistake: warps 1 to 3 may still be reading.
  if constexpr (!kBroken) __syncthreads();
  if (warp == 0) {
    tcgen05_fence_after_thread_sync();
    tcgen05_dealloc<1>(accumulator, kTmemColumns);  // reported
  }
}

int main(int argc, char** argv) {
  Exhibit exhibit(argc, argv);
  const Operand a(kATile, 1), b(kBTile, 2);
  exhibit.launches(exhibit.broken ? multiply<true> : multiply<false>, {.threads = kThreads}, exhibit.memory(a.image()),
                   exhibit.memory(b.image()), exhibit.output<float>(kTileM * kTileN));
  return exhibit.compare(product(a, b));
}
