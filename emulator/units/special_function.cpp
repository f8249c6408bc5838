#include "emulator/units/special_function.h"

#include <algorithm>
#include <array>
#include <bit>
#include <memory>

#include "emulator/units/special_function_tables.h"

namespace emu::special_function {
namespace {

constexpr uint32_t kSign = 0x80000000, kInfinity = 0x7F800000, kNan = 0x7FFFFFFF, kSmallestNormal = 0x00800000;
constexpr int kFractionBits = 17;  // of x; functions with fewer have zeros behind

/// The square of 17 bits, in 2^19: products of two bits that weigh 2^18 or less are left out.
uint32_t square(uint32_t x) {
  static const auto table = [] {
    auto squares = std::make_unique<std::array<uint16_t, 1 << kFractionBits>>();
    for (uint32_t value = 0; value < squares->size(); ++value) {
      uint64_t sum = 0;
      for (uint32_t i = 0; i < kFractionBits; ++i)
        for (uint32_t j = 0; j <= i; ++j) {
          const uint32_t weight = i == j ? 2 * i : i + j + 1;
          if (weight > 18 && (value >> i & value >> j & 1)) sum += uint64_t{1} << weight;
        }
      (*squares)[value] = static_cast<uint16_t>(sum >> 19);
    }
    return squares;
  }();
  return (*table)[x];
}

/// `linear_x` are the bits of x as `linear` counts them.
int64_t interpolate(const Segment& segment, uint32_t x, uint32_t linear_x) {
  return segment.constant + int64_t{segment.linear} * linear_x + int64_t{segment.quadratic} * square(x);
}
/// `fraction`: 23 bits, of which the upper ones choose among segments.
int64_t interpolate(const Segment* segments, uint32_t fraction) {
  const uint32_t x = fraction & ((1u << kFractionBits) - 1);
  return interpolate(segments[fraction >> kFractionBits], x, x);
}

struct Parts {
  uint32_t sign, mantissa;  // without the leading 1
  int exponent;
};
Parts parts_of(uint32_t bits) {
  return {bits & kSign, bits & 0x7FFFFF, static_cast<int>(bits >> 23 & 255) - 127};
}

/// value * 2^(exponent - unit), truncated.
float pack(uint32_t sign, int64_t value, int unit, int exponent = 0) {
  uint32_t bits = sign;
  if (value > 0) {
    const auto magnitude = static_cast<uint64_t>(value);
    const int top = std::bit_width(magnitude) - 1, biased = top - unit + exponent + 127;
    const uint64_t mantissa = top > 23 ? magnitude >> (top - 23) : magnitude << (23 - top);
    if (biased >= 255)
      bits |= kInfinity;
    else if (biased > 0)
      bits |= static_cast<uint32_t>(biased) << 23 | (mantissa & 0x7FFFFF);
  }
  return std::bit_cast<float>(bits);
}
float constant(uint32_t bits) {
  return std::bit_cast<float>(bits);
}

/// 1 / m in 2^-39; m = 1.mantissa, 16 bits of which are x here.
int64_t reciprocal_of(uint32_t mantissa) {
  if (mantissa == 0) return int64_t{1} << 39;
  const uint32_t x = mantissa & 0xFFFF;
  return interpolate(kReciprocal[mantissa >> 16], x << 1, x);
}

/// The exponent halved toward minus infinity, and what is left of it.
struct Halved {
  int exponent, odd;
};
Halved halved(int exponent) {
  const int odd = exponent & 1;
  return {(exponent - odd) / 2, odd};
}
/// 1 / sqrt(m) in 2^-40, m in [1, 4).
int64_t reciprocal_root_of(uint32_t mantissa, int odd) {
  constexpr int64_t kOne = int64_t{1} << 40;
  if (mantissa == 0 && !odd) return kOne;
  return std::min(interpolate(kReciprocalRoot + 64 * odd, mantissa), kOne);
}

/// sin(2 pi t), t in 2^-25.
float sine(uint32_t t, uint32_t sign) {
  uint32_t u = t & 0x7FFFFF;
  if (t >> 23 & 1) u ^= 0x7FFFFF;  // backwards, from the end of the quadrant
  if (t >> 24 & 1) sign ^= kSign;
  return pack(sign, std::min(interpolate(kSine, u), int64_t{1} << 37), 37);
}
/// |x| in 2^-`fraction_bits`, truncated, without what is 2^(width - fraction_bits) and more.
uint32_t fixed_point(uint32_t magnitude, int fraction_bits, int width) {
  if (magnitude < kSmallestNormal) return 0;
  const Parts x = parts_of(magnitude);
  const uint64_t mantissa = x.mantissa | 0x800000;
  const int shift = x.exponent - 23 + fraction_bits;
  if (shift >= width || shift < -23) return 0;
  const uint64_t value = shift >= 0 ? mantissa << shift : mantissa >> -shift;
  return static_cast<uint32_t>(value & ((uint64_t{1} << width) - 1));
}

}  // namespace

float reciprocal(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value), magnitude = bits & ~kSign;
  const Parts x = parts_of(bits);
  if (magnitude > kInfinity) return constant(kNan);
  if (magnitude == kInfinity) return constant(x.sign);
  if (magnitude < kSmallestNormal) return constant(x.sign | kInfinity);
  return pack(x.sign, reciprocal_of(x.mantissa), 39, -x.exponent);
}

