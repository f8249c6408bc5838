#pragma once
// A kernel in which a pair of CTAs runs MMAs of cta_group::2 on operands that the test has laid out, and shows all of D
// of both CTAs.
//
// Which CTA holds what (PTX ISA, "CTA Pair", "Data Path Layout Organization", layouts A and B; CUTLASS's partitioning,
// tests/golden/cutlass_tmem_layouts.json): CTA r holds rows r*M/2 of A and of D and rows r*N/2 of B. D: with M = 256
// row m is lane m - 128r, column n; with M = 128 it is lane m - 64r + 64 * (n >= N/2), column n mod N/2. A in tensor
// memory lies in the lanes of D's rows, with M = 128 twice.

#include "tests/probes/mma_program.h"

namespace probe {

struct PairProgram {
  using Type = MmaProgram::Type;
  Type type = Type::f16;
  uint32_t m = 256, n = 64, steps = 1;
  Operand a, b;  ///< swizzle, major and gap are taken; the rest is filled in by finish()
  bool a_in_tmem = false;
  bool first_adds = false;
  bool with_mask = false;
  std::array<uint32_t, 8> disabled{};
  uint32_t issuer = 0;  ///< rank of the CTA whose thread 0 issues
  uint32_t clusters = 1;

  uint32_t element_bytes() const { return type == Type::tf32 ? 4 : 2; }
  uint32_t depth() const { return 32 / element_bytes(); }
  uint32_t k() const { return steps * depth(); }
  uint32_t columns() const { return m == 256 ? n : n / 2; }
  uint32_t lane(uint32_t row, uint32_t column) const {
    return m == 256 ? row % 128 : row % 64 + (column >= n / 2 ? 64 : 0);
  }
  void finish() {
    for (Operand* operand : {&a, &b}) operand->element_bytes = element_bytes(), operand->steps = steps;
    a.rows = m / 2;
    b.rows = n / 2;
    a.base = 0;
    b.base = a_in_tmem ? 0 : a.bytes();
  }
  uint32_t image_bytes() const { return b.base + b.bytes(); }
  uint32_t instruction_descriptor() const {
    uint32_t code = type == Type::f16 ? 0 : type == Type::bf16 ? 1 : 2;
    return 1u << 4 | code << 7 | code << 10 | static_cast<uint32_t>(a.mn_major && !a_in_tmem) << 15 |
           static_cast<uint32_t>(b.mn_major) << 16 | n >> 3 << 17 | m >> 4 << 24;
  }
  std::string body() const;
  std::string text() const { return kernel(body(), 4, ".extern .shared .align 1024 .b8 smem[];"); }
  Shape shape() const {
    return {.grid = {2 * clusters, 1, 1},
            .block = {128, 1, 1},
            .cluster = {2, 1, 1},
            .dynamic_shared_bytes = image_bytes() + 1024};
  }
  size_t words() const { return size_t{2} * 128 * columns(); }
};

/// p1: both images of shared memory, p2: initial D of both, p3: A in tensor memory of both.
inline std::vector<std::vector<std::byte>> inputs_of(const PairProgram& program, const Elements& a, const Elements& b,
                                                     const std::vector<uint32_t>& initial_d) {
  std::vector<std::byte> images(size_t{2} * program.image_bytes(), std::byte{0xCD});
  std::vector<uint32_t> tmem(program.a_in_tmem ? size_t{2} * 128 * program.steps * 8 : 0);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    std::byte* image = images.data() + size_t{rank} * program.image_bytes();
    const auto lay_out = [&](const Operand& operand, const Elements& value) {
      for (uint32_t k = 0; k < program.k(); ++k)
        for (uint32_t row = 0; row < operand.rows; ++row) {
          uint32_t bits = value(rank * operand.rows + row, k), depth = program.depth();
          std::memcpy(image + operand.address(k / depth, row, k % depth), &bits, operand.element_bytes);
        }
    };
    lay_out(program.b, b);
    if (!program.a_in_tmem) {
      lay_out(program.a, a);
      continue;
    }
    for (uint32_t lane = 0; lane < 128; ++lane)
      for (uint32_t k = 0; k < program.k(); ++k) {
        const uint32_t rows = program.m / 2, per_column = 4 / program.element_bytes();
        uint32_t& word = tmem[((size_t{rank} * 128 + lane) * program.steps * 8) + k / per_column];
        word |= a(rank * rows + lane % rows, k) << (k % per_column * 16);
      }
  }
  return {images, bytes_of(initial_d), bytes_of(tmem)};
}

