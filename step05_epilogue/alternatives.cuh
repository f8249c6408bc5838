// The two epilogues beside TMA stores: threads store their row of D themselves.
#pragma once

#include <cstdint>

#include "common/layout/store_row.cuh"
#include "common/ptx/tmem.cuh"
#include "step05_epilogue/epilogue.h"

namespace ladder {

/// The way out for a warp's 32 rows of the tile, which begin at D's `first_row` and `first_column`: each thread stores
/// its lane of tensor memory, kTileN columns from `accumulator` on, as far as D goes. Whole warps.
template <DType kOut, int kTileN>
__device__ __forceinline__ void store_directly(void* d, int64_t m, int64_t n, int64_t first_row, int64_t first_column,
                                               uint32_t accumulator, Epilogue epilogue) {
  const int64_t row = first_row + threadIdx.x % 32;
  if (epilogue == Epilogue::two_register_sets) {
    constexpr int kColumns = 64;
    float values[2][kColumns];
    tcgen05_ld_32x32b_x64(values[0], accumulator);
#pragma unroll
    for (int column = 0; column < kTileN; column += kColumns) {
      const int now = column / kColumns % 2;
      __syncwarp();
      tcgen05_wait_ld();
      if (column + kColumns < kTileN) tcgen05_ld_32x32b_x64(values[1 - now], accumulator + column + kColumns);
      if (row < m) store_row<kOut>(d, row * n + first_column + column, values[now], n - first_column - column);
    }
    tcgen05_wait_ld();
  } else {
    constexpr int kColumns = 32;
    for (int column = 0; column < kTileN && first_column + column < n; column += kColumns) {
      float values[kColumns];
      __syncwarp();
      tcgen05_ld_32x32b_x32(values, accumulator + column);
      tcgen05_wait_ld();
      if (row < m) store_row_wide<kOut>(d, row * n + first_column + column, values, n - first_column - column);
    }
  }
}

}  // namespace ladder
