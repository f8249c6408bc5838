// wmma on random matrices in all shapes, types and layouts, against the scalar model, plain integers and fma; and which
// lane holds what, which the ISA leaves open and ptxas does as emulator/isa/wmma.cpp says.

#include <bit>
#include <cmath>

#include <fmt/format.h>

#include "tests/probes/wgmma_program.h"

namespace {

using tensor_model::Result;
using tensor_model::Type;

struct Form {
  std::string types;  ///< as the instruction ends
  std::string ab, c, d;
  uint32_t m, n, k;
  std::string operation;  ///< .xor.popc
  std::string shape() const { return fmt::format("m{}n{}k{}", m, n, k); }
};

uint32_t bits_of(const std::string& type) {
  return type == "b1"                      ? 1
         : type == "u4" || type == "s4"    ? 4
         : type == "u8" || type == "s8"    ? 8
         : type == "f16" || type == "bf16" ? 16
         : type == "f64"                   ? 64
                                           : 32;
}
const char* register_of(const std::string& type) {
  return type == "f64" ? "d" : "r";
}

/// Registers of a fragment, from the ISA's table "Matrix fragments for WMMA".
uint32_t registers_of(const std::string& type, uint32_t elements, bool multiplicand) {
  if (multiplicand && type == "f16") return 8;
  return elements / 32 * bits_of(type) / (type == "f64" ? 64 : 32);
}

/// A matrix in memory, with a gap behind each row or column that nothing may touch.
struct Image {
  uint32_t rows, columns, bits;
  bool row_major;
  uint32_t gap() const { return 128 / bits > 8 ? 128 / bits : 8; }
  uint32_t stride() const { return (row_major ? columns : rows) + gap(); }
  uint32_t words() const { return (row_major ? rows : columns) * stride() * bits / 32; }
  void put(std::vector<uint32_t>& words, uint32_t row, uint32_t column, uint64_t value) const {
    const uint32_t at = (row_major ? row * stride() + column : column * stride() + row) * bits;
    if (bits == 64) {
      words[at / 32] = static_cast<uint32_t>(value);
      words[at / 32 + 1] = static_cast<uint32_t>(value >> 32);
      return;
    }
    const uint32_t mask = bits == 32 ? ~0u : ((1u << bits) - 1) << at % 32;
    words[at / 32] = (words[at / 32] & ~mask) | static_cast<uint32_t>(value) << at % 32;
  }
};

struct Layouts {
  bool a, b, c, d;  ///< row-major
};

struct Inputs {
  std::vector<uint64_t> a, b, c;  ///< bits: m x k; by column, n x k; m x n
};

std::string layout(bool row_major) {
  return row_major ? "row" : "col";
}

/// Runs load, multiplication and store; D's image must be that of `expected`, its gaps untouched.
template <class Expected>
void check(const Form& form, const Layouts& layouts, const Inputs& inputs, Expected&& expected) {
  const Image a{form.m, form.k, bits_of(form.ab), layouts.a}, b{form.k, form.n, bits_of(form.ab), layouts.b},
      c{form.m, form.n, bits_of(form.c), layouts.c}, d{form.m, form.n, bits_of(form.d), layouts.d};
  std::vector<uint32_t> a_words(a.words(), 0x55AA55AA), b_words(b.words(), 0x55AA55AA), c_words(c.words(), 0x55AA55AA);
  for (uint32_t row = 0; row < form.m; ++row)
    for (uint32_t k = 0; k < form.k; ++k) a.put(a_words, row, k, inputs.a[row * form.k + k]);
  for (uint32_t column = 0; column < form.n; ++column)
    for (uint32_t k = 0; k < form.k; ++k) b.put(b_words, k, column, inputs.b[column * form.k + k]);
  for (uint32_t row = 0; row < form.m; ++row)
    for (uint32_t column = 0; column < form.n; ++column) c.put(c_words, row, column, inputs.c[row * form.n + column]);

  const std::string shape = form.shape();
  const uint32_t counts[] = {registers_of(form.ab, form.m * form.k, true), registers_of(form.ab, form.k * form.n, true),
                             registers_of(form.c, form.m * form.n, false),
                             registers_of(form.d, form.m * form.n, false)};
  const std::string letter = register_of(form.ab);
  const auto list = [&](uint32_t which) {
    uint32_t first = 0;
    for (uint32_t i = 0; i < which; ++i) first += counts[i];
    return probe::register_list("m", counts[which], first);
  };
  // A by way of shared memory, B from global memory, C by a generic address.
  std::string body = fmt::format(
      "    .reg .b{} %m<40>;\n    .shared .align 32 .b8 staged[{}];\n"
      "    ld.param.u64 %d0, [p0];\n    ld.param.u64 %d1, [p1];\n    ld.param.u64 %d2, [p2];\n    ld.param.u64 %d3, "
      "[p3];\n    mov.u32 %r0, %tid.x;\n    mov.u32 %r1, staged;\n    mov.u32 %r2, {};\n",
      form.ab == "f64" ? 64 : 32, 4 * a.words(), b.stride());
  for (uint32_t i = 0; i < a.words(); i += 32)
    body += fmt::format(
        "    add.u32 %r3, %r0, {};\n    setp.lt.u32 %p0, %r3, {};\n    mad.wide.u32 %d4, %r3, 4, %d1;\n    mad.lo.u32 "
        "%r4, %r3, 4, %r1;\n    @%p0 ld.global.b32 %r5, [%d4];\n    @%p0 st.shared.b32 [%r4], %r5;\n",
        i, a.words());
  body += fmt::format(
      "    bar.warp.sync 0xFFFFFFFF;\n"
      "    wmma.load.a.sync.aligned.{}.{}.shared.{} {}, [%r1], {};\n"
      "    wmma.load.b.sync.aligned.{}.{}.global.{} {}, [%d2], %r2;\n"
      "    wmma.load.c.sync.aligned.{}.{}.{} {}, [%d3], {};\n"
      "    wmma.mma{}.sync.aligned.{}.{}.{}.{} {}, {}, {}, {};\n"
      "    wmma.store.d.sync.aligned.{}.{}.global.{} [%d0], {}, {};\n",
      layout(layouts.a), shape, form.ab, list(0), a.stride(), layout(layouts.b), shape, form.ab, list(1),
      layout(layouts.c), shape, form.c, list(2), c.stride(), form.operation, layout(layouts.a), layout(layouts.b),
      shape, form.types, list(3), list(0), list(1), list(2), layout(layouts.d), shape, form.d, list(3), d.stride());
  INFO(body);
  const auto got = probe::everywhere<uint32_t>(
      probe::kernel(body, 4), d.words(), {probe::bytes_of(a_words), probe::bytes_of(b_words), probe::bytes_of(c_words)},
      {.block = {32, 1, 1}}, 1);
  std::vector<uint32_t> want(d.words(), 0xEEEEEEEE);
  for (uint32_t row = 0; row < form.m; ++row)
    for (uint32_t column = 0; column < form.n; ++column) d.put(want, row, column, expected(row, column));
  CHECK(got == want);
}

constexpr Layouts kLayouts[] = {
    {true, false, true, true}, {false, true, false, true}, {true, true, true, false}, {false, false, false, false}};

std::vector<uint64_t> random_floats(probe::Random& random, size_t count, Type type, int spread, bool specials) {
  const tensor_model::Format format = tensor_model::format_of(type);
  const auto values = probe::wgmma_bits(
      random, count, static_cast<uint32_t>(1 + format.exponent_bits + format.fraction_bits + format.shift),
      static_cast<uint32_t>(format.fraction_bits + format.shift), spread, specials);
  return {values.begin(), values.end()};
}

std::vector<tensor_model::Number> slice(Type type, const std::vector<uint64_t>& all, uint32_t first, uint32_t count) {
  std::vector<tensor_model::Number> out;
  for (uint32_t i = 0; i < count; ++i) out.push_back(tensor_model::decode(type, static_cast<uint32_t>(all[first + i])));
  return out;
}

/// f32 to f16, to nearest even, by way of the model: a sum of one term.
uint32_t to_half(uint32_t f32) {
  return tensor_model::fused({}, {}, tensor_model::decode(Type::f32, f32), 25, Result::f16);
}

}  // namespace

