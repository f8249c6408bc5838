// mbarrier: the object, arrivals, bytes, phases. PTX ISA, "mbarrier"; the raw word, the order of bytes and arrivals,
// and the faults as an H200 shows them (715 for a CTA that is not there and for a generic address outside shared
// memory).

#include <numeric>

#include "tests/probes/everywhere.h"

namespace {

using Word = uint64_t;

/// The word as an H200 holds it: 63 phase parity, 62-43 2^20 - pending, 41-21 completed minus expected bytes, 20-1
/// 2^20 - expected.
Word word(uint64_t parity, int64_t pending, int64_t expected, int64_t missing_bytes) {
  const auto field = [](int64_t value, int bits) { return static_cast<uint64_t>(value) & ((uint64_t{1} << bits) - 1); };
  return parity << 63 | field((1 << 20) - pending, 20) << 43 | field(-missing_bytes, 21) << 21 |
         field((1 << 20) - expected, 20) << 1;
}

const std::string kStart = R"(
    .shared .align 8 .b64 bar[8];
    ld.param.u64 %d0, [p0];
    mov.u32 %r0, bar;
    mov.u32 %r1, %tid.x;
)";
constexpr probe::Shape kOneThread{.block = {1, 1, 1}};

/// A thread executes each line, then stores the 64 bits of %d1 (which a line may set) to the output.
std::vector<Word> after_each(const std::vector<std::string>& lines, const std::string& then) {
  std::string body = kStart;
  for (size_t i = 0; i < lines.size(); ++i)
    body += "    " + lines[i] + "\n    " + then + "\n    st.global.b64 [%d0+" + std::to_string(8 * i) + "], %d1;\n";
  return probe::everywhere<Word>(probe::kernel(body, 1), lines.size(), {}, kOneThread, 2);
}

const std::string kReadWord = "ld.volatile.shared.b64 %d1, [%r0];";
/// %d1: bit 0 = test_wait of parity 0, bit 1 = of parity 1.
const std::string kReadParities = R"(
    mbarrier.test_wait.parity.shared::cta.b64 %p0, [%r0], 0;
    mbarrier.test_wait.parity.shared::cta.b64 %p1, [%r0], 1;
    selp.b64 %d1, 1, 0, %p0;
    @%p1 or.b64 %d1, %d1, 2;)";

probe::Ending fault_of(const std::string& line) {
  return probe::failure(probe::kernel(kStart + line, 1), {}, kOneThread);
}

}  // namespace

TEST_CASE("mbarrier: the word after every operation is the one an H200 holds") {
  struct Step {
    std::string line;
    Word after;
  };
  const std::vector<Step> steps{
      {"mbarrier.init.shared::cta.b64 [%r0], 3;", word(0, 3, 3, 0)},
      {"mbarrier.arrive.shared::cta.b64 _, [%r0];", word(0, 2, 3, 0)},
      {"mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r0], 4096;", word(0, 2, 3, 4096)},
      {"mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%r0], 1024;", word(0, 2, 3, 3072)},
      {"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r0], 16;", word(0, 1, 3, 3088)},
      {"mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%r0], 3088;", word(0, 1, 3, 0)},
      {"mbarrier.arrive.shared::cta.b64 _, [%r0];", word(1, 3, 3, 0)},
      {"mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%r0], 64;", word(1, 3, 3, -64)},
      {"mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r0], 64;", word(1, 3, 3, 0)},
      {"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r0], 0;", word(1, 2, 3, 0)},
      {"mbarrier.arrive.shared::cta.b64 _, [%r0], 2;", word(0, 3, 3, 0)},
      {"mbarrier.arrive_drop.shared::cta.b64 _, [%r0];", word(0, 2, 2, 0)},
      {"mbarrier.arrive.noComplete.shared::cta.b64 %d2, [%r0], 1;", word(0, 1, 2, 0)},
      {"mbarrier.arrive.shared::cta.b64 _, [%r0];", word(1, 2, 2, 0)},
      {"mbarrier.arrive_drop.expect_tx.shared::cta.b64 _, [%r0], 128;", word(1, 1, 1, 128)},
      {"mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r0], 1048447;", word(1, 1, 1, 1048575)},
      // No arrival missing, only bytes: the field of the pending count is 0, as if it were 2^20.
      {"mbarrier.arrive.shared::cta.b64 _, [%r0];", word(1, 0, 1, 1048575)},
  };
  std::vector<std::string> lines;
  for (const Step& step : steps) lines.push_back(step.line);
  std::vector<Word> got = after_each(lines, kReadWord);
  for (size_t i = 0; i < steps.size(); ++i) {
    INFO(steps[i].line << " leaves " << probe::hex(got[i]) << ", not " << probe::hex(steps[i].after));
    CHECK(got[i] == steps[i].after);
  }
}

