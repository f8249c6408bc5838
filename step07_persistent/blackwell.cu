// step07_persistent, last of three: a second accumulator, a walk through D, tiles by plan or on demand.
// D (m x n) = A (m x k) B (n x k)^T, fp32 accumulation. Each change since step06 can be left out, see plan.h.
#include <algorithm>
#include <bit>

#include "common/harness/launch.h"
#include "common/harness/rung.h"
#include "common/harness/tensor_map.h"
#include "common/layout/instruction_descriptor.h"
#include "common/layout/operand_tile.h"
#include "common/layout/store_row.cuh"
#include "common/ptx/bulk.cuh"
#include "common/ptx/cluster.cuh"
#include "common/ptx/fence.cuh"
#include "common/ptx/launch_control.cuh"
#include "common/ptx/mbarrier.cuh"
#include "common/ptx/shared.cuh"
#include "common/ptx/tcgen05.cuh"
#include "common/ptx/tma.cuh"
#include "common/ptx/tmem.cuh"
#include "common/ptx/warp.cuh"
#include "step07_persistent/direct_stores.cuh"
#include "step07_persistent/plan.h"

using namespace ladder;

constexpr int kTileM = 128;        // rows of D a CTA computes: the lanes of tensor memory
constexpr int kMmaK = 16;          // what one MMA of 16-bit inputs takes
constexpr int kTileK = 64;         // K elements in 128 bytes: a row of the swizzle pattern
constexpr int kAccumulators = 2;   // at most: one is filled while the other leaves
constexpr int kAnswers = 3;        // of the hardware's scheduler: the producer is that far ahead of the epilogue
constexpr int kEpilogueWarps = 4;  // one thread for each row of the tile
constexpr int kThreads = 192;      // theirs, the producer's warp and the MMAs'
constexpr int kRowBytes = 128;     // of a row of a tile in shared memory
constexpr int kStripeBytes = 128;  // of a row of D, which go through shared memory at a time
constexpr int kBufferBytes = 32 * kStripeBytes;
static_assert(kEpilogueWarps * 32 == kTileM && kThreads == (2 + kEpilogueWarps) * 32);

// What follows from how operands come about and from the width of a tile.
template <Operands kOperands, int kTileN>
struct Tile {
  static constexpr int kCtas = ctas_of(kOperands);                       // of a cluster
  static constexpr int kCtaGroup = kOperands == Operands::pair ? 2 : 1;  // of an MMA
  static constexpr int kBoxN = kTileN / kCtas;                           // rows of B that one CTA loads
  static constexpr uint16_t kAll = (1 << kCtas) - 1;                     // a bit for each CTA's rank
  static constexpr uint32_t kTmemColumns = std::bit_ceil(2u * kTileN);   // for both accumulators
  static constexpr OperandTile kATile{Major::k, Swizzle::k128B, AtomOrder::kRowsFirst, 2, kTileM, kTileK};
  static constexpr OperandTile kBTile{Major::k, Swizzle::k128B, AtomOrder::kRowsFirst, 2, kTileN / kCtaGroup, kTileK};
  static constexpr int kStageBytes = kATile.bytes() + kBTile.bytes();
  static_assert(kStageBytes == stage_bytes(kOperands, kTileN));
  static_assert(kStageBytes % swizzle_period_bytes(Swizzle::k128B) == 0 && kBoxN % 8 == 0);
  static_assert(kTileK * 2 == kATile.span_bytes() && kBoxN <= 256);  // a box: 128-byte rows, at most 256 of them
  static_assert(kTileN % (16 * kCtaGroup) == 0 && kTileN <= 256 && kTmemColumns <= 512);
};

// Columns of D that go through shared memory at a time: 128 bytes of each row, or 64 where 128 do not divide a tile.
template <DType kOut, int kTileN>
constexpr int kStripe = kStripeBytes / static_cast<int>(bytes_of(kOut)) /
                        (kTileN % (kStripeBytes / static_cast<int>(bytes_of(kOut))) == 0 ? 1 : 2);

