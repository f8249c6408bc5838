// Words stored into a peer's shared memory are announced by an arrive whose scope is the own CTA.
//
// Symptom: Usually none. Under load a few words that the peer reads are old ones.
// Why: mbarrier.arrive releases to the threads of the CTA unless it says otherwise (.release.cta is the default). A
//   reader in another CTA may see the arrive before it sees the stores.
// Fix: mbarrier.arrive.release.cluster, and on the other side a wait with .acquire.cluster.
// Rule: PTX ISA, mbarrier.arrive, .scope; memory consistency model, release and acquire patterns
// Theme: clusters
// Expect: weak-order of mailbox
#include "common/ptx/cluster.cuh"
#include "common/ptx/fence.cuh"
#include "common/ptx/shared.cuh"
#include "tests/museum/exhibit.cuh"
#include "tests/museum/exhibit.h"
#include "tests/museum/remote.cuh"

using namespace ladder;

constexpr unsigned kThreads = 128, kWords = 1024;

// The CTAs of a pair hand each other a tile. Who does what:
//   role      threads   waits for                       signals
//   writers   all       cluster barrier                 the peer's mailbox_full
//   readers   all       mailbox_full                    -
//   end       all       cluster barrier                 - (no CTA leaves while the peer may still write to it)
template <bool kBroken>
__global__ void __launch_bounds__(kThreads) exchange(const uint32_t* in, uint32_t* out) {
  __shared__ uint32_t mailbox[kWords];
  __shared__ uint64_t mailbox_full;
  if (threadIdx.x == 0) {
    mbarrier_init(shared_address(mailbox_full), kThreads);
    fence_mbarrier_init();
  }
  barrier_cluster_arrive();
  barrier_cluster_wait();

  const uint32_t peer = cluster_ctarank() ^ 1;
  const uint32_t peer_full = mapa_shared_cluster(shared_address(mailbox_full), peer);
  for (unsigned i = threadIdx.x; i < kWords; i += kThreads) {
    // reported:
    museum::st_shared_cluster(mapa_shared_cluster(shared_address(mailbox[i]), peer), in[blockIdx.x * kWords + i]);
  }
  // The mistake: the stores are released to this CTA, which does not read them.
  if constexpr (kBroken) museum::mbarrier_arrive_remote_cta_scope(peer_full);
  if constexpr (!kBroken) mbarrier_arrive_cluster(peer_full);

  museum::wait_parity_cluster(shared_address(mailbox_full), 0);
  for (unsigned i = threadIdx.x; i < kWords; i += kThreads) out[blockIdx.x * kWords + i] = mailbox[i];  // reported
  barrier_cluster_arrive();
  barrier_cluster_wait();
}

int main(int argc, char** argv) {
  constexpr unsigned kCtas = 8;
  museum::Exhibit exhibit(argc, argv);
  const std::vector<uint32_t> in = museum::numbers(kCtas * kWords);
  std::vector<uint32_t> expected;
  for (size_t i = 0; i < in.size(); ++i) expected.push_back(in[i ^ kWords]);
  exhibit.launches(exhibit.broken ? exchange<true> : exchange<false>,
                   {.ctas = kCtas, .threads = kThreads, .cluster = 2}, exhibit.memory(in),
                   exhibit.output<uint32_t>(in.size()));
  return exhibit.compare(expected);
}
