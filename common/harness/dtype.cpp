#include "common/harness/dtype.h"

#include <bit>

namespace ladder {
namespace {

/// Rounds `value` / 2^shift to the nearest integer, ties to even. 0 < shift < 32.
constexpr uint32_t shift_right_nearest_even(uint32_t value, int shift) {
  uint32_t quotient = value >> shift;
  uint32_t rest = value & ((1u << shift) - 1);
  uint32_t half = 1u << (shift - 1);
  return quotient + (rest > half || (rest == half && (quotient & 1)));
}

}  // namespace

uint16_t f32_to_f16(uint32_t bits) {
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return static_cast<uint16_t>(sign | 0x7E00u | ((magnitude >> 13) & 0x1FFu));
  if (magnitude == 0x7F800000u) return static_cast<uint16_t>(sign | 0x7C00u);
  const int exponent = static_cast<int>(magnitude >> 23) - 127;
  if (exponent >= 16) return static_cast<uint16_t>(sign | 0x7C00u);
  const uint32_t significand = (magnitude & 0x7FFFFFu) | 0x800000u;
  if (exponent >= -14) {
    // A carry out of the fraction moves on into the exponent, up to infinity, as it should.
    const uint32_t biased = static_cast<uint32_t>(exponent + 15) << 10;
    return static_cast<uint16_t>(sign | (biased + shift_right_nearest_even(significand, 13) - 0x400u));
  }
  if (exponent < -25) return static_cast<uint16_t>(sign);
  return static_cast<uint16_t>(sign | shift_right_nearest_even(significand, 13 + (-14 - exponent)));
}

uint16_t f32_to_bf16(uint32_t bits) {
  if (is_nan_f32(bits)) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

uint32_t f16_to_f32(uint16_t bits) {
  const uint32_t sign = (bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1Fu;
  const uint32_t fraction = bits & 0x3FFu;
  if (exponent == 31) return sign | 0x7F800000u | (fraction << 13);
  if (exponent != 0) return sign | ((exponent + 112u) << 23) | (fraction << 13);
  if (fraction == 0) return sign;
  const int leading = 31 - std::countl_zero(fraction);  // value = fraction * 2^-24
  return sign | (static_cast<uint32_t>(leading - 24 + 127) << 23) | ((fraction << (23 - leading)) & 0x7FFFFFu);
}

uint32_t to_f32(DType type, uint32_t bits) {
  switch (type) {
    case DType::f16:
      return f16_to_f32(static_cast<uint16_t>(bits));
    case DType::bf16:
      return bf16_to_f32(static_cast<uint16_t>(bits));
    case DType::f32:
      break;
  }
  return bits;
}

uint32_t from_f32(DType type, uint32_t f32_bits) {
  switch (type) {
    case DType::f16:
      return f32_to_f16(f32_bits);
    case DType::bf16:
      return f32_to_bf16(f32_bits);
    case DType::f32:
      break;
  }
  return f32_bits;
}

}  // namespace ladder
