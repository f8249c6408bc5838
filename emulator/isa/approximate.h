#pragma once
// The .approx and .full instructions of f32 and f64: what the special function unit gives, and the multiplications
// around it that reach subnormal and very large values. The sequences are those that ptxas 13.0 makes for sm_90a and
// sm_100a alike.

#include <cmath>

#include "emulator/isa/real.h"
#include "emulator/units/special_function.h"

namespace emu::isa::approximate {

using Flushing = Mode<Round::nearest_even, true, false>;
constexpr float kSmallestNormal = 0x1p-126f, kLargestOfNormalReciprocal = 0x1p126f;

inline bool is_small(float x) {
  return !(std::fabs(x) >= kSmallestNormal);
}

template <bool kFtz>
float reciprocal(float x) {
  if constexpr (kFtz) return special_function::reciprocal(x);
  float scale = is_small(x) ? 0x1p24f : 1.0f;
  if (std::fabs(x) > kLargestOfNormalReciprocal) scale = 0.25f;
  return canonical(scale * special_function::reciprocal(x * scale));
}

/// f(x), of a small x as f(x * 2^24) * `back`.
template <bool kFtz, float (*kFunction)(float), float kBack>
float scaled(float x) {
  if (kFtz || !is_small(x)) return kFunction(x);
  return canonical(kFunction(x * 0x1p24f) * kBack);
}
template <bool kFtz>
float root(float x) {
  return scaled<kFtz, special_function::root, 0x1p-12f>(x);
}
template <bool kFtz>
float reciprocal_root(float x) {
  return scaled<kFtz, special_function::reciprocal_root, 0x1p12f>(x);
}
template <bool kFtz>
float binary_logarithm(float x) {
  if (kFtz || !is_small(x)) return special_function::binary_logarithm(x);
  return canonical(special_function::binary_logarithm(x * 0x1p24f) - 24.0f);
}
template <bool kFtz>
float power_of_two(float x) {
  if (kFtz || x >= -126.0f) return special_function::power_of_two(x);
  const float half = special_function::power_of_two(x * 0.5f);
  return canonical(half * half);
}

/// x / 2 pi, cut to 24 bits; of a subnormal x it does not matter whether .ftz flushed it.
inline float turns(float x) {
  const double product = double{x} * double{0x1.45F306p-3f};
  float result = static_cast<float>(product);
  if (std::fabs(double{result}) > std::fabs(product)) result = std::nextafter(result, 0.0f);
  return result;
}
inline float sine(float x) {
  return special_function::sine_of_turns(turns(x));
}
inline float cosine(float x) {
  return special_function::cosine_of_turns(turns(x));
}

template <bool kFtz>
float multiply(float a, float b) {
  if constexpr (kFtz) return rounded<Flushing>(double{flush(a)} * double{flush(b)});
  return a * b;
}
/// div.approx: a times the reciprocal of b.
template <bool kFtz>
float divide(float a, float b) {
  if (!kFtz && is_small(b)) a *= 0x1p24f, b *= 0x1p24f;
  return canonical(multiply<kFtz>(a, special_function::reciprocal(b)));
}
/// div.full: very large b too.
template <bool kFtz>
float divide_full(float a, float b) {
  if (std::fabs(b) > kLargestOfNormalReciprocal) a = multiply<kFtz>(a, 0.25f), b = multiply<kFtz>(b, 0.25f);
  return divide<kFtz>(a, b);
}

/// 16-bit forms: the special function's value, truncated.
template <class F, float (*kFunction)(float)>
uint16_t of_half(uint16_t a) {
  const float value = kFunction(static_cast<float>(decode<F>(a)));
  // Truncation alone would leave the largest finite number of what is too large.
  const bool overflows = F::kExponent == 5 && std::fabs(value) >= 0x1p16f;
  return static_cast<uint16_t>(encode<F>(overflows ? std::copysign(INFINITY, value) : value, Round::zero));
}

/// rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64: of the upper half, to the upper half.
template <uint32_t (*kFunction)(uint32_t)>
double of_upper_half(double x) {
  return std::bit_cast<double>(uint64_t{kFunction(static_cast<uint32_t>(std::bit_cast<uint64_t>(x) >> 32))} << 32);
}
inline double refined_reciprocal_root(double x) {
  const double guess = of_upper_half<special_function::reciprocal_root_of_upper_half>(x);
  const double error = std::fma(x, -(guess * guess), 1.0);
  return std::fma(std::fma(error, 0.375, 0.5), guess * error, guess);
}
/// rsqrt.approx.f64.
inline double reciprocal_root(double x) {
  if (x == 0) return std::copysign(INFINITY, x);
  if (!(x > 0)) return given_f64(std::sqrt(x), x);
  if (std::isinf(x)) return 0;
  if (x >= 0x1p-1022) return refined_reciprocal_root(x);
  return refined_reciprocal_root(x * 0x1p54) * 0x1p27;
}

}  // namespace emu::isa::approximate
