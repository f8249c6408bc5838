// The way out of the registers: consecutive accumulators of one row become elements of D.
#pragma once

#include <cstdint>

#include "common/harness/dtype.h"
#include "common/layout/swizzle.h"
#include "common/ptx/convert.cuh"
#include "common/ptx/global.cuh"

namespace ladder {

/// Two f32 accumulators in the 16-bit output type, `low` in bits 0-15.
template <DType kOut>
__device__ __forceinline__ uint32_t packed_pair(float low, float high) {
  static_assert(kOut == DType::f16 || kOut == DType::bf16);
  if constexpr (kOut == DType::f16) return cvt_rn_f16x2_f32(high, low);
  return cvt_rn_bf16x2_f32(high, low);
}

/// kColumns accumulators as words of the output type.
template <DType kOut, int kColumns>
struct PackedRow {
  static constexpr int kElementBytes = static_cast<int>(bytes_of(kOut));
  static constexpr int kWords = kColumns * kElementBytes / 4;
  static_assert(kWords % 4 == 0);
  uint32_t words[kWords];

  __device__ __forceinline__ explicit PackedRow(const float (&accumulators)[kColumns]) {
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      if constexpr (kOut == DType::f32) {
        words[i] = __float_as_uint(accumulators[i]);
      } else {
        words[i] = packed_pair<kOut>(accumulators[2 * i], accumulators[2 * i + 1]);
      }
    }
  }
  /// 16 bytes, from word `i` on.
  __device__ __forceinline__ uint4 chunk(int i) const {
    return make_uint4(words[i], words[i + 1], words[i + 2], words[i + 3]);
  }
  /// Element by element, the first `columns`.
  __device__ __forceinline__ void store_elements(char* destination, int64_t columns) const {
#pragma unroll
    for (int column = 0; column < kColumns; ++column) {
      if (column < columns) {
        if constexpr (kOut == DType::f32) {
          reinterpret_cast<uint32_t*>(destination)[column] = words[column];
        } else {
          const uint32_t shift = column % 2 * 16;
          reinterpret_cast<uint16_t*>(destination)[column] = static_cast<uint16_t>(words[column / 2] >> shift);
        }
      }
    }
  }
};

/// Stores accumulators[0 .. columns) (all of them if `columns` >= kColumns) to consecutive elements of type kOut from
/// element `first` of `d` on. A whole group on a 16-byte boundary goes out in 16-byte stores; a group that D's right
/// edge clips, or that starts elsewhere because of D's pitch, goes out element by element.
template <DType kOut, int kColumns>
__device__ __forceinline__ void store_row(void* d, int64_t first, const float (&accumulators)[kColumns],
                                          int64_t columns) {
  const PackedRow<kOut, kColumns> row(accumulators);
  char* const destination = static_cast<char*>(d) + first * row.kElementBytes;
  if (columns >= kColumns && reinterpret_cast<uintptr_t>(destination) % 16 == 0) {
#pragma unroll
    for (int i = 0; i < row.kWords; i += 4) reinterpret_cast<uint4*>(destination)[i / 4] = row.chunk(i);
  } else {
    row.store_elements(destination, columns);
  }
}

/// The same in 32-byte stores, which want a 32-byte boundary; a whole group on another one goes out as store_row does.
template <DType kOut, int kColumns>
__device__ __forceinline__ void store_row_wide(void* d, int64_t first, const float (&accumulators)[kColumns],
                                               int64_t columns) {
  const PackedRow<kOut, kColumns> row(accumulators);
  static_assert(row.kWords % 8 == 0);
  char* const destination = static_cast<char*>(d) + first * row.kElementBytes;
  if (columns >= kColumns && reinterpret_cast<uintptr_t>(destination) % 32 == 0) {
#pragma unroll
    for (int i = 0; i < row.kWords; i += 8) st_global_v8_b32(destination + i * 4, row.chunk(i), row.chunk(i + 4));
  } else {
    store_row<kOut>(d, first, accumulators, columns);
  }
}

/// Writes a row of at most 128 bytes into a tile of such rows, 128 bytes apart, in shared memory, as TMA's 128-byte
/// swizzle keeps it: chunk c of row r lies where chunk c ^ (r % 8) would. `tile`: aligned to 1024 bytes. Eight lanes
/// that hold successive rows write to eight different chunks, so all banks work.
template <DType kOut, int kColumns>
__device__ __forceinline__ void write_swizzled_row(uint8_t* tile, uint32_t row_index,
                                                   const float (&accumulators)[kColumns]) {
  const PackedRow<kOut, kColumns> row(accumulators);
  constexpr uint32_t kPitchBytes = swizzle_span_bytes(Swizzle::k128B);
  static_assert(row.kWords * 4 <= kPitchBytes);
#pragma unroll
  for (uint32_t i = 0; i < row.kWords; i += 4) {
    const uint32_t place = swizzle_address(Swizzle::k128B, row_index * kPitchBytes + i * 4);
    *reinterpret_cast<uint4*>(tile + place) = row.chunk(i);
  }
}

}  // namespace ladder
