// The hazard rules: for each way in which threads may hand something over, a program that does it right and draws no
// finding, and the same without what makes it right. PTX ISA, "Memory Consistency Model"; the sections are named where
// the rules are, in emulator/hazards/rules.cpp. tests/museum has the rules that need whole kernels.

#include <fmt/format.h>

#include "tests/probes/hazards_found.h"

namespace {

using probe::found;
using probe::kept;
using probe::Names;

constexpr probe::Shape kTwoWarps{.block = {64, 1, 1}};
constexpr probe::Shape kPair{.grid = {2, 1, 1}, .cluster = {2, 1, 1}};

/// %r1: thread; %r2: warp; %p7: of warp 0; %r4: address of `words`, 64 of them; %r5, %r6: of `full` and `empty`, which
/// thread 0 initialises for one arrival each. All threads have seen that.
const std::string kStart = R"(
    .shared .align 128 .b32 words[64];
    .shared .align 8 .b64 full;
    .shared .align 8 .b64 empty;
    .shared .align 4 .b32 flag;
    ld.param.u64 %d0, [p0];
    mov.u32 %r1, %tid.x;
    shr.u32 %r2, %r1, 5;
    setp.eq.u32 %p7, %r2, 0;
    mov.u32 %r4, words;
    mov.u32 %r5, full;
    mov.u32 %r6, empty;
    mov.u32 %r7, flag;
    setp.ne.u32 %p6, %r1, 0;
    @%p6 bra ready;
    mbarrier.init.shared::cta.b64 [%r5], 1;
    mbarrier.init.shared::cta.b64 [%r6], 1;
    fence.mbarrier_init.release.cluster;
    st.shared.u32 [%r7], 0;
  ready:
    bar.sync 0;
)";

/// Warp 0 does the one, warp 1 the other.
std::string roles(const std::string& first, const std::string& second) {
  return kStart + "@!%p7 bra second;\n" + first + "\nbra end;\nsecond:\n" + second + "\nend:\nret;\n";
}

const std::string kWrite = "st.shared.u32 [%r4], %r1;\n";
const std::string kRead = "ld.shared.u32 %r10, [%r4];\nst.global.u32 [%d0], %r10;\n";
/// In lane 0 of each warp that comes here. A block's labels are its own.
std::string lane_0(const std::string& text) {
  return "{\nmov.u32 %r20, %laneid;\nsetp.ne.u32 %p1, %r20, 0;\n@%p1 bra skip;\n" + text + "skip:\n}\n";
}

std::string wait(const std::string& barrier, int parity, const std::string& how = "") {
  return fmt::format("{{\nwait:\nmbarrier.try_wait.parity{}.shared::cta.b64 %p2, [{}], {};\n@!%p2 bra wait;\n}}\n", how,
                     barrier, parity);
}

}  // namespace

TEST_CASE("words of shared memory between warps") {
  const std::string write = lane_0(kWrite), read = lane_0(kRead);
  CHECK(found(roles(write + "bar.sync 1;\n", "bar.sync 1;\n" + read)).empty());
  CHECK(found(roles(write + "barrier.cta.arrive 1, 64;\n", "barrier.cta.sync 1, 64;\n" + read)).empty());
  CHECK(found(roles(write, read)) == Names{"Error read-too-early"});
  CHECK(found(roles(write, write)) == Names{"Error write-write"});
  // The barrier comes before the write.
  CHECK(found(roles("bar.sync 1;\n" + write, "bar.sync 1;\n" + read)) == Names{"Error read-too-early"});
}

TEST_CASE("parts of a word are places of their own") {
  const std::string low = lane_0("mov.u16 %h1, 7;\nst.shared.u16 [%r4], %h1;\n"),
                    high = lane_0("mov.u16 %h1, 8;\nst.shared.u16 [%r4+2], %h1;\n"), read = lane_0(kRead);
  CHECK(found(roles(low + "bar.sync 1;\n" + read, high + "bar.sync 1;\n")).empty());
  CHECK(found(roles(low + "bar.sync 1;\n" + read, "bar.sync 1;\n" + high)) == Names{"Error read-too-early"});
  // Whoever wrote the whole word before.
  const std::string read_low = lane_0("ld.shared.u16 %h2, [%r4];\nst.global.u16 [%d0], %h2;\n");
  CHECK(found(roles(lane_0(kWrite) + "bar.sync 1;\n" + read_low, "bar.sync 1;\n" + high)).empty());
}

