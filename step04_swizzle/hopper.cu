// step04_swizzle on Hopper: rows of 128 bytes, four MMAs long, whose 16-byte chunks TMA permutes.
// D (m x n) = A (m x k) B (n x k)^T, fp32 accumulation.
#include "common/harness/launch.h"
#include "common/harness/rung.h"
#include "common/harness/tensor_map.h"
#include "common/layout/operand_tile.h"
#include "common/layout/store_fragment.cuh"
#include "common/ptx/fence.cuh"
#include "common/ptx/mbarrier.cuh"
#include "common/ptx/shared.cuh"
#include "common/ptx/tma.cuh"
#include "common/ptx/warp.cuh"
#include "common/ptx/wgmma.cuh"

using namespace ladder;

constexpr int kTileM = 128;   // rows of D a CTA computes
constexpr int kTileN = 256;   // columns of D a CTA computes
constexpr int kMmaK = 16;     // what one MMA of 16-bit inputs takes
constexpr int kTileK = 64;    // K elements in 128 bytes: a row of the swizzle pattern
constexpr int kStages = 4;    // buffers of the ring
constexpr int kGroupM = 64;   // rows that a warpgroup multiplies: a thread holds 64 x 256 / 128 accumulators
constexpr int kMmaWarps = 8;  // two warpgroups; 128 rows would be twice the registers that a thread may have
constexpr int kThreads = 128 + kMmaWarps * 32;  // and before them the producer's, of which one warp works

constexpr OperandTile kATile{Major::k, Swizzle::k128B, AtomOrder::kRowsFirst, 2, kTileM, kTileK};
constexpr OperandTile kBTile{Major::k, Swizzle::k128B, AtomOrder::kRowsFirst, 2, kTileN, kTileK};
static_assert(kATile.stride_bytes() == 8 * 128 && kBTile.stride_bytes() == 8 * 128);
constexpr int kStageBytes = kATile.bytes() + kBTile.bytes();
static_assert(kStageBytes == 48 * 1024 && kStageBytes % swizzle_period_bytes(Swizzle::k128B) == 0);
static_assert(kTileK * 2 == kATile.span_bytes() && kTileN <= 256);  // a box: 128-byte rows, at most 256 of them
static_assert(kMmaWarps * 32 == kTileM / kGroupM * 128);

