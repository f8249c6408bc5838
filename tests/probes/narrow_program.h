#pragma once
// A kernel in which a CTA or a pair runs MMAs on elements of 8 bits and fewer, or .ws, and shows all of D.
//
// Written down here once more, from the ISA and CUTLASS: how elements are packed ("Packing formats of elements in
// Tensor and Shared memory"), where rows and columns of D lie ("Data Path Layout Organization"; CUTLASS's fragments),
// where scale factors lie (CUTLASS: byte (row % 32) * 16 + (row / 32) * 4 + factor of 512 in shared memory, copied by
// tcgen05.cp.32x128b.warpx4), the bits of both instruction descriptors.

#include <bit>

#include "tests/probes/pair_program.h"

namespace probe {

struct NarrowType {
  const char* name;
  uint32_t code;  ///< in the instruction descriptor of f8f6f4 and mxf8f6f4, or of i8
  uint32_t bits;
  int exponent_bits, fraction_bits;  ///< 0, 0: an integer
};
inline constexpr NarrowType kE4m3{"e4m3", 0, 8, 4, 3}, kE5m2{"e5m2", 1, 8, 5, 2}, kE2m3{"e2m3", 3, 6, 2, 3},
    kE3m2{"e3m2", 4, 6, 3, 2}, kE2m1{"e2m1", 5, 4, 2, 1}, kU8{"u8", 0, 8, 0, 0}, kS8{"s8", 1, 8, 0, 0};

/// The bits of a value that the type can represent.
inline uint32_t encode(const NarrowType& type, double value) {
  if (type.exponent_bits == 0) return static_cast<uint32_t>(static_cast<int>(value)) & 0xFF;
  const uint32_t sign = value < 0 ? 1u << (type.bits - 1) : 0;
  double magnitude = value < 0 ? -value : value;
  if (magnitude == 0) return sign;
  const int bias = (1 << (type.exponent_bits - 1)) - 1;
  int exponent = 0;
  while (magnitude >= 2) magnitude /= 2, ++exponent;
  while (magnitude < 1 && exponent > 1 - bias) magnitude *= 2, --exponent;
  const uint32_t field = magnitude < 1 ? 0 : static_cast<uint32_t>(exponent + bias);
  const double fraction = (magnitude - (field ? 1 : 0)) * (1 << type.fraction_bits);
  return sign | field << type.fraction_bits | static_cast<uint32_t>(fraction);
}

struct NarrowProgram {
  std::string kind = "f8f6f4", modifiers;  ///< modifiers: ".block_scale.block32", ".collector::a::fill"
  NarrowType a_type = kE4m3, b_type = kE4m3;
  uint32_t group = 1, m = 128, n = 64, steps = 1;
  bool weight_stationary = false, a_in_tmem = false, first_adds = false, d_is_f16 = false, saturate = false;
  uint32_t block = 0;  ///< scale factors: elements that share one
  bool ue4m3 = false;
  uint64_t zero_columns = 0;  ///< .ws: the mask's descriptor
  uint32_t max_shift = 0;     ///< .ws: bits 30-31
  Operand a, b;

  bool fp4() const { return kind == "mxf4" || kind == "mxf4nvf4"; }
  bool scaled() const { return block != 0; }
  uint32_t depth() const { return fp4() ? 64 : 32; }  ///< K of one step
  uint32_t k() const { return steps * depth(); }
  uint32_t factors() const { return depth() / block; }
  uint32_t steps_a_word() const { return 4 / factors(); }  ///< steps whose scale factors share a column
  bool padded(const NarrowType& type) const { return !fp4() && type.bits < 8; }

  uint32_t parts() const { return weight_stationary ? 128 / m : group == 2 && m == 128 ? 2 : 1; }
  uint32_t rows() const { return m / group; }
  uint32_t columns() const { return n / parts(); }
  uint32_t lane(uint32_t row, uint32_t column) const {
    const uint32_t r = row % rows(), part = column / columns();
    if (parts() > 1) return r + part * (128 / parts());
    return rows() == 64 ? r % 16 + r / 16 * 32 : r;
  }
  size_t place(uint32_t row, uint32_t column) const {
    return (size_t{row / rows()} * 128 + lane(row, column)) * columns() + column % columns();
  }
  size_t words() const { return size_t{group} * 128 * columns(); }

