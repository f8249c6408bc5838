// What the CTAs of a cluster do to each other's mbarriers, and the stores, reductions and copies that tell them: remote
// arrives, st.async, red.async, cp.async.bulk between CTAs, multicast. PTX ISA, "mbarrier", "st.async", "red.async",
// "cp.async.bulk"; where a barrier is credited, and the counts, as an H200 has them.

#include <fmt/format.h>

#include "tests/probes/everywhere.h"

namespace {

using Words = std::vector<uint32_t>;

/// One barrier, `full`, initialised with `count` in each CTA; p0: `words` words for each CTA at %d0; %r1 thread, %r2
/// rank, %r3 ranks, %r4 address of `full`, %r5 of `data`, 256 words, zero. Everybody has seen the initialisation.
std::string start(uint32_t words, const std::string& count) {
  return fmt::format(R"(
    .shared .align 8 .b64 full;
    .shared .align 128 .b32 data[256];
    ld.param.u64 %d0, [p0];
    mov.u32 %r0, %ctaid.x;
    mad.wide.u32 %d0, %r0, {}, %d0;
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %cluster_ctarank;
    mov.u32 %r3, %cluster_nctarank;
    mov.u32 %r4, full;
    mov.u32 %r5, data;
    mov.u32 %r6, 0;
    shl.b32 %r7, %r1, 2;
    add.u32 %r8, %r5, %r7;
  clear:
    st.shared.u32 [%r8], %r6;
    add.u32 %r7, %r7, 128;
    add.u32 %r8, %r8, 128;
    setp.lt.u32 %p0, %r7, 1024;
    @%p0 bra clear;
    setp.eq.u32 %p0, %r1, 0;
    mov.u32 %r6, {};
    @%p0 mbarrier.init.shared::cta.b64 [%r4], %r6;
    fence.mbarrier_init.release.cluster;
    fence.proxy.async;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
)",
                     4 * words, count);
}

/// Waits for the first phase of `full`.
const std::string kWait = R"(
  wait:
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [%r4], 0;
    @!%p1 bra wait;
)";
/// All 32 threads show data[0..255], 8 words each.
const std::string kShow = R"(
    shl.b32 %r24, %r1, 5;
    add.u32 %r25, %r5, %r24;
    cvt.u64.u32 %d15, %r24;
    add.u64 %d15, %d15, %d0;
    ld.shared.v4.u32 {%r26, %r27, %r28, %r29}, [%r25];
    st.global.v4.u32 [%d15], {%r26, %r27, %r28, %r29};
    ld.shared.v4.u32 {%r26, %r27, %r28, %r29}, [%r25+16];
    st.global.v4.u32 [%d15+16], {%r26, %r27, %r28, %r29};
)";
const std::string kEnd = R"(
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
)";

Words run(const std::string& body, uint32_t ctas, uint32_t words, uint32_t cluster, int seeds = 6) {
  return probe::everywhere<uint32_t>(probe::kernel(body, 1), ctas * words, {},
                                     {.grid = {ctas, 1, 1}, .block = {32, 1, 1}, .cluster = {cluster, 1, 1}}, seeds);
}

}  // namespace

TEST_CASE("cluster: arrives on another CTA's barrier, with counts, bytes and drops") {
  // Rank 0's barrier awaits 6 arrivals of each of 3 other ranks. What each lane does to it:
  const std::string remote = R"(
    setp.ne.u32 %p2, %r2, 0;
    mapa.shared::cluster.u32 %r9, %r4, 0;
    setp.eq.and.u32 %p3, %r1, 5, %p2;
    @%p3 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r9];
    @%p3 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r9], 2;
    setp.eq.and.u32 %p3, %r1, 6, %p2;
    @%p3 mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%r9], 64;
    @%p3 mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%r9], 64;
    setp.eq.and.u32 %p3, %r1, 7, %p2;
    @%p3 mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [%r9], 16;
    @%p3 mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%r9], 16;
    @%p3 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r9], 1;
    setp.eq.and.u32 %p3, %r1, 8, %p2;
    @%p3 mbarrier.arrive_drop.release.cluster.shared::cluster.b64 _, [%r9];
    @%p2 bra over;
)";
  // The second phase awaits 18 - 3 arrivals: 15 more end it.
  std::string body = start(4, "18") + remote + kWait + R"(
    mbarrier.test_wait.parity.shared::cta.b64 %p2, [%r4], 1;
    selp.u32 %r10, 1, 0, %p2;
    setp.lt.u32 %p3, %r1, 15;
    @%p3 mbarrier.arrive.shared::cta.b64 _, [%r4];
    bar.warp.sync 0xFFFFFFFF;
    mbarrier.test_wait.parity.shared::cta.b64 %p2, [%r4], 1;
    selp.u32 %r11, 1, 0, %p2;
    @%p0 st.global.v2.u32 [%d0], {%r10, %r11};
  over:
)" + kEnd;
  Words got = run(body, 8, 4, 4);
  for (uint32_t cluster : {0u, 1u}) {
    CHECK(got[cluster * 16] == 0);
    CHECK(got[cluster * 16 + 1] == 1);
  }
}

