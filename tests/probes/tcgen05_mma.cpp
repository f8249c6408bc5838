// tcgen05.mma, kinds f16 and tf32, on integers: every product and sum is representable, so D is known to the bit
// whatever the order of the sum. Operands lie where the ISA's canonical layouts put them (mma_program.h).

#include <bit>

#include "tests/probes/mma_program.h"

namespace {

using probe::MmaProgram;
using probe::Swizzle;
using Type = MmaProgram::Type;

/// A small integer that tells (row, k) apart from its neighbours.
int value_a(uint32_t row, uint32_t k) {
  return static_cast<int>((row * 7 + k * 5 + row / 16 * 3 + row * k) % 9) - 4;
}
int value_b(uint32_t row, uint32_t k) {
  return static_cast<int>((row * 3 + k * 11 + row / 8 + k / 4 * row) % 7) - 3;
}

uint16_t half_of(int value) {
  // |value| < 2048: sign, exponent, fraction of an integer.
  if (value == 0) return 0;
  uint32_t magnitude = static_cast<uint32_t>(std::abs(value)), top = std::bit_width(magnitude) - 1;
  return static_cast<uint16_t>((value < 0 ? 0x8000 : 0) | (top + 15) << 10 | (magnitude << (10 - top) & 0x3FF));
}
uint32_t bits_of(Type type, int value) {
  uint32_t f32 = std::bit_cast<uint32_t>(static_cast<float>(value));
  return type == Type::f16 ? half_of(value) : type == Type::bf16 ? f32 >> 16 : f32;
}

int initial(uint32_t row, uint32_t column) {
  return static_cast<int>((row * 13 + column * 29) % 64) * 4 - 128;
}

/// Runs the program on these integers and checks D in every lane that it concerns.
void check(MmaProgram program, int seeds = 1) {
  program.finish();
  const uint32_t n = program.n;
  std::vector<uint32_t> before(size_t{128} * n, 0x7FC0BEEF);
  for (uint32_t row = 0; row < program.m; ++row)
    for (uint32_t column = 0; column < n; ++column)
      before[size_t{program.lane(row)} * n + column] =
          program.d_is_f16 ? half_of(initial(row, column)) | 0xABCD0000
                           : std::bit_cast<uint32_t>(static_cast<float>(initial(row, column)));
  auto a = [&](uint32_t row, uint32_t k) { return bits_of(program.type, value_a(row, k)); };
  auto b = [&](uint32_t row, uint32_t k) { return bits_of(program.type, value_b(row, k)); };
  std::vector<uint32_t> d = probe::run_mma(program, a, b, before, seeds);
  if (d.empty()) return;
  INFO("m " << program.m << " n " << n << " steps " << program.steps << " type " << static_cast<int>(program.type)
            << " a swizzle " << static_cast<int>(program.a.swizzle) << (program.a.mn_major ? " MN" : " K")
            << (program.a_in_tmem ? " in TMEM" : "") << " b swizzle " << static_cast<int>(program.b.swizzle)
            << (program.b.mn_major ? " MN" : " K"));
  int wrong = 0;
  for (uint32_t row = 0; row < program.m && wrong < 4; ++row)
    for (uint32_t column = 0; column < n && wrong < 4; ++column) {
      uint32_t lane = program.lane(row), got = d[size_t{lane} * n + column];
      int sum = 0;
      for (uint32_t k = 0; k < program.k(); ++k) sum += value_a(row, k) * value_b(column, k);
      if (program.negate_a != program.negate_b) sum = -sum;
      double want = sum;
      if (program.first_adds)
        want += initial(row, column) / static_cast<double>(program.scale > 0 ? 1 << program.scale : 1);
      uint32_t bits =
          program.d_is_f16 ? half_of(static_cast<int>(want)) : std::bit_cast<uint32_t>(static_cast<float>(want));
      if (program.disabled[lane / 32] >> lane % 32 & 1) bits = before[size_t{lane} * n + column];
      bool same = program.d_is_f16 ? (got & 0xFFFF) == (bits & 0xFFFF) : got == bits;
      if (same) continue;
      ++wrong;
      FAIL_CHECK("row " << row << " column " << column << " is " << probe::hex(got) << ", expected "
                        << probe::hex(bits));
    }
  CHECK(wrong == 0);
}

MmaProgram with(Type type, Swizzle a, bool a_mn, Swizzle b, bool b_mn) {
  MmaProgram program;
  program.type = type;
  program.a.swizzle = a, program.a.mn_major = a_mn;
  program.b.swizzle = b, program.b.mn_major = b_mn;
  return program;
}

}  // namespace

