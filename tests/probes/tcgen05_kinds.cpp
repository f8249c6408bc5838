// tcgen05.mma of elements of 8 bits and fewer, with and without scale factors, and .ws. Values are chosen so that every
// sum can be represented: then D is known to the bit whatever the arithmetic's order and cuts (those are the business
// of tests/unit/tensor_core_types.cpp). What lies where: narrow_program.h.

#include <cmath>

#include "tests/probes/narrow_program.h"

namespace {

using probe::NarrowProgram;
using probe::NarrowType;
using probe::Swizzle;
using namespace std::string_literals;

uint32_t hash(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t x = a * 0x9E3779B1u ^ b * 0x85EBCA77u ^ c * 0xC2B2AE3Du;
  x ^= x >> 15, x *= 0x2C1B3C6Du, x ^= x >> 12;
  return x;
}

/// Every value of e2m1, which all types have; `coarse`: small integers alone.
double value_of(const NarrowType& type, uint32_t which, uint32_t row, uint32_t k, bool coarse) {
  const uint32_t h = hash(row, k, which);
  if (type.exponent_bits == 0) return static_cast<double>(h % 256) - (type.code == 0 ? 0 : 128);
  constexpr double kAll[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  const double magnitude = coarse ? h % 3 : kAll[h % 8];
  return h & 0x100 ? -magnitude : magnitude;
}

/// UE8M0: 2^-2 to 2^2; UE4M3: 0.5, 0.75, 1, 1.5, 2.
uint32_t scale_byte(bool ue4m3, uint32_t which, uint32_t row, uint32_t block) {
  const uint32_t h = hash(row, block, which) % 5;
  constexpr uint32_t kUe4m3[] = {0x30, 0x34, 0x38, 0x3C, 0x40};
  return ue4m3 ? kUe4m3[h] : 125 + h;
}
double scale_value(bool ue4m3, uint32_t byte) {
  if (!ue4m3) return std::exp2(static_cast<int>(byte) - 127);
  return std::exp2(static_cast<int>(byte >> 3) - 7) * (1 + (byte & 7) / 8.0);
}

std::vector<uint32_t> result_of(const NarrowProgram& program, bool coarse, int seeds) {
  std::vector<uint32_t> initial(program.words(), 0x7FC0BEEF);
  for (uint32_t row = 0; row < program.m; ++row)
    for (uint32_t column = 0; column < program.n; ++column)
      initial[program.place(row, column)] = program.kind == "i8"
                                                ? 0x7FFFFFF0u - (row + column) % 2 * 0xFFFFFFE0u
                                                : std::bit_cast<uint32_t>(static_cast<float>((row * 5 + column) % 64));
  return probe::everywhere<uint32_t>(
      program.text(), program.words(),
      probe::inputs_of(
          program, [&](uint32_t row, uint32_t k) { return value_of(program.a_type, 1, row, k, coarse); },
          [&](uint32_t row, uint32_t k) { return value_of(program.b_type, 2, row, k, coarse); }, initial,
          [&](uint32_t row, uint32_t block) { return scale_byte(program.ue4m3, 3, row, block); },
          [&](uint32_t row, uint32_t block) { return scale_byte(program.ue4m3, 4, row, block); }),
      program.shape(), seeds);
}

/// `column_of`: which column of B makes column n of D; -1: zeros.
void check(NarrowProgram program, bool coarse = false, int seeds = 0,
           const std::function<int(uint32_t)>& column_of = nullptr) {
  program.finish();
  const std::vector<uint32_t> d = result_of(program, coarse, seeds);
  if (d.empty()) return;
  INFO(program.kind << program.modifiers << " " << program.a_type.name << " x " << program.b_type.name << ", cta_group "
                    << program.group << ", " << program.m << " x " << program.n << ", steps " << program.steps
                    << (program.a_in_tmem ? ", A in TMEM" : "") << (program.weight_stationary ? ", .ws" : ""));
  int wrong = 0;
  for (uint32_t row = 0; row < program.m; ++row)
    for (uint32_t column = 0; column < program.n; ++column) {
      const int source = column_of ? column_of(column) : static_cast<int>(column);
      const uint32_t b_row = static_cast<uint32_t>(source);
      double sum = 0;
      for (uint32_t k = 0; source >= 0 && k < program.k(); ++k) {
        double product = value_of(program.a_type, 1, row, k, coarse) * value_of(program.b_type, 2, b_row, k, coarse);
        if (program.scaled())
          product *= scale_value(program.ue4m3, scale_byte(program.ue4m3, 3, row, k / program.block)) *
                     scale_value(program.ue4m3, scale_byte(program.ue4m3, 4, column, k / program.block));
        sum += product;
      }
      uint32_t want;
      if (program.kind == "i8") {
        int64_t whole = static_cast<int64_t>(sum);
        if (program.first_adds) whole += static_cast<int32_t>(0x7FFFFFF0u - (row + column) % 2 * 0xFFFFFFE0u);
        if (program.saturate) whole = std::clamp<int64_t>(whole, INT32_MIN, INT32_MAX);
        want = static_cast<uint32_t>(whole);
      } else {
        if (program.first_adds) sum += (row * 5 + column) % 64;
        want = program.d_is_f16 ? probe::encode({"f16", 0, 16, 5, 10}, sum)
                                : std::bit_cast<uint32_t>(static_cast<float>(sum));
        if (sum == 0) want = 0;
      }
      const uint32_t got = d[program.place(row, column)];
      if ((program.d_is_f16 ? got & 0xFFFF : got) == want || ++wrong > 3) continue;
      FAIL_CHECK("row " << row << " column " << column << " is " << probe::hex(got) << ", expected "
                        << probe::hex(want));
    }
  CHECK(wrong == 0);
}

const NarrowType kFloats[] = {probe::kE4m3, probe::kE5m2, probe::kE2m3, probe::kE3m2, probe::kE2m1};
const Swizzle kSwizzles[] = {Swizzle::none, Swizzle::b32, Swizzle::b64, Swizzle::b128};

NarrowProgram of(const std::string& kind, const NarrowType& a, const NarrowType& b, uint32_t m, uint32_t n) {
  NarrowProgram program;
  program.kind = kind;
  program.a_type = a, program.b_type = b;
  program.m = m, program.n = n;
  return program;
}
NarrowProgram scaled(const std::string& kind, const std::string& modifiers, uint32_t block, uint32_t m, uint32_t n,
                     uint32_t group = 1) {
  NarrowProgram program = of(kind, kind == "mxf8f6f4" ? probe::kE4m3 : probe::kE2m1,
                             kind == "mxf8f6f4" ? probe::kE4m3 : probe::kE2m1, m, n);
  program.modifiers = ".block_scale" + modifiers;
  program.block = block;
  program.group = group;
  return program;
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  size_t at = text.find(what);
  INFO(what << " in\n" << text);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), with);
}
/// The report when `what` in the program's text is replaced. `valid`: whether ptxas takes it, too.
std::string report_with(NarrowProgram program, const std::string& what, const std::string& with, bool valid = true) {
  program.finish();
  const auto one = [](uint32_t, uint32_t) { return 1.0; };
  const auto unit = [](uint32_t, uint32_t) { return 127u; };
  probe::Machine machine;
  std::vector<uint64_t> parameters{machine.buffer(std::vector<uint32_t>(program.words()))};
  for (const auto& input : probe::inputs_of(program, one, one, std::vector<uint32_t>(program.words()), unit, unit))
    parameters.push_back(machine.buffer(input));
  std::optional<emu::Fault> fault =
      machine.launch(replaced(program.text(), what, with), parameters, program.shape(), valid);
  if (!fault) FAIL("the program was expected to fault");
  return fault->report;
}
std::string report_of_descriptor(NarrowProgram program, uint32_t word) {
  program.finish();
  return report_with(program, fmt::format("mov.b32 %r9, {:#x};", program.instruction_descriptor(0)),
                     fmt::format("mov.b32 %r9, {:#x};", word));
}

}  // namespace

