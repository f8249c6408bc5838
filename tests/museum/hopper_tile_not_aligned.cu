// A tile is swizzled by offsets inside it, and does not start where the swizzle pattern does.
//
// Symptom: Rows arrive complete, with their 16-byte chunks in another order: always the same one, until something else
//   in shared memory changes its size.
// Why: TMA (and every MMA) swizzles by the absolute shared-memory address. The offset inside the tile gives the same
//   only if the tile starts at a multiple of 1024 bytes.
// Fix: alignas(1024) for a tile of the 128-byte swizzle (512 for 64 bytes, 256 for 32).
// Rule: PTX ISA, tensor swizzling modes; shared-memory alignment of cp.async.bulk.tensor
// Theme: contents and layouts
// Expect: swizzle-alignment of memory + 0x200
#include "common/layout/swizzle.h"
#include "common/ptx/bulk.cuh"
#include "common/ptx/fence.cuh"
#include "common/ptx/shared.cuh"
#include "common/ptx/tma.cuh"
#include "tests/museum/exhibit.h"

using namespace ladder;

constexpr unsigned kThreads = 128, kRows = 64, kColumns = 32, kWords = kRows * kColumns;

// Each CTA stores a tile of 128-byte rows. Who does what:
//   role      threads   waits for       signals
//   writers   all       -               CTA barrier: the tile is written
//   store     thread 0  CTA barrier     -
template <bool kBroken>
__global__ void __launch_bounds__(kThreads) store_tile(const uint32_t* in, const __grid_constant__ CUtensorMap map) {
  __shared__ alignas(1024) uint32_t memory[kWords + 256];
  // The mistake: something of 512 bytes has been put in front of the tile.
  uint32_t* const tile = memory + (kBroken ? 128 : 0);
  const unsigned first_row = blockIdx.x * kRows;
  for (unsigned i = threadIdx.x; i < kWords; i += kThreads) {
    tile[swizzle_address(Swizzle::k128B, i * 4) / 4] = in[first_row * kColumns + i];
  }
  fence_proxy_async_shared_cta();
  __syncthreads();
  if (threadIdx.x == 0) {
    cp_async_bulk_tensor_2d_store(&map, shared_address(*tile), 0, static_cast<int>(first_row));  // reported
    cp_async_bulk_commit_group();
    cp_async_bulk_wait_group<0>();
  }
}

int main(int argc, char** argv) {
  constexpr unsigned kCtas = 2;
  museum::Exhibit exhibit(argc, argv);
  const std::vector<uint32_t> in = museum::numbers(kCtas * kWords);
  const CUtensorMap map = exhibit.tensor_map(exhibit.output<uint32_t>(in.size()), kCtas * kRows, kColumns, kRows,
                                             kColumns, CU_TENSOR_MAP_SWIZZLE_128B);
  exhibit.launches(exhibit.broken ? store_tile<true> : store_tile<false>, {.ctas = kCtas, .threads = kThreads},
                   exhibit.memory(in), map);
  return exhibit.compare(in);
}
