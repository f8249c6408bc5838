// step04's study on Hopper: the twin's kernel with its layout, its K tile, its ring, its roles and its cluster as
// parameters, and with parts left out. D (m x n) = A (m x k) B (n x k)^T for f16, fp32 accumulation.
#include "common/harness/launch.h"
#include "common/layout/smem_descriptor.h"
#include "common/layout/store_fragment.cuh"
#include "common/ptx/cluster.cuh"
#include "common/ptx/fence.cuh"
#include "common/ptx/mbarrier.cuh"
#include "common/ptx/shared.cuh"
#include "common/ptx/tma.cuh"
#include "common/ptx/warp.cuh"
#include "common/ptx/wgmma.cuh"
#include "step04_swizzle/study_walk.h"

using namespace ladder;

constexpr int kTileM = kStudyTileM, kTileN = kStudyTileN;
constexpr int kGroupM = 64;  // rows that a warpgroup multiplies
constexpr int kMmaWarps = kTileM / kGroupM * 4;
constexpr int kMostMmas = kMostTileK / kMmaK;
// The producer has a warpgroup of its own, or none.
constexpr int first_mma_warp(Roles roles) {
  return roles == Roles::apart ? 4 : 0;
}
constexpr int threads(Roles roles) {
  return (first_mma_warp(roles) + kMmaWarps) * 32;
}
// The ring, and 3 KB for barriers and alignment.
static_assert(kRingBytes + 3072 <= 227 * 1024 && kMostStages * 2 * 8 <= 1024);

// The MMAs of a K tile, each with its own 16 of K.
template <int kMmas>
__device__ __forceinline__ void multiply(float (&accumulators)[kTileN / 2], const uint64_t* a, const uint64_t* b,
                                         uint64_t step, bool accumulate) {
  wgmma_fence();
#pragma unroll
  for (int mma = 0; mma < kMmas; ++mma) {  // the first one overwrites what the registers held before
    wgmma_mma_async<DType::f16>(accumulators, a[mma] + step, b[mma] + step, accumulate || mma > 0);
  }
  wgmma_commit_group();
  wgmma_wait_group<0>();
}

