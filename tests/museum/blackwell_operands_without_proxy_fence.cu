// Operands that threads have written into shared memory are read by an MMA without a fence between the proxies.
//
// Symptom: A wrong product: rows or columns of operands that were there before. (A public report, sglang 39124, has 86
//   to 100 % of runs wrong on a B300.)
// Why: Ordinary stores reach shared memory through the generic proxy, tcgen05.mma reads it through the async proxy.
//   The CTA barrier orders the threads, not the proxies, and the tcgen05 fences are about tensor memory and issue
//   order.
// Fix: Every thread that has written executes fence.proxy.async.shared::cta before the barrier.
// Rule: PTX ISA, async proxy; membar/fence, fence.proxy.async
// Theme: proxies
// Expect: proxy-fence of a_tile
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
//   writers     all               -                  CTA barrier: the operands are written
//   MMA         warp 0, one lane  CTA barrier        accumulator_full: the MMAs are complete
//   epilogue    all               accumulator_full   CTA barrier: tensor memory may be freed
template <bool kBroken>
__global__ void __launch_bounds__(kThreads) multiply(const uint32_t* a, const uint32_t* b, float* out) {
  __shared__ alignas(128) uint32_t a_tile[kABytes / 4];
  __shared__ alignas(128) uint32_t b_tile[kBBytes / 4];
  __shared__ uint64_t accumulator_full;
  __shared__ uint32_t tmem_address;
  const uint32_t warp = warp_index();
  for (unsigned i = threadIdx.x; i < kABytes / 4; i += kThreads) a_tile[i] = a[i];  // reported
  for (unsigned i = threadIdx.x; i < kBBytes / 4; i += kThreads) b_tile[i] = b[i];
  // The mistake: what the threads wrote is not handed over to the async proxy.
  if constexpr (!kBroken) fence_proxy_async_shared_cta();
  if (warp == 0) {
    tcgen05_alloc<1>(shared_address(tmem_address), kTmemColumns);
    tcgen05_relinquish_alloc_permit<1>();
  }
  if (warp == 1 && elect_sync()) {
    mbarrier_init(shared_address(accumulator_full), 1);
    fence_mbarrier_init();
  }
  tcgen05_fence_before_thread_sync();
  __syncthreads();
  tcgen05_fence_after_thread_sync();
  const uint32_t accumulator = tmem_address;

  if (warp == 0 && elect_sync()) {
    issue_mmas(accumulator, a_descriptor(a_tile), b_descriptor(b_tile), false);  // reported
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