TEST_CASE("kind::f8f6f4: every pair of types, those of 4 and 6 bits packed and padded in shared memory") {
  uint32_t i = 0;
  for (const NarrowType& a : kFloats)
    for (const NarrowType& b : kFloats) {
      NarrowProgram program = of("f8f6f4", a, b, i % 2 ? 64 : 128, 16 + i * 8);
      program.a.swizzle = kSwizzles[i % 4], program.b.swizzle = kSwizzles[i / 4 % 4];
      program.steps = 1 + i % 3;
      check(program);
      ++i;
    }
}

TEST_CASE("kind::f8f6f4: A in tensor memory, a byte an element") {
  for (const NarrowType& a : kFloats)
    for (uint32_t m : {64u, 128u}) {
      NarrowProgram program = of("f8f6f4", a, probe::kE4m3, m, 32);
      program.a_in_tmem = true;
      program.steps = 2;
      check(program);
    }
}

TEST_CASE("kind::f8f6f4: 8-bit operands that are MN-major") {
  for (Swizzle swizzle : kSwizzles) {
    NarrowProgram program = of("f8f6f4", probe::kE5m2, probe::kE4m3, 128, 64);
    program.a.swizzle = program.b.swizzle = swizzle;
    program.a.mn_major = program.b.mn_major = true;
    check(program);
  }
}

