// The way out of the registers: consecutive accumulators of one row become elements of D.
#pragma once

#include <cstdint>

#include "common/harness/dtype.h"
#include "common/ptx/convert.cuh"

namespace ladder {

/// Two f32 accumulators in the 16-bit output type, `low` in bits 0-15.
template <DType kOut>
__device__ __forceinline__ uint32_t packed_pair(float low, float high) {
  static_assert(kOut == DType::f16 || kOut == DType::bf16);
  if constexpr (kOut == DType::f16) return cvt_rn_f16x2_f32(high, low);
  return cvt_rn_bf16x2_f32(high, low);
}

/// Stores accumulators[0 .. columns) (all of them if `columns` >= kColumns) to consecutive elements of type kOut from
/// element `first` of `d` on. A whole group on a 16-byte boundary goes out in 16-byte stores; a group that D's right
/// edge clips, or that starts elsewhere because of D's pitch, goes out element by element.
template <DType kOut, int kColumns>
__device__ __forceinline__ void store_row(void* d, int64_t first, const float (&accumulators)[kColumns],
                                          int64_t columns) {
  constexpr int kElementBytes = static_cast<int>(bytes_of(kOut));
  constexpr int kWords = kColumns * kElementBytes / 4;
  static_assert(kWords % 4 == 0);
  char* const destination = static_cast<char*>(d) + first * kElementBytes;
  uint32_t words[kWords];
#pragma unroll
  for (int i = 0; i < kWords; ++i) {
    if constexpr (kOut == DType::f32) {
      words[i] = __float_as_uint(accumulators[i]);
    } else {
      words[i] = packed_pair<kOut>(accumulators[2 * i], accumulators[2 * i + 1]);
    }
  }
  if (columns >= kColumns && reinterpret_cast<uintptr_t>(destination) % 16 == 0) {
#pragma unroll
    for (int i = 0; i < kWords; i += 4) {
      reinterpret_cast<uint4*>(destination)[i / 4] = make_uint4(words[i], words[i + 1], words[i + 2], words[i + 3]);
    }
  } else {
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
}

}  // namespace ladder