TEST_CASE("words of shared memory between lanes of a warp") {
  const std::string write = "mov.u32 %r20, %laneid;\nsetp.eq.u32 %p1, %r20, 3;\n@%p1 st.shared.u32 [%r4], %r1;\n";
  const std::string read = "ld.shared.u32 %r10, [%r4];\nst.global.u32 [%d0], %r10;\n";
  const probe::Shape warp{.block = {32, 1, 1}};
  CHECK(found(kStart + write + "bar.warp.sync 0xffffffff;\n" + read, warp).empty());
  CHECK(found(kStart + write + read, warp) == Names{"Rule warp-sync"});
  // A shuffle brings lanes together and orders nothing.
  CHECK(found(kStart + write + "shfl.sync.idx.b32 %r11, %r1, 0, 31, 0xffffffff;\n" + read, warp) ==
        Names{"Rule warp-sync"});
}

TEST_CASE("a flag in shared memory") {
  const auto writer = [](const std::string& fence, const std::string& store) {
    return lane_0(kWrite + fence + "mov.u32 %r11, 1;\n" + store + " [%r7], %r11;\n");
  };
  const auto reader = [](const std::string& load, const std::string& fence) {
    return lane_0("poll:\n" + load + " %r12, [%r7];\nsetp.eq.u32 %p3, %r12, 0;\n@%p3 bra poll;\n" + fence + kRead);
  };
  const std::string fence = "fence.acq_rel.cta;\n", relaxed = "st.relaxed.cta.shared.u32",
                    poll = "ld.relaxed.cta.shared.u32";
  CHECK(found(roles(writer(fence, relaxed), reader(poll, fence))).empty());
  CHECK(found(roles(writer("", "st.release.cta.shared.u32"), reader("ld.acquire.cta.shared.u32", ""))).empty());
  CHECK(found(roles(writer("", relaxed), reader(poll, fence))) == Names{"Rule weak-order"});
  CHECK(found(roles(writer(fence, relaxed), reader(poll, ""))) == Names{"Rule weak-order"});
  CHECK(found(roles(writer("", "st.volatile.shared.u32"), reader("ld.volatile.shared.u32", ""))) ==
        Names{"Rule weak-order"});
  CHECK(found(roles(writer(fence, "atom.shared.exch.b32 %r13,"), reader(poll, fence))).empty());
}

TEST_CASE("mbarriers hand over what came before the arrive") {
  const std::string arrive = "mbarrier.arrive.shared::cta.b64 %d5, [%r5];\n";
  CHECK(found(roles(lane_0(kWrite + arrive), lane_0(wait("%r5", 0) + kRead))).empty());
  CHECK(found(roles(lane_0(arrive + kWrite), lane_0(wait("%r5", 0) + kRead))) == Names{"Error read-too-early"});
  // Parity 1 is over before anything has come.
  CHECK(found(roles(lane_0(kWrite + arrive), lane_0(wait("%r6", 1) + kRead))) == Names{"Error read-too-early"});
  CHECK(found(roles(lane_0(kWrite + "mbarrier.arrive.relaxed.cta.shared::cta.b64 %d5, [%r5];\n"),
                    lane_0(wait("%r5", 0) + kRead))) == Names{"Rule weak-order"});
  CHECK(found(roles(lane_0(kWrite + "fence.acq_rel.cta;\nmbarrier.arrive.relaxed.cta.shared::cta.b64 %d5, [%r5];\n"),
                    lane_0(wait("%r5", 0) + kRead)))
            .empty());
  CHECK(found(roles(lane_0(kWrite + arrive), lane_0(wait("%r5", 0, ".relaxed.cta") + kRead))) ==
        Names{"Rule weak-order"});
}

