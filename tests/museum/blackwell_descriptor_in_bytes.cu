// The offsets in a shared-memory descriptor are given in bytes.
//
// Symptom: A product of garbage, or an address error, the same in every run.
// Why: Start address, leading and stride offset count 16 bytes each. In bytes they are sixteen times too far apart.
// Fix: Each of the three is shifted right by 4 (common/layout/smem_descriptor.h).
// Rule: PTX ISA, tcgen05 shared memory descriptor
// Theme: contents and layouts
// Expect: descriptor of stride offset 2048 bytes
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
    // The mistake: the two offsets are not shifted.
    constexpr uint32_t kShift = kBroken ? 0 : 4;
    const uint64_t a_words = uint64_t{shared_address(a_tile) >> 4} | uint64_t{kATile.leading_bytes() >> kShift} << 16 |
                             uint64_t{kATile.stride_bytes() >> kShift} << 32 | uint64_t{1} << 46;
    issue_mmas(accumulator, a_words, b_descriptor(b_tile), false);  // reported
    tcgen05_commit<1>(shared_address(accumulator_full));
  }
  wait_parity(shared_address(accumulator_full), 0);
  tcgen05_fence_after_thread_sync();
  __syncwarp();
  store_row(out, threadIdx.x, accumulator);

  tcgen05_fence_before_thread_sync();
  __syncthreads();
  if (warp == 0) {
    tcgen05_fence_after_thread_sync();
    tcgen05_dealloc<1>(accumulator, kTmemColumns);
  }
}

int main(int argc, char** argv) {
  Exhibit exhibit(argc, argv);
  const Operand a(kATile, 1), b(kBTile, 2);
  exhibit.launches(exhibit.broken ? multiply<true> : multiply<false>, {.threads = kThreads}, exhibit.memory(a.image()),
                   exhibit.memory(b.image()), exhibit.output<float>(kTileM * kTileN));
  return exhibit.compare(product(a, b));
}
