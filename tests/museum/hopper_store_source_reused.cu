// The source of a TMA store is written again while TMA may still be reading it.
//
// Symptom: Words of a later round in the output of an earlier one, scattered, in some runs only.
// Why: cp.async.bulk only issues the store. The source has been read when the group that holds the copy has, and only
//   cp.async.bulk.wait_group.read in the thread that committed the group tells.
// Fix: The storing thread waits with cp.async.bulk.wait_group.read 0 before the barrier after which the others write.
// Rule: PTX ISA, cp.async.bulk.wait_group
// Theme: stages and buffers
// Expect: overwrite-too-early of buffer
#include "common/ptx/bulk.cuh"
#include "common/ptx/fence.cuh"
#include "common/ptx/shared.cuh"
#include "tests/museum/exhibit.h"

using namespace ladder;

constexpr int kThreads = 128, kWords = 1024, kRounds = 4;

// Each CTA writes kRounds tiles through one buffer. Who does what:
//   role      threads   waits for                   signals
//   writers   all       CTA barrier                 CTA barrier: the tile is written
//   store     thread 0  its bulk group, reading     CTA barrier: the buffer may be written again
template <bool kBroken>
__global__ void __launch_bounds__(kThreads) store_tiles(const uint32_t* in, uint32_t* out) {
  __shared__ alignas(128) uint32_t buffer[kWords];
  for (int round = 0; round < kRounds; ++round) {
    const int first = (static_cast<int>(blockIdx.x) * kRounds + round) * kWords;
    for (int i = static_cast<int>(threadIdx.x); i < kWords; i += kThreads) buffer[i] = in[first + i] + 1;  // reported
    fence_proxy_async_shared_cta();
    __syncthreads();
    if (threadIdx.x == 0) {
      cp_async_bulk_store(out + first, shared_address(buffer), sizeof buffer);  // reported
      cp_async_bulk_commit_group();
      // The mistake: nobody waits until the store has read the buffer.
      if constexpr (!kBroken) cp_async_bulk_wait_group_read<0>();
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) cp_async_bulk_wait_group<0>();
}

int main(int argc, char** argv) {
  constexpr unsigned kCtas = 8;
  museum::Exhibit exhibit(argc, argv);
  const std::vector<uint32_t> in = museum::numbers(kCtas * kRounds * kWords);
  std::vector<uint32_t> expected;
  for (const uint32_t word : in) expected.push_back(word + 1);
  exhibit.launches(exhibit.broken ? store_tiles<true> : store_tiles<false>, {.ctas = kCtas, .threads = kThreads},
                   exhibit.memory(in), exhibit.output<uint32_t>(in.size()));
  return exhibit.compare(expected);
}