TEST_CASE("wmma of f16 and bf16: all K in one sum, in f32 unless C and D are f16") {
  probe::Random random(1);
  for (auto [m, n] : {std::pair{16u, 16u}, {32u, 8u}, {8u, 32u}})
    for (const Layouts& layouts : kLayouts)
      for (const char* types : {"f32.f32", "f16.f16", "f32.f16", "f16.f32", "f32.bf16.bf16.f32"}) {
        const std::string all = types;
        const bool brain = all.size() > 7;
        Form form{all, brain ? "bf16" : "f16", all.substr(all.size() - 3), all.substr(0, 3), m, n, 16, ""};
        const bool c_half = form.c == "f16", d_half = form.d == "f16";
        const Type type = brain ? Type::bf16 : Type::f16, c_type = c_half ? Type::f16 : Type::f32;
        const bool specials = layouts.c == layouts.d;
        const Inputs inputs{random_floats(random, m * 16, type, 7, specials),
                            random_floats(random, n * 16, type, 7, specials),
                            random_floats(random, m * n, c_type, c_half ? 9 : 30, specials)};
        check(form, layouts, inputs, [&](uint32_t row, uint32_t column) -> uint64_t {
          const uint32_t sum =
              tensor_model::fused(slice(type, inputs.a, row * 16, 16), slice(type, inputs.b, column * 16, 16),
                                  tensor_model::decode(c_type, static_cast<uint32_t>(inputs.c[row * n + column])), 25,
                                  c_half && d_half ? Result::f16 : Result::f32);
          return d_half && !c_half ? to_half(sum) : sum;
        });
      }
}

