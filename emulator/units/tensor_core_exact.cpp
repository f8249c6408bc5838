#include "emulator/units/tensor_core_exact.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>

namespace emu {
namespace {

constexpr int kLowestAlignment = -133;
constexpr uint32_t kNan = 0x7FFFFFFF;

/// A value as significand * 2^(exponent - 23); `exponent` as the alignment counts it.
struct Number {
  int64_t significand = 0;
  int exponent = 0;
};

/// `lowest`: the exponent of the subnormals of the format that `value` came from.
Number split(float value, int lowest) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  int exponent = static_cast<int>(bits >> 23 & 0xFF) - 127;
  int64_t significand = bits & 0x7FFFFF;
  if (exponent == -127) {
    exponent = -126;
  } else {
    significand |= 0x800000;
  }
  if (exponent < lowest) {
    significand >>= lowest - exponent;  // exact: these bits are zeros in the narrower format
    exponent = lowest;
  }
  return {bits >> 31 ? -significand : significand, exponent};
}

int lowest_exponent(ElementType type) {
  switch (type) {
    case ElementType::f16:
    case ElementType::e5m2:
      return -14;
    case ElementType::e4m3:
      return -6;
    case ElementType::e3m2:
      return -2;
    case ElementType::e2m3:
    case ElementType::e2m1:
      return 0;
    default:
      return -126;
  }
}

/// significand * 2^exponent cut toward zero to a multiple of 2^unit, in those units.
int64_t cut(int64_t significand, int exponent, int unit) {
  const int shift = exponent - unit;
  if (shift >= 0) return significand * (int64_t{1} << shift);
  if (shift <= -63) return 0;
  const int64_t magnitude = (significand < 0 ? -significand : significand) >> -shift;
  return significand < 0 ? -magnitude : magnitude;
}

/// A binary floating-point format to round into.
struct Format {
  int bits, fraction_bits;
  int lowest, highest;  // exponents of the smallest normal and the largest finite numbers
  bool to_nearest;      // to nearest even, else toward zero
};
constexpr Format kF32{32, 23, -126, 127, false};
constexpr Format kF16{16, 10, -14, 15, true};
constexpr Format kF32Of13{22, 13, -126, 127, false};  // the upper 22 bits of an f32

/// The bits of sum * 2^unit in `format`.
uint32_t round_to(const Format& format, int64_t sum, int unit) {
  if (sum == 0) return 0;
  uint64_t magnitude = sum < 0 ? -static_cast<uint64_t>(sum) : static_cast<uint64_t>(sum);
  const int exponent = std::max(unit + 63 - std::countl_zero(magnitude), format.lowest);
  const int drop = exponent - format.fraction_bits - unit;  // bits below the last one kept
  if (drop >= 64) return 0;
  if (drop > 0) {
    const uint64_t rest = magnitude & ((uint64_t{1} << drop) - 1), half = uint64_t{1} << (drop - 1);
    magnitude >>= drop;
    if (format.to_nearest && (rest > half || (rest == half && (magnitude & 1)))) ++magnitude;
  } else {
    magnitude <<= -drop;
  }
  if (magnitude == 0) return 0;
  // A normal number's leading one, and a carry out of the fraction, add themselves to the exponent field.
  const uint64_t bits = (static_cast<uint64_t>(exponent - format.lowest) << format.fraction_bits) + magnitude;
  const uint64_t infinity = static_cast<uint64_t>(format.highest - format.lowest + 2) << format.fraction_bits;
  const uint32_t sign = sum < 0 ? 1u << (format.bits - 1) : 0u;
  return static_cast<uint32_t>(std::min(bits, infinity)) | sign;
}

}  // namespace

std::pair<PackedOperand, PackedOperand>& packed_operands() {
  thread_local const auto operands = std::make_unique<std::pair<PackedOperand, PackedOperand>>();
  return *operands;
}

float f16_to_float(uint32_t bits) {
  const uint32_t exponent = bits >> 10 & 31, fraction = bits & 0x3FF;
  float magnitude;
  if (exponent == 31) {
    magnitude = fraction ? std::numeric_limits<float>::quiet_NaN() : std::numeric_limits<float>::infinity();
  } else if (exponent == 0) {
    magnitude = static_cast<float>(fraction) * 0x1p-24f;
  } else {
    magnitude = std::bit_cast<float>((exponent + 112) << 23 | fraction << 13);
  }
  return bits & 0x8000 ? -magnitude : magnitude;
}

uint16_t float_to_f16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return 0x7FFF;
  if (std::isinf(value)) return static_cast<uint16_t>(bits >> 16 & 0x8000) | 0x7C00;
  const Number number = split(value, kF32.lowest);
  return static_cast<uint16_t>(round_to(kF16, number.significand, number.exponent - 23));
}

uint32_t fused_sum_exact(const PackedOperand& a, uint32_t row, const PackedOperand& b, uint32_t column,
                         const AccumulatorUse& use, uint32_t old) {
  const bool half = use.type == AccumulatorType::f16, narrow = use.rule == FusedRule::hopper8;
  const int scale = (a.scaled ? a.scale_exponent[row] : 0) + (b.scaled ? b.scale_exponent[column] : 0);
  if (scale >= PackedOperand::kNanScale / 2) return kNan;
  const float d = use.input ? std::bit_cast<float>(old) : 0.0f;

  Number terms[PackedOperand::kMaxK];
  float infinities = std::isfinite(d) ? 0.0f : d;
  int largest = kLowestAlignment;
  for (uint32_t k = 0; k < a.k; ++k) {
    const float x = a.value[PackedOperand::index(row, k, a.k)], y = b.value[PackedOperand::index(column, k, b.k)];
    if (!std::isfinite(x) || !std::isfinite(y)) infinities += x * y;
    const Number p = split(x, lowest_exponent(a.type)), q = split(y, lowest_exponent(b.type));
    terms[k] = {p.significand * q.significand, p.exponent + q.exponent + scale};
    if (terms[k].significand != 0) largest = std::max(largest, terms[k].exponent);
  }
  if (std::isnan(infinities)) return kNan;
  if (infinities != 0) return std::bit_cast<uint32_t>(infinities);

  Number old_term = split(d, half ? kF16.lowest : kF32.lowest);
  old_term.exponent -= use.scale_shift;
  if (old_term.significand != 0) largest = std::max(largest, old_term.exponent);

  const int unit = largest - (narrow ? 13 : 25);
  int64_t sum = cut(old_term.significand, old_term.exponent - 23, unit);
  for (uint32_t k = 0; k < a.k; ++k) sum += cut(terms[k].significand, terms[k].exponent - 46, unit);
  if (half) return std::bit_cast<uint32_t>(f16_to_float(round_to(kF16, sum, unit)));
  return narrow ? round_to(kF32Of13, sum, unit) << 10 : round_to(kF32, sum, unit);
}

}  // namespace emu
