#pragma once
// A scalar model of the tensor cores' fused sums, in 128-bit integers, for tests. Written from the rule's statement
// (MMA-Sim, arXiv 2511.10909, with what was read off an H200); it shares nothing with the emulator.
//
// One instruction adds all its products and the old D in one sum. A product's exponent is the sum of its operands'
// exponents (subnormals at the format's lowest, significands not normalised). Terms that are not zero are cut toward
// zero at so many fraction bits below the largest exponent (at least -133) and added exactly; the sum is cut to f32, or
// rounded to f16 to nearest even. A zero sum is +0; an invalid or NaN one is 0x7FFFFFFF (f16 0x7FFF).

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tensor_model {

using Wide = __int128;

enum class Type { f16, bf16, tf32, e4m3, e5m2, e2m3, e3m2, e2m1, f32 };

struct Format {
  int exponent_bits, fraction_bits, shift;  ///< shift: bits of the container below the value
  bool infinity;                            ///< the highest exponent is infinity and NaN
  uint32_t nan;                             ///< else: the one NaN's magnitude; 0: none
};
inline Format format_of(Type type) {
  switch (type) {
    case Type::f16:
      return {5, 10, 0, true, 0};
    case Type::bf16:
      return {8, 7, 0, true, 0};
    case Type::tf32:
      return {8, 10, 13, true, 0};
    case Type::e4m3:
      return {4, 3, 0, false, 0x7F};
    case Type::e5m2:
      return {5, 2, 0, true, 0};
    case Type::e2m3:
      return {2, 3, 0, false, 0};
    case Type::e3m2:
      return {3, 2, 0, false, 0};
    case Type::e2m1:
      return {2, 1, 0, false, 0};
    case Type::f32:
      return {8, 23, 0, true, 0};
  }
  return {};
}

/// significand * 2^(exponent - fraction_bits)
struct Number {
  bool negative = false, infinite = false, nan = false;
  int exponent = 0, fraction_bits = 0;
  int64_t significand = 0;
  bool zero() const { return !infinite && !nan && significand == 0; }
};

inline Number decode(Type type, uint32_t bits) {
  const Format format = format_of(type);
  bits >>= format.shift;
  const uint32_t mask = (1u << format.exponent_bits) - 1;
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const int field = static_cast<int>(bits >> format.fraction_bits & mask);
  const uint32_t magnitude = bits & ((1u << (format.exponent_bits + format.fraction_bits)) - 1);
  Number out;
  out.fraction_bits = format.fraction_bits;
  out.negative = bits >> (format.exponent_bits + format.fraction_bits) & 1;
  out.significand = bits & ((1u << format.fraction_bits) - 1);
  if (format.infinity && field == static_cast<int>(mask)) {
    out.nan = out.significand != 0;
    out.infinite = !out.nan;
  } else if (format.nan != 0 && magnitude == format.nan) {
    out.nan = true;
  } else if (field != 0) {
    out.significand |= int64_t{1} << format.fraction_bits;
  }
  out.exponent = std::max(field, 1) - bias;
  return out;
}

/// What a result is rounded to: f32 toward zero, f32 that keeps 13 fraction bits, f16 to nearest even.
enum class Result { f32, f32_13, f16 };

/// sum * 2^scale
inline uint32_t round(Wide sum, int scale, Result result) {
  const bool half = result == Result::f16;
  const int fraction = half ? 10 : 23, lowest = half ? -14 : -126, highest = half ? 15 : 127;
  const int kept = result == Result::f32_13 ? 13 : fraction;
  if (sum == 0) return 0;
  const uint32_t sign = sum < 0 ? 1u << (half ? 15 : 31) : 0;
  Wide magnitude = sum < 0 ? -sum : sum;
  int top = 0;
  while (magnitude >> top != 1) ++top;
  int exponent = std::max(top + scale, lowest);
  const int shift = exponent - kept - scale;  // units of the last place kept, in units of the sum
  Wide significand = 0;
  if (shift <= 0) {
    significand = magnitude << -shift;
  } else if (shift < 120) {
    significand = magnitude >> shift;
    const Wide rest = magnitude - (significand << shift), middle = Wide{1} << (shift - 1);
    if (half && (rest > middle || (rest == middle && (significand & 1)))) ++significand;
  }
  if (significand == 0) return 0;
  significand <<= fraction - kept;
  if (significand >> (fraction + 1)) significand >>= 1, ++exponent;
  if (exponent > highest) return sign | (half ? 0x7C00u : 0x7F800000u);
  const uint32_t field = significand >> fraction ? static_cast<uint32_t>(exponent - lowest + 1) : 0;
  return sign | field << fraction | (static_cast<uint32_t>(significand) & ((1u << fraction) - 1));
}

struct Term {
  Wide significand = 0;  ///< signed
  int exponent = 0, fraction_bits = 0;
  bool counts = true;  ///< for the largest exponent
};

/// The cut sum of terms, as a number of units of 2^scale.
inline Wide cut_sum(const std::vector<Term>& terms, int fraction_bits, int& scale) {
  int largest = -133;
  for (const Term& term : terms)
    if (term.counts) largest = std::max(largest, term.exponent);
  scale = largest - fraction_bits;
  Wide sum = 0;
  for (const Term& term : terms) {
    const int shift = term.exponent - term.fraction_bits - scale;
    const Wide magnitude = term.significand < 0 ? -term.significand : term.significand;
    const Wide cut = shift >= 0 ? magnitude << shift : shift > -120 ? magnitude >> -shift : 0;
    sum += term.significand < 0 ? -cut : cut;
  }
  return sum;
}

inline uint32_t nan_of(Result result) {
  return result == Result::f16 ? 0x7FFF : 0x7FFFFFFF;
}
inline uint32_t infinity_of(Result result, bool negative) {
  return result == Result::f16 ? (negative ? 0xFC00 : 0x7C00) : (negative ? 0xFF800000 : 0x7F800000);
}

/// D after one instruction, for one element. `scale_exponent`: added to every product's exponent (block scales).
inline uint32_t fused(const std::vector<Number>& a, const std::vector<Number>& b, const Number& d, int fraction_bits,
                      Result result, int scale_exponent = 0) {
  std::vector<Term> terms;
  bool nan = d.nan, plus = d.infinite && !d.negative, minus = d.infinite && d.negative;
  for (size_t k = 0; k < a.size(); ++k) {
    const bool negative = a[k].negative != b[k].negative;
    nan |= a[k].nan || b[k].nan;
    if (a[k].infinite || b[k].infinite) {
      nan |= a[k].zero() || b[k].zero();
      (negative ? minus : plus) = true;
    }
    const Wide product = Wide{a[k].significand} * b[k].significand;
    if (product != 0)
      terms.push_back({negative ? -product : product, a[k].exponent + b[k].exponent + scale_exponent,
                       a[k].fraction_bits + b[k].fraction_bits});
  }
  if (nan || (plus && minus)) return nan_of(result);
  if (plus || minus) return infinity_of(result, minus);
  if (d.significand != 0)
    terms.push_back({d.negative ? -Wide{d.significand} : Wide{d.significand}, d.exponent, d.fraction_bits});
  int scale = 0;
  const Wide sum = cut_sum(terms, fraction_bits, scale);
  return round(sum, scale, result);
}

inline std::vector<Number> decode_all(Type type, const std::vector<uint32_t>& bits, bool negate = false) {
  std::vector<Number> out;
  for (uint32_t one : bits) {
    out.push_back(decode(type, one));
    out.back().negative ^= negate;
  }
  return out;
}

}  // namespace tensor_model
