#pragma once
// A kernel that runs MMAs of a given shape on operands which the test has laid out itself, and shows all of D.
//
// Where an element lives in shared memory is written down here once more, from the tables of the ISA ("tcgen05
// canonical layouts", "Swizzling modes") and from where CUTLASS puts it; nothing is shared with the emulator.

#include <array>
#include <functional>

#include <fmt/format.h>

#include "tests/probes/everywhere.h"

namespace probe {

enum class Swizzle { none, b32, b64, b128, b128_atom32 };

inline uint32_t span_bytes(Swizzle swizzle) {
  return swizzle == Swizzle::none ? 16 : swizzle == Swizzle::b32 ? 32 : swizzle == Swizzle::b64 ? 64 : 128;
}
inline uint32_t swizzle_address(Swizzle swizzle, uint32_t a) {
  switch (swizzle) {
    case Swizzle::none:
      return a;
    case Swizzle::b32:
      return a ^ (a >> 3 & 0x10);
    case Swizzle::b64:
      return a ^ (a >> 3 & 0x30);
    case Swizzle::b128:
      return a ^ (a >> 3 & 0x70);
    case Swizzle::b128_atom32:
      return a ^ (a >> 2 & 0x60);
  }
  return a;
}

/// One operand: `rows` x (steps * 32 bytes of K), in a region of shared memory that starts at `base` (1024-aligned).
struct Operand {
  uint32_t rows = 0, element_bytes = 2, steps = 1, base = 0;
  bool mn_major = false;
  Swizzle swizzle = Swizzle::b128;
  uint32_t gap = 0;  ///< bytes added to the larger stride, so that it is not the packed one (a multiple of 1024)

  uint32_t depth() const { return 32 / element_bytes; }  ///< K of one step
  uint32_t per_chunk() const { return 16 / element_bytes; }
  uint32_t span() const { return span_bytes(swizzle); }
  uint32_t k_rows() const { return swizzle == Swizzle::b128_atom32 ? 4 : 8; }  ///< MN-major: k of one group

  // Strides in bytes, as the descriptor has them.
  uint32_t leading() const {
    if (swizzle == Swizzle::none)
      return mn_major ? 128 * ((rows + per_chunk() - 1) / per_chunk()) + gap : rows * 16 + gap;
    return mn_major ? depth() * span() + gap : 16;
  }
  uint32_t stride() const {
    if (swizzle == Swizzle::none) return 128;
    return mn_major ? k_rows() * span() : 8 * span() + gap;
  }
  uint32_t groups() const {  ///< MN-major, swizzled: groups of span bytes along MN
    return (rows * element_bytes + span() - 1) / span();
  }
  /// Steps that share a region because a swizzled row is longer than 32 bytes.
  uint32_t steps_a_region() const { return mn_major || swizzle == Swizzle::none ? 1 : span() / 32; }
  uint32_t region_bytes() const {
    uint32_t bytes = swizzle == Swizzle::none ? (mn_major ? depth() / 8 : 2) * leading()
                     : mn_major               ? groups() * leading()
                                              : (rows + 7) / 8 * stride();
    return (bytes + 1023) / 1024 * 1024;
  }
  uint32_t bytes() const { return (steps + steps_a_region() - 1) / steps_a_region() * region_bytes(); }
  /// Where the descriptor of a step starts.
  uint32_t start(uint32_t step) const {
    return base + step / steps_a_region() * region_bytes() + step % steps_a_region() * 32;
  }
  /// Offset of (row, k of the step).
  uint32_t address(uint32_t step, uint32_t row, uint32_t k) const {
    uint32_t es = element_bytes, t = per_chunk(), at = start(step);
    if (!mn_major && swizzle == Swizzle::none)
      at += row / 8 * stride() + k * es / 16 * leading() + row % 8 * 16 + k * es % 16;
    else if (!mn_major)
      at += row / 8 * stride() + row % 8 * span() + k * es;
    else if (swizzle == Swizzle::none)
      at += row / t * stride() + k / 8 * leading() + k % 8 * 16 + row % t * es;
    else
      at += row * es / span() * leading() + k / k_rows() * stride() + k % k_rows() * span() + row * es % span();
    return swizzle_address(swizzle, at);
  }
  /// The descriptor without its start address: LBO >> 4 at 16, SBO >> 4 at 32, 1 at 46, layout at 61.
  uint64_t descriptor() const {
    constexpr uint64_t kLayout[] = {0, 6, 4, 2, 1};
    return uint64_t{leading() >> 4} << 16 | uint64_t{stride() >> 4} << 32 | uint64_t{1} << 46 |
           kLayout[static_cast<int>(swizzle)] << 61;
  }
};

struct MmaProgram {
  enum class Type { f16, bf16, tf32 } type = Type::f16;
  uint32_t m = 128, n = 64, steps = 1;
  Operand a, b;  ///< swizzle, major and gap are taken; the rest is filled in by finish()
  bool a_in_tmem = false, d_is_f16 = false, negate_a = false, negate_b = false;
  bool first_adds = false;  ///< enable-input-d of the first MMA: adds to the initial D
  uint32_t d_lane = 0;      ///< 0 or 16
  int scale = -1;           ///< scale-input-d
  std::array<uint32_t, 4> disabled{};
  bool with_mask = false;

