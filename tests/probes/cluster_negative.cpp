// Mistakes with clusters: what the report says, in which schedules they show. PTX ISA, "barrier.cluster", "mbarrier",
// "st.async", "cp.async.bulk"; CUDA C++ Programming Guide, "Distributed Shared Memory". Rank 715 as an H200 answers an
// address of a CTA that is not there.

#include <fmt/format.h>

#include "tests/probes/everywhere.h"

namespace {

constexpr probe::Shape kPair{.grid = {2, 1, 1}, .block = {32, 1, 1}, .cluster = {2, 1, 1}};

constexpr probe::Shape apart(const char* why) {
  probe::Shape shape = kPair;
  shape.apart = why;
  return shape;
}
const probe::Shape kRacing = apart("what happens depends on which CTA is faster");
const probe::Shape kPasses = apart("an H200 lets it pass");

const std::string kStart = R"(
    .shared .align 8 .b64 full;
    .shared .align 128 .b32 data[256];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %cluster_ctarank;
    mov.u32 %r4, full;
    mov.u32 %r5, data;
    setp.eq.u32 %p0, %r1, 0;
    setp.eq.u32 %p1, %r2, 0;
    setp.eq.and.u32 %p2, %r1, 0, %p1;
    setp.eq.u32 %p4, %r2, 1;
    setp.eq.and.u32 %p5, %r1, 0, %p4;
    mapa.shared::cluster.u32 %r6, %r4, 1;
    mapa.shared::cluster.u32 %r7, %r5, 1;
)";
const std::string kInit = R"(
    @%p0 mbarrier.init.shared::cta.b64 [%r4], 1;
    fence.mbarrier_init.release.cluster;
)";
const std::string kSync = R"(
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
)";
const std::string kWait = R"(
  wait:
    mbarrier.try_wait.parity.shared::cta.b64 %p6, [%r4], 0;
    @!%p6 bra wait;
)";
const std::string kSleep = R"(
    mov.u32 %r20, 0;
  sleep:
    nanosleep.u32 10000;
    add.u32 %r20, %r20, 1;
    setp.lt.u32 %p7, %r20, 20;
    @%p7 bra sleep;
)";

/// The fault in each of the deterministic schedules and a random one; all reports must name all of `texts`.
void check_fault(const std::string& body, int error, const std::vector<std::string>& texts,
                 const probe::Shape& shape = kPair) {
  for (const probe::Setting& setting : probe::settings(2)) {
    probe::Ending ending = probe::failure(probe::kernel(body, 1), {}, shape, setting.options);
    INFO(setting.name << "\n" << ending.report);
    CHECK(ending.error == error);
    for (const std::string& text : texts) CHECK(ending.report.find(text) != std::string::npos);
  }
}

}  // namespace

TEST_CASE("cluster: a barrier that one CTA does not come to is a hang, and the report says which warps of whom") {
  // Rank 1 waits for an mbarrier that nobody signals; then so does rank 0 at the cluster barrier.
  std::string body = kStart + kInit + kSync + "    @!%p4 bra over;\n" + kWait + "  over:\n" + kSync;
  check_fault(
      body, 702,
      {"hangs: no thread of the cluster can go on", "waits at the cluster barrier; not arrived: CTA 1 (warps 0)",
       "waits for full of CTA 1 in the cluster: the phase of parity 0", "CTA 0 to 1 of its cluster"});
}

TEST_CASE("cluster: arriving twice, and waiting without having arrived") {
  check_fault("    barrier.cluster.arrive.aligned;\n    barrier.cluster.arrive.aligned;\n", 719,
              {"a second time in one phase"}, kPasses);
  check_fault("    barrier.cluster.wait.aligned;\n", 719, {"without a barrier.cluster.arrive before it"}, kPasses);
}

TEST_CASE("cluster: an aligned barrier in code that only some lanes reach") {
  check_fault(R"(
    mov.u32 %r1, %tid.x;
    setp.lt.u32 %p0, %r1, 7;
    @%p0 barrier.cluster.arrive.aligned;
)",
              715, {"all lanes of the warp must execute it together"}, apart("undefined by the ISA"));
}

TEST_CASE("cluster: lanes wait for the rest of their warp to arrive, as the code of ptxas does") {
  // Lanes 1 to 31 arrive only after lane 0 has stored, which it does after its arrive: nobody goes on.
  check_fault(R"(
    .shared .align 4 .b32 flag;
    mov.u32 %r1, %tid.x;
    setp.eq.u32 %p0, %r1, 0;
    mov.u32 %r2, 0;
    @%p0 st.volatile.shared.u32 [flag], %r2;
    bar.warp.sync 0xFFFFFFFF;
    @%p0 bra first;
  spin:
    ld.volatile.shared.u32 %r3, [flag];
    setp.eq.u32 %p1, %r3, 0;
    @%p1 bra spin;
    barrier.cluster.arrive;
    bra.uni both;
  first:
    barrier.cluster.arrive;
    mov.u32 %r2, 1;
    st.volatile.shared.u32 [flag], %r2;
  both:
    barrier.cluster.wait;
)",
              702, {"to arrive at the cluster barrier with it"});
}