TEST_CASE("mbarrier: every count from 1 to 2^20 - 1 can be initialised") {
  for (int64_t count : {1, 2, 32, 1000, 0xFFFFF}) {
    std::vector<Word> got =
        after_each({"mbarrier.init.shared::cta.b64 [%r0], " + std::to_string(count) + ";"}, kReadWord);
    CHECK(got[0] == word(0, count, count, 0));
    CHECK(got[0] == ((uint64_t{1} << 20) - static_cast<uint64_t>(count)) * ((uint64_t{1} << 43) + 2));
  }
  CHECK(fault_of("mov.u32 %r2, 0; mbarrier.init.shared::cta.b64 [%r0], %r2;").report.find("1..1048575") !=
        std::string::npos);
  CHECK(fault_of("mov.u32 %r2, 0x100000; mbarrier.init.shared::cta.b64 [%r0], %r2;").error == 719);
}

TEST_CASE("mbarrier: a wait for a parity is true once the phase of that parity is over") {
  // A fresh barrier runs phase 0: parity 0 is not over, parity 1 (the phase before) is.
  std::vector<Word> got = after_each({"mbarrier.init.shared::cta.b64 [%r0], 2;",    //
                                      "mbarrier.arrive.shared::cta.b64 _, [%r0];",  //
                                      "mbarrier.arrive.shared::cta.b64 _, [%r0];",  //
                                      "mbarrier.arrive.shared::cta.b64 _, [%r0], 2;"},
                                     kReadParities);
  CHECK(got == std::vector<Word>{2, 2, 1, 2});
}

TEST_CASE("mbarrier: of a parity only the lowest bit counts, as on an H200") {
  std::vector<Word> got;
  for (const char* parities : {"2, 3", "4, 7", "0xFFFFFFFE, 0xFFFFFFFF"}) {
    std::string text = parities, even = text.substr(0, text.find(',')), odd = text.substr(text.find(',') + 2);
    got = after_each({"mbarrier.init.shared::cta.b64 [%r0], 1;", "mbarrier.arrive.shared::cta.b64 _, [%r0];"},
                     "mov.u32 %r5, " + even + "; mov.u32 %r6, " + odd + R"(;
    mbarrier.test_wait.parity.shared::cta.b64 %p0, [%r0], %r5;
    mbarrier.test_wait.parity.shared::cta.b64 %p1, [%r0], %r6;
    selp.b64 %d1, 1, 0, %p0;
    @%p1 or.b64 %d1, %d1, 2;)");
    CHECK(got == std::vector<Word>{2, 1});
  }
}

TEST_CASE("mbarrier: a phase ends when arrivals and bytes are both complete, in whatever order") {
  // Bytes last.
  std::vector<Word> got =
      after_each({"mbarrier.init.shared::cta.b64 [%r0], 1;", "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r0], 48;",
                  "mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%r0], 32;",
                  "mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%r0], 16;"},
                 kReadParities);
  CHECK(got == std::vector<Word>{2, 2, 2, 1});
  // Bytes before they are expected: the arrival that is still missing holds the phase open.
  got = after_each(
      {"mbarrier.init.shared::cta.b64 [%r0], 1;", "mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%r0], 48;",
       "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r0], 48;"},
      kReadParities);
  CHECK(got == std::vector<Word>{2, 2, 1});
  // More bytes than expected so far, after the last arrival: still open until they are expected.
  got = after_each(
      {"mbarrier.init.shared::cta.b64 [%r0], 1;", "mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%r0], 48;",
       "mbarrier.arrive.shared::cta.b64 _, [%r0];", "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r0], 48;"},
      kReadParities);
  CHECK(got == std::vector<Word>{2, 2, 2, 1});
}

