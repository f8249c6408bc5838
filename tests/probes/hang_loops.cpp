// Loops that ask and change nothing, launches that never end though something changes, and waits that the kernel's own
// bound ends.

#include "tests/probes/hang_program.h"

using namespace probe;

TEST_CASE("hang loop: what it reads, what it finds there, and that nobody would write it") {
  const std::string ptx = hang_program(role(0, R"(
    st.shared.u32 [flag], 7;
  spin:
    ld.volatile.shared.u32 %r3, [flag];
    setp.ne.u32 %p1, %r3, 8;
    @%p1 bra spin;
)"));
  says(hang_report(ptx, 32), {"runs a loop that changes nothing, and asks again and again: ld.volatile.shared.u32 at " +
                                  line_of(ptx, "ld.volatile") + ", which finds 0x7 in flag",
                              "nobody who still runs would write it"});
}

TEST_CASE("hang loop: a word of global memory, by its place in the allocation") {
  const std::string ptx = hang_program(role(0, R"(
    st.global.u32 [%d0+12], 5;
  spin:
    atom.global.cas.b32 %r3, [%d0+12], 0, 1;
    setp.ne.u32 %p1, %r3, 0;
    @%p1 bra spin;
)"));
  says(hang_report(ptx, 32), {"atom.global.cas.b32 at ", "which finds 0x5 in byte 12 of probe"});
}

TEST_CASE("hang loop: a flag polled between sleeps") {
  says(hang_report(hang_program(role(0, R"(
  spin:
    ld.volatile.shared.u32 %r3, [flag];
    setp.ne.u32 %p1, %r3, 0;
    @%p1 bra done;
    nanosleep.u32 200;
    bra spin;
  done:
)")),
                   32),
       {"sleeps, in a loop, and asks again and again: ld.volatile.shared.u32", "finds 0x0 in flag"});
}

TEST_CASE("hang loop: test_wait has the barrier's state and its likely cause, as a wait has") {
  const std::string ptx = hang_program(role(0, arrive("a") + R"(
  ask:
    mbarrier.test_wait.parity.shared::cta.b64 %p1, [a], 0;
    @!%p1 bra ask;
)"),
                                       2);
  says(
      hang_report(ptx, 32),
      {"since cycle ", "mbarrier.test_wait.parity.shared::cta.b64 at " + line_of(ptx, "mbarrier.test_wait") + ", for a",
       "waits for a: the phase of parity 0 to end", "1 of 2 arrivals missing",
       "likely: 1 of 2 arrivals have come, by arrive of warp 0"});
}

namespace {

// Counts in memory for ever, so that something changes all the time.
const std::string kCounts = R"(
  count:
    atom.shared.add.u32 %r3, [flag], 1;
    setp.ne.u32 %p1, %r3, 0xFFFFFFFF;
    @%p1 bra count;
)";

emu::Options limited(double seconds, int threads = 1) {
  emu::Options options;
  options.time_limit_s = seconds;
  options.threads = threads;
  return options;
}

}  // namespace

TEST_CASE("time limit: a launch that never ends though something changes") {
  const std::string ptx = hang_program(role(0, kCounts) + role(1, wait_for("x", "a")));
  for (int threads : {1, 2})
    for (uint32_t ctas : {1u, 3u}) {
      const Shape shape{.grid = {ctas, 1, 1}, .block = {64, 1, 1}, .apart = "it never ends"};
      const std::string report = report_of(ptx, shape, 702, limited(0.5, threads));
      says(report, {"stopped: it has run for longer than 0.5 s, which LADDER_TIME_LIMIT allows", "warp 0, lane 0",
                    "runs; its warp has executed ",
                    "the loop around it asks: atom.shared.add.u32 at " + line_of(ptx, "atom.shared")});
      says(report, {"warp 1, lane 0", "waits for a: the phase of parity 0", "nobody has signalled it"});
      says_not(report, "nobody who still runs");
    }
}

TEST_CASE("time limit: a launch that ends in time is as it was") {
  Ending ending = launch_with(limited(60), hang_program(role(0, "    st.global.u32 [%d0], 5;\n")), 4, {}, {});
  INFO(ending.report);
  CHECK(ending.error == 0);
  CHECK(values_of<uint32_t>(ending.bytes)[0] == 5);
}

TEST_CASE("given up: a trap behind a bound says which wait it was, how often it asked, and what was missing") {
  const std::string ptx = hang_program(role(0, arrive("a") + R"(
    mov.u32 %r4, 0;
  again:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [a], 0;
    @%p1 bra done;
    add.u32 %r4, %r4, 1;
    setp.lt.u32 %p2, %r4, 20;
    @%p2 bra again;
    trap;
  done:
)") + role(1, wait_for("x", "b")),
                                       2);
  const Shape shape{.block = {64, 1, 1}};
  says(report_of(ptx, shape, 719),
       {"the kernel executed trap", "warp 0, lane 0 has given up waiting", line_of(ptx, "mbarrier.try_wait"),
        "asked 20 times in vain, from cycle ", "waits for a: the phase of parity 0 to end; phase 0 is running",
        "1 of 2 arrivals missing", "signalled so far: arrive, warp 0",
        "likely: 1 of 2 arrivals have come, by arrive of warp 0",
        "meanwhile:", "warp 1, lane 0 waits for b at PTX line "});
}

TEST_CASE("given up: by the clock, with test_wait") {
  says(report_of(hang_program(role(0, R"(
    mov.u64 %d1, %clock64;
  again:
    mbarrier.test_wait.parity.shared::cta.b64 %p1, [a], 0;
    @%p1 bra done;
    mov.u64 %d2, %clock64;
    sub.u64 %d2, %d2, %d1;
    setp.lt.u64 %p2, %d2, 10000;
    @%p2 bra again;
    trap;
  done:
)")),
                 {.block = {32, 1, 1}}, 719),
       {"warp 0, lane 0 has given up waiting", "mbarrier.test_wait", "asked ", "times in vain", "waits for a: "});
}

TEST_CASE("given up: a kernel that goes on and hangs elsewhere") {
  const std::string ptx = hang_program(role(0, R"(
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [a], 0;
)" + wait_for("x", "b")));
  says(hang_report(ptx, 32),
       {"waits for b: ", "warp 0, lane 0 has given up waiting", "asked 1 time in vain", "waits for a: "});
}

TEST_CASE("given up: a wait that has passed in the end is not mentioned, nor where nobody waited") {
  const std::string ptx = hang_program(role(0, R"(
    mbarrier.test_wait.parity.shared::cta.b64 %p1, [a], 0;
    mbarrier.test_wait.parity.shared::cta.b64 %p1, [a], 0;
)" + arrive("a") + wait_for("x", "a") + "    trap;\n"));
  says_not(report_of(ptx, {.block = {32, 1, 1}}, 719), "given up");
  says_not(report_of(hang_program(role(0, "    trap;\n")), {.block = {32, 1, 1}}, 719), "given up");
}
