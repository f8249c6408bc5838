#pragma once
// A kernel in which one warpgroup runs wgmma of a given shape on operands that the test has laid out itself, and shows
// all registers of D. Addresses of elements: Operand in mma_program.h. Registers: golden/cutlass_wgmma_fragments.json,
// whose rule is written down here.

#include <fmt/format.h>

#include "tests/probes/mma_program.h"
#include "tests/tensor_model.h"

namespace probe {

enum class WgmmaType { f16, bf16, tf32, e4m3, e5m2, u8, s8 };
inline const char* name(WgmmaType type) {
  constexpr const char* kNames[] = {"f16", "bf16", "tf32", "e4m3", "e5m2", "u8", "s8"};
  return kNames[static_cast<int>(type)];
}
inline bool is_integer(WgmmaType type) {
  return type == WgmmaType::u8 || type == WgmmaType::s8;
}
inline uint32_t bytes_of_type(WgmmaType type) {
  return type == WgmmaType::tf32 ? 4 : type == WgmmaType::f16 || type == WgmmaType::bf16 ? 2 : 1;
}
inline tensor_model::Type model_type(WgmmaType type) {
  using enum tensor_model::Type;
  constexpr tensor_model::Type kTypes[] = {f16, bf16, tf32, e4m3, e5m2};
  return kTypes[static_cast<int>(type)];
}

struct Cell {
  uint32_t row, column;
};
/// Element i of D (two elements a register when it is f16).
inline Cell wgmma_d(uint32_t thread, uint32_t i) {
  return {thread / 32 * 16 + thread % 32 / 4 + 8 * (i / 2 % 2), 8 * (i / 4) + 2 * (thread % 4) + i % 2};
}
/// Element i of A in registers.
inline Cell wgmma_a(uint32_t element_bytes, uint32_t thread, uint32_t i) {
  const uint32_t row = thread / 32 * 16 + thread % 32 / 4;
  if (element_bytes == 4) return {row + 8 * (i % 2), thread % 4 + 4 * (i / 2)};
  if (element_bytes == 2) return {row + 8 * (i / 2 % 2), 2 * (thread % 4) + i % 2 + 8 * (i / 4)};
  return {row + 8 * (i / 4 % 2), 4 * (thread % 4) + i % 4 + 16 * (i / 8)};
}

struct WgmmaProgram {
  WgmmaType a_type = WgmmaType::f16, b_type = WgmmaType::f16;
  uint32_t n = 64, steps = 1;
  Operand a, b;  ///< swizzle, major and gap are taken; the rest is filled in by finish()
  bool a_in_registers = false, d_is_f16 = false, negate_a = false, negate_b = false, saturate = false;
  bool first_adds = true;    ///< scale-d of the first
  bool commit_each = false;  ///< a group for every wgmma, and waits that leave one under way
  bool early = false;        ///< reads D before the wait
  uint32_t warpgroups = 1;   ///< all do the same; warpgroup 0 shows D
  uint32_t base_offset = 0;  ///< of B: its pattern starts so many 128-byte rows into a period

