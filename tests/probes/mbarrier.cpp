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
    .shared .align 8 .b64 bar[32];
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

/// The word after each line: each time all lines up to it on a fresh barrier. It is read after mbarrier.inval, when
/// an H200 writes down the state that it keeps apart while the barrier lives.
std::vector<Word> words_after_each(const std::vector<std::string>& lines) {
  std::string body = kStart;
  for (size_t i = 0; i < lines.size(); ++i) {
    body += "    mov.u32 %r0, bar;\n    add.u32 %r0, %r0, " + std::to_string(8 * i) + ";\n";
    for (size_t k = 0; k <= i; ++k) body += "    " + lines[k] + "\n";
    body += "    mbarrier.inval.shared::cta.b64 [%r0];\n    ld.volatile.shared.b64 %d1, [%r0];\n" +
            ("    st.global.b64 [%d0+" + std::to_string(8 * i)) + "], %d1;\n";
  }
  return probe::everywhere<Word>(probe::kernel(body, 1), lines.size(), {}, kOneThread, 2);
}

/// %d1: bit 0 = test_wait of parity 0, bit 1 = of parity 1.
const std::string kReadParities = R"(
    mbarrier.test_wait.parity.shared::cta.b64 %p0, [%r0], 0;
    mbarrier.test_wait.parity.shared::cta.b64 %p1, [%r0], 1;
    selp.b64 %d1, 1, 0, %p0;
    @%p1 or.b64 %d1, %d1, 2;)";

/// The pause lets a GPU notice: some of these faults come after the instruction, and a kernel that is over by then
/// ends well.
probe::Ending fault_of(const std::string& line, const char* apart = nullptr) {
  probe::Shape shape = kOneThread;
  shape.apart = apart;
  return probe::failure(probe::kernel(kStart + line + "\n    nanosleep.u32 100000;\n", 1), {}, shape);
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
  std::vector<Word> got = words_after_each(lines);
  for (size_t i = 0; i < steps.size(); ++i) {
    INFO(steps[i].line << " leaves " << probe::hex(got[i]) << ", not " << probe::hex(steps[i].after));
    CHECK(got[i] == steps[i].after);
  }
}

TEST_CASE("mbarrier: every count from 1 to 2^20 - 1 can be initialised") {
  for (int64_t count : {1, 2, 32, 1000, 0xFFFFF}) {
    std::vector<Word> got = words_after_each({"mbarrier.init.shared::cta.b64 [%r0], " + std::to_string(count) + ";"});
    CHECK(got[0] == word(0, count, count, 0));
    CHECK(got[0] == ((uint64_t{1} << 20) - static_cast<uint64_t>(count)) * ((uint64_t{1} << 43) + 2));
  }
  const char* kRange = "PTX ISA, mbarrier.init: 1 to 2^20 - 1; an H200 takes 2^20, and hangs on 0";
  CHECK(fault_of("mov.u32 %r2, 0; mbarrier.init.shared::cta.b64 [%r0], %r2;", kRange).report.find("1..1048575") !=
        std::string::npos);
  CHECK(fault_of("mov.u32 %r2, 0x100000; mbarrier.init.shared::cta.b64 [%r0], %r2;", kRange).error == 719);
}

TEST_CASE("mbarrier: the emulator keeps a live barrier in the bytes of shared memory") {
  const std::string body = kStart + R"(
    mbarrier.init.shared::cta.b64 [%r0], 3;
    mbarrier.arrive.shared::cta.b64 _, [%r0];
    ld.volatile.shared.b64 %d1, [%r0];
    st.global.b64 [%d0], %d1;
)";
  probe::Shape shape = kOneThread;
  shape.apart = "PTX ISA, mbarrier object: opaque; an H200 keeps its state apart until mbarrier.inval";
  CHECK(probe::everywhere<Word>(probe::kernel(body, 1), 1, {}, shape)[0] == word(0, 2, 3, 0));
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

