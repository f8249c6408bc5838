// A CTA arrives on its peer's barrier, which the peer may not have initialised yet.
//
// Symptom: A hang now and then, when the CTAs do not start at the same time: the arrive came first, and the init that
//   followed wiped it out.
// Why: A CTA barrier after mbarrier.init is one for the threads of that CTA. The other CTAs of the cluster have not
//   met it; without a cluster barrier they may not even know that it runs.
// Fix: A cluster barrier after mbarrier.init and fence.mbarrier_init, before anybody uses a barrier of another CTA.
// Rule: PTX ISA, mbarrier.init; barrier.cluster
// Theme: clusters
// Expect: barrier-invalid, barrier-init of may_begin of CTA 1
#include "common/ptx/cluster.cuh"
#include "common/ptx/fence.cuh"
#include "common/ptx/shared.cuh"
#include "tests/museum/exhibit.cuh"
#include "tests/museum/exhibit.h"

using namespace ladder;

constexpr unsigned kThreads = 128;

// CTA 0 of a pair tells CTA 1 that it may begin. Who does what:
//   role     CTA   threads    waits for   signals
//   starter  0     thread 0   -           may_begin of CTA 1
//   worker   1     all        may_begin   -
//   end      both  all        -           cluster barrier: no CTA leaves while the peer may still arrive on it
template <bool kBroken>
__global__ void __launch_bounds__(kThreads) start_worker(uint32_t* out) {
  __shared__ uint64_t may_begin;
  const uint32_t rank = cluster_ctarank();
  if (rank == 1) museum::linger(5000);  // CTA 1 comes late
  if (threadIdx.x == 0) {
    mbarrier_init(shared_address(may_begin), 1);
    fence_mbarrier_init();
  }
  // The mistake: only the own CTA has waited for the init.
  if constexpr (kBroken) __syncthreads();
  if constexpr (!kBroken) {
    barrier_cluster_arrive();
    barrier_cluster_wait();
  }

  // reported:
  if (rank == 0 && threadIdx.x == 0) mbarrier_arrive_cluster(mapa_shared_cluster(shared_address(may_begin), 1));
  __syncwarp();
  if (rank == 1) {
    museum::wait_parity_cluster(shared_address(may_begin), 0);
    out[blockIdx.x / 2 * kThreads + threadIdx.x] = threadIdx.x;
  }
  barrier_cluster_arrive();
  barrier_cluster_wait();
}

int main(int argc, char** argv) {
  constexpr unsigned kCtas = 8;
  museum::Exhibit exhibit(argc, argv);
  std::vector<uint32_t> expected;
  for (unsigned i = 0; i < kCtas / 2 * kThreads; ++i) expected.push_back(i % kThreads);
  exhibit.launches(exhibit.broken ? start_worker<true> : start_worker<false>,
                   {.ctas = kCtas, .threads = kThreads, .cluster = 2}, exhibit.output<uint32_t>(expected.size()));
  return exhibit.compare(expected);
}