TEST_CASE("generic stores and a bulk copy: the proxy fence stands anywhere between") {
  const std::string store =
      "cp.async.bulk.global.shared::cta.bulk_group [%d0], [%r4], 16;\ncp.async.bulk.commit_group;\n"
      "cp.async.bulk.wait_group 0;\n";
  const std::string all = "mov.u32 %r21, 4;\nmad.lo.u32 %r22, %r1, %r21, %r4;\nst.shared.u32 [%r22], %r1;\n";
  const std::string fence = "fence.proxy.async.shared::cta;\n";
  CHECK(found(roles("bar.sync 1;\n" + lane_0(store), "bar.sync 1;\n")) == Names{"Note uninitialised"});
  CHECK(found(roles(all + fence + "bar.sync 1;\n" + lane_0(store), all + fence + "bar.sync 1;\n")).empty());
  CHECK(found(roles(all + "bar.sync 1;\n" + fence + lane_0(store), all + "bar.sync 1;\n")).empty());
  CHECK(found(roles(all + "bar.sync 1;\n" + lane_0(store), all + fence + "bar.sync 1;\n")) ==
        Names{"Error proxy-fence"});
  CHECK(found(roles(fence + all + "bar.sync 1;\n" + lane_0(store), "bar.sync 1;\n")) == Names{"Error proxy-fence"});
}

TEST_CASE("what threads have read is overwritten by a bulk copy behind a pair of one-way proxy fences") {
  // PTX ISA, clusterlaunchcontrol.try_cancel: in its example they stand around a relaxed barrier.
  const std::string release = "fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;\n",
                    acquire = "fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;\n",
                    arrive = "mbarrier.arrive.relaxed.cta.shared::cta.b64 %d5, [%r5];\n",
                    heard = wait("%r5", 0, ".relaxed.cta"),
                    copy =
                        "mbarrier.arrive.expect_tx.shared::cta.b64 %d5, [%r6], 16;\n"
                        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r4], [%d0], 16, [%r6];\n" +
                        wait("%r6", 0);
  const std::string write = "st.shared.u32 [%r4], %r1;\n", read = "ld.shared.u32 %r10, [%r4];\n";
  const auto program = [&](const std::string& before, const std::string& behind, const std::string& overwrite) {
    return roles(lane_0(heard + behind + overwrite), lane_0(write + read + before + arrive));
  };
  CHECK(found(program(release, acquire, copy)).empty());
  CHECK(found(program("", acquire, copy)) == Names{"Rule weak-order"});
  CHECK(found(program(release, "", copy)) == Names{"Rule weak-order"});
  // Another thread's own store has to be ordered otherwise.
  CHECK(found(program(release, acquire, "st.shared.u32 [%r4], %r2;\n")) == Names{"Rule weak-order"});
}

TEST_CASE("the next answer of cluster launch control: the last one has been read, and a proxy fence lies between") {
  const auto ask = [](const std::string& barrier) {
    return fmt::format(
        "@!%p6 mbarrier.arrive.expect_tx.shared::cta.b64 _, [{0}], 16;\n@!%p6 clusterlaunchcontrol.try_cancel.async"
        ".shared::cta.mbarrier::complete_tx::bytes.b128 [%r4], [{0}];\n{1}",
        barrier, wait(barrier, 0));
  };
  const std::string fence = "fence.proxy.async.shared::cta;\n", all = "bar.sync 0;\n";
  const auto body = [&](const std::string& between) {
    return kStart + ask("%r5") + "ld.shared.b128 %q0, [%r4];\n" + between + ask("%r6");
  };
  CHECK(found(body(fence + all)).empty());
  CHECK(found(body(all + fence)).empty());
  CHECK(found(body(all)) == Names{"Rule proxy-fence"});
}