  bool integer() const { return is_integer(a_type); }
  uint32_t depth() const { return 32 / bytes_of_type(a_type); }
  uint32_t k() const { return steps * depth(); }
  uint32_t registers() const { return d_is_f16 ? n / 4 : n / 2; }
  void finish() {
    for (Operand* operand : {&a, &b}) operand->element_bytes = bytes_of_type(a_type), operand->steps = steps;
    a.rows = 64;
    b.rows = n;
    a.base = 0;
    b.base = a_in_registers ? 0 : a.bytes();
  }
  uint32_t image_bytes() const { return b.base + b.bytes(); }
  std::string instruction() const {
    return fmt::format("wgmma.mma_async.sync.aligned.m64n{}k{}{}.{}.{}.{}", n, depth(), saturate ? ".satfinite" : "",
                       integer()  ? "s32"
                       : d_is_f16 ? "f16"
                                  : "f32",
                       name(a_type), name(b_type));
  }
  std::string text() const;
};

/// Registers of D in order, "{%f0, %f1, ...}".
inline std::string register_list(const char* name, uint32_t count, uint32_t first = 0) {
  std::string list;
  for (uint32_t i = 0; i < count; ++i) list += fmt::format("{}%{}{}", i ? ", " : "{", name, first + i);
  return list + "}";
}

/// p0: registers of D by thread; p1: image of shared memory; p2: their first values; p3: registers of A by step and
/// thread.
inline std::string WgmmaProgram::text() const {
  const uint32_t count = registers();
  std::string body = fmt::format(R"(
    .reg .b32 %v<4>;
    .reg .b32 %e<{count}>;
    .reg .b32 %a<{a_registers}>;
    .reg .pred %adds;
    ld.param.u64 %d0, [p0];
    ld.param.u64 %d1, [p1];
    ld.param.u64 %d2, [p2];
    ld.param.u64 %d3, [p3];
    mov.u32 %r0, smem;
    add.u32 %r0, %r0, 1023;
    and.b32 %r0, %r0, 0xFFFFFC00;
    mov.u32 %r1, %tid.x;
    shl.b32 %r3, %r1, 4;
  copy:
    setp.ge.u32 %p0, %r3, {image};
    @%p0 bra copied;
    cvt.u64.u32 %d4, %r3;
    add.u64 %d4, %d4, %d1;
    ld.global.v4.u32 {{%v0, %v1, %v2, %v3}}, [%d4];
    add.u32 %r4, %r0, %r3;
    st.shared.v4.u32 [%r4], {{%v0, %v1, %v2, %v3}};
    add.u32 %r3, %r3, {threads16};
    bra copy;
  copied:
    fence.proxy.async.shared::cta;
    bar.sync 0;
    rem.u32 %r2, %r1, 128;
    mad.wide.u32 %d2, %r2, {bytes}, %d2;
    mad.wide.u32 %d0, %r1, {bytes}, %d0;
    mad.wide.u32 %d3, %r2, 16, %d3;
)",
                                 fmt::arg("count", count), fmt::arg("a_registers", std::max(4 * steps, 4u)),
                                 fmt::arg("image", image_bytes()), fmt::arg("threads16", 128 * 16 * warpgroups),
                                 fmt::arg("bytes", 4 * count));
  for (uint32_t i = 0; i < count; ++i) body += fmt::format("    ld.global.b32 %e{}, [%d2+{}];\n", i, 4 * i);
  if (a_in_registers)
    for (uint32_t i = 0; i < 4 * steps; ++i)
      body += fmt::format("    ld.global.b32 %a{}, [%d3+{}];\n", i, i / 4 * 2048 + i % 4 * 4);
  body += "    wgmma.fence.sync.aligned;\n";
  const auto descriptor = [&](const char* into, const Operand& operand, uint32_t step) {
    constexpr uint64_t kLayout[] = {0, 3, 2, 1};
    const uint64_t high = uint64_t{operand.leading() >> 4} << 16 | uint64_t{operand.stride() >> 4} << 32 |
                          kLayout[static_cast<int>(operand.swizzle)] << 62;
    body += fmt::format(
        "    add.u32 %r7, %r0, {};\n    shr.u32 %r7, %r7, 4;\n    and.b32 %r7, %r7, 0x3FFF;\n    cvt.u64.u32 {}, %r7;\n"
        "    or.b64 {}, {}, {:#x};\n",
        operand.start(step), into, into, into, high);
  };
  for (uint32_t step = 0; step < steps; ++step) {
    std::string a_operand = "%d5";
    if (a_in_registers)
      a_operand = register_list("a", 4, 4 * step);
    else
      descriptor("%d5", a, step);
    descriptor("%d6", b, step);
    body += fmt::format("    setp.eq.u32 %adds, 0, {};\n", step > 0 || first_adds ? 0 : 1);
    body += fmt::format("    {} {}, {}, %d6, %adds", instruction(), register_list("e", count), a_operand);
    if (!integer()) body += fmt::format(", {}, {}", negate_a ? -1 : 1, negate_b ? -1 : 1);
    if (bytes_of_type(a_type) == 2) {
      if (!a_in_registers) body += a.mn_major ? ", 1" : ", 0";
      body += b.mn_major ? ", 1" : ", 0";
    }
    body += ";\n";
    if (commit_each || step + 1 == steps) body += "    wgmma.commit_group.sync.aligned;\n";
    if (commit_each) body += "    wgmma.wait_group.sync.aligned 1;\n";
  }
  const auto show = [&] {
    for (uint32_t i = 0; i < count; ++i) body += fmt::format("    st.global.b32 [%d0+{}], %e{};\n", 4 * i, i);
  };
  if (early) show();
  body += "    wgmma.wait_group.sync.aligned 0;\n";
  if (!early) show();
  return kernel(body, 4, ".extern .shared .align 1024 .b8 smem[];", "sm_90a");
}

