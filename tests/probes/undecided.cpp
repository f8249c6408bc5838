// Where the ISA leaves something open, or is silent, and the emulator had to choose: programs by which an H200 decides.
// What is expected here is the emulator's choice; tests/golden/h200_probes.json says what the chip does.

#include "tests/probes/everywhere.h"

TEST_CASE("mbarrier: what lanes that arrive together are told, with counts, bytes and drops, as on an H200") {
  // Barrier of 200 arrivals; each lane stores the pending count of its state, then the state after all of them.
  struct Case {
    const char* arrive;
    uint32_t in_turn, left;  // by how much a lane's answer is lower than that of the lane before; pending after all
  };
  for (const Case& c : {Case{"mbarrier.arrive.shared::cta.b64 %d1, [%r0], 3;", 0, 200 - 96},
                        Case{"mbarrier.arrive.expect_tx.shared::cta.b64 %d1, [%r0], 16;", 0, 200 - 32},
                        Case{"mbarrier.arrive_drop.shared::cta.b64 %d1, [%r0];", 0, 200 - 32},
                        Case{"mbarrier.arrive.noComplete.shared::cta.b64 %d1, [%r0], 2;", 2, 200 - 64}}) {
    const std::string body = std::string(R"(
    .shared .align 8 .b64 bar;
    ld.param.u64 %d0, [p0];
    mov.u32 %r0, bar;
    mov.u32 %r1, %tid.x;
    setp.eq.u32 %p0, %r1, 0;
    @%p0 mbarrier.init.shared::cta.b64 [%r0], 200;
    bar.sync 0;
    )") + c.arrive + R"(
    mbarrier.pending_count.b64 %r2, %d1;
    bar.sync 0;
    mbarrier.arrive.shared::cta.b64 %d2, [%r0];
    mbarrier.pending_count.b64 %r3, %d2;
    mad.wide.u32 %d0, %r1, 8, %d0;
    st.global.v2.u32 [%d0], {%r2, %r3};
)";
    std::vector<uint32_t> got = probe::everywhere<uint32_t>(probe::kernel(body, 1), 64, {}, {}, 2);
    for (size_t lane = 0; lane < 32; ++lane) {
      INFO(c.arrive << " lane " << lane);
      CHECK(got[2 * lane] == 200 - lane * c.in_turn);
      CHECK(got[2 * lane + 1] == c.left);
    }
  }
}

TEST_CASE("mbarrier: two groups of lanes on two barriers in one instruction") {
  const std::string body = R"(
    .shared .align 8 .b64 bar[2];
    ld.param.u64 %d0, [p0];
    mov.u32 %r0, bar;
    mov.u32 %r1, %tid.x;
    and.b32 %r2, %r1, 1;
    mad.lo.u32 %r3, %r2, 8, %r0;
    setp.lt.u32 %p0, %r1, 2;
    @%p0 mbarrier.init.shared::cta.b64 [%r3], 50;
    bar.sync 0;
    mbarrier.arrive.shared::cta.b64 %d1, [%r3];
    mbarrier.pending_count.b64 %r4, %d1;
    mad.wide.u32 %d0, %r1, 4, %d0;
    st.global.u32 [%d0], %r4;
)";
  CHECK(probe::everywhere<uint32_t>(probe::kernel(body, 1), 32, {}, {}, 2) == std::vector<uint32_t>(32, 50));
}

TEST_CASE("shared variables lie in the order of their declarations, a function's before the module's") {
  // As ptxas 13.0 places them: 0x400 (the system's first kilobyte) + offset.
  const std::string body = R"(
    .shared .align 1 .b8 a[3];
    .shared .align 8 .b64 b;
    .shared .align 2 .b16 c;
    .shared .align 128 .b8 d[130];
    .shared .align 4 .b32 e[5];
    .shared .align 16 .b8 f[17];
    ld.param.u64 %d0, [p0];
    mov.u32 %r0, a; and.b32 %r0, %r0, 0xFFFFFF; st.global.u32 [%d0], %r0;
    mov.u32 %r0, b; and.b32 %r0, %r0, 0xFFFFFF; st.global.u32 [%d0+4], %r0;
    mov.u32 %r0, c; and.b32 %r0, %r0, 0xFFFFFF; st.global.u32 [%d0+8], %r0;
    mov.u32 %r0, d; and.b32 %r0, %r0, 0xFFFFFF; st.global.u32 [%d0+12], %r0;
    mov.u32 %r0, e; and.b32 %r0, %r0, 0xFFFFFF; st.global.u32 [%d0+16], %r0;
    mov.u32 %r0, f; and.b32 %r0, %r0, 0xFFFFFF; st.global.u32 [%d0+20], %r0;
    mov.u32 %r0, module_scope; and.b32 %r0, %r0, 0xFFFFFF; st.global.u32 [%d0+24], %r0;
    mov.u32 %r0, dynamic; and.b32 %r0, %r0, 0xFFFFFF; st.global.u32 [%d0+28], %r0;
)";
  const std::string ptx = probe::kernel(body, 1,
                                        ".shared .align 4 .b8 module_scope[12];\n"
                                        ".extern .shared .align 128 .b8 dynamic[];");
  CHECK(probe::everywhere<uint32_t>(ptx, 8, {}, {.block = {1, 1, 1}, .dynamic_shared_bytes = 256}, 0) ==
        std::vector<uint32_t>{0x400, 0x408, 0x410, 0x480, 0x504, 0x520, 0x534, 0x580});
}

TEST_CASE("what the registers for sizes of shared memory say, as on an H200") {
  const std::string body = R"(
    .shared .align 4 .b32 a[100];
    ld.param.u64 %d0, [p0];
    mov.u32 %r0, %dynamic_smem_size;
    mov.u32 %r1, %total_smem_size;
    mov.u32 %r2, %aggr_smem_size;
    mov.u32 %r3, a;
    st.shared.u32 [%r3], %r0;
    ld.volatile.shared.u32 %r4, [%r3];
    st.global.v4.u32 [%d0], {%r0, %r1, %r2, %r4};
)";
  std::vector<uint32_t> got =
      probe::everywhere<uint32_t>(probe::kernel(body, 1, ".extern .shared .align 16 .b8 dynamic[];"), 4, {},
                                  {.block = {1, 1, 1}, .dynamic_shared_bytes = 1000}, 0);
  CHECK(got[0] == 1000);
  CHECK(got[1] == 1408);  // 400 + 1000, in units of 128
  CHECK(got[2] >= got[1]);
}
