// The accumulators of wgmma are read before the group that computes them has been waited for.
//
// Symptom: None with today's compiler: ptxas sees the read, puts the missing wait in, and says so (C7514 or its kin:
//   the wgmma are serialised). By the rules of PTX the registers hold anything.
// Why: wgmma.mma_async runs on after it has been issued. Its registers are its own until wgmma.wait_group.
// Fix: wgmma.wait_group 0 before the accumulators are read.
// Rule: PTX ISA, wgmma.wait_group: accessing the registers before it is undefined
// Theme: tensor core results and tensor memory
// Expect: wgmma-wait of registers of D
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
//   role      threads   waits for                  signals
//   writers   all       -                          CTA barrier: the operands are written
//   mma       all       CTA barrier; its wgmma     -
template <bool kBroken>
__global__ void __launch_bounds__(kThreads) multiply(const uint32_t* a, const uint32_t* b, float* out) {
  __shared__ alignas(128) uint32_t a_tile[kATile.bytes() / 4];
  __shared__ alignas(128) uint32_t b_tile[kBTile.bytes() / 4];
  for (unsigned i = threadIdx.x; i < kATile.bytes() / 4; i += kThreads) a_tile[i] = a[i];
  for (unsigned i = threadIdx.x; i < kBTile.bytes() / 4; i += kThreads) b_tile[i] = b[i];
  fence_proxy_async_shared_cta();
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
  // The mistake: the group has been closed, and nobody waits for it.
  if constexpr (!kBroken) museum::wgmma_wait_all();
  for (unsigned i = 0; i < 4; ++i) out[museum::wgmma_row(i) * kN + museum::wgmma_column(i)] = d[i];  // reported
}

int main(int argc, char** argv) {
  museum::Exhibit exhibit(argc, argv);
  const museum::Operand a(kATile, 1), b(kBTile, 2);
  exhibit.launches(exhibit.broken ? multiply<true> : multiply<false>, {.threads = kThreads}, exhibit.memory(a.image()),
                   exhibit.memory(b.image()), exhibit.output<float>(kM * kN));
  return exhibit.compare(museum::product(a, b));
}