/// What one wgmma program works on, as bits by (row, k) and (row, column).
struct WgmmaInputs {
  std::vector<uint32_t> a, b, d;  ///< 64 x k, n x k, 64 x n
};

inline std::vector<std::vector<std::byte>> buffers_of(const WgmmaProgram& program, const WgmmaInputs& inputs) {
  std::vector<std::byte> image(program.image_bytes(), std::byte{0xCD});
  const uint32_t depth = program.depth(), k_all = program.k(), es = bytes_of_type(program.a_type);
  const auto lay_out = [&](const Operand& operand, const std::vector<uint32_t>& bits) {
    for (uint32_t row = 0; row < operand.rows; ++row)
      for (uint32_t k = 0; k < k_all; ++k)
        std::memcpy(&image.at(operand.address(k / depth, row, k % depth)), &bits[row * k_all + k], es);
  };
  std::vector<uint32_t> a_registers;
  if (program.a_in_registers) {
    a_registers.assign(size_t{program.steps} * 512, 0);
    for (uint32_t step = 0; step < program.steps; ++step)
      for (uint32_t thread = 0; thread < 128; ++thread)
        for (uint32_t i = 0; i < 16 / es; ++i) {
          const Cell cell = wgmma_a(es, thread, i);
          const uint32_t bits = inputs.a[cell.row * k_all + step * depth + cell.column];
          a_registers[step * 512 + thread * 4 + i * es / 4] |= bits << (i * es % 4 * 8);
        }
  } else {
    lay_out(program.a, inputs.a);
  }
  lay_out(program.b, inputs.b);
  std::vector<uint32_t> d(size_t{128} * program.registers());
  for (uint32_t thread = 0; thread < 128; ++thread)
    for (uint32_t i = 0; i < program.n / 2; ++i) {
      const Cell cell = wgmma_d(thread, i);
      const uint32_t bits = inputs.d[cell.row * program.n + cell.column];
      uint32_t* registers = &d[thread * program.registers()];
      if (program.d_is_f16)
        registers[i / 2] |= bits << (i % 2 * 16);
      else
        registers[i] = bits;
    }
  return {image, bytes_of(d), bytes_of(a_registers)};
}

inline Shape shape_of(const WgmmaProgram& program) {
  return {.block = {128 * program.warpgroups, 1, 1}, .dynamic_shared_bytes = program.image_bytes() + 1024};
}

/// 64 x n from the registers of 128 threads.
inline std::vector<uint32_t> d_of(const WgmmaProgram& program, const std::vector<uint32_t>& registers) {
  std::vector<uint32_t> d(size_t{64} * program.n);
  for (uint32_t thread = 0; thread < 128; ++thread)
    for (uint32_t i = 0; i < program.n / 2; ++i) {
      const Cell cell = wgmma_d(thread, i);
      const uint32_t* mine = &registers[thread * program.registers()];
      d[cell.row * program.n + cell.column] = program.d_is_f16 ? mine[i / 2] >> (i % 2 * 16) & 0xFFFF : mine[i];
    }
  return d;
}

