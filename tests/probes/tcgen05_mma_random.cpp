// The arithmetic of tcgen05.mma on random bits, against a scalar model in 128-bit integers. The rule (read off an
// H200's tensor cores for wgmma, and published for B200 as MMA-Sim): one instruction adds all its products and the old
// D in one sum. A product's exponent is the sum of its operands' exponents (subnormals at the format's lowest,
// significands not normalised); terms are cut toward zero at 25 fraction bits below the largest exponent (of terms that
// are not zero, and at least -133), added exactly, and the sum is cut to f32 toward zero, or rounded to f16 to nearest
// even. A zero sum is +0; an invalid or NaN one is 0x7FFFFFFF (f16 0x7FFF).

#include <bit>
#include <optional>

#include "tests/probes/mma_program.h"

namespace {

using probe::MmaProgram;
using probe::Swizzle;
using Type = MmaProgram::Type;
using Wide = __int128;

struct Format {
  int exponent_bits, fraction_bits;
};
constexpr Format kF16{5, 10}, kBf16{8, 7}, kTf32{8, 10}, kF32{8, 23};

/// value = significand * 2^(exponent - fraction_bits)
struct Number {
  bool negative = false, infinite = false, nan = false;
  int exponent = 0;
  int64_t significand = 0;
};

Number decode(uint32_t bits, const Format& format) {
  int bias = (1 << (format.exponent_bits - 1)) - 1;
  int exponent = static_cast<int>(bits >> format.fraction_bits & ((1u << format.exponent_bits) - 1));
  Number out;
  out.negative = bits >> (format.exponent_bits + format.fraction_bits) & 1;
  out.significand = bits & ((1 << format.fraction_bits) - 1);
  if (exponent == (1 << format.exponent_bits) - 1) {
    out.nan = out.significand != 0;
    out.infinite = !out.nan;
  } else if (exponent != 0) {
    out.significand |= 1 << format.fraction_bits;
  }
  out.exponent = std::max(exponent, 1) - bias;
  return out;
}

/// |sum| * 2^scale to f32, cut.
uint32_t to_f32(Wide sum, int scale) {
  if (sum == 0) return 0;
  uint32_t sign = sum < 0 ? 0x80000000u : 0;
  Wide magnitude = sum < 0 ? -sum : sum;
  int top = 0;
  while (magnitude >> top != 1) ++top;
  int exponent = std::max(top + scale, -126);
  int shift = exponent - 23 - scale;  // units of the last place of f32 in units of the sum
  Wide significand = shift >= 0 ? magnitude >> shift : magnitude << -shift;
  if (significand == 0) return 0;
  if (exponent > 127) return sign | 0x7F800000;
  uint32_t field = significand >> 23 ? static_cast<uint32_t>(exponent + 127) : 0;
  return sign | field << 23 | (static_cast<uint32_t>(significand) & 0x7FFFFF);
}

uint32_t to_f16(Wide sum, int scale) {
  if (sum == 0) return 0;
  uint32_t sign = sum < 0 ? 0x8000u : 0;
  Wide magnitude = sum < 0 ? -sum : sum;
  int top = 0;
  while (magnitude >> top != 1) ++top;
  int exponent = std::max(top + scale, -14);
  int shift = exponent - 10 - scale;
  Wide significand;
  if (shift > 120) {
    significand = 0;
  } else if (shift > 0) {
    significand = magnitude >> shift;
    Wide rest = magnitude - (significand << shift), half = Wide{1} << (shift - 1);
    if (rest > half || (rest == half && (significand & 1))) ++significand;
  } else {
    significand = magnitude << -shift;
  }
  if (significand == 0) return 0;
  if (significand >> 11) significand >>= 1, ++exponent;
  if (exponent > 15) return sign | 0x7C00;
  uint32_t field = significand >> 10 ? static_cast<uint32_t>(exponent + 15) : 0;
  return sign | field << 10 | (static_cast<uint32_t>(significand) & 0x3FF);
}

/// One instruction for one element of D.
uint32_t fused(const MmaProgram& program, const std::vector<uint32_t>& a, const std::vector<uint32_t>& b,
               std::optional<uint32_t> d) {
  const Format& format = program.type == Type::f16 ? kF16 : program.type == Type::bf16 ? kBf16 : kTf32;
  struct Term {
    bool negative;
    int exponent, fraction_bits;
    int64_t significand;
  };
  std::vector<Term> terms;
  bool nan = false, plus = false, minus = false;
  const auto infinity = [&](bool negative) { (negative ? minus : plus) = true; };
  for (size_t k = 0; k < a.size(); ++k) {
    Number x = decode(program.type == Type::tf32 ? a[k] >> 13 : a[k], format);
    Number y = decode(program.type == Type::tf32 ? b[k] >> 13 : b[k], format);
    bool negative = (x.negative != program.negate_a) != (y.negative != program.negate_b);
    if (x.nan || y.nan) nan = true;
    if (x.infinite || y.infinite) {
      if ((!x.infinite && x.significand == 0) || (!y.infinite && y.significand == 0)) nan = true;
      infinity(negative);
    } else if (x.significand && y.significand) {
      terms.push_back({negative, x.exponent + y.exponent, 2 * format.fraction_bits, x.significand * y.significand});
    }
  }
  if (d) {
    Number c = decode(program.d_is_f16 ? *d & 0xFFFF : *d, program.d_is_f16 ? kF16 : kF32);
    if (c.nan) nan = true;
    if (c.infinite) infinity(c.negative);
    if (!c.nan && !c.infinite && c.significand)
      terms.push_back({c.negative, c.exponent, program.d_is_f16 ? 10 : 23, c.significand});
  }
  if (nan || (plus && minus)) return program.d_is_f16 ? 0x7FFF : 0x7FFFFFFF;
  if (plus || minus) return program.d_is_f16 ? (minus ? 0xFC00 : 0x7C00) : (minus ? 0xFF800000 : 0x7F800000);
  int largest = -133;
  for (const Term& term : terms) largest = std::max(largest, term.exponent);
  Wide sum = 0;
  for (const Term& term : terms) {
    int shift = term.exponent - largest + 25 - term.fraction_bits;
    Wide magnitude = term.significand;
    magnitude = shift >= 0 ? magnitude << shift : shift > -100 ? magnitude >> -shift : 0;
    sum += term.negative ? -magnitude : magnitude;
  }
  return program.d_is_f16 ? to_f16(sum, largest - 25) : to_f32(sum, largest - 25);
}

/// `spread`: how many binades the values span, roughly; `specials`: infinities, NaN, zeros, subnormals among them.
void check(MmaProgram program, int spread, bool specials, uint64_t seed) {
  program.finish();
  probe::Random random(seed);
  const bool f16 = program.type == Type::f16;
  const auto element = [&](bool accumulator) -> uint32_t {
    uint64_t r = random.next();
    bool half = accumulator ? program.d_is_f16 : f16;
    uint32_t sign = r & 1, fraction = static_cast<uint32_t>(r >> 8) & (half ? 0x3FF : 0x7FFFFF);
    int middle = half ? 15 : 127;
    int exponent = middle + static_cast<int>((r >> 32) % static_cast<uint64_t>(spread)) - spread / 2;
    exponent = std::clamp(exponent, 0, half ? 30 : 254);
    if (specials && (r >> 50) % 24 == 0) exponent = 0;
    if (specials && (r >> 50) % 24 == 1) exponent = fraction = 0;
    if (specials && (r >> 50) % 601 == 2) exponent = half ? 31 : 255, fraction = (r >> 40) & 1 ? fraction : 0;
    uint32_t bits = sign << (half ? 15 : 31) | static_cast<uint32_t>(exponent) << (half ? 10 : 23) | fraction;
    return !accumulator && program.type == Type::bf16 ? bits >> 16 : bits;
  };
  std::vector<uint32_t> a(size_t{program.m} * program.k()), b(size_t{program.n} * program.k());
  for (uint32_t& value : a) value = element(false);
  for (uint32_t& value : b) value = element(false);
  std::vector<uint32_t> before(size_t{128} * program.n);
  for (uint32_t& value : before) value = element(true);
  std::vector<uint32_t> got = probe::run_mma(
      program, [&](uint32_t row, uint32_t k) { return a[row * program.k() + k]; },
      [&](uint32_t row, uint32_t k) { return b[row * program.k() + k]; }, before, 1);
  if (got.empty()) return;
  int wrong = 0;
  for (uint32_t row = 0; row < program.m && wrong < 5; ++row)
    for (uint32_t column = 0; column < program.n && wrong < 5; ++column) {
      size_t cell = size_t{program.lane(row)} * program.n + column;
      std::optional<uint32_t> d;
      if (program.first_adds) d = before[cell];
      for (uint32_t step = 0; step < program.steps; ++step) {
        auto at = [&](const std::vector<uint32_t>& values, uint32_t r) {
          auto first = values.begin() + static_cast<std::ptrdiff_t>(r * program.k() + step * program.depth());
          return std::vector<uint32_t>(first, first + static_cast<std::ptrdiff_t>(program.depth()));
        };
        d = fused(program, at(a, row), at(b, column), d);
      }
      uint32_t mask = program.d_is_f16 ? 0xFFFF : 0xFFFFFFFF;
      if ((got[cell] & mask) == *d) continue;
      ++wrong;
      FAIL_CHECK("row " << row << " column " << column << " is " << probe::hex(got[cell]) << ", expected "
                        << probe::hex(*d) << "; type " << static_cast<int>(program.type) << " spread " << spread);
    }
  CHECK(wrong == 0);
}

MmaProgram program_of(Type type, uint32_t m, uint32_t n, uint32_t steps, bool adds) {
  MmaProgram program;
  program.type = type, program.m = m, program.n = n, program.steps = steps, program.first_adds = adds;
  return program;
}

}  // namespace