TEST_CASE("kind::f8f6f4: D of f16, and adding to D") {
  NarrowProgram program = of("f8f6f4", probe::kE4m3, probe::kE5m2, 128, 64);
  program.first_adds = true;
  check(program, false, 2);
  program.first_adds = false;
  program.d_is_f16 = true;
  check(program, true, 2);
}

TEST_CASE("kind::f8f6f4 of a pair") {
  for (uint32_t m : {128u, 256u})
    for (bool tmem : {false, true}) {
      NarrowProgram program = of("f8f6f4", probe::kE2m1, probe::kE3m2, m, 96);
      program.group = 2;
      program.a_in_tmem = tmem;
      program.steps = 2;
      check(program, false, 1);
    }
}

TEST_CASE("kind::i8: signed and unsigned, wrapping around or saturating") {
  for (const NarrowType& a : {probe::kU8, probe::kS8})
    for (const NarrowType& b : {probe::kU8, probe::kS8})
      for (bool saturate : {false, true}) {
        NarrowProgram program = of("i8", a, b, 128, 48);
        program.first_adds = true;
        program.saturate = saturate;
        check(program);
      }
  NarrowProgram program = of("i8", probe::kS8, probe::kU8, 64, 24);
  program.steps = 3;
  check(program);
  program = of("i8", probe::kS8, probe::kS8, 256, 64);
  program.group = 2;
  program.steps = 2;
  check(program);
}

TEST_CASE("kind::mxf8f6f4: a scale factor for every 32 elements, in each byte of a column") {
  uint32_t i = 0;
  for (const NarrowType& type : kFloats) {
    NarrowProgram program = scaled("mxf8f6f4", i % 2 ? ".scale_vec::1X" : ".block32", 32, 128, 40 + 48 * i);
    program.a_type = type, program.b_type = kFloats[(i + 2) % 5];
    program.a.swizzle = kSwizzles[i % 4];
    program.steps = 5;
    check(program, true, 1);
    ++i;
  }
  NarrowProgram program = scaled("mxf8f6f4", "", 32, 128, 256);
  program.a_in_tmem = true;
  program.steps = 2;
  check(program, true);
}

TEST_CASE("kind::mxf8f6f4 of a pair: each CTA has the factors of its rows of A and of all of B") {
  for (uint32_t m : {128u, 256u})
    for (uint32_t n : {64u, 256u}) {
      NarrowProgram program = scaled("mxf8f6f4", ".block32", 32, m, n, 2);
      program.steps = 4;
      check(program, true, 1);
    }
}

