// mbarrier waits: who waits, for how long, and who goes on meanwhile. PTX ISA, "mbarrier.test_wait, mbarrier.try_wait";
// the time limit of try_wait as an H200 has it.

#include "tests/probes/everywhere.h"

namespace {

const std::string kStart = R"(
    .shared .align 8 .b64 bar[8];
    .shared .align 4 .b32 turn;
    ld.param.u64 %d0, [p0];
    mov.u32 %r0, bar;
    mov.u32 %r1, %tid.x;
)";

/// Waits for a parity of the barrier at `address`; `id` makes the label unique.
std::string wait(const std::string& address, const std::string& parity, int id) {
  std::string label = "wait" + std::to_string(id);
  return "  " + label + ":\n    mbarrier.try_wait.parity.shared::cta.b64 %p7, [" + address + "], " + parity +
         ";\n    @!%p7 bra " + label + ";\n";
}

/// Thread 0 initialises `count` barriers for `arrivals` each.
std::string initialise(int count, int arrivals) {
  std::string text = "    setp.ne.u32 %p6, %r1, 0;\n    @%p6 bra ready;\n";
  for (int i = 0; i < count; ++i)
    text +=
        "    mbarrier.init.shared::cta.b64 [%r0+" + std::to_string(8 * i) + "], " + std::to_string(arrivals) + ";\n";
  return text + "    st.shared.u32 [turn], 0;\n  ready:\n    bar.sync 0;\n";
}

}  // namespace

TEST_CASE("test_wait never blocks") {
  // One thread asks in vain a hundred times, and then completes the phase itself.
  const std::string body = kStart + R"(
    mbarrier.init.shared::cta.b64 [%r0], 1;
    mov.u32 %r2, 0;
    mov.u32 %r3, 0;
  ask:
    mbarrier.test_wait.parity.shared::cta.b64 %p0, [%r0], 0;
    selp.u32 %r4, 1, 0, %p0;
    add.u32 %r3, %r3, %r4;
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p1, %r2, 100;
    @%p1 bra ask;
    mbarrier.arrive.shared::cta.b64 _, [%r0];
    mbarrier.test_wait.parity.acquire.cta.shared::cta.b64 %p0, [%r0], 0;
    @%p0 add.u32 %r3, %r3, 1000;
    st.global.u32 [%d0], %r3;
)";
  CHECK(probe::everywhere<uint32_t>(probe::kernel(body, 1), 1, {}, {.block = {1, 1, 1}})[0] == 1000);
}

TEST_CASE("try_wait gives up after its limit, so a loop with a bound runs to its end") {
  const std::string body = kStart + R"(
    mbarrier.init.shared::cta.b64 [%r0], 1;
    mov.u32 %r2, 0;
    mov.u32 %r3, 0;
  again:
    mbarrier.try_wait.parity.shared::cta.b64 %p0, [%r0], 0, 0x989680;
    @%p0 add.u32 %r3, %r3, 1;
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p1, %r2, 50;
    @%p1 bra again;
    st.global.v2.u32 [%d0], {%r2, %r3};
)";
  CHECK(probe::everywhere<uint32_t>(probe::kernel(body, 1), 2, {}, {.block = {1, 1, 1}}) ==
        std::vector<uint32_t>{50, 0});
}

TEST_CASE("try_wait waits about 7,800 cycles, whatever the hint (H200)") {
  for (const char* hint : {"", ", 0", ", 10000000"}) {
    const std::string body = kStart + R"(
    mbarrier.init.shared::cta.b64 [%r0], 1;
    mov.u64 %d1, %clock64;
    mbarrier.try_wait.parity.shared::cta.b64 %p0, [%r0], 0)" +
                             hint + R"(;
    @%p0 exit;  // no second look at the clock before the answer
    mov.u64 %d2, %clock64;
    sub.u64 %d2, %d2, %d1;
    setp.gt.u64 %p1, %d2, 7000;
    setp.lt.and.u64 %p1, %d2, 9000, %p1;
    selp.u64 %d3, 1, 2, %p1;
    st.global.u64 [%d0], %d3;
)";
    CHECK(probe::run<uint64_t>(body, 1, {}, {.block = {1, 1, 1}})[0] == 1);
  }
}

TEST_CASE("try_wait ends as soon as the phase does") {
  // Warp 1 lets some time pass before it arrives, far less than the limit.
  const std::string body = kStart + initialise(1, 32) + R"(
    setp.lt.u32 %p0, %r1, 32;
    @%p0 bra consumer;
    nanosleep.u32 500;
    mbarrier.arrive.shared::cta.b64 _, [%r0];
    bra done;
  consumer:
    mov.u64 %d1, %clock64;
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r0], 0;
    mov.u64 %d2, %clock64;
    sub.u64 %d2, %d2, %d1;
    setp.lt.and.u64 %p2, %d2, 4000, %p1;
    selp.u64 %d3, 1, 2, %p2;
    mad.wide.u32 %d0, %r1, 8, %d0;
    st.global.u64 [%d0], %d3;
  done:
)";
  std::vector<uint64_t> got = probe::run<uint64_t>(body, 32, {}, {.block = {64, 1, 1}});
  for (size_t lane = 0; lane < 32; ++lane) CHECK(got[lane] == 1);
}

