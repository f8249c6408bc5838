// Bytes in hang reports: what the running phase expected, what came, which copy did not.

#include "tests/probes/hang_program.h"

using namespace probe;

TEST_CASE("hang bytes: expected and delivered are those of the running phase") {
  const std::string round = expect("a", 128) + copy("a", 48) + copy("a", 80);
  const std::string report =
      hang_report(hang_program(role(0, round + wait_for("first", "a") + expect("a", 112) + copy("a", 48) +
                                           copy("a", 16) + wait_for("second", "a", 1))),
                  32);
  says(report,
       {"waits for a: the phase of parity 1 to end; phase 1 is running, of parity 1, 0 of 1 arrival missing, "
        "48 bytes missing",
        "bytes of this phase: 112 expected, 64 delivered by 2 copies", "initialised: ", "(1 time, last at cycle ",
        "in phase 0)", "in this phase)", "likely: expect_tx announces 48 bytes more than the copies bring"});
}

TEST_CASE("hang bytes: a second expect_tx in the phase is added") {
  says(hang_report(hang_program(role(0, "    mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [a], 32;\n" +
                                            expect("a", 64) + copy("a", 64) + wait_for("w", "a"))),
                   32),
       {"32 bytes missing", "bytes of this phase: 96 expected, 64 delivered by 1 copy", "expect_tx, warp 0"});
}

TEST_CASE("hang bytes: more than were expected") {
  says(hang_report(hang_program(role(0, expect("a", 64) + copy("a", 64 + 16) + wait_for("w", "a"))), 32),
       {"16 bytes more than were expected", "bytes of this phase: 64 expected, 80 delivered by 1 copy",
        "likely: expect_tx announces 16 bytes fewer"});
}

TEST_CASE("hang bytes: a copy that came in the phase before and not in this one, and where its warp is") {
  // Warp 1 copies its part in phase 0 only.
  const std::string ptx = hang_program(role(0, expect("a", 128) + copy("a", 48) + wait_for("first", "a") +
                                                   expect("a", 128) + copy("a", 48) + wait_for("second", "a", 1)) +
                                       role(1, copy("a", 80)));
  says(hang_report(ptx, 64), {"80 bytes missing", "bytes of this phase: 128 expected, 48 delivered by 1 copy",
                              "likely: the copy at " + line_of(ptx, copy("a", 80)) +
                                  " brought 80 bytes in phase 0 and none in this one; warp 1 has ended"});
}

TEST_CASE("hang bytes: a copy that somebody who waits would still start is not blamed") {
  // Warp 1 copies the other half, but waits for c, which nobody signals, first.
  const std::string ptx = hang_program(role(0, expect("a", 128) + copy("a", 48) + wait_for("w", "a")) +
                                       role(1, wait_for("x", "c") + copy("a", 80)));
  const std::string report = hang_report(ptx, 64);
  says(report, {"warp 1, lane 0", "waits for c: ", "the others wait for those", "warp 0, lane 0 at ",
                "waits for a, phase 0: warp 1, lane 0 would signal it at " + line_of(ptx, copy("a", 80)) +
                    ", and waits itself"});
  says_not(report, "expect_tx announces");
}

TEST_CASE("hang bytes: a multicast copy whose mask leaves a CTA out") {
  // Both CTAs expect 256 bytes; CTA 0 copies them to itself alone.
  const std::string ptx = kernel(R"(
    .shared .align 8 .b64 full;
    .shared .align 128 .b32 data[64];
    ld.param.u64 %d0, [p0];
    mov.u32 %r0, %tid.x;
    mov.u32 %r2, %cluster_ctarank;
    setp.eq.u32 %p0, %r0, 0;
    setp.eq.and.u32 %p2, %r2, 0, %p0;
    @%p0 mbarrier.init.shared::cta.b64 [full], 1;
    fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 256;
    mov.u16 %h0, 1;
    @%p2 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [data], [%d0], 256, [full], %h0;
)" + wait_for("w", "full") + R"(
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
)",
                                 1);
  const std::string report = report_of(ptx, {.grid = {2, 1, 1}, .block = {32, 1, 1}, .cluster = {2, 1, 1}});
  says(report, {"CTA 1, warp 0, all lanes", "waits for full of CTA 1 in the cluster", "256 bytes missing",
                "likely: the copy of CTA 0 at " + line_of(ptx, "cp.async.bulk") +
                    " brings 256 bytes to full of CTA 0 and not of CTA 1: its mask leaves that CTA out, or CTA 1 "
                    "should issue it, too",
                "CTA 0, warp 0, all lanes at ", "not arrived: CTA 1 (warps 0); CTA 1, warp 0, all lanes waits itself"});
}
