// cp.async without .bulk. PTX ISA, "Data Movement and Conversion Instructions: Non-bulk copy".

#include "tests/probes/everywhere.h"

namespace {

/// Thread t copies from in + 16 t to shared memory (0xAB before), then all 16 bytes go to out + 16 t.
std::vector<uint8_t> copied(const std::string& copy) {
  probe::Machine machine;
  std::vector<uint8_t> in(512);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<uint8_t>(i * 7 + 1);
  std::vector<uint64_t> parameters{machine.buffer(std::vector<uint8_t>(512)), machine.buffer(in)};
  auto fault = machine.launch(probe::kernel(R"(
    .shared .align 16 .b8 tile[512];
    .shared .align 8 .b64 ready;
    ld.param.u64 %d0, [p0]; ld.param.u64 %d1, [p1];
    mov.u32 %r0, %tid.x; mov.u32 %r1, tile; mad.lo.u32 %r1, %r0, 16, %r1;
    mad.wide.u32 %d0, %r0, 16, %d0; mad.wide.u32 %d1, %r0, 16, %d1;
    mov.b32 %r2, 0xABABABAB; st.shared.v4.b32 [%r1], {%r2, %r2, %r2, %r2};
    and.b32 %r3, %r0, 15; setp.lt.u32 %p1, %r0, 9;
)" + copy + R"(
    cp.async.commit_group; cp.async.wait_group 0; cp.async.wait_all;
    ld.shared.b128 %q0, [%r1]; st.global.b128 [%d0], %q0;
)",
                                            2),
                              parameters);
  if (fault) FAIL(fault->report);
  return machine.read<uint8_t>(parameters[0], 512);
}

}  // namespace

TEST_CASE("cp.async copies 4, 8 or 16 bytes and zero-fills what it does not read") {
  struct Case {
    const char* text;
    size_t written;
    size_t (*read)(size_t thread);
  };
  const Case kCases[] = {
      {"cp.async.ca.shared.global [%r1], [%d1], 4;", 4, [](size_t) -> size_t { return 4; }},
      {"cp.async.ca.shared::cta.global.L2::128B [%r1], [%d1], 8;", 8, [](size_t) -> size_t { return 8; }},
      {"cp.async.cg.shared.global [%r1], [%d1], 16;", 16, [](size_t) -> size_t { return 16; }},
      {"cp.async.cg.shared.global [%r1], [%d1], 16, %r3;", 16, [](size_t t) { return t & 15; }},
      {"cp.async.cg.shared.global [%r1], [%d1], 16, %p1;", 16, [](size_t t) -> size_t { return t < 9 ? 0 : 16; }},
  };
  for (const Case& c : kCases) {
    std::vector<uint8_t> got = copied(c.text);
    for (size_t t = 0; t < 32; ++t)
      for (size_t i = 0; i < 16; ++i) {
        uint8_t want = i >= c.written ? 0xAB : i < c.read(t) ? static_cast<uint8_t>((t * 16 + i) * 7 + 1) : 0;
        INFO(c.text << " thread " << t << " byte " << i);
        CHECK(got[t * 16 + i] == want);
      }
  }
}

TEST_CASE("cp.async reads nothing where it is told to ignore the source") {
  copied("setp.ge.u32 %p2, %r0, 0; mov.b64 %d3, 16; cp.async.cg.shared.global [%r1], [%d3], 16, %p2;");
  copied("mov.b64 %d3, 16; cp.async.cg.shared.global [%r1], [%d3], 16, 0;");
}

TEST_CASE("cp.async arrives on an mbarrier") {
  const std::string kBarrier = R"(
    .shared .align 16 .b8 tile[512]; .shared .align 8 .b64 ready;
    mov.u32 %r0, %tid.x; mov.u32 %r1, tile; mad.lo.u32 %r1, %r0, 16, %r1; ld.param.u64 %d1, [p1];
    setp.eq.u32 %p1, %r0, 0; @%p1 mbarrier.init.shared.b64 [ready], 32; bar.warp.sync -1;
    cp.async.ca.shared.global [%r1], [%d1], 8;
)";
  const std::string kWait = R"(
  wait: mbarrier.try_wait.parity.shared::cta.b64 %p2, [ready], 0; @!%p2 bra wait;
    ld.shared.u64 %d2, [%r1]; ld.param.u64 %d0, [p0]; mad.wide.u32 %d0, %r0, 8, %d0; st.global.u64 [%d0], %d2;
)";
  std::vector<uint64_t> want(32, 99);
  CHECK(probe::run<uint64_t>(kBarrier + "cp.async.mbarrier.arrive.noinc.shared.b64 [ready];" + kWait, 32, {99}) ==
        want);
  // Without .noinc the count grows by the arrival itself, so each thread still owes its own.
  CHECK(probe::run<uint64_t>(kBarrier +
                                 "cp.async.mbarrier.arrive.shared::cta.b64 [ready];"
                                 "mbarrier.arrive.shared::cta.b64 _, [ready];" +
                                 kWait,
                             32, {99}) == want);
}

