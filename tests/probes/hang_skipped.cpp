// Arrivals that do not come: who came before and skips this phase, commits that are missing, that go to another barrier
// or leave a CTA out.

#include "tests/probes/hang_program.h"

using namespace probe;

namespace {

/// One MMA of 128 x 64 x 16 on operands that nobody has filled: the program is about what follows.
std::string mma_program(const std::string& body) {
  return kernel(R"(
    .shared .align 8 .b64 done[2];
    .shared .align 8 .b64 other;
    .shared .align 4 .b32 address;
    mov.u32 %r0, %tid.x;
    setp.eq.u32 %p6, %r0, 0;
    mov.u32 %r1, smem;
    @%p6 mbarrier.init.shared::cta.b64 [done], 1;
    @%p6 mbarrier.init.shared::cta.b64 [done+8], 1;
    @%p6 mbarrier.init.shared::cta.b64 [other], 1;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [address], 64;
    bar.sync 0;
    ld.shared.u32 %r5, [address];
    shr.u32 %r7, %r1, 4;
    cvt.u64.u32 %d1, %r7;
    or.b64 %d1, %d1, 0x4000404000010000;
    mov.b32 %r8, 0x08100010;
    setp.ne.u32 %p5, 0, 0;
)" + body,
                1, ".extern .shared .align 1024 .b8 smem[];");
}
const std::string kMma = "    @%p6 tcgen05.mma.cta_group::1.kind::f16 [%r5], %d1, %d1, %r8, %p5;\n";
std::string commit(const std::string& barrier) {
  return "    @%p6 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [" + barrier + "];\n";
}
constexpr Shape kMmaShape{.block = {32, 1, 1}, .dynamic_shared_bytes = 16384};

}  // namespace

TEST_CASE("hang skipped: lanes that arrived in the phase before and have ended since") {
  const std::string ptx = hang_program("    mov.u32 %r4, 0;\n  round:\n" + arrive("a") + R"(
  w:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [a], %r4;
    @!%p1 bra w;
    setp.ge.u32 %p2, %r0, 16;
    @%p2 exit;
    add.u32 %r4, %r4, 1;
    bra round;
)",
                                       32);
  says(hang_report(ptx, 32),
       {"waits for a: ", "16 of 32 arrivals missing",
        "likely: lanes 0xffff0000 of warp 0 took part in phase 0 and not in this one, with arrive at " +
            line_of(ptx, arrive("a")) + "; the first of them has ended"});
}

TEST_CASE("hang skipped: a warp that arrived in the phase before and waits elsewhere") {
  const std::string ptx = hang_program(role(0, arrive("a") + wait_for("x", "a") + arrive("a") + wait_for("y", "a", 1)) +
                                           role(1, arrive("a") + wait_for("z", "c")),
                                       2);
  says(hang_report(ptx, 64), {"waits for a: ", "1 of 2 arrivals missing",
                              "likely: arrive of warp 1 took part in phase 0 and not in this one; "
                              "it waits for c at " +
                                  line_of(ptx, "mbarrier.try_wait", 2)});
}

TEST_CASE("hang skipped: MMAs without a commit") {
  const std::string ptx = mma_program(kMma + kMma + wait_for("w", "done"));
  says(report_of(ptx, kMmaShape),
       {"waits for done[0]: ", "likely: warp 0, lane 0 has issued 2 tcgen05.mma, the last at " + line_of(ptx, kMma, 1) +
                                   ", and no tcgen05.commit since"});
}

TEST_CASE("hang skipped: a commit that always goes to the same barrier of a ring, or to another") {
  const std::string ring = mma_program(kMma + commit("done") + wait_for("v", "done") + wait_for("w", "done+8"));
  says(report_of(ring, kMmaShape),
       {"waits for done[1]: ", "likely: tcgen05.commit of warp 0 at " + line_of(ring, commit("done")) +
                                   " signals done[0] and never this one"});
  const std::string other = mma_program(kMma + commit("done") + wait_for("w", "other"));
  says(report_of(other, kMmaShape),
       {"waits for other: ", "likely: tcgen05.commit of warp 0 at " + line_of(other, commit("done")) +
                                 " signals done[0] and never this one"});
}

