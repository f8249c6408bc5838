// Programs that take long, or ask in loops, and still end: none of them may be called a hang.

#include "tests/probes/everywhere.h"

namespace {

const std::string kStart = R"(
    .shared .align 8 .b64 bar[4];
    .shared .align 4 .b32 flag[2];
    ld.param.u64 %d0, [p0];
    mov.u32 %r0, bar;
    mov.u32 %r1, %tid.x;
    shr.u32 %r2, %r1, 5;
    setp.ne.u32 %p7, %r1, 0;
    @%p7 bra ready;
    mbarrier.init.shared::cta.b64 [bar], 1;
    mbarrier.init.shared::cta.b64 [bar+8], 1;
    st.shared.u32 [flag], 0;
  ready:
    bar.sync 0;
)";

uint32_t run(const std::string& body, uint32_t threads, int seeds = 2, uint32_t ctas = 1, const char* apart = nullptr) {
  return probe::everywhere<uint32_t>(probe::kernel(kStart + body, 1), 1, {},
                                     {.grid = {ctas, 1, 1}, .block = {threads, 1, 1}, .apart = apart}, seeds)[0];
}

}  // namespace

TEST_CASE("no hang: a bounded try_wait loop beside a warp that spins on a flag") {
  // 300 vain waits take 2.3 million cycles, in which nothing else happens; then the flag is set.
  CHECK(run(R"(
    setp.eq.u32 %p0, %r2, 1;
    @%p0 bra waits;
  spin:
    ld.volatile.shared.u32 %r3, [flag];
    setp.eq.u32 %p1, %r3, 0;
    @%p1 bra spin;
    st.global.u32 [%d0], %r3;
    exit;
  waits:
    mov.u32 %r4, 0;
  again:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r0], 0;
    add.u32 %r4, %r4, 1;
    setp.lt.u32 %p2, %r4, 300;
    @%p2 bra again;
    st.volatile.shared.u32 [flag], %r4;
)",
            64, 1) == 300);
}

TEST_CASE("no hang: one millisecond of sleep beside a warp that spins on a flag") {
  CHECK(run(R"(
    setp.eq.u32 %p0, %r2, 1;
    @%p0 bra sleeps;
  spin:
    ld.volatile.shared.u32 %r3, [flag];
    setp.eq.u32 %p1, %r3, 0;
    @%p1 bra spin;
    st.global.u32 [%d0], %r3;
    exit;
  sleeps:
    nanosleep.u32 1000000;
    nanosleep.u32 1000000;
    st.volatile.shared.u32 [flag], 9;
)",
            64, 1) == 9);
}

TEST_CASE("no hang: a wait that gives up by the clock") {
  CHECK(run(R"(
    mov.u64 %d1, %clock64;
  again:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r0], 0;
    mov.u64 %d2, %clock64;
    sub.u64 %d2, %d2, %d1;
    setp.lt.u64 %p2, %d2, 100000;
    @%p2 bra again;
  ask:
    mbarrier.test_wait.parity.shared::cta.b64 %p1, [%r0], 0;
    mov.u32 %r4, %clock;
    cvt.u32.u64 %r5, %d1;
    sub.u32 %r4, %r4, %r5;
    setp.lt.u32 %p2, %r4, 2000000;
    @%p2 bra ask;
    st.global.u32 [%d0], 4;
)",
            32) == 4);
}

TEST_CASE("no hang: a wait that gives up by globaltimer") {
  CHECK(run(R"(
    mov.u64 %d1, %globaltimer;
  again:
    nanosleep.u32 1000;
    mov.u64 %d2, %globaltimer;
    sub.u64 %d2, %d2, %d1;
    setp.lt.u64 %p2, %d2, 100000;
    @%p2 bra again;
    st.global.u32 [%d0], 5;
)",
            32) == 5);
}

TEST_CASE("no hang: a wait that gives up after a quarter of an hour, whichever clock and pause it has") {
  for (const char* pause :
       {"", "nanosleep.u32 1000000;", "nanosleep.u32 20;", "mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r0], 0;"})
    for (const char* clock : {"%globaltimer", "%clock64"})
      CHECK(run(std::string("mov.u64 %d1, ") + clock + ";\nagain:\n" + pause + "\nmov.u64 %d2, " + clock + R"(;
    sub.u64 %d3, %d2, %d1;
    setp.lt.u64 %p2, %d3, 900000000000;
    @%p2 bra again;
    shr.u64 %d4, %d3, 32;
    cvt.u32.u64 %r3, %d4;
    st.global.u32 [%d0], %r3;
)",
                32, 1, 1, "a GPU takes as long as they say") /
                210 <=
            1);  // 9e11 is 209 of these units
}

TEST_CASE("no hang: a hundred waits by the clock, one after the other, and each for no longer than twice its time") {
  const uint32_t milliseconds = run(R"(
    mov.u64 %d1, %globaltimer;
    mov.u32 %r3, 0;
  next:
    mov.u64 %d2, %globaltimer;
  again:
    nanosleep.u32 1000;
    mov.u64 %d3, %globaltimer;
    sub.u64 %d4, %d3, %d2;
    setp.lt.u64 %p2, %d4, 1000000;
    @%p2 bra again;
    add.u32 %r3, %r3, 1;
    setp.lt.u32 %p2, %r3, 100;
    @%p2 bra next;
    sub.u64 %d5, %d3, %d1;
    div.u64 %d6, %d5, 1000000;
    cvt.u32.u64 %r4, %d6;
    st.global.u32 [%d0], %r4;
)",
                                    32, 1, 1, "how long it takes is the machine's");
  CHECK(milliseconds >= 100);
  CHECK(milliseconds <= 300);
}

