// barrier{.cta} and bar. PTX ISA, "barrier{.cta}"; last warps of a few threads, exited lanes and faults as an H200 has
// them.

#include "tests/probes/everywhere.h"

namespace {

const std::string kStart = R"(
    .shared .align 4 .b32 slot[1024];
    ld.param.u64 %d0, [p0];
    mov.u32 %r0, slot;
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ntid.x;
    shl.b32 %r3, %r1, 2;
    add.u32 %r4, %r0, %r3;
    cvt.u64.u32 %d1, %r3;
    add.u64 %d1, %d0, %d1;
    shr.u32 %r15, %r1, 5;
)";

std::vector<uint32_t> run(const std::string& body, size_t count, uint32_t threads, int seeds = 8) {
  return probe::everywhere<uint32_t>(probe::kernel(kStart + body, 1), count, {}, {.block = {threads, 1, 1}}, seeds);
}

probe::Ending fault_of(const std::string& body, uint32_t threads, const char* apart = nullptr) {
  return probe::failure(probe::kernel(kStart + body, 1), {}, {.block = {threads, 1, 1}, .apart = apart});
}

}  // namespace

TEST_CASE("bar.sync: what threads wrote before, all threads read after, round after round") {
  for (const char* barrier : {"bar.sync 0;", "barrier.sync 3;", "barrier.cta.sync.aligned 15;"})
    for (uint32_t threads : {1u, 32u, 33u, 96u, 200u, 1024u}) {
      // Seven rounds: each thread takes its neighbour's value (37 places on) and adds one.
      const std::string body = std::string("    st.shared.u32 [%r4], %r1;\n    mov.u32 %r5, 0;\n    ") + barrier + R"(
    add.u32 %r6, %r1, 37;
    rem.u32 %r6, %r6, %r2;
    mad.lo.u32 %r6, %r6, 4, %r0;
  round:
    ld.shared.u32 %r7, [%r6];
    add.u32 %r7, %r7, 1;
    )" + barrier + R"(
    st.shared.u32 [%r4], %r7;
    )" + barrier + R"(
    add.u32 %r5, %r5, 1;
    setp.lt.u32 %p0, %r5, 7;
    @%p0 bra round;
    st.global.u32 [%d1], %r7;
)";
      std::vector<uint32_t> got = run(body, threads, threads, 3);
      for (uint32_t t = 0; t < threads; ++t) {
        INFO(barrier << " with " << threads << " threads, thread " << t);
        REQUIRE(got[t] == (t + 7 * 37) % threads + 7);
      }
    }
}

TEST_CASE("barrier.sync without .aligned: lanes may come by different ways") {
  // Even lanes arrive at one instruction and odd ones at another; both are the same barrier.
  const std::string body = R"(
    st.shared.u32 [%r4], %r1;
    and.b32 %r5, %r1, 1;
    setp.eq.u32 %p0, %r5, 0;
    @%p0 bra even;
    barrier.sync 1;
    mov.u32 %r6, 1000;
    bra meet;
  even:
    barrier.sync 1;
    mov.u32 %r6, 2000;
  meet:
    xor.b32 %r7, %r3, 4;
    add.u32 %r7, %r7, %r0;
    ld.shared.u32 %r8, [%r7];
    add.u32 %r8, %r8, %r6;
    st.global.u32 [%d1], %r8;
)";
  std::vector<uint32_t> got = run(body, 64, 64);
  for (uint32_t t = 0; t < 64; ++t) CHECK(got[t] == (t ^ 1) + (t % 2 ? 1000 : 2000));
}

TEST_CASE("named barriers with counts: pairs of warps meet without the others") {
  // Warps 2i and 2i+1 meet at barrier i + 1, given in a register; warp 2i runs i rounds more than the pair before it.
  const std::string body = R"(
    shr.u32 %r5, %r1, 6;
    add.u32 %r6, %r5, 1;
    mov.u32 %r7, 64;
    mov.u32 %r8, 0;
    xor.b32 %r9, %r3, 128;
    add.u32 %r9, %r9, %r0;
    st.shared.u32 [%r4], %r1;
  round:
    bar.sync %r6, %r7;
    ld.shared.u32 %r10, [%r9];
    bar.sync %r6, %r7;
    add.u32 %r10, %r10, 1;
    st.shared.u32 [%r4], %r10;
    add.u32 %r8, %r8, 1;
    setp.le.u32 %p0, %r8, %r5;
    @%p0 bra round;
    st.global.u32 [%d1], %r10;
)";
  std::vector<uint32_t> got = run(body, 256, 256);
  for (uint32_t t = 0; t < 256; ++t) {
    uint32_t rounds = t / 64 + 1;
    CHECK(got[t] == (rounds % 2 ? t ^ 32 : t) + rounds);
  }
}

