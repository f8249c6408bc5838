// mma.sync on random operands, against the scalar model, plain integers and fma. Which lane holds which element: PTX
// ISA, "Matrix fragments for mma.m16n8k..": with p elements a 32-bit register, element i of lane l of A is in row
// l/4 + 8 * (i/p % 2), column (l%4) * p + i%p + 4p * (i/(2p)); of B in row (l%4) * p + i%p + 4p * (i/p), column l/4; of
// C and D in row l/4 + 8 * (i/2), column 2 * (l%4) + i%2. Shapes of 8 rows lack the odd registers of A.

#include <cmath>

#include "tests/probes/wgmma_program.h"

namespace {

using tensor_model::Result;
using tensor_model::Type;

struct Form {
  std::string instruction;
  uint32_t m, k, bits;  ///< of an element of A and B
  bool half = false;    ///< C and D are f16
  uint32_t per_register() const { return bits >= 32 ? 1 : 32 / bits; }
  uint32_t elements_a() const { return m * k / 32; }
  uint32_t elements_b() const { return k / 4; }
  uint32_t elements_d() const { return m / 4; }
  uint32_t words(uint32_t elements, uint32_t size) const { return elements * size / 32; }
};

struct Cell {
  uint32_t row, column;
};
Cell of_a(const Form& form, uint32_t lane, uint32_t i) {
  const uint32_t p = form.per_register(), reg = form.m == 8 ? 2 * (i / p) : i / p;
  return {lane / 4 + 8 * (reg % 2), lane % 4 * p + i % p + 4 * p * (reg / 2)};
}
Cell of_b(const Form& form, uint32_t lane, uint32_t i) {
  const uint32_t p = form.per_register();
  return {lane % 4 * p + i % p + 4 * p * (i / p), lane / 4};
}
Cell of_d(uint32_t lane, uint32_t i) {
  return {lane / 4 + 8 * (i / 2), 2 * (lane % 4) + i % 2};
}

struct Inputs {
  std::vector<uint64_t> a, b, c;  ///< bits: m x k, 8 x k (by column), m x 8
};

/// D, m x 8.
std::vector<uint64_t> run(const Form& form, const Inputs& inputs, bool valid = true) {
  const uint32_t d_bits = form.half ? 16 : form.bits == 64 ? 64 : 32, width = form.bits == 64 ? 8 : 4;
  const uint32_t counts[] = {form.words(form.elements_a(), form.bits), form.words(form.elements_b(), form.bits),
                             form.words(form.elements_d(), d_bits)};
  // By lane: the words of A, B and C.
  const uint32_t words = counts[0] + counts[1] + counts[2];
  std::vector<uint32_t> memory(size_t{32} * words);
  for (uint32_t lane = 0; lane < 32; ++lane) {
    const auto put = [&](uint32_t first, uint32_t i, uint32_t bits, uint64_t value) {
      uint32_t* at = &memory[lane * words + first + i * bits / 32];
      at[0] |= static_cast<uint32_t>(value << (i * bits % 32));
      if (bits == 64) at[1] = static_cast<uint32_t>(value >> 32);
    };
    for (uint32_t i = 0; i < form.elements_a(); ++i) {
      const Cell at = of_a(form, lane, i);
      put(0, i, form.bits, inputs.a[at.row * form.k + at.column]);
    }
    for (uint32_t i = 0; i < form.elements_b(); ++i) {
      const Cell at = of_b(form, lane, i);
      put(counts[0], i, form.bits, inputs.b[at.column * form.k + at.row]);
    }
    for (uint32_t i = 0; i < form.elements_d(); ++i) {
      const Cell at = of_d(lane, i);
      put(counts[0] + counts[1], i, d_bits, inputs.c[at.row * 8 + at.column]);
    }
  }
  const uint32_t unit = width / 4;
  std::string body = fmt::format(
      "    .reg .b{} %m<{}>;\n    .reg .b{} %n<4>;\n    mov.u32 %r0, %tid.x;\n    ld.param.u64 %d0, [p0];\n    "
      "ld.param.u64 %d1, [p1];\n"
      "    mad.wide.u32 %d1, %r0, {}, %d1;\n    mad.wide.u32 %d0, %r0, {}, %d0;\n",
      8 * width, words / unit, 8 * width, 4 * words, 4 * counts[2]);
  for (uint32_t i = 0; i < words / unit; ++i)
    body += fmt::format("    ld.global.b{} %m{}, [%d1+{}];\n", 8 * width, i, width * i);
  const auto list = [&](uint32_t first, uint32_t count) {
    return probe::register_list("m", count / unit, first / unit);
  };
  body += fmt::format("    {} {}, {}, {}, {};\n", form.instruction, probe::register_list("n", counts[2] / unit),
                      list(0, counts[0]), list(counts[0], counts[1]), list(counts[0] + counts[1], counts[2]));
  for (uint32_t i = 0; i < counts[2] / unit; ++i)
    body += fmt::format("    st.global.b{} [%d0+{}], %n{};\n", 8 * width, width * i, i);
  const auto ending = probe::launch_with({}, probe::kernel(body, 2), size_t{128} * counts[2], {probe::bytes_of(memory)},
                                         {.block = {32, 1, 1}}, valid);
  if (!ending.report.empty()) {
    FAIL(ending.report << body);
    return {};
  }
  const auto got = probe::values_of<uint32_t>(ending.bytes);
  std::vector<uint64_t> d(size_t{form.m} * 8);
  for (uint32_t lane = 0; lane < 32; ++lane)
    for (uint32_t i = 0; i < form.elements_d(); ++i) {
      const Cell at = of_d(lane, i);
      const uint32_t* from = &got[lane * counts[2] + i * d_bits / 32];
      d[at.row * 8 + at.column] = d_bits == 64   ? from[0] | uint64_t{from[1]} << 32
                                  : d_bits == 32 ? from[0]
                                                 : from[0] >> (i % 2 * 16) & 0xFFFF;
    }
  return d;
}

template <class Expected>
void check(const Form& form, const Inputs& inputs, Expected expected) {
  INFO(form.instruction);
  const std::vector<uint64_t> got = run(form, inputs);
  int wrong = 0;
  for (uint32_t row = 0; row < form.m && wrong < 4 && !got.empty(); ++row)
    for (uint32_t column = 0; column < 8 && wrong < 4; ++column) {
      const uint64_t want = expected(row, column);
      if (got[row * 8 + column] == want) continue;
      ++wrong;
      FAIL_CHECK("row " << row << " column " << column << " is " << probe::hex(got[row * 8 + column]) << ", expected "
                        << probe::hex(want));
    }
  CHECK(wrong == 0);
}

std::vector<uint64_t> random_floats(probe::Random& random, size_t count, Type type, int spread, bool specials) {
  const tensor_model::Format format = tensor_model::format_of(type);
  const auto bits = static_cast<uint32_t>(1 + format.exponent_bits + format.fraction_bits + format.shift);
  const auto values = probe::wgmma_bits(random, count, bits, static_cast<uint32_t>(format.fraction_bits + format.shift),
                                        spread, specials);
  std::vector<uint64_t> out(values.begin(), values.end());
  if (type == Type::e4m3 && !specials)
    for (uint64_t& value : out)
      if ((value & 0x7F) == 0x7F) value ^= 1;
  return out;
}

std::vector<tensor_model::Number> slice(Type type, const std::vector<uint64_t>& all, uint32_t index, uint32_t k) {
  std::vector<tensor_model::Number> out;
  for (uint32_t i = 0; i < k; ++i) out.push_back(tensor_model::decode(type, static_cast<uint32_t>(all[index * k + i])));
  return out;
}

}  // namespace

