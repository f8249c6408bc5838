// step02_pipeline on Hopper: a loop over K through a ring of buffers, so that loads run ahead.
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

constexpr int kTileM = 128;    // rows of D a CTA computes
constexpr int kTileN = 256;    // columns of D a CTA computes
constexpr int kTileK = 16;     // what one MMA of 16-bit inputs takes
constexpr int kColumnK = 8;    // K elements in 16 bytes: without swizzle a tile is stored in columns this wide
constexpr int kMaxStages = 8;  // buffers of the ring
constexpr int kGroupM = 64;    // rows that a warpgroup multiplies: a thread holds 64 x 256 / 128 accumulators
constexpr int kThreads = 256;  // two warpgroups; 128 rows would be twice the registers that a thread may have
constexpr int kMmaWarps = kThreads / 32;

constexpr OperandTile kATile{Major::k, Swizzle::kNone, AtomOrder::kRowsFirst, 2, kTileM, kTileK};
constexpr OperandTile kBTile{Major::k, Swizzle::kNone, AtomOrder::kRowsFirst, 2, kTileN, kTileK};
static_assert(kATile.leading_bytes() == kTileM * 16 && kATile.stride_bytes() == 8 * 16);
static_assert(kBTile.leading_bytes() == kTileN * 16 && kBTile.stride_bytes() == 8 * 16);
constexpr int kStageBytes = kATile.bytes() + kBTile.bytes();
static_assert(kStageBytes == 12 * 1024);
static_assert(kColumnK * 2 == kATile.span_bytes() && kTileN <= 256);  // a box: 16-byte rows, at most 256 of them
static_assert(kThreads == kTileM / kGroupM * 128);

// One tile of D per CTA. Who does what:
//   role      threads           waits for                                signals
//   setup     warp 1, one lane  -                                        CTA barrier: mbarriers are ready
//   load      warp 0, one lane  tile_empty[stage]                        tile_full[stage]: the bytes of both boxes
//   mma       all               tile_full[stage], its warpgroup's wgmma  -
//             one lane of each warp                                      tile_empty[stage]: its wgmma has read them
//   epilogue  all               -                                        -
template <DType kIn, DType kOut>
__global__ void __launch_bounds__(kThreads)
    step02_pipeline_hopper(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map,
                           void* d, int64_t m, int64_t n, int k_tiles, int stages) {
  alignas(128) extern __shared__ uint8_t ring[];  // `stages` times a tile of A and, behind it, one of B
  __shared__ uint64_t tile_full[kMaxStages];
  __shared__ uint64_t tile_empty[kMaxStages];

  const uint32_t warp = warp_index();
  // Tiles are numbered down the columns of D, in x alone: a grid has at most 65,535 blocks in y.
  const int m_tiles = static_cast<int>((m + kTileM - 1) / kTileM);
  const int tile_m = static_cast<int>(blockIdx.x) % m_tiles;
  const int tile_n = static_cast<int>(blockIdx.x) / m_tiles;

  if (warp == 1 && elect_sync()) {
    prefetch_tensormap(&a_map);
    prefetch_tensormap(&b_map);
    for (int stage = 0; stage < stages; ++stage) {
      mbarrier_init(shared_address(tile_full[stage]), 1);
      mbarrier_init(shared_address(tile_empty[stage]), kMmaWarps);
    }
    fence_mbarrier_init();
  }
  __syncthreads();

  const uint32_t a_tiles = shared_address(ring[0]), b_tiles = a_tiles + kATile.bytes();  // of stage 0
  const auto load = [&](int k_tile, int stage) {
    const int k_column = k_tile * (kTileK / kColumnK);
    const uint32_t full = shared_address(tile_full[stage]);
    mbarrier_arrive_expect_tx(full, kStageBytes);
    cp_async_bulk_tensor_3d(a_tiles + stage * kStageBytes, &a_map, full, 0, tile_m * kTileM, k_column);
    cp_async_bulk_tensor_3d(b_tiles + stage * kStageBytes, &b_map, full, 0, tile_n * kTileN, k_column);
  };
  if (warp == 0 && elect_sync()) {
    for (int k_tile = 0; k_tile < stages && k_tile < k_tiles; ++k_tile) load(k_tile, k_tile);
  }
  __syncwarp();  // wgmma is for all lanes together

  // A warpgroup multiplies its own 64 rows of A by all of B. Its warps hold 16 rows of the product each.
  const uint32_t group = warp / 4;
  const uint64_t a_descriptor = wgmma_smem_descriptor(a_tiles + kATile.plain_offset(kGroupM, 0) * group,
                                                      kATile.leading_bytes(), kATile.stride_bytes(), Swizzle::kNone);
  const uint64_t b_descriptor =
      wgmma_smem_descriptor(b_tiles, kBTile.leading_bytes(), kBTile.stride_bytes(), Swizzle::kNone);
  float accumulators[kTileN / 2];
  int stage = 0;
  uint32_t parity = 0;
  for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
    mbarrier_wait_parity(shared_address(tile_full[stage]), parity);
    wgmma_fence();
    const bool accumulate = k_tile > 0;              // the first MMA overwrites what the registers held before
    const uint64_t step = stage * kStageBytes >> 4;  // in a descriptor, addresses count 16 bytes
    wgmma_mma_async<kIn>(accumulators, a_descriptor + step, b_descriptor + step, accumulate);
    wgmma_commit_group();
    wgmma_wait_group<0>();
    if (elect_sync()) mbarrier_arrive(shared_address(tile_empty[stage]));
    if (k_tile + stages < k_tiles && warp == 0 && elect_sync()) {
      mbarrier_wait_parity(shared_address(tile_empty[stage]), parity);
      load(k_tile + stages, stage);
    }
    __syncwarp();
    if (++stage == stages) stage = 0, parity ^= 1;  // the ring wraps
  }

  store_fragment<kOut>(d, m, n, int64_t{tile_m} * kTileM + warp * 16, int64_t{tile_n} * kTileN, accumulators);
}

