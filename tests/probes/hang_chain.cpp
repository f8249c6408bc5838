// Who waits for whom in hang reports: the root first, then those that wait for others that wait; since when.

#include "tests/probes/hang_program.h"

using namespace probe;

TEST_CASE("hang chain: the root comes first, then who waits for it, then who waits for that one") {
  // Warp 2 waits for c, which nobody signals; warp 0 for what warp 2 signals then; warp 1 for what warp 0 does.
  const std::string ptx = hang_program(role(0, wait_for("x", "a") + arrive("b")) + role(1, wait_for("y", "b")) +
                                       role(2, wait_for("z", "c") + arrive("a")));
  const std::string report = hang_report(ptx, 96);
  says(report,
       {"warp 2, lane 0\n", "waits for c: the phase of parity 0 to end",
        "nobody who still runs would signal it, whatever waits end", "the others wait for those",
        "warp 0, lane 0 at " + line_of(ptx, "mbarrier.try_wait"),
        "waits for a, phase 0: warp 2, lane 0 would signal it at " + line_of(ptx, arrive("a")) + ", and waits itself",
        "warp 1, lane 0 at " + line_of(ptx, "mbarrier.try_wait", 1),
        "waits for b, phase 0: warp 0, lane 0 would signal it at " + line_of(ptx, arrive("b")) + ", and waits itself"});
}

TEST_CASE("hang chain: the wait of a root that nobody can end does not hide behind an older wait") {
  // Warp 0 waits from the start; the mistake is warp 1's, thousands of cycles later.
  const std::string late =
      "    mov.u32 %r5, 0;\n  turn:\n    add.u32 %r5, %r5, 1;\n    setp.lt.u32 %p2, %r5, 2000;\n"
      "    @%p2 bra turn;\n";
  const std::string report =
      hang_report(hang_program(role(0, wait_for("x", "a")) + role(1, late + wait_for("y", "b") + arrive("a"))), 64);
  says(report, {"warp 1, lane 0\n", "waits for b: ", "the others wait for those", "warp 0, lane 0 at "});
  // Since when: the first time it asked, though try_wait has given up and asked again since.
  auto since = [&](const std::string& who) {
    const std::string key = "since cycle ";
    return std::stoul(report.substr(report.find(key, report.find(who)) + key.size()));
  };
  CHECK(since("warp 0, lane 0 at ") < 200);
  CHECK(since("warp 1, lane 0\n") > 2000);
  CHECK(since("warp 1, lane 0\n") < 15000);
}

TEST_CASE("hang chain: two that wait for each other") {
  const std::string ptx =
      hang_program(role(0, wait_for("x", "a") + arrive("b")) + role(1, wait_for("y", "b") + arrive("a")));
  says(hang_report(ptx, 64),
       {"waits for a: the phase of parity 0",
        "warp 1, lane 0 would signal it at " + line_of(ptx, arrive("a")) + ", and waits itself, see below",
        "waits for b, phase 0: warp 0, lane 0 would signal it at " + line_of(ptx, arrive("b"))});
}

TEST_CASE("hang chain: of two that wait for each other, the producer that begins with parity 0 is the root") {
  // The consumer was there first.
  const std::string ptx =
      hang_program(role(0, wait_for("x", "a") + arrive("b")) +
                   role(1, "    nanosleep.u32 100;\n" + wait_for("y", "b") + expect("a", 64) + copy("a", 64)));
  says(hang_report(ptx, 64), {"warp 1, lane 0\n", "waits for b: ", "likely: it loads next", "the others",
                              "warp 0, lane 0 at ", "waits for a, phase 0"});
}

TEST_CASE("hang chain: a thread that would signal only behind its own wait") {
  const std::string ptx = hang_program(role(0, wait_for("x", "a") + arrive("a")));
  says(hang_report(ptx, 32), {"waits for a: ", "it would signal it itself, at " + line_of(ptx, arrive("a")) +
                                                   ", behind this wait; nobody else would"});
}

