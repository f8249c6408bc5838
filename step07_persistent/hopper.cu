// step07_persistent on Hopper: CTAs that stay, a walk through D, tiles by plan or on demand, one or two at a time.
// D (m x n) = A (m x k) B (n x k)^T, fp32 accumulation. Each change since step06 can be left out, see hopper_plan.h.
#include <stdexcept>

#include "common/harness/launch.h"
#include "common/harness/rung.h"
#include "common/harness/tensor_map.h"
#include "common/layout/operand_tile.h"
#include "common/layout/store_fragment.cuh"
#include "common/ptx/bulk.cuh"
#include "common/ptx/cluster.cuh"
#include "common/ptx/fence.cuh"
#include "common/ptx/grid_dependency.cuh"
#include "common/ptx/mbarrier.cuh"
#include "common/ptx/registers.cuh"
#include "common/ptx/shared.cuh"
#include "common/ptx/tma.cuh"
#include "common/ptx/warp.cuh"
#include "common/ptx/wgmma.cuh"
#include "step07_persistent/hopper_plan.h"

using namespace ladder;

constexpr int kTileM = 128;   // rows of D a CTA computes
constexpr int kMmaK = 16;     // what one MMA of 16-bit inputs takes
constexpr int kTileK = 64;    // K elements in 128 bytes: a row of the swizzle pattern
constexpr int kMmaM = 64;     // rows that an MMA multiplies
constexpr int kAnswers = 3;   // tile numbers on their way: the producer is that far ahead of the epilogue
constexpr int kMmaWarps = 8;  // two warpgroups
constexpr int kThreads = 128 + kMmaWarps * 32;  // and before them the producer's, of which one warp works
constexpr int kRowBytes = 128;                  // of a row of a tile in shared memory
constexpr int kWarpM = 16;                      // rows of an MMA's D that a warp holds
static_assert(kTileM == 2 * kMmaM && kMmaM == 4 * kWarpM);

// Tiles on demand: how many have been handed out beyond the first of each cluster, and how many clusters have ended.
// The last one sets both back for the next launch; launches on two streams at a time would share them.
__device__ uint32_t tiles_taken, clusters_ended;

// The way out for a warp's 16 rows of D, which begin at `first_row` and `first_column`. A stripe of them at a time goes
// from registers into the next of `buffers` buffers, and from there by TMA, while others are filled. TMA leaves out
// what lies outside of D.
template <DType kOut, int kTileN>
__device__ __forceinline__ void store_rows(const CUtensorMap* d_map, int64_t n, int first_row, int first_column,
                                           const float (&accumulators)[kTileN / 2], uint8_t* first_buffer, int& buffer,
                                           int buffers) {
  constexpr int kStripeBytes = stripe_bytes(kTileN, kOut);
  constexpr int kStoreColumns = kStripeBytes / static_cast<int>(bytes_of(kOut));
#pragma unroll
  for (int column = 0; column < kTileN; column += kStoreColumns) {
    if (first_column + column >= n) break;
    uint8_t* const to = first_buffer + buffer * (kMmaWarps * kWarpM * kStripeBytes);
    if (elect_sync()) cp_async_bulk_wait_group_read(buffers - 1);  // the last store from here has read it
    __syncwarp();
    write_swizzled_fragment<kOut, kStoreColumns>(to, accumulators, column);
    fence_proxy_async_shared_cta();  // what this thread wrote is there for TMA to read
    __syncwarp();
    if (elect_sync()) {
      cp_async_bulk_tensor_2d_store(d_map, shared_address(*to), first_column + column, first_row);
      cp_async_bulk_commit_group();
    }
    if (++buffer == buffers) buffer = 0;
  }
}

