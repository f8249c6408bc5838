// The way out of tensor memory beside TMA stores: threads store their row of D themselves.
#pragma once

#include <cstdint>

#include "common/layout/store_row.cuh"
#include "common/ptx/mbarrier.cuh"
#include "common/ptx/tcgen05.cuh"
#include "common/ptx/tmem.cuh"
#include "common/ptx/warp.cuh"

namespace ladder {

/// The way out for a warp's 32 rows of the tile, which begin at D's `first_row` and `first_column`: each thread stores
/// `columns` of its lane of tensor memory, 32 bytes at a time where D's rows allow it. `accumulator_empty`
/// (shared::cluster address) is signalled as soon as the last columns are in registers. Whole warps.
template <DType kOut>
__device__ __forceinline__ void store_directly(void* d, int64_t m, int64_t n, int64_t first_row, int first_column,
                                               int columns, uint32_t accumulator, uint32_t accumulator_empty) {
  constexpr int kColumns = 32;
  const int64_t row = first_row + threadIdx.x % 32;
  for (int column = 0; column < columns; column += kColumns) {
    float values[kColumns];
    __syncwarp();
    tcgen05_ld_32x32b(values, accumulator + column);
    tcgen05_wait_ld();
    if (column + kColumns >= columns) {
      tcgen05_fence_before_thread_sync();
      __syncwarp();
      if (elect_sync()) mbarrier_arrive_relaxed_cluster(accumulator_empty);
    }
    if (row < m) store_row_wide<kOut>(d, row * n + first_column + column, values, columns - column);
  }
}

}  // namespace ladder