// The way out for a warp's 32 rows of the tile, which begin at D's `first_row` and `first_column`: `columns` of tensor
// memory (`accumulator`), a stripe at a time, through registers into one of two buffers, and from there by TMA. The
// store of one buffer runs while the other is filled. TMA leaves out what lies outside of D. `accumulator_empty`
// (shared::cluster address) is signalled as soon as the last columns are in registers.
template <DType kOut, int kTileN>
__device__ __forceinline__ void store_rows(const CUtensorMap* d_map, int first_row, int first_column, int columns,
                                           uint32_t accumulator, uint32_t accumulator_empty, uint8_t*& buffer,
                                           uint8_t*& other_buffer) {
  constexpr int kStoreColumns = kStripe<kOut, kTileN>;
  for (int column = 0; column < columns; column += kStoreColumns) {
    float values[kStoreColumns];
    __syncwarp();  // tcgen05.ld is for all lanes together: here they meet again after a wait or a store
    tcgen05_ld_32x32b(values, accumulator + column);
    if (elect_sync()) cp_async_bulk_wait_group_read<1>();  // the store before the last one has read this buffer
    __syncwarp();
    tcgen05_wait_ld();
    if (column + kStoreColumns >= columns) {
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

// Tiles of D, one after the other; a cluster's CTAs have 128 rows each. An MMA's issuer is CTA 0 of a pair, and any CTA
// without one. Who does what:
//   role      CTA     threads           waits for              signals
//   setup     all     warps 0 and 1     -                      cluster barrier: tensor memory and mbarriers are ready
//   producer  all     warp 0, one lane  tile_empty[stage]      the issuer's tile_full[stage]: its own bytes
//                                                              (multicast: tile_full[stage] of both)
//             0                         answer_empty[slot]     answer_full[slot] of all: the next tile's number
//             all     at the end        tile_empty of all      its CTA: no commit is under way to it any more
//   mma       issuer  warp 1, one lane  accumulator_empty[]    -
//                                       tile_full[stage]       tile_empty[stage] of all: the MMAs have read them
//                                                              accumulator_full[] of those that the MMA is for
//   epilogue  all     warps 2 to 5      accumulator_full[]     the issuer's accumulator_empty[]: it is in registers
//                     one lane of each  its bulk groups        its warp: a store buffer may be written again
//   all three         one lane of each  answer_full[slot]      CTA 0's answer_empty[slot]: the number has been read
//   end       all     all               -                      cluster barrier: tensor memory may be freed
template <Operands kOperands, int kTileN, DType kIn, DType kOut>
__global__ void __launch_bounds__(kThreads)
    step07_persistent(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map,
                      const __grid_constant__ CUtensorMap d_map, void* d, int64_t m, int64_t n, int k_tiles,
                      const __grid_constant__ Plan plan) {
  using T = Tile<kOperands, kTileN>;
  constexpr OperandTile kATile = T::kATile, kBTile = T::kBTile;
  constexpr int kStageBytes = T::kStageBytes;
  alignas(1024) extern __shared__ uint8_t ring[];  // the stages, each a tile of A and one of B; then store buffers
  __shared__ uint64_t tile_full[kMaxStages];
  __shared__ uint64_t tile_empty[kMaxStages];
  __shared__ uint64_t accumulator_full[kAccumulators];
  __shared__ uint64_t accumulator_empty[kAccumulators];
  __shared__ uint64_t answer_full[kAnswers];
  __shared__ uint64_t answer_empty[kAnswers];
  __shared__ uint4 answer[kAnswers];
  __shared__ uint32_t tmem_address;

  const uint32_t warp = warp_index();
  const int rank = static_cast<int>(cluster_ctarank());
  const int issuer = kOperands == Operands::pair ? 0 : rank;
  const int tiles = plan.walk.tiles();
  const int first_tile = static_cast<int>(blockIdx.x) / T::kCtas;

  barrier_cluster_arrive_relaxed();  // all CTAs run, before one allocates for two
  barrier_cluster_wait();
  if (warp == 0) {
    tcgen05_alloc<T::kCtaGroup>(shared_address(tmem_address), T::kTmemColumns);
    tcgen05_relinquish_alloc_permit<T::kCtaGroup>();
  }
  if (warp == 1 && elect_sync()) {
    prefetch_tensormap(&a_map);
    prefetch_tensormap(&b_map);
    prefetch_tensormap(&d_map);
    for (int stage = 0; stage < plan.stages; ++stage) {
      mbarrier_init(shared_address(tile_full[stage]), 1);
      mbarrier_init(shared_address(tile_empty[stage]), T::kCtas / T::kCtaGroup);  // issuers
    }
    for (int half = 0; half < plan.accumulators; ++half) {
      mbarrier_init(shared_address(accumulator_full[half]), 1);
      mbarrier_init(shared_address(accumulator_empty[half]), T::kCtaGroup * kEpilogueWarps);
    }
    for (int slot = 0; slot < kAnswers; ++slot) {
      mbarrier_init(shared_address(answer_full[slot]), 1);
      mbarrier_init(shared_address(answer_empty[slot]), T::kCtas * (1 + kEpilogueWarps) + T::kCtas / T::kCtaGroup);
    }
    fence_mbarrier_init();
  }
  tcgen05_fence_before_thread_sync();
  barrier_cluster_arrive();
  barrier_cluster_wait();
  tcgen05_fence_after_thread_sync();
  const uint32_t accumulators = tmem_address;

  const uint32_t a_tiles = shared_address(ring[0]), b_tiles = a_tiles + kATile.bytes();  // of stage 0
  int stage = 0, half = 0;  // half: of tensor memory, which accumulator
  uint32_t parity = 0, accumulator_parity = 0;

  // Which tile comes after `tile`; none, if it is none of D's. One thread of a role asks, and once for each tile. By
  // plan: as many on as there are clusters. On demand: the number of a cluster that has not started, as CTA 0 was told.
  int slot = 0;
  uint32_t slot_parity = 0;
  const auto next_tile = [&](int tile) {
    if (!plan.launch_control) return tile + static_cast<int>(gridDim.x) / T::kCtas;
    mbarrier_wait_parity(shared_address(answer_full[slot]), slot_parity);
    uint32_t first_block;
    const bool taken = clusterlaunchcontrol_query_cancel(shared_address(answer[slot]), first_block);
    fence_proxy_async_release_shared_cta();  // read, before the next answer is written there
    mbarrier_arrive_relaxed_cluster(mapa_shared_cluster(shared_address(answer_empty[slot]), 0));
    if (++slot == kAnswers) slot = 0, slot_parity ^= 1;
    return taken ? static_cast<int>(first_block) / T::kCtas : tiles;
  };

  if (warp == 0 && elect_sync()) {
    for (int tile = first_tile; tile < tiles; tile = next_tile(tile)) {
      if (plan.launch_control) {  // ask now for what next_tile will read
        const uint32_t full = shared_address(answer_full[slot]);
        mbarrier_arrive_expect_tx(full, sizeof answer[slot]);
        if (rank == 0) {
          mbarrier_wait_parity_relaxed_cluster(shared_address(answer_empty[slot]), slot_parity ^ 1);
          fence_proxy_async_acquire_shared_cluster();
          if constexpr (T::kCtas == 1) clusterlaunchcontrol_try_cancel(shared_address(answer[slot]), full);
          if constexpr (T::kCtas == 2) clusterlaunchcontrol_try_cancel_multicast(shared_address(answer[slot]), full);
        }
      }
      const TilePlace place = plan.walk.place(tile);
      const int a_row = (place.m * T::kCtas + rank) * kTileM, b_row = place.n * kTileN + rank * T::kBoxN;
      for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
        mbarrier_wait_parity(shared_address(tile_empty[stage]), parity ^ 1);  // passes at once in the first round
        if (rank == issuer) mbarrier_arrive_expect_tx(shared_address(tile_full[stage]), T::kCtaGroup * kStageBytes);
        const uint32_t full = mapa_shared_cluster(shared_address(tile_full[stage]), issuer);
        const uint32_t a_tile = a_tiles + stage * kStageBytes, b_tile = b_tiles + stage * kStageBytes;
        cp_async_bulk_tensor_2d_cta_group<T::kCtaGroup>(a_tile, &a_map, full, k_tile * kTileK, a_row);
        if constexpr (kOperands == Operands::multicast) {
          cp_async_bulk_tensor_2d_multicast(b_tile + rank * T::kBoxN * kRowBytes, &b_map, full, k_tile * kTileK, b_row,
                                            T::kAll);
        } else {
          cp_async_bulk_tensor_2d_cta_group<T::kCtaGroup>(b_tile, &b_map, full, k_tile * kTileK, b_row);
        }
        if (++stage == plan.stages) stage = 0, parity ^= 1;  // the ring wraps
      }
    }
    for (int last = 0; last < plan.stages; ++last) {  // no CTA leaves while others may still signal its barriers
      mbarrier_wait_parity(shared_address(tile_empty[stage]), parity ^ 1);
      if (++stage == plan.stages) stage = 0, parity ^= 1;
    }
  }
  if (warp == 1 && rank == issuer && elect_sync()) {
    constexpr MmaInput kInput = kIn == DType::f16 ? MmaInput::f16 : MmaInput::bf16;
    constexpr InstructionDescriptor kMma{kInput, kInput, MmaAccumulator::f32, kTileM * T::kCtaGroup, kTileN};
    constexpr uint16_t kMmaCtas = kOperands == Operands::pair ? T::kAll : 1;  // those that an MMA is for
    const uint64_t a_descriptor =
        tcgen05_smem_descriptor(a_tiles, kATile.leading_bytes(), kATile.stride_bytes(), Swizzle::k128B);
    const uint64_t b_descriptor =
        tcgen05_smem_descriptor(b_tiles, kBTile.leading_bytes(), kBTile.stride_bytes(), Swizzle::k128B);
    for (int tile = first_tile; tile < tiles; tile = next_tile(tile)) {
      // Passes at once in the first round.
      mbarrier_wait_parity_relaxed_cluster(shared_address(accumulator_empty[half]), accumulator_parity ^ 1);
      tcgen05_fence_after_thread_sync();
      const uint32_t accumulator = accumulators + half * kTileN;
      for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
        mbarrier_wait_parity(shared_address(tile_full[stage]), parity);
        tcgen05_fence_after_thread_sync();
#pragma unroll
        for (int k = 0; k < kTileK; k += kMmaK) {
          const bool accumulate = k_tile > 0 || k > 0;  // the first MMA overwrites what tensor memory held before
          const uint64_t step = (stage * kStageBytes + k * 2) >> 4;  // in a descriptor, addresses count 16 bytes
          tcgen05_mma_f16<T::kCtaGroup>(accumulator, a_descriptor + step, b_descriptor + step, kMma.word(), accumulate);
        }
        tcgen05_commit_multicast<T::kCtaGroup>(shared_address(tile_empty[stage]), T::kAll);
        if (++stage == plan.stages) stage = 0, parity ^= 1;  // the ring wraps
      }
      tcgen05_commit_multicast<T::kCtaGroup>(shared_address(accumulator_full[half]), kMmaCtas << issuer);
      if (++half == plan.accumulators) half = 0, accumulator_parity ^= 1;
    }
  }
  if (warp >= 2) {
    // A warp reaches the 32 lanes of tensor memory that its index modulo 4 names. Its thread t holds row t of them.
    const int quarter = static_cast<int>(warp % 4);
    const uint32_t quarter_lane = quarter * 32 << 16;
    uint8_t* buffer = ring + plan.stages * kStageBytes + quarter * kBufferBytes;
    uint8_t* other_buffer = buffer + kEpilogueWarps * kBufferBytes;
    for (int tile = first_tile; tile < tiles;) {
      const TilePlace place = plan.walk.place(tile);
      const int first_row = (place.m * T::kCtas + rank) * kTileM + quarter * 32, first_column = place.n * kTileN;
      const int columns = static_cast<int>(n - first_column < kTileN ? n - first_column : kTileN);
      const uint32_t accumulator = accumulators + quarter_lane + half * kTileN;
      const uint32_t empty = mapa_shared_cluster(shared_address(accumulator_empty[half]), issuer);
      mbarrier_wait_parity_relaxed_cluster(shared_address(accumulator_full[half]), accumulator_parity);
      tcgen05_fence_after_thread_sync();
      int next = 0;
      if (threadIdx.x % 32 == 0) next = next_tile(tile);
      next = __shfl_sync(0xffffffff, next, 0);
      if (plan.direct_stores) {
        store_directly<kOut>(d, m, n, first_row, first_column, columns, accumulator, empty);
      } else {
        store_rows<kOut, kTileN>(&d_map, first_row, first_column, columns, accumulator, empty, buffer, other_buffer);
      }
      if (++half == plan.accumulators) half = 0, accumulator_parity ^= 1;
      tile = next;
    }
    if (elect_sync()) cp_async_bulk_wait_group_read<0>();  // the buffers must outlive the reading of them
  }

  tcgen05_fence_before_thread_sync();
  barrier_cluster_arrive();
  barrier_cluster_wait();
  if (warp == 0) {
    tcgen05_fence_after_thread_sync();
    tcgen05_dealloc<T::kCtaGroup>(accumulators, T::kTmemColumns);
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

// Each warp stores 32 rows of a stripe, which lie 128 bytes apart. What lies outside of D is not stored.
static CUtensorMap output_map(DType type, void* base, int64_t m, int64_t n, uint32_t stripe) {
  const uint64_t dims[] = {static_cast<uint64_t>(n), static_cast<uint64_t>(m)};
  const uint64_t strides_bytes[] = {static_cast<uint64_t>(n) * bytes_of(type)};
  const uint32_t box[] = {stripe, 32};
  return make_tensor_map(type, base, dims, strides_bytes, box, CU_TENSOR_MAP_SWIZZLE_128B);
}

// A grid of one cluster, with as much shared memory as makes it the only one on its SMs: tensor memory has room for no
// second.
template <Operands kOperands, int kTileN>
static LaunchShape one_cluster(int stages, bool direct_stores) {
  constexpr unsigned kCtas = ctas_of(kOperands);
  const int bytes = stages * stage_bytes(kOperands, kTileN) + store_bytes(direct_stores);
  return {.grid = kCtas,
          .block = kThreads,
          .cluster = kCtas,
          .dynamic_shared_bytes = static_cast<size_t>(std::max(bytes, 116 * 1024))};
}

template <Operands kOperands, int kTileN, DType kIn, DType kOut>
static void launch_typed(const Gemm& gemm, const Plan& plan) {
  using T = Tile<kOperands, kTileN>;
  const CUtensorMap a_map = operand_map(kIn, gemm.a, gemm.m, gemm.k, kTileM);
  const CUtensorMap b_map = operand_map(kIn, gemm.b, gemm.n, gemm.k, T::kBoxN);
  const CUtensorMap d_map = output_map(kOut, gemm.d, gemm.m, gemm.n, kStripe<kOut, kTileN>);
  LaunchShape shape = one_cluster<kOperands, kTileN>(plan.stages, plan.direct_stores);
  shape.grid = static_cast<unsigned>(plan.clusters) * shape.cluster.x;
  shape.stream = gemm.stream;
  const int64_t k_tiles = (gemm.k + kTileK - 1) / kTileK;
  launch(step07_persistent<kOperands, kTileN, kIn, kOut>, shape, a_map, b_map, d_map, gemm.d, gemm.m, gemm.n, k_tiles,
         plan);
}

template <Operands kOperands, int kTileN>
static void launch_tile(const Gemm& gemm, const Plan& plan) {
  const bool f16 = gemm.in == DType::f16;
  if (gemm.out == DType::f32) {
    f16 ? launch_typed<kOperands, kTileN, DType::f16, DType::f32>(gemm, plan)
        : launch_typed<kOperands, kTileN, DType::bf16, DType::f32>(gemm, plan);
  } else {
    f16 ? launch_typed<kOperands, kTileN, DType::f16, DType::f16>(gemm, plan)
        : launch_typed<kOperands, kTileN, DType::bf16, DType::bf16>(gemm, plan);
  }
}

template <Operands kOperands>
static void launch_operands(const Gemm& gemm, const Plan& plan) {
  if (plan.tile_n == 256) launch_tile<kOperands, 256>(gemm, plan);
  if (plan.tile_n == 224) launch_tile<kOperands, 224>(gemm, plan);
  if (plan.tile_n == 128) launch_tile<kOperands, 128>(gemm, plan);
}

template <Operands kOperands>
static int clusters_of_device() {
  return resident_clusters(step07_persistent<kOperands, 256, DType::f16, DType::f16>,
                           one_cluster<kOperands, 256>(1, false));
}

Plan plan_step07_persistent(const Gemm& gemm, const Settings& settings) {
  int device = 0, l2_bytes = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&l2_bytes, cudaDevAttrL2CacheSize, device), "asking for the size of L2");
  const int clusters = settings.operands == Operands::pair        ? clusters_of_device<Operands::pair>()
                       : settings.operands == Operands::multicast ? clusters_of_device<Operands::multicast>()
                                                                  : clusters_of_device<Operands::alone>();
  return make_plan(settings, gemm.m, gemm.n, gemm.k, {clusters, l2_bytes});
}

void launch_step07_persistent(const Gemm& gemm, const Plan& plan) {
  if (plan.operands == Operands::pair) launch_operands<Operands::pair>(gemm, plan);
  if (plan.operands == Operands::multicast) launch_operands<Operands::multicast>(gemm, plan);
  if (plan.operands == Operands::alone) launch_operands<Operands::alone>(gemm, plan);
}
