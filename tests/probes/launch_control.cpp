// Cluster launch control: every piece of a grid is done once, by a cluster that was launched or by one that took it
// over. PTX ISA, "clusterlaunchcontrol.try_cancel", "clusterlaunchcontrol.query_cancel". The response's bits are those
// that ptxas's code for the queries picks.

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "emulator/hazards/findings.h"
#include "tests/probes/everywhere.h"

namespace {

using Words = std::vector<uint32_t>;
using Dim3 = emu::Dim3;

/// A kernel whose clusters do their own piece, then one after the other that they can take over. For each CTA of the
/// grid two words at p0: how often it was done (on top of 0xEEEEEEEE), and 1 more than the number of the CTA that did
/// it. `multicast`: the first CTA of a cluster asks for all of them.
std::string persistent(bool multicast, const std::string& query) {
  return probe::kernel(fmt::format(R"(
    .shared .align 8 .b64 full;
    .shared .align 16 .b128 response;
    ld.param.u64 %d0, [p0];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %cluster_ctarank;
    mov.u32 %r4, full;
    mov.u32 %r5, response;
    mov.u32 %r6, %ctaid.x;
    mov.u32 %r7, %ctaid.y;
    mov.u32 %r8, %ctaid.z;
    mov.u32 %r9, %nctaid.x;
    mov.u32 %r10, %nctaid.y;
    mad.lo.u32 %r11, %r8, %r10, %r7;
    mad.lo.u32 %r11, %r11, %r9, %r6;
    setp.eq.u32 %p0, %r1, 0;
    @%p0 mbarrier.init.shared::cta.b64 [%r4], 1;
    fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    mov.u32 %r12, 0;
  again:
    @%p0 mbarrier.arrive.expect_tx.relaxed.cluster.shared::cta.b64 _, [%r4], 16;
    setp.eq.u32 %p1, %r2, 0;
    {1}
    @%p1 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes{0}.b128 [%r5], [%r4];
    mad.lo.u32 %r13, %r8, %r10, %r7;
    mad.lo.u32 %r13, %r13, %r9, %r6;
    mad.wide.u32 %d1, %r13, 8, %d0;
    @%p0 red.global.add.u32 [%d1], 1;
    @%p0 red.global.add.u32 [%d1+4], %r11;
  wait:
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r4], %r12;
    @!%p2 bra wait;
    xor.b32 %r12, %r12, 1;
    ld.shared.b128 %q0, [%r5];
    clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p3, %q0;
    @!%p3 bra over;
    {2}
    mov.u32 %r14, %cluster_ctaid.x;
    add.u32 %r6, %r6, %r14;
    mov.u32 %r14, %cluster_ctaid.y;
    add.u32 %r7, %r7, %r14;
    mov.u32 %r14, %cluster_ctaid.z;
    add.u32 %r8, %r8, %r14;
    fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;
    barrier.cluster.arrive.relaxed.aligned;
    barrier.cluster.wait.aligned;
    fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;
    bra again;
  over:
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
)",
                                   multicast ? ".multicast::cluster::all" : "",
                                   multicast ? "and.pred %p1, %p1, %p0;" : "and.pred %p1, %p0, %p0;", query),
                       1);
}

const std::string kVector = "clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r6, %r7, %r8, _}, %q0;";
const std::string kSingle = R"(
    clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r6, %q0;
    clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 %r7, %q0;
    clusterlaunchcontrol.query_cancel.get_first_ctaid::z.b32.b128 %r8, %q0;
)";

probe::Shape shape(Dim3 grid, Dim3 cluster) {
  return {.grid = grid, .block = {64, 1, 1}, .cluster = cluster, .dynamic_shared_bytes = 200'000};
}

/// Each piece once, by a CTA at the same place in a cluster that took up its own work: at most as many as fit.
void check(const Words& got, Dim3 grid, Dim3 cluster) {
  uint32_t number = 0;
  size_t taken = 0;
  for (uint32_t z = 0; z < grid.z; ++z)
    for (uint32_t y = 0; y < grid.y; ++y)
      for (uint32_t x = 0; x < grid.x; ++x, ++number) {
        REQUIRE(got[2 * number] == 0xEEEEEEEF);
        uint32_t by = got[2 * number + 1] - 0xEEEEEEEE;
        REQUIRE(by < grid.count());
        CHECK(by % grid.x % cluster.x == x % cluster.x);
        CHECK(by / grid.x % grid.y % cluster.y == y % cluster.y);
        taken += by != number;
      }
  CHECK(taken >= grid.count() - 148);  // a B200 holds 148 of these CTAs at once
  CHECK(taken < grid.count());
}

}  // namespace

