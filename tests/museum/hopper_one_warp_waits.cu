// One warp of the warpgroup waits for the operands, and all four issue the wgmma.
//
// Symptom: None on an H200, which seems to start a wgmma when all four warps have come to it. No text says that a chip
//   must.
// Why: A wait orders what the threads that waited do next. wgmma is .sync.aligned for the lanes of a warp; it does not
//   bring the four warps together, and each of them has the operands read for its own sixteen rows.
// Fix: Every warp of the warpgroup waits for tile_full.
// Rule: PTX ISA, wgmma.mma_async; mbarrier.try_wait
// Theme: warps and lanes
// Expect: warp-sync of a_tile, b_tile
#include "common/ptx/bulk.cuh"
#include "common/ptx/fence.cuh"
#include "common/ptx/shared.cuh"
#include "tests/museum/exhibit.cuh"
#include "tests/museum/exhibit.h"
#include "tests/museum/operands.h"
#include "tests/museum/wgmma.cuh"

using namespace ladder;

constexpr unsigned kThreads = 128, kM = 64, kN = 8, kK = 64;
constexpr OperandTile kATile{Major::k, Swizzle::kNone, AtomOrder::kRowsFirst, 2, kM, kK};
constexpr OperandTile kBTile{Major::k, Swizzle::kNone, AtomOrder::kRowsFirst, 2, kN, kK};

// One warpgroup multiplies two tiles. Who does what:
//   role      threads   waits for               signals
//   load      thread 0  -                       tile_full: the bytes of both tiles
//   mma       all       tile_full; its wgmma    -
template <bool kBroken>
__global__ void __launch_bounds__(kThreads) multiply(const uint32_t* a, const uint32_t* b, float* out) {
  __shared__ alignas(128) uint32_t a_tile[kATile.bytes() / 4];
  __shared__ alignas(128) uint32_t b_tile[kBTile.bytes() / 4];
  __shared__ uint64_t tile_full;
  if (threadIdx.x == 0) {
    mbarrier_init(shared_address(tile_full), 1);
    fence_mbarrier_init();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    mbarrier_arrive_expect_tx(shared_address(tile_full), sizeof a_tile + sizeof b_tile);
    cp_async_bulk_load(shared_address(a_tile), a, sizeof a_tile, shared_address(tile_full));  // reported
    cp_async_bulk_load(shared_address(b_tile), b, sizeof b_tile, shared_address(tile_full));
  }
  // The mistake: warp 0 waits for all.
  if (!kBroken || threadIdx.x < 32) museum::wait_parity(shared_address(tile_full), 0);
  __syncwarp();

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