TEST_CASE("mma.sync of f16, bf16 and tf32: all K in one sum") {
  struct Case {
    const char* types;
    const char* c;
    Type type;
    uint32_t k, bits;
  };
  probe::Random random(1);
  for (const Case& one :
       {Case{"f32.f16.f16", "f32", Type::f16, 16, 16}, Case{"f32.f16.f16", "f32", Type::f16, 8, 16},
        Case{"f16.f16.f16", "f16", Type::f16, 16, 16}, Case{"f16.f16.f16", "f16", Type::f16, 8, 16},
        Case{"f32.bf16.bf16", "f32", Type::bf16, 16, 16}, Case{"f32.bf16.bf16", "f32", Type::bf16, 8, 16},
        Case{"f32.tf32.tf32", "f32", Type::tf32, 8, 32}, Case{"f32.tf32.tf32", "f32", Type::tf32, 4, 32}})
    for (bool specials : {false, true}) {
      const bool half = one.c == std::string("f16");
      const Form form{fmt::format("mma.sync.aligned.m16n8k{}.row.col.{}.{}", one.k, one.types, one.c), 16, one.k,
                      one.bits, half};
      const Inputs inputs{random_floats(random, 16 * one.k, one.type, 7, specials),
                          random_floats(random, 8 * one.k, one.type, 7, specials),
                          random_floats(random, 128, half ? Type::f16 : Type::f32, half ? 9 : 30, specials)};
      check(form, inputs, [&](uint32_t row, uint32_t column) -> uint64_t {
        const auto c =
            tensor_model::decode(half ? Type::f16 : Type::f32, static_cast<uint32_t>(inputs.c[row * 8 + column]));
        return tensor_model::fused(slice(one.type, inputs.a, row, one.k), slice(one.type, inputs.b, column, one.k), c,
                                   25, half ? Result::f16 : Result::f32);
      });
    }
}