TEST_CASE("lanes of one warp wait for different barriers, and each set goes on when its own completes") {
  // Lanes of warp 0 wait for barrier lane % 4. Warp 1 completes barrier 3, waits until those lanes have answered on
  // barrier 4 + 3, completes barrier 2, and so on: nobody would ever finish if one set of lanes held up another.
  std::string body = kStart + initialise(8, 1) + R"(
    setp.ge.u32 %p0, %r1, 32;
    @%p0 bra producer;
    and.b32 %r2, %r1, 3;
    mad.lo.u32 %r3, %r2, 8, %r0;
)" + wait("%r3", "0", 0) +
                     R"(
    atom.shared.add.u32 %r4, [turn], 1;
    mad.wide.u32 %d1, %r1, 4, %d0;
    st.global.u32 [%d1], %r4;
    setp.ge.u32 %p1, %r1, 4;
    @%p1 exit;
    mbarrier.arrive.shared::cta.b64 _, [%r3+32];
    exit;
  producer:
    setp.ne.u32 %p1, %r1, 32;
    @%p1 exit;
)";
  for (int i = 3; i >= 0; --i)
    body += "    mbarrier.arrive.shared::cta.b64 _, [%r0+" + std::to_string(8 * i) + "];\n" +
            wait("%r0+" + std::to_string(32 + 8 * i), "0", 10 + i);
  // The four lanes that answer do so after their own turn, not after all lanes of the set have had theirs.
  std::vector<uint32_t> got = probe::everywhere<uint32_t>(probe::kernel(body, 1), 32, {}, {.block = {64, 1, 1}}, 0);
  for (uint32_t set = 0; set < 3; ++set) CHECK(got[set] > got[set + 1]);
  std::vector<uint32_t> sorted = got;
  std::sort(sorted.begin(), sorted.end());
  for (uint32_t i = 0; i < 32; ++i) CHECK(sorted[i] == i);
}

TEST_CASE("a lane waits for another lane of its own warp through an mbarrier") {
  // The waiting side comes first in the text, and both ways meet behind.
  std::string body = kStart + initialise(2, 1) + R"(
    setp.eq.u32 %p0, %r1, 5;
    setp.eq.u32 %p1, %r1, 9;
    @%p1 bra signals;
    @!%p0 bra meet;
)" + wait("%r0", "0", 0) +
                     R"(
    ld.shared.u32 %r5, [turn];
    st.global.u32 [%d0], %r5;
    mbarrier.arrive.shared::cta.b64 _, [%r0+8];
    bra meet;
  signals:
    st.shared.u32 [turn], 77;
    mbarrier.arrive.shared::cta.b64 _, [%r0];
)" + wait("%r0+8", "0", 1) +
                     R"(
    st.global.u32 [%d0+4], 78;
  meet:
    bar.sync 0;
    activemask.b32 %r6;
    setp.eq.u32 %p0, %r1, 0;
    @%p0 st.global.u32 [%d0+8], %r6;
)";
  CHECK(probe::everywhere<uint32_t>(probe::kernel(body, 1), 3) == std::vector<uint32_t>{77, 78, 0xFFFFFFFF});
}

TEST_CASE("a ring of barriers carries values from producer to consumer through many phases") {
  // Four stages, 41 values; full barriers at 0..3, empty barriers at 4..7. The producer starts with parity 1 on the
  // empty barriers, which a fresh barrier grants.
  std::string body = kStart + R"(
    .shared .align 4 .b32 slot[4];
    mov.u32 %r10, slot;
)" + initialise(8, 1) +
                     R"(
    mov.u32 %r2, 0;
    setp.eq.u32 %p0, %r1, 32;
    @%p0 bra produce;
    setp.ne.u32 %p0, %r1, 0;
    @%p0 exit;
  consume:
    and.b32 %r3, %r2, 3;
    shr.u32 %r4, %r2, 2;
    and.b32 %r4, %r4, 1;
    mad.lo.u32 %r5, %r3, 8, %r0;
    mad.lo.u32 %r6, %r3, 4, %r10;
)" + wait("%r5", "%r4", 0) +
                     R"(
    ld.shared.u32 %r7, [%r6];
    mad.wide.u32 %d1, %r2, 4, %d0;
    st.global.u32 [%d1], %r7;
    mbarrier.arrive.shared::cta.b64 _, [%r5+32];
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p1, %r2, 41;
    @%p1 bra consume;
    exit;
  produce:
    and.b32 %r3, %r2, 3;
    shr.u32 %r4, %r2, 2;
    and.b32 %r4, %r4, 1;
    xor.b32 %r4, %r4, 1;
    mad.lo.u32 %r5, %r3, 8, %r0;
    mad.lo.u32 %r6, %r3, 4, %r10;
)" + wait("%r5+32", "%r4", 1) +
                     R"(
    mad.lo.u32 %r7, %r2, 3, 100;
    st.shared.u32 [%r6], %r7;
    mbarrier.arrive.shared::cta.b64 _, [%r5];
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p1, %r2, 41;
    @%p1 bra produce;
)";
  std::vector<uint32_t> got = probe::everywhere<uint32_t>(probe::kernel(body, 1), 41, {}, {.block = {64, 1, 1}});
  for (uint32_t i = 0; i < 41; ++i) CHECK(got[i] == 3 * i + 100);
}

TEST_CASE("a waiter that lags two phases sees the parity of a phase that still runs") {
  // PTX ISA: a phase must be observed before the next but one completes; parity cannot tell them apart.
  const std::string body = kStart + R"(
    mbarrier.init.shared::cta.b64 [%r0], 1;
    mbarrier.arrive.shared::cta.b64 _, [%r0];
    mbarrier.arrive.shared::cta.b64 _, [%r0];
    mbarrier.test_wait.parity.relaxed.cluster.shared::cta.b64 %p0, [%r0], 0;
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [%r0], 1;
    selp.u32 %r2, 1, 0, %p0;
    selp.u32 %r3, 1, 0, %p1;
    st.global.v2.u32 [%d0], {%r2, %r3};
)";
  CHECK(probe::everywhere<uint32_t>(probe::kernel(body, 1), 2, {}, {.block = {1, 1, 1}}) ==
        std::vector<uint32_t>{0, 1});
}