TEST_CASE("the source of a bulk store") {
  const auto body = [](const std::string& between, const std::string& end) {
    const std::string store =
        "cp.async.bulk.global.shared::cta.bulk_group [%d0], [%r4], 16;\n"
        "cp.async.bulk.commit_group;\n";
    const std::string fill = "st.shared.v4.u32 [%r4], {%r1, %r1, %r1, %r1};\nfence.proxy.async.shared::cta;\n";
    return kStart + lane_0("@!%p7 bra skip;\n" + fill + store + between + fill + store + end);
  };
  const std::string read = "cp.async.bulk.wait_group.read 0;\n";
  CHECK(found(body(read, read)).empty());
  CHECK(found(body("cp.async.bulk.wait_group 0;\n", read)).empty());
  CHECK(found(body("cp.async.bulk.wait_group.read 1;\n", read)) == Names{"Error overwrite-too-early"});
  CHECK(found(body("", read)) == Names{"Error overwrite-too-early"});
  CHECK(found(body(read, "")) == Names{"Rule bulk-store-wait"});
}

TEST_CASE("cp.async") {
  const std::string first = "cp.async.ca.shared.global [%r4], [%d0], 4;\ncp.async.commit_group;\n",
                    second = "cp.async.ca.shared.global [%r4+4], [%d0], 4;\ncp.async.commit_group;\n";
  const std::string read_first = "ld.shared.u32 %r10, [%r4];\n", read_second = "ld.shared.u32 %r10, [%r4+4];\n";
  const auto body = [&](const std::string& rest) {
    return kStart + lane_0("@!%p7 bra skip;\n" + first + second + rest);
  };
  CHECK(found(body("cp.async.wait_group 0;\n" + read_first + read_second)).empty());
  CHECK(found(body("cp.async.wait_group 1;\n" + read_first)).empty());
  CHECK(found(body("cp.async.wait_group 1;\n" + read_second)) == Names{"Error read-too-early"});
  CHECK(found(body(read_first)) == Names{"Error read-too-early"});
  // The barrier brings it to another warp.
  const std::string arrive = "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%r5];\n";
  CHECK(found(roles(lane_0(first + arrive), lane_0(wait("%r5", 0) + kRead))).empty());
  CHECK(found(roles(lane_0(first + "mbarrier.arrive.shared::cta.b64 %d5, [%r5];\n"), lane_0(wait("%r5", 0) + kRead))) ==
        Names{"Error read-too-early"});
}

TEST_CASE("between the CTAs of a cluster") {
  // CTA 0 writes into CTA 1, and arrives there.
  const auto body = [](const std::string& arrive, const std::string& how) {
    return kStart + R"(
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    mov.u32 %r3, %cluster_ctarank;
    setp.ne.u32 %p4, %r3, 0;
    mapa.shared::cluster.u32 %r8, %r4, 1;
    mapa.shared::cluster.u32 %r9, %r5, 1;
    @%p4 bra receive;
)" + lane_0("st.shared::cluster.u32 [%r8], %r1;\n" + arrive + " _, [%r9];\n") +
           "bra done;\nreceive:\n" + lane_0(wait("%r5", 0, how) + kRead) + R"(
  done:
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
)";
  };
  const std::string cluster = "mbarrier.arrive.release.cluster.shared::cluster.b64",
                    cta = "mbarrier.arrive.release.cta.shared::cluster.b64";
  CHECK(found(body(cluster, ".acquire.cluster"), kPair).empty());
  CHECK(found(body(cluster, ""), kPair) == Names{"Error weak-order"});
  CHECK(found(body(cta, ".acquire.cluster"), kPair) == Names{"Error weak-order"});
}

TEST_CASE("the cluster barrier") {
  const auto body = [](const std::string& arrive) {
    return kStart + R"(
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    mov.u32 %r3, %cluster_ctarank;
    xor.b32 %r13, %r3, 1;
    mapa.shared::cluster.u32 %r8, %r4, %r13;
)" + lane_0("st.shared::cluster.u32 [%r8], %r1;\n") +
           arrive + R"(
    barrier.cluster.wait.aligned;
)" + lane_0(kRead) +
           R"(
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
)";
  };
  CHECK(found(body("barrier.cluster.arrive.aligned;\n"), kPair).empty());
  CHECK(found(body("barrier.cluster.arrive.relaxed.aligned;\n"), kPair) == Names{"Error weak-order"});
}

