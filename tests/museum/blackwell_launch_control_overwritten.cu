// The next answer of cluster launch control is asked for before all threads have read the last one.
//
// Symptom: Tiles that part of the threads leave out or compute twice, or a hang: threads of one CTA go different ways.
// Why: The answer is written through the async proxy into memory that all threads read. The thread that asks again has
//   read it itself; the others may not have got there.
// Fix: A CTA barrier between everybody's reads and the next try_cancel.
// Rule: PTX ISA, clusterlaunchcontrol.try_cancel; async proxy
// Theme: stages and buffers
// Expect: overwrite-too-early, warp-sync of answer
// Also: assertion
#include "common/ptx/fence.cuh"
#include "common/ptx/launch_control.cuh"
#include "common/ptx/shared.cuh"
#include "tests/museum/exhibit.cuh"
#include "tests/museum/exhibit.h"

using namespace ladder;

constexpr unsigned kThreads = 128, kTiles = 180, kTries = 256;  // few tries: many CTAs may hang at once

// A CTA per tile, and each that runs takes over tiles of those that have not started. Who does what:
//   role       threads   waits for       signals
//   scheduler  thread 0  CTA barrier     answer_full: the bytes of the next answer
//   workers    all       answer_full     CTA barrier: the answer has been read
template <bool kBroken>
__global__ void __launch_bounds__(kThreads) count_tiles(uint32_t* out) {
  __shared__ alignas(16) uint32_t answer[4];
  __shared__ uint64_t answer_full;
  if (threadIdx.x == 0) {
    mbarrier_init(shared_address(answer_full), 1);
    fence_mbarrier_init();
  }
  __syncthreads();

  uint32_t tile = blockIdx.x, parity = 0;
  for (bool taken = true; taken; parity ^= 1) {
    if (threadIdx.x == 0) {
      mbarrier_arrive_expect_tx(shared_address(answer_full), sizeof answer);
      clusterlaunchcontrol_try_cancel(shared_address(answer), shared_address(answer_full));  // reported
    }
    atomicAdd(&out[tile * kThreads + threadIdx.x], 1);
    museum::wait_parity(shared_address(answer_full), parity, kTries);
    if (threadIdx.x >= 32) museum::linger(2000);
    taken = clusterlaunchcontrol_query_cancel(shared_address(answer), tile);  // reported
    fence_proxy_async_shared_cta();
    // The mistake: thread 0 goes on to the next answer while others have yet to read this one.
    if constexpr (!kBroken) __syncthreads();
  }
}

int main(int argc, char** argv) {
  constexpr unsigned kBytes = 180 * 1024;  // so that an SM holds one CTA, and some are left to take over
  museum::Exhibit exhibit(argc, argv);
  const std::vector<uint32_t> expected(kTiles * kThreads, 0xCDCDCDCD + 1);
  exhibit.launches(exhibit.broken ? count_tiles<true> : count_tiles<false>,
                   {.ctas = kTiles, .threads = kThreads, .dynamic_shared_bytes = kBytes},
                   exhibit.output<uint32_t>(expected.size()));
  return exhibit.compare(expected);
}