// Tiles of D, one after the other; a cluster's CTAs have 128 rows each. With one set of accumulators both warpgroups
// multiply the same tile, 64 rows each; with two they take tiles in turn, so that one's way out overlaps the other's
// MMAs. Who does what:
//   role      CTA  threads           waits for               signals
//   setup     all  warps 0 and 1     -                       cluster barrier: mbarriers are ready
//   producer  all  warp 0, one lane  tile_empty[stage]       tile_full[stage] of all: its bytes
//             0                      answer_empty[slot]      answer_full[slot] of all: the next tile's number
//             all  at the end        tile_empty, and of CTA  its CTA: nobody signals its barriers any more
//                                    0 answer_empty of all
//   mma       all  warps 4 to 11     tile_full[stage]        -
//             two sets:              turn[group]             turn[] of the other group: its MMAs are issued
//             some lanes             its own wgmmas          tile_empty[stage] of all: they have read
//   epilogue  all  warps 4 to 11     -                       -
//                  one lane of each  its bulk groups         its warp: a store buffer may be written again
//   all but setup  one lane of each  answer_full[slot]       CTA 0's answer_empty[slot]: the number has been read
template <int kTileN, int kAccumulators, DType kIn, DType kOut>
__global__ void __launch_bounds__(kThreads, 1)
    step07_persistent_hopper(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map,
                             const __grid_constant__ CUtensorMap d_map, void* d, int64_t m, int64_t n, int k_tiles,
                             const __grid_constant__ HopperPlan plan) {
  constexpr OperandTile kATile{Major::k, Swizzle::k128B, AtomOrder::kRowsFirst, 2, kTileM, kTileK};
  constexpr OperandTile kBTile{Major::k, Swizzle::k128B, AtomOrder::kRowsFirst, 2, kTileN, kTileK};
  constexpr int kStageBytes = kATile.bytes() + kBTile.bytes();
  static_assert(kStageBytes == hopper_stage_bytes(kTileN));
  static_assert(kStageBytes % swizzle_period_bytes(Swizzle::k128B) == 0 && kTileN % 32 == 0 && kTileN <= 256);
  static_assert(kTileK * 2 == kATile.span_bytes());    // a box: 128-byte rows, at most 256 of them
  constexpr int kGroups = kAccumulators == 1 ? 2 : 1;  // warpgroups that multiply a tile
  constexpr int kParts = 2 / kGroups;                  // 64 rows each, that a warpgroup has of it
  alignas(1024) extern __shared__ uint8_t ring[];      // the stages, each a tile of A and one of B; then store buffers
  __shared__ uint64_t tile_full[kMostHopperStages];
  __shared__ uint64_t tile_empty[kMostHopperStages];
  __shared__ uint64_t turn[2];
  __shared__ uint64_t answer_full[kAnswers];
  __shared__ uint64_t answer_empty[kAnswers];
  __shared__ uint32_t answer[kAnswers];

  const uint32_t warp = warp_index();
  const int rank = static_cast<int>(cluster_ctarank());
  const int rank_m = plan.across == 1 ? rank : 0, rank_n = plan.across == 1 ? 0 : rank;
  const int tiles = plan.walk.tiles(), clusters = static_cast<int>(gridDim.x) / plan.ctas();
  const int first_tile = static_cast<int>(blockIdx.x) / plan.ctas();

  if (warp == 0 && elect_sync()) {
    prefetch_tensormap(&a_map);
    prefetch_tensormap(&b_map);
    prefetch_tensormap(&d_map);
  }
  if (warp == 1 && elect_sync()) {
    for (int stage = 0; stage < plan.stages; ++stage) {
      mbarrier_init(shared_address(tile_full[stage]), 1);
      mbarrier_init(shared_address(tile_empty[stage]), plan.ctas() * kGroups * 4);  // warps that multiply with it
    }
    for (int group = 0; group < 2; ++group) mbarrier_init(shared_address(turn[group]), 4);
    for (int slot = 0; slot < kAnswers; ++slot) {
      mbarrier_init(shared_address(answer_full[slot]), 1);
      mbarrier_init(shared_address(answer_empty[slot]), plan.ctas() * (1 + kMmaWarps));
    }
    fence_mbarrier_init();
  }
  if (plan.box_m < kTileM) {  // rows of A that no box holds: MMAs read them all the same
    for (int stage = 0; stage < plan.stages; ++stage) {
      uint8_t* const a_tile = ring + stage * kStageBytes;
      for (int at = plan.box_m * kRowBytes + static_cast<int>(threadIdx.x) * 16; at < kTileM * kRowBytes;
           at += kThreads * 16)
        *reinterpret_cast<uint4*>(a_tile + at) = make_uint4(0, 0, 0, 0);
    }
    fence_proxy_async_shared_cta();
  }
  barrier_cluster_arrive();
  barrier_cluster_wait();
  griddepcontrol_launch_dependents();
  griddepcontrol_wait();  // from here on: the launch before has read its matrices and written its D

  const uint32_t a_tiles = shared_address(ring[0]), b_tiles = a_tiles + kATile.bytes();  // of stage 0
  int stage = 0;
  uint32_t parity = 0;

  // Which tile comes after `tile`; none, if it is none of D's. One thread of a role asks, and once for each tile. By
  // plan: as many on as there are clusters. On demand: what the producer of CTA 0 took off the counter.
  int slot = 0;
  uint32_t slot_parity = 0;
  const auto next_tile = [&](int tile) {
    if (!plan.counter) return tile + clusters;
    mbarrier_wait_parity_cluster(shared_address(answer_full[slot]), slot_parity);
    const int next = static_cast<int>(answer[slot]);
    mbarrier_arrive_cluster(mapa_shared_cluster(shared_address(answer_empty[slot]), 0));  // read, before the next one
    if (++slot == kAnswers) slot = 0, slot_parity ^= 1;
    return next;
  };

  if (warp < 4) {
    setmaxnreg_dec<40>();
    if (warp == 0 && elect_sync()) {
      const int box_m = plan.box_m / plan.across, box_n = kTileN / plan.down;
      const auto all = static_cast<uint16_t>((1 << plan.ctas()) - 1);
      const uint32_t loaded_bytes = (plan.box_m + kTileN) * kRowBytes;
      for (int tile = first_tile; tile < tiles; tile = next_tile(tile)) {
        if (plan.counter && rank == 0) {  // take now what next_tile will read
          mbarrier_wait_parity_cluster(shared_address(answer_empty[slot]), slot_parity ^ 1);
          const uint32_t next = static_cast<uint32_t>(clusters) + atomicAdd(&tiles_taken, 1);
          for (int each = 0; each < plan.ctas(); ++each) {
            st_shared_cluster_u32(mapa_shared_cluster(shared_address(answer[slot]), each), next);
            mbarrier_arrive_cluster(mapa_shared_cluster(shared_address(answer_full[slot]), each));
          }
        }
        const TilePlace place = plan.walk.place(tile);
        const int a_row = (place.m * plan.down + rank_m) * kTileM + rank_n * box_m;
        const int b_row = (place.n * plan.across + rank_n) * kTileN + rank_m * box_n;
        for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
          mbarrier_wait_parity(shared_address(tile_empty[stage]), parity ^ 1);  // passes at once in the first round
          const uint32_t full = shared_address(tile_full[stage]);
          const uint32_t a_tile = a_tiles + stage * kStageBytes, b_tile = b_tiles + stage * kStageBytes;
          mbarrier_arrive_expect_tx(full, loaded_bytes);
          if (plan.across == 1) {
            cp_async_bulk_tensor_2d(a_tile, &a_map, full, k_tile * kTileK, a_row);
          } else {
            cp_async_bulk_tensor_2d_multicast(a_tile + rank_n * box_m * kRowBytes, &a_map, full, k_tile * kTileK, a_row,
                                              all);
          }
          if (plan.down == 1) {
            cp_async_bulk_tensor_2d(b_tile, &b_map, full, k_tile * kTileK, b_row);
          } else {
            cp_async_bulk_tensor_2d_multicast(b_tile + rank_m * box_n * kRowBytes, &b_map, full, k_tile * kTileK, b_row,
                                              all);
          }
          if (++stage == plan.stages) stage = 0, parity ^= 1;  // the ring wraps
        }
      }
      for (int last = 0; last < plan.stages; ++last) {  // no CTA leaves while others may still signal its barriers
        mbarrier_wait_parity(shared_address(tile_empty[stage]), parity ^ 1);
        if (++stage == plan.stages) stage = 0, parity ^= 1;
      }
      if (plan.counter && rank == 0) {
        for (int last = 0; last < kAnswers; ++last) {
          mbarrier_wait_parity_cluster(shared_address(answer_empty[slot]), slot_parity ^ 1);
          if (++slot == kAnswers) slot = 0, slot_parity ^= 1;
        }
        __threadfence();
        if (atomicAdd(&clusters_ended, 1) == static_cast<uint32_t>(clusters) - 1) tiles_taken = 0, clusters_ended = 0;
      }
    }
  } else {
    setmaxnreg_inc<232>();
    const uint32_t mma_warp = warp - 4, group = mma_warp / 4, lane = threadIdx.x % 32;
    const uint32_t first_part = kAccumulators == 1 ? group : 0;
    constexpr uint32_t kPartBytes = kATile.plain_offset(kMmaM, 0);
    const uint64_t a_descriptor = wgmma_smem_descriptor(a_tiles + kPartBytes * first_part, kATile.leading_bytes(),
                                                        kATile.stride_bytes(), Swizzle::k128B);
    const uint64_t b_descriptor =
        wgmma_smem_descriptor(b_tiles, kBTile.leading_bytes(), kBTile.stride_bytes(), Swizzle::k128B);
    uint8_t* const first_buffer = ring + plan.stages * kStageBytes + mma_warp * (kWarpM * stripe_bytes(kTileN, kOut));
    int buffer = 0;
    const bool signals = lane < static_cast<uint32_t>(plan.ctas());  // each lane one of the CTAs that load for this one
    const uint32_t empty = mapa_shared_cluster(shared_address(tile_empty[0]), signals ? lane : 0);
    const auto release = [&](int read) {
      if (signals) mbarrier_arrive_remote(empty + read * static_cast<int>(sizeof(uint64_t)));
      __syncwarp();  // wgmma is for all lanes together
    };
    bool mine = kAccumulators == 1 || group == 0;  // two sets: group 0 begins
    uint32_t turn_parity = group ^ 1;
    for (int tile = first_tile; tile < tiles;) {
      int next = 0;
      if (lane == 0) next = next_tile(tile);
      next = __shfl_sync(0xffffffff, next, 0);
      if (mine) {
        if constexpr (kAccumulators == 2) {  // the ring's phases are in order: not before the other's MMAs are issued
          mbarrier_wait_parity(shared_address(turn[group]), turn_parity);
          turn_parity ^= 1;
        }
        float accumulators[kParts][kTileN / 2];
        int last = stage;
        for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
          mbarrier_wait_parity(shared_address(tile_full[stage]), parity);
          const uint64_t begin = static_cast<uint32_t>(stage) * (kStageBytes >> 4);  // descriptors count 16 bytes
          wgmma_fence();
#pragma unroll
          for (int k = 0; k < kTileK; k += kMmaK) {
            const bool accumulate = k_tile > 0 || k > 0;  // the first MMA overwrites what the registers held before
            const uint64_t step = begin + (k * 2 >> 4);
#pragma unroll
            for (int part = 0; part < kParts; ++part) {
              const uint64_t a_part = a_descriptor + step + (part * kPartBytes >> 4);
              wgmma_mma_async<kIn>(accumulators[part], a_part, b_descriptor + step, accumulate);
            }
          }
          wgmma_commit_group();
          if (k_tile > 0) {
            wgmma_wait_group<1>();  // these may run on; those before them have read their stage
            release(last);
          }
          last = stage;
          if (++stage == plan.stages) stage = 0, parity ^= 1;  // the ring wraps
        }
        if constexpr (kAccumulators == 2) {
          if (elect_sync()) mbarrier_arrive(shared_address(turn[group ^ 1]));
        }
        wgmma_wait_group<0>();
        release(last);

        const TilePlace place = plan.walk.place(tile);
        const int first_column = (place.n * plan.across + rank_n) * kTileN;
        const int group_row = (place.m * plan.down + rank_m) * kTileM + static_cast<int>(first_part) * kMmaM;
#pragma unroll
        for (int part = 0; part < kParts; ++part) {
          const int first_row = group_row + part * kMmaM + static_cast<int>(mma_warp % 4) * kWarpM;
          if (plan.buffers == 0) {
            store_fragment<kOut>(d, m, n, first_row, first_column, accumulators[part]);
          } else {
            store_rows<kOut, kTileN>(&d_map, n, first_row, first_column, accumulators[part], first_buffer, buffer,
                                     plan.buffers);
          }
        }
      } else {  // the other group's: on to the stage behind it
        stage += k_tiles;
        parity ^= stage / plan.stages & 1;
        stage %= plan.stages;
      }
      if constexpr (kAccumulators == 2) mine = !mine;
      tile = next;
    }
    if (elect_sync()) cp_async_bulk_wait_group_read<0>();  // the buffers must outlive the reading of them
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

