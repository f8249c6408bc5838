// Video instructions. Expected values follow the pseudo code of PTX ISA, "Scalar Video Instructions" and "SIMD Video
// Instructions", written down here in the plainest form.

#include <algorithm>

#include "tests/probes/probe.h"

namespace {

using probe::check;

std::vector<uint32_t> numbers(uint64_t seed) {
  std::vector<uint32_t> out = probe::corners<uint32_t>(40, seed);
  for (uint32_t v : {0x7FFF8000u, 0x80007FFFu, 0x00FF01FEu, 0x7F80FF00u, 0xFFFF0000u}) out.push_back(v);
  std::rotate(out.begin(), out.begin() + static_cast<long>(seed * 7 % out.size()), out.end());
  return out;
}
const std::vector<uint32_t> kA = numbers(1), kB = numbers(2), kC = numbers(3);

int64_t saturate(int64_t value, int bits, bool is_signed) {
  int64_t low = is_signed ? -(int64_t{1} << (bits - 1)) : 0;
  int64_t high = is_signed ? (int64_t{1} << (bits - 1)) - 1 : (int64_t{1} << bits) - 1;
  return value < low ? low : value > high ? high : value;
}

}  // namespace

TEST_CASE("vadd, vsub, vabsdiff, vmin, vmax of whole words, signed and not, with a second operation") {
  check<uint32_t, uint32_t, uint32_t>(
      "vadd.u32.u32.u32 %d, %a, %b;", [](auto a, auto b) { return a + b; }, kA, kB);
  check<uint32_t, uint32_t, uint32_t>(
      "vadd.s32.s32.s32.sat %d, %a, %b;",
      [](auto a, auto b) {
        return static_cast<uint32_t>(saturate(int64_t{static_cast<int32_t>(a)} + static_cast<int32_t>(b), 32, true));
      },
      kA, kB);
  check<uint32_t, uint32_t, uint32_t>(
      "vsub.u32.u32.u32.sat %d, %a, %b;", [](auto a, auto b) { return a > b ? a - b : 0; }, kA, kB);
  check<uint32_t, uint32_t, uint32_t, uint32_t>(
      "vabsdiff.u32.s32.s32.add %d, %a, %b, %c;",
      [](auto a, auto b, auto c) {
        int64_t difference = int64_t{static_cast<int32_t>(a)} - static_cast<int32_t>(b);
        return static_cast<uint32_t>(difference < 0 ? -difference : difference) + c;
      },
      kA, kB, kC);
  check<uint32_t, uint32_t, uint32_t, uint32_t>(
      "vmin.s32.s32.u32.max %d, %a, %b, %c;",
      [](auto a, auto b, auto c) {
        int64_t least = std::min<int64_t>(static_cast<int32_t>(a), b);
        return static_cast<uint32_t>(std::max(static_cast<int32_t>(least), static_cast<int32_t>(c)));
      },
      kA, kB, kC);
  check<uint32_t, uint32_t, uint32_t, uint32_t>(
      "vmax.u32.u32.u32.min %d, %a, %b, %c;", [](auto a, auto b, auto c) { return std::min(std::max(a, b), c); }, kA,
      kB, kC);
}

TEST_CASE("parts of words: which byte or half is taken, and into which the result goes") {
  check<uint32_t, uint32_t, uint32_t>(
      "vadd.s32.s32.u32 %d, %a.b1, %b.h1;",
      [](auto a, auto b) { return static_cast<uint32_t>(static_cast<int8_t>(a >> 8) + static_cast<int32_t>(b >> 16)); },
      kA, kB);
  const std::vector<uint64_t> sums =
      probe::evaluate({.text = "vadd.s32.s32.s32.sat %d.h1, %a.h0, %b.h1, %c;",
                       .result_bits = 32,
                       .source_bits = {32, 32, 32},
                       .apart = "ptxas 13.0 puts the upper half of the sum into .h1, the ISA its lower half"},
                      {probe::all_bits(kA), probe::all_bits(kB), probe::all_bits(kC)});
  for (size_t i = 0; i < sums.size(); ++i) {
    int64_t sum = int64_t{static_cast<int16_t>(kA[i])} + static_cast<int16_t>(kB[i] >> 16);
    CHECK(sums[i] == (static_cast<uint32_t>(saturate(sum, 16, true) & 0xFFFF) << 16 | (kC[i] & 0xFFFF)));
  }
  check<uint32_t, uint32_t, uint32_t, uint32_t>(
      "vsub.u32.u32.u32 %d.b2, %a.b3, %b.b0, %c;",
      [](auto a, auto b, auto c) { return (c & 0xFF00FFFF) | (((a >> 24) - (b & 0xFF)) & 0xFF) << 16; }, kA, kB, kC);
}