// One tile of D per CTA. Who does what, as in the twin of step04, or with roles together as in that of step02; a part
// has only the roles it needs:
//   role      threads           waits for                        signals
//   setup     warp 1, one lane  -                                cluster barrier: mbarriers are ready
//   producer  warp 0, one lane  tile_empty[stage]                tile_full[stage] of all that share: the bytes
//             at the end        tile_empty of all                its CTA: nobody signals its barriers any more
//   mma       the MMA warps     tile_full[stage], its wgmmas     -
//             some lanes        -                                tile_empty[stage] of all that share
//   sums      first MMA warp    tile_full[stage]                 the same: the loads alone
//   epilogue  the MMA warps     -                                -
template <Part kPart, Roles kRoles, DType kOut>
__global__ void __launch_bounds__(threads(kRoles), 1)
    swizzle_study_hopper(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map,
                         const __grid_constant__ Walk walk, ClusterShape cluster, void* d, int64_t m, int64_t n,
                         int k_tiles, uint32_t* checksums, bool verify) {
  alignas(1024) extern __shared__ uint8_t ring[];  // stages times a tile of A and, behind it, one of B
  __shared__ uint64_t tile_full[kMostStages];
  __shared__ uint64_t tile_empty[kMostStages];
  constexpr int kFirstMmaWarp = first_mma_warp(kRoles);
  constexpr int kReaders = kPart == Part::load ? 1 : kMmaWarps;  // warps that free a stage

  const uint32_t warp = warp_index();
  const int rank = static_cast<int>(cluster_ctarank()), rank_m = rank % cluster.m, rank_n = rank / cluster.m;
  const int m_clusters = static_cast<int>((m + kTileM * cluster.m - 1) / (kTileM * cluster.m));
  const int cluster_index = static_cast<int>(blockIdx.x) / (cluster.m * cluster.n);
  const int tile_m = cluster_index % m_clusters * cluster.m + rank_m;
  const int tile_n = cluster_index / m_clusters * cluster.n + rank_n;
  const uint16_t a_mask = cluster.a_mask(rank_m, rank_n), b_mask = cluster.b_mask(rank_m, rank_n);
  const uint32_t sharers = a_mask | b_mask;  // those that load for this CTA, and for which it loads
  const bool alone = cluster.m * cluster.n == 1;

  if (warp == 1 && elect_sync()) {
    prefetch_tensormap(&a_map);
    prefetch_tensormap(&b_map);
    for (int stage = 0; stage < walk.stages; ++stage) {
      mbarrier_init(shared_address(tile_full[stage]), 1);
      mbarrier_init(shared_address(tile_empty[stage]), __popc(sharers) * kReaders);
    }
    fence_mbarrier_init();
  }
  barrier_cluster_arrive();
  barrier_cluster_wait();

  const uint32_t a_tiles = shared_address(ring[0]), b_tiles = a_tiles + walk.a_bytes;  // of stage 0
  const int a_row = tile_m * kTileM + rank_n * walk.a_slice, b_row = tile_n * kTileN + rank_m * walk.b_slice;
  const auto load = [&](int k_tile, int stage) {
    const uint32_t full = shared_address(tile_full[stage]);
    uint32_t a_box = a_tiles + stage * walk.stage_bytes, b_box = b_tiles + stage * walk.stage_bytes;
    mbarrier_arrive_expect_tx(full, walk.stage_bytes);
    if (walk.three_dimensions) {
      const int k_column = k_tile * (walk.tile_k / 8);
      cp_async_bulk_tensor_3d(a_box, &a_map, full, 0, a_row, k_column);
      cp_async_bulk_tensor_3d(b_box, &b_map, full, 0, b_row, k_column);
      return;
    }
    a_box += rank_n * walk.a_slice_bytes, b_box += rank_m * walk.b_slice_bytes;
    for (int box = 0; box < walk.boxes; ++box) {
      const int k = k_tile * walk.tile_k + box * walk.box_k;
      if (alone) {
        cp_async_bulk_tensor_2d(a_box, &a_map, full, k, a_row);
        cp_async_bulk_tensor_2d(b_box, &b_map, full, k, b_row);
      } else {
        cp_async_bulk_tensor_2d_multicast(a_box, &a_map, full, k, a_row, a_mask);
        cp_async_bulk_tensor_2d_multicast(b_box, &b_map, full, k, b_row, b_mask);
      }
      a_box += walk.a_box_bytes, b_box += walk.b_box_bytes;
    }
  };
  // Sums are read by ordinary loads, which the scope of a signal between CTAs must cover; wgmma and TMA are async.
  const auto wait_for_empty = [&](int stage, uint32_t parity) {
    const uint32_t empty = shared_address(tile_empty[stage]);
    kPart == Part::load ? mbarrier_wait_parity_cluster(empty, parity) : mbarrier_wait_parity(empty, parity);
  };
  // One lane for each CTA that loads for this one.
  const auto release = [&](int stage) {
    const uint32_t lane = threadIdx.x % 32, empty = shared_address(tile_empty[stage]);
    if (alone) {
      if (elect_sync()) mbarrier_arrive(empty);
    } else if (sharers >> lane & 1) {
      const uint32_t theirs = mapa_shared_cluster(empty, lane);
      kPart == Part::load ? mbarrier_arrive_cluster(theirs) : mbarrier_arrive_remote(theirs);
    }
    __syncwarp();
  };

  int stage = 0;
  uint32_t parity = 0;
  if (kRoles == Roles::apart && warp < kFirstMmaWarp) {
    if (kPart != Part::epilogue && warp == 0 && elect_sync()) {
      // The MMAs alone get one filling of the ring.
      const int loads = kPart == Part::mma && k_tiles > walk.stages ? walk.stages : k_tiles;
      for (int k_tile = 0; k_tile < loads; ++k_tile) {
        wait_for_empty(stage, parity ^ 1);  // passes at once in the first round
        load(k_tile, stage);
        if (++stage == walk.stages) stage = 0, parity ^= 1;  // the ring wraps
      }
      if (!alone) {
        for (int last = 0; last < walk.stages; ++last) {  // no CTA leaves while others may still signal its barriers
          wait_for_empty(stage, parity ^ 1);
          if (++stage == walk.stages) stage = 0, parity ^= 1;
        }
      }
    }
    return;
  }

  const uint32_t mma_warp = warp - kFirstMmaWarp, group = mma_warp / 4;
  if (kPart == Part::load) {
    if (mma_warp != 0) return;
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
      release(stage);
      if (++stage == walk.stages) stage = 0, parity ^= 1;  // the ring wraps
    }
    const int m_tiles = static_cast<int>((m + kTileM - 1) / kTileM);
    const bool inside = tile_m < m_tiles && int64_t{tile_n} * kTileN < n;
    if (verify && inside) checksums[(tile_n * m_tiles + tile_m) * kChecksumLanes + lane] = sum;
    return;
  }

  const int64_t first_row = int64_t{tile_m} * kTileM + mma_warp * 16, first_column = int64_t{tile_n} * kTileN;
  float accumulators[kTileN / 2];
  if (kPart == Part::epilogue) {
    // What a wgmma would leave in these registers: see common/ptx/wgmma.cuh.
    const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
    for (int i = 0; i < kTileN / 2; ++i) {
      accumulators[i] =
          epilogue_pattern(first_row + lane / 4 + 8 * (i / 2 % 2), first_column + 8 * (i / 4) + 2 * (lane % 4) + i % 2);
    }
  } else {
    if (kRoles == Roles::together && warp == 0 && elect_sync()) {
      for (int k_tile = 0; k_tile < walk.stages && k_tile < k_tiles; ++k_tile) load(k_tile, k_tile);
    }
    __syncwarp();  // wgmma is for all lanes together
    // A warpgroup multiplies its own 64 rows of A, which begin 64 rows of a box further on. Descriptors of stage 0:
    uint64_t a_descriptors[kMostMmas], b_descriptors[kMostMmas];
#pragma unroll
    for (int mma = 0; mma < kMostMmas; ++mma) {
      const uint32_t a_start = a_tiles + group * (walk.a_box_bytes / 2) + walk.a_steps[mma];
      a_descriptors[mma] = walk.a_descriptor + smem_descriptor_fields(a_start, 0, 0);
      b_descriptors[mma] = walk.b_descriptor + smem_descriptor_fields(b_tiles + walk.b_steps[mma], 0, 0);
    }
    for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
      if (kPart == Part::full || k_tile < walk.stages) {
        mbarrier_wait_parity(shared_address(tile_full[stage]), parity);
      }
      const uint64_t step = stage * walk.stage_bytes >> 4;
      switch (walk.mmas) {  // the MMAs of a stage follow each other without a branch between them
        case 1:
          multiply<1>(accumulators, a_descriptors, b_descriptors, step, k_tile > 0);
          break;
        case 2:
          multiply<2>(accumulators, a_descriptors, b_descriptors, step, k_tile > 0);
          break;
        default:
          multiply<kMostMmas>(accumulators, a_descriptors, b_descriptors, step, k_tile > 0);
      }
      release(stage);
      if (kRoles == Roles::together && k_tile + walk.stages < k_tiles) {
        if (warp == 0 && elect_sync()) {
          wait_for_empty(stage, parity);
          load(k_tile + walk.stages, stage);
        }
        __syncwarp();
      }
      if (++stage == walk.stages) stage = 0, parity ^= 1;  // the ring wraps
    }
  }
  store_fragment<kOut>(d, m, n, first_row, first_column, accumulators);
}

