// step07_persistent, second of three: pairs stay, and load the next tile while the last one leaves.
// D (m x n) = A (m x k) B (n x k)^T, fp32 accumulation.
#include <algorithm>

#include "common/harness/launch.h"
#include "common/harness/rung.h"
#include "common/harness/tensor_map.h"
#include "common/layout/instruction_descriptor.h"
#include "common/layout/operand_tile.h"
#include "common/layout/store_row.cuh"
#include "common/ptx/bulk.cuh"
#include "common/ptx/cluster.cuh"
#include "common/ptx/fence.cuh"
#include "common/ptx/mbarrier.cuh"
#include "common/ptx/shared.cuh"
#include "common/ptx/tcgen05.cuh"
#include "common/ptx/tma.cuh"
#include "common/ptx/tmem.cuh"
#include "common/ptx/warp.cuh"

using namespace ladder;

constexpr int kPairCtas = 2;       // of a pair, and of a cluster
constexpr uint16_t kBoth = 0b11;   // a bit for each CTA's rank
constexpr int kTileM = 128;        // rows of D a CTA computes: the lanes of tensor memory
constexpr int kTileN = 256;        // columns of D a pair computes: columns of tensor memory, the same in both CTAs
constexpr int kMmaK = 16;          // what one MMA of 16-bit inputs takes
constexpr int kTileK = 64;         // K elements in 128 bytes: a row of the swizzle pattern
constexpr int kStages = 6;         // buffers of the ring
constexpr int kEpilogueWarps = 4;  // one thread for each row of the tile
constexpr int kThreads = 192;      // theirs, the producer's warp and the MMAs'
constexpr int kStripeBytes = 128;  // of a row of D, which go through shared memory at a time
constexpr uint32_t kTmemColumns = kTileN;

constexpr OperandTile kATile{Major::k, Swizzle::k128B, AtomOrder::kRowsFirst, 2, kTileM, kTileK};
constexpr OperandTile kBTile{Major::k, Swizzle::k128B, AtomOrder::kRowsFirst, 2, kTileN / kPairCtas, kTileK};
static_assert(kATile.stride_bytes() == 8 * 128 && kBTile.stride_bytes() == 8 * 128);
constexpr int kStageBytes = kATile.bytes() + kBTile.bytes();
static_assert(kStageBytes == 32 * 1024 && kStageBytes % swizzle_period_bytes(Swizzle::k128B) == 0);
static_assert(kTileK * 2 == kATile.span_bytes() && kTileN <= 256);  // a box: 128-byte rows, at most 256 of them
static_assert(kTmemColumns >= 32 && kTmemColumns <= 512 && (kTmemColumns & (kTmemColumns - 1)) == 0);
static_assert(kEpilogueWarps * 32 == kTileM && kThreads == (2 + kEpilogueWarps) * 32);
// The ring, two store buffers of 128 rows, and 3 KB for barriers and alignment.
static_assert(kStages * kStageBytes + 2 * kTileM * kStripeBytes + 3072 <= 227 * 1024);