TEST_CASE("vshl, vshr: the count clamped to 32, or its low five bits") {
  const std::vector<uint32_t> counts = [] {
    std::vector<uint32_t> out;
    for (size_t i = 0; i < kA.size(); ++i) out.push_back(i % 3 == 2 ? kB[i] : static_cast<uint32_t>(i % 36));
    return out;
  }();
  check<uint32_t, uint32_t, uint32_t>(
      "vshl.u32.u32.u32.clamp %d, %a, %b;", [](auto a, auto b) { return b > 31 ? 0u : a << b; }, kA, counts);
  check<uint32_t, uint32_t, uint32_t>(
      "vshl.u32.u32.u32.wrap %d, %a, %b;", [](auto a, auto b) { return a << (b & 31); }, kA, counts);
  check<uint32_t, uint32_t, uint32_t>(
      "vshr.s32.s32.u32.clamp %d, %a, %b;",
      [](auto a, auto b) { return static_cast<uint32_t>(static_cast<int32_t>(a) >> std::min(b, 31u)); }, kA, counts);
  check<uint32_t, uint32_t, uint32_t>(
      "vshr.u32.u32.u32.wrap %d, %a, %b;", [](auto a, auto b) { return a >> (b & 31); }, kA, counts);
}

TEST_CASE("vset compares, and counts with .add") {
  check<uint32_t, uint32_t, uint32_t>(
      "vset.s32.s32.lt %d, %a, %b;",
      [](auto a, auto b) { return static_cast<uint32_t>(static_cast<int32_t>(a) < static_cast<int32_t>(b)); }, kA, kB);
  check<uint32_t, uint32_t, uint32_t, uint32_t>(
      "vset.u32.u32.ge.add %d, %a, %b, %c;", [](auto a, auto b, auto c) { return static_cast<uint32_t>(a >= b) + c; },
      kA, kB, kC);
}

namespace {

/// f of each of the `lanes` parts, merged.
template <int kLanes, bool kSigned, class F>
uint32_t each(uint32_t a, uint32_t b, F f) {
  constexpr int kBits = 32 / kLanes;
  uint32_t out = 0;
  for (int i = 0; i < kLanes; ++i) {
    auto part = [&](uint32_t v) {
      int64_t raw = v >> (i * kBits) & ((int64_t{1} << kBits) - 1);
      return kSigned && raw >= int64_t{1} << (kBits - 1) ? raw - (int64_t{1} << kBits) : raw;
    };
    out |= static_cast<uint32_t>(f(part(a), part(b)) & ((int64_t{1} << kBits) - 1)) << (i * kBits);
  }
  return out;
}

}  // namespace