TEST_CASE("a flag in global memory") {
  // Block 0 writes for block 1.
  const auto body = [](const std::string& fence, const std::string& store, const std::string& load,
                       const std::string& behind) {
    return R"(
    ld.param.u64 %d0, [p0];
    mov.u32 %r1, %tid.x;
    mov.u32 %r3, %ctaid.x;
    setp.ne.u32 %p4, %r3, 0;
    @%p4 bra reader;
)" +
           lane_0("mov.u32 %r10, 42;\nst.global.u32 [%d0+64], %r10;\n" + fence + "mov.u32 %r11, 1;\n" + store +
                  " [%d0], %r11;\n") +
           "ret;\nreader:\n" +
           lane_0("poll:\n" + load + " %r12, [%d0];\nsetp.eq.u32 %p3, %r12, 0;\n@%p3 bra poll;\n" + behind +
                  "ld.global.u32 %r10, [%d0+64];\nst.global.u32 [%d0+128], %r10;\n");
  };
  const probe::Shape two{.grid = {2, 1, 1}};
  const std::string fence = "fence.acq_rel.gpu;\n";
  CHECK(found(body(fence, "st.relaxed.gpu.global.u32", "ld.relaxed.gpu.global.u32", fence), two).empty());
  CHECK(found(body("", "st.release.gpu.global.u32", "ld.acquire.gpu.global.u32", ""), two).empty());
  CHECK(found(body(fence, "st.volatile.global.u32", "ld.volatile.global.u32", fence), two).empty());
  CHECK(found(body("", "st.relaxed.gpu.global.u32", "ld.relaxed.gpu.global.u32", fence), two) ==
        Names{"Error weak-order"});
  CHECK(found(body(fence, "st.relaxed.gpu.global.u32", "ld.relaxed.gpu.global.u32", ""), two) ==
        Names{"Rule weak-order"});
}

TEST_CASE("the end of a barrier") {
  const std::string arrive = "mbarrier.arrive.shared::cta.b64 %d5, [%r5];\n";
  const std::string end = lane_0("mbarrier.inval.shared::cta.b64 [%r5];\n");
  CHECK(found(roles(lane_0(arrive) + "bar.sync 1;\n" + end, lane_0(wait("%r5", 0)) + "bar.sync 1;\n")).empty());
  // The other warp may still be waiting: that it had passed was luck.
  CHECK(found(roles(lane_0(arrive) + lane_0("nanosleep.u32 90000;\n") + end, lane_0(wait("%r5", 0)))) ==
        Names{"Error barrier-reuse"});
  CHECK(found(kStart + "bar.sync 1;\n@!%p7 bra end;\n" + lane_0("mbarrier.init.shared::cta.b64 [%r5], 1;\n") +
              "end:\n") == Names{"Rule barrier-reuse"});
}

TEST_CASE("a pair's tcgen05.alloc and .dealloc, and what is known of the other CTA by then") {
  const std::string meet = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";
  const auto body = [&](const std::string& before, const std::string& between) {
    return kStart + before + "@!%p7 bra behind;\n" + R"(
    tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%r7], 32;
    ld.shared.u32 %r10, [%r7];
  behind:
)" + between +
           "@!%p7 bra end;\ntcgen05.dealloc.cta_group::2.sync.aligned.b32 %r10, 32;\nend:\nret;\n";
  };
  const probe::Shape pair{.grid = {2, 1, 1}, .block = {64, 1, 1}, .cluster = {2, 1, 1}};
  CHECK(found(body(meet, meet), pair).empty());
  // PTX ISA: the issuing warp must make sure that the peer CTA has been launched.
  CHECK(found(body("", meet), pair) == Names{"Rule peer-not-started"});
  CHECK(kept(body("", meet), pair)["findings"][0]["count"] == 2);
  // That it ran once says nothing of its alloc.
  CHECK(found(body(meet, ""), pair) == Names{"Rule pair-dealloc"});
  CHECK(found(body(meet, "bar.sync 0;\n"), pair) == Names{"Rule pair-dealloc"});
}