template <Part kPart, Roles kRoles>
static void launch_part(const Configuration& configuration, const Gemm& gemm, uint32_t* checksums, bool verify) {
  const auto kernel = gemm.out == DType::f32 ? swizzle_study_hopper<kPart, kRoles, DType::f32>
                                             : swizzle_study_hopper<kPart, kRoles, DType::f16>;
  const ClusterShape& cluster = configuration.cluster;
  const Walk walk = walk_of(configuration, Family::hopper);
  const int64_t m_clusters = (gemm.m + kTileM * cluster.m - 1) / (kTileM * cluster.m);
  const int64_t n_clusters = (gemm.n + kTileN * cluster.n - 1) / (kTileN * cluster.n);
  const dim3 ctas(static_cast<unsigned>(cluster.m * cluster.n));
  const int64_t k_tiles = (gemm.k + configuration.tile_k - 1) / configuration.tile_k;
  launch(kernel,
         {.grid = dim3(static_cast<unsigned>(m_clusters * n_clusters) * ctas.x),
          .block = static_cast<unsigned>(threads(kRoles)),
          .cluster = ctas,
          .dynamic_shared_bytes = static_cast<size_t>(configuration.in_flight_bytes()),
          .stream = gemm.stream},
         study_map(configuration, gemm.a, gemm.m, gemm.k, walk.a_slice),
         study_map(configuration, gemm.b, gemm.n, gemm.k, walk.b_slice), walk, cluster, gemm.d, gemm.m, gemm.n, k_tiles,
         checksums, verify);
}

void launch_study_hopper(const Configuration& configuration, Part part, const Gemm& gemm, uint32_t* checksums,
                         bool verify) {
  if (configuration.roles == Roles::together) {
    return launch_part<Part::full, Roles::together>(configuration, gemm, checksums, verify);
  }
  switch (part) {
    case Part::full:
      return launch_part<Part::full, Roles::apart>(configuration, gemm, checksums, verify);
    case Part::load:
      return launch_part<Part::load, Roles::apart>(configuration, gemm, checksums, verify);
    case Part::mma:
      return launch_part<Part::mma, Roles::apart>(configuration, gemm, checksums, verify);
    case Part::epilogue:
      return launch_part<Part::epilogue, Roles::apart>(configuration, gemm, checksums, verify);
  }
}