/// D as the rules have it. PTX ISA for integers; tensor_model.h for the others.
inline std::vector<uint32_t> expected_d(const WgmmaProgram& program, const WgmmaInputs& inputs) {
  std::vector<uint32_t> d = inputs.d;
  const uint32_t depth = program.depth(), k_all = program.k();
  const bool eight_bits = program.a_type == WgmmaType::e4m3 || program.a_type == WgmmaType::e5m2;
  const auto result = program.d_is_f16 ? tensor_model::Result::f16
                      : eight_bits     ? tensor_model::Result::f32_13
                                       : tensor_model::Result::f32;
  const auto integer = [](WgmmaType type, uint32_t bits) {
    return type == WgmmaType::s8 ? static_cast<int8_t>(bits) : static_cast<int>(bits & 0xFF);
  };
  for (uint32_t step = 0; step < program.steps; ++step)
    for (uint32_t row = 0; row < 64; ++row)
      for (uint32_t column = 0; column < program.n; ++column) {
        uint32_t& old = d[row * program.n + column];
        const bool adds = step > 0 || program.first_adds;
        const auto slice = [&](const std::vector<uint32_t>& all, uint32_t index) {
          const auto at = all.begin() + index * k_all + step * depth;
          return std::vector<uint32_t>(at, at + depth);
        };
        const std::vector<uint32_t> a = slice(inputs.a, row), b = slice(inputs.b, column);
        if (program.integer()) {
          int64_t sum = adds ? static_cast<int32_t>(old) : 0;
          for (uint32_t k = 0; k < depth; ++k)
            sum += int64_t{integer(program.a_type, a[k])} * integer(program.b_type, b[k]);
          if (program.saturate) sum = std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX);
          old = static_cast<uint32_t>(sum);
          continue;
        }
        const tensor_model::Number before =
            adds ? tensor_model::decode(program.d_is_f16 ? tensor_model::Type::f16 : tensor_model::Type::f32, old)
                 : tensor_model::Number{};
        old = tensor_model::fused(tensor_model::decode_all(model_type(program.a_type), a, program.negate_a),
                                  tensor_model::decode_all(model_type(program.b_type), b, program.negate_b), before,
                                  eight_bits ? 13 : 25, result);
      }
  return d;
}

/// Bits that make interesting sums: most of them near one another, some zeros, subnormals, extremes, and with
/// `specials` infinities and NaN.
inline std::vector<uint32_t> wgmma_bits(Random& random, size_t count, uint32_t bits, uint32_t fraction_bits, int spread,
                                        bool specials) {
  std::vector<uint32_t> out(count);
  const uint32_t exponent_bits = bits - 1 - fraction_bits, top = (1u << exponent_bits) - 1, bias = top / 2;
  for (uint32_t& value : out) {
    const uint64_t r = random.next();
    uint32_t field =
        bias + static_cast<uint32_t>(r >> 8) % static_cast<uint32_t>(spread) - static_cast<uint32_t>(spread) / 2;
    if (r % 16 == 0) field = static_cast<uint32_t>(r >> 32) % 3;
    if (r % 16 == 1) field = static_cast<uint32_t>(r >> 32) % top;
    const uint32_t fraction = static_cast<uint32_t>(r >> 40) & ((1u << fraction_bits) - 1);
    value = field << fraction_bits | fraction;
    if (r % 16 == 2) value = 0;
    if (specials && r % 128 == 5) value = top << fraction_bits | (r % 256 == 5 ? fraction : 0);
    if (r >> 63) value |= 1u << (bits - 1);
  }
  return out;
}