// The map of a row-major rows x k matrix as a stack of 16-byte columns, {8, rows, k / 8}: one box holds a whole K tile,
// its columns one after the other. What lies outside the matrix, a last half K tile too, is filled with zeros.
static CUtensorMap operand_map(DType type, const void* base, int64_t rows, int64_t k, uint32_t tile_rows) {
  const uint64_t dims[] = {kColumnK, static_cast<uint64_t>(rows), static_cast<uint64_t>(k / kColumnK)};
  const uint64_t strides_bytes[] = {static_cast<uint64_t>(k) * 2, kColumnK * 2};
  const uint32_t box[] = {kColumnK, tile_rows, kTileK / kColumnK};
  return make_tensor_map(type, base, dims, strides_bytes, box, CU_TENSOR_MAP_SWIZZLE_NONE);
}

template <DType kIn, DType kOut>
static void launch_typed(const Gemm& gemm, int stages) {
  const CUtensorMap a_map = operand_map(kIn, gemm.a, gemm.m, gemm.k, kTileM);
  const CUtensorMap b_map = operand_map(kIn, gemm.b, gemm.n, gemm.k, kTileN);
  const int64_t m_tiles = (gemm.m + kTileM - 1) / kTileM, n_tiles = (gemm.n + kTileN - 1) / kTileN;
  const dim3 grid(static_cast<unsigned>(m_tiles * n_tiles));
  const int64_t k_tiles = (gemm.k + kTileK - 1) / kTileK;
  const size_t ring_bytes = static_cast<size_t>(stages) * kStageBytes;
  launch(step02_pipeline_hopper<kIn, kOut>,
         {.grid = grid, .block = kThreads, .dynamic_shared_bytes = ring_bytes, .stream = gemm.stream}, a_map, b_map,
         gemm.d, gemm.m, gemm.n, k_tiles, stages);
}

void launch_step02_pipeline_hopper(const Gemm& gemm, int stages) {
  const bool f16 = gemm.in == DType::f16;
  if (gemm.out == DType::f32) {
    f16 ? launch_typed<DType::f16, DType::f32>(gemm, stages) : launch_typed<DType::bf16, DType::f32>(gemm, stages);
  } else {
    f16 ? launch_typed<DType::f16, DType::f16>(gemm, stages) : launch_typed<DType::bf16, DType::bf16>(gemm, stages);
  }
}
