// A stage is released by a plain arrive as soon as the MMAs that read it have been issued.
//
// Symptom: A wrong product, the more the faster the loads are: the MMAs find the next K tile in the stage.
// Why: The arrive says what its thread has done: issue. The MMAs read their operands later.
// Fix: tcgen05.commit onto tile_empty: it arrives when the MMAs before it are complete.
// Rule: PTX ISA, tcgen05.commit; tcgen05 memory consistency model
// Theme: stages and buffers
// Expect: overwrite-too-early of a_tile, b_tile
#include "common/ptx/bulk.cuh"
#include "common/ptx/fence.cuh"
#include "tests/museum/blackwell.cuh"
#include "tests/museum/exhibit.cuh"
#include "tests/museum/exhibit.h"
#include "tests/museum/operands.h"

using namespace ladder;
using namespace museum;

constexpr unsigned kThreads = 128, kStages = 2, kKTiles = 6;

// One tile of D, kKTiles K tiles through a ring of kStages buffers. Who does what:
//   role        threads           waits for           signals
//   producer    warp 0, one lane  tile_empty[stage]   tile_full[stage]: the bytes of the K tile
//   MMA         warp 1, one lane  tile_full[stage]    tile_empty[stage]: the MMAs have read it;
//                                                     accumulator_full: all MMAs are complete
//   epilogue    all               accumulator_full    CTA barrier: tensor memory may be freed
template <bool kBroken>
__global__ void __launch_bounds__(kThreads) multiply(const uint32_t* a, const uint32_t* b, float* out) {
  __shared__ alignas(128) uint32_t a_tile[kStages][kABytes / 4];
  __shared__ alignas(128) uint32_t b_tile[kStages][kBBytes / 4];
  __shared__ uint64_t tile_full[kStages];
  __shared__ uint64_t tile_empty[kStages];
  __shared__ uint64_t accumulator_full;
  __shared__ uint32_t tmem_address;
  const uint32_t warp = warp_index();
  if (warp == 0) {
    tcgen05_alloc<1>(shared_address(tmem_address), kTmemColumns);
    tcgen05_relinquish_alloc_permit<1>();
  }
  if (warp == 1 && elect_sync()) {
    for (unsigned stage = 0; stage < kStages; ++stage) {
      mbarrier_init(shared_address(tile_full[stage]), 1);
      mbarrier_init(shared_address(tile_empty[stage]), 1);
    }
    mbarrier_init(shared_address(accumulator_full), 1);
    fence_mbarrier_init();
  }
  tcgen05_fence_before_thread_sync();
  __syncthreads();
  tcgen05_fence_after_thread_sync();
  const uint32_t accumulator = tmem_address;

  unsigned stage = 0;
  uint32_t parity = 0;
  if (warp == 0 && elect_sync()) {
    for (unsigned k_tile = 0; k_tile < kKTiles; ++k_tile) {
      wait_parity(shared_address(tile_empty[stage]), parity ^ 1);  // passes at once in the first round
      const uint32_t full = shared_address(tile_full[stage]);
      mbarrier_arrive_expect_tx(full, kABytes + kBBytes);
      cp_async_bulk_load(shared_address(a_tile[stage]), a + k_tile * kABytes / 4, kABytes, full);  // reported
      cp_async_bulk_load(shared_address(b_tile[stage]), b + k_tile * kBBytes / 4, kBBytes, full);  // reported
      if (++stage == kStages) stage = 0, parity ^= 1;
    }
  }
  if (warp == 1 && elect_sync()) {
    for (unsigned k_tile = 0; k_tile < kKTiles; ++k_tile) {
      wait_parity(shared_address(tile_full[stage]), parity);
      tcgen05_fence_after_thread_sync();
      issue_mmas(accumulator, a_descriptor(a_tile[stage]), b_descriptor(b_tile[stage]), k_tile > 0);  // reported
      // The mistake: the MMAs have been issued; they may still have to read the stage.
      if constexpr (kBroken) mbarrier_arrive(shared_address(tile_empty[stage]));
      if constexpr (!kBroken) tcgen05_commit<1>(shared_address(tile_empty[stage]));
      if (++stage == kStages) stage = 0, parity ^= 1;
    }
    tcgen05_commit<1>(shared_address(accumulator_full));
  }
  wait_parity(shared_address(accumulator_full), 0);
  tcgen05_fence_after_thread_sync();
  __syncwarp();
  store_row(out, threadIdx.x, accumulator);

  tcgen05_fence_before_thread_sync();
  __syncthreads();
  if (warp == 0) {
    tcgen05_fence_after_thread_sync();
    tcgen05_dealloc<1>(accumulator, kTmemColumns);
  }
}

int main(int argc, char** argv) {
  Exhibit exhibit(argc, argv);
  std::vector<uint32_t> a_images, b_images;
  std::vector<float> expected(kTileM * kTileN, 0);
  for (unsigned k_tile = 0; k_tile < kKTiles; ++k_tile) {
    const Operand a(kATile, 2 * k_tile), b(kBTile, 2 * k_tile + 1);
    const std::vector<uint32_t> a_image = a.image(), b_image = b.image();
    const std::vector<float> d = product(a, b);
    a_images.insert(a_images.end(), a_image.begin(), a_image.end());
    b_images.insert(b_images.end(), b_image.begin(), b_image.end());
    for (size_t i = 0; i < d.size(); ++i) expected[i] += d[i];
  }
  exhibit.launches(exhibit.broken ? multiply<true> : multiply<false>, {.threads = kThreads}, exhibit.memory(a_images),
                   exhibit.memory(b_images), exhibit.output<float>(expected.size()));
  return exhibit.compare(expected);
}
