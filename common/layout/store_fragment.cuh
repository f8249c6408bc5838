// The way out of a warpgroup's registers: what wgmma leaves there becomes elements of D.
#pragma once

#include <cstdint>

#include "common/layout/store_row.cuh"
#include "common/ptx/shared.cuh"
#include "common/ptx/stmatrix.cuh"

namespace ladder {

/// Stores a warp's 16 rows of a wgmma's D, which begin at `first_row` and `first_column` of the m x n matrix `d`: two
/// neighbouring elements a thread at a time, four threads to 8 columns. What lies outside of D is left out; n % 8 == 0.
/// Registers: see common/ptx/wgmma.cuh.
template <DType kOut, int kAccumulators>
__device__ __forceinline__ void store_fragment(void* d, int64_t m, int64_t n, int64_t first_row, int64_t first_column,
                                               const float (&accumulators)[kAccumulators]) {
  const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
  for (int i = 0; i < kAccumulators; i += 2) {
    const int64_t row = first_row + lane / 4 + 8 * (i / 2 % 2);
    const int64_t group = first_column + 8 * (i / 4);
    if (row >= m || group >= n) continue;
    char* const destination = static_cast<char*>(d) + (row * n + group + 2 * (lane % 4)) * int64_t{bytes_of(kOut)};
    if constexpr (kOut == DType::f32) {
      *reinterpret_cast<float2*>(destination) = make_float2(accumulators[i], accumulators[i + 1]);
    } else {
      *reinterpret_cast<uint32_t*>(destination) = packed_pair<kOut>(accumulators[i], accumulators[i + 1]);
    }
  }
}

/// Writes kColumns columns from `column` on of a warp's 16 rows into a tile of such rows in shared memory. A row is 128
/// or 64 bytes, and its chunks of 16 lie as TMA's swizzle of so many bytes keeps them. `tile`: aligned to 1024 bytes,
/// or 512. 16-bit elements go by stmatrix, four 8 x 8 matrices at a time, f32 by twos.
template <DType kOut, int kColumns, int kAccumulators>
__device__ __forceinline__ void write_swizzled_fragment(uint8_t* tile, const float (&accumulators)[kAccumulators],
                                                        int column) {
  constexpr int kPitchBytes = kColumns * static_cast<int>(bytes_of(kOut));
  static_assert(kPitchBytes == 128 || kPitchBytes == 64);
  constexpr Swizzle kSwizzle = kPitchBytes == 128 ? Swizzle::k128B : Swizzle::k64B;
  const int lane = static_cast<int>(threadIdx.x % 32), first = column / 8 * 4;
  if constexpr (kOut == DType::f32) {
#pragma unroll
    for (int i = 0; i < kColumns / 2; i += 2) {
      const int row = lane / 4 + 8 * (i / 2 % 2), at = 8 * (i / 4) + 2 * (lane % 4);
      const uint32_t place = swizzle_address(kSwizzle, row * kPitchBytes + at * 4);
      *reinterpret_cast<float2*>(tile + place) = make_float2(accumulators[first + i], accumulators[first + i + 1]);
    }
  } else {
    // Lane l names row l % 8 of matrix l / 8: the upper and lower 8 rows of 8 columns, then of the next 8.
    const int row = lane % 16;
#pragma unroll
    for (int i = 0; i < kColumns / 2; i += 8) {
      const uint32_t place = swizzle_address(kSwizzle, row * kPitchBytes + (8 * (i / 4) + lane / 16 * 8) * 2);
      const float* const from = accumulators + first + i;
      stmatrix_x4(shared_address(*(tile + place)), packed_pair<kOut>(from[0], from[1]),
                  packed_pair<kOut>(from[2], from[3]), packed_pair<kOut>(from[4], from[5]),
                  packed_pair<kOut>(from[6], from[7]));
    }
  }
}

}  // namespace ladder
