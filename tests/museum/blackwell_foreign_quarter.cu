// The warps of the epilogue are numbered from the first of them, not from the first of the CTA.
//
// Symptom: Rows of another quarter of the tile, or an error at tcgen05.ld.
// Why: A warp reaches 32 of the 128 lanes of tensor memory: those from 32 (w % 4) on, where w is its index in the CTA.
//   Behind a producer in warp 0 the epilogue begins with warp 1, whose lanes are 32 to 63.
// Fix: The quarter, and with it the rows, are taken from the warp's index in the CTA.
// Rule: PTX ISA, tcgen05.ld: access restrictions of the warps of a warpgroup
// Theme: tensor core results and tensor memory
// Expect: tensor-memory-quarter of tcgen05.ld
#include "common/ptx/bulk.cuh"
#include "common/ptx/fence.cuh"
#include "tests/museum/blackwell.cuh"
#include "tests/museum/exhibit.cuh"
#include "tests/museum/exhibit.h"
#include "tests/museum/operands.h"

using namespace ladder;
using namespace museum;

constexpr unsigned kThreads = 160;

// One tile of D. Who does what:
//   role        threads           waits for          signals
//   load, MMA   warp 0, one lane  tile_full          tile_full: the bytes; accumulator_full: the MMAs are complete
//   epilogue    warps 1-4         accumulator_full   CTA barrier: tensor memory may be freed
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
  if (warp != 0) {
    wait_parity(shared_address(accumulator_full), 0);
    tcgen05_fence_after_thread_sync();
    __syncwarp();
    // The mistake: warp 1 is the first of the epilogue, and takes the first rows.
    const uint32_t quarter = kBroken ? warp - 1 : warp % 4;
    float values[kTileN];
    tcgen05_ld_32x32b_x32(values, accumulator + (quarter * 32 << 16));  // reported
    tcgen05_wait_ld();
    for (unsigned column = 0; column < kTileN; ++column) {
      out[(quarter * 32 + threadIdx.x % 32) * kTileN + column] = values[column];
    }
  }

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
