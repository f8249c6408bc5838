// Programs that never end: the report says who waits for what, what is missing, and who has signalled so far.

#include "tests/probes/everywhere.h"

namespace {

const std::string kStart = R"(
    .shared .align 8 .b64 tile_full[4];
    .shared .align 8 .b64 accumulator_full;
    .shared .align 4 .b32 flag;
    ld.param.u64 %d0, [p0];
    mov.u32 %r0, tile_full;
    mov.u32 %r1, %tid.x;
    shr.u32 %r2, %r1, 5;
    setp.ne.u32 %p7, %r1, 0;
    @%p7 bra ready;
    mbarrier.init.shared::cta.b64 [tile_full], 3;
    mbarrier.init.shared::cta.b64 [tile_full+8], 1;
    mbarrier.init.shared::cta.b64 [tile_full+16], 1;
    mbarrier.init.shared::cta.b64 [accumulator_full], 1;
    st.shared.u32 [flag], 0;
  ready:
    bar.sync 0;
)";

/// Line of the module's text (1-based) on which `marker` first stands.
int line_of(const std::string& ptx, const std::string& marker) {
  size_t at = ptx.find(marker);
  REQUIRE(at != std::string::npos);
  return 1 + static_cast<int>(std::count(ptx.begin(), ptx.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
}

/// The report of a hang, the same kind under each schedule; that of `earliest` is returned.
std::string hang_of(const std::string& ptx, uint32_t threads, probe::Shape shape = {}) {
  shape.block = {threads, 1, 1};
  std::string first;
  for (const auto& [name, with] : probe::settings(2)) {
    probe::Ending ending = probe::launch_with(with, ptx, 4096, {}, shape);
    INFO(name << "\n" << ending.report << ptx);
    REQUIRE(ending.error == 702);
    REQUIRE(ending.report.find("hangs") != std::string::npos);
    if (first.empty()) first = ending.report;
  }
  return first;
}

std::string module(const std::string& body) {
  return probe::kernel(kStart + body, 1);
}

}  // namespace

TEST_CASE("hang report: barrier by name, phase, arrivals and bytes, source line, who signalled") {
  const std::string ptx = module(R"(
    setp.eq.u32 %p0, %r2, 1;
    @%p0 bra producer;
  wait:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r0], 0;
    @!%p1 bra wait;
    exit;
  producer:
    setp.ne.u32 %p1, %r1, 32;
    @%p1 exit;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r0], 4096;
    mbarrier.arrive.shared::cta.b64 _, [%r0];
    mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%r0], 1024;
)");
  std::string report = hang_of(ptx, 64);
  CHECK_THAT(report, test::contains("waits for tile_full[0]"));
  CHECK_THAT(report, test::contains("the phase of parity 0 to end; phase 0 is running, of parity 0"));
  CHECK_THAT(report, test::contains("1 of 3 arrivals missing, 3072 bytes missing"));
  CHECK_THAT(report, test::contains("PTX line " + std::to_string(line_of(ptx, "mbarrier.try_wait"))));
  CHECK_THAT(report, test::contains("arrive.expect_tx, warp 1, PTX line " +
                                    std::to_string(line_of(ptx, "mbarrier.arrive.expect_tx"))));
  CHECK_THAT(report, test::contains("complete_tx, warp 1"));
  CHECK_THAT(report, test::contains("warp 0, all lanes"));
}

TEST_CASE("hang report: a barrier that nobody has signalled, by its index in the array") {
  std::string report = hang_of(module(R"(
  wait:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r0+16], 0;
    @!%p1 bra wait;
)"),
                               32);
  CHECK_THAT(report, test::contains("waits for tile_full[2]"));
  CHECK_THAT(report, test::contains("1 of 1 arrival missing"));
  CHECK_THAT(report, test::contains("nobody has signalled it"));
}

TEST_CASE("hang report: waiting for the wrong parity") {
  std::string report = hang_of(module(R"(
    setp.eq.u32 %p0, %r1, 0;
    @%p0 mbarrier.arrive.shared::cta.b64 _, [accumulator_full];
    bar.sync 0;
  wait:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [accumulator_full], 1;
    @!%p1 bra wait;
)"),
                               64);
  CHECK_THAT(report, test::contains("waits for accumulator_full: the phase of parity 1 to end"));
  CHECK_THAT(report, test::contains("phase 1 is running, of parity 1"));
}

TEST_CASE("hang: a test_wait loop that asks without ever waiting") {
  std::string report = hang_of(module(R"(
  ask:
    mbarrier.test_wait.parity.shared::cta.b64 %p1, [%r0], 0;
    @!%p1 bra ask;
)"),
                               64);
  CHECK_THAT(report, test::contains("mbarrier.test_wait"));
}

TEST_CASE("hang: a flag in shared memory that nobody sets, beside warps that wait properly") {
  const std::string ptx = module(R"(
    setp.ne.u32 %p0, %r2, 0;
    @%p0 bra waits;
  spin:
    ld.volatile.shared.u32 %r3, [flag];
    setp.eq.u32 %p1, %r3, 0;
    @%p1 bra spin;
    exit;
  waits:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r0+8], 0;
    @!%p1 bra waits;
)");
  std::string report = hang_of(ptx, 128);
  CHECK_THAT(report, test::contains("tile_full[1]"));
  CHECK_THAT(report, test::contains("PTX line " + std::to_string(line_of(ptx, "mbarrier.try_wait"))));
}

TEST_CASE("hang: a flag polled with nanosleep") {
  CHECK_THAT(hang_of(module(R"(
  spin:
    ld.volatile.shared.u32 %r3, [flag];
    setp.ne.u32 %p1, %r3, 0;
    @%p1 bra done;
    nanosleep.u32 200;
    bra spin;
  done:
)"),
                     64),
             test::contains("nanosleep"));
}

