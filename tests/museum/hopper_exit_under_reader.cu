// A CTA ends while its peer still reads its shared memory.
//
// Symptom: The launch fails with an address error now and then; or the peer reads what the next CTA on that SM has put
//   there.
// Why: Shared memory of a CTA exists as long as the CTA does. Its peer's loads do not keep it alive.
// Fix: A cluster barrier at the end: nobody leaves before all have read.
// Rule: PTX ISA, state spaces, shared::cluster; barrier.cluster
// Theme: clusters
// Expect: peer-gone of CTA 0
#include "common/ptx/cluster.cuh"
#include "common/ptx/shared.cuh"
#include "tests/museum/exhibit.cuh"
#include "tests/museum/exhibit.h"
#include "tests/museum/remote.cuh"

using namespace ladder;

constexpr unsigned kThreads = 128, kWords = 1024;

// CTA 1 of a pair reads the tile of CTA 0. Who does what:
//   role     CTA   threads   waits for                     signals
//   owner    0     all       cluster barrier, at the end   cluster barrier: the tile is written
//   reader   1     all       cluster barrier               cluster barrier, at the end: the tile has been read
template <bool kBroken>
__global__ void __launch_bounds__(kThreads) read_of_peer(const uint32_t* in, uint32_t* out) {
  __shared__ uint32_t tile[kWords];
  const uint32_t rank = cluster_ctarank();
  const unsigned first = blockIdx.x / 2 * kWords;
  if (rank == 0) {
    for (unsigned i = threadIdx.x; i < kWords; i += kThreads) tile[i] = in[first + i];
  }
  barrier_cluster_arrive();
  barrier_cluster_wait();

  if (rank == 1) {
    museum::linger(5000);
    for (unsigned i = threadIdx.x; i < kWords; i += kThreads) {
      out[first + i] = museum::ld_shared_cluster(mapa_shared_cluster(shared_address(tile[i]), 0));  // reported
    }
  }
  // The mistake: CTA 0 has nothing left to do, and leaves.
  if constexpr (!kBroken) {
    barrier_cluster_arrive();
    barrier_cluster_wait();
  }
}

int main(int argc, char** argv) {
  constexpr unsigned kCtas = 8;
  museum::Exhibit exhibit(argc, argv);
  const std::vector<uint32_t> in = museum::numbers(kCtas / 2 * kWords);
  exhibit.launches(exhibit.broken ? read_of_peer<true> : read_of_peer<false>,
                   {.ctas = kCtas, .threads = kThreads, .cluster = 2}, exhibit.memory(in),
                   exhibit.output<uint32_t>(in.size()));
  return exhibit.compare(in);
}