  uint32_t element_bytes() const { return type == Type::tf32 ? 4 : 2; }
  uint32_t depth() const { return 32 / element_bytes(); }
  uint32_t k() const { return steps * depth(); }
  void finish() {
    for (Operand* operand : {&a, &b}) operand->element_bytes = element_bytes(), operand->steps = steps;
    a.rows = m;
    b.rows = n;
    a.base = 0;
    b.base = a_in_tmem ? 0 : a.bytes();
  }
  uint32_t image_bytes() const { return b.base + b.bytes(); }
  /// PTX ISA, "Instruction descriptor".
  uint32_t instruction_descriptor() const {
    uint32_t code = type == Type::f16 ? 0 : type == Type::bf16 ? 1 : 2;
    return (d_is_f16 ? 0u : 1u << 4) | code << 7 | code << 10 | static_cast<uint32_t>(negate_a) << 13 |
           static_cast<uint32_t>(negate_b) << 14 | static_cast<uint32_t>(a.mn_major && !a_in_tmem) << 15 |
           static_cast<uint32_t>(b.mn_major) << 16 | n >> 3 << 17 | m >> 4 << 24;
  }
  /// Lane of row m: CUTLASS's layout of D.
  uint32_t lane(uint32_t row) const { return m == 128 ? row : row % 16 + row / 16 * 32 + d_lane; }