TEST_CASE("no hang: what a loop computes from a clock that it has read once is progress") {
  CHECK(run(R"(
    mov.u32 %r4, %clock;
    mov.u32 %r3, 1;
  turn:
    mad.lo.u32 %r4, %r4, 1664525, 1013904223;
    shr.u32 %r5, %r4, 12;
    mov.u32 %r6, %clock;
    setp.ne.u32 %p2, %r5, 77;
    @%p2 bra turn;
    st.global.u32 [%d0], %r5;
)",
            32, 1) == 77);
}

TEST_CASE("no hang: nanosleep in a loop with a bound, its counter in memory") {
  CHECK(run(R"(
  again:
    nanosleep.u32 100;
    ld.volatile.shared.u32 %r3, [flag];
    add.u32 %r3, %r3, 1;
    st.volatile.shared.u32 [flag], %r3;
    setp.lt.u32 %p2, %r3, 500;
    @%p2 bra again;
    st.global.u32 [%d0], %r3;
)",
            1) == 500);
}

TEST_CASE("no hang: a long computation that touches nothing but registers") {
  CHECK(run(R"(
    mov.u32 %r3, 0;
    mov.u32 %r4, 1;
  turn:
    mad.lo.u32 %r4, %r4, 1664525, 1013904223;
    add.u32 %r3, %r3, 1;
    setp.lt.u32 %p2, %r3, 1500000;
    @%p2 bra turn;
    st.global.u32 [%d0], %r3;
)",
            32, 0) == 1500000);
}

TEST_CASE("no hang: another CTA polls, by turns asking and sleeping, for a flag that comes late") {
  // CTA 1 computes for a while before it sets the flag; CTA 0 has nothing to do but ask.
  for (const char* pause :
       {"nanosleep.u32 100;", "nanosleep.u32 20;", "", "mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r0], 0;"})
    CHECK(run(std::string(R"(
    mov.u32 %r3, %ctaid.x;
    setp.eq.u32 %p0, %r3, 1;
    @%p0 bra late;
  poll:
    ld.acquire.gpu.global.u32 %r4, [%d0];
    setp.eq.u32 %p1, %r4, 12345;
    @%p1 bra done;
    )") + pause + R"(
    bra poll;
  late:
    mov.u32 %r5, 0;
  turn:
    add.u32 %r5, %r5, 1;
    setp.lt.u32 %p2, %r5, 50000;
    @%p2 bra turn;
    st.release.gpu.global.u32 [%d0], 12345;
  done:
)",
              32, 1, 2) == 12345);
}

TEST_CASE("no hang: lanes wait for signals that their own warp gives only behind where they would meet") {
  // Lane 0 leaves the loop first and then completes the phase for which the other lanes still loop.
  CHECK(run(R"(
  wait:
    setp.eq.u32 %p0, %r1, 0;
    @%p0 bra out;
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r0], 0;
    @!%p1 bra wait;
  out:
    setp.eq.u32 %p0, %r1, 0;
    @%p0 mbarrier.arrive.shared::cta.b64 _, [%r0];
    bar.sync 0;
    activemask.b32 %r3;
    st.global.u32 [%d0], %r3;
)",
            32) == 0xFFFFFFFF);
}

TEST_CASE("no hang: a phase counter that is not reduced to a parity works, as on an H200") {
  CHECK(run(R"(
    mov.u32 %r3, 0;
  phase:
    setp.eq.u32 %p0, %r1, 0;
    @%p0 mbarrier.arrive.shared::cta.b64 _, [%r0];
  wait:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r0], %r3;
    @!%p1 bra wait;
    bar.sync 0;
    add.u32 %r3, %r3, 1;
    setp.lt.u32 %p2, %r3, 7;
    @%p2 bra phase;
    st.global.u32 [%d0], %r3;
)",
            64) == 7);
}

TEST_CASE("no hang: another CTA polls past L1 what a CTA writes late") {
  for (const std::string cache : {"cg", "cv"})
    CHECK(run(R"(
    mov.u32 %r3, %ctaid.x;
    setp.eq.u32 %p0, %r3, 1;
    @%p0 bra poll;
    mov.u32 %r4, 0;
  count:
    add.u32 %r4, %r4, 1;
    setp.lt.u32 %p1, %r4, 2000000;
    @%p1 bra count;
    st.global.u32 [%d0], 17;
    fence.acq_rel.gpu;
    exit;
  poll:
    ld.global.)" + cache +
                  R"(.u32 %r5, [%d0];
    setp.ne.u32 %p1, %r5, 17;
    @%p1 bra poll;
)",
              32, 1, 2) == 17);
}

TEST_CASE("no hang: lanes whose guard is false do not wait for an .aligned instruction") {
  // Half of the warp spins on a flag that the other half sets behind a guarded barrier that nobody executes.
  CHECK(run(R"(
    setp.lt.u32 %p0, %r1, 16;
    setp.gt.u32 %p2, %r1, 64;
    @%p0 bra sets;
  spin:
    ld.volatile.shared.u32 %r3, [flag];
    setp.eq.u32 %p1, %r3, 0;
    @%p1 bra spin;
    st.global.u32 [%d0], %r3;
    exit;
  sets:
    @%p2 barrier.cta.sync.aligned 1, 32;
    st.volatile.shared.u32 [flag], 3;
)",
            32) == 3);
}
