// The MMA of a CTA pair begins when the leader's half of the operands is there.
//
// Symptom: The half of D that the peer's rows of A belong to is wrong, and columns everywhere: the more the peer lags.
// Why: tcgen05.mma.cta_group::2 reads the shared memory of both CTAs. A CTA barrier is one of the leader's threads;
//   that the peer has written its half, they cannot know.
// Fix: A cluster barrier (or an mbarrier of the leader's, on which the peer arrives) between the writes of both and
//   the MMA.
// Rule: PTX ISA, tcgen05.mma, .cta_group::2; barrier.cluster
// Theme: clusters
// Expect: read-too-early of a_tile
#include "common/ptx/cluster.cuh"
#include "common/ptx/fence.cuh"
#include "tests/museum/blackwell.cuh"
#include "tests/museum/exhibit.cuh"
#include "tests/museum/exhibit.h"
#include "tests/museum/operands.h"

using namespace ladder;
using namespace museum;

constexpr unsigned kThreads = 128;

// A pair computes 256 x kTileN: each CTA holds half of the rows of A, of B and of D.
constexpr OperandTile kHalfOfB{Major::k, Swizzle::kNone, AtomOrder::kRowsFirst, 2, kTileN / 2, kTileK};
constexpr unsigned kHalfOfBBytes = kHalfOfB.bytes(), kHalfOfBStep = 2 * kHalfOfB.k_step_bytes();
constexpr InstructionDescriptor kPairMma{MmaInput::f16, MmaInput::f16, MmaAccumulator::f32, 2 * kTileM, kTileN};

// One tile of D per pair. Who does what:
//   role        CTA    threads           waits for          signals
//   writers     both   all               -                  cluster barrier: both halves of the operands are written
//   MMA         0      warp 0, one lane  cluster barrier    accumulator_full of both: the MMAs are complete
//   epilogue    both   all               accumulator_full   cluster barrier: both may free tensor memory, and end
template <bool kBroken>
__global__ void __launch_bounds__(kThreads) multiply(const uint32_t* a, const uint32_t* b, float* out) {
  __shared__ alignas(128) uint32_t a_tile[kABytes / 4];
  __shared__ alignas(128) uint32_t b_tile[kHalfOfBBytes / 4];
  __shared__ uint64_t accumulator_full;
  __shared__ uint32_t tmem_address;
  const uint32_t warp = warp_index(), rank = cluster_ctarank();
  barrier_cluster_arrive();  // both CTAs of a pair must run before either allocates for the pair
  barrier_cluster_wait();
  if (warp == 0) {
    tcgen05_alloc<2>(shared_address(tmem_address), kTmemColumns);
    tcgen05_relinquish_alloc_permit<2>();
  }
  if (warp == 1 && elect_sync()) {
    mbarrier_init(shared_address(accumulator_full), 1);
    fence_mbarrier_init();
  }
  tcgen05_fence_before_thread_sync();
  barrier_cluster_arrive();
  barrier_cluster_wait();
  tcgen05_fence_after_thread_sync();
  const uint32_t accumulator = tmem_address;

  if (rank == 1) linger(3000);  // the peer lags
  for (unsigned i = threadIdx.x; i < kABytes / 4; i += kThreads) a_tile[i] = a[rank * kABytes / 4 + i];  // reported
  for (unsigned i = threadIdx.x; i < kHalfOfBBytes / 4; i += kThreads) b_tile[i] = b[rank * kHalfOfBBytes / 4 + i];
  fence_proxy_async_shared_cta();
  // The mistake: the leader does not wait for the peer.
  if constexpr (kBroken) __syncthreads();
  if constexpr (!kBroken) {
    barrier_cluster_arrive();
    barrier_cluster_wait();
  }
  if (rank == 0 && warp == 0 && elect_sync()) {
    const uint64_t half_of_b = tcgen05_smem_descriptor(shared_address(b_tile), kHalfOfB.leading_bytes(),
                                                       kHalfOfB.stride_bytes(), Swizzle::kNone);
    for (unsigned step = 0; step < kTileK / 16; ++step) {
      // reported:
      tcgen05_mma_f16<2>(accumulator, a_descriptor(a_tile) + step * (kAStep >> 4),
                         half_of_b + step * (kHalfOfBStep >> 4), kPairMma.word(), step > 0);
    }
    tcgen05_commit_multicast<2>(shared_address(accumulator_full), 0b11);
  }
  wait_parity(shared_address(accumulator_full), 0);
  tcgen05_fence_after_thread_sync();
  __syncwarp();
  store_row(out, rank * kTileM + threadIdx.x, accumulator);

  tcgen05_fence_before_thread_sync();
  barrier_cluster_arrive();
  barrier_cluster_wait();
  if (warp == 0) {
    tcgen05_fence_after_thread_sync();
    tcgen05_dealloc<2>(accumulator, kTmemColumns);
  }
}

int main(int argc, char** argv) {
  Exhibit exhibit(argc, argv);
  const Operand a[2] = {{kATile, 1}, {kATile, 2}}, b[2] = {{kHalfOfB, 3}, {kHalfOfB, 4}};
  std::vector<uint32_t> a_images, b_images;
  std::vector<float> expected(2 * kTileM * kTileN);
  for (unsigned i = 0; i < 2; ++i) {
    const std::vector<uint32_t> a_image = a[i].image(), b_image = b[i].image();
    a_images.insert(a_images.end(), a_image.begin(), a_image.end());
    b_images.insert(b_images.end(), b_image.begin(), b_image.end());
    for (unsigned j = 0; j < 2; ++j) {
      const std::vector<float> d = product(a[i], b[j]);  // kTileM x kTileN / 2
      for (unsigned at = 0; at < d.size(); ++at) {
        const unsigned row = i * kTileM + at / (kTileN / 2), column = j * (kTileN / 2) + at % (kTileN / 2);
        expected[row * kTileN + column] = d[at];
      }
    }
  }
  exhibit.launches(exhibit.broken ? multiply<true> : multiply<false>, {.ctas = 2, .threads = kThreads, .cluster = 2},
                   exhibit.memory(a_images), exhibit.memory(b_images), exhibit.output<float>(expected.size()));
  return exhibit.compare(expected);
}
