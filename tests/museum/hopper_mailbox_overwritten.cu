// The next tile's number is overwritten before all threads have read the last one.
//
// Symptom: Some tiles are computed by part of the threads only, others twice; the more so the longer a tile takes.
// Why: The thread that fetches the next number has read the last one itself. The other threads may not have got there.
// Fix: A second __syncthreads(), between the loads and the next store into the mailbox.
// Rule: PTX ISA, bar.sync; memory consistency model, morally strong operations
// Theme: waits and phases
// Expect: overwrite-too-early of next_tile
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
    __syncthreads();
    if (threadIdx.x >= 32) museum::linger(2000);
    const uint32_t tile = *static_cast<volatile uint32_t*>(&next_tile);  // reported
    if (tile < kTiles) atomicAdd(&out[tile * kThreads + threadIdx.x], tile);
    // The mistake: thread 0 goes on to the next number while others have yet to read this one.
    if constexpr (!kBroken) __syncthreads();
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