TEST_CASE("hang chain: an arrival that has come in this phase is not waited for again") {
  // Warp 1 arrives in each round, and has in this one; what is missing is a second arrival, of nobody.
  const std::string ptx =
      hang_program(role(0, wait_for("x", "a") + arrive("b") + arrive("b")) +
                       role(1, "  round:\n" + arrive("a") + wait_for("y", "b") + "    bra round;\n"),
                   2);
  says(hang_report(ptx, 64), {"warp 0, lane 0\n", "waits for a: ", "1 of 2 arrivals missing",
                              "likely: 1 of 2 arrivals have come, by arrive of warp 1", "the others",
                              "waits for b, phase 0: warp 0, lane 0 would signal it"});
}

TEST_CASE("hang chain: a CTA barrier that a waiting warp does not come to") {
  const std::string ptx = hang_program("    setp.eq.u32 %p0, %r1, 1;\n    @!%p0 bra meet;\n" + wait_for("x", "a") +
                                       "  meet:\n    bar.sync 0;\n");
  says(hang_report(ptx, 96),
       {"warp 1, all lanes\n", "waits for a: ", "the others", "warp 0, all lanes; warp 2, all lanes at ",
        "warps not waiting there: 1; warp 1, all lanes waits itself"});
}

TEST_CASE("hang chain: a flag that a waiting warp would set") {
  const std::string spin =
      "  spin:\n    ld.volatile.shared.u32 %r3, [flag];\n    setp.eq.u32 %p1, %r3, 0;\n"
      "    @%p1 bra spin;\n";
  const std::string ptx =
      hang_program(role(0, spin) + role(1, wait_for("x", "a") + "    st.volatile.shared.u32 [flag], 1;\n"));
  says(hang_report(ptx, 64),
       {"warp 1, lane 0\n", "waits for a: ", "the others", "warp 0, lane 0 at ",
        "ld.volatile.shared.u32 at " + line_of(ptx, "ld.volatile"), "finds 0x0 in flag",
        "warp 1, lane 0 would write it at " + line_of(ptx, "st.volatile") + ", and waits itself"});
}

TEST_CASE("hang chain: CTAs that wait alike are told once") {
  const std::string ptx = kernel(R"(
    .shared .align 8 .b64 full;
    mov.u32 %r0, %tid.x;
    setp.eq.u32 %p0, %r0, 0;
    @%p0 mbarrier.init.shared::cta.b64 [full], 1;
    fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
)" + wait_for("w", "full"),
                                 1);
  const std::string report = report_of(ptx, {.grid = {4, 1, 1}, .block = {32, 1, 1}, .cluster = {4, 1, 1}});
  says(report, {"block (0,0,0) to (3,0,0), CTA 0 to 3 of its cluster", "CTA 0, warp 0, all lanes",
                "waits for full of CTA 0 in the cluster", "CTA 1-3: the same, at their own"});
  says_not(report, "of CTA 1 in the cluster");
}

TEST_CASE("hang chain: what a group does behind a vote is not known, and nothing is made of it") {
  // Warp 1 would signal a, but behind a vote; the report must not say that nobody would.
  const std::string behind_a_vote = R"(
    setp.eq.u32 %p2, %r0, 32;
    vote.sync.any.pred %p1, %p2, 1;
    @%p1 mbarrier.arrive.shared::cta.b64 _, [a];
)";
  const std::string ptx = hang_program(role(0, wait_for("x", "a")) + role(1, wait_for("y", "b") + behind_a_vote) +
                                       role(2, wait_for("z", "c") + arrive("b")));
  const std::string report = hang_report(ptx, 96);
  says(report, {"warp 0, lane 0\n", "waits for a: ", "warp 2, lane 0\n", "waits for c: ", "the others",
                "waits for b, phase 0: warp 2, lane 0 would signal it"});
  says_not(report, "nobody who still runs");
  // Where there is a root that is none by such ignorance, it stands alone.
  says(hang_report(
           hang_program(role(0, wait_for("x", "a")) + role(1, expect("b", 64) + wait_for("y", "b") + behind_a_vote)),
           64),
       {"warp 1, lane 0\n", "waits for b: ", "no copy has brought any in this phase", "the others",
        "warp 0, lane 0 at ", "waits for a, phase 0; who would signal it cannot be told"});
}

