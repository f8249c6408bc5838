// The epilogue gives the accumulator back before its loads of tensor memory are complete.
//
// Symptom: Values of the next tile in this one, in some rows, in some runs.
// Why: tcgen05.ld is asynchronous. Until tcgen05.wait::ld it may still be reading, and the MMAs of the next tile,
//   which the arrive lets go, write to the same columns.
// Fix: tcgen05.wait::ld, tcgen05.fence::before_thread_sync, then the arrive.
// Rule: PTX ISA, tcgen05.wait; tcgen05 memory consistency model
// Theme: tensor core results and tensor memory
// Expect: overwrite-too-early of columns 0 to 31
#include "common/ptx/bulk.cuh"
#include "common/ptx/fence.cuh"
#include "tests/museum/blackwell.cuh"
#include "tests/museum/exhibit.cuh"
#include "tests/museum/exhibit.h"
#include "tests/museum/operands.h"

using namespace ladder;
using namespace museum;

constexpr unsigned kEpilogueThreads = 128, kThreads = kEpilogueThreads + 32, kTiles = 2;

// kTiles tiles of D, side by side, through one accumulator. Who does what:
//   role        threads           waits for                      signals
//   load, MMA   warp 4, one lane  tile_full, accumulator_empty   tile_full: the bytes;
//                                                                accumulator_full: the MMAs of the tile are complete
//   epilogue    warps 0-3         accumulator_full               accumulator_empty: its loads are complete
template <bool kBroken>
__global__ void __launch_bounds__(kThreads) multiply(const uint32_t* a, const uint32_t* b, float* out) {
  __shared__ alignas(128) uint32_t a_tile[kABytes / 4];
  __shared__ alignas(128) uint32_t b_tiles[kTiles][kBBytes / 4];
  __shared__ uint64_t tile_full;
  __shared__ uint64_t accumulator_full;
  __shared__ uint64_t accumulator_empty;
  __shared__ uint32_t tmem_address;
  const uint32_t warp = warp_index();
  if (warp == 0) {
    tcgen05_alloc<1>(shared_address(tmem_address), kTmemColumns);
    tcgen05_relinquish_alloc_permit<1>();
  }
  if (warp == 1 && elect_sync()) {
    mbarrier_init(shared_address(tile_full), 1);
    mbarrier_init(shared_address(accumulator_full), 1);
    mbarrier_init(shared_address(accumulator_empty), kEpilogueThreads);
    fence_mbarrier_init();
  }
  tcgen05_fence_before_thread_sync();
  __syncthreads();
  tcgen05_fence_after_thread_sync();
  const uint32_t accumulator = tmem_address;

  if (warp == 4 && elect_sync()) {
    mbarrier_arrive_expect_tx(shared_address(tile_full), kABytes + kTiles * kBBytes);
    cp_async_bulk_load(shared_address(a_tile), a, kABytes, shared_address(tile_full));
    cp_async_bulk_load(shared_address(b_tiles), b, kTiles * kBBytes, shared_address(tile_full));
    wait_parity(shared_address(tile_full), 0);
    for (unsigned tile = 0; tile < kTiles; ++tile) {
      wait_parity(shared_address(accumulator_empty), (tile & 1) ^ 1);  // passes at once for the first tile
      tcgen05_fence_after_thread_sync();
      issue_mmas(accumulator, a_descriptor(a_tile), b_descriptor(b_tiles[tile]), false);  // reported
      tcgen05_commit<1>(shared_address(accumulator_full));
    }
  } else if (warp < 4) {
    for (unsigned tile = 0; tile < kTiles; ++tile) {
      wait_parity(shared_address(accumulator_full), tile & 1);
      tcgen05_fence_after_thread_sync();
      __syncwarp();
      float values[kTileN];
      tcgen05_ld_32x32b_x32(values, accumulator + (warp * 32 << 16));  // reported
      // The mistake: the accumulator is given back under loads that may not have read it yet.
      if constexpr (!kBroken) tcgen05_wait_ld();
      tcgen05_fence_before_thread_sync();
      mbarrier_arrive(shared_address(accumulator_empty));
      linger(3000);
      for (unsigned column = 0; column < kTileN; ++column) {
        out[(tile * kTileM + threadIdx.x) * kTileN + column] = values[column];
      }
    }
    tcgen05_wait_ld();  // tensor memory must not be freed under the last loads
  }

  tcgen05_fence_before_thread_sync();
  __syncthreads();
  if (warp == 0) {
    tcgen05_fence_after_thread_sync();
    tcgen05_dealloc<1>(accumulator, kTmemColumns);
  }
}

int main(int argc, char** argv) {
  Exhibit exhibit(argc, argv);
  const Operand a(kATile, 1), b[kTiles] = {{kBTile, 2}, {kBTile, 3}};
  std::vector<uint32_t> b_images;
  std::vector<float> expected;
  for (const Operand& each : b) {
    const std::vector<uint32_t> image = each.image();
    const std::vector<float> d = product(a, each);
    b_images.insert(b_images.end(), image.begin(), image.end());
    expected.insert(expected.end(), d.begin(), d.end());
  }
  exhibit.launches(exhibit.broken ? multiply<true> : multiply<false>, {.threads = kThreads}, exhibit.memory(a.image()),
                   exhibit.memory(b_images), exhibit.output<float>(expected.size()));
  return exhibit.compare(expected);
}
