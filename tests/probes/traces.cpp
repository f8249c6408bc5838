// The same seed gives the same run, whatever the number of host threads: traces and results of grids whose CTAs compete
// for SMs, for tensor memory and for global memory.

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "tests/probes/wgmma_program.h"

namespace {

struct Run {
  std::string trace;
  probe::Ending ending;
};

Run traced(const std::string& ptx, size_t count, const std::vector<std::vector<std::byte>>& inputs,
           const probe::Shape& shape, emu::Options with) {
  static int number = 0;
  std::filesystem::path path = std::filesystem::temp_directory_path() /
                               ("probe_trace_" + std::to_string(getpid()) + "_" + std::to_string(++number));
  with.trace_path = path;
  Run run;
  run.ending = probe::launch_with(with, ptx, count, inputs, shape);
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  run.trace = text.str();
  std::filesystem::remove(path);
  return run;
}

/// Clocks of the events of each operation (its first value), by their names.
using Clocks = std::map<std::string, std::map<std::string, std::vector<uint64_t>>>;
Clocks clocks_of(const std::string& trace) {
  Clocks clocks;
  std::istringstream lines(trace);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    uint64_t clock, skipped;
    int lane;
    std::string event, first;
    if (words >> clock >> skipped >> skipped >> skipped >> lane >> skipped >> event >> first)
      clocks[event][first].push_back(clock);
  }
  return clocks;
}

/// Each of `count` operations is issued, has read its sources where it has any outside tensor memory, and shows, in
/// that order, once.
void check_operations(const Clocks& clocks, const std::string& name, size_t count, bool reads) {
  INFO(name);
  REQUIRE(clocks.contains(name));
  CHECK(clocks.at(name).size() == count);
  for (const auto& [operation, issued] : clocks.at(name)) {
    REQUIRE(clocks.at(name + "_shown").at(operation).size() == 1);
    CHECK(issued.size() == 1);
    uint64_t last = clocks.at(name + "_shown").at(operation)[0];
    if (reads) {
      REQUIRE(clocks.at(name + "_read").at(operation).size() == 1);
      const uint64_t read = clocks.at(name + "_read").at(operation)[0];
      CHECK(read <= last);
      last = read;
    }
    CHECK(issued[0] <= last);
  }
}

/// `p1`, ... at addresses that are the same in every run; results and traces must agree between 1 and 2 host threads.
void check(const std::string& ptx, size_t count, const probe::Shape& shape,
           const std::vector<std::vector<std::byte>>& inputs, int seeds, bool varies) {
  std::vector<emu::Options> all{probe::options(emu::Schedule::earliest), probe::options(emu::Schedule::latest)};
  for (int seed = 1; seed <= seeds; ++seed)
    all.push_back(probe::options(emu::Schedule::random, static_cast<uint64_t>(seed)));
  std::string previous;
  for (emu::Options with : all) {
    Run first = traced(ptx, count, inputs, shape, with);
    if (!first.ending.report.empty()) FAIL(first.ending.report);
    REQUIRE(std::count(first.trace.begin(), first.trace.end(), '\n') > 2 * static_cast<long>(shape.grid.count()));
    for (int threads : {2, 3}) {
      with.threads = threads;
      Run again = traced(ptx, count, inputs, shape, with);
      if (!again.ending.report.empty()) FAIL(again.ending.report);
      INFO("schedule " << static_cast<int>(with.schedule) << " seed " << with.seed << " threads " << threads);
      CHECK(again.ending.bytes == first.ending.bytes);
      CHECK((again.trace == first.trace));
    }
    if (varies && with.schedule == emu::Schedule::random) {
      CHECK((first.trace != previous));  // another seed, another run
      previous = first.trace;
    }
  }
}

}  // namespace

TEST_CASE("traces: CTAs draw tickets from a counter, more CTAs than fit the chip") {
  // Each CTA stores its ticket, and the SM it ran on.
  check(probe::kernel(R"(
    ld.param.u64 %d0, [p0];
    mov.u32 %r0, %ctaid.x;
    mov.u32 %r1, %tid.x;
    bar.sync 0;
    setp.ne.u32 %p0, %r1, 0;
    @%p0 exit;
    and.b32 %r2, %r0, 63;
    nanosleep.u32 %r2;
    atom.global.add.u32 %r3, [%d0], 1;
    mov.u32 %r4, %smid;
    mad.wide.u32 %d1, %r0, 8, %d0;
    st.global.v2.u32 [%d1+8], {%r3, %r4};
)",
                      1),
        8 + 8 * 900, {.grid = {900, 1, 1}, .block = {1024, 1, 1}, .apart = "the order in which CTAs come is left open"},
        {}, 1, false);
}