  std::string body() const;
  std::string text() const { return kernel(body(), 4, ".extern .shared .align 1024 .b8 smem[];"); }
};

/// A value's bits by (row, k).
using Elements = std::function<uint32_t(uint32_t, uint32_t)>;

/// What the kernel needs in p1 (image of shared memory), p2 (initial D, 128 lanes x n) and p3 (A in tensor memory).
inline std::vector<std::vector<std::byte>> inputs_of(const MmaProgram& program, const Elements& a, const Elements& b,
                                                     const std::vector<uint32_t>& initial_d) {
  std::vector<std::byte> image(program.image_bytes(), std::byte{0xCD});
  const auto lay_out = [&](const Operand& operand, const Elements& value) {
    for (uint32_t k = 0; k < program.k(); ++k)
      for (uint32_t row = 0; row < operand.rows; ++row) {
        uint32_t bits = value(row, k), depth = program.depth();
        std::memcpy(&image.at(operand.address(k / depth, row, k % depth)), &bits, operand.element_bytes);
      }
  };
  std::vector<uint32_t> tmem;
  if (program.a_in_tmem) {
    // Packed, even k low; 8 columns a step, in the lanes of D's rows.
    tmem.assign(size_t{128} * program.steps * 8, 0);
    for (uint32_t row = 0; row < program.m; ++row)
      for (uint32_t k = 0; k < program.k(); ++k) {
        uint32_t per_column = 4 / program.element_bytes();
        uint32_t& word = tmem[size_t{program.lane(row)} * program.steps * 8 + k / per_column];
        word |= a(row, k) << (k % per_column * 16);
      }
  } else {
    lay_out(program.a, a);
  }
  lay_out(program.b, b);
  return {image, bytes_of(initial_d), bytes_of(tmem)};
}

inline std::string MmaProgram::body() const {
  std::string text = fmt::format(R"(
    .shared .align 8 .b64 done;
    .shared .align 4 .b32 address;
    .reg .b32 %v<8>;
    .reg .pred %enable;
    ld.param.u64 %d0, [p0];
    ld.param.u64 %d1, [p1];
    ld.param.u64 %d2, [p2];
    ld.param.u64 %d3, [p3];
    mov.u32 %r0, smem;
    mov.u32 %r1, %tid.x;
    shr.u32 %r2, %r1, 5;
    shl.b32 %r3, %r1, 4;
  copy:
    setp.ge.u32 %p0, %r3, {image};
    @%p0 bra copied;
    cvt.u64.u32 %d4, %r3;
    add.u64 %d4, %d4, %d1;
    add.u32 %r4, %r0, %r3;
    ld.global.v4.u32 {{%v0, %v1, %v2, %v3}}, [%d4];
    st.shared.v4.u32 [%r4], {{%v0, %v1, %v2, %v3}};
    add.u32 %r3, %r3, 2048;
    bra copy;
  copied:
    fence.proxy.async.shared::cta;
    setp.ne.u32 %p1, %r2, 0;
    @%p1 bra allocated;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [address], 512;
    setp.eq.u32 %p0, %r1, 0;
    @%p0 mbarrier.init.shared::cta.b64 [done], 1;
  allocated:
    bar.sync 0;
    ld.shared.u32 %r5, [address];
    shl.b32 %r6, %r2, 21;
    add.u32 %r6, %r6, %r5;
)",
                                 fmt::arg("image", image_bytes()));
  if (first_adds || with_mask || d_is_f16)
    for (uint32_t column = 0; column < n; column += 8)
      text += fmt::format(R"(    mad.wide.u32 %d4, %r1, {}, %d2;
    ld.global.v4.u32 {{%v0, %v1, %v2, %v3}}, [%d4+{}];
    ld.global.v4.u32 {{%v4, %v5, %v6, %v7}}, [%d4+{}];
    add.u32 %r7, %r6, {};
    tcgen05.st.sync.aligned.32x32b.x8.b32 [%r7], {{%v0, %v1, %v2, %v3, %v4, %v5, %v6, %v7}};
)",
                          4 * n, 4 * column, 4 * column + 16, column);
  for (uint32_t step = 0; a_in_tmem && step < steps; ++step)
    text += fmt::format(R"(    mad.wide.u32 %d4, %r1, {}, %d3;
    ld.global.v4.u32 {{%v0, %v1, %v2, %v3}}, [%d4+{}];
    ld.global.v4.u32 {{%v4, %v5, %v6, %v7}}, [%d4+{}];
    add.u32 %r7, %r6, {};
    tcgen05.st.sync.aligned.32x32b.x8.b32 [%r7], {{%v0, %v1, %v2, %v3, %v4, %v5, %v6, %v7}};
)",
                        32 * steps, 32 * step, 32 * step + 16, 256 + 8 * step);
  text += R"(
    tcgen05.wait::st.sync.aligned;
    tcgen05.fence::before_thread_sync;
    bar.sync 0;
    tcgen05.fence::after_thread_sync;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra issued;
)";
  const auto descriptor = [&](const char* name, const Operand& operand, uint32_t step) {
    text += fmt::format(
        "    add.u32 %r7, %r0, {};\n    shr.u32 %r7, %r7, 4;\n    and.b32 %r7, %r7, 0x3FFF;\n    cvt.u64.u32 {}, %r7;\n"
        "    or.b64 {}, {}, {:#x};\n",
        operand.start(step), name, name, name, operand.descriptor());
  };
  text += fmt::format("    mov.b32 %r9, {:#x};\n    add.u32 %r10, %r5, {};\n", instruction_descriptor(), d_lane << 16);
  for (uint32_t i = 0; i < 4; ++i) text += fmt::format("    mov.b32 %v{}, {:#x};\n", i, disabled[i]);
  for (uint32_t step = 0; step < steps; ++step) {
    std::string a_operand = "%d5";
    if (a_in_tmem) {
      text += "    add.u32 %r8, %r10, 256;\n";
      a_operand = fmt::format("[%r8+{}]", 8 * step);
    } else {
      descriptor("%d5", a, step);
    }
    descriptor("%d6", b, step);
    text += fmt::format("    setp.eq.u32 %enable, 0, {};\n", step > 0 || first_adds ? 0 : 1);
    text += fmt::format("    tcgen05.mma.cta_group::1.kind::{} [%r10], {}, %d6, %r9{}, %enable{};\n",
                        type == Type::tf32 ? "tf32" : "f16", a_operand, with_mask ? ", {%v0, %v1, %v2, %v3}" : "",
                        scale >= 0 && step == 0 ? fmt::format(", {}", scale) : "");
  }
  text += R"(
    tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done];
  issued:
    mbarrier.try_wait.parity.shared::cta.b64 %p0, [done], 0;
    @!%p0 bra issued;
    tcgen05.fence::after_thread_sync;
)";
  for (uint32_t column = 0; column < n; column += 8)
    text += fmt::format(R"(    add.u32 %r7, %r6, {};
    tcgen05.ld.sync.aligned.32x32b.x8.b32 {{%v0, %v1, %v2, %v3, %v4, %v5, %v6, %v7}}, [%r7];
    tcgen05.wait::ld.sync.aligned;
    mad.wide.u32 %d4, %r1, {}, %d0;
    st.global.v4.u32 [%d4+{}], {{%v0, %v1, %v2, %v3}};
    st.global.v4.u32 [%d4+{}], {{%v4, %v5, %v6, %v7}};
)",
                        column, 4 * n, 4 * column, 4 * column + 16);
  return text + R"(
    tcgen05.fence::before_thread_sync;
    bar.sync 0;
    setp.ne.u32 %p1, %r2, 0;
    @%p1 bra freed;
    tcgen05.fence::after_thread_sync;
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r5, 512;
  freed:
)";
}

inline Shape shape_of(const MmaProgram& program) {
  return {.block = {128, 1, 1}, .dynamic_shared_bytes = program.image_bytes() + 1024};
}

/// D as it ends up, 128 lanes x n, the same under all schedules.
inline std::vector<uint32_t> run_mma(const MmaProgram& program, const Elements& a, const Elements& b,
                                     const std::vector<uint32_t>& initial_d, int seeds = 2) {
  return everywhere<uint32_t>(program.text(), size_t{128} * program.n, inputs_of(program, a, b, initial_d),
                              shape_of(program), seeds);
}

}  // namespace probe