const std::string kClusterBarrier =
    "    barrier.cluster.arrive.release.aligned;\n    barrier.cluster.wait.acquire.aligned;\n";

inline std::string PairProgram::body() const {
  std::string text = fmt::format(R"(
    .shared .align 8 .b64 done;
    .shared .align 4 .b32 address;
    .reg .b32 %v<8>, %m<8>;
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
    tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [address], 512;
    setp.eq.u32 %p0, %r1, 0;
    @%p0 mbarrier.init.shared::cta.b64 [done], 1;
  allocated:
)",
                                 fmt::arg("image", image_bytes()));
  text += kClusterBarrier + R"(
    ld.shared.u32 %r5, [address];
    shl.b32 %r6, %r2, 21;
    add.u32 %r6, %r6, %r5;
)";
  const auto store = [&](const char* from, uint32_t row_bytes, uint32_t at, uint32_t column) {
    text += fmt::format(R"(    mad.wide.u32 %d4, %r21, {}, {};
    ld.global.v4.u32 {{%v0, %v1, %v2, %v3}}, [%d4+{}];
    ld.global.v4.u32 {{%v4, %v5, %v6, %v7}}, [%d4+{}];
    add.u32 %r7, %r6, {};
    tcgen05.st.sync.aligned.32x32b.x8.b32 [%r7], {{%v0, %v1, %v2, %v3, %v4, %v5, %v6, %v7}};
)",
                        row_bytes, from, at, at + 16, column);
  };
  if (first_adds || with_mask)
    for (uint32_t column = 0; column < columns(); column += 8) store("%d2", 4 * columns(), 4 * column, column);
  for (uint32_t step = 0; a_in_tmem && step < steps; ++step) store("%d3", 32 * steps, 32 * step, 256 + 8 * step);
  text += "    tcgen05.wait::st.sync.aligned;\n    tcgen05.fence::before_thread_sync;\n" + kClusterBarrier +
          fmt::format(R"(
    tcgen05.fence::after_thread_sync;
    setp.ne.u32 %p1, %r1, 0;
    setp.ne.or.u32 %p1, %r20, {}, %p1;
    @%p1 bra issued;
    mov.b32 %r9, {:#x};
)",
                      issuer, instruction_descriptor());
  const auto descriptor = [&](const char* name, const Operand& operand, uint32_t step) {
    text += fmt::format(
        "    add.u32 %r7, %r0, {};\n    shr.u32 %r7, %r7, 4;\n    and.b32 %r7, %r7, 0x3FFF;\n    cvt.u64.u32 {}, %r7;\n"
        "    or.b64 {}, {}, {:#x};\n",
        operand.start(step), name, name, name, operand.descriptor());
  };
  for (uint32_t i = 0; i < 8; ++i) text += fmt::format("    mov.b32 %m{}, {:#x};\n", i, disabled[i]);
  for (uint32_t step = 0; step < steps; ++step) {
    std::string a_operand = "%d5";
    if (a_in_tmem) {
      text += fmt::format("    add.u32 %r8, %r5, {};\n", 256 + 8 * step);
      a_operand = "[%r8]";
    } else {
      descriptor("%d5", a, step);
    }
    descriptor("%d6", b, step);
    text += fmt::format("    setp.eq.u32 %enable, 0, {};\n", step > 0 || first_adds ? 0 : 1);
    text += fmt::format("    tcgen05.mma.cta_group::2.kind::{} [%r5], {}, %d6, %r9{}, %enable;\n",
                        type == Type::tf32 ? "tf32" : "f16", a_operand,
                        with_mask ? ", {%m0, %m1, %m2, %m3, %m4, %m5, %m6, %m7}" : "");
  }
  text += R"(
    mov.u16 %h0, 3;
    tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [done], %h0;
  issued:
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
  return text + "    tcgen05.fence::before_thread_sync;\n" + kClusterBarrier + R"(
    setp.ne.u32 %p1, %r2, 0;
    @%p1 bra freed;
    tcgen05.fence::after_thread_sync;
    tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r5, 512;
    tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;
  freed:
)";
}

}  // namespace probe