TEST_CASE("cluster: an arrive on a barrier that the other CTA has not initialised yet") {
  // Rank 1 initialises after a while; nothing makes rank 0 wait for that.
  std::string body = kStart + "    @!%p4 bra ready;\n" + kSleep + "  ready:\n" + kInit +
                     "    @%p2 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r6];\n" + kSync;
  check_fault(body, 719, {"is no mbarrier: mbarrier.init has not been seen by now", "full of CTA 1 in the cluster"},
              kRacing);
}

TEST_CASE("cluster: bytes to a barrier that the other CTA has not initialised yet") {
  std::string body = kStart + "    @!%p4 bra ready;\n" + kSleep + "  ready:\n" + kInit +
                     "    @%p2 st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r7], %r1, [%r6];\n" + kSync;
  check_fault(body, 719, {"is no mbarrier"}, kRacing);
}

TEST_CASE("cluster: more arrivals from the other CTA than the barrier counts") {
  // 1 is wanted; two lanes arrive, then a third: the second overruns the next phase only with the third.
  std::string body = kStart + kInit + kSync + R"(
    setp.lt.u32 %p3, %r1, 2;
    and.pred %p3, %p3, %p1;
    @%p3 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r6], 2;
)" + kSync;
  check_fault(body, 719, {"mbarrier arrive beyond its count by 1", "full of CTA 1 in the cluster", "by block (0,0,0)"},
              apart("an H200 drops a remote arrive that goes beyond the count"));
}

TEST_CASE("cluster: one rank of a multicast expects other bytes than come") {
  // Both get 256 bytes; rank 1 expects 272.
  std::string body = kStart + kInit + kSync + R"(
    mov.u32 %r8, 256;
    @%p4 mov.u32 %r8, 272;
    @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], %r8;
    ld.param.u64 %d1, [p1];
    mov.u16 %h0, 3;
    @%p2 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r5], [%d1], 256, [%r4], %h0;
)" + kWait + kSync;
  std::vector<std::byte> source(256);
  for (const probe::Setting& setting : probe::settings(2)) {
    probe::Ending ending = probe::failure(probe::kernel(body, 2), {source}, kPair, setting.options);
    INFO(setting.name << "\n" << ending.report);
    CHECK(ending.error == 702);
    for (const char* text : {"waits for full of CTA 1 in the cluster", "16 bytes missing",
                             "signalled so far: bytes of a copy, CTA 0, warp 0", "not arrived: CTA 1 (warps 0)"})
      CHECK(ending.report.find(text) != std::string::npos);
  }
}

TEST_CASE("cluster: a multicast to a rank that is not there") {
  for (uint32_t mask : {0x4u, 0x7u, 0x8003u}) {
    std::string body = kStart + kInit + kSync +
                       fmt::format("    ld.param.u64 %d1, [p1];\n    mov.u16 %h0, {};\n", mask) +
                       "    @%p2 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                       "[%r5], [%d1], 256, [%r4], %h0;\n" +
                       kSync;
    std::vector<std::byte> source(256);
    probe::Ending ending = probe::failure(probe::kernel(body, 2), {source}, kPair);
    INFO(ending.report);
    CHECK(ending.error == 719);
    CHECK(ending.report.find(fmt::format("multicast to CTAs {:#06x} of a cluster of 2", mask)) != std::string::npos);
  }
}

TEST_CASE("cluster: addresses of ranks that are not there") {
  for (const char* access : {"st.shared::cluster.u32 [%r8], %r1;", "atom.shared::cluster.add.u32 %r9, [%r8], 1;",
                             "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r8];"}) {
    std::string body = kStart + kInit + kSync + "    mapa.shared::cluster.u32 %r8, %r4, 2;\n    @%p2 " + access +
                       "\n    @%p2 st.shared.u32 [data], %r9;\n" + kSync;
    check_fault(body, 719, {"names CTA 2 of a cluster of 2"});
  }
}