TEST_CASE("bar.arrive and bar.sync: producer and consumer, as the ISA's example has them") {
  // Warp 0 produces 9 values a lane, warp 1 consumes them; barrier 1 says full, barrier 2 says empty.
  const std::string body = R"(
    and.b32 %r5, %r3, 127;
    add.u32 %r5, %r5, %r0;
    mov.u32 %r6, 0;
    mov.u32 %r7, 0;
    setp.eq.u32 %p0, %r15, 1;
    @%p0 bra consumer;
  produce:
    mad.lo.u32 %r8, %r6, 100, %r1;
    st.shared.u32 [%r5], %r8;
    bar.arrive 1, 64;
    bar.sync 2, 64;
    add.u32 %r6, %r6, 1;
    setp.lt.u32 %p1, %r6, 9;
    @%p1 bra produce;
    exit;
  consumer:
    bar.sync 1, 64;
    ld.shared.u32 %r8, [%r5];
    mad.lo.u32 %r7, %r7, 3, %r8;
    bar.arrive 2, 64;
    add.u32 %r6, %r6, 1;
    setp.lt.u32 %p1, %r6, 9;
    @%p1 bra consumer;
    st.global.u32 [%d1+-128], %r7;
)";
  std::vector<uint32_t> got = run(body, 32, 64);
  for (uint32_t lane = 0; lane < 32; ++lane) {
    uint32_t want = 0;
    for (uint32_t i = 0; i < 9; ++i) want = want * 3 + i * 100 + lane;
    CHECK(got[lane] == want);
  }
}

TEST_CASE("barrier.red counts, ands and ors the predicates of all threads") {
  for (const char* family : {"bar.red", "barrier.cta.red"})
    for (uint32_t threads : {32u, 100u, 256u})
      for (uint32_t below : {0u, 1u, 45u, 99u, 256u}) {
        const std::string f = family;
        const std::string body = "    setp.lt.u32 %p0, %r1, " + std::to_string(below) + ";\n    " + f +
                                 ".popc.u32 %r5, 0, %p0;\n    " + f + ".and.pred %p1, 0, %p0;\n    " + f +
                                 ".or.pred %p2, 0, %p0;\n    " + f + ".popc.u32 %r6, 0, !%p0;\n" + R"(
    selp.u32 %r7, 65536, 0, %p1;
    selp.u32 %r8, 131072, 0, %p2;
    add.u32 %r5, %r5, %r7;
    add.u32 %r5, %r5, %r8;
    mad.lo.u32 %r5, %r6, 262144, %r5;
    st.global.u32 [%d1], %r5;
)";
        std::vector<uint32_t> got = run(body, threads, threads, 1);
        uint32_t trues = std::min(below, threads);
        uint32_t want = trues + (trues == threads ? 65536 : 0) + (trues ? 131072 : 0) + (threads - trues) * 262144;
        INFO(f << " of " << threads << " threads, " << below << " true");
        for (uint32_t value : got) REQUIRE(value == want);
      }
}

TEST_CASE("barrier.red with a count: a last warp of a few threads counts as a warp, and its absent lanes do not vote") {
  // 48 threads: the second warp has 16. Thread counts are whole warps, predicates are those of threads that exist.
  const std::string body = R"(
    setp.lt.u32 %p0, %r1, 1000;
    bar.red.and.pred %p1, 1, 64, %p0;
    bar.red.popc.u32 %r5, 1, 64, %p0;
    selp.u32 %r6, 100, 0, %p1;
    add.u32 %r5, %r5, %r6;
    st.global.u32 [%d1], %r5;
)";
  std::vector<uint32_t> got = run(body, 48, 48);
  for (uint32_t value : got) CHECK(value == 148);
  // The same with the upper half of each warp gone.
  got = run(R"(
    and.b32 %r5, %r1, 16;
    setp.ne.u32 %p0, %r5, 0;
    @%p0 exit;
    setp.lt.u32 %p0, %r1, 1000;
    bar.red.and.pred %p1, 1, 64, %p0;
    bar.red.popc.u32 %r5, 1, 64, %p0;
    selp.u32 %r6, 100, 0, %p1;
    add.u32 %r5, %r5, %r6;
    st.global.u32 [%d1], %r5;
)",
            48, 64);
  for (uint32_t t = 0; t < 48; ++t) CHECK(got[t] == (t & 16 ? 0xEEEEEEEE : 132));
}

TEST_CASE("a last warp of a few threads counts as a whole one, with .aligned and without") {
  for (const char* barrier : {"bar.sync 1, 64;", "barrier.sync 1, 64;"}) {
    const std::string body = std::string("    st.shared.u32 [%r4], %r1;\n    ") + barrier + R"(
    sub.u32 %r5, 47, %r1;
    mad.lo.u32 %r5, %r5, 4, %r0;
    ld.shared.u32 %r6, [%r5];
    st.global.u32 [%d1], %r6;
)";
    std::vector<uint32_t> got = run(body, 48, 48);
    for (uint32_t t = 0; t < 48; ++t) CHECK(got[t] == 47 - t);
  }
}