TEST_CASE("kind::mxf4 and mxf4nvf4: two elements a byte, factors for 32 or 16") {
  check(scaled("mxf4", "", 32, 128, 96));
  check(scaled("mxf4", ".scale_vec::2X", 32, 128, 256));
  for (const char* modifiers : {".scale_vec::2X", ".block32"}) {
    NarrowProgram program = scaled("mxf4nvf4", modifiers, 32, 128, 64);
    program.steps = 3;
    check(program, true, 1);
  }
  for (const char* modifiers : {".scale_vec::4X", ".block16"})
    for (bool ue4m3 : {false, true}) {
      NarrowProgram program = scaled("mxf4nvf4", modifiers, 16, 128, 200);
      program.ue4m3 = ue4m3;
      program.steps = 2;
      program.a.swizzle = Swizzle::b64;
      check(program, true, 1);
      program.a_in_tmem = true;
      check(program, true);
    }
  for (uint32_t m : {128u, 256u}) {
    NarrowProgram program = scaled("mxf4nvf4", ".block16", 16, m, 128, 2);
    program.ue4m3 = true;
    program.steps = 2;
    check(program, true, 1);
  }
}

TEST_CASE(".ws: M of 32, 64 and 128, columns in 4, 2 and 1 groups of lanes") {
  for (uint32_t m : {32u, 64u, 128u})
    for (uint32_t n : {64u, 128u, 256u}) {
      NarrowProgram program = of(n == 128 ? "i8" : "f8f6f4", n == 128 ? probe::kS8 : probe::kE4m3,
                                 n == 128 ? probe::kS8 : probe::kE2m3, m, n);
      program.weight_stationary = true;
      program.steps = 2;
      program.modifiers = m == 64 ? ".collector::b1::fill" : "";
      check(program, false, 1);
    }
}

TEST_CASE(".ws of f16 with M = 128 is laid out as without") {
  probe::MmaProgram program;
  program.n = 64;
  program.steps = 2;
  program.finish();
  const auto small = [](uint32_t row, uint32_t k) { return (row + k) % 3 ? 0x3C00u : 0xC000u; };
  const std::vector<uint32_t> nothing(size_t{128} * program.n);
  std::string text = program.text();
  for (int i = 0; i < 2; ++i) text = replaced(text, "tcgen05.mma.cta_group", "tcgen05.mma.ws.cta_group");
  const auto run = [&](const std::string& ptx) {
    return probe::everywhere<uint32_t>(ptx, nothing.size(), probe::inputs_of(program, small, small, nothing),
                                       probe::shape_of(program), 1);
  };
  CHECK(run(text) == run(program.text()));
}

TEST_CASE(".ws: the zero-column mask, by the examples of the ISA") {
  // Bits: start counts, first spans at 32, non-zero mask at 39, skip span at 40, use span at 48, shift at 56. `masks`:
  // the generated sub-masks, lowest bit first.
  struct Case {
    uint32_t m;
    uint64_t word;
    std::vector<std::string> masks;
  };
  const uint64_t kSpans = uint64_t{1} << 39 | uint64_t{2} << 40 | uint64_t{3} << 48;
  const Case cases[] = {
      {128, uint64_t{4} << 40 | uint64_t{3} << 48, {"0"}},
      {128, kSpans, {"00001110000111"}},
      {64, kSpans | uint64_t{1} << 32, {"1110000", "0000111"}},
      {32,
       kSpans | uint64_t{3} << 32 | uint64_t{1} << 8 | uint64_t{2} << 16 | uint64_t{1} << 24,
       {"1110000", "1100001", "0011100", "0001110"}},
  };
  for (const Case& c : cases)
    for (uint32_t shift : {0u, 2u}) {
      NarrowProgram program = of("f8f6f4", probe::kE4m3, probe::kE4m3, c.m, 128);
      program.weight_stationary = true;
      program.zero_columns = c.word | uint64_t{shift} << 56;
      program.max_shift = shift ? 8 : 0;
      const uint32_t part = program.columns();
      check(program, false, 0, [&](uint32_t n) {
        const std::string& mask = c.masks[n / part];
        return mask[n % part % mask.size()] == '1' ? -1 : static_cast<int>(n + shift);
      });
    }
}