float root(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value), magnitude = bits & ~kSign;
  const Parts x = parts_of(bits);
  if (magnitude > kInfinity) return constant(kNan);
  if (magnitude < kSmallestNormal) return constant(x.sign);
  if (x.sign) return constant(kNan);
  if (magnitude == kInfinity) return value;
  const auto [exponent, odd] = halved(x.exponent);
  return pack(0, interpolate(kRoot + 64 * odd, x.mantissa), 40, exponent);
}

float reciprocal_root(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value), magnitude = bits & ~kSign;
  const Parts x = parts_of(bits);
  if (magnitude > kInfinity) return constant(kNan);
  if (magnitude < kSmallestNormal) return constant(x.sign | kInfinity);
  if (x.sign) return constant(kNan);
  if (magnitude == kInfinity) return 0.0f;
  const auto [exponent, odd] = halved(x.exponent);
  return pack(0, reciprocal_root_of(x.mantissa, odd), 40, -exponent);
}

float binary_logarithm(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value), magnitude = bits & ~kSign;
  const Parts x = parts_of(bits);
  if (magnitude > kInfinity) return constant(kNan);
  if (magnitude < kSmallestNormal) return constant(kSign | kInfinity);
  if (x.sign) return constant(kNan);
  if (magnitude == kInfinity) return value;
  if (x.mantissa == 0 && x.exponent == 0) return 0.0f;
  // 36 fraction bits; a negative sum becomes a magnitude by inverting its bits.
  const int64_t sum = int64_t{x.exponent} * (int64_t{1} << 36) + (interpolate(kLogarithm, x.mantissa) >> 2);
  return sum < 0 ? pack(kSign, ~sum, 36) : pack(0, sum, 36);
}

float power_of_two(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value), magnitude = bits & ~kSign;
  if (magnitude > kInfinity) return constant(kNan);
  if (magnitude >= 0x43800000) return constant(bits & kSign ? 0 : kInfinity);  // 256
  // 23 fraction bits; a negative argument is its magnitude with the bits inverted, unless it is whole.
  int64_t x = fixed_point(magnitude, 23, 31);
  if (bits & kSign) x = x & 0x7FFFFF ? ~x : -x;
  return pack(0, interpolate(kPowerOfTwo, static_cast<uint32_t>(x & 0x7FFFFF)), 38, static_cast<int>(x >> 23));
}

float sine_of_turns(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value), magnitude = bits & ~kSign;
  if (magnitude >= kInfinity) return constant(kNan);
  return sine(fixed_point(magnitude, 25, 25), bits & kSign);
}
float cosine_of_turns(float value) {
  const uint32_t magnitude = std::bit_cast<uint32_t>(value) & ~kSign;
  if (magnitude >= kInfinity) return constant(kNan);
  return sine((fixed_point(magnitude, 25, 25) + (1u << 23)) & ((1u << 25) - 1), 0);
}

float hyperbolic_tangent(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value), magnitude = bits & ~kSign;
  const Parts x = parts_of(bits);
  if (magnitude > kInfinity) return constant(kNan);
  if (x.exponent < -8) return value;
  if (x.exponent > 2) return constant(x.sign | 0x3F800000);
  // Per binade from 2^-8 on: the bits that choose a segment, and the segments before.
  struct Binade {
    int bits, first, unit;
  };
  constexpr Binade kBinades[] = {{0, 0, 38},  {0, 1, 38},  {0, 2, 38},  {1, 3, 38},  {1, 5, 38}, {2, 7, 38},
                                 {2, 11, 38}, {2, 15, 38}, {3, 19, 38}, {4, 27, 39}, {3, 43, 38}};
  const Binade& binade = kBinades[x.exponent + 8];
  const uint32_t segment = x.mantissa >> (23 - binade.bits), rest = (x.mantissa << binade.bits & 0x7FFFFF) >> 6;
  const int64_t sum = interpolate(kHyperbolicTangent[static_cast<uint32_t>(binade.first) + segment], rest, rest);
  return pack(x.sign, std::min(sum, int64_t{1} << binade.unit), binade.unit);
}

namespace {

constexpr uint32_t kInfinity64 = 0x7FF00000, kSmallestNormal64 = 0x00100000;

/// The upper half of value * 2^(exponent - unit) as a double, truncated to 21 bits.
uint32_t pack_upper_half(uint32_t sign, int64_t value, int unit, int exponent) {
  const int top = std::bit_width(static_cast<uint64_t>(value)) - 1, biased = top - unit + exponent + 1023;
  if (biased <= 0) return sign;
  return sign | static_cast<uint32_t>(biased) << 20 | (static_cast<uint32_t>(value >> (top - 20)) & 0xFFFFF);
}

}  // namespace

uint32_t reciprocal_of_upper_half(uint32_t bits) {
  const uint32_t magnitude = bits & ~kSign, sign = bits & kSign;
  if (magnitude > kInfinity64) return kNan;
  if (magnitude == kInfinity64) return sign;
  if (magnitude < kSmallestNormal64) return sign | kInfinity64;
  return pack_upper_half(sign, reciprocal_of((magnitude & 0xFFFFF) << 3), 39, 1023 - static_cast<int>(magnitude >> 20));
}

uint32_t reciprocal_root_of_upper_half(uint32_t bits) {
  const uint32_t magnitude = bits & ~kSign, sign = bits & kSign;
  if (magnitude > kInfinity64) return kNan;
  if (magnitude < kSmallestNormal64) return sign | kInfinity64;
  if (sign) return kNan;
  if (magnitude == kInfinity64) return 0;
  const auto [exponent, odd] = halved(static_cast<int>(magnitude >> 20) - 1023);
  return pack_upper_half(0, reciprocal_root_of((magnitude & 0xFFFFF) << 3, odd), 40, -exponent);
}

}  // namespace emu::special_function
