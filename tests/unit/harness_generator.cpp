// The generator and the inputs made from it. Expected bits come from the Random123 vectors and from a separate
// implementation of the recipes in inputs.h, written in Python with its own f16 conversion (struct's "e" format).

#include <array>
#include <cmath>
#include <cstdint>

#include "common/harness/inputs.h"
#include "common/harness/philox.h"
#include "tests/catch.h"

using namespace ladder;

TEST_CASE("philox4x32-10 gives the known answers of Random123") {
  using Words = std::array<uint32_t, 4>;
  CHECK(philox4x32({0, 0, 0, 0}, {0, 0}) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}) == Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("sixteen blocks side by side equal sixteen blocks one by one") {
  const uint64_t seed = 0xFEDCBA9876543210u;
  for (const uint64_t first : {uint64_t{0}, uint64_t{0xFFFFFFF8u}, uint64_t{1} << 40}) {
    const PhiloxBatch batch = philox_batch(seed, Stream::matrix_b, first);
    for (uint32_t lane = 0; lane < kPhiloxLanes; ++lane) {
      const uint64_t block = first + lane;
      const auto expected = philox4x32({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), 1, 0},
                                       {0x76543210u, 0xFEDCBA98u});
      for (uint32_t word = 0; word < 4; ++word) CHECK(batch.word[word][lane] == expected[word]);
    }
  }
}

TEST_CASE("the same seed gives the same matrices everywhere") {
  const uint64_t seed = 0x123456789ABCDEFu;
  HostMatrix f16(37, 53, DType::f16), bf16(37, 53, DType::bf16);
  SECTION("normal") {
    fill_random(f16, seed, Stream::matrix_a);
    CHECK(f16.bits(0, 0) == 0xbcde);
    CHECK(f16.bits(0, 1) == 0xb879);
    CHECK(f16.bits(0, 2) == 0x3f4b);
    CHECK(f16.bits(0, 17) == 0xbf7e);
    CHECK(f16.bits(0, 40) == 0x3c0a);
    CHECK(f16.bits(36, 52) == 0xbc96);
    CHECK(hash_of(f16) == 0x05d7d87a37bb3705u);
    fill_random(bf16, seed, Stream::matrix_a);
    CHECK(bf16.bits(0, 0) == 0xbf9c);
    CHECK(bf16.bits(36, 52) == 0xbf93);
    CHECK(hash_of(bf16) == 0x9afb877b677ab8e6u);
  }
  SECTION("integer") {
    const IntegerRange range{.magnitude = 7, .keep = 40000};
    fill_integer(f16, seed, Stream::matrix_b, range);
    CHECK(f16.bits(0, 2) == 0x4200);
    CHECK(f16.bits(0, 17) == 0x3c00);
    CHECK(f16.bits(1, 17) == 0xbc00);
    CHECK(f16.bits(36, 52) == 0x4500);
    CHECK(hash_of(f16) == 0x0cda9a260c4ad33fu);
    fill_integer(bf16, seed, Stream::matrix_b, range);
    CHECK(bf16.bits(0, 2) == 0x4040);
    CHECK(hash_of(bf16) == 0x8d4aee2a3842a37fu);
  }
}

TEST_CASE("hashes are FNV-1a over elements") {
  HostMatrix small(1, 3, DType::bf16);
  small.set_bits(0, 0, 1);
  small.set_bits(0, 1, 2);
  small.set_bits(0, 2, 0xFFFF);
  CHECK(hash_of(small) == 0xd08a0e1866f606efu);
  HostMatrix wide(2, 1, DType::f32);
  wide.set_bits(0, 0, 0x3f800000);
  wide.set_bits(1, 0, 0x80000000);
  CHECK(hash_of(wide) == 0x0833276d986b6fedu);
}

TEST_CASE("normal inputs look normal, A and B are different, seeds matter") {
  HostMatrix a(256, 1024, DType::f16), b(256, 1024, DType::f16), other(256, 1024, DType::f16);
  fill_random(a, 1, Stream::matrix_a);
  fill_random(b, 1, Stream::matrix_b);
  fill_random(other, 2, Stream::matrix_a);
  double sum = 0, square = 0, fourth = 0, correlation = 0;
  int64_t equal = 0, within = 0;
  for (int64_t i = 0; i < a.size(); ++i) {
    const double x = a.value(0, i);
    sum += x;
    square += x * x;
    fourth += x * x * x * x;
    correlation += x * b.value(0, i);
    equal += a.bits(0, i) == other.bits(0, i);
    within += std::fabs(x) < 0.98245;
  }
  const double n = static_cast<double>(a.size()), variance = square / n;
  CHECK(std::fabs(sum / n) < 5 / std::sqrt(n));
  CHECK(std::fabs(variance - 0.98245 * 0.98245) < 0.02);
  CHECK(std::fabs(fourth / n / (variance * variance) - 3) < 0.15);
  CHECK(std::fabs(static_cast<double>(within) / n - 0.6827) < 0.005);  // of a normal distribution, one deviation
  CHECK(std::fabs(correlation / n) < 5 / std::sqrt(n));
  CHECK(static_cast<double>(equal) / n < 0.01);
}

TEST_CASE("integer inputs are integers of the promised size, and their sums stay exact") {
  for (const DType out : {DType::f32, DType::f16, DType::bf16}) {
    const DType in = out == DType::bf16 ? DType::bf16 : DType::f16;
    for (const int64_t k : {8, 16, 1000, 4096, 28672, 1 << 20}) {
      const IntegerRange range = integer_range(k, out);
      CAPTURE(name_of(out), k, range.magnitude, range.keep);
      REQUIRE(range.magnitude >= 1);
      REQUIRE(range.magnitude <= 127);
      REQUIRE(range.keep <= 65536);
      if (out == DType::f32) {
        CHECK(k * range.magnitude * range.magnitude < (1 << 24));
        CHECK((range.magnitude == 127 || k * (range.magnitude + 1) * (range.magnitude + 1) >= (1 << 24)));
      }
      HostMatrix a(1, 4096, in);
      fill_integer(a, 5, Stream::matrix_a, range);
      double square = 0;
      for (int64_t i = 0; i < a.size(); ++i) {
        const double value = a.value(0, i);
        REQUIRE(value == std::round(value));
        REQUIRE(std::fabs(value) <= range.magnitude);
        square += value * value;
      }
      // A sum of k products of two such numbers deviates by sqrt(k) times their variance.
      const double deviation = std::sqrt(static_cast<double>(k)) * square / 4096;
      CHECK(deviation > 0);
      if (out != DType::f32) CHECK(deviation < (out == DType::f16 ? 2048 : 256) / 7.0);
    }
  }
}