TEST_CASE("mbarrier: state tokens name their phase, and pending_count is the count before the arrive") {
  const std::string body = kStart + R"(
    mbarrier.init.shared::cta.b64 [%r0], 3;
    mbarrier.arrive.shared::cta.b64 %d1, [%r0];
    mbarrier.arrive.shared::cta.b64 %d2, [%r0];
    mbarrier.pending_count.b64 %r2, %d1;
    mbarrier.pending_count.b64 %r3, %d2;
    mbarrier.test_wait.shared::cta.b64 %p0, [%r0], %d1;
    mbarrier.arrive.shared::cta.b64 %d3, [%r0];
    mbarrier.pending_count.b64 %r4, %d3;
    mbarrier.test_wait.shared::cta.b64 %p1, [%r0], %d1;
    mbarrier.try_wait.shared::cta.b64 %p2, [%r0], %d3;
    mbarrier.arrive.shared::cta.b64 %d4, [%r0];
    mbarrier.test_wait.shared::cta.b64 %p3, [%r0], %d4;
    mbarrier.pending_count.b64 %r5, %d4;
    selp.u32 %r6, 1, 0, %p0;
    selp.u32 %r7, 1, 0, %p1;
    selp.u32 %r8, 1, 0, %p2;
    selp.u32 %r9, 1, 0, %p3;
    st.global.v4.u32 [%d0], {%r2, %r3, %r4, %r5};
    st.global.v4.u32 [%d0+16], {%r6, %r7, %r8, %r9};
)";
  CHECK(probe::everywhere<uint32_t>(probe::kernel(body, 1), 8, {}, kOneThread) ==
        std::vector<uint32_t>{3, 2, 1, 3, 0, 1, 1, 0});
}

TEST_CASE("mbarrier: lanes that arrive together arrive one after the other") {
  const std::string body = kStart + R"(
    setp.eq.u32 %p0, %r1, 0;
    @%p0 mbarrier.init.shared::cta.b64 [%r0], 40;
    bar.sync 0;
    mbarrier.arrive.shared::cta.b64 %d1, [%r0];
    mbarrier.pending_count.b64 %r2, %d1;
    mad.wide.u32 %d0, %r1, 4, %d0;
    st.global.u32 [%d0], %r2;
)";
  std::vector<uint32_t> got = probe::everywhere<uint32_t>(probe::kernel(body, 1), 32);
  std::sort(got.begin(), got.end());
  std::vector<uint32_t> want(32);
  std::iota(want.begin(), want.end(), 9);
  CHECK(got == want);
}

TEST_CASE("mbarrier: arrive_drop lowers the count of the phases that follow") {
  std::vector<Word> got = after_each({"mbarrier.init.shared::cta.b64 [%r0], 3;",            //
                                      "mbarrier.arrive_drop.shared::cta.b64 _, [%r0];",     //
                                      "mbarrier.arrive.shared::cta.b64 _, [%r0], 2;",       //
                                      "mbarrier.arrive.shared::cta.b64 _, [%r0];",          //
                                      "mbarrier.arrive.shared::cta.b64 _, [%r0];",          //
                                      "mbarrier.arrive_drop.shared::cta.b64 _, [%r0], 1;",  //
                                      "mbarrier.arrive.shared::cta.b64 _, [%r0];",          //
                                      "mbarrier.arrive.shared::cta.b64 _, [%r0];"},
                                     kReadParities);
  CHECK(got == std::vector<Word>{2, 2, 1, 1, 2, 2, 1, 2});
}

TEST_CASE("mbarrier: more arrivals than the phase waits for are a launch failure, as on an H200") {
  probe::Ending over = fault_of(
      "mbarrier.init.shared::cta.b64 [%r0], 2; mbarrier.arrive.shared::cta.b64 _, [%r0]; mov.u32 %r2, 2;"
      "mbarrier.arrive.shared::cta.b64 _, [%r0], %r2;");
  CHECK(over.error == 719);
  CHECK_THAT(over.report, test::contains("beyond its count by 1"));
  // All arrivals are in, only bytes are missing: one more arrival is one too many.
  CHECK(fault_of("mbarrier.init.shared::cta.b64 [%r0], 1; mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r0], 16;"
                 "mbarrier.arrive.shared::cta.b64 _, [%r0];")
            .error == 719);
  CHECK(fault_of("mbarrier.init.shared::cta.b64 [%r0], 1; mbarrier.arrive.noComplete.shared::cta.b64 %d1, [%r0], 1;")
            .error == 719);
}

TEST_CASE("mbarrier: bytes outside -(2^20-1)..2^20-1 are a launch failure, as on an H200") {
  const std::string init = "mbarrier.init.shared::cta.b64 [%r0], 1;";
  for (const char* line : {"mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r0], 1048576;",
                           "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r0], 1048576;",
                           "mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%r0], 1048576;",
                           "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r0], 1048575;"
                           "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r0], 1;"}) {
    probe::Ending ending = fault_of(init + line);
    INFO(line);
    CHECK(ending.error == 719);
    CHECK_THAT(ending.report, test::contains("1048576"));
  }
}

