// Threads read the next tile's number before the thread that fetches it has written it.
//
// Symptom: Some tiles are computed twice, some not at all; which ones changes from run to run.
// Why: One thread asks the counter and puts the number into shared memory. That the others see it takes a barrier
//   between the store and the loads.
// Fix: __syncthreads() after the store into the mailbox.
// Rule: PTX ISA, bar.sync; memory consistency model, morally strong operations
// Theme: waits and phases
// Expect: read-too-early of next_tile
#include "tests/museum/exhibit.cuh"
#include "tests/museum/exhibit.h"

constexpr unsigned kThreads = 128, kCtas = 4, kRounds = 8, kTiles = kCtas * kRounds;

// Each CTA takes kRounds tiles, whichever are next. Who does what:
//   role       threads   waits for     signals
//   scheduler  thread 0  CTA barrier   CTA barrier: next_tile is written
//   workers    all       CTA barrier   CTA barrier: next_tile has been read
template <bool kBroken>
__global__ void __launch_bounds__(kThreads) take_tiles(uint32_t* counter, uint32_t* out) {
  __shared__ uint32_t next_tile;
  for (unsigned round = 0; round < kRounds; ++round) {
    if (threadIdx.x == 0) next_tile = atomicAdd(counter, 1);  // reported
    // The mistake: the other threads do not wait for the number.
    if constexpr (!kBroken) __syncthreads();
    const uint32_t tile = *static_cast<volatile uint32_t*>(&next_tile);  // reported
    if (tile < kTiles) atomicAdd(&out[tile * kThreads + threadIdx.x], tile);
    __syncthreads();
  }
}

int main(int argc, char** argv) {
  museum::Exhibit exhibit(argc, argv);
  std::vector<uint32_t> expected;
  for (unsigned i = 0; i < kTiles * kThreads; ++i) expected.push_back(0xCDCDCDCD + i / kThreads);
  exhibit.launches(exhibit.broken ? take_tiles<true> : take_tiles<false>, {.ctas = kCtas, .threads = kThreads},
                   exhibit.memory(std::vector<uint32_t>(1, 0)), exhibit.output<uint32_t>(expected.size()));
  return exhibit.compare(expected);
}
