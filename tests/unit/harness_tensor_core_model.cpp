// The scalar model of the tensor core, against the same rule written in floating point: every product and every cut
// term is exact in a double, sums of 17 of them stay below 2^53 units, and the last step is a conversion to f32 under
// the rounding mode "toward zero". Rule and classes of values: see tensor_core_model.h.

#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <vector>

#include "common/harness/philox.h"
#include "common/harness/tensor_core_model.h"
#include "tests/catch.h"

using namespace ladder;

namespace {

double value_of(DType type, uint16_t bits) {
  return std::bit_cast<float>(to_f32(type, bits));
}

/// The exponent that the rule gives a factor: subnormals have the lowest.
int exponent_of(DType type, double value) {
  return std::max(std::ilogb(value), type == DType::f16 ? -14 : -126);
}

uint32_t by_doubles(DType type, const std::vector<uint16_t>& a, const std::vector<uint16_t>& b, uint32_t accumulator) {
  const double old = std::bit_cast<float>(accumulator);
  int largest = -133;
  if (old != 0) largest = std::max(largest, std::max(std::ilogb(old), -126));
  for (size_t i = 0; i < a.size(); ++i) {
    const double x = value_of(type, a[i]), y = value_of(type, b[i]);
    if (x * y != 0) largest = std::max(largest, exponent_of(type, x) + exponent_of(type, y));
  }
  const auto cut = [&](double term) { return std::trunc(std::ldexp(term, 25 - largest)); };
  double units = cut(old);
  for (size_t i = 0; i < a.size(); ++i) units += cut(value_of(type, a[i]) * value_of(type, b[i]));
  const double exact = std::ldexp(units, largest - 25);
  if (std::fabs(exact) >= 0x1p128) return exact < 0 ? 0xFF800000u : 0x7F800000u;
  std::fesetround(FE_TOWARDZERO);
  volatile float result = static_cast<float>(exact);
  std::fesetround(FE_TONEAREST);
  return result == 0 ? 0u : std::bit_cast<uint32_t>(static_cast<float>(result));
}

uint16_t from(DType type, float value) {
  return static_cast<uint16_t>(from_f32(type, std::bit_cast<uint32_t>(value)));
}

uint32_t step(DType type, const std::vector<float>& a, const std::vector<float>& b, float accumulator = 0) {
  std::vector<uint16_t> x, y;
  for (const float value : a) x.push_back(from(type, value));
  for (const float value : b) y.push_back(from(type, value));
  return fused_multiply_add(type, x, y, std::bit_cast<uint32_t>(accumulator));
}

uint32_t bits(float value) {
  return std::bit_cast<uint32_t>(value);
}

}  // namespace

TEST_CASE("random sums equal the rule in floating point") {
  PhiloxSequence random(11, Stream::samples);
  for (const DType type : {DType::f16, DType::bf16}) {
    const int fraction_bits = type == DType::f16 ? 10 : 7;
    const uint16_t exponents = type == DType::f16 ? 31 : 255;
    for (int round = 0; round < 60000; ++round) {
      // Narrow exponents cancel, wide ones are cut away; some operands are zero or subnormal.
      const uint32_t width = 1u << random.below(type == DType::f16 ? 5 : 8);
      const uint32_t lowest = static_cast<uint32_t>(random.below(exponents));
      const auto draw = [&] {
        const uint32_t word = random.next();
        const uint32_t field = std::min<uint32_t>(lowest + (word >> 16) % width, exponents - 1u);
        const uint32_t fraction = word & ((1u << fraction_bits) - 1);
        if (random.below(16) == 0) return static_cast<uint16_t>(word & 0x8000u);
        return static_cast<uint16_t>((word & 0x8000u) | field << fraction_bits | fraction);
      };
      std::vector<uint16_t> a(16), b(16);
      for (uint16_t& x : a) x = draw();
      for (uint16_t& x : b) x = draw();
      uint32_t accumulator = random.next();
      if (!is_finite_f32(accumulator) || random.below(4) == 0) accumulator = 0;
      if (random.below(2) == 0) accumulator = fused_multiply_add(type, b, a, 0);
      if (!is_finite_f32(accumulator)) accumulator = 0;
      CAPTURE(name_of(type), round, a, b, accumulator);
      REQUIRE(fused_multiply_add(type, a, b, accumulator) == by_doubles(type, a, b, accumulator));
    }
  }
}