TEST_CASE("cluster: a CTA that has ended is not read, and what is written or told to it is lost, as on an H200") {
  // Rank 1 ends at once, rank 0 comes late: the cluster barrier before the end is missing.
  auto body = [](std::string access) {
    const bool loads = access.find("%r9") != std::string::npos;
    return kStart + kInit + kSync + "    @%p4 exit;\n" + kSleep + "    @%p2 " + access +
           "\n    @%p2 st.shared.u32 [data], " + (loads ? "%r9" : "%r1") + ";\n";
  };
  const std::vector<std::string> says{"shared memory is used after CTA 1 of the cluster had ended",
                                      "a cluster barrier before the end"};
  for (const char* access : {"ld.shared::cluster.u32 %r9, [%r7];", "red.shared::cluster.add.u32 [%r7], 1;"})
    check_fault(body(access), 719, says);
  struct Dropped {
    const char *access, *what;
  };
  for (const Dropped& d : {Dropped{"st.shared::cluster.u32 [%r7], %r1;", "a store"},
                           Dropped{"st.shared::cluster.v4.u32 [%r7], {%r1, %r1, %r1, %r1};", "a store"},
                           Dropped{"mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r6];", "a remote arrive"},
                           Dropped{"st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r7], %r1, [%r6];",
                                   "an asynchronous store"}}) {
    for (const auto& [name, with] : probe::settings(3)) {
      INFO(d.access << " " << name);
      const std::string ptx = probe::kernel(body(d.access), 1);
      probe::Machine machine(with);
      const std::vector<uint64_t> parameters{machine.buffer(std::vector<uint32_t>(4))};
      const auto fault = machine.launch(ptx, parameters, kPair);
      if (fault) FAIL(fault->report);
      const std::string remarks = machine.device().take_remarks();
      CHECK_THAT(remarks, test::contains(d.what));
      CHECK_THAT(remarks, test::contains("after its CTA of the cluster had ended and is lost"));
      CHECK_FALSE(machine.launch(ptx, parameters, kPair));
      CHECK(machine.device().take_remarks().empty());  // told once
      // With LADDER_STRICT it is an error.
      emu::Options strict = with;
      strict.strict = true;
      probe::Ending ending = probe::failure(ptx, {}, apart("LADDER_STRICT"), strict);
      CHECK(ending.error == 719);
      for (const std::string& part : says) CHECK_THAT(ending.report, test::contains(part));
    }
  }
}

TEST_CASE("cluster: a CTA that ends while a copy to it is under way, unless everything happens at once") {
  // Rank 0 sends to rank 1, which ends behind a cluster barrier: that does not wait for copies.
  std::string body = kStart + kInit + kSync + R"(
    @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 256;
    ld.param.u64 %d1, [p1];
    mov.u16 %h0, 3;
    @%p2 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r5], [%d1], 256, [%r4], %h0;
)" + kSync + "    @%p4 exit;\n" +
                     kWait;
  std::vector<std::vector<std::byte>> source{std::vector<std::byte>(256)};
  probe::Ending latest = probe::failure(probe::kernel(body, 2), source, kRacing, probe::options(emu::Schedule::latest));
  INFO(latest.report);
  CHECK(latest.error == 719);
  CHECK(latest.report.find("a bulk copy after CTA 1 of the cluster had ended") != std::string::npos);
  CHECK(probe::noticed(probe::kernel(body, 2), std::vector<std::byte>(4096, std::byte{0xEE}), source, kRacing) >= 4);
}

TEST_CASE("cluster: an arrive whose CTA goes on to end, and whose target ends without waiting for it") {
  // The relaxed barrier promises nothing for the arrive before it; the releasing one does.
  for (bool relaxed : {true, false}) {
    std::string body =
        kStart + kInit + kSync + "    @%p2 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r6];\n" +
        "    barrier.cluster.arrive" + (relaxed ? ".relaxed" : "") + ".aligned;\n    barrier.cluster.wait.aligned;\n";
    const std::string ptx = probe::kernel(body, 1);
    int late = 0;
    for (const auto& [name, options] : probe::settings(16)) {
      emu::Options with = options;
      with.strict = true;
      const probe::Ending ending = probe::launch_with(with, ptx, 4, {}, apart("LADDER_STRICT"));
      if (with.schedule == emu::Schedule::latest) CHECK(ending.error == (relaxed ? 719 : 0));
      late += ending.error != 0;
    }
    CHECK((relaxed ? late >= 6 : late == 0));
  }
}

TEST_CASE("cluster: a wait left out before another CTA's arrive is used shows in some schedules") {
  // Rank 1 shows what rank 0 stored for it without waiting for the arrive behind the stores; twin: with the wait.
  for (bool waits : {false, true}) {
    std::string body = kStart + R"(
    st.shared.u32 [data], 0;
)" + kInit + kSync + R"(
    mov.u32 %r8, 99;
    @!%p2 bra sent;
    st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r7], %r8, [%r6];
  sent:
    @%p5 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 4;
    @!%p4 bra over;
)" + (waits ? kWait : "") +
                       R"(
    ld.shared.u32 %r9, [data];
    ld.param.u64 %d0, [p0];
    @%p5 st.global.u32 [%d0], %r9;
)" + (waits ? "" : kWait) +
                       R"(
  over:
)" + kSync;
    std::vector<std::byte> good = probe::bytes_of(std::vector<uint32_t>{99});
    int noticed = probe::noticed(probe::kernel(body, 1), good, {}, kRacing);
    CHECK((waits ? noticed == 0 : noticed >= 4));
  }
}

TEST_CASE("cluster: st.async misaligned, or without a cluster") {
  check_fault(
      kStart + kInit + kSync +
          "    @%p2 st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.u32 [%r7+4], {%r1, %r1}, [%r6];\n" + kSync,
      716, {"must be a multiple of 8"});
  check_fault(kStart + kInit + kSync +
                  "    @%p2 st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r5], %r1, [%r4];\n" + kSync,
              715, {"in a launch without clusters"}, {.block = {32, 1, 1}});
}