TEST_CASE("mma.sync of e4m3 and e5m2 as ptxas has it for sm_90: two sums in f16, C added last") {
  probe::Random random(2);
  for (Type a_type : {Type::e4m3, Type::e5m2})
    for (Type b_type : {Type::e4m3, Type::e5m2})
      for (uint32_t k : {16u, 32u}) {
        const auto name = [](Type type) { return type == Type::e4m3 ? "e4m3" : "e5m2"; };
        const Form form{fmt::format("mma.sync.aligned.m16n8k{}.row.col.f32.{}.{}.f32", k, name(a_type), name(b_type)),
                        16, k, 8};
        const Inputs inputs{random_floats(random, 16 * k, a_type, 7, false),
                            random_floats(random, 8 * k, b_type, 7, false),
                            random_floats(random, 128, Type::f32, 12, false)};
        check(form, inputs, [&](uint32_t row, uint32_t column) -> uint64_t {
          const auto a = slice(a_type, inputs.a, row, k), b = slice(b_type, inputs.b, column, k);
          tensor_model::Number sum;
          uint32_t bits = 0;
          for (uint32_t half = 0; half < 2; ++half) {
            std::vector<tensor_model::Number> x, y;
            for (uint32_t i = 0; i < k; ++i)
              if (i % 4 / 2 == half) {
                // As f16: an exponent of its own for what is subnormal in 8 bits.
                const auto widen = [](tensor_model::Number n) {
                  while (n.significand != 0 && n.significand >> n.fraction_bits == 0 && n.exponent > -14)
                    n.significand <<= 1, --n.exponent;
                  return n;
                };
                x.push_back(widen(a[i])), y.push_back(widen(b[i]));
              }
            bits = tensor_model::fused(x, y, sum, 25, Result::f32);
            sum = tensor_model::decode(Type::f32, bits);
          }
          return std::bit_cast<uint32_t>(std::bit_cast<float>(static_cast<uint32_t>(inputs.c[row * 8 + column])) +
                                         std::bit_cast<float>(bits));
        });
      }
}