TEST_CASE("hang skipped: a commit that a waiting thread would still issue") {
  const std::string ptx = mma_program("    @!%p6 bra epilogue;\n" + kMma + wait_for("v", "other") + commit("done") +
                                      "  epilogue:\n" + wait_for("w", "done"));
  says(report_of(ptx, kMmaShape),
       {"warp 0, lane 0\n", "waits for other: ", "the others",
        "waits for done[0], phase 0: warp 0, lane 0 would signal it at " + line_of(ptx, commit("done"))});
}

TEST_CASE("hang skipped: an MMA that waits for an accumulator to be free before any has been full") {
  auto program = [](const std::string& signal) {
    return mma_program("    @!%p6 bra epilogue;\n" + wait_for("v", "other") + kMma + commit("done") +
                       "    bra end;\n  epilogue:\n" + wait_for("w", "done") + signal + "  end:\n");
  };
  const std::string ptx = program(arrive("other"));
  says(report_of(ptx, kMmaShape), {"warp 0, lane 0\n", "waits for other: ",
                                   "likely: it multiplies next, so it waits for an accumulator to be free",
                                   "lanes 0xfffffffe would signal it at " + line_of(ptx, arrive("other")), "the others",
                                   "waits for done[0], phase 0"});
  // Where bytes are waited for, the loader is the one that should not have waited.
  says(report_of(program(expect("other", 64)), kMmaShape),
       {"warp 0, lanes 0xfffffffe\n",
        "waits for done[0]: ", "likely: it loads next, so it waits for a buffer to be free"});
}

TEST_CASE("hang skipped: a CTA that does not arrive at its own barrier, as the other does") {
  const std::string ptx = kernel(R"(
    .shared .align 8 .b64 full;
    mov.u32 %r0, %tid.x;
    mov.u32 %r2, %cluster_ctarank;
    setp.eq.u32 %p6, %r0, 0;
    setp.eq.and.u32 %p5, %r2, 0, %p6;
    @%p6 mbarrier.init.shared::cta.b64 [full], 1;
    fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    @%p5 mbarrier.arrive.shared::cta.b64 _, [full];
)" + wait_for("w", "full") + R"(
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
)",
                                 1);
  says(report_of(ptx, {.grid = {2, 1, 1}, .block = {32, 1, 1}, .cluster = {2, 1, 1}}),
       {"waits for full of CTA 1 in the cluster",
        "likely: CTA 0 arrives at its own with arrive at " + line_of(ptx, "mbarrier.arrive") + "; CTA 1 has not"});
}

TEST_CASE("hang skipped: a commit whose mask leaves a CTA out") {
  // Each CTA's barrier counts both CTAs; both commit to CTA 0 only, or each to itself.
  const std::string start = R"(
    .shared .align 8 .b64 empty;
    mov.u32 %r0, %tid.x;
    mov.u32 %r2, %cluster_ctarank;
    setp.eq.u32 %p6, %r0, 0;
    @%p6 mbarrier.init.shared::cta.b64 [empty], 2;
    fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    mov.u32 %r3, 1;
)";
  const std::string end = R"(
    cvt.u16.u32 %h0, %r3;
    @%p6 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [empty], %h0;
)" + wait_for("w", "empty") +
                          R"(
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
)";
  const Shape pair{.grid = {2, 1, 1}, .block = {32, 1, 1}, .cluster = {2, 1, 1}};
  const std::string first = kernel(start + end, 1);
  says(report_of(first, pair), {"waits for empty of CTA 1 in the cluster", "2 of 2 arrivals missing",
                                "likely: tcgen05.commit of CTA 0, 1 at " + line_of(first, "tcgen05.commit") +
                                    " arrives at empty of CTA 0 and not of CTA 1: its mask leaves that CTA out"});
  const std::string own = kernel(start + "    shl.b32 %r3, %r3, %r2;\n" + end, 1);
  says(report_of(own, pair), {"waits for empty of CTA 0 in the cluster", "1 of 2 arrivals missing",
                              "likely: tcgen05.commit of CTA 1 at " + line_of(own, "tcgen05.commit") +
                                  " arrives at empty of CTA 1 and not of CTA 0: its mask leaves that CTA out",
                              "CTA 1: the same, at its own"});
}