TEST_CASE("traces: tcgen05.alloc among CTAs of an SM") {
  check(probe::kernel(R"(
    .shared .align 4 .b32 address;
    ld.param.u64 %d0, [p0];
    mov.u32 %r0, %ctaid.x;
    mov.u32 %r1, %tid.x;
    and.b32 %r2, %r0, 3;
    mov.u32 %r3, 64;
    shl.b32 %r3, %r3, %r2;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [address], %r3;
    tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
    ld.shared.u32 %r4, [address];
    and.b32 %r5, %r0, 255;
    nanosleep.u32 %r5;
    setp.eq.u32 %p0, %r1, 0;
    atom.global.add.u32 %r6, [%d0], 1;
    mad.wide.u32 %d1, %r0, 8, %d0;
    @%p0 st.global.v2.u32 [%d1+8], {%r4, %r6};
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r4, %r3;
)",
                      1),
        8 + 8 * 600, {.grid = {600, 1, 1}}, {}, 1, false);
}

TEST_CASE("traces: CTAs in a chain, each waits for the flag of the one before") {
  check(probe::kernel(R"(
    ld.param.u64 %d0, [p0];
    mov.u32 %r0, %ctaid.x;
    mov.u32 %r1, %tid.x;
    setp.ne.u32 %p0, %r1, 0;
    @%p0 exit;
    setp.eq.u32 %p1, %r0, 0;
    mad.wide.u32 %d1, %r0, 4, %d0;
    mov.u32 %r2, 5;
    @%p1 bra first;
  poll:
    ld.acquire.gpu.global.u32 %r2, [%d1+-4];
    setp.eq.u32 %p2, %r2, 0xEEEEEEEE;
    @%p2 bra poll;
  first:
    mad.lo.u32 %r2, %r2, 3, %r0;
    and.b32 %r2, %r2, 0xFFFFFF;
    st.release.gpu.global.u32 [%d1], %r2;
)",
                      1),
        4 * 250, {.grid = {250, 1, 1}, .block = {64, 1, 1}}, {}, 1, true);
}

TEST_CASE("traces: an operation is issued, reads and shows") {
  for (emu::Options with : {probe::options(emu::Schedule::earliest), probe::options(emu::Schedule::latest),
                            probe::options(emu::Schedule::random, 3)}) {
    probe::MmaProgram mma;
    mma.n = 16;
    mma.steps = 3;
    mma.finish();
    auto one = [](uint32_t, uint32_t) { return 0x3C00u; };
    Run run = traced(mma.text(), 128 * 16 * 4, probe::inputs_of(mma, one, one, std::vector<uint32_t>(128 * mma.n)),
                     probe::shape_of(mma), with);
    Clocks clocks = clocks_of(run.trace);
    check_operations(clocks, "mma", 3, true);
    check_operations(clocks, "commit", 1, false);
    check_operations(clocks, "tmem_load", clocks["tmem_load"].size(), false);
    CHECK(clocks.contains("phase"));

    probe::WgmmaProgram wgmma;
    wgmma.steps = 3;
    wgmma.finish();
    const probe::WgmmaInputs inputs = probe::random_inputs(wgmma, 1, false);
    emu::Options hopper = with;
    hopper.chip = "h200";
    run = traced(wgmma.text(), size_t{128} * wgmma.registers() * 4, probe::buffers_of(wgmma, inputs),
                 probe::shape_of(wgmma), hopper);
    INFO(run.ending.report);
    check_operations(clocks_of(run.trace), "wgmma", 3, true);

    // A bulk load with a barrier, and a store of what it brought.
    run = traced(probe::kernel(R"(
    .shared .align 8 .b64 full;
    .shared .align 16 .b32 buffer[4];
    ld.param.u64 %d0, [p0];
    ld.param.u64 %d1, [p1];
    mov.u32 %r0, full;
    mov.u32 %r1, buffer;
    mbarrier.init.shared::cta.b64 [%r0], 1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r0], 16;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%d1], 16, [%r0];
  wait:
    mbarrier.try_wait.parity.shared::cta.b64 %p0, [%r0], 0;
    @!%p0 bra wait;
    cp.async.bulk.global.shared::cta.bulk_group [%d0], [%r1], 16;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
)",
                               2),
                 16, {probe::bytes_of(std::vector<uint32_t>(4))}, {.block = {1, 1, 1}}, with);
    clocks = clocks_of(run.trace);
    check_operations(clocks, "tma_load", 1, true);
    check_operations(clocks, "tma_store", 1, true);
    CHECK_THAT(run.trace, test::contains(" full\n"));  // the barrier's name
  }
}