TEST_CASE("each word of a finding counts once, however many lanes touched it") {
  const auto object = [](const std::string& read) {
    const nlohmann::json report = kept(roles("st.shared.v4.u32 [%r4], {%r1, %r1, %r1, %r1};\n", read), kTwoWarps);
    REQUIRE(report["findings"].size() == 1);
    return report["findings"][0]["object"].get<std::string>();
  };
  CHECK(object(kRead).starts_with("shared memory: 4 bytes from words"));
  CHECK(object("and.b32 %r10, %r1, 1;\nshl.b32 %r10, %r10, 2;\nadd.u32 %r10, %r10, %r4;\nld.shared.u32 %r11, [%r10];\n"
               "st.global.u32 [%d0], %r11;\n")
            .starts_with("shared memory: 8 bytes from words"));
}

TEST_CASE("where nobody can know which of two accesses should come first, no side is taken") {
  const auto said = [](const std::string& first, const std::string& second) {
    const nlohmann::json report = kept(roles(first, second), kTwoWarps);
    REQUIRE(report["findings"].size() == 1);
    return report["findings"][0]["explanation"].get<std::string>();
  };
  const std::string either =
      "Nothing orders the two: a barrier, or an arrive and a wait, is missing before the read or behind it.";
  CHECK(said(lane_0(kWrite), lane_0(kRead)) == either);
  // Who reads what nothing has written yet should have waited.
  CHECK(said(lane_0("nanosleep.u32 90000;\n" + kWrite), lane_0(kRead)) != either);
}

TEST_CASE("several lines of one cause are one finding") {
  const auto findings = [](const std::string& body, const probe::Shape& shape) {
    return kept(body, shape)["findings"];
  };
  // Three warps load what a fourth stores.
  const auto readers = [](const std::string& second) {
    return kStart +
           "@%p7 bra writer;\nsetp.eq.u32 %p1, %r2, 1;\n@%p1 bra one;\nsetp.eq.u32 %p1, %r2, 2;\n@%p1 bra two;\n" +
           lane_0(kRead) + "ret;\none:\n" + lane_0(kRead) + "ret;\ntwo:\n" + lane_0(second) + "ret;\nwriter:\n" +
           lane_0(kWrite) + lane_0("st.shared.u32 [%r4+64], %r1;\n");
  };
  const probe::Shape four{.block = {128, 1, 1}};
  const nlohmann::json loads = findings(readers(kRead), four);
  REQUIRE(loads.size() == 1);
  CHECK(loads[0]["count"] == 3);
  CHECK(loads[0]["sides"][0]["also"].size() == 2);
  CHECK(loads[0]["sides"][1]["also"].empty());
  // Another store is another cause.
  CHECK(findings(readers("ld.shared.u32 %r10, [%r4+64];\nst.global.u32 [%d0], %r10;\n"), four).size() == 2);

  // Two stores lack a fence before the copy out.
  const nlohmann::json stores = findings(
      kStart + "@!%p7 bra end;\n" +
          lane_0("st.shared.u32 [%r4], %r1;\nst.shared.u32 [%r4+4], %r1;\nst.shared.v2.u32 [%r4+8], {%r1, %r1};\n"
                 "cp.async.bulk.global.shared::cta.bulk_group [%d0], [%r4], 16;\ncp.async.bulk.commit_group;\n"
                 "cp.async.bulk.wait_group.read 0;\n") +
          "end:\n",
      kTwoWarps);
  REQUIRE(stores.size() == 1);
  CHECK(stores[0]["rule"] == "proxy-fence");
  CHECK(stores[0]["sides"][0]["also"].empty());
  CHECK(stores[0]["sides"][1]["also"].size() == 2);
}

