// step04's study: the rung's kernel with its layout, its K tile and its ring as parameters, and with parts left out.
// D (m x n) = A (m x k) B (n x k)^T for f16, fp32 accumulation.
#include "common/harness/launch.h"
#include "common/layout/instruction_descriptor.h"
#include "common/layout/store_row.cuh"
#include "common/ptx/fence.cuh"
#include "common/ptx/mbarrier.cuh"
#include "common/ptx/shared.cuh"
#include "common/ptx/tcgen05.cuh"
#include "common/ptx/tma.cuh"
#include "common/ptx/tmem.cuh"
#include "common/ptx/warp.cuh"
#include "step04_swizzle/study_walk.h"

using namespace ladder;

constexpr int kTileM = kStudyTileM, kTileN = kStudyTileN;
constexpr int kThreads = 128;      // one thread for each row of the tile
constexpr int kStoreColumns = 32;  // accumulators a thread holds at a time
constexpr uint32_t kTmemColumns = kTileN;
static_assert(kThreads == kTileM && kTileN % kStoreColumns == 0);
// The ring, and 3 KB for barriers and alignment.
static_assert(kRingBytes + 3072 <= 227 * 1024 && kMostStages * 2 * 8 <= 1024);

// One tile of D per CTA. Who does what, as in step04; a part has only the roles it needs:
//   role      threads           waits for           signals
//   setup     warps 0 and 1     -                   CTA barrier: tensor memory and mbarriers are ready
//   producer  warp 0, one lane  tile_empty[stage]   tile_full[stage]: the bytes of all boxes
//   mma       warp 1, one lane  tile_full[stage]    tile_empty[stage]; accumulator_full
//   sums      warp 1            tile_full[stage]    tile_empty[stage]: the loads alone
//   epilogue  all warps         accumulator_full    CTA barrier: tensor memory may be freed
// Every part takes tensor memory, so that as many CTAs share an SM.
template <Part kPart, DType kOut>
__global__ void __launch_bounds__(kThreads)
    swizzle_study(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map,
                  const __grid_constant__ Walk walk, void* d, int64_t m, int64_t n, int k_tiles, uint32_t* checksums,
                  bool verify) {
  alignas(1024) extern __shared__ uint8_t ring[];  // stages times a tile of A and, behind it, one of B
  __shared__ uint64_t tile_full[kMostStages];
  __shared__ uint64_t tile_empty[kMostStages];
  __shared__ uint64_t accumulator_full;
  __shared__ uint32_t tmem_address;

  const uint32_t warp = warp_index();
  const int m_tiles = static_cast<int>((m + kTileM - 1) / kTileM);
  const int tile_m = static_cast<int>(blockIdx.x) % m_tiles;
  const int tile_n = static_cast<int>(blockIdx.x) / m_tiles;

  if (warp == 0) {
    tcgen05_alloc<1>(shared_address(tmem_address), kTmemColumns);
    tcgen05_relinquish_alloc_permit<1>();
  }
  if (warp == 1 && elect_sync()) {
    prefetch_tensormap(&a_map);
    prefetch_tensormap(&b_map);
    for (int stage = 0; stage < walk.stages; ++stage) {
      mbarrier_init(shared_address(tile_full[stage]), 1);
      mbarrier_init(shared_address(tile_empty[stage]), 1);
    }
    mbarrier_init(shared_address(accumulator_full), 1);
    fence_mbarrier_init();
  }
  tcgen05_fence_before_thread_sync();
  __syncthreads();
  tcgen05_fence_after_thread_sync();
  const uint32_t accumulator = tmem_address;

  const uint32_t a_tiles = shared_address(ring[0]), b_tiles = a_tiles + walk.a_bytes;  // of stage 0
  int stage = 0;
  uint32_t parity = 0;
  if (kPart != Part::epilogue && warp == 0 && elect_sync()) {
    // The MMAs alone get one filling of the ring.
    const int loads = kPart == Part::mma && k_tiles > walk.stages ? walk.stages : k_tiles;
    for (int k_tile = 0; k_tile < loads; ++k_tile) {
      mbarrier_wait_parity(shared_address(tile_empty[stage]), parity ^ 1);  // passes at once in the first round
      const uint32_t full = shared_address(tile_full[stage]);
      uint32_t a_box = a_tiles + stage * walk.stage_bytes, b_box = b_tiles + stage * walk.stage_bytes;
      mbarrier_arrive_expect_tx(full, walk.stage_bytes);
      if (walk.three_dimensions) {
        const int k_column = k_tile * (walk.tile_k / 8);
        cp_async_bulk_tensor_3d(a_box, &a_map, full, 0, tile_m * kTileM, k_column);
        cp_async_bulk_tensor_3d(b_box, &b_map, full, 0, tile_n * kTileN, k_column);
      } else {
        for (int box = 0; box < walk.boxes; ++box) {
          const int k = k_tile * walk.tile_k + box * walk.box_k;
          cp_async_bulk_tensor_2d(a_box, &a_map, full, k, tile_m * kTileM);
          cp_async_bulk_tensor_2d(b_box, &b_map, full, k, tile_n * kTileN);
          a_box += walk.a_box_bytes, b_box += walk.b_box_bytes;
        }
      }
      if (++stage == walk.stages) stage = 0, parity ^= 1;  // the ring wraps
    }
  }
  if (kPart == Part::load && warp == 1) {
    const uint32_t lane = threadIdx.x % 32;
    uint32_t sum = 0;
    for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
      mbarrier_wait_parity(shared_address(tile_full[stage]), parity);
      if (verify) {
        const auto* words = reinterpret_cast<const uint32_t*>(ring + stage * walk.stage_bytes);
        sum *= kChecksumFactor;
        for (uint32_t i = lane; i < walk.stage_bytes / 4u; i += 32) sum += words[i] * (2 * i + 1);
      }
      __syncwarp();  // all lanes have read the stage
      if (elect_sync()) mbarrier_arrive(shared_address(tile_empty[stage]));
      if (++stage == walk.stages) stage = 0, parity ^= 1;  // the ring wraps
    }
    if (verify) checksums[blockIdx.x * kChecksumLanes + lane] = sum;
  }
  if ((kPart == Part::full || kPart == Part::mma) && warp == 1 && elect_sync()) {
    constexpr InstructionDescriptor kMma{MmaInput::f16, MmaInput::f16, MmaAccumulator::f32, kTileM, kTileN};
    const uint64_t a_descriptor = walk.a_descriptor + (a_tiles >> 4), b_descriptor = walk.b_descriptor + (b_tiles >> 4);
    for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
      if (kPart == Part::full || k_tile < walk.stages) {
        mbarrier_wait_parity(shared_address(tile_full[stage]), parity);
        tcgen05_fence_after_thread_sync();
      }
      for (int mma = 0; mma < walk.mmas; ++mma) {
        const bool accumulate = k_tile > 0 || mma > 0;  // the first MMA overwrites what tensor memory held before
        const uint32_t begin = stage * walk.stage_bytes;
        tcgen05_mma_f16<1>(accumulator, a_descriptor + ((begin + walk.a_steps[mma]) >> 4),
                           b_descriptor + ((begin + walk.b_steps[mma]) >> 4), kMma.word(), accumulate);
      }
      tcgen05_commit<1>(shared_address(tile_empty[stage]));
      if (++stage == walk.stages) stage = 0, parity ^= 1;  // the ring wraps
    }
    tcgen05_commit<1>(shared_address(accumulator_full));
  }
  if (kPart == Part::full || kPart == Part::mma) {
    mbarrier_wait_parity(shared_address(accumulator_full), 0);
    tcgen05_fence_after_thread_sync();
  }

  if (kPart != Part::load) {
    // Thread t holds row t of the tile: lane t of tensor memory, of which each warp reaches its own 32.
    const int64_t row = int64_t{tile_m} * kTileM + threadIdx.x;
    const int64_t first_column = int64_t{tile_n} * kTileN;
    const uint32_t warp_accumulator = accumulator + (warp * 32 << 16);
    __syncwarp();
    if (kPart == Part::epilogue && verify) {
      for (int column = 0; column < kTileN; column += kStoreColumns) {
        float values[kStoreColumns];
        for (int i = 0; i < kStoreColumns; ++i) values[i] = epilogue_pattern(row, first_column + column + i);
        tcgen05_st_32x32b_x32(warp_accumulator + column, values);
      }
      tcgen05_wait_st();
    }
    for (int column = 0; column < kTileN && first_column + column < n; column += kStoreColumns) {
      float values[kStoreColumns];
      __syncwarp();  // tcgen05.ld is for all lanes together: here they meet again after a wait or a store
      tcgen05_ld_32x32b_x32(values, warp_accumulator + column);
      tcgen05_wait_ld();
      if (row < m) store_row<kOut>(d, row * n + first_column + column, values, n - first_column - column);
    }
  }

  tcgen05_fence_before_thread_sync();
  __syncthreads();
  if (warp == 0) {
    tcgen05_fence_after_thread_sync();
    tcgen05_dealloc<1>(accumulator, kTmemColumns);
  }
}