TEST_CASE("launch control: single CTAs take over the rest of a grid, each piece once") {
  for (const std::string& query : {kVector, kSingle})
    for (Dim3 grid : {Dim3{700, 1, 1}, Dim3{13, 11, 5}}) {
      std::string ptx = persistent(false, query);
      for (const probe::Setting& setting : probe::settings(3)) {
        probe::Ending ending = probe::launch_with(setting.options, ptx, grid.count() * 8, {}, shape(grid, {}));
        INFO(setting.name << "\n" << ending.report);
        REQUIRE(ending.error == 0);
        check(probe::values_of<uint32_t>(ending.bytes), grid, {});
      }
    }
}

TEST_CASE("launch control: clusters take over clusters; one CTA asks and all are told") {
  for (auto [grid, cluster] : {std::pair{Dim3{600, 1, 1}, Dim3{2, 1, 1}}, std::pair{Dim3{16, 20, 2}, Dim3{2, 2, 1}}}) {
    std::string ptx = persistent(true, kVector);
    for (const probe::Setting& setting : probe::settings(3)) {
      probe::Ending ending = probe::launch_with(setting.options, ptx, grid.count() * 8, {}, shape(grid, cluster));
      INFO(setting.name << "\n" << ending.report);
      REQUIRE(ending.error == 0);
      check(probe::values_of<uint32_t>(ending.bytes), grid, cluster);
    }
  }
}

namespace {

/// On a chip of two SMs with room for one CTA each, CTA 0 asks `most` times, or until nothing is left, while CTA 1
/// holds the other SM. p0: a counter, the clusters that CTA 0 is given, in order; in `started` the order in which the
/// others start: each takes a number from the counter.
std::string asking(uint32_t most) {
  return probe::kernel(fmt::format(R"(
    .shared .align 8 .b64 full;
    .shared .align 16 .b128 response;
    ld.param.u64 %d0, [p0];
    ld.param.u64 %d1, [p1];
    mov.u32 %r0, %ctaid.x;
    setp.eq.u32 %p0, %r0, 0;
    @%p0 bra first;
    setp.ne.u32 %p0, %r0, 1;
    @%p0 bra other;
  until_asked:
    ld.acquire.gpu.global.u32 %r1, [%d0];
    setp.eq.u32 %p0, %r1, 0;
    @%p0 bra until_asked;
    ret;
  other:
    atom.global.add.u32 %r1, [%d1], 1;
    mad.wide.u32 %d1, %r1, 4, %d1;
    st.global.u32 [%d1+4], %r0;
    ret;
  first:
    mov.u32 %r4, full;
    mov.u32 %r5, response;
    mbarrier.init.shared::cta.b64 [%r4], 1;
    mov.u32 %r2, 0;
    mov.u32 %r3, 0;
    mov.u64 %d2, %d0;
  again:
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 16;
    clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r5], [%r4];
  wait:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r4], %r2;
    @!%p1 bra wait;
    xor.b32 %r2, %r2, 1;
    ld.shared.b128 %q0, [%r5];
    clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p2, %q0;
    @!%p2 bra over;
    clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r6, %q0;
    add.u32 %r3, %r3, 1;
    add.u64 %d2, %d2, 4;
    st.global.u32 [%d2], %r6;
    fence.proxy.async.shared::cta;
    setp.lt.u32 %p3, %r3, {};
    @%p3 bra again;
  over:
    st.release.gpu.global.u32 [%d0], %r3;
)",
                                   most),
                       2);
}

struct Asked {
  Words given, started;
};
Asked ask(emu::Options with, uint32_t most) {
  constexpr uint32_t kCtas = 14;
  with.sms = 2;
  probe::Machine machine(with);
  const uint64_t given = machine.buffer(Words(kCtas + 1)), started = machine.buffer(Words(kCtas + 1));
  const auto fault = machine.launch(asking(most), {given, started},
                                    {.grid = {kCtas, 1, 1},
                                     .block = {1, 1, 1},
                                     .dynamic_shared_bytes = 200'000,
                                     .apart = "which CTA is given to whom is the chip's affair"});
  if (fault) FAIL(fault->report);
  const auto list = [&](uint64_t at) {
    Words words = machine.read<uint32_t>(at, kCtas + 1);
    words.resize(words[0] + 1);
    words.erase(words.begin());
    return words;
  };
  return {list(given), list(started)};
}

}  // namespace