// One tile of D per CTA. Who does what:
//   role      threads           waits for                                 signals
//   setup     warp 1, one lane  -                                         CTA barrier: mbarriers are ready
//   producer  warp 0, one lane  tile_empty[stage]                         tile_full[stage]: the bytes of both boxes
//   mma       warps 4 to 11     tile_full[stage], its warpgroup's wgmmas  -
//             one lane of each                                            tile_empty[stage]: its wgmmas have read them
//   epilogue  warps 4 to 11     -                                         -
template <DType kIn, DType kOut>
__global__ void __launch_bounds__(kThreads, 1)
    step04_swizzle_hopper(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map, void* d,
                          int64_t m, int64_t n, int k_tiles) {
  alignas(1024) extern __shared__ uint8_t ring[];  // kStages times a tile of A and, behind it, one of B
  __shared__ uint64_t tile_full[kStages];
  __shared__ uint64_t tile_empty[kStages];

  const uint32_t warp = warp_index();
  // Tiles are numbered down the columns of D, in x alone: a grid has at most 65,535 blocks in y.
  const int m_tiles = static_cast<int>((m + kTileM - 1) / kTileM);
  const int tile_m = static_cast<int>(blockIdx.x) % m_tiles;
  const int tile_n = static_cast<int>(blockIdx.x) / m_tiles;

  if (warp == 1 && elect_sync()) {
    prefetch_tensormap(&a_map);
    prefetch_tensormap(&b_map);
    for (int stage = 0; stage < kStages; ++stage) {
      mbarrier_init(shared_address(tile_full[stage]), 1);
      mbarrier_init(shared_address(tile_empty[stage]), kMmaWarps);
    }
    fence_mbarrier_init();
  }
  __syncthreads();

  const uint32_t a_tiles = shared_address(ring[0]), b_tiles = a_tiles + kATile.bytes();  // of stage 0
  int stage = 0;
  uint32_t parity = 0;
  if (warp < 4) {
    if (warp == 0 && elect_sync()) {
      for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
        mbarrier_wait_parity(shared_address(tile_empty[stage]), parity ^ 1);  // passes at once in the first round
        const uint32_t full = shared_address(tile_full[stage]);
        mbarrier_arrive_expect_tx(full, kStageBytes);
        cp_async_bulk_tensor_2d(a_tiles + stage * kStageBytes, &a_map, full, k_tile * kTileK, tile_m * kTileM);
        cp_async_bulk_tensor_2d(b_tiles + stage * kStageBytes, &b_map, full, k_tile * kTileK, tile_n * kTileN);
        if (++stage == kStages) stage = 0, parity ^= 1;  // the ring wraps
      }
    }
  } else {
    // A warpgroup multiplies its own 64 rows of A by all of B. Its warps hold 16 rows of the product each.
    const uint32_t mma_warp = warp - 4, group = mma_warp / 4;
    const uint64_t a_descriptor = wgmma_smem_descriptor(a_tiles + kATile.plain_offset(kGroupM, 0) * group,
                                                        kATile.leading_bytes(), kATile.stride_bytes(), Swizzle::k128B);
    const uint64_t b_descriptor =
        wgmma_smem_descriptor(b_tiles, kBTile.leading_bytes(), kBTile.stride_bytes(), Swizzle::k128B);
    float accumulators[kTileN / 2];
    for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
      mbarrier_wait_parity(shared_address(tile_full[stage]), parity);
      wgmma_fence();
#pragma unroll
      for (int k = 0; k < kTileK; k += kMmaK) {
        const bool accumulate = k_tile > 0 || k > 0;  // the first MMA overwrites what the registers held before
        const uint64_t step = (stage * kStageBytes + k * 2) >> 4;  // in a descriptor, addresses count 16 bytes
        wgmma_mma_async<kIn>(accumulators, a_descriptor + step, b_descriptor + step, accumulate);
      }
      wgmma_commit_group();
      wgmma_wait_group<0>();
      if (elect_sync()) mbarrier_arrive(shared_address(tile_empty[stage]));
      if (++stage == kStages) stage = 0, parity ^= 1;  // the ring wraps
    }

    const int64_t first_row = int64_t{tile_m} * kTileM + mma_warp * 16;
    store_fragment<kOut>(d, m, n, first_row, int64_t{tile_n} * kTileN, accumulators);
  }
}

// The map of a row-major rows x k matrix: one box holds a whole K tile, its rows one after the other. What lies outside
// the matrix, the end of the last K tile too, is filled with zeros.
static CUtensorMap operand_map(DType type, const void* base, int64_t rows, int64_t k, uint32_t tile_rows) {
  const uint64_t dims[] = {static_cast<uint64_t>(k), static_cast<uint64_t>(rows)};
  const uint64_t strides_bytes[] = {static_cast<uint64_t>(k) * 2};
  const uint32_t box[] = {kTileK, tile_rows};
  return make_tensor_map(type, base, dims, strides_bytes, box, CU_TENSOR_MAP_SWIZZLE_128B);
}

template <DType kIn, DType kOut>
static void launch_typed(const Gemm& gemm) {
  const CUtensorMap a_map = operand_map(kIn, gemm.a, gemm.m, gemm.k, kTileM);
  const CUtensorMap b_map = operand_map(kIn, gemm.b, gemm.n, gemm.k, kTileN);
  const int64_t m_tiles = (gemm.m + kTileM - 1) / kTileM, n_tiles = (gemm.n + kTileN - 1) / kTileN;
  const dim3 grid(static_cast<unsigned>(m_tiles * n_tiles));
  const int64_t k_tiles = (gemm.k + kTileK - 1) / kTileK;
  launch(step04_swizzle_hopper<kIn, kOut>,
         {.grid = grid, .block = kThreads, .dynamic_shared_bytes = kStages * kStageBytes, .stream = gemm.stream}, a_map,
         b_map, gemm.d, gemm.m, gemm.n, k_tiles);
}

void launch_step04_swizzle_hopper(const Gemm& gemm) {
  const bool f16 = gemm.in == DType::f16;
  if (gemm.out == DType::f32) {
    f16 ? launch_typed<DType::f16, DType::f32>(gemm) : launch_typed<DType::bf16, DType::f32>(gemm);
  } else {
    f16 ? launch_typed<DType::f16, DType::f16>(gemm) : launch_typed<DType::bf16, DType::bf16>(gemm);
  }
}