// The way out for a warp's 32 rows of the tile, which begin at D's `first_row` and `first_column`. 128 bytes of each
// row at a time go from tensor memory (`accumulator`) through registers into one of two buffers, and from there by TMA:
// the store of one buffer runs while the other is filled. TMA leaves out what lies outside of D. `accumulator_empty`
// (shared::cluster address) is signalled as soon as the last columns are in registers.
template <DType kOut>
__device__ __forceinline__ void store_rows(const CUtensorMap* d_map, int64_t n, int first_row, int first_column,
                                           uint32_t accumulator, uint32_t accumulator_empty, uint8_t*& buffer,
                                           uint8_t*& other_buffer) {
  constexpr int kStoreColumns = kStripeBytes / static_cast<int>(bytes_of(kOut));
  for (int column = 0; column < kTileN && first_column + column < n; column += kStoreColumns) {
    float values[kStoreColumns];
    __syncwarp();  // tcgen05.ld is for all lanes together: here they meet again after a wait or a store
    tcgen05_ld_32x32b(values, accumulator + column);
    if (elect_sync()) cp_async_bulk_wait_group_read<1>();  // the store before the last one has read this buffer
    __syncwarp();
    tcgen05_wait_ld();
    if (column + kStoreColumns >= kTileN || first_column + column + kStoreColumns >= n) {
      tcgen05_fence_before_thread_sync();
      __syncwarp();
      if (elect_sync()) mbarrier_arrive_relaxed_cluster(accumulator_empty);
    }
    write_swizzled_row<kOut>(buffer, threadIdx.x % 32, values);
    fence_proxy_async_shared_cta();  // what this thread wrote is there for TMA to read
    __syncwarp();
    if (elect_sync()) {
      cp_async_bulk_tensor_2d_store(d_map, shared_address(*buffer), first_column + column, first_row);
      cp_async_bulk_commit_group();
    }
    uint8_t* const filled = buffer;
    buffer = other_buffer, other_buffer = filled;
  }
}

