#pragma once
// Floating-point formats as bits: exact conversion to and from double, in every rounding that PTX has. No host rounding
// mode is touched.
//
// A double holds every value of the other formats. Results that a double cannot hold (the sum of a large and a tiny
// float) are first rounded to odd: to whichever neighbour has an odd last bit. Rounding that to a format at least two
// bits shorter gives what rounding the exact value would have given (Boldo and Melquiond, "Emulation of FMA and
// correctly rounded sums", 2008).

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace emu::isa {

enum class Round : uint8_t { nearest_even, nearest_away, zero, down, up };

/// kExponent and kMantissa: bits. kInfinity: whether the highest exponent means infinity and NaN. kNan: the code that
/// results have. kLargest: the largest finite magnitude.
template <int kExponent_, int kMantissa_, bool kInfinity_, uint32_t kNan_, uint32_t kLargest_>
struct Format {
  static constexpr int kExponent = kExponent_, kMantissa = kMantissa_;
  static constexpr int kBias = (1 << (kExponent - 1)) - 1;
  static constexpr bool kInfinity = kInfinity_;
  static constexpr uint32_t kNan = kNan_, kLargest = kLargest_;
  static constexpr uint32_t kSign = 1u << (kExponent + kMantissa);
};
using F32 = Format<8, 23, true, 0x7FFFFFFF, 0x7F7FFFFF>;
using F16 = Format<5, 10, true, 0x7FFF, 0x7BFF>;
using Bf16 = Format<8, 7, true, 0x7FFF, 0x7F7F>;
using Tf32 = Format<8, 10, true, 0x3FFFF, 0x3FBFF>;  // without the 13 low bits of its register
using E4m3 = Format<4, 3, false, 0x7F, 0x7E>;
using E5m2 = Format<5, 2, true, 0x7F, 0x7B>;
using E2m3 = Format<2, 3, false, 0, 0x1F>;  // these three have no NaN
using E3m2 = Format<3, 2, false, 0, 0x1F>;
using E2m1 = Format<2, 1, false, 0, 0x7>;

/// `value` in format F. `finite`: what is too large (infinity too) becomes the largest finite value of its sign.
template <class F>
inline uint32_t encode(double value, Round round, bool finite = false) {
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  const bool negative = bits >> 63;
  const uint32_t sign = negative ? F::kSign : 0;
  const uint64_t fraction = bits & 0xFFFFFFFFFFFFFull;
  int exponent = static_cast<int>(bits >> 52 & 0x7FF);
  constexpr uint32_t kAboveFinite = F::kLargest + 1;
  if (exponent == 0x7FF) {
    if (fraction) return F::kNan;
    return sign | (finite || !F::kInfinity ? F::kLargest : kAboveFinite);
  }
  uint64_t significand = exponent ? fraction | uint64_t{1} << 52 : fraction;
  exponent = (exponent ? exponent : 1) - 1023;

  constexpr int kLowest = 1 - F::kBias;
  int drop = 52 - F::kMantissa;
  if (exponent < kLowest) drop += kLowest - exponent;
  if (drop > 55) drop = 55;  // all of the significand is below half of the last place then
  uint64_t kept = significand >> drop;
  const uint64_t rest = significand & ((uint64_t{1} << drop) - 1), half = uint64_t{1} << (drop - 1);
  switch (round) {
    case Round::nearest_even:
      kept += rest > half || (rest == half && (kept & 1));
      break;
    case Round::nearest_away:
      kept += rest >= half;
      break;
    case Round::zero:
      break;
    case Round::down:
      kept += rest != 0 && negative;
      break;
    case Round::up:
      kept += rest != 0 && !negative;
      break;
  }
  // A carry out of the mantissa raises the exponent.
  uint64_t code = kept;
  if (exponent >= kLowest) code += static_cast<uint64_t>(exponent - kLowest) << F::kMantissa;
  if (code > F::kLargest) {
    bool to_infinity = round == Round::nearest_even || round == Round::nearest_away ||
                       (round == Round::up && !negative) || (round == Round::down && negative);
    code = F::kInfinity && to_infinity && !finite ? kAboveFinite : F::kLargest;
  }
  return sign | static_cast<uint32_t>(code);
}

/// The value of a code; NaN for one.
template <class F>
inline double decode(uint32_t code) {
  const uint32_t magnitude = code & (F::kSign - 1);
  const double sign = code & F::kSign ? -1.0 : 1.0;
  if (magnitude > F::kLargest)
    return F::kInfinity && magnitude == F::kLargest + 1 ? sign * std::numeric_limits<double>::infinity()
                                                        : std::numeric_limits<double>::quiet_NaN();
  const int exponent = static_cast<int>(magnitude >> F::kMantissa);
  const uint32_t fraction = magnitude & ((1u << F::kMantissa) - 1);
  const uint32_t significand = exponent ? fraction | 1u << F::kMantissa : fraction;
  // The scale is a normal double for all formats but f32, whose exponents are within its range too.
  const uint64_t scale = static_cast<uint64_t>((exponent ? exponent : 1) - F::kBias - F::kMantissa + 1023) << 52;
  return sign * significand * std::bit_cast<double>(scale);
}

/// a + b rounded to odd. Neither infinite sums nor NaN need care: they come out as such.
inline double add_odd(double a, double b) {
  const double sum = a + b;
  const double b_part = sum - a;
  const double error = (a - (sum - b_part)) + (b - b_part);
  uint64_t bits = std::bit_cast<uint64_t>(sum);
  const bool inexact = error < 0 || error > 0;  // false for NaN
  const uint64_t outwards = (error > 0) == (sum > 0) ? uint64_t{1} : ~uint64_t{0};
  bits += inexact && !(bits & 1) ? outwards : 0;
  return std::bit_cast<double>(bits);
}
/// a * b + c rounded to odd, for a and b of at most 26 significant bits: their product is exact.
inline double multiply_add_odd(double a, double b, double c) {
  return add_odd(a * b, c);
}

// ---- single and half precision as lanes hold them -------------------------------------------------------------------

inline constexpr uint32_t kCanonicalNan = 0x7FFFFFFF;

/// NaN results of f32 instructions are this one.
inline float canonical(float value) {
  return value == value ? value : std::bit_cast<float>(kCanonicalNan);
}
/// .ftz: subnormal values become zero of the same sign.
inline float flush(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return std::bit_cast<float>(bits & 0x7F800000 ? bits : bits & 0x80000000);
}
inline uint16_t flush_f16(uint16_t value) {
  return value & 0x7C00 ? value : value & 0x8000;
}

inline float f16_to_float(uint16_t half) {
  // The shifted bits are a float 2^112 times too small, subnormals included.
  const uint32_t magnitude = (half & 0x7FFFu) << 13, sign = (half & 0x8000u) << 16;
  const uint32_t finite = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
  return std::bit_cast<float>(sign | ((half & 0x7C00) == 0x7C00 ? magnitude | 0x7F800000 : finite));
}
inline float bf16_to_float(uint16_t half) {
  return std::bit_cast<float>(uint32_t{half} << 16);
}

/// Round to nearest even.
inline uint16_t float_to_f16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value), magnitude = bits & 0x7FFFFFFF;
  const uint32_t sign = bits >> 16 & 0x8000;
  // Normal results: drop 13 bits and rebias. Smaller ones: an addition aligns them so that the sum's last place is
  // 2^-24. Larger ones are infinity.
  const uint32_t normal = (magnitude - (112u << 23) + 0xFFF + (magnitude >> 13 & 1)) >> 13;
  const uint32_t small = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3F000000;
  uint32_t code = magnitude < 0x38800000 ? small : normal;
  code = magnitude >= 0x477FF000 ? 0x7C00 : code;
  return static_cast<uint16_t>(magnitude > 0x7F800000 ? F16::kNan : sign | code);
}
inline uint16_t float_to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
  return static_cast<uint16_t>((bits & 0x7FFFFFFF) > 0x7F800000 ? Bf16::kNan : rounded);
}

}  // namespace emu::isa