TEST_CASE("block scaling: what the instruction descriptor may not say") {
  const NarrowProgram fp8 = scaled("mxf8f6f4", ".block32", 32, 128, 64);
  const NarrowProgram fp4 = scaled("mxf4nvf4", ".block16", 16, 128, 64), fp4_32 = scaled("mxf4", "", 32, 128, 64);
  const uint32_t good8 = fp8.instruction_descriptor(0), good4 = fp4.instruction_descriptor(0),
                 good4_32 = fp4_32.instruction_descriptor(0);
  CHECK_THAT(report_of_descriptor(fp8, good8 & ~(1u << 23)), test::contains("takes UE8M0"));
  CHECK_THAT(report_of_descriptor(fp8, good8 | 2u << 7), test::contains("type 2 of A"));
  CHECK_THAT(report_of_descriptor(fp8, good8 & ~(3u << 27)), test::contains("M is 0"));
  CHECK_THAT(report_of_descriptor(fp8, (good8 & ~(3u << 27)) | 2u << 27), test::contains("M is 256"));
  CHECK_THAT(report_of_descriptor(fp8, good8 | 1u << 24), test::contains("bits 24-26"));
  CHECK_THAT(report_of_descriptor(fp8, good8 | 1u << 31), test::contains("K = 96"));
  CHECK_THAT(report_of_descriptor(fp4, good4 | 1u << 29), test::contains("id of A's scale factors is 1"));
  CHECK_THAT(report_of_descriptor(fp4_32, good4_32 | 1u << 4), test::contains("must be 0 or 2"));
  CHECK_THAT(report_of_descriptor(fp4, good4 | 1u << 15), test::contains("can only be K-major"));
  CHECK_THAT(report_of_descriptor(fp4, (good4 & ~(7u << 7)) | 5u << 7), test::contains("takes 1 (e2m1)"));
}

TEST_CASE("block scaling: factors must be in every partition of tensor memory, from lane 0 on") {
  const NarrowProgram program = scaled("mxf8f6f4", ".block32", 32, 128, 64);
  // Only in lanes 0 to 31 and 64 to 95, or nowhere.
  CHECK_THAT(report_with(program, "tcgen05.cp.cta_group::1.32x128b.warpx4 [%r8], %d7;",
                         "tcgen05.cp.cta_group::1.4x256b [%r8], %d7;"),
             test::contains("every 32-lane partition"));
  CHECK_THAT(report_with(program, "add.u32 %r11, %r5, 456;", "add.u32 %r11, %r5, 0x2001C8;"),
             test::contains("start at lane 0"));
  CHECK_THAT(report_with(program, "add.u32 %r10, %r5, 448;", "add.u32 %r10, %r5, 510;"),
             test::contains("scale factors of A"));
}

TEST_CASE("tcgen05.mma: forms that are refused by name") {
  NarrowProgram program = of("f8f6f4", probe::kE4m3, probe::kE4m3, 128, 64);
  CHECK_THAT(report_with(program, "kind::f8f6f4 [%r5], %d5, %d6, %r9, %enable",
                         "kind::f8f6f4 [%r5], %d5, %d6, %r9, %enable, 3", false),
             test::contains("scale-input-d"));
  program.a_in_tmem = true;
  CHECK_THAT(report_with(program, ".kind::f8f6f4", ".kind::f8f6f4.ashift"), test::contains(".ashift"));
  program.weight_stationary = true;
  program.m = 64;
  CHECK_THAT(report_with(program, "mov.b32 %r9", "mov.b32 %r9"), test::contains("A in tensor memory and M = 64"));
  CHECK_THAT(probe::refusal(".reg .b32 %t<2>; mov.u32 %r0, 0;"
                            " tcgen05.ld.red.sync.aligned.32x32b.x2.min.u32 {%t0, %t1}, %r1, [%r0];"),
             test::contains("sm_103"));
}
