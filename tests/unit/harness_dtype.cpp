// Conversions of the element types, against doubles: a value is rounded by scaling it to units of the last place.

#include <bit>
#include <cfenv>
#include <cmath>

#include "common/harness/dtype.h"
#include "common/harness/elements.h"
#include "common/harness/philox.h"
#include "tests/catch.h"

using namespace ladder;

namespace {

struct Format {
  int fraction_bits, lowest_exponent, highest_exponent;
};
constexpr Format kF16{10, -14, 15}, kBf16{7, -126, 127};

double value_of(uint16_t bits, Format format) {
  const int exponent_bits = 15 - format.fraction_bits;
  const int field = (bits >> format.fraction_bits) & ((1 << exponent_bits) - 1);
  const int fraction = bits & ((1 << format.fraction_bits) - 1);
  const double sign = bits & 0x8000 ? -1 : 1;
  if (field == (1 << exponent_bits) - 1) return fraction ? std::nan("") : sign * INFINITY;
  if (field == 0) return sign * std::ldexp(fraction, format.lowest_exponent - format.fraction_bits);
  return sign *
         std::ldexp(fraction + (1 << format.fraction_bits), field - 1 + format.lowest_exponent - format.fraction_bits);
}

/// Round to nearest even, as a value.
double rounded(double value, Format format) {
  if (value == 0 || !std::isfinite(value)) return value;
  const int exponent = std::max(std::ilogb(value), format.lowest_exponent);
  const double unit = std::ldexp(1.0, exponent - format.fraction_bits);
  const double result = std::nearbyint(value / unit) * unit;
  return std::fabs(result) >= std::ldexp(1.0, format.highest_exponent + 1) ? std::copysign(INFINITY, value) : result;
}

void check_rounding(uint32_t bits) {
  const double value = std::bit_cast<float>(bits);
  CAPTURE(bits, value);
  const uint16_t f16 = f32_to_f16(bits), bf16 = f32_to_bf16(bits);
  if (std::isnan(value)) {
    REQUIRE(std::isnan(value_of(f16, kF16)));
    REQUIRE(std::isnan(value_of(bf16, kBf16)));
    return;
  }
  REQUIRE(value_of(f16, kF16) == rounded(value, kF16));
  REQUIRE(value_of(bf16, kBf16) == rounded(value, kBf16));
  REQUIRE((f16 >> 15) == (bits >> 31));
  REQUIRE((bf16 >> 15) == (bits >> 31));
}

}  // namespace

TEST_CASE("every f16 and bf16 becomes an f32 of its value and comes back") {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const uint16_t half = static_cast<uint16_t>(bits);
    const double f16 = value_of(half, kF16), bf16 = value_of(half, kBf16);
    CAPTURE(bits);
    const float as_f16 = std::bit_cast<float>(f16_to_f32(half)), as_bf16 = std::bit_cast<float>(bf16_to_f32(half));
    if (std::isnan(f16)) {
      REQUIRE(std::isnan(as_f16));
      REQUIRE(std::isnan(f16_as_float(half)));
    } else {
      REQUIRE(double{as_f16} == f16);
      REQUIRE(std::bit_cast<uint32_t>(f16_as_float(half)) == f16_to_f32(half));
      REQUIRE(f32_to_f16(f16_to_f32(half)) == half);
    }
    if (std::isnan(bf16)) {
      REQUIRE(std::isnan(as_bf16));
    } else {
      REQUIRE(double{as_bf16} == bf16);
      REQUIRE(f32_to_bf16(bf16_to_f32(half)) == half);
    }
  }
}

TEST_CASE("f32 is rounded to nearest even") {
  REQUIRE(std::fegetround() == FE_TONEAREST);
  SECTION("at every tie and beside it") {
    for (uint32_t bits = 0; bits < 0x7F00; ++bits) {
      for (const uint32_t half : {0x7FFFu, 0x8000u, 0x8001u}) {
        check_rounding(bits << 16 | half);  // between neighbours of bf16
        check_rounding((bits << 16 | half) ^ 0x80000000u);
      }
    }
    for (uint32_t bits = 0; bits < 0x7C00; ++bits) {
      const double low = value_of(static_cast<uint16_t>(bits), kF16);
      const double high = bits == 0x7BFF ? 65536 : value_of(static_cast<uint16_t>(bits + 1), kF16);
      const uint32_t tie = std::bit_cast<uint32_t>(static_cast<float>((low + high) / 2));
      for (const uint32_t near : {tie - 1, tie, tie + 1}) check_rounding(near);
    }
  }
  SECTION("anywhere") {
    PhiloxSequence random(3, Stream::samples);
    for (int i = 0; i < 200000; ++i) check_rounding(random.next());
    for (int i = 0; i < 200000; ++i)
      check_rounding((random.next() & 0x807FFFFFu) | ((100u + random.next() % 50u) << 23));
  }
}