template <Part kPart>
static void launch_part(const Configuration& configuration, const Gemm& gemm, uint32_t* checksums, bool verify) {
  const auto kernel = gemm.out == DType::f32 ? swizzle_study<kPart, DType::f32> : swizzle_study<kPart, DType::f16>;
  const int64_t m_tiles = (gemm.m + kTileM - 1) / kTileM, n_tiles = (gemm.n + kTileN - 1) / kTileN;
  const int64_t k_tiles = (gemm.k + configuration.tile_k - 1) / configuration.tile_k;
  launch(kernel,
         {.grid = dim3(static_cast<unsigned>(m_tiles * n_tiles)),
          .block = kThreads,
          .dynamic_shared_bytes = static_cast<size_t>(configuration.in_flight_bytes()),
          .stream = gemm.stream},
         study_map(configuration, gemm.a, gemm.m, gemm.k, kTileM),
         study_map(configuration, gemm.b, gemm.n, gemm.k, kTileN), walk_of(configuration, Family::blackwell), gemm.d,
         gemm.m, gemm.n, k_tiles, checksums, verify);
}

void launch_study(const Configuration& configuration, Part part, const Gemm& gemm, uint32_t* checksums, bool verify) {
  switch (part) {
    case Part::full:
      return launch_part<Part::full>(configuration, gemm, checksums, verify);
    case Part::load:
      return launch_part<Part::load>(configuration, gemm, checksums, verify);
    case Part::mma:
      return launch_part<Part::mma>(configuration, gemm, checksums, verify);
    case Part::epilogue:
      return launch_part<Part::epilogue>(configuration, gemm, checksums, verify);
  }
}