namespace {

/// Each lane copies words 0 and 1 of its four, commits, copies word 2, commits, copies word 3; `wait` follows, and each
/// stores what it then sees of its words, which were 7 before.
std::string three_groups(const std::string& wait) {
  return probe::kernel(R"(
    .shared .align 16 .b8 tile[512]; .shared .align 8 .b64 ready;
    ld.param.u64 %d0, [p0]; ld.param.u64 %d1, [p1];
    mov.u32 %r0, %tid.x; mov.u32 %r1, tile; mad.lo.u32 %r1, %r0, 16, %r1;
    mad.wide.u32 %d0, %r0, 16, %d0; mad.wide.u32 %d1, %r0, 16, %d1;
    setp.eq.u32 %p1, %r0, 0; @%p1 mbarrier.init.shared.b64 [ready], 32; bar.warp.sync -1;
    st.shared.v4.b32 [%r1], {7, 7, 7, 7};
    cp.async.ca.shared.global [%r1], [%d1], 4; cp.async.ca.shared.global [%r1+4], [%d1+4], 4;
    cp.async.commit_group;
    cp.async.ca.shared.global [%r1+8], [%d1+8], 4;
    cp.async.commit_group;
    cp.async.ca.shared.global [%r1+12], [%d1+12], 4;
)" + wait + R"(
    ld.shared.v4.b32 {%r2, %r3, %r4, %r5}, [%r1];
    st.global.v4.b32 [%d0], {%r2, %r3, %r4, %r5};
)",
                       2);
}

std::vector<uint32_t> lanes_words() {
  std::vector<uint32_t> out(128);
  for (uint32_t i = 0; i < out.size(); ++i) out[i] = 1000 + i;
  return out;
}

}  // namespace

TEST_CASE("cp.async: what was waited for is there, under every schedule") {
  for (const char* wait : {"cp.async.wait_all;", "cp.async.commit_group; cp.async.wait_group 0;",
                           "cp.async.mbarrier.arrive.noinc.shared.b64 [ready];\n"
                           "wait: mbarrier.try_wait.parity.shared::cta.b64 %p2, [ready], 0; @!%p2 bra wait;",
                           "cp.async.mbarrier.arrive.shared.b64 [ready]; mbarrier.arrive.shared::cta.b64 _, [ready];\n"
                           "wait: mbarrier.try_wait.parity.shared::cta.b64 %p2, [ready], 0; @!%p2 bra wait;"}) {
    INFO(wait);
    CHECK(probe::everywhere<uint32_t>(three_groups(wait), 128, {probe::bytes_of(lanes_words())}) == lanes_words());
  }
  // Lanes with groups of their own: the even ones commit once more, so that theirs are one group older.
  const std::string uneven = R"(
    cp.async.commit_group;
    and.b32 %r6, %r0, 1; setp.eq.u32 %p3, %r6, 0;
    @%p3 cp.async.commit_group;
    cp.async.wait_group 1;
    @!%p3 mov.b32 %r7, 7;
    @!%p3 cp.async.wait_all;
)";
  CHECK(probe::everywhere<uint32_t>(three_groups(uneven), 128, {probe::bytes_of(lanes_words())}) == lanes_words());
}

TEST_CASE("cp.async: latest shows what nobody waited for only after the end") {
  auto seen = [](const std::string& wait) {
    return probe::values_of<uint32_t>(probe::launch_with(probe::options(emu::Schedule::latest), three_groups(wait), 512,
                                                         {probe::bytes_of(lanes_words())},
                                                         {.apart = "a GPU may be done by then"})
                                          .bytes);
  };
  struct Case {
    const char* wait;
    uint32_t there;  // words of each lane
  };
  for (const Case& c : {Case{"", 0}, Case{"cp.async.wait_group 1;", 2}, Case{"cp.async.wait_group 0;", 3},
                        Case{"cp.async.wait_group 2;", 0}, Case{"cp.async.commit_group; cp.async.wait_group 1;", 3},
                        Case{"mbarrier.arrive.shared::cta.b64 _, [ready];\n"
                             "wait: mbarrier.try_wait.parity.shared::cta.b64 %p2, [ready], 0; @!%p2 bra wait;",
                             0}}) {
    const std::vector<uint32_t> got = seen(c.wait);
    for (uint32_t i = 0; i < 128; ++i) {
      INFO(c.wait << " word " << i);
      CHECK(got[i] == (i % 4 < c.there ? 1000 + i : 7));
    }
  }
}

TEST_CASE("cp.async: random schedules find a copy that nobody waited for") {
  CHECK(probe::noticed(three_groups(""), probe::bytes_of(lanes_words()), {probe::bytes_of(lanes_words())},
                       {.apart = "a race"}) > 8);
}

TEST_CASE("cp.async is refused where the ISA forbids it") {
  CHECK_THAT(probe::fault(".shared .align 16 .b8 tile[64]; ld.param.u64 %d1, [p1];"
                          "cp.async.cg.shared.global [tile], [%d1+8], 16;"),
             test::contains("multiple of 16"));
  int error = 0;
  CHECK_THAT(probe::fault(".shared .align 16 .b8 tile[64]; ld.param.u64 %d1, [p1]; mov.u32 %r1, 17;"
                          "cp.async.cg.shared.global [tile], [%d1], 16, %r1;",
                          {}, &error),
             test::contains("src-size 17"));
  CHECK(error == 716);  // as an H200 says
}
