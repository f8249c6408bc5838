#pragma once
// Stretches of a matrix as floats, in loops that compilers vectorise. The conversions are exact.

#include <bit>
#include <cstdint>

#include "common/harness/matrix.h"

namespace ladder {

/// Exact, for every f16 including subnormals, infinities and NaNs: the exponent is moved by a multiplication.
inline float f16_as_float(uint16_t bits) {
  const uint32_t magnitude = static_cast<uint32_t>(bits & 0x7FFFu) << 13;
  const float scaled = std::bit_cast<float>(magnitude) * 0x1p112f;
  const uint32_t special = magnitude >= (31u << 23) ? 0x7F800000u | magnitude : std::bit_cast<uint32_t>(scaled);
  return std::bit_cast<float>(special | (static_cast<uint32_t>(bits & 0x8000u) << 16));
}

/// Elements [first, first + count) of a row into `out`.
inline void to_floats(const HostMatrix& matrix, int64_t row, int64_t first, int64_t count, float* out) {
  switch (matrix.type()) {
    case DType::f16: {
      const uint16_t* in = matrix.row16(row) + first;
      for (int64_t i = 0; i < count; ++i) out[i] = f16_as_float(in[i]);
      break;
    }
    case DType::bf16: {
      const uint16_t* in = matrix.row16(row) + first;
      for (int64_t i = 0; i < count; ++i) out[i] = std::bit_cast<float>(static_cast<uint32_t>(in[i]) << 16);
      break;
    }
    case DType::f32: {
      const uint32_t* in = matrix.row32(row) + first;
      for (int64_t i = 0; i < count; ++i) out[i] = std::bit_cast<float>(in[i]);
      break;
    }
  }
}

}  // namespace ladder
