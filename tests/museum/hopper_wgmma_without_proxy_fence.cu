// Operands that threads have written into shared memory are read by wgmma without a fence between the proxies.
//
// Symptom: Usually none. Now and then a product of operands that were there before, in a few rows or columns.
// Why: Ordinary stores reach shared memory through the generic proxy, wgmma reads it through the async proxy. The
//   barrier orders the threads, not the proxies, and wgmma.fence is about registers.
// Fix: Every thread that has written executes fence.proxy.async.shared::cta before the barrier.
// Rule: PTX ISA, async proxy; wgmma.mma_async, wgmma.fence
// Theme: proxies
// Expect: proxy-fence of a_tile
#include "common/ptx/fence.cuh"
#include "common/ptx/shared.cuh"
#include "tests/museum/exhibit.h"
#include "tests/museum/operands.h"
#include "tests/museum/wgmma.cuh"

using namespace ladder;

constexpr unsigned kThreads = 128, kM = 64, kN = 8, kK = 64;
constexpr OperandTile kATile{Major::k, Swizzle::kNone, AtomOrder::kRowsFirst, 2, kM, kK};
constexpr OperandTile kBTile{Major::k, Swizzle::kNone, AtomOrder::kRowsFirst, 2, kN, kK};

// One warpgroup multiplies two tiles. Who does what:
//   role      threads   waits for     signals
//   writers   all       -             CTA barrier: the operands are written
//   mma       all       CTA barrier   -
template <bool kBroken>
__global__ void __launch_bounds__(kThreads) multiply(const uint32_t* a, const uint32_t* b, float* out) {
  __shared__ alignas(128) uint32_t a_tile[kATile.bytes() / 4];
  __shared__ alignas(128) uint32_t b_tile[kBTile.bytes() / 4];
  for (unsigned i = threadIdx.x; i < kATile.bytes() / 4; i += kThreads) a_tile[i] = a[i];  // reported
  for (unsigned i = threadIdx.x; i < kBTile.bytes() / 4; i += kThreads) b_tile[i] = b[i];
  // The mistake: what the threads wrote is not handed over to the async proxy.
  if constexpr (!kBroken) fence_proxy_async_shared_cta();
  __syncthreads();

  const uint64_t a_descriptor =
      wgmma_smem_descriptor(shared_address(a_tile), kATile.leading_bytes(), kATile.stride_bytes(), Swizzle::kNone);
  const uint64_t b_descriptor =
      wgmma_smem_descriptor(shared_address(b_tile), kBTile.leading_bytes(), kBTile.stride_bytes(), Swizzle::kNone);
  float d[4] = {};
  museum::wgmma_fence();
  for (unsigned step = 0; step < kK / 16; ++step) {  // 16 elements of K are two columns of 16 bytes
    // reported:
    museum::wgmma_m64n8k16(d, a_descriptor + step * (2 * kATile.k_step_bytes() >> 4),
                           b_descriptor + step * (2 * kBTile.k_step_bytes() >> 4), step > 0);
  }
  museum::wgmma_commit_group();
  museum::wgmma_wait_all();
  for (unsigned i = 0; i < 4; ++i) out[museum::wgmma_row(i) * kN + museum::wgmma_column(i)] = d[i];
}

int main(int argc, char** argv) {
  museum::Exhibit exhibit(argc, argv);
  const museum::Operand a(kATile, 1), b(kBTile, 2);
  exhibit.launches(exhibit.broken ? multiply<true> : multiply<false>, {.threads = kThreads}, exhibit.memory(a.image()),
                   exhibit.memory(b.image()), exhibit.output<float>(kM * kN));
  return exhibit.compare(museum::product(a, b));
}