  uint32_t b_rows() const { return n / group + (weight_stationary ? max_shift : 0); }
  void finish() {
    for (Operand* operand : {&a, &b}) operand->element_bytes = 1, operand->steps = steps;
    a.rows = rows();
    b.rows = b_rows();
    a.base = 0;
    b.base = a_in_tmem ? 0 : a.bytes();
  }
  // Scale factors in shared memory: for every word of steps, 512 bytes per 128 rows of A, then of B; of B in a pair
  // with M = 128, 1024 bytes.
  bool halves() const { return group == 2 && m == 128; }
  uint32_t words_of_steps() const { return (steps + steps_a_word() - 1) / steps_a_word(); }
  uint32_t sfa_bytes() const { return 512; }
  uint32_t sfb_bytes() const { return 1024; }
  uint32_t scales_base() const { return b.base + b.bytes(); }
  uint32_t scales_bytes() const { return scaled() ? words_of_steps() * (sfa_bytes() + sfb_bytes()) : 0; }
  uint32_t image_bytes() const { return scales_base() + scales_bytes(); }

  uint32_t instruction_descriptor(uint32_t step) const {
    uint32_t word =
        static_cast<uint32_t>(a.mn_major && !a_in_tmem) << 15 | static_cast<uint32_t>(b.mn_major) << 16 | n >> 3 << 17;
    if (!scaled())
      return word |
             (kind == "i8" ? 2u
              : d_is_f16   ? 0u
                           : 1u)
                 << 4 |
             static_cast<uint32_t>(saturate) << 3 | a_type.code << 7 | b_type.code << 10 | m >> 4 << 24 |
             static_cast<uint32_t>(std::bit_width(max_shift / 8)) << 30;
    const uint32_t id = step % steps_a_word() * factors();
    return word | id << 4 | (fp4() ? 1u : a_type.code) << 7 | (fp4() ? 1u : b_type.code) << 10 |
           static_cast<uint32_t>(!ue4m3) << 23 | m >> 7 << 27 | id << 29;
  }
  std::string body() const;
  std::string text() const { return kernel(body(), 4, ".extern .shared .align 1024 .b8 smem[];"); }
  Shape shape() const {
    return {.grid = {group, 1, 1},
            .block = {128, 1, 1},
            .cluster = {group, 1, 1},
            .dynamic_shared_bytes = image_bytes() + 1024};
  }
};

using Values = std::function<double(uint32_t row, uint32_t k)>;
/// A scale factor's byte by (row, group of elements along all of K).
using ScaleBytes = std::function<uint32_t(uint32_t row, uint32_t block)>;

/// 32 bytes of K of one row, as shared memory holds them.
inline std::array<std::byte, 32> packed_row(const NarrowProgram& program, const NarrowType& type, const Values& value,
                                            uint32_t row, uint32_t step) {
  std::array<std::byte, 32> out{};
  const uint32_t chunk_elements = program.depth() / 2;
  for (uint32_t i = 0; i < program.depth(); ++i) {
    const uint32_t bits = encode(type, value(row, step * program.depth() + i));
    const uint32_t width = program.padded(type) || program.fp4() ? type.bits : 8;
    for (uint32_t bit = 0; bit < width; ++bit) {
      const uint32_t at = i / chunk_elements * 128 + i % chunk_elements * width + bit;
      out[at / 8] |= static_cast<std::byte>((bits >> bit & 1) << at % 8);
    }
  }
  return out;
}

inline std::vector<std::vector<std::byte>> inputs_of(const NarrowProgram& program, const Values& a, const Values& b,
                                                     const std::vector<uint32_t>& initial_d,
                                                     const ScaleBytes& sa = nullptr, const ScaleBytes& sb = nullptr) {
  std::vector<std::byte> images(size_t{program.group} * program.image_bytes(), std::byte{0xCD});
  std::vector<std::byte> tmem(size_t{program.group} * 128 * program.steps * 32);
  for (uint32_t rank = 0; rank < program.group; ++rank) {
    std::byte* image = images.data() + size_t{rank} * program.image_bytes();
    const auto lay_out = [&](const Operand& operand, const NarrowType& type, const Values& value) {
      for (uint32_t step = 0; step < program.steps; ++step)
        for (uint32_t row = 0; row < operand.rows; ++row) {
          const uint32_t whole = rank * operand.rows + row;
          const std::array<std::byte, 32> bytes = packed_row(program, type, value, whole, step);
          for (uint32_t i = 0; i < 32; ++i) image[operand.address(step, row, i)] = bytes[i];
        }
    };
    lay_out(program.b, program.b_type, b);
    if (!program.a_in_tmem) lay_out(program.a, program.a_type, a);
    for (uint32_t lane = 0; program.a_in_tmem && lane < 128; ++lane)
      for (uint32_t step = 0; step < program.steps; ++step) {
        uint32_t row = lane % program.rows();
        if (program.rows() == 64 && program.parts() == 1) {
          if (lane % 32 >= 16) continue;
          row = lane / 32 * 16 + lane % 32;
        }
        std::byte* to = tmem.data() + ((size_t{rank} * 128 + lane) * program.steps + step) * 32;
        row += rank * program.rows();
        if (program.fp4()) {
          const std::array<std::byte, 32> bytes = packed_row(program, program.a_type, a, row, step);
          std::memcpy(to, bytes.data(), 32);
        } else {
          for (uint32_t i = 0; i < 32; ++i)
            to[i] = static_cast<std::byte>(encode(program.a_type, a(row, step * 32 + i))
                                           << (program.a_type.bits == 4 ? 2 : 0));
        }
      }
    if (!program.scaled()) continue;
    for (uint32_t word = 0; word < program.words_of_steps(); ++word) {
      std::byte* sfa = image + program.scales_base() + word * (program.sfa_bytes() + program.sfb_bytes());
      std::byte* sfb = sfa + program.sfa_bytes();
      for (uint32_t byte = 0; byte < 4; ++byte) {
        const uint32_t block = word * 4 + byte;
        for (uint32_t row = 0; row < program.rows(); ++row)
          sfa[row % 32 * 16 + row / 32 * 4 + byte] = static_cast<std::byte>(sa(rank * program.rows() + row, block));
        for (uint32_t row = 0; row < program.n; ++row) {
          // 128 rows in each 512 bytes; of a pair with M = 128, half of the rows.
          const uint32_t cut = program.halves() ? program.n / 2 : 128, r = row % cut;
          sfb[row / cut * 512 + r % 32 * 16 + r / 32 * 4 + byte] = static_cast<std::byte>(sb(row, block));
        }
      }
    }
  }
  return {images, bytes_of(initial_d), tmem};
}

inline std::string NarrowProgram::body() const {
  const std::string g = std::to_string(group), barrier = group == 2 ? kClusterBarrier : "    bar.sync 0;\n";
  std::string text = fmt::format(R"(
    .shared .align 8 .b64 done;
    .shared .align 4 .b32 address;
    .reg .b32 %v<8>;
    .reg .pred %enable;
    ld.param.u64 %d0, [p0];
    ld.param.u64 %d1, [p1];
    ld.param.u64 %d2, [p2];
    ld.param.u64 %d3, [p3];
    mov.u32 %r20, %cluster_ctarank;
    mad.wide.u32 %d1, %r20, {image}, %d1;
    mov.u32 %r0, smem;
    mov.u32 %r1, %tid.x;
    mad.lo.u32 %r21, %r20, 128, %r1;
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
    tcgen05.alloc.cta_group::{group}.sync.aligned.shared::cta.b32 [address], 512;
    setp.eq.u32 %p0, %r1, 0;
    @%p0 mbarrier.init.shared::cta.b64 [done], 1;
  allocated:
{barrier}
    ld.shared.u32 %r5, [address];
    shl.b32 %r6, %r2, 21;
    add.u32 %r6, %r6, %r5;
)",
                                 fmt::arg("image", image_bytes()), fmt::arg("group", g), fmt::arg("barrier", barrier));
  const auto store = [&](const char* from, uint32_t row_bytes, uint32_t at, uint32_t column) {
    text += fmt::format(R"(    mad.wide.u32 %d4, %r21, {}, {};
    ld.global.v4.u32 {{%v0, %v1, %v2, %v3}}, [%d4+{}];
    ld.global.v4.u32 {{%v4, %v5, %v6, %v7}}, [%d4+{}];
    add.u32 %r7, %r6, {};
    tcgen05.st.sync.aligned.32x32b.x8.b32 [%r7], {{%v0, %v1, %v2, %v3, %v4, %v5, %v6, %v7}};
)",
                        row_bytes, from, at, at + 16, column);
  };
  for (uint32_t column = 0; column < columns(); column += 8) store("%d2", 4 * columns(), 4 * column, column);
  for (uint32_t step = 0; a_in_tmem && step < steps; ++step) store("%d3", 32 * steps, 32 * step, 256 + 8 * step);
  text += "    tcgen05.wait::st.sync.aligned;\n    tcgen05.fence::before_thread_sync;\n" + barrier + R"(
    tcgen05.fence::after_thread_sync;
    or.b32 %r7, %r1, %r20;
    setp.ne.u32 %p1, %r7, 0;
    @%p1 bra issued;
)";
  const auto descriptor = [&](const char* name, uint32_t start, uint64_t word) {
    text += fmt::format(
        "    add.u32 %r7, %r0, {};\n    shr.u32 %r7, %r7, 4;\n    and.b32 %r7, %r7, 0x3FFF;\n    cvt.u64.u32 {}, %r7;\n"
        "    or.b64 {}, {}, {:#x};\n",
        start, name, name, name, word);
  };
  const auto copy_scales = [&](uint32_t start, uint32_t column, const char* form) {
    // 32 or 64 rows of 16 bytes, one behind the other: 128 bytes for each 8.
    descriptor("%d7", start, uint64_t{8} << 32 | uint64_t{1} << 46);
    text += fmt::format("    add.u32 %r8, %r5, {};\n    tcgen05.cp.cta_group::{}.{} [%r8], %d7;\n", column, g, form);
  };
  for (uint32_t step = 0; step < steps; ++step) {
    if (scaled() && step % steps_a_word() == 0) {
      const uint32_t sfa = scales_base() + step / steps_a_word() * (sfa_bytes() + sfb_bytes());
      copy_scales(sfa, 448, "32x128b.warpx4");
      const uint32_t sfb = sfa + sfa_bytes();
      if (halves()) {
        copy_scales(sfb, 456, "64x128b.warpx2::01_23");
      } else {
        copy_scales(sfb, 456, "32x128b.warpx4");
        if (n > 128) copy_scales(sfb + 512, 460, "32x128b.warpx4");
      }
    }
    std::string a_operand = "%d5";
    if (a_in_tmem) {
      text += "    add.u32 %r8, %r5, 256;\n";
      a_operand = fmt::format("[%r8+{}]", 8 * step);
    } else {
      descriptor("%d5", a.start(step), a.descriptor());
    }
    descriptor("%d6", b.start(step), b.descriptor());
    text += fmt::format("    mov.b32 %r9, {:#x};\n    setp.eq.u32 %enable, 0, {};\n", instruction_descriptor(step),
                        step > 0 || first_adds ? 0 : 1);
    std::string scales, zeros;
    if (scaled()) {
      text += "    add.u32 %r10, %r5, 448;\n    add.u32 %r11, %r5, 456;\n";
      scales = ", [%r10], [%r11]";
    }
    if (zero_columns) {
      text += fmt::format("    mov.b64 %d8, {:#x};\n", zero_columns);
      zeros = ", %d8";
    }
    text += fmt::format("    tcgen05.mma{}.cta_group::{}.kind::{}{} [%r5], {}, %d6, %r9{}, %enable{};\n",
                        weight_stationary ? ".ws" : "", g, kind, modifiers, a_operand, scales, zeros);
  }
  text += group == 2 ? "    mov.u16 %h0, 3;\n    tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster."
                       "multicast::cluster.b64 [done], %h0;\n"
                     : "    tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done];\n";
  text += R"(  issued:
    mbarrier.try_wait.parity.shared::cta.b64 %p0, [done], 0;
    @!%p0 bra issued;
    tcgen05.fence::after_thread_sync;
)";
  for (uint32_t column = 0; column < columns(); column += 8)
    text += fmt::format(R"(    add.u32 %r7, %r6, {};
    tcgen05.ld.sync.aligned.32x32b.x8.b32 {{%v0, %v1, %v2, %v3, %v4, %v5, %v6, %v7}}, [%r7];
    tcgen05.wait::ld.sync.aligned;
    mad.wide.u32 %d4, %r21, {}, %d0;
    st.global.v4.u32 [%d4+{}], {{%v0, %v1, %v2, %v3}};
    st.global.v4.u32 [%d4+{}], {{%v4, %v5, %v6, %v7}};
)",
                        column, 4 * columns(), 4 * column, 4 * column + 16);
  return text + "    tcgen05.fence::before_thread_sync;\n" + barrier +
         fmt::format(R"(
    setp.ne.u32 %p1, %r2, 0;
    @%p1 bra freed;
    tcgen05.fence::after_thread_sync;
    tcgen05.dealloc.cta_group::{}.sync.aligned.b32 %r5, 512;
  freed:
)",
                     g);
}

}  // namespace probe