TEST_CASE("launch control: which cluster is handed out is the schedule's choice") {
  const Words others{2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13};
  CHECK(ask(probe::options(emu::Schedule::earliest), 99).given == others);
  CHECK(ask(probe::options(emu::Schedule::latest), 99).given == Words(others.rbegin(), others.rend()));
  std::set<Words> orders;
  for (uint64_t seed = 1; seed <= 16; ++seed) {
    Words given = ask(probe::options(emu::Schedule::random, seed), 99).given;
    for (int threads : {2, 3}) CHECK(ask(probe::options(emu::Schedule::random, seed, threads), 99).given == given);
    orders.insert(given);
    std::sort(given.begin(), given.end());
    CHECK(given == others);
  }
  CHECK(orders.size() == 16);
}

TEST_CASE("launch control: clusters that nobody takes over start in the order of their numbers") {
  for (const probe::Setting& setting : probe::settings(16)) {
    INFO(setting.name);
    const Asked asked = ask(setting.options, 5);
    CHECK(asked.given.size() == 5);
    Words all = asked.given;
    all.insert(all.end(), asked.started.begin(), asked.started.end());
    std::sort(all.begin(), all.end());
    CHECK(all == Words{2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13});
    CHECK(std::is_sorted(asked.started.begin(), asked.started.end()));
  }
}

TEST_CASE("launch control: no hazard in the example's way of handing answers on, and one without its fences") {
  const auto names = [](const std::string& ptx) {
    std::set<std::string> all;
    for (probe::Setting setting : probe::settings(4)) {
      setting.options.sms = 4;
      setting.options.check = true;
      probe::Machine machine(setting.options);
      probe::Shape with = shape({16, 1, 1}, {2, 1, 1});
      with.apart = "what is left depends on which CTA takes which";
      const auto fault = machine.launch(ptx, {machine.buffer(Words(32))}, with);
      if (fault) FAIL(fault->report);
      const nlohmann::json report = nlohmann::json::parse(machine.device().findings().json());
      for (const auto& finding : report["findings"])
        all.insert(finding["rank"].get<std::string>() + " " + finding["rule"].get<std::string>());
    }
    return all;
  };
  const std::string whole = persistent(true, kVector);
  CHECK(names(whole).empty());
  for (const std::string fence : {"release.sync_restrict::shared::cta", "acquire.sync_restrict::shared::cluster"}) {
    std::string without = whole;
    const std::string line = "    fence.proxy.async::generic." + fence + ".cluster;\n";
    without.erase(without.find(line), line.size());
    CHECK(names(without) == std::set<std::string>{"Rule warp-sync", "Rule weak-order"});
  }
}

TEST_CASE("launch control: the bits of the response") {
  // The first CTA of a grid that does not fit shows what it gets; the piece it took over is the first that did not fit.
  const std::string ptx = probe::kernel(R"(
    .shared .align 8 .b64 full;
    .shared .align 16 .b128 response;
    ld.param.u64 %d0, [p0];
    mov.u32 %r6, %ctaid.x;
    mov.u32 %r7, %ctaid.y;
    mov.u32 %r8, %ctaid.z;
    or.b32 %r9, %r6, %r7;
    or.b32 %r9, %r9, %r8;
    setp.ne.u32 %p0, %r9, 0;
    @%p0 bra rest;
    mbarrier.init.shared::cta.b64 [full], 1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 16;
    clusterlaunchcontrol.try_cancel.async.mbarrier::complete_tx::bytes.b128 [%d1], [%d2];
  wait:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [full], 0;
    @!%p1 bra wait;
    ld.shared.v4.u32 {%r10, %r11, %r12, %r13}, [response];
    st.global.v4.u32 [%d0], {%r10, %r11, %r12, %r13};
    exit;
  rest:
    nanosleep.u32 100000;
)",
                                        1);
  std::string generic = ptx;
  generic.replace(generic.find("    mbarrier.init"), 0, R"(    mov.u32 %r1, response;
    cvt.u64.u32 %d1, %r1;
    cvta.shared.u64 %d1, %d1;
    mov.u32 %r1, full;
    cvt.u64.u32 %d2, %r1;
    cvta.shared.u64 %d2, %d2;
)");
  probe::Shape large{.grid = {3, 70, 2}, .block = {1, 1, 1}, .dynamic_shared_bytes = 200'000};
  Words got = probe::values_of<uint32_t>(
      probe::launch_with(probe::options(emu::Schedule::earliest), generic, 16, {}, large).bytes);
  // 148 CTAs start; number 148 of 3 x 70 x 2 is (1, 49, 0).
  CHECK(got == Words{1, 49, 1, 0});
  large.grid = {3, 40, 3};  // number 148 is (1, 9, 1)
  got = probe::values_of<uint32_t>(
      probe::launch_with(probe::options(emu::Schedule::earliest), generic, 16, {}, large).bytes);
  CHECK(got == Words{1, 9 | 1 << 16, 1, 0});
  large.grid = {3, 1, 1};  // all have started: nothing is left
  got = probe::values_of<uint32_t>(
      probe::launch_with(probe::options(emu::Schedule::earliest), generic, 16, {}, large).bytes);
  CHECK((got[2] & 1) == 0);
}