TEST_CASE("terms are cut 25 bits below the largest exponent, and the result toward zero") {
  const DType type = DType::f16;
  // 1 and 2^-25 are within reach of each other, but the result keeps 23 fraction bits: cut.
  CHECK(step(type, {1.0f, 0x1p-12f}, {1.0f, 0x1p-13f}) == bits(1.0f));
  CHECK(step(type, {-1.0f, -0x1p-12f}, {1.0f, 0x1p-13f}) == bits(-1.0f));
  // Four of 2^-25 make a 2^-23, which the result holds.
  CHECK(step(type, {1.0f, 0x1p-12f, 0x1p-12f, 0x1p-12f, 0x1p-12f}, {1.0f, 0x1p-13f, 0x1p-13f, 0x1p-13f, 0x1p-13f}) ==
        bits(1.0f + 0x1p-23f));
  // 2^-26 is out of reach of 1, in any number.
  CHECK(step(type,
             std::vector<float>{1, 0x1p-13f, 0x1p-13f, 0x1p-13f, 0x1p-13f, 0x1p-13f, 0x1p-13f, 0x1p-13f, 0x1p-13f},
             std::vector<float>{1, 0x1p-13f, 0x1p-13f, 0x1p-13f, 0x1p-13f, 0x1p-13f, 0x1p-13f, 0x1p-13f, 0x1p-13f}) ==
        bits(1.0f));
  // 1 - 2^-25 keeps its borrow: the sum is exact before the result is cut.
  CHECK(step(type, {1.0f, -0x1p-12f}, {1.0f, 0x1p-13f}) == bits(1.0f - 0x1p-24f));
  // A product of exponent 0 may be worth up to 4: 1.5 * 1.5 = 2.25 counts as exponent 0, so 2^-25 is within reach.
  CHECK(step(type, {1.5f, 0x1p-12f, -1.5f}, {1.5f, 0x1p-13f, 1.5f}) == bits(0x1p-25f));
  CHECK(step(type, {2.0f, 0x1p-12f, -2.0f}, {1.125f, 0x1p-13f, 1.125f}) == 0u);
}

TEST_CASE("zeros, the exponent floor, infinities and NaN") {
  CHECK(step(DType::f16, {-0.0f}, {1.0f}) == 0u);
  CHECK(step(DType::f16, {1.0f, -1.0f}, {1.0f, 1.0f}) == 0u);
  CHECK(step(DType::bf16, {0.0f}, {0x1p100f}, 0x1p-126f) == bits(0x1p-126f));  // a zero product has no exponent
  // 2^-149 as accumulator: 25 bits below the floor of -133 is 2^-158, so it survives; a bf16 product of 2^-160 does
  // not.
  CHECK(step(DType::bf16, {0.0f}, {0.0f}, 0x1p-149f) == bits(0x1p-149f));
  CHECK(step(DType::bf16, {0x1p-80f}, {0x1p-80f}) == 0u);
  CHECK(step(DType::bf16, {0x1p-75f}, {0x1p-74f}) == bits(0x1p-149f));
  CHECK(step(DType::f16, {INFINITY}, {2.0f}) == 0x7F800000u);
  CHECK(step(DType::f16, {INFINITY}, {-2.0f}) == 0xFF800000u);
  CHECK(step(DType::f16, {INFINITY}, {0.0f}) == 0x7FFFFFFFu);
  CHECK(step(DType::f16, {INFINITY, INFINITY}, {1.0f, -1.0f}) == 0x7FFFFFFFu);
  CHECK(step(DType::f16, {1.0f}, {1.0f}, INFINITY) == 0x7F800000u);
  CHECK(step(DType::f16, {INFINITY}, {1.0f}, -INFINITY) == 0x7FFFFFFFu);
  CHECK(step(DType::bf16, {NAN}, {1.0f}) == 0x7FFFFFFFu);
  CHECK(step(DType::bf16, {1.0f}, {1.0f}, NAN) == 0x7FFFFFFFu);
  CHECK(step(DType::bf16, {0x1p127f, 0x1p127f}, {1.0f, 1.0f}) == 0x7F800000u);
}

TEST_CASE("a long sum goes in blocks of 16, and a short last block is filled with zeros") {
  PhiloxSequence random(5, Stream::samples);
  std::vector<uint16_t> a(40), b(40);
  for (uint16_t& x : a) x = from(DType::f16, static_cast<float>(random.below(2001) - 1000) / 256);
  for (uint16_t& x : b) x = from(DType::f16, static_cast<float>(random.below(2001) - 1000) / 256);
  const auto part = [](const std::vector<uint16_t>& all, size_t first, size_t count) {
    std::vector<uint16_t> block(all.begin() + static_cast<std::ptrdiff_t>(first),
                                all.begin() + static_cast<std::ptrdiff_t>(first + count));
    block.resize(16);
    return block;
  };
  uint32_t sum = by_doubles(DType::f16, part(a, 0, 16), part(b, 0, 16), 0);
  sum = by_doubles(DType::f16, part(a, 16, 16), part(b, 16, 16), sum);
  sum = by_doubles(DType::f16, part(a, 32, 8), part(b, 32, 8), sum);
  CHECK(tensor_core_dot(DType::f16, a.data(), b.data(), 40) == sum);
}
