// Hang reports in clusters and pairs: signals that reach another CTA than the one that waits, and calls that both CTAs
// of a pair must make.

#include "tests/probes/hang_program.h"

using namespace probe;

namespace {

constexpr Shape kPair{.grid = {2, 1, 1}, .block = {32, 1, 1}, .cluster = {2, 1, 1}};

/// Thread 0 of each CTA initialises `full` for `count` arrivals. %r0: thread; %r2: rank; %p6: is it thread 0; %p5: and
/// of CTA 0; %p4: and of CTA 1. The CTAs wait for each other at the end.
std::string in_cluster(int count, const std::string& body) {
  return kernel(R"(
    .shared .align 8 .b64 full;
    .shared .align 8 .b64 other;
    .shared .align 128 .b8 to[256];
    .shared .align 4 .b32 address;
    ld.param.u64 %d0, [p0];
    mov.u32 %r0, %tid.x;
    mov.u32 %r2, %cluster_ctarank;
    setp.eq.u32 %p6, %r0, 0;
    setp.eq.and.u32 %p5, %r2, 0, %p6;
    setp.eq.and.u32 %p4, %r2, 1, %p6;
    @%p6 mbarrier.init.shared::cta.b64 [full], )" +
                    std::to_string(count) + R"(;
    @%p6 mbarrier.init.shared::cta.b64 [other], 1;
    fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
)" + body + R"(
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
)",
                1);
}

}  // namespace

TEST_CASE("hang cluster: a commit of a pair that leaves the other CTA out") {
  const std::string wait = wait_for("w", "full");
  const std::string masked = in_cluster(1, R"(
    mov.u16 %h0, 1;
    @%p5 tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [full], %h0;
)" + wait);
  says(report_of(masked, kPair), {"waits for full of CTA 1 in the cluster", "1 of 1 arrival missing",
                                  "likely: tcgen05.commit of CTA 0 at " + line_of(masked, "tcgen05.commit") +
                                      " arrives at full of CTA 0 and not of CTA 1: its mask leaves that CTA out\n"});
  const std::string plain = in_cluster(1, R"(
    @%p5 tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.b64 [full];
)" + wait);
  says(report_of(plain, kPair), {"waits for full of CTA 1 in the cluster",
                                 " and not of CTA 1: without .multicast::cluster it tells one CTA alone\n"});
  // Without a pair the other CTA has MMAs of its own to commit.
  const std::string alone = in_cluster(1, R"(
    @%p5 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [full];
)" + wait);
  says(report_of(alone, kPair), {"waits for full of CTA 1 in the cluster", "CTA 1 has not"});
}

TEST_CASE("hang cluster: copies to the issuing CTA's own barrier") {
  // CTA 0 expects 256 bytes, 128 of them from CTA 1.
  auto copies = [](int bytes) {
    return in_cluster(1,
                      "    @%p5 mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 256;\n    @%p5 bra half;\n"
                      "    @!%p4 bra over;\n" +
                          copy("full", 64) + copy("full", bytes) + "    bra over;\n  half:\n" + copy("full", 128) +
                          wait_for("w", "full") + "  over:\n");
  };
  const std::string ptx = copies(64);
  says(report_of(ptx, kPair),
       {"waits for full of CTA 0 in the cluster", "128 bytes missing",
        "likely: copies of CTA 1 at " + line_of(ptx, "cp.async.bulk") + " and " + line_of(ptx, "cp.async.bulk", 1) +
            " bring 128 bytes to full of CTA 1 and not of CTA 0: without .multicast::cluster or .cta_group::2"});
  says(report_of(copies(32), kPair), {"128 bytes missing", "likely: expect_tx announces 128 bytes more"});
}

TEST_CASE("hang cluster: arrivals at the own barrier in place of another CTA's") {
  auto arrivals = [](int count) {
    return in_cluster(count, "    @!%p6 bra over;\n" + arrive("full") + "    @!%p5 bra over;\n" +
                                 wait_for("w", "full") + "  over:\n");
  };
  const std::string ptx = arrivals(2);
  says(report_of(ptx, kPair), {"waits for full of CTA 0 in the cluster", "1 of 2 arrivals missing",
                               "likely: with arrive at " + line_of(ptx, arrive("full")) +
                                   " CTA 1 arrives at full of CTA 1 and not of CTA 0 (mapa"});
  says(report_of(arrivals(3), kPair), {"2 of 3 arrivals missing", "somebody does not arrive"});
}

TEST_CASE("hang cluster: a tcgen05.alloc that one CTA of the pair does not call") {
  const std::string alloc = "tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [address], 64;\n";
  const std::string one = in_cluster(1, "    setp.eq.u32 %p3, %r2, 0;\n    @%p3 " + alloc);
  says(report_of(one, kPair), {"CTA 0, warp 0, all lanes\n", "waits in tcgen05.alloc of 64 columns for the other CTA",
                               "which has not called it", "the others", "CTA 1, warp 0, all lanes at ",
                               "not arrived: CTA 0 (warps 0); CTA 0, warp 0, all lanes waits itself"});
  // One that would is not to blame for what keeps it.
  const std::string late = in_cluster(
      1, "    setp.eq.u32 %p3, %r2, 0;\n    @%p3 bra both;\n" + wait_for("w", "full") + "  both:\n    " + alloc);
  says(report_of(late, kPair),
       {"CTA 1, warp 0, all lanes\n", "waits for full of CTA 1", "the others", "CTA 0, warp 0, all lanes at ",
        "waits in tcgen05.alloc of 64 columns", "CTA 1, warp 0, all lanes waits itself"});
}