// Tiles of 256 x 256 of D, one after the other, the upper half of their rows in CTA 0, the leader. Who does what:
//   role      CTA   threads           waits for           signals
//   setup     both  warps 0 and 1     -                   cluster barrier: tensor memory and mbarriers are ready
//   producer  both  warp 0, one lane  tile_empty[stage]   the leader's tile_full[stage]: its own bytes
//                   at the end        tile_empty of all   its CTA: no commit is under way to it any more
//   mma       0     warp 1, one lane  accumulator_empty   -
//                                     tile_full[stage]    tile_empty[stage] of both: the MMAs have read them
//                                                         accumulator_full of both: all MMAs are complete
//   epilogue  both  warps 2 to 5      accumulator_full    the leader's accumulator_empty: it is in registers
//                   one lane of each  its bulk groups     its warp: a store buffer may be written again
//   end       both  all warps         -                   cluster barrier: tensor memory may be freed
template <DType kIn, DType kOut>
__global__ void __launch_bounds__(kThreads)
    step07_persistent_grid(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map,
                           const __grid_constant__ CUtensorMap d_map, int64_t m, int64_t n, int k_tiles) {
  alignas(1024) extern __shared__ uint8_t ring[];  // kStages times a tile of A and, behind it, half a tile of B
  __shared__ alignas(1024) uint8_t store_buffer[2][kEpilogueWarps][32 * kStripeBytes];
  __shared__ uint64_t tile_full[kStages];
  __shared__ uint64_t tile_empty[kStages];
  __shared__ uint64_t accumulator_full;
  __shared__ uint64_t accumulator_empty;
  __shared__ uint32_t tmem_address;

  const uint32_t warp = warp_index();
  // Tiles are numbered pair by pair, down the columns of D, in x alone: a grid has at most 65,535 blocks in y.
  const int rank = static_cast<int>(cluster_ctarank());
  const bool leader = rank == 0;
  const int m_pairs = static_cast<int>((m + kTileM * kPairCtas - 1) / (kTileM * kPairCtas));
  const int tiles = m_pairs * static_cast<int>((n + kTileN - 1) / kTileN);
  const int pair = static_cast<int>(blockIdx.x) / kPairCtas, pairs = static_cast<int>(gridDim.x) / kPairCtas;

  barrier_cluster_arrive_relaxed();  // both CTAs run, before either allocates for the two
  barrier_cluster_wait();
  if (warp == 0) {
    tcgen05_alloc<2>(shared_address(tmem_address), kTmemColumns);
    tcgen05_relinquish_alloc_permit<2>();
  }
  if (warp == 1 && elect_sync()) {
    prefetch_tensormap(&a_map);
    prefetch_tensormap(&b_map);
    for (int stage = 0; stage < kStages; ++stage) {
      mbarrier_init(shared_address(tile_full[stage]), 1);
      mbarrier_init(shared_address(tile_empty[stage]), 1);
    }
    mbarrier_init(shared_address(accumulator_full), 1);
    mbarrier_init(shared_address(accumulator_empty), kPairCtas * kEpilogueWarps);
    fence_mbarrier_init();
  }
  tcgen05_fence_before_thread_sync();
  barrier_cluster_arrive();
  barrier_cluster_wait();
  tcgen05_fence_after_thread_sync();
  const uint32_t accumulator = tmem_address;

  const uint32_t a_tiles = shared_address(ring[0]), b_tiles = a_tiles + kATile.bytes();  // of stage 0
  int stage = 0;
  uint32_t parity = 0, accumulator_parity = 0;
  if (warp == 0 && elect_sync()) {
    for (int tile = pair; tile < tiles; tile += pairs) {
      const int tile_m = tile % m_pairs * kPairCtas + rank, tile_n = tile / m_pairs;
      for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
        mbarrier_wait_parity(shared_address(tile_empty[stage]), parity ^ 1);  // passes at once in the first round
        if (leader) mbarrier_arrive_expect_tx(shared_address(tile_full[stage]), kPairCtas * kStageBytes);
        const uint32_t full = mapa_shared_cluster(shared_address(tile_full[stage]), 0);  // the leader's
        cp_async_bulk_tensor_2d_cta_group<2>(a_tiles + stage * kStageBytes, &a_map, full, k_tile * kTileK,
                                             tile_m * kTileM);
        cp_async_bulk_tensor_2d_cta_group<2>(b_tiles + stage * kStageBytes, &b_map, full, k_tile * kTileK,
                                             tile_n * kTileN + rank * (kTileN / kPairCtas));
        if (++stage == kStages) stage = 0, parity ^= 1;  // the ring wraps
      }
    }
    for (int last = 0; last < kStages; ++last) {  // no CTA leaves while others may still signal its barriers
      mbarrier_wait_parity(shared_address(tile_empty[stage]), parity ^ 1);
      if (++stage == kStages) stage = 0, parity ^= 1;
    }
  }
  if (warp == 1 && leader && elect_sync()) {
    constexpr MmaInput kInput = kIn == DType::f16 ? MmaInput::f16 : MmaInput::bf16;
    constexpr InstructionDescriptor kMma{kInput, kInput, MmaAccumulator::f32, kTileM * kPairCtas, kTileN};
    const uint64_t a_descriptor =
        tcgen05_smem_descriptor(a_tiles, kATile.leading_bytes(), kATile.stride_bytes(), Swizzle::k128B);
    const uint64_t b_descriptor =
        tcgen05_smem_descriptor(b_tiles, kBTile.leading_bytes(), kBTile.stride_bytes(), Swizzle::k128B);
    for (int tile = pair; tile < tiles; tile += pairs) {
      // Passes at once for the first tile.
      mbarrier_wait_parity_relaxed_cluster(shared_address(accumulator_empty), accumulator_parity ^ 1);
      tcgen05_fence_after_thread_sync();
      for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
        mbarrier_wait_parity(shared_address(tile_full[stage]), parity);
        tcgen05_fence_after_thread_sync();
#pragma unroll
        for (int k = 0; k < kTileK; k += kMmaK) {
          const bool accumulate = k_tile > 0 || k > 0;  // the first MMA overwrites what tensor memory held before
          const uint64_t step = (stage * kStageBytes + k * 2) >> 4;  // in a descriptor, addresses count 16 bytes
          tcgen05_mma_f16<2>(accumulator, a_descriptor + step, b_descriptor + step, kMma.word(), accumulate);
        }
        tcgen05_commit_multicast<2>(shared_address(tile_empty[stage]), kBoth);
        if (++stage == kStages) stage = 0, parity ^= 1;  // the ring wraps
      }
      tcgen05_commit_multicast<2>(shared_address(accumulator_full), kBoth);
      accumulator_parity ^= 1;
    }
  }
  if (warp >= 2) {
    // A warp reaches the 32 lanes of tensor memory that its index modulo 4 names. Its thread t holds row t of them.
    const int quarter = static_cast<int>(warp % 4);
    const uint32_t warp_accumulator = accumulator + (quarter * 32 << 16);
    const uint32_t empty = mapa_shared_cluster(shared_address(accumulator_empty), 0);  // the leader's
    uint8_t *buffer = store_buffer[0][quarter], *other_buffer = store_buffer[1][quarter];
    for (int tile = pair; tile < tiles; tile += pairs) {
      const int tile_m = tile % m_pairs * kPairCtas + rank, tile_n = tile / m_pairs;
      mbarrier_wait_parity_relaxed_cluster(shared_address(accumulator_full), accumulator_parity);
      tcgen05_fence_after_thread_sync();
      store_rows<kOut>(&d_map, n, tile_m * kTileM + quarter * 32, tile_n * kTileN, warp_accumulator, empty, buffer,
                       other_buffer);
      accumulator_parity ^= 1;
    }
    if (elect_sync()) cp_async_bulk_wait_group_read<0>();  // the buffers must outlive the reading of them
  }

  tcgen05_fence_before_thread_sync();
  barrier_cluster_arrive();
  barrier_cluster_wait();
  if (warp == 0) {
    tcgen05_fence_after_thread_sync();
    tcgen05_dealloc<2>(accumulator, kTmemColumns);
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

// Each warp stores 32 rows of 128 bytes. What lies outside of D is not stored.
static CUtensorMap output_map(DType type, void* base, int64_t m, int64_t n) {
  const uint64_t dims[] = {static_cast<uint64_t>(n), static_cast<uint64_t>(m)};
  const uint64_t strides_bytes[] = {static_cast<uint64_t>(n) * bytes_of(type)};
  const uint32_t box[] = {static_cast<uint32_t>(kStripeBytes / bytes_of(type)), 32};
  return make_tensor_map(type, base, dims, strides_bytes, box, CU_TENSOR_MAP_SWIZZLE_128B);
}

template <DType kIn, DType kOut>
static void launch_typed(const Gemm& gemm) {
  const CUtensorMap a_map = operand_map(kIn, gemm.a, gemm.m, gemm.k, kTileM);
  const CUtensorMap b_map = operand_map(kIn, gemm.b, gemm.n, gemm.k, kTileN / kPairCtas);
  const CUtensorMap d_map = output_map(kOut, gemm.d, gemm.m, gemm.n);
  // Whole pairs. A CTA whose tile lies outside of D loads and signals like the other, and stores nothing.
  const int64_t m_pairs = (gemm.m + kTileM * kPairCtas - 1) / (kTileM * kPairCtas);
  const int64_t n_tiles = (gemm.n + kTileN - 1) / kTileN;
  const int64_t k_tiles = (gemm.k + kTileK - 1) / kTileK;
  const auto kernel = step07_persistent_grid<kIn, kOut>;
  LaunchShape shape{.grid = kPairCtas,
                    .block = kThreads,
                    .cluster = kPairCtas,
                    .dynamic_shared_bytes = kStages * kStageBytes,
                    .stream = gemm.stream};
  // As many pairs as the device holds at once; fewer if there are not so many tiles.
  const int64_t pairs = std::min<int64_t>(m_pairs * n_tiles, resident_clusters(kernel, shape));
  shape.grid = static_cast<unsigned>(pairs) * kPairCtas;
  launch(kernel, shape, a_map, b_map, d_map, gemm.m, gemm.n, k_tiles);
}

void launch_step07_persistent_grid(const Gemm& gemm) {
  const bool f16 = gemm.in == DType::f16;
  if (gemm.out == DType::f32) {
    f16 ? launch_typed<DType::f16, DType::f32>(gemm) : launch_typed<DType::bf16, DType::f32>(gemm);
  } else {
    f16 ? launch_typed<DType::f16, DType::f16>(gemm) : launch_typed<DType::bf16, DType::bf16>(gemm);
  }
}