TEST_CASE("tcgen05.mma on random values gives the fused, truncated sums of the model") {
  uint64_t seed = 1;
  for (Type type : {Type::f16, Type::bf16, Type::tf32})
    for (int spread : {1, 6, 20, type == Type::f16 ? 30 : 60}) {
      check(program_of(type, 64, 40, 3, seed % 2), spread, false, seed);
      ++seed;
    }
}

TEST_CASE("tcgen05.mma on the extremes: subnormals, zeros, infinities, NaN, sums that leave f32") {
  uint64_t seed = 100;
  for (Type type : {Type::f16, Type::bf16, Type::tf32})
    for (int spread : {8, type == Type::f16 ? 30 : 250})
      check(program_of(type, 128, 32, 2, true), spread, true, seed++);
}

TEST_CASE("tcgen05.mma with D of f16 rounds to nearest even") {
  for (int spread : {3, 10, 30}) {
    MmaProgram program = program_of(Type::f16, 64, 64, 2, spread != 3);
    program.d_is_f16 = true;
    check(program, spread, spread == 30, 200 + static_cast<uint64_t>(spread));
  }
}

TEST_CASE("tcgen05.mma: negation turns signs before the sum, A in tensor memory gives the same bits") {
  for (Type type : {Type::f16, Type::tf32}) {
    MmaProgram program = program_of(type, 128, 24, 2, true);
    program.negate_a = true;
    check(program, 12, true, 300);
    program.negate_b = true;
    program.a_in_tmem = true;
    check(program, 12, true, 301);
  }
}
