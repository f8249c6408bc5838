// A multicast refills a stage that the issuer's own CTA has read, and its peer has not.
//
// Symptom: Rank 0 is always right; rank 1 gets words of the next tile, the more the further it lags.
// Why: The copy writes to both CTAs, so both have a say in when the stage is empty. The issuer asks its own readers
//   only.
// Fix: Readers of every CTA arrive on a barrier of the issuer's, by mapa and a remote arrive, and it waits for all.
// Rule: PTX ISA, cp.async.bulk.tensor, .multicast::cluster; mbarrier.arrive, .shared::cluster
// Theme: clusters
// Expect: overwrite-too-early of buffer of CTA 1
// Also: write-write, barrier-bytes
#include "common/ptx/cluster.cuh"
#include "common/ptx/fence.cuh"
#include "common/ptx/shared.cuh"
#include "common/ptx/tma.cuh"
#include "tests/museum/exhibit.cuh"
#include "tests/museum/exhibit.h"

using namespace ladder;

constexpr unsigned kThreads = 128, kRows = 32, kColumns = 32, kWords = kRows * kColumns, kTiles = 2;

// Both CTAs of a pair copy the same kTiles tiles, which CTA 0 loads for both through one buffer. Who does what:
//   role      CTA   threads   waits for                     signals
//   expect    both  thread 0  -                             tile_full, of its own CTA: the bytes that will come
//   producer  0     thread 0  read_by[0], read_by[1]        tile_full of both: the bytes
//   readers   both  all       tile_full                     read_by[own rank] of CTA 0
//   end       both  all       cluster barrier               - (no CTA leaves while the peer may still write to it)
template <bool kBroken>
__global__ void __launch_bounds__(kThreads) copy_tiles(const __grid_constant__ CUtensorMap map, uint32_t* out) {
  __shared__ alignas(128) uint32_t buffer[kWords];
  __shared__ uint64_t tile_full;
  __shared__ uint64_t read_by[2];
  const uint32_t rank = cluster_ctarank();
  if (threadIdx.x == 0) {
    mbarrier_init(shared_address(tile_full), 1);
    for (uint64_t& barrier : read_by) mbarrier_init(shared_address(barrier), kThreads);
    fence_mbarrier_init();
  }
  barrier_cluster_arrive();
  barrier_cluster_wait();

  for (unsigned tile = 0; tile < kTiles; ++tile) {
    const uint32_t parity = tile % 2;
    if (threadIdx.x == 0) {
      mbarrier_arrive_expect_tx(shared_address(tile_full), sizeof buffer);
      if (rank == 0) {
        museum::wait_parity_cluster(shared_address(read_by[0]), parity ^ 1);  // passes at once for the first tile
        // The mistake: the copy goes to the peer too, and the peer is not asked.
        if constexpr (!kBroken) museum::wait_parity_cluster(shared_address(read_by[1]), parity ^ 1);
        // reported:
        cp_async_bulk_tensor_2d_multicast(shared_address(buffer), &map, shared_address(tile_full), 0,
                                          static_cast<int>(tile * kRows), 0b11);
      }
    }
    museum::wait_parity(shared_address(tile_full), parity);
    if (rank == 1) museum::linger(5000);
    // reported:
    for (unsigned i = threadIdx.x; i < kWords; i += kThreads) out[(rank * kTiles + tile) * kWords + i] = buffer[i];
    mbarrier_arrive_cluster(mapa_shared_cluster(shared_address(read_by[rank]), 0));
  }
  barrier_cluster_arrive();
  barrier_cluster_wait();
}

int main(int argc, char** argv) {
  museum::Exhibit exhibit(argc, argv);
  const std::vector<uint32_t> in = museum::numbers(kTiles * kWords);
  std::vector<uint32_t> expected = in;
  expected.insert(expected.end(), in.begin(), in.end());
  exhibit.launches(exhibit.broken ? copy_tiles<true> : copy_tiles<false>,
                   {.ctas = 2, .threads = kThreads, .cluster = 2},
                   exhibit.tensor_map(exhibit.memory(in), kTiles * kRows, kColumns, kRows, kColumns),
                   exhibit.output<uint32_t>(expected.size()));
  return exhibit.compare(expected);
}