TEST_CASE("cluster: an arrive through a generic address, and what was stored before it") {
  // Each rank stores into the next one's data with ordinary stores, then arrives there.
  std::string body = start(256, "32") + R"(
    add.u32 %r9, %r2, 1;
    rem.u32 %r9, %r9, %r3;
    cvt.u64.u32 %d1, %r4;
    cvta.shared.u64 %d1, %d1;
    mapa.u64 %d1, %d1, %r9;
    mapa.shared::cluster.u32 %r10, %r5, %r9;
    shl.b32 %r11, %r1, 3;
    add.u32 %r10, %r10, %r11;
    mad.lo.u32 %r12, %r0, 100, %r1;
    st.shared::cluster.v2.u32 [%r10], {%r12, %r1};
    mbarrier.arrive.release.cluster.b64 _, [%d1];
)" + kWait + kShow + kEnd;
  Words got = run(body, 6, 256, 3);
  for (uint32_t cta = 0; cta < 6; ++cta)
    for (uint32_t i = 0; i < 32; ++i) {
      uint32_t from = cta / 3 * 3 + (cta + 2) % 3;
      REQUIRE(got[cta * 256 + 2 * i] == from * 100 + i);
      REQUIRE(got[cta * 256 + 2 * i + 1] == i);
    }
}

TEST_CASE("cluster: st.async of every width tells the barrier beside its destination") {
  struct Form {
    std::string type, values;
    uint32_t bytes;
  };
  const Form forms[] = {{"b32", "%r12", 4},
                        {"u32", "%r12", 4},
                        {"s32", "%r12", 4},
                        {"f32", "%r12", 4},
                        {"b64", "%d2", 8},
                        {"u64", "%d2", 8},
                        {"v2.b32", "{%r12, %r13}", 8},
                        {"v2.u64", "{%d2, %d3}", 16},
                        {"v2.b64", "{%d2, %d3}", 16},
                        {"v4.b32", "{%r12, %r13, %r14, %r15}", 16},
                        {"v4.f32", "{%r12, %r13, %r14, %r15}", 16}};
  for (const Form& form : forms)
    for (bool generic : {false, true}) {
      // Lane l stores at l * bytes of the next rank's data: words 1000 * number + 4 l, ... + 3.
      std::string body = start(256, "1") + fmt::format(R"(
    @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], {0};
    add.u32 %r9, %r2, 1;
    rem.u32 %r9, %r9, %r3;
    mapa.shared::cluster.u32 %r10, %r5, %r9;
    mapa.shared::cluster.u32 %r11, %r4, %r9;
    mul.lo.u32 %r16, %r1, {1};
    add.u32 %r10, %r10, %r16;
    shl.b32 %r12, %r1, 2;
    mad.lo.u32 %r12, %r0, 1000, %r12;
    add.u32 %r13, %r12, 1;
    add.u32 %r14, %r12, 2;
    add.u32 %r15, %r12, 3;
    mov.b64 %d2, {{%r12, %r13}};
    mov.b64 %d3, {{%r14, %r15}};
)",
                                                       32 * form.bytes, form.bytes);
      if (generic)
        body += R"(
    cvt.u64.u32 %d4, %r10;
    cvta.shared::cluster.u64 %d4, %d4;
    cvt.u64.u32 %d5, %r11;
    cvta.shared::cluster.u64 %d5, %d5;
    st.async.weak.mbarrier::complete_tx::bytes.)" +
                form.type + " [%d4], " + form.values + ", [%d5];\n";
      else
        body += "    st.async.shared::cluster.mbarrier::complete_tx::bytes." + form.type + " [%r10], " + form.values +
                ", [%r11];\n";
      Words got = run(body + kWait + kShow + kEnd, 4, 256, 2, 3);
      uint32_t per_lane = form.bytes / 4;
      for (uint32_t cta = 0; cta < 4; ++cta)
        for (uint32_t i = 0; i < 256; ++i) {
          uint32_t lane = i / per_lane;
          uint32_t want = lane < 32 ? (cta ^ 1) * 1000 + 4 * lane + i % per_lane : 0;
          if (got[cta * 256 + i] != want)
            FAIL(form.type << ": word " << i << " of CTA " << cta << " is " << got[cta * 256 + i] << ", not " << want);
        }
    }
}

