// tcgen05.mma of cta_group::2 on integers: every product and sum is representable, so D is known to the bit. PTX ISA,
// "CTA Pair", "tcgen05.mma"; where what lies: pair_program.h.

#include <bit>

#include "tests/probes/pair_program.h"

namespace {

using probe::PairProgram;
using probe::Swizzle;
using Type = PairProgram::Type;

int value_a(uint32_t row, uint32_t k) {
  return static_cast<int>((row * 7 + k * 5 + row / 16 * 3 + row * k) % 9) - 4;
}
int value_b(uint32_t row, uint32_t k) {
  return static_cast<int>((row * 3 + k * 11 + row / 8 + k / 4 * row) % 7) - 3;
}
int initial(uint32_t row, uint32_t column) {
  return static_cast<int>((row * 13 + column * 29) % 64) * 4 - 128;
}

uint32_t f32(int value) {
  return std::bit_cast<uint32_t>(static_cast<float>(value));
}
uint32_t bits_of(Type type, int value) {
  if (type != Type::f16) return type == Type::bf16 ? f32(value) >> 16 : f32(value);
  if (value == 0) return 0;
  // |value| < 2048: sign, exponent, fraction of an integer.
  uint32_t magnitude = static_cast<uint32_t>(std::abs(value)), top = std::bit_width(magnitude) - 1;
  return (value < 0 ? 0x8000u : 0u) | (top + 15) << 10 | (magnitude << (10 - top) & 0x3FF);
}

/// Where D(row, column) is in what the program shows.
size_t place(const PairProgram& program, uint32_t row, uint32_t column) {
  const size_t rank = row / (program.m / 2);
  return (rank * 128 + program.lane(row, column)) * program.columns() + column % program.columns();
}

void check(PairProgram program, int seeds = 1) {
  program.finish();
  std::vector<uint32_t> before(program.words(), 0x7FC0BEEF);
  for (uint32_t row = 0; row < program.m; ++row)
    for (uint32_t column = 0; column < program.n; ++column)
      before[place(program, row, column)] = f32(initial(row, column));
  auto a = [&](uint32_t row, uint32_t k) { return bits_of(program.type, value_a(row, k)); };
  auto b = [&](uint32_t row, uint32_t k) { return bits_of(program.type, value_b(row, k)); };
  std::vector<uint32_t> d = probe::everywhere<uint32_t>(
      program.text(), program.words(), probe::inputs_of(program, a, b, before), program.shape(), seeds);
  if (d.empty()) return;
  INFO("m " << program.m << " n " << program.n << " steps " << program.steps << " issuer " << program.issuer);
  int wrong = 0;
  for (uint32_t row = 0; row < program.m && wrong < 4; ++row)
    for (uint32_t column = 0; column < program.n && wrong < 4; ++column) {
      int sum = program.first_adds ? initial(row, column) : 0;
      for (uint32_t k = 0; k < program.k(); ++k) sum += value_a(row, k) * value_b(column, k);
      const size_t at = place(program, row, column);
      const uint32_t bit = row / (program.m / 2) * 128 + program.lane(row, column);
      const bool off = program.disabled[bit / 32] >> bit % 32 & 1;
      const uint32_t want = off ? before[at] : f32(sum);
      if (d[at] == want) continue;
      ++wrong;
      FAIL_CHECK("row " << row << " column " << column << " is " << probe::hex(d[at]) << ", expected "
                        << probe::hex(want));
    }
  CHECK(wrong == 0);
}

PairProgram with(Type type, uint32_t m, uint32_t n, Swizzle a = Swizzle::b128, bool a_mn = false,
                 Swizzle b = Swizzle::b128, bool b_mn = false) {
  PairProgram program;
  program.type = type;
  program.m = m, program.n = n;
  program.a.swizzle = a, program.a.mn_major = a_mn;
  program.b.swizzle = b, program.b.mn_major = b_mn;
  return program;
}

}  // namespace

TEST_CASE("pairs: M 128 and 256, N in steps of 16, all swizzles and majors") {
  const Swizzle all[] = {Swizzle::none, Swizzle::b32, Swizzle::b64, Swizzle::b128};
  uint32_t i = 0;
  for (uint32_t n = 16; n <= 256; n += 16, ++i)
    for (uint32_t m : {128u, 256u}) {
      PairProgram program =
          with(i % 2 ? Type::f16 : Type::bf16, m, n, all[i % 4], i / 4 % 2, all[i / 2 % 4], i / 2 % 2);
      program.steps = 1 + i % 3;
      check(program, 0);
    }
}

TEST_CASE("pairs: an accumulation of many steps, under every schedule") {
  for (uint32_t m : {128u, 256u}) {
    PairProgram program = with(Type::f16, m, 128);
    program.steps = 8;
    program.first_adds = true;
    check(program, 6);
  }
}

TEST_CASE("pairs: tf32, also MN-major with 32-byte atoms") {
  check(with(Type::tf32, 256, 96));
  check(with(Type::tf32, 128, 64, Swizzle::b128_atom32, true, Swizzle::b128_atom32, true));
}

TEST_CASE("pairs: A in tensor memory of both CTAs") {
  for (uint32_t m : {128u, 256u})
    for (Type type : {Type::f16, Type::tf32}) {
      PairProgram program = with(type, m, 64);
      program.a_in_tmem = true;
      program.steps = 3;
      check(program);
    }
}

TEST_CASE("pairs: eight words of disabled lanes, the even CTA's first") {
  for (uint32_t m : {128u, 256u}) {
    PairProgram program = with(Type::f16, m, 48);
    program.with_mask = true;
    program.disabled = {0x0000FFFE, 0xFFFFFFFF, 0x80000001, 0x12345678, 0, 0x00FF00FF, 0xFFFFFFFF, 0x87654321};
    program.first_adds = true;
    check(program);
  }
}

TEST_CASE("pairs: the odd CTA may issue too") {
  for (uint32_t m : {128u, 256u}) {
    PairProgram program = with(Type::bf16, m, 32);
    program.issuer = 1;
    program.steps = 4;
    check(program, 4);
  }
}