TEST_CASE("mma.sync of integers of 8 and 4 bits, wrapping around and saturating; of bits") {
  probe::Random random(3);
  struct Case {
    uint32_t m, k, bits;
  };
  for (const Case& one :
       {Case{16, 32, 8}, Case{16, 16, 8}, Case{8, 16, 8}, Case{16, 64, 4}, Case{16, 32, 4}, Case{8, 32, 4}})
    for (int signs = 0; signs < 4; ++signs)
      for (bool saturate : {false, true}) {
        const auto name = [&](bool is_signed) { return fmt::format("{}{}", is_signed ? 's' : 'u', one.bits); };
        const bool a_signed = signs & 1, b_signed = signs & 2;
        const Form form{fmt::format("mma.sync.aligned.m{}n8k{}.row.col{}.s32.{}.{}.s32", one.m, one.k,
                                    saturate ? ".satfinite" : "", name(a_signed), name(b_signed)),
                        one.m, one.k, one.bits};
        Inputs inputs;
        const uint64_t mask = (1u << one.bits) - 1;
        for (uint32_t i = 0; i < one.m * one.k; ++i) inputs.a.push_back(random.next() & mask);
        for (uint32_t i = 0; i < 8 * one.k; ++i) inputs.b.push_back(random.next() & mask);
        for (uint32_t i = 0; i < one.m * 8; ++i)
          inputs.c.push_back((random.next() % 2 ? 0x7FFFFFF0u : 0x80000000u) + random.next() % 16);
        const auto value = [&](uint64_t code, bool is_signed) {
          return is_signed && code >> (one.bits - 1) ? static_cast<int64_t>(code) - (int64_t{1} << one.bits)
                                                     : static_cast<int64_t>(code);
        };
        check(form, inputs, [&](uint32_t row, uint32_t column) -> uint64_t {
          int64_t sum = static_cast<int32_t>(inputs.c[row * 8 + column]);
          for (uint32_t k = 0; k < one.k; ++k)
            sum += value(inputs.a[row * one.k + k], a_signed) * value(inputs.b[column * one.k + k], b_signed);
          if (saturate) sum = std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX);
          return static_cast<uint32_t>(sum);
        });
      }
  for (const Case& one : {Case{16, 256, 1}, Case{16, 128, 1}, Case{8, 128, 1}})
    for (const char* operation : {"and", "xor"}) {
      const Form form{fmt::format("mma.sync.aligned.m{}n8k{}.row.col.s32.b1.b1.s32.{}.popc", one.m, one.k, operation),
                      one.m, one.k, 1};
      Inputs inputs;
      for (uint32_t i = 0; i < one.m * one.k; ++i) inputs.a.push_back(random.next() & 1);
      for (uint32_t i = 0; i < 8 * one.k; ++i) inputs.b.push_back(random.next() & 1);
      for (uint32_t i = 0; i < one.m * 8; ++i) inputs.c.push_back(random.next() & 0xFFFFFFFF);
      check(form, inputs, [&](uint32_t row, uint32_t column) -> uint64_t {
        uint64_t sum = inputs.c[row * 8 + column];
        for (uint32_t k = 0; k < one.k; ++k) {
          const uint64_t x = inputs.a[row * one.k + k], y = inputs.b[column * one.k + k];
          sum += operation[0] == 'a' ? x & y : x ^ y;
        }
        return static_cast<uint32_t>(sum);
      });
    }
}

TEST_CASE("mma.sync of f64: fma along k") {
  probe::Random random(4);
  for (auto [m, k] : {std::pair{8u, 4u}, {16u, 4u}, {16u, 8u}, {16u, 16u}}) {
    const Form form{fmt::format("mma.sync.aligned.m{}n8k{}.row.col.f64.f64.f64.f64", m, k), m, k, 64};
    Inputs inputs;
    const auto value = [&] {
      return std::bit_cast<uint64_t>(static_cast<double>(static_cast<int64_t>(random.next())) * 0x1p-60);
    };
    for (uint32_t i = 0; i < m * k; ++i) inputs.a.push_back(value());
    for (uint32_t i = 0; i < 8 * k; ++i) inputs.b.push_back(value());
    for (uint32_t i = 0; i < m * 8; ++i) inputs.c.push_back(value());
    check(form, inputs, [&](uint32_t row, uint32_t column) -> uint64_t {
      double sum = std::bit_cast<double>(inputs.c[row * 8 + column]);
      for (uint32_t i = 0; i < k; ++i)
        sum = std::fma(std::bit_cast<double>(inputs.a[row * k + i]), std::bit_cast<double>(inputs.b[column * k + i]),
                       sum);
      return std::bit_cast<uint64_t>(sum);
    });
  }
}

TEST_CASE("mma forms that the emulator refuses by name") {
  const auto refused = [](const std::string& instruction, const std::string& part) {
    const std::string report = probe::refusal("    " + instruction + "\n");
    INFO(report);
    CHECK(report.find(part) != std::string::npos);
  };
  const std::string tail = " {%r0, %r1, %r2, %r3}, {%r4, %r5, %r6, %r7}, {%r8, %r9}, {%r0, %r1, %r2, %r3};";
  refused("mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32" + tail, "there is no form");
  refused("mma.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32" + tail, "there is no form");
  refused("mma.sync.aligned.m16n8k16.row.col.bf16.bf16.bf16.bf16" + tail, "there is no form");
  refused("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32" + tail, "A takes 2 registers, not 4");
  refused(
      "mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e4m3.f16 {%r0, %r1}, {%r4, %r5, %r6, %r7}, {%r8, %r9}, {%r0, %r1};",
      "8-bit floats with a D of .f16");
  refused(
      "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%r0, %r1, %r2, %r3}, {%r4, %r5, %r6, %r7}, "
      "{%r8, %r9, %r10, %r11}, {%r0, %r1, %r2, %r3}, %r12, 0;",
      "sparse mma");
}