TEST_CASE("cluster: red.async, every operation") {
  struct Form {
    std::string operation;
    uint32_t bytes;
    uint64_t first, last;  ///< the destination before and after 64 operands 3, 4, 5, ... 66
  };
  const Form forms[] = {{"add.u32", 4, 0xFFFFFFF0, 0xFFFFFFF0u + 69 * 32},
                        {"add.s32", 4, 7, 7 + 69 * 32},
                        {"add.u64", 8, 0xFFFFFFF0, 0xFFFFFFF0ull + 69 * 32},
                        {"min.u32", 4, 0xFFFFFFFF, 3},
                        {"min.s32", 4, 0xFFFFFFFF, 0xFFFFFFFF},
                        {"max.u32", 4, 50, 66},
                        {"max.s32", 4, 0x80000000, 66},
                        {"and.b32", 4, 0xFFFFFFFF, 0},
                        {"or.b32", 4, 0x100, 0x17F},
                        // 3 ^ 4 ^ ... ^ 66: of 0 to 66 it is 66 ^ 65 ^ 64 = 67, and 0 ^ 1 ^ 2 = 3 is missing.
                        {"xor.b32", 4, 0, 64},
                        // Counts up while below every operand, 64 times from 1000 on: back to 0 once, then 3 at most.
                        {"dec.u32", 4, 0, 0}};
  for (const Form& form : forms) {
    // inc and dec depend on the order unless all operands are alike.
    bool counts = form.operation.starts_with("dec");
    std::string body = start(256, "1") + fmt::format(R"(
    mov.b64 %d2, {0};
    setp.eq.u32 %p2, %r2, 0;
    setp.eq.and.u32 %p3, %r1, 0, %p2;
    @%p3 st.shared.u64 [%r5], %d2;
    @%p3 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], {1};
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    mapa.shared::cluster.u32 %r10, %r5, 0;
    mapa.shared::cluster.u32 %r11, %r4, 0;
    shl.b32 %r12, %r2, 5;
    add.u32 %r12, %r12, %r1;
    add.u32 %r12, %r12, 3;
    {2}
    cvt.u64.u32 %d3, %r12;
    red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.{3} [%r10], {4}, [%r11];
    @!%p2 bra over;
)",
                                                     form.first, 64 * form.bytes, counts ? "mov.u32 %r12, 20;" : "",
                                                     form.operation, form.bytes == 8 ? "%d3" : "%r12");
    Words got =
        run(body + kWait + "    @%p3 ld.shared.u64 %d4, [%r5];\n    @%p3 st.global.u64 [%d0], %d4;\n  over:\n" + kEnd,
            2, 256, 2, 4);
    uint64_t value = got[0] | uint64_t{got[1]} << 32, want = form.last;
    if (counts) want = 20 - (64 - 1) % 21;  // 0 becomes 20 first, then down by one
    if (form.bytes == 4) value &= 0xFFFFFFFF, want &= 0xFFFFFFFF;
    INFO(form.operation);
    CHECK(value == want);
  }
}

TEST_CASE("cluster: red.async inc") {
  std::string body = start(4, "1") + R"(
    setp.eq.u32 %p2, %r2, 1;
    setp.eq.and.u32 %p3, %r1, 0, %p2;
    @%p3 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 256;
    mapa.shared::cluster.u32 %r10, %r5, 1;
    mapa.shared::cluster.u32 %r11, %r4, 1;
    mov.u32 %r12, 9;
    red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.inc.u32 [%r10], %r12, [%r11];
    @!%p2 bra over;
)" + kWait + R"(
    @%p3 ld.shared.u32 %r13, [%r5];
    @%p3 st.global.u32 [%d0], %r13;
  over:
)" + kEnd;
  CHECK(run(body, 2, 4, 2)[4] == 64 % 10);
}

TEST_CASE("cluster: bulk copies from shared memory to the shared memory of another CTA") {
  // A ring: each rank's data go to the next one, the first half; the barrier told is the destination's.
  std::string body = start(256, "1") + R"(
    shl.b32 %r9, %r1, 2;
    add.u32 %r9, %r9, %r5;
    mad.lo.u32 %r10, %r0, 100, %r1;
    st.shared.u32 [%r9+512], %r10;
    add.u32 %r10, %r10, 50;
    st.shared.u32 [%r9+640], %r10;
    fence.proxy.async.shared::cta;
    @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 256;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    add.u32 %r11, %r2, 1;
    rem.u32 %r11, %r11, %r3;
    mapa.shared::cluster.u32 %r12, %r5, %r11;
    mapa.shared::cluster.u32 %r13, %r4, %r11;
    add.u32 %r14, %r5, 512;
    @%p0 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r12], [%r14], 256, [%r13];
)" + kWait + kShow + kEnd;
  Words got = run(body, 6, 256, 3);
  for (uint32_t cta = 0; cta < 6; ++cta)
    for (uint32_t i = 0; i < 64; ++i) {
      uint32_t from = cta / 3 * 3 + (cta + 2) % 3;
      REQUIRE(got[cta * 256 + i] == from * 100 + i % 32 + i / 32 * 50);
    }
}