TEST_CASE("mbarrier: lanes that arrive together arrive as one and are told the state from before, as on an H200") {
  // 32 lanes arrive in one instruction, then one after the other; `count` arrivals make the phase.
  auto body = [](int count, const std::string& arrive) {
    return kStart + "    setp.eq.u32 %p0, %r1, 0;\n    @%p0 mbarrier.init.shared::cta.b64 [%r0], " +
           std::to_string(count) + ";\n    bar.sync 0;\n" + arrive + R"(
    mbarrier.pending_count.b64 %r2, %d1;
    bar.sync 0;
    mbarrier.test_wait.shared::cta.b64 %p1, [%r0], %d1;
    @%p1 or.b32 %r2, %r2, 0x1000000;
    mad.wide.u32 %d0, %r1, 4, %d0;
    st.global.u32 [%d0], %r2;
)";
  };
  auto pending = [&](int count, const std::string& arrive) {
    return probe::everywhere<uint32_t>(probe::kernel(body(count, arrive), 1), 32);
  };
  const std::string arrive = "    mbarrier.arrive.shared::cta.b64 %d1, [%r0];\n";
  constexpr uint32_t kOver = 0x1000000;
  CHECK(pending(40, arrive) == std::vector<uint32_t>(32, 40));
  CHECK(pending(32, arrive) == std::vector<uint32_t>(32, 32 + kOver));
  // A phase cannot end in the middle of the instruction, whatever the arrive looks like.
  for (const char* each :
       {"mbarrier.arrive.shared::cta.b64 %d1, [%r0];", "mbarrier.arrive.shared::cta.b64 _, [%r0];",
        "mbarrier.arrive_drop.shared::cta.b64 %d1, [%r0];", "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r0], 0;",
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r0];"})
    for (int count : {8, 24, 31}) {
      INFO(each << " with a count of " << count);
      int error = 0;
      CHECK_THAT(probe::fault(body(count, each), {}, &error),
                 test::contains("more than the " + std::to_string(count) + " arrivals"));
      CHECK(error == 719);
    }
  // Lane after lane each sees what the others left.
  std::vector<uint32_t> got = pending(40, R"(
    mov.u32 %r3, 0;
  turn:
    setp.eq.u32 %p1, %r3, %r1;
    @%p1 mbarrier.arrive.shared::cta.b64 %d1, [%r0];
    bar.warp.sync -1;
    add.u32 %r3, %r3, 1;
    setp.lt.u32 %p1, %r3, 32;
    @%p1 bra turn;
)");
  for (uint32_t lane = 0; lane < 32; ++lane) CHECK(got[lane] == 40 - lane);
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
  CHECK(fault_of("mbarrier.init.shared::cta.b64 [%r0], 1; mbarrier.arrive.noComplete.shared::cta.b64 %d1, [%r0], 1;",
                 "PTX ISA, mbarrier.arrive: undefined when .noComplete completes the phase; an H200 completes it")
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
  const char* kUndefined = "PTX ISA, mbarrier.inval: undefined on what is no live barrier; an H200 lets some pass";
  for (const char* line :
       {"mbarrier.arrive.shared::cta.b64 _, [%r0];", "mbarrier.test_wait.parity.shared::cta.b64 %p0, [%r0], 1;",
        "mbarrier.init.shared::cta.b64 [%r0], 1; mbarrier.inval.shared::cta.b64 [%r0];"
        "mbarrier.arrive.shared::cta.b64 _, [%r0];",
        "mbarrier.init.shared::cta.b64 [%r0], 1; mbarrier.inval.shared::cta.b64 [%r0];"
        "mbarrier.test_wait.parity.shared::cta.b64 %p0, [%r0], 1;",
        "mbarrier.inval.shared::cta.b64 [%r0];"}) {
    INFO(line);
    CHECK_THAT(fault_of(line, kUndefined).report, test::contains("mbarrier"));
  }
}

TEST_CASE("mbarrier: a second inval passes with a note, as on an H200; libcu++'s pipelines end their barriers twice") {
  const std::string ptx = probe::kernel(kStart + R"(
    mbarrier.init.shared::cta.b64 [%r0], 1;
    mbarrier.inval.shared::cta.b64 [%r0];
    mbarrier.inval.shared::cta.b64 [%r0];
    st.global.u32 [%d0], 5;
)",
                                        1);
  probe::Shape shape = kOneThread;
  const probe::Ending ending = probe::launch_with({}, ptx, 4, {}, shape);
  CHECK(ending.bytes == probe::bytes_of(std::vector<uint32_t>{5}));
  CHECK_THAT(ending.remarks, test::contains("mbarrier.inval of what another mbarrier.inval has ended"));
  emu::Options strict;
  strict.strict = true;
  shape.apart = "LADDER_STRICT";
  CHECK_THAT(probe::launch_with(strict, ptx, 4, {}, shape).report, test::contains("this is no mbarrier any more"));
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
    mbarrier.inval.b64 [%d2+8];
    ld.volatile.shared.u64 %d5, [%r0+8];
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