TEST_CASE("hang chain: behind a shuffle, a lane is taken to have what it had") {
  // Lane 0 of warp 1 has 32 and would have it from itself.
  auto behind_a_shuffle = [](const std::string& arrives_for) {
    return R"(
    shfl.sync.idx.b32 %r3, %r0, 0, 31, 1;
    setp.eq.u32 %p1, %r3, )" +
           arrives_for + R"(;
    @%p1 mbarrier.arrive.shared::cta.b64 _, [a];
)";
  };
  const std::string ptx =
      hang_program(role(0, wait_for("x", "a")) + role(1, wait_for("y", "b") + behind_a_shuffle("32")));
  says(hang_report(ptx, 64), {"warp 1, lane 0\n", "waits for b: ", "the others", "warp 0, lane 0 at ",
                              "waits for a, phase 0: warp 1, lane 0 would signal it at "});
  // It may be wrong: that nobody would is not said.
  const std::string other =
      hang_report(hang_program(role(0, wait_for("x", "a")) + role(1, wait_for("y", "b") + behind_a_shuffle("7"))), 64);
  says(other, {"warp 0, lane 0\n", "waits for a: "});
  says_not(other, "nobody who still runs");
  // A loop around it is followed once.
  const std::string loop =
      hang_program(role(0, wait_for("x", "a")) +
                   role(1, wait_for("y", "b") + "again:\n" + behind_a_shuffle("7") + "    bra again;\n"));
  says(hang_report(loop, 64), {"waits for a: "});
}

TEST_CASE("hang chain: a signal behind a long loop") {
  // Like the commit to accumulator_full, behind a thousand K tiles.
  const std::string ptx = hang_program(role(0, wait_for("x", "a")) + role(1, R"(
    mov.u32 %r3, 0;
  tile:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [b], 0;
    @!%p1 bra tile;
    add.u32 %r3, %r3, 1;
    setp.lt.u32 %p2, %r3, 100000;
    @%p2 bra tile;
)" + arrive("a")));
  says(hang_report(ptx, 64),
       {"warp 1, lane 0\n", "waits for b: ", "nobody who still runs would signal it", "the others",
        "waits for a, phase 0: warp 1, lane 0 would signal it at " + line_of(ptx, arrive("a"))});
}

TEST_CASE("hang chain: an elected lane is the same one each time, whatever ways the warp went before") {
  // Warp 1 has arrived at a, by an elected lane, and would only do so again; two arrivals are counted.
  const std::string ptx = hang_program("    setp.ne.u32 %p0, %r1, 0;\n    @%p0 bra second;\n" + wait_for("x", "a") +
                                           "    exit;\n  second:\n    mov.u32 %r3, 0;\n  again:\n" + R"(
    elect.sync _|%p2, 0xffffffff;
    @!%p2 bra elsewhere;
    mbarrier.arrive.shared::cta.b64 _, [c];
  elsewhere:
    elect.sync _|%p2, 0xffffffff;
    @%p2 mbarrier.arrive.shared::cta.b64 _, [a];
)" + wait_for("y", "b") + R"(
    add.u32 %r3, %r3, 1;
    setp.lt.u32 %p3, %r3, 4;
    @%p3 bra again;
)",
                                       2);
  says(hang_report(ptx, 64), {"warp 0, all lanes\n", "waits for a: ", "likely: 1 of 2 arrivals have come"});
}

TEST_CASE("hang chain: behind an answer of cluster launch control that has not come") {
  const std::string ptx =
      hang_program(role(0, wait_for("x", "a")) + role(1, "    setp.ne.u32 %p2, 0, 0;\n" + wait_for("y", "b") + R"(
    ld.shared.b128 %q0, [to];
    clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p2, %q0;
    @!%p2 bra none;
)" + arrive("a") + "  none:\n"));
  says(hang_report(ptx, 64), {"warp 1, lane 0\n", "waits for b: ", "the others",
                              "waits for a, phase 0: warp 1, lane 0 would signal it at " + line_of(ptx, arrive("a"))});
}