TEST_CASE("wmma of tf32: a sum of k = 0 to 3, then one of k = 4 to 7") {
  probe::Random random(2);
  for (const Layouts& layouts : kLayouts) {
    const Form form{"f32.tf32.tf32.f32", "tf32", "f32", "f32", 16, 16, 8, ""};
    const Inputs inputs{random_floats(random, 128, Type::tf32, 7, false),
                        random_floats(random, 128, Type::tf32, 7, false),
                        random_floats(random, 256, Type::f32, 20, false)};
    check(form, layouts, inputs, [&](uint32_t row, uint32_t column) -> uint64_t {
      uint32_t sum = static_cast<uint32_t>(inputs.c[row * 16 + column]);
      for (uint32_t k : {0u, 4u})
        sum = tensor_model::fused(slice(Type::tf32, inputs.a, row * 8 + k, 4),
                                  slice(Type::tf32, inputs.b, column * 8 + k, 4), tensor_model::decode(Type::f32, sum),
                                  25, Result::f32);
      return sum;
    });
  }
}

TEST_CASE("wmma of integers of 8 and 4 bits and of bits") {
  probe::Random random(3);
  struct Case {
    uint32_t m, n, k;
    const char* type;
    bool saturate;
    const char* operation;
  };
  for (const Case& one :
       {Case{16, 16, 16, "u8", false, ""}, Case{16, 16, 16, "s8", true, ""}, Case{32, 8, 16, "s8", false, ""},
        Case{32, 8, 16, "u8", true, ""}, Case{8, 32, 16, "s8", false, ""}, Case{8, 32, 16, "u8", true, ""},
        Case{8, 8, 32, "u4", true, ""}, Case{8, 8, 32, "s4", false, ""}, Case{8, 8, 128, "b1", false, ".xor.popc"},
        Case{8, 8, 128, "b1", false, ".and.popc"}})
    for (Layouts layouts : kLayouts) {
      const uint32_t bits = bits_of(one.type);
      if (bits < 8) layouts.a = true, layouts.b = false;
      const Form form{fmt::format("s32.{0}.{0}.s32{1}", one.type, one.saturate ? ".satfinite" : ""),
                      one.type,
                      "s32",
                      "s32",
                      one.m,
                      one.n,
                      one.k,
                      one.operation};
      Inputs inputs;
      const uint64_t mask = (1u << bits) - 1;
      for (uint32_t i = 0; i < one.m * one.k; ++i) inputs.a.push_back(random.next() & mask);
      for (uint32_t i = 0; i < one.n * one.k; ++i) inputs.b.push_back(random.next() & mask);
      for (uint32_t i = 0; i < one.m * one.n; ++i)
        inputs.c.push_back((random.next() % 2 ? 0x7FFFFFF0u : 0x80000000u) + random.next() % 16);
      const auto value = [&](uint64_t code) {
        return one.type[0] == 's' && code >> (bits - 1) ? static_cast<int64_t>(code) - (int64_t{1} << bits)
                                                        : static_cast<int64_t>(code);
      };
      check(form, layouts, inputs, [&](uint32_t row, uint32_t column) -> uint64_t {
        int64_t sum = static_cast<int32_t>(inputs.c[row * one.n + column]);
        for (uint32_t k = 0; k < one.k; ++k) {
          const uint64_t x = inputs.a[row * one.k + k], y = inputs.b[column * one.k + k];
          sum += form.operation.empty() ? value(x) * value(y)
                                        : static_cast<int64_t>(form.operation[1] == 'x' ? x ^ y : x & y);
        }
        return static_cast<uint32_t>(one.saturate ? std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX) : sum);
      });
    }
}