TEST_CASE("tcgen05.mma f16: every swizzle in both majors, for A and for B") {
  const Swizzle all[] = {Swizzle::none, Swizzle::b32, Swizzle::b64, Swizzle::b128};
  for (Swizzle a : all)
    for (bool a_mn : {false, true})
      for (bool b_mn : {false, true}) {
        Swizzle b = all[(static_cast<int>(a) + (a_mn ? 1 : 2) + (b_mn ? 1 : 0)) % 4];
        MmaProgram program = with(Type::f16, a, a_mn, b, b_mn);
        program.steps = 3;
        program.n = 80;
        check(program);
        program.m = 64;
        program.n = 256;
        program.a.gap = 1024;
        check(program);
      }
}

TEST_CASE("tcgen05.mma tf32: K-major in every swizzle, MN-major in the mode with 32-byte atoms") {
  for (Swizzle swizzle : {Swizzle::none, Swizzle::b32, Swizzle::b64, Swizzle::b128, Swizzle::b128_atom32}) {
    bool mn = swizzle == Swizzle::b128_atom32;
    for (uint32_t m : {64u, 128u}) {
      MmaProgram program = with(Type::tf32, swizzle, mn, swizzle, mn);
      program.m = m;
      program.n = 96;
      program.steps = 5;
      check(program);
    }
  }
  check(with(Type::tf32, Swizzle::b128_atom32, true, Swizzle::b128, false));
  check(with(Type::tf32, Swizzle::b32, false, Swizzle::b128_atom32, true));
}

TEST_CASE("tcgen05.mma: N in steps of 8 from 8 to 256, M 64 and 128") {
  for (uint32_t n = 8; n <= 256; n += 8) {
    MmaProgram program = with(n % 16 ? Type::f16 : Type::bf16, Swizzle::b128, false, Swizzle::b128, n % 24 == 0);
    program.m = n % 3 ? 128 : 64;
    program.n = n;
    check(program, 0);
  }
}

TEST_CASE("tcgen05.mma: many K steps along 128-byte rows, 32 bytes further each time") {
  MmaProgram program = with(Type::bf16, Swizzle::b128, false, Swizzle::b128, false);
  program.steps = 8;
  program.n = 128;
  check(program, 4);
  program.a.mn_major = true;
  check(program, 1);
}

TEST_CASE("tcgen05.mma: A in tensor memory") {
  for (Type type : {Type::f16, Type::bf16, Type::tf32})
    for (uint32_t m : {64u, 128u}) {
      MmaProgram program = with(type, Swizzle::b128, false, Swizzle::b64, false);
      program.a_in_tmem = true;
      program.m = m;
      program.n = 48;
      program.steps = 3;
      check(program);
      if (m == 64) {
        program.d_lane = 16;
        check(program);
      }
    }
}

TEST_CASE("tcgen05.mma: M = 64 with D in the upper halves of the lane quarters") {
  MmaProgram program = with(Type::f16, Swizzle::b128, false, Swizzle::b128, false);
  program.m = 64;
  program.d_lane = 16;
  program.first_adds = true;
  check(program);
}

TEST_CASE("tcgen05.mma: enable-input-d adds to what D holds, or does not") {
  for (bool adds : {false, true}) {
    MmaProgram program = with(Type::f16, Swizzle::b64, false, Swizzle::b32, false);
    program.first_adds = adds;
    program.steps = 2;
    check(program, 4);
  }
}

TEST_CASE("tcgen05.mma: D of f16 lies in the low halves of the columns") {
  for (bool adds : {false, true}) {
    MmaProgram program = with(Type::f16, Swizzle::b128, false, Swizzle::b128, false);
    program.d_is_f16 = true;
    program.first_adds = adds;
    program.steps = 2;
    check(program);
  }
}

TEST_CASE("tcgen05.mma: negation of A, of B, of both") {
  for (int which = 1; which <= 3; ++which)
    for (Type type : {Type::f16, Type::tf32}) {
      MmaProgram program = with(type, Swizzle::b128, false, Swizzle::b128, false);
      program.negate_a = which & 1;
      program.negate_b = which & 2;
      program.first_adds = true;
      check(program, 0);
    }
}

TEST_CASE("tcgen05.mma: lanes disabled for output keep what they hold") {
  for (uint32_t m : {64u, 128u})
    for (bool adds : {false, true}) {
      MmaProgram program = with(Type::f16, Swizzle::b128, false, Swizzle::b128, false);
      program.m = m;
      program.with_mask = true;
      program.first_adds = adds;
      program.disabled = {0x0000FFFE, 0xFFFFFFFF, 0x80000001, 0x12345678};
      check(program);
    }
}

TEST_CASE("tcgen05.mma: scale-input-d divides the old D by a power of two") {
  for (int scale : {0, 1, 2}) {
    MmaProgram program = with(scale ? Type::tf32 : Type::f16, Swizzle::b128, false, Swizzle::b128, false);
    program.first_adds = true;
    program.scale = scale;
    check(program);
    program.with_mask = true;
    program.disabled = {0xFF, 0, 0, 0};
    check(program, 0);
  }
}