// Each warp stores 16 rows of a stripe. What lies outside of D is not stored.
static CUtensorMap output_map(DType type, void* base, int64_t m, int64_t n, uint32_t stripe_bytes) {
  const uint64_t dims[] = {static_cast<uint64_t>(n), static_cast<uint64_t>(m)};
  const uint64_t strides_bytes[] = {static_cast<uint64_t>(n) * bytes_of(type)};
  const uint32_t box[] = {static_cast<uint32_t>(stripe_bytes / bytes_of(type)), kWarpM};
  return make_tensor_map(type, base, dims, strides_bytes, box,
                         stripe_bytes == 128 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_64B);
}

template <int kTileN, int kAccumulators, DType kIn, DType kOut>
static void launch_typed(const Gemm& gemm, const HopperPlan& plan) {
  const CUtensorMap a_map = operand_map(kIn, gemm.a, gemm.m, gemm.k, static_cast<uint32_t>(plan.box_m / plan.across));
  const CUtensorMap b_map = operand_map(kIn, gemm.b, gemm.n, gemm.k, static_cast<uint32_t>(kTileN / plan.down));
  const CUtensorMap d_map = output_map(kOut, gemm.d, gemm.m, gemm.n, stripe_bytes(kTileN, kOut));
  const int64_t k_tiles = (gemm.k + kTileK - 1) / kTileK;
  const int shared_bytes =
      plan.stages * hopper_stage_bytes(kTileN) + plan.buffers * kTileM * stripe_bytes(kTileN, kOut);
  launch(step07_persistent_hopper<kTileN, kAccumulators, kIn, kOut>,
         {.grid = static_cast<unsigned>(plan.clusters * plan.ctas()),
          .block = kThreads,
          .cluster = static_cast<unsigned>(plan.ctas()),
          .dynamic_shared_bytes = static_cast<size_t>(shared_bytes),
          .stream = gemm.stream,
          .early = plan.early},
         a_map, b_map, d_map, gemm.d, gemm.m, gemm.n, k_tiles, plan);
}