TEST_CASE("wmma of f64: fma along k") {
  probe::Random random(4);
  for (const Layouts& layouts : kLayouts) {
    const Form form{"f64.f64.f64.f64", "f64", "f64", "f64", 8, 8, 4, ""};
    Inputs inputs;
    const auto value = [&] {
      return std::bit_cast<uint64_t>(static_cast<double>(static_cast<int64_t>(random.next())) * 0x1p-60);
    };
    for (uint32_t i = 0; i < 32; ++i) inputs.a.push_back(value()), inputs.b.push_back(value());
    for (uint32_t i = 0; i < 64; ++i) inputs.c.push_back(value());
    check(form, layouts, inputs, [&](uint32_t row, uint32_t column) -> uint64_t {
      double sum = std::bit_cast<double>(inputs.c[row * 8 + column]);
      for (uint32_t k = 0; k < 4; ++k)
        sum = std::fma(std::bit_cast<double>(inputs.a[row * 4 + k]), std::bit_cast<double>(inputs.b[column * 4 + k]),
                       sum);
      return std::bit_cast<uint64_t>(sum);
    });
  }
}

TEST_CASE("wmma fragments: which lane holds what") {
  // Element e of register i of lane l, as row and column of the matrix: from ptxas's machine code for sm_90a.
  struct Cell {
    uint32_t row, column;
    bool operator==(const Cell&) const = default;
  };
  struct Case {
    const char* matrix;
    const char* shape;
    const char* type;
    uint32_t rows, columns, registers;
    Cell (*at)(uint32_t lane, uint32_t i, uint32_t e);
  };
  const Case cases[] = {
      {"a", "m16n16k16", "f16", 16, 16, 8,
       [](uint32_t l, uint32_t i, uint32_t e) {
         return Cell{l / 4 + i % 2 * 8, l % 4 * 2 + e + i / 2 % 2 * 8};
       }},
      {"b", "m16n16k16", "f16", 16, 16, 8,
       [](uint32_t l, uint32_t i, uint32_t e) {
         return Cell{l % 4 * 2 + e + i % 2 * 8, l / 4 + i / 2 % 2 * 8};
       }},
      {"a", "m32n8k16", "bf16", 32, 16, 8,
       [](uint32_t l, uint32_t i, uint32_t e) {
         return Cell{l / 4 + i % 2 * 8 + i / 4 * 16, l % 4 * 2 + e + i / 2 % 2 * 8};
       }},
      {"b", "m32n8k16", "f16", 16, 8, 8,
       [](uint32_t l, uint32_t i, uint32_t e) {
         return Cell{l % 4 * 2 + e + i % 2 * 8, l / 4};
       }},
      {"b", "m8n32k16", "f16", 16, 32, 8,
       [](uint32_t l, uint32_t i, uint32_t e) {
         return Cell{l % 4 * 2 + e + i / 2 % 2 * 8, l / 4 + i % 2 * 8 + i / 4 * 16};
       }},
      {"c", "m16n16k16", "f16", 16, 16, 4,
       [](uint32_t l, uint32_t i, uint32_t e) {
         return Cell{l / 4 + i % 2 * 8, l % 4 * 2 + e + i / 2 * 8};
       }},
      {"c", "m8n32k16", "f16", 8, 32, 4,
       [](uint32_t l, uint32_t i, uint32_t e) {
         return Cell{l % 4 * 2 + e, l / 4 + i * 8};
       }},
  };
  for (const Case& one : cases)
    for (bool row_major : {true, false}) {
      const std::string body = fmt::format(
          "    .reg .b32 %m<8>;\n    ld.param.u64 %d0, [p0];\n    ld.param.u64 %d1, [p1];\n    mov.u32 %r0, %tid.x;\n"
          "    wmma.load.{}.sync.aligned.{}.{}.global.{} {}, [%d1];\n    mad.wide.u32 %d0, %r0, {}, %d0;\n",
          one.matrix, layout(row_major), one.shape, one.type, probe::register_list("m", one.registers),
          4 * one.registers);
      std::string stores;
      for (uint32_t i = 0; i < one.registers; ++i)
        stores += fmt::format("    st.global.b32 [%d0+{}], %m{};\n", 4 * i, i);
      std::vector<uint16_t> numbered(one.rows * one.columns), want;
      for (uint32_t row = 0; row < one.rows; ++row)
        for (uint32_t column = 0; column < one.columns; ++column)
          numbered[row_major ? row * one.columns + column : column * one.rows + row] =
              static_cast<uint16_t>(row * 64 + column);
      for (uint32_t lane = 0; lane < 32; ++lane)
        for (uint32_t i = 0; i < one.registers; ++i)
          for (uint32_t e = 0; e < 2; ++e) {
            const Cell at = one.at(lane, i, e);
            want.push_back(static_cast<uint16_t>(at.row * 64 + at.column));
          }
      INFO(body);
      CHECK(probe::everywhere<uint16_t>(probe::kernel(body + stores, 2), want.size(), {probe::bytes_of(numbered)},
                                        {.block = {32, 1, 1}}, 1) == want);
    }
}