TEST_CASE("hang: bar.sync that one warp never reaches") {
  const std::string ptx = module(R"(
    setp.eq.u32 %p0, %r2, 2;
    @%p0 bra elsewhere;
    bar.sync 5, 128;
    exit;
  elsewhere:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r0], 0;
    @!%p1 bra elsewhere;
)");
  std::string report = hang_of(ptx, 128);
  CHECK_THAT(report, test::contains("waits at barrier 5: 96 of 128 threads have arrived; warps not waiting there: 2"));
  CHECK_THAT(report, test::contains("PTX line " + std::to_string(line_of(ptx, "bar.sync 5"))));
}

TEST_CASE("hang: a warp that has exited does not count for a barrier with a number") {
  std::string report = hang_of(module(R"(
    setp.eq.u32 %p0, %r2, 1;
    @%p0 exit;
    barrier.sync 3, 64;
)"),
                               64);
  CHECK_THAT(report, test::contains("waits at barrier 3: 32 of 64 threads have arrived; warps not waiting there: none; "
                                    "warps that have ended: 1"));
}

TEST_CASE("hang: a warp that arrives twice ends a phase that others should have been in") {
  std::string report = hang_of(module(R"(
    setp.eq.u32 %p0, %r2, 1;
    @%p0 bra second;
    bar.arrive 3, 64;
    bar.arrive 3, 64;
    exit;
  second:
    nanosleep.u32 1000;
    bar.sync 3, 64;
)"),
                               64);
  CHECK_THAT(report, test::contains("warps that have ended: 0; it was complete 1 time before"));
}

TEST_CASE("hang: an .aligned barrier that only some lanes of a warp reach") {
  const std::string ptx = module(R"(
    setp.lt.u32 %p0, %r1, 8;
    @%p0 bra few;
  wait:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r0], 0;
    @!%p1 bra wait;
    exit;
  few:
    bar.sync 1;
)");
  std::string report = hang_of(ptx, 32);
  CHECK_THAT(report, test::contains(".aligned instruction for lanes 0xffffff00"));
  CHECK_THAT(report, test::contains("lanes 0x000000ff"));
  CHECK_THAT(report, test::contains("PTX line " + std::to_string(line_of(ptx, "bar.sync 1"))));
}

TEST_CASE("hang: a tcgen05.alloc that can never succeed") {
  std::string report = hang_of(module(R"(
    .shared .align 4 .b32 address;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [address], 512;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [address], 32;
)"),
                               32);
  CHECK_THAT(report, test::contains("waits in tcgen05.alloc for 32 columns"));
  CHECK_THAT(report, test::contains("512 of 512 are in use on this SM, 512 by this CTA"));
}

TEST_CASE("hang: CTAs that wait for each other's flags, each before it sets its own") {
  probe::Ending ending = probe::failure(module(R"(
    mov.u32 %r4, %ctaid.x;
    mul.wide.u32 %d1, %r4, 4;
    add.u64 %d1, %d1, %d0;
    xor.b32 %r5, %r4, 1;
    mul.wide.u32 %d2, %r5, 4;
    add.u64 %d2, %d2, %d0;
  spin:
    ld.acquire.gpu.global.u32 %r6, [%d2];
    setp.ne.u32 %p0, %r6, 7;
    @%p0 bra spin;
    st.release.gpu.global.u32 [%d1], 7;
)"),
                                        {}, {.grid = {2, 1, 1}});
  CHECK(ending.error == 702);
  CHECK_THAT(ending.report, test::contains("ld.acquire"));
}

TEST_CASE("hang: a lock that is never given back") {
  for (const std::string space : {"shared", "global"}) {
    std::string report = hang_of(module((space == "shared" ? "    mov.u64 %d3, flag;\n" : "    mov.u64 %d3, %d0;\n") +
                                        std::string("    st.") + space + ".u32 [%d3], 1;\n  spin:\n    atom." + space +
                                        R"(.cas.b32 %r3, [%d3], 0, 1;
    setp.ne.u32 %p1, %r3, 0;
    @%p1 bra spin;
)"),
                                 32);
    CHECK_THAT(report, test::contains("asks in a loop for what nobody changes"));
    CHECK_THAT(report, test::contains("asks again and again: atom." + space + ".cas.b32 at PTX line"));
  }
}

TEST_CASE("hang report: a wait that sleeps the longer the longer it has waited") {
  // As libcu++'s barriers, semaphores and pipelines wait: sixteen tries, then by the clock.
  for (const char* ask : {"mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r0], 0;",
                          "ld.acquire.cta.shared.u32 %r4, [flag];\nsetp.ne.u32 %p1, %r4, 0;"})
    CHECK(hang_of(module(std::string(R"(
    mov.u32 %r3, 0;
    mov.u64 %d1, %globaltimer;
  ask:
    )") + ask + R"(
    @%p1 bra done;
    setp.gt.s32 %p2, %r3, 15;
    @%p2 bra slow;
    add.s32 %r3, %r3, 1;
    bra.uni ask;
  slow:
    mov.u64 %d2, %globaltimer;
    sub.s64 %d3, %d2, %d1;
    setp.lt.s64 %p2, %d3, 4000000;
    @%p2 bra shorter;
    nanosleep.u32 1000000;
    bra.uni ask;
  shorter:
    setp.lt.s64 %p2, %d3, 40000;
    @%p2 bra ask;
    shr.u64 %d4, %d3, 2;
    cvt.u32.u64 %r5, %d4;
    nanosleep.u32 %r5;
    bra.uni ask;
  done:
)"),
                  64)
              .find("hours have passed since, in vain") != std::string::npos);
}