TEST_CASE("exited threads are not waited for") {
  // Warp 1 leaves at once, odd lanes of the others too, after some have come to the barrier.
  const std::string body = R"(
    st.shared.u32 [%r4], %r1;
    setp.eq.u32 %p0, %r15, 1;
    @%p0 exit;
    and.b32 %r5, %r1, 1;
    setp.eq.u32 %p1, %r5, 1;
    setp.eq.u32 %p2, %r15, 2;
    @!%p2 bra now;
    nanosleep.u32 300;
  now:
    @%p1 exit;
    bar.sync 0;
    xor.b32 %r6, %r3, 256;
    add.u32 %r6, %r6, %r0;
    ld.shared.u32 %r7, [%r6];
    st.global.u32 [%d1], %r7;
)";
  std::vector<uint32_t> got = run(body, 96, 96);
  for (uint32_t t = 0; t < 96; ++t) CHECK(got[t] == (t % 2 || t / 32 == 1 ? 0xEEEEEEEE : t ^ 64));
}

TEST_CASE("the last threads to leave open the barrier for those who wait") {
  const std::string body = R"(
    setp.eq.u32 %p0, %r15, 0;
    @%p0 bra stay;
    nanosleep.u32 400;
    exit;
  stay:
    bar.sync 0;
    bar.red.popc.u32 %r5, 0, %p0;
    st.global.u32 [%d1], %r5;
)";
  for (uint32_t value : run(body, 32, 128)) CHECK(value == 32);
}

TEST_CASE("with a count, the lanes of a warp that have exited count too") {
  // Half of each warp is gone, some of it after the other half has come to the barrier; 64 still means two warps.
  for (const char* barrier : {"bar.sync 2, 64;", "barrier.sync 2, 64;"}) {
    const std::string body = std::string(R"(
    and.b32 %r5, %r1, 16;
    setp.eq.u32 %p0, %r5, 0;
    @%p0 bra stay;
    and.b32 %r5, %r1, 1;
    setp.eq.u32 %p0, %r5, 0;
    @%p0 exit;
    nanosleep.u32 300;
    exit;
  stay:
    st.shared.u32 [%r4], %r1;
    )") + barrier + R"(
    xor.b32 %r6, %r3, 128;
    add.u32 %r6, %r6, %r0;
    ld.shared.u32 %r7, [%r6];
    st.global.u32 [%d1], %r7;
)";
    std::vector<uint32_t> got = run(body, 64, 64);
    for (uint32_t t = 0; t < 64; ++t) CHECK(got[t] == (t & 16 ? 0xEEEEEEEE : t ^ 32));
  }
}

TEST_CASE("barrier.sync with a count: lanes of a warp may come one after the other") {
  const std::string body = R"(
    st.shared.u32 [%r4], %r1;
    and.b32 %r5, %r1, 7;
    setp.eq.u32 %p0, %r5, 3;
    @%p0 bra late;
    barrier.sync 4, 64;
    bra meet;
  late:
    nanosleep.u32 200;
    st.shared.u32 [%r4], 1000;
    barrier.sync 4, 64;
  meet:
    sub.u32 %r5, 63, %r1;
    mad.lo.u32 %r5, %r5, 4, %r0;
    ld.shared.u32 %r6, [%r5];
    st.global.u32 [%d1], %r6;
)";
  std::vector<uint32_t> got = run(body, 64, 64);
  for (uint32_t t = 0; t < 64; ++t) CHECK(got[t] == ((63 - t) % 8 == 3 ? 1000 : 63 - t));
}

TEST_CASE("barrier numbers and counts that do not exist are refused, naming them") {
  // An H200 faults with 715 on each but the first.
  CHECK_THAT(fault_of("mov.u32 %r5, 16; bar.sync %r5;", 32, "PTX ISA, barrier: 0 to 15; an H200 takes 16 for 0").report,
             test::contains("barrier 16"));
  probe::Ending odd = fault_of("mov.u32 %r5, 48; bar.sync 1, %r5;", 64);
  CHECK(odd.error == 715);
  CHECK_THAT(odd.report, test::contains("multiple of 32"));
  probe::Ending differ = fault_of("and.b32 %r5, %r1, 1; barrier.sync %r5, 64;", 64);
  CHECK(differ.error == 715);
  CHECK_THAT(differ.report, test::contains("differs between the lanes"));
  CHECK_THAT(fault_of("mov.u32 %r5, 0; bar.arrive 1, %r5;", 64).report, test::contains("0 threads"));
  probe::Ending counts = fault_of("add.u32 %r5, %r15, 1; shl.b32 %r5, %r5, 6; bar.sync 1, %r5;", 64);
  CHECK(counts.error == 715);
  CHECK_THAT(counts.report, test::contains("is in use for 64 threads and now asked for 128"));
}