TEST_CASE("wmma forms that the emulator refuses by name, and addresses that fault") {
  const auto refused = [](const std::string& instruction, const std::string& part) {
    const std::string report = probe::refusal("    " + instruction + "\n");
    INFO(report);
    CHECK(report.find(part) != std::string::npos);
  };
  const std::string two = "{%r0, %r1}", four = "{%r0, %r1, %r2, %r3}",
                    eight = "{%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}";
  refused("wmma.load.a.sync.aligned.row.m16n16k16.global.f16 " + four + ", [%d0];", "takes 8 registers, not 4");
  refused("wmma.load.a.sync.aligned.row.m16n16k8.global.f16 " + eight + ", [%d0];", "no matrix a of type .f16");
  refused("wmma.load.a.sync.aligned.col.m8n8k32.global.s4 {%r0}, [%d0];", "want .row for A and .col for B");
  refused("wmma.load.d.sync.aligned.row.m16n16k16.global.f32 " + eight + ", [%d0];", ".store.d is wanted");
  refused("wmma.mma.sync.aligned.row.col.m16n16k16.f32.bf16.f16.f32 " + eight + ", " + four + ", " + four + ", " +
              eight + ";",
          "there is no form");
  refused("wmma.mma.sync.aligned.row.col.m16n16k16.f16.bf16.bf16.f32 " + four + ", " + four + ", " + four + ", " +
              eight + ";",
          "there is no form");
  refused("wmma.mma.sync.aligned.row.col.m8n8k4.rz.f64.f64.f64.f64 {%d0, %d1}, {%d2}, {%d3}, {%d0, %d1};",
          "rounding to nearest only");
  refused("wmma.mma.sync.aligned.row.row.m8n8k32.s32.s4.s4.s32 " + two + ", {%r2}, {%r3}, " + two + ";",
          "there is no form");

  const probe::Shape unused{.apart = "ptxas leaves out loads of what nobody uses"};
  const std::string misaligned = probe::fault(
      "    ld.param.u64 %d0, [p0];\n    wmma.load.a.sync.aligned.row.m16n16k16.global.f16 " + eight + ", [%d0+2];\n",
      unused);
  CHECK(misaligned.find("multiple of 4") != std::string::npos);
  const std::string outside =
      probe::fault("    ld.param.u64 %d0, [p0];\n    wmma.load.a.sync.aligned.row.m16n16k16.global.f16 " + eight +
                       ", [%d0], 1048576;\n",
                   unused);
  INFO(outside);
  CHECK(outside.find("wmma.load.a") != std::string::npos);
}