TEST_CASE("traces: waits end") {
  // A lane that waits for nothing gives up again and again, until another one's sleep is over and it arrives.
  const Run run = traced(probe::kernel(R"(
    .shared .align 8 .b64 full;
    ld.param.u64 %d0, [p0];
    mov.u32 %r0, full;
    mov.u32 %r1, %tid.x;
    setp.eq.u32 %p1, %r1, 0;
    @%p1 mbarrier.init.shared::cta.b64 [%r0], 1;
    bar.sync 0;
    @%p1 bra wait;
    nanosleep.u32 20000;
    mbarrier.arrive.shared::cta.b64 _, [%r0];
    bra over;
  wait:
    mbarrier.try_wait.parity.shared::cta.b64 %p0, [%r0], 0;
    @!%p0 bra wait;
  over:
    st.global.u32 [%d0], %r1;
)",
                                       1),
                         4, {}, {.block = {2, 1, 1}, .apart = "which thread stores last is left open"},
                         probe::options(emu::Schedule::earliest));
  REQUIRE(run.ending.report.empty());
  const Clocks clocks = clocks_of(run.trace);
  const size_t waits = clocks.at("wait_mbarrier").at("0x1").size();
  CHECK(waits > 2);
  CHECK(clocks.at("gave_up").at("0x1").size() == waits - 1);
  CHECK(clocks.at("resumed").at("0x1").size() == 1);
  CHECK(clocks.at("wait_time").size() == 1);
}

TEST_CASE("traces: MMA, commit and loads from tensor memory in a grid") {
  probe::MmaProgram program;
  program.n = 16;
  program.steps = 2;
  program.finish();
  auto one = [](uint32_t row, uint32_t k) { return 0x3C00u + (row ^ k) % 4 * 256; };
  probe::Shape shape = probe::shape_of(program);
  shape.grid = {160, 1, 1};
  check(program.text(), 128 * 16 * 4, shape,
        probe::inputs_of(program, one, one, std::vector<uint32_t>(128 * program.n)), 2, true);
}

TEST_CASE("traces: integer reductions by the TMA unit from all CTAs") {
  check(probe::kernel(R"(
    .shared .align 16 .b32 buffer[4];
    ld.param.u64 %d0, [p0];
    mov.u32 %r0, %ctaid.x;
    mov.u32 %r1, buffer;
    st.shared.v4.u32 [buffer], {%r0, %r0, %r0, %r0};
    fence.proxy.async.shared::cta;
    cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%d0], [%r1], 16;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
)",
                      1),
        16, {.grid = {400, 1, 1}, .block = {1, 1, 1}}, {}, 1, true);
}

TEST_CASE("traces: sums of f32 by the TMA unit from all CTAs, whose bits depend on the order") {
  // The sum starts at -0x1.DDDDDCp+94 (the bytes 0xEE); the terms lie around 2^89, so each addition rounds.
  check(probe::kernel(R"(
    .shared .align 16 .b32 buffer[4];
    ld.param.u64 %d0, [p0];
    mov.u32 %r0, %ctaid.x;
    mov.u32 %r1, buffer;
    mul.lo.u32 %r3, %r0, 14983;
    or.b32 %r3, %r3, 0x6C000000;
    st.shared.v4.b32 [buffer], {%r3, %r3, %r3, %r3};
    fence.proxy.async.shared::cta;
    cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%d0], [%r1], 16;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
)",
                      1),
        16, {.grid = {400, 1, 1}, .block = {1, 1, 1}, .apart = "the order in which CTAs come is left open"}, {}, 2,
        true);
}