template <int kTileN, int kAccumulators>
static void launch_tile(const Gemm& gemm, const HopperPlan& plan) {
  const bool f16 = gemm.in == DType::f16;
  if (gemm.out == DType::f32) {
    f16 ? launch_typed<kTileN, kAccumulators, DType::f16, DType::f32>(gemm, plan)
        : launch_typed<kTileN, kAccumulators, DType::bf16, DType::f32>(gemm, plan);
  } else {
    f16 ? launch_typed<kTileN, kAccumulators, DType::f16, DType::f16>(gemm, plan)
        : launch_typed<kTileN, kAccumulators, DType::bf16, DType::bf16>(gemm, plan);
  }
}

// Of the device, with as much shared memory as makes a CTA the only one on its SM.
static int clusters_of(unsigned ctas) {
  return resident_clusters(
      step07_persistent_hopper<256, 1, DType::f16, DType::f16>,
      {.grid = ctas, .block = kThreads, .cluster = ctas, .dynamic_shared_bytes = size_t{116} * 1024});
}

HopperPlan plan_step07_persistent_hopper(const Gemm& gemm, const HopperSettings& settings) {
  int device = 0, l2_bytes = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&l2_bytes, cudaDevAttrL2CacheSize, device), "asking for the size of L2");
  return make_hopper_plan(settings, gemm.m, gemm.n, gemm.k, gemm.out, {clusters_of(1), clusters_of(2), l2_bytes});
}

void launch_step07_persistent_hopper(const Gemm& gemm, const HopperPlan& plan) {
  if (plan.accumulators == 2) return launch_tile<128, 2>(gemm, plan);
  if (plan.tile_n == 256) return launch_tile<256, 1>(gemm, plan);
  if (plan.tile_n == 224) return launch_tile<224, 1>(gemm, plan);
  if (plan.tile_n == 192) return launch_tile<192, 1>(gemm, plan);
  if (plan.tile_n == 160) return launch_tile<160, 1>(gemm, plan);
  if (plan.tile_n == 128) return launch_tile<128, 1>(gemm, plan);
  if (plan.tile_n == 64) return launch_tile<64, 1>(gemm, plan);
  throw std::logic_error("step07: a plan for tiles that there is no kernel for");
}
