// A flag says that a tile is in global memory, and the bulk store has only read its source.
//
// Symptom: The CTA that sees the flag gets some words from before, now and then; almost never on an idle GPU.
// Why: wait_group.read returns when the source may be overwritten. That the bytes have reached global memory, and that
//   this thread may speak for them, is what wait_group without .read says.
// Fix: cp.async.bulk.wait_group 0 before the flag is released.
// Rule: PTX ISA, cp.async.bulk.wait_group, .read
// Theme: stages and buffers
// Expect: read-too-early, overwrite-too-early of global memory
#include "common/ptx/bulk.cuh"
#include "common/ptx/fence.cuh"
#include "common/ptx/shared.cuh"
#include "tests/museum/exhibit.cuh"
#include "tests/museum/exhibit.h"

using namespace ladder;

constexpr unsigned kThreads = 128, kWords = 1024;

// CTA 2i makes a tile, CTA 2i + 1 adds one to it: a cluster, so that both run. Who does what:
//   role      CTA    threads   waits for               signals
//   maker     2i     all       -                       CTA barrier: the tile is in shared memory
//   store     2i     thread 0  its bulk group          tile_ready[i], in global memory
//   user      2i+1   all       tile_ready[i]           -
template <bool kBroken>
__global__ void __launch_bounds__(kThreads)
    pass_on(const uint32_t* in, uint32_t* between, uint32_t* tile_ready, uint32_t* out) {
  __shared__ alignas(128) uint32_t tile[kWords];
  const unsigned pair = blockIdx.x / 2, first = pair * kWords;
  if (blockIdx.x % 2 == 0) {
    for (unsigned i = threadIdx.x; i < kWords; i += kThreads) tile[i] = in[first + i] + 1;
    fence_proxy_async_shared_cta();
    __syncthreads();
    if (threadIdx.x == 0) {
      cp_async_bulk_store(between + first, shared_address(tile), sizeof tile);  // reported
      cp_async_bulk_commit_group();
      // The mistake: the source has been read, more has not been waited for.
      if constexpr (kBroken) cp_async_bulk_wait_group_read<0>();
      if constexpr (!kBroken) cp_async_bulk_wait_group<0>();
      museum::st_release_gpu(&tile_ready[pair], 1);
      museum::linger(5000);  // with its next tile
    }
  } else {
    museum::wait_for_flag(&tile_ready[pair]);
    for (unsigned i = threadIdx.x; i < kWords; i += kThreads) out[first + i] = between[first + i] + 1;  // reported
  }
}

int main(int argc, char** argv) {
  constexpr unsigned kPairs = 4;
  museum::Exhibit exhibit(argc, argv);
  const std::vector<uint32_t> in = museum::numbers(kPairs * kWords);
  std::vector<uint32_t> expected;
  for (const uint32_t word : in) expected.push_back(word + 2);
  exhibit.launches(exhibit.broken ? pass_on<true> : pass_on<false>,
                   {.ctas = 2 * kPairs, .threads = kThreads, .cluster = 2}, exhibit.memory(in),
                   exhibit.memory(std::vector<uint32_t>(in.size(), 0)),
                   exhibit.memory(std::vector<uint32_t>(kPairs, 0)), exhibit.output<uint32_t>(in.size()));
  return exhibit.compare(expected);
}