TEST_CASE("mbarrier: a barrier that is not 8-byte aligned is a misaligned address, as on an H200") {
  for (const char* line : {"mbarrier.init.shared::cta.b64 [%r0+4], 1;", "mbarrier.arrive.shared::cta.b64 _, [%r0+4];",
                           "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r0+4], 16;",
                           "mbarrier.test_wait.parity.shared::cta.b64 %p0, [%r0+4], 0;"}) {
    INFO(line);
    CHECK(fault_of(line).error == 716);
  }
}

TEST_CASE("mbarrier: only a live barrier can be used") {
  // The ISA leaves these undefined (an H200 lets the arrive after inval pass); the emulator reports them.
  for (const char* line :
       {"mbarrier.arrive.shared::cta.b64 _, [%r0];", "mbarrier.test_wait.parity.shared::cta.b64 %p0, [%r0], 1;",
        "mbarrier.init.shared::cta.b64 [%r0], 1; mbarrier.inval.shared::cta.b64 [%r0];"
        "mbarrier.arrive.shared::cta.b64 _, [%r0];",
        "mbarrier.inval.shared::cta.b64 [%r0];"}) {
    INFO(line);
    CHECK_THAT(fault_of(line).report, test::contains("mbarrier"));
  }
}

TEST_CASE("mbarrier: after inval the memory is free for data and for another barrier") {
  const std::string body = kStart + R"(
    mbarrier.init.shared::cta.b64 [%r0], 7;
    mbarrier.arrive.shared::cta.b64 _, [%r0];
    mbarrier.inval.shared::cta.b64 [%r0];
    st.shared.u64 [%r0], 0x1234;
    ld.shared.u64 %d1, [%r0];
    mbarrier.init.shared::cta.b64 [%r0], 1;
    mbarrier.arrive.shared::cta.b64 _, [%r0];
    mbarrier.test_wait.parity.shared::cta.b64 %p0, [%r0], 0;
    @%p0 add.u64 %d1, %d1, 1;
    st.global.u64 [%d0], %d1;
)";
  CHECK(probe::everywhere<uint64_t>(probe::kernel(body, 1), 1, {}, kOneThread)[0] == 0x1235);
}

TEST_CASE("mbarrier: generic addresses reach the same object") {
  const std::string body = kStart + R"(
    cvta.shared.u64 %d2, %d3;
    mov.u64 %d3, bar;
    cvta.shared.u64 %d2, %d3;
    mbarrier.init.b64 [%d2+8], 2;
    mbarrier.arrive.shared::cta.b64 _, [%r0+8];
    mbarrier.arrive.b64 %d4, [%d2+8];
    mbarrier.test_wait.parity.b64 %p0, [%d2+8], 0;
    mbarrier.try_wait.parity.b64 %p1, [%d2+8], 0;
    mbarrier.pending_count.b64 %r2, %d4;
    selp.u32 %r3, 1, 0, %p0;
    selp.u32 %r4, 1, 0, %p1;
    ld.shared.u64 %d5, [%r0+8];
    mbarrier.inval.b64 [%d2+8];
    st.global.v2.u32 [%d0], {%r2, %r3};
    st.global.u32 [%d0+8], %r4;
    st.global.u64 [%d0+16], %d5;
)";
  std::vector<uint64_t> got = probe::everywhere<uint64_t>(probe::kernel(body, 1), 3, {}, kOneThread);
  CHECK(got[0] == (uint64_t{1} << 32 | 1));
  CHECK((got[1] & 1) == 1);
  CHECK(got[2] == word(1, 2, 2, 0));
  // A generic address of global memory holds no barrier.
  probe::Ending global = fault_of("mbarrier.init.b64 [%d0], 1;");
  CHECK(global.error == 715);
  CHECK_THAT(global.report, test::contains("not shared memory"));
}

TEST_CASE("mbarrier: another CTA's barrier takes arrivals only, and must exist") {
  // In a cluster of one there is no CTA 1.
  const std::string remote = "mbarrier.init.shared::cta.b64 [%r0], 1; add.u32 %r2, %r0, 0x1000000;";
  CHECK(fault_of(remote + "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r2];").error == 715);
  probe::Ending wait = fault_of(remote + "mbarrier.test_wait.parity.shared::cta.b64 %p0, [%r2], 0;");
  CHECK(wait.error == 715);
  CHECK_THAT(wait.report, test::contains("another CTA"));
}