TEST_CASE("cluster: a multicast copy writes and tells every CTA of its mask, the issuer's or not") {
  // Rank 1 of 4 sends 512 bytes to the mask; every rank of it expects them.
  for (uint32_t mask : {0x1u, 0x2u, 0x5u, 0xDu, 0xFu}) {
    const std::string ptx = probe::kernel(start(256, "1") +
                                              fmt::format(R"(
    mov.u32 %r9, {0};
    shr.u32 %r10, %r9, %r2;
    and.b32 %r10, %r10, 1;
    setp.eq.u32 %p2, %r10, 1;
    setp.eq.and.u32 %p3, %r1, 0, %p2;
    @%p3 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 512;
    setp.eq.u32 %p4, %r2, 1;
    setp.eq.and.u32 %p3, %r1, 0, %p4;
    ld.param.u64 %d1, [p1];
    mov.u16 %h0, {0};
    @%p3 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r5+128], [%d1], 512, [%r4], %h0;
    @!%p2 bra show;
)",
                                                          mask) +
                                              kWait + "  show:\n" + kShow + kEnd,
                                          2);
    Words source(128);
    for (uint32_t i = 0; i < 128; ++i) source[i] = 7 * i + 1;
    Words got = probe::everywhere<uint32_t>(ptx, 8 * 256, {probe::bytes_of(source)},
                                            {.grid = {8, 1, 1}, .block = {32, 1, 1}, .cluster = {4, 1, 1}}, 4);
    for (uint32_t cta = 0; cta < 8; ++cta)
      for (uint32_t i = 0; i < 256; ++i) {
        bool written = (mask >> cta % 4 & 1) && i >= 32 && i < 160;
        REQUIRE(got[cta * 256 + i] == (written ? source[i - 32] : 0));
      }
  }
}

TEST_CASE("cluster: without multicast the barrier told is the destination's, whatever rank the operand names") {
  // Rank 0 copies into rank 1 and names its own barrier (an H200 credits the one at that offset in rank 1).
  const std::string ptx = probe::kernel(start(256, "1") + R"(
    setp.eq.u32 %p2, %r2, 1;
    setp.eq.and.u32 %p3, %r1, 0, %p2;
    @%p3 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 128;
    setp.eq.u32 %p4, %r2, 0;
    setp.eq.and.u32 %p3, %r1, 0, %p4;
    ld.param.u64 %d1, [p1];
    mapa.shared::cluster.u32 %r9, %r5, 1;
    @%p3 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r9], [%d1], 128, [%r4];
    @!%p2 bra show;
)" + kWait + "  show:\n" + kShow + kEnd,
                                        2);
  Words source(32, 0xABCD1234);
  Words got = probe::everywhere<uint32_t>(ptx, 2 * 256, {probe::bytes_of(source)},
                                          {.grid = {2, 1, 1}, .block = {32, 1, 1}, .cluster = {2, 1, 1}}, 4);
  for (uint32_t i = 0; i < 512; ++i) REQUIRE(got[i] == (i >= 256 && i < 288 ? 0xABCD1234 : 0));
}

TEST_CASE("cluster: st.async tells the barrier beside its data, whatever rank the operand names") {
  // Rank 0 stores into rank 1, and into itself, and names the other CTA's barrier each time.
  Words got = run(start(256, "1") + R"(
    @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 4;
    setp.eq.and.u32 %p2, %r2, 0, %p0;
    mapa.shared::cluster.u32 %r9, %r5, 1;
    mapa.shared::cluster.u32 %r10, %r4, 1;
    mov.u32 %r11, 1234;
    mov.u32 %r12, 5678;
    @%p2 st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r9], %r11, [%r4];
    @%p2 st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r5], %r12, [%r10];
)" + kWait + kShow + kEnd,
                  2, 256, 2);
  CHECK(got[0] == 5678);
  CHECK(got[256] == 1234);
}

TEST_CASE("cluster: a multicast to no CTA does nothing") {
  const std::string ptx = probe::kernel(start(256, "1") + R"(
    ld.param.u64 %d1, [p1];
    mov.u16 %h0, 0;
    @%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r5], [%d1], 512, [%r4], %h0;
    @%p0 mbarrier.arrive.shared::cta.b64 _, [%r4];
)" + kWait + kShow + kEnd,
                                        2);
  Words got = probe::everywhere<uint32_t>(ptx, 512, {probe::bytes_of(Words(128, 7))},
                                          {.grid = {2, 1, 1}, .block = {32, 1, 1}, .cluster = {2, 1, 1}}, 3);
  CHECK(got == Words(512, 0));
}