/// Random operands for a program.
inline WgmmaInputs random_inputs(const WgmmaProgram& program, uint64_t seed, bool specials = false) {
  Random random(seed);
  const auto operand = [&](WgmmaType type, size_t rows) {
    const size_t count = rows * program.k();
    if (is_integer(type)) {
      std::vector<uint32_t> out(count);
      for (uint32_t& value : out) value = static_cast<uint32_t>(random.next() & 0xFF);
      return out;
    }
    const tensor_model::Format format = tensor_model::format_of(model_type(type));
    const auto bits = static_cast<uint32_t>(1 + format.exponent_bits + format.fraction_bits + format.shift);
    auto out = wgmma_bits(random, count, bits, static_cast<uint32_t>(format.fraction_bits + format.shift), 7, specials);
    // e4m3 has its one NaN at the top.
    if (type == WgmmaType::e4m3 && !specials)
      for (uint32_t& value : out)
        if ((value & 0x7F) == 0x7F) value ^= 1;
    return out;
  };
  WgmmaInputs inputs{operand(program.a_type, 64), operand(program.b_type, program.n), {}};
  const size_t count = size_t{64} * program.n;
  if (program.integer()) {
    inputs.d.resize(count);
    for (uint32_t& value : inputs.d) {
      const uint64_t r = random.next();
      value = r % 4 ? static_cast<uint32_t>(r >> 32) : 0x7FFFFFF0u + static_cast<uint32_t>(r >> 32) % 32;
    }
  } else {
    inputs.d = program.d_is_f16 ? wgmma_bits(random, count, 16, 10, 9, specials)
                                : wgmma_bits(random, count, 32, 23, 30, specials);
  }
  return inputs;
}

/// everywhere() on an H200.
inline std::vector<uint32_t> run_wgmma(const WgmmaProgram& program, const WgmmaInputs& inputs, int seeds = 2) {
  std::vector<uint32_t> first;
  for (Setting setting : settings(seeds)) {
    setting.options.chip = "h200";
    const Ending ending =
        launch_with(setting.options, program.text(), size_t{4} * 128 * program.warpgroups * program.registers(),
                    buffers_of(program, inputs), shape_of(program));
    if (!ending.report.empty()) {
      FAIL(setting.name << ":\n" << ending.report << program.text());
      return {};
    }
    std::vector<uint32_t> values = values_of<uint32_t>(ending.bytes);
    if (first.empty()) first = values;
    if (values != first) {
      FAIL(setting.name << " differs from earliest\n" << program.text());
      return {};
    }
  }
  return first;
}

/// Runs a program on random operands and holds every warpgroup's D against the model.
inline void check_wgmma(WgmmaProgram program, uint64_t seed = 1, bool specials = false, int seeds = 1) {
  program.finish();
  const WgmmaInputs inputs = random_inputs(program, seed, specials);
  const std::vector<uint32_t> got = run_wgmma(program, inputs, seeds);
  if (got.empty()) return;
  const std::vector<uint32_t> want = expected_d(program, inputs);
  INFO(program.instruction() << ", A "
                             << (program.a_in_registers ? "in registers"
                                 : program.a.mn_major   ? "MN"
                                                        : "K")
                             << " swizzle " << static_cast<int>(program.a.swizzle) << ", B "
                             << (program.b.mn_major ? "MN" : "K") << " swizzle " << static_cast<int>(program.b.swizzle)
                             << ", " << program.steps << " steps");
  for (uint32_t group = 0; group < program.warpgroups; ++group) {
    const size_t words = size_t{128} * program.registers();
    const std::vector<uint32_t> d =
        d_of(program, std::vector<uint32_t>(got.begin() + static_cast<std::ptrdiff_t>(group * words),
                                            got.begin() + static_cast<std::ptrdiff_t>((group + 1) * words)));
    int wrong = 0;
    for (uint32_t i = 0; i < d.size() && wrong < 4; ++i)
      if (d[i] != want[i]) {
        ++wrong;
        FAIL_CHECK("warpgroup " << group << " row " << i / program.n << " column " << i % program.n << " is "
                                << hex(d[i]) << ", expected " << hex(want[i]) << ", was " << hex(inputs.d[i]));
      }
    CHECK(wrong == 0);
  }
}

}  // namespace probe
