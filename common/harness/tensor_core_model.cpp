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

/// value = significand * 2^(exponent - fraction_bits)
struct Number {
  int32_t significand;
  int32_t exponent;
};

template <DType type>
inline int exponent_field(uint16_t bits) {
  return (bits >> kFormat<type>.fraction_bits) & kFormat<type>.exponent_mask;
}

template <DType type>
inline Number unpack(uint16_t bits) {
  constexpr Format f = kFormat<type>;
  const int field = exponent_field<type>(bits);
  const int32_t fraction = bits & ((1 << f.fraction_bits) - 1);
  const int32_t magnitude = field == 0 ? fraction : fraction | (1 << f.fraction_bits);
  return {(bits & 0x8000) ? -magnitude : magnitude, field == 0 ? f.lowest_exponent() : field - f.exponent_bias};
}

/// significand * 2^(exponent - fraction_bits) in units of 2^(largest - 25), cut toward zero. |significand| < 2^24, and
/// exponent <= largest unless the significand is zero.
inline int64_t aligned(int32_t significand, int exponent, int fraction_bits, int largest) {
  // Moved left by 31 first, every shift is one to the right, and there is no branch to predict.
  constexpr int kRoom = 31;
  const int right = std::clamp(kRoom - (kFractionBits - fraction_bits) + (largest - exponent), 0, 63);
  const int64_t sign = significand >> 31;
  const int64_t cut = (((int64_t{significand} ^ sign) - sign) << kRoom) >> right;
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
uint32_t not_finite(const uint16_t* a, const uint16_t* b, int count, uint32_t accumulator) {
  constexpr int fraction_mask = (1 << kFormat<type>.fraction_bits) - 1;
  bool positive = false, negative = false;
  const auto infinite = [](uint16_t x) { return exponent_field<type>(x) == kFormat<type>.exponent_mask; };
  for (int i = 0; i < count; ++i) {
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

template <DType type>
uint32_t fused(const uint16_t* a, const uint16_t* b, int count, uint32_t accumulator) {
  constexpr Format f = kFormat<type>;
  Number products[kFusedProducts];
  int largest = kExponentFloor;
  bool finite = is_finite_f32(accumulator);
  for (int i = 0; i < count; ++i) {
    finite = finite && exponent_field<type>(a[i]) != f.exponent_mask && exponent_field<type>(b[i]) != f.exponent_mask;
    const Number x = unpack<type>(a[i]), y = unpack<type>(b[i]);
    products[i] = {x.significand * y.significand, x.exponent + y.exponent};
    if (products[i].significand != 0) largest = std::max(largest, products[i].exponent);
  }
  if (!finite) return not_finite<type>(a, b, count, accumulator);

  const int field = (accumulator >> 23) & 0xFF;
  int32_t old = static_cast<int32_t>(accumulator & 0x7FFFFFu);
  if (field != 0) old |= 0x800000;
  const int old_exponent = field == 0 ? -126 : field - 127;
  if (old != 0) largest = std::max(largest, old_exponent);
  if (accumulator >> 31) old = -old;

  int64_t sum = aligned(old, old_exponent, 23, largest);
  for (int i = 0; i < count; ++i) {
    sum += aligned(products[i].significand, products[i].exponent, 2 * f.fraction_bits, largest);
  }
  return to_f32_toward_zero(sum, largest);
}

template <DType type>
uint32_t dot(const uint16_t* a, const uint16_t* b, int64_t k) {
  uint32_t accumulator = 0;
  for (int64_t first = 0; first < k; first += kFusedProducts) {
    const int count = static_cast<int>(std::min<int64_t>(kFusedProducts, k - first));
    accumulator = fused<type>(a + first, b + first, count, accumulator);
  }
  return accumulator;
}

}  // namespace

uint32_t fused_multiply_add(DType type, std::span<const uint16_t> a, std::span<const uint16_t> b,
                            uint32_t accumulator) {
  const int count = static_cast<int>(std::min({a.size(), b.size(), std::size_t{kFusedProducts}}));
  return type == DType::f16 ? fused<DType::f16>(a.data(), b.data(), count, accumulator)
                            : fused<DType::bf16>(a.data(), b.data(), count, accumulator);
}

uint32_t tensor_core_dot(DType type, const uint16_t* a, const uint16_t* b, int64_t k) {
  return type == DType::f16 ? dot<DType::f16>(a, b, k) : dot<DType::bf16>(a, b, k);
}

}  // namespace ladder