namespace {

const std::string kStart = R"(
    .shared .align 8 .b64 full;
    .shared .align 16 .b128 response;
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %cluster_ctarank;
    mov.u32 %r4, full;
    mov.u32 %r5, response;
    setp.eq.u32 %p0, %r1, 0;
    @%p0 mbarrier.init.shared::cta.b64 [%r4], 1;
    fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
)";
const std::string kAsk = R"(
    @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 16;
    @%p0 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r5], [%r4];
)";
std::string wait(const std::string& label, int parity) {
  return fmt::format("  {0}:\n    mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r4], {1};\n    @!%p2 bra {0};\n",
                     label, parity);
}
const std::string kLook = R"(
    ld.shared.b128 %q0, [%r5];
    clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p3, %q0;
    ld.param.u64 %d0, [p0];
    @%p3 st.global.u32 [%d0], %r1;
)";

void check_fault(const std::string& body, int error, const std::vector<std::string>& texts,
                 const probe::Shape& with = {.block = {32, 1, 1}}) {
  for (const probe::Setting& setting : probe::settings(1)) {
    probe::Ending ending = probe::failure(probe::kernel(body, 1), {}, with, setting.options);
    INFO(setting.name << "\n" << ending.report);
    CHECK(ending.error == error);
    for (const std::string& text : texts) CHECK(ending.report.find(text) != std::string::npos);
  }
}

}  // namespace

TEST_CASE("launch control: asking again after the answer was no") {
  check_fault(kStart + kAsk + wait("first", 0) + kLook + "    bar.warp.sync 0xFFFFFFFF;\n" + kAsk + wait("second", 1),
              719, {"after this CTA has seen that no cluster was left"});
  // Two requests under way at once are fine: the first answer has not been looked at.
  std::string two = kStart + kAsk + R"(
    @%p0 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r4], 0;
)" + wait("first", 0) +
                    kAsk + wait("second", 1) + kLook;
  for (const probe::Setting& setting : probe::settings(2))
    CHECK(probe::launch_with(setting.options, probe::kernel(two, 1), 4, {}, {.block = {32, 1, 1}}).error == 0);
}

TEST_CASE("launch control: a response at a wrong address, a barrier that is none") {
  check_fault(kStart +
                  "    @%p0 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 "
                  "[%r5+8], [%r4];\n",
              716, {"must be 16-byte aligned"});
  check_fault(kStart +
                  "    @%p0 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 "
                  "[%r5], [%r5];\n",
              719, {"is no mbarrier"});
}

TEST_CASE("launch control: with multicast each CTA must expect the bytes on its own barrier") {
  // Only the first does: the others' barriers keep waiting for an arrival, with 16 bytes too many.
  check_fault(kStart + R"(
    setp.eq.and.u32 %p1, %r2, 0, %p0;
    @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 16;
    @%p1 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128 [%r5], [%r4];
)" + wait("first", 0) +
                  "    barrier.cluster.arrive.aligned;\n    barrier.cluster.wait.aligned;\n",
              702,
              {"waits for full of CTA 1 in the cluster", "1 of 1 arrival missing, 16 bytes more than were expected"},
              {.grid = {2, 1, 1}, .block = {32, 1, 1}, .cluster = {2, 1, 1}});
}

TEST_CASE("launch control: two warps that both ask and expect") {
  // The barrier counts one arrival: the second warp's belongs to the next phase, and its third overruns.
  check_fault(kStart + R"(
    and.b32 %r6, %r1, 31;
    setp.eq.u32 %p0, %r6, 0;
    @%p0 mbarrier.arrive.shared::cta.b64 _, [%r4], 2;
)" + kAsk,
              719, {"mbarrier arrive beyond its count by 1"}, {.block = {64, 1, 1}});
}