TEST_CASE("what ends a launch is found, too, and what is let pass is kept") {
  const nlohmann::json report = kept("ld.param.u64 %d0, [p0];\nld.global.u32 %r1, [%d0+2];\n", kTwoWarps);
  REQUIRE(report["findings"].size() == 1);
  const nlohmann::json& finding = report["findings"][0];
  CHECK(finding["rule"] == "misaligned");
  CHECK(finding["rank"] == "Error");
  CHECK(finding["sides"][0]["instruction"] == "ld.global.u32");
  CHECK(finding["report"].get<std::string>().starts_with("========= Error: probe: misaligned access [misaligned]\n"));
  CHECK(report["remarks"].empty());

  const auto rule = [](const std::string& body, const probe::Shape& shape = kTwoWarps) {
    const nlohmann::json all = kept(body, shape)["findings"];
    return all.empty() ? "" : all.back()["rule"].get<std::string>();
  };
  CHECK(rule("ld.param.u64 %d0, [p0];\nld.global.u32 %r1, [%d0+256];\n") == "out-of-bounds");
  CHECK(rule(kStart + "mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r4], 0;\n") == "barrier-invalid");
  CHECK(rule(kStart + "mbarrier.arrive.shared::cta.b64 %d5, [%r5], 2;\n") == "barrier-overflow");
  CHECK(rule(kStart + "setp.eq.u32 %p1, %r1, 3;\n@%p1 bar.sync 1;\n") == "aligned-divergence");
  CHECK(rule(kStart + lane_0(wait("%r5", 0))) == "hang");
  CHECK(rule(kStart + "l:\nld.volatile.shared.u32 %r9, [%r7];\nsetp.eq.u32 %p1, %r9, 0;\n@%p1 bra l;\n") == "livelock");
  CHECK(rule("trap;\n") == "trap");
  const std::string alloc = kStart +
                            "@!%p7 bra behind;\ntcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r7], 32;\n"
                            "ld.shared.u32 %r10, [%r7];\n";
  const std::string dealloc = "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r10, 32;\n";
  CHECK(rule(alloc + "behind:\n") == "tensor-memory-leak");
  CHECK(rule(alloc + dealloc + dealloc + "behind:\n") == "tensor-memory-free");
  CHECK(rule(alloc + "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r11}, [%r10+32];\ntcgen05.wait::ld.sync.aligned;\n" +
             dealloc + "behind:\n") == "tensor-memory-unallocated");
  CHECK(rule(alloc + "add.u32 %r10, %r10, 0x200000;\ntcgen05.ld.sync.aligned.32x32b.x1.b32 {%r11}, [%r10];\n" +
             dealloc + "behind:\n") == "tensor-memory-quarter");
  CHECK(rule(kStart + "ld.shared::cluster.u32 %r9, [%r4+0x5000000];\n", kPair) == "no-such-cta");

  const nlohmann::json passed =
      kept(alloc + "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r11}, [%r10];\ntcgen05.wait::ld.sync.aligned;\n" + dealloc +
               "behind:\n",
           kTwoWarps);
  REQUIRE(passed["remarks"].size() == 1);
  CHECK(passed["remarks"][0]["text"].get<std::string>().find("tcgen05.ld got NaN") != std::string::npos);
  CHECK(passed["remarks"][0]["count"] == 1);
}

TEST_CASE("the end of a CTA under its own bulk load") {
  const std::string load =
      "mbarrier.arrive.expect_tx.shared::cta.b64 %d5, [%r5], 16;\n"
      "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r4], [%d0], 16, [%r5];\n";
  CHECK(found(roles(lane_0(load), lane_0(wait("%r5", 0)))).empty());  // any thread of the CTA may wait
  CHECK(found(roles(lane_0(load + wait("%r5", 0)), "")).empty());
  CHECK(found(roles(lane_0(load), "")) == Names{"Rule bulk-load-wait"});
}
