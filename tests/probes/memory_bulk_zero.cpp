// st.bulk and special registers that hold still. PTX ISA, "st.bulk", "Special Registers".

#include "tests/probes/everywhere.h"

TEST_CASE("st.bulk writes zeros, and nothing beside them") {
  std::vector<uint32_t> got = probe::run<uint32_t>(R"(
    .shared .align 8 .b8 words[256];
    ld.param.u64 %d0, [p0];
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, words;
    mad.lo.u32 %r2, %r0, 8, %r1;
    mov.b32 %r3, 0x11111111;
    st.shared.v2.b32 [%r2], {%r3, %r3};
    bar.sync 0;
    setp.eq.u32 %p0, %r0, 0;
    mov.u64 %d2, 24;
    @%p0 st.bulk.weak.shared::cta [%r1+16], %d2, 0;
    cvt.u64.u32 %d3, %r1;
    cvta.shared.u64 %d3, %d3;
    mov.u64 %d2, 8;
    @%p0 st.bulk [%d3+200], %d2, 0;
    bar.sync 0;
    ld.shared.v2.b32 {%r4, %r5}, [%r2];
    mad.wide.u32 %d1, %r0, 8, %d0;
    st.global.v2.b32 [%d1], {%r4, %r5};
)",
                                                   64);
  for (uint32_t i = 0; i < 64; ++i) {
    bool zero = (i >= 4 && i < 10) || i == 50 || i == 51;
    CHECK(got[i] == (zero ? 0 : 0x11111111));
  }
}

TEST_CASE("st.bulk: sizes and addresses must be multiples of 8, and the memory shared") {
  const std::string start = ".shared .align 8 .b8 words[64];\nmov.u32 %r1, words;\n";
  int error = 0;
  CHECK_THAT(probe::fault(start + "mov.u64 %d2, 12;\nst.bulk.weak.shared::cta [%r1], %d2, 0;\n", {}, &error),
             test::contains("multiples of 8"));
  CHECK(error == 716);
  CHECK_THAT(probe::fault("ld.param.u64 %d1, [p0];\nmov.u64 %d2, 16;\nst.bulk [%d1], %d2, 0;\n", {}, &error),
             test::contains("not in shared memory"));
  CHECK(error == 717);
}

TEST_CASE("registers that the driver does not set are zero; the reserved part of shared memory is the chip's") {
  std::vector<uint32_t> got = probe::run<uint32_t>(R"(
    ld.param.u64 %d0, [p0];
    mov.u32 %r0, %envreg5;
    mov.u32 %r1, %envreg1;
    mov.u32 %r2, %envreg2;
    mov.u64 %d1, %current_graph_exec;
    mov.u32 %r3, %reserved_smem_offset_begin;
    mov.u32 %r4, %reserved_smem_offset_end;
    mov.u32 %r5, %reserved_smem_offset_cap;
    st.global.v4.b32 [%d0], {%r0, %r1, %r2, %r3};
    st.global.v2.b32 [%d0+16], {%r4, %r5};
    st.global.b64 [%d0+24], %d1;
)",
                                                   8, {}, {.block = {1, 1, 1}});
  // A CTA's reserved shared memory is 1 KB from compute capability 8.0 on (CUDA programming guide, "Shared Memory");
  // the driver of an H200 uses 288 bytes of it.
  CHECK(got == std::vector<uint32_t>{0, 0, 0, 0, 0x120, 1024, 0, 0});
}

TEST_CASE("textures, surfaces and multimem are refused by name") {
  const probe::Shape shape{.apart = "the emulator refuses the instruction"};
  CHECK_THAT(probe::fault("tex.2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%d0, {%r4, %r5}];\n", shape),
             test::contains("textures"));
  CHECK_THAT(probe::fault("suld.b.2d.b32.trap {%r0}, [%d0, {%r4, %r5}];\n", shape), test::contains("surfaces"));
  CHECK_THAT(probe::fault("multimem.red.relaxed.gpu.global.add.u32 [%d0], %r0;\n", shape), test::contains("multimem"));
}