TEST_CASE("halves and bytes side by side") {
  check<uint32_t, uint32_t, uint32_t>(
      "{ .reg .b32 zero; mov.b32 zero, 0; vadd2.s32.s32.s32.sat %d, %a, %b, zero; }",
      [](auto a, auto b) {
        return each<2, true>(a, b, [](int64_t x, int64_t y) { return saturate(x + y, 16, true); });
      },
      kA, kB);
  check<uint32_t, uint32_t, uint32_t>(
      "{ .reg .b32 zero; mov.b32 zero, 0; vadd4.u32.u32.u32 %d, %a, %b, zero; }",
      [](auto a, auto b) { return each<4, false>(a, b, [](int64_t x, int64_t y) { return x + y; }); }, kA, kB);
  check<uint32_t, uint32_t, uint32_t>(
      "{ .reg .b32 zero; mov.b32 zero, 0; vsub4.u32.u32.u32.sat %d, %a, %b, zero; }",
      [](auto a, auto b) {
        return each<4, false>(a, b, [](int64_t x, int64_t y) { return saturate(x - y, 8, false); });
      },
      kA, kB);
  check<uint32_t, uint32_t, uint32_t>(
      "{ .reg .b32 zero; mov.b32 zero, 0; vabsdiff4.u32.u32.u32 %d, %a, %b, zero; }",
      [](auto a, auto b) { return each<4, false>(a, b, [](int64_t x, int64_t y) { return x < y ? y - x : x - y; }); },
      kA, kB);
  check<uint32_t, uint32_t, uint32_t>(
      "{ .reg .b32 zero; mov.b32 zero, 0; vavrg4.u32.u32.u32 %d, %a, %b, zero; }",
      [](auto a, auto b) { return each<4, false>(a, b, [](int64_t x, int64_t y) { return (x + y + 1) / 2; }); }, kA,
      kB);
  check<uint32_t, uint32_t, uint32_t>(
      "{ .reg .b32 zero; mov.b32 zero, 0; vavrg2.s32.s32.s32 %d, %a, %b, zero; }",
      [](auto a, auto b) {
        return each<2, true>(a, b, [](int64_t x, int64_t y) { return (x + y + (x + y >= 0 ? 1 : 0)) >> 1; });
      },
      kA, kB);
  check<uint32_t, uint32_t, uint32_t>(
      "{ .reg .b32 zero; mov.b32 zero, 0; vmin2.s32.s32.s32 %d, %a, %b, zero; }",
      [](auto a, auto b) { return each<2, true>(a, b, [](int64_t x, int64_t y) { return std::min(x, y); }); }, kA, kB);
  check<uint32_t, uint32_t, uint32_t>(
      "{ .reg .b32 zero; mov.b32 zero, 0; vset4.u32.u32.gt %d, %a, %b, zero; }",
      [](auto a, auto b) { return each<4, false>(a, b, [](int64_t x, int64_t y) { return x > y; }); }, kA, kB);
}

TEST_CASE("SIMD video: sums of lanes with .add, lanes that the mask leaves to c, lanes taken crosswise") {
  check<uint32_t, uint32_t, uint32_t, uint32_t>(
      "vabsdiff4.u32.u32.u32.add %d, %a, %b, %c;",
      [](auto a, auto b, auto c) {
        uint32_t sum = c;
        for (int i = 0; i < 32; i += 8) {
          int x = static_cast<int>(a >> i & 255), y = static_cast<int>(b >> i & 255);
          sum += static_cast<uint32_t>(x > y ? x - y : y - x);
        }
        return sum;
      },
      kA, kB, kC);
  check<uint32_t, uint32_t, uint32_t, uint32_t>(
      "vmax2.u32.u32.u32 %d.h1, %a, %b, %c;",
      [](auto a, auto b, auto c) { return std::max(a >> 16, b >> 16) << 16 | (c & 0xFFFF); }, kA, kB, kC);
  check<uint32_t, uint32_t, uint32_t, uint32_t>(
      "vadd4.u32.u32.u32 %d.b20, %a, %b, %c;",
      [](auto a, auto b, auto c) {
        return (c & 0xFF00FF00) | ((a + b) & 0xFF) | ((((a >> 16 & 0xFF) + (b >> 16 & 0xFF)) & 0xFF) << 16);
      },
      kA, kB, kC);
  // Half 0 of the result from half 3 (the upper one of b) and half 0; half 1 from half 1 of a and half 2, the lower one
  // of b.
  check<uint32_t, uint32_t, uint32_t>(
      "{ .reg .b32 zero; mov.b32 zero, 0; vsub2.u32.u32.u32 %d, %a.h13, %b.h20, zero; }",
      [](auto a, auto b) {
        return (((b >> 16) - (a & 0xFFFF)) & 0xFFFF) | (((a >> 16) - (b & 0xFFFF)) & 0xFFFF) << 16;
      },
      kA, kB);
}
