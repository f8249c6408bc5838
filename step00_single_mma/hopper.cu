// step00_single_mma on Hopper: one TMA load, one MMA by each of two warpgroups, one store.
// D (m x n) = A (m x 16) B (n x 16)^T, fp32 accumulation.
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

constexpr int kTileM = 128;    // rows of D a CTA computes
constexpr int kTileN = 256;    // columns of D a CTA computes
constexpr int kTileK = 16;     // what one MMA of 16-bit inputs takes: all of K
constexpr int kColumnK = 8;    // K elements in 16 bytes: without swizzle a tile is stored in columns this wide
constexpr int kGroupM = 64;    // rows that a warpgroup multiplies: a thread holds 64 x 256 / 128 accumulators
constexpr int kThreads = 256;  // two warpgroups; 128 rows would be twice the registers that a thread may have

constexpr OperandTile kATile{Major::k, Swizzle::kNone, AtomOrder::kRowsFirst, 2, kTileM, kTileK};
constexpr OperandTile kBTile{Major::k, Swizzle::kNone, AtomOrder::kRowsFirst, 2, kTileN, kTileK};
static_assert(kATile.leading_bytes() == kTileM * 16 && kATile.stride_bytes() == 8 * 16);
static_assert(kBTile.leading_bytes() == kTileN * 16 && kBTile.stride_bytes() == 8 * 16);
static_assert(kATile.bytes() + kBTile.bytes() == 12 * 1024);
static_assert(kColumnK * 2 == kATile.span_bytes() && kTileN <= 256);  // a box: 16-byte rows, at most 256 of them
static_assert(kThreads == kTileM / kGroupM * 128);

// One tile of D per CTA. Who does what:
//   role      threads           waits for               signals
//   setup     warp 1, one lane  -                       CTA barrier: mbarriers are ready
//   load      warp 0, one lane  -                       tile_full: the bytes of both boxes
//   mma       all               tile_full               -
//   epilogue  all               its warpgroup's wgmma   -
template <DType kIn, DType kOut>
__global__ void __launch_bounds__(kThreads)
    step00_single_mma_hopper(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map,
                             void* d, int64_t m, int64_t n) {
  __shared__ alignas(128) uint8_t a_tile[kATile.bytes()];
  __shared__ alignas(128) uint8_t b_tile[kBTile.bytes()];
  __shared__ uint64_t tile_full;

  const uint32_t warp = warp_index();
  // Tiles are numbered down the columns of D, in x alone: a grid has at most 65,535 blocks in y.
  const int m_tiles = static_cast<int>((m + kTileM - 1) / kTileM);
  const int tile_m = static_cast<int>(blockIdx.x) % m_tiles;
  const int tile_n = static_cast<int>(blockIdx.x) / m_tiles;

  if (warp == 1 && elect_sync()) {
    prefetch_tensormap(&a_map);
    prefetch_tensormap(&b_map);
    mbarrier_init(shared_address(tile_full), 1);
    fence_mbarrier_init();
  }
  __syncthreads();

  if (warp == 0 && elect_sync()) {
    mbarrier_arrive_expect_tx(shared_address(tile_full), kATile.bytes() + kBTile.bytes());
    cp_async_bulk_tensor_3d(shared_address(a_tile), &a_map, shared_address(tile_full), 0, tile_m * kTileM, 0);
    cp_async_bulk_tensor_3d(shared_address(b_tile), &b_map, shared_address(tile_full), 0, tile_n * kTileN, 0);
  }
  __syncwarp();  // wgmma is for all lanes together

  // A warpgroup multiplies its own 64 rows of A by all of B. Its warps hold 16 rows of the product each.
  const uint32_t group = warp / 4;
  const uint64_t a_descriptor = wgmma_smem_descriptor(shared_address(a_tile) + kATile.plain_offset(kGroupM, 0) * group,
                                                      kATile.leading_bytes(), kATile.stride_bytes(), Swizzle::kNone);
  const uint64_t b_descriptor =
      wgmma_smem_descriptor(shared_address(b_tile), kBTile.leading_bytes(), kBTile.stride_bytes(), Swizzle::kNone);
  float accumulators[kTileN / 2];
  mbarrier_wait_parity(shared_address(tile_full), 0);
  wgmma_fence();
  const bool accumulate = false;  // the MMA overwrites what the registers held before
  wgmma_mma_async<kIn>(accumulators, a_descriptor, b_descriptor, accumulate);
  wgmma_commit_group();
  wgmma_wait_group<0>();

  store_fragment<kOut>(d, m, n, int64_t{tile_m} * kTileM + warp * 16, int64_t{tile_n} * kTileN, accumulators);
}

// The map of a row-major rows x k matrix as a stack of 16-byte columns, {8, rows, k / 8}: one box holds a whole K tile,
// its columns one after the other. What lies outside the matrix is filled with zeros.
static CUtensorMap operand_map(DType type, const void* base, int64_t rows, int64_t k, uint32_t tile_rows) {
  const uint64_t dims[] = {kColumnK, static_cast<uint64_t>(rows), static_cast<uint64_t>(k / kColumnK)};
  const uint64_t strides_bytes[] = {static_cast<uint64_t>(k) * 2, kColumnK * 2};
  const uint32_t box[] = {kColumnK, tile_rows, kTileK / kColumnK};
  return make_tensor_map(type, base, dims, strides_bytes, box, CU_TENSOR_MAP_SWIZZLE_NONE);
}

template <DType kIn, DType kOut>
static void launch_typed(const Gemm& gemm) {
  const CUtensorMap a_map = operand_map(kIn, gemm.a, gemm.m, gemm.k, kTileM);
  const CUtensorMap b_map = operand_map(kIn, gemm.b, gemm.n, gemm.k, kTileN);
  const int64_t m_tiles = (gemm.m + kTileM - 1) / kTileM, n_tiles = (gemm.n + kTileN - 1) / kTileN;
  const dim3 grid(static_cast<unsigned>(m_tiles * n_tiles));
  launch(step00_single_mma_hopper<kIn, kOut>, {.grid = grid, .block = kThreads, .stream = gemm.stream}, a_map, b_map,
         gemm.d, gemm.m, gemm.n);
}

void launch_step00_single_mma_hopper(const Gemm& gemm) {
  const bool f16 = gemm.in == DType::f16;
  if (gemm.out == DType::f32) {
    f16 ? launch_typed<DType::f16, DType::f32>(gemm) : launch_typed<DType::bf16, DType::f32>(gemm);
  } else {
    f16 ? launch_typed<DType::f16, DType::f16>(gemm) : launch_typed<DType::bf16, DType::bf16>(gemm);
  }
}
