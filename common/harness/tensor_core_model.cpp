#include "common/harness/tensor_core_model.h"

#include <algorithm>
#include <bit>
#include <cstddef>

namespace ladder {
namespace {

constexpr int kFractionBits = 25;
constexpr int kExponentFloor = -133;
constexpr uint32_t kNaN = 0x7FFFFFFFu, kInfinity = 0x7F800000u;

struct Format {
  int fraction_bits, exponent_bias, exponent_mask;
  constexpr int lowest_exponent() const { return 1 - exponent_bias; }
};
template <DType type>
constexpr Format kFormat = type == DType::f16 ? Format{10, 15, 31} : Format{7, 127, 255};

template <DType type>
inline int exponent_field(uint16_t bits) {
  return (bits >> kFormat<type>.fraction_bits) & kFormat<type>.exponent_mask;
}

/// value = magnitude * 2^(exponent - fraction_bits), without its sign
struct Number {
  int32_t magnitude;
  int32_t exponent;
};

template <DType type>
inline Number unpack(uint16_t bits) {
  constexpr Format f = kFormat<type>;
  const int32_t field = exponent_field<type>(bits);
  const int32_t fraction = bits & ((1 << f.fraction_bits) - 1);
  return {fraction | int32_t{field != 0} << f.fraction_bits, std::max(field, 1) - f.exponent_bias};
}

/// A magnitude in units of 2^(largest - 25), cut toward zero, with its sign (0 or -1). `in_units`: in units of
/// 2^(exponent - 25), less than 2^31; exponent <= largest unless it is zero.
inline int32_t aligned(int32_t in_units, int exponent, int largest, int32_t sign) {
  const int32_t cut = in_units >> std::clamp(largest - exponent, 0, 31);
  return (cut ^ sign) - sign;
}

/// sum * 2^(largest - 25) as f32, cut toward zero.
inline uint32_t to_f32_toward_zero(int64_t sum, int largest) {
  if (sum == 0) return 0;
  const uint32_t sign = sum < 0 ? 0x80000000u : 0u;
  const uint64_t magnitude = static_cast<uint64_t>(sum < 0 ? -sum : sum);
  const int exponent = std::bit_width(magnitude) - 1 + largest - kFractionBits;
  if (exponent > 127) return sign | kInfinity;
  const int unit = std::max(exponent, -126) - 23;  // exponent of the result's last bit
  const int shift = largest - kFractionBits - unit;
  const uint64_t significand = shift >= 0 ? magnitude << shift : shift > -64 ? magnitude >> -shift : 0;
  if (significand == 0) return 0;
  if (exponent < -126) return sign | static_cast<uint32_t>(significand);
  return sign | (static_cast<uint32_t>(exponent + 127) << 23) | (static_cast<uint32_t>(significand) & 0x7FFFFFu);
}

/// Infinities and NaNs among the terms: their plain sum, in the only three values it can have.
template <DType type>
uint32_t not_finite(const uint16_t* a, const uint16_t* b, uint32_t accumulator) {
  constexpr int fraction_mask = (1 << kFormat<type>.fraction_bits) - 1;
  bool positive = false, negative = false;
  const auto infinite = [](uint16_t x) { return exponent_field<type>(x) == kFormat<type>.exponent_mask; };
  for (int i = 0; i < kFusedProducts; ++i) {
    if (!infinite(a[i]) && !infinite(b[i])) continue;
    const bool nan = (infinite(a[i]) && (a[i] & fraction_mask)) || (infinite(b[i]) && (b[i] & fraction_mask));
    const bool zero = (a[i] & 0x7FFF) == 0 || (b[i] & 0x7FFF) == 0;
    if (nan || zero) return kNaN;
    ((a[i] ^ b[i]) & 0x8000 ? negative : positive) = true;
  }
  if (!is_finite_f32(accumulator)) {
    if (is_nan_f32(accumulator)) return kNaN;
    (accumulator >> 31 ? negative : positive) = true;
  }
  if (positive && negative) return kNaN;
  return negative ? kInfinity | 0x80000000u : kInfinity;
}

/// `a` and `b`: of kFusedProducts elements. Plain loops over all of them, which compilers turn into vector
/// instructions.
template <DType type>
[[gnu::always_inline]] inline uint32_t fused(const uint16_t* a, const uint16_t* b, uint32_t accumulator) {
  constexpr Format f = kFormat<type>;
  int32_t magnitudes[kFusedProducts], exponents[kFusedProducts], signs[kFusedProducts], counted[kFusedProducts];
  int32_t fields[kFusedProducts];
  for (int i = 0; i < kFusedProducts; ++i) {
    const Number x = unpack<type>(a[i]), y = unpack<type>(b[i]);
    magnitudes[i] = x.magnitude * y.magnitude;
    exponents[i] = x.exponent + y.exponent;
    signs[i] = -((a[i] ^ b[i]) >> 15);
    counted[i] = magnitudes[i] != 0 ? exponents[i] : kExponentFloor;
    fields[i] = std::max(exponent_field<type>(a[i]), exponent_field<type>(b[i]));
  }
  int largest = kExponentFloor, highest_field = 0;
  for (int i = 0; i < kFusedProducts; ++i) {
    largest = std::max(largest, counted[i]);
    highest_field = std::max(highest_field, fields[i]);
  }
  if (highest_field == f.exponent_mask || !is_finite_f32(accumulator)) return not_finite<type>(a, b, accumulator);

  const int field = (accumulator >> 23) & 0xFF;
  const int32_t old = static_cast<int32_t>(accumulator & 0x7FFFFFu) | int32_t{field != 0} << 23;
  const int old_exponent = std::max(field, 1) - 127;
  if (old != 0) largest = std::max(largest, old_exponent);

  constexpr int kOldRoom = kFractionBits - 23, kRoom = kFractionBits - 2 * f.fraction_bits;
  static_assert(kOldRoom >= 0 && kRoom >= 0 && 2 * (f.fraction_bits + 1) + kRoom + 4 <= 31);  // the sum of 16 fits, too
  int32_t sum = 0;
  for (int i = 0; i < kFusedProducts; ++i) {
    sum += aligned(magnitudes[i] << kRoom, exponents[i], largest, signs[i]);
  }
  const int32_t old_sign = -static_cast<int32_t>(accumulator >> 31);
  return to_f32_toward_zero(int64_t{sum} + aligned(old << kOldRoom, old_exponent, largest, old_sign), largest);
}

/// The same for fewer: the rest are zero.
template <DType type>
[[gnu::always_inline]] inline uint32_t fused(const uint16_t* a, const uint16_t* b, int count, uint32_t accumulator) {
  uint16_t whole_a[kFusedProducts] = {}, whole_b[kFusedProducts] = {};
  std::copy_n(a, count, whole_a);
  std::copy_n(b, count, whole_b);
  return fused<type>(whole_a, whole_b, accumulator);
}

template <DType type>
[[gnu::always_inline]] inline uint32_t dot(const uint16_t* a, const uint16_t* b, int64_t k) {
  uint32_t accumulator = 0;
  int64_t first = 0;
  for (; first + kFusedProducts <= k; first += kFusedProducts) {
    accumulator = fused<type>(a + first, b + first, accumulator);
  }
  if (first < k) accumulator = fused<type>(a + first, b + first, static_cast<int>(k - first), accumulator);
  return accumulator;
}

}  // namespace

uint32_t fused_multiply_add(DType type, std::span<const uint16_t> a, std::span<const uint16_t> b,
                            uint32_t accumulator) {
  const int count = static_cast<int>(std::min({a.size(), b.size(), std::size_t{kFusedProducts}}));
  return type == DType::f16 ? fused<DType::f16>(a.data(), b.data(), count, accumulator)
                            : fused<DType::bf16>(a.data(), b.data(), count, accumulator);
}

// Shifts by as many different numbers as there are lanes came with AVX2; the loader picks the right form.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
[[gnu::target_clones("avx2", "default")]]
#endif
uint32_t
tensor_core_dot(DType type, const uint16_t* a, const uint16_t* b, int64_t k) {
  return type == DType::f16 ? dot<DType::f16>(a, b, k) : dot<DType::bf16>(a, b, k);
}

}  // namespace ladder
