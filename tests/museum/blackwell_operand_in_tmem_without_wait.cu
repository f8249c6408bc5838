// An operand that threads store into tensor memory is handed to the MMA before the stores are complete.
//
// Symptom: A wrong product: rows of A that were in tensor memory before.
// Why: tcgen05.st is asynchronous. The barrier says that it has been issued; that its bytes are there is what
//   tcgen05.wait::st waits for.
// Fix: tcgen05.wait::st, tcgen05.fence::before_thread_sync, the barrier, and tcgen05.fence::after_thread_sync before
//   the MMA.
// Rule: PTX ISA, tcgen05.wait; tcgen05 memory consistency model
// Theme: tensor core results and tensor memory
// Expect: read-too-early of columns 32 to 39
#include "common/ptx/bulk.cuh"
#include "common/ptx/fence.cuh"
#include "tests/museum/blackwell.cuh"
#include "tests/museum/exhibit.cuh"
#include "tests/museum/exhibit.h"
#include "tests/museum/operands.h"

using namespace ladder;
using namespace museum;

constexpr unsigned kThreads = 128;

constexpr unsigned kAColumns = kTileK / 2;  // of tensor memory: two elements of a row in each

// One tile of D; A comes through registers into tensor memory. Who does what:
//   role        threads           waits for                signals
//   load        warp 0, one lane  -                        tile_full: the bytes of B
//   writers     all               -                        CTA barrier: A is in tensor memory
//   MMA         warp 0, one lane  CTA barrier, tile_full   accumulator_full: the MMAs are complete
//   epilogue    all               accumulator_full         CTA barrier: tensor memory may be freed
template <bool kBroken>
__global__ void __launch_bounds__(kThreads) multiply(const uint32_t* a, const uint32_t* b, float* out) {
  __shared__ alignas(128) uint32_t b_tile[kBBytes / 4];
  __shared__ uint64_t tile_full;
  __shared__ uint64_t accumulator_full;
  __shared__ uint32_t tmem_address;
  const uint32_t warp = warp_index();
  if (warp == 0) {
    tcgen05_alloc<1>(shared_address(tmem_address), kTmemColumns + kAColumns);
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
  const uint32_t accumulator = tmem_address, a_columns = accumulator + kTmemColumns;

  float row[kAColumns];
  for (unsigned i = 0; i < kAColumns; ++i) row[i] = __uint_as_float(a[threadIdx.x * kAColumns + i]);
  tcgen05_st_32x32b_x32(a_columns + (warp * 32 << 16), row);  // reported
  // The mistake: the stores have been issued, and nobody waits for them.
  if constexpr (!kBroken) tcgen05_wait_st();
  tcgen05_fence_before_thread_sync();
  __syncthreads();
  if (warp == 0 && elect_sync()) {
    mbarrier_arrive_expect_tx(shared_address(tile_full), kBBytes);
    cp_async_bulk_load(shared_address(b_tile), b, kBBytes, shared_address(tile_full));
    wait_parity(shared_address(tile_full), 0);
    tcgen05_fence_after_thread_sync();
    for (unsigned step = 0; step < kTileK / 16; ++step) {
      // reported:
      tcgen05_mma_f16_tmem_a<1>(accumulator, a_columns + step * 8, b_descriptor(b_tile) + step * (kBStep >> 4),
                                kMma.word(), step > 0);
    }
    tcgen05_commit<1>(shared_address(accumulator_full));
  }
  wait_parity(shared_address(accumulator_full), 0);
  tcgen05_fence_after_thread_sync();
  __syncwarp();
  store_row(out, threadIdx.x, accumulator);

  tcgen05_wait_st();  // tensor memory must not be freed under the stores
  tcgen05_fence_before_thread_sync();
  __syncthreads();
  if (warp == 0) {
    tcgen05_fence_after_thread_sync();
    tcgen05_dealloc<1>(accumulator, kTmemColumns + kAColumns);
  }
}

int main(int argc, char** argv) {
  Exhibit exhibit(argc, argv);
  const Operand a(kATile, 1), b(kBTile, 2);
  exhibit.launches(exhibit.broken ? multiply<true> : multiply<false>, {.threads = kThreads}, exhibit.memory(a.rows()),
                   exhibit.memory(b.image()), exhibit.output<float>(kTileM * kTileN));
  return exhibit.compare(product(a, b));
}