TEST_CASE("traces: clusters whose CTAs store into each other and arrive at each other's barriers") {
  // A ring of 4: st.async and a remote arrive to the next rank, then a multicast to all, in more clusters than fit.
  const std::string ptx = probe::kernel(R"(
    .shared .align 8 .b64 full[2];
    .shared .align 128 .b32 data[64];
    ld.param.u64 %d0, [p0];
    ld.param.u64 %d1, [p1];
    mov.u32 %r0, %ctaid.x;
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %cluster_ctarank;
    mov.u32 %r4, full;
    mov.u32 %r5, data;
    setp.eq.u32 %p0, %r1, 0;
    mov.u32 %r6, 33;
    @%p0 mbarrier.init.shared::cta.b64 [%r4], %r6;
    mov.u32 %r6, 1;
    @%p0 mbarrier.init.shared::cta.b64 [%r4+8], %r6;
    fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 128;
    @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4+8], 128;
    add.u32 %r7, %r2, 1;
    and.b32 %r7, %r7, 3;
    mapa.shared::cluster.u32 %r8, %r4, %r7;
    shl.b32 %r9, %r1, 2;
    add.u32 %r9, %r9, %r5;
    mapa.shared::cluster.u32 %r10, %r9, %r7;
    mad.lo.u32 %r11, %r0, 100, %r1;
    st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r10], %r11, [%r8];
    mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r8];
    setp.eq.u32 %p1, %r2, 2;
    and.pred %p2, %p0, %p1;
    mov.u16 %h0, 15;
    @%p2 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r5+128], [%d1], 128, [%r4+8], %h0;
  first:
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p3, [%r4], 0;
    @!%p3 bra first;
  second:
    mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r4+8], 0;
    @!%p3 bra second;
    ld.shared.u32 %r12, [%r9];
    ld.shared.u32 %r13, [%r9+128];
    mad.lo.u32 %r14, %r0, 32, %r1;
    mad.wide.u32 %d2, %r14, 8, %d0;
    st.global.v2.u32 [%d2], {%r12, %r13};
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
)",
                                        2);
  constexpr uint32_t kCtas = 300;
  probe::Shape shape{.grid = {kCtas, 1, 1}, .cluster = {4, 1, 1}, .dynamic_shared_bytes = 200'000};
  std::vector<uint32_t> source(32);
  for (uint32_t i = 0; i < 32; ++i) source[i] = 5 * i;
  check(ptx, kCtas * 32 * 8, shape, {probe::bytes_of(source)}, 3, true);
  std::vector<uint32_t> got =
      probe::values_of<uint32_t>(probe::launch_with(probe::options(emu::Schedule::random, 7, 3), ptx, kCtas * 256,
                                                    {probe::bytes_of(source)}, shape)
                                     .bytes);
  for (uint32_t cta = 0; cta < kCtas; ++cta)
    for (uint32_t lane = 0; lane < 32; ++lane) {
      REQUIRE(got[(cta * 32 + lane) * 2] == (cta / 4 * 4 + (cta + 3) % 4) * 100 + lane);
      REQUIRE(got[(cta * 32 + lane) * 2 + 1] == 5 * lane);
    }
}

TEST_CASE("traces: CTAs that take over each other's work ask in the same order whatever the host does") {
  // Each piece is marked with the CTA that did it.
  check(probe::kernel(R"(
    .shared .align 8 .b64 full;
    .shared .align 16 .b128 response;
    ld.param.u64 %d0, [p0];
    mov.u32 %r0, %ctaid.x;
    mov.u32 %r1, %r0;
    mov.u32 %r2, 0;
    mbarrier.init.shared::cta.b64 [full], 1;
    mov.u32 %r4, full;
    mov.u32 %r5, response;
  again:
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 16;
    clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r5], [%r4];
    mad.wide.u32 %d1, %r1, 4, %d0;
    st.global.u32 [%d1], %r0;
    mul.lo.u32 %r3, %r1, 37;
    and.b32 %r3, %r3, 127;
    nanosleep.u32 %r3;
  wait:
    mbarrier.try_wait.parity.shared::cta.b64 %p0, [%r4], %r2;
    @!%p0 bra wait;
    xor.b32 %r2, %r2, 1;
    ld.shared.b128 %q0, [%r5];
    clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p1, %q0;
    @!%p1 bra over;
    clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r1, %q0;
    fence.proxy.async.shared::cta;
    bra again;
  over:
)",
                      1),
        4 * 900, {.grid = {900, 1, 1}, .block = {1, 1, 1}, .dynamic_shared_bytes = 200'000}, {}, 2, true);
}
