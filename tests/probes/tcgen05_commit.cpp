// tcgen05.commit: one arrive when everything that its thread issued before is complete, in order, under every schedule;
// and MMAs of several threads on one accumulator. PTX ISA, "tcgen05.commit", "Memory consistency model: pipelined
// instructions".

#include "tests/probes/everywhere.h"

namespace {

// Operands are all ones (f16) in both A and B, so whatever their layout, one MMA adds 16 to each element of D.
const std::string kStart = R"(
    .shared .align 8 .b64 done[8];
    .shared .align 4 .b32 address;
    .reg .b32 %v<8>;
    .reg .pred %yes, %no;
    ld.param.u64 %d0, [p0];
    mov.u32 %r0, smem;
    mov.u32 %r1, %tid.x;
    shr.u32 %r2, %r1, 5;
    shl.b32 %r3, %r1, 4;
    mov.b32 %v0, 0x3C003C00;
  fill:
    add.u32 %r4, %r0, %r3;
    st.shared.v4.b32 [%r4], {%v0, %v0, %v0, %v0};
    add.u32 %r3, %r3, 2048;
    setp.lt.u32 %p0, %r3, 16384;
    @%p0 bra fill;
    fence.proxy.async.shared::cta;
    setp.eq.u32 %yes, 0, 0;
    setp.eq.u32 %no, 0, 1;
    setp.eq.u32 %p5, %r1, 0;
    setp.ne.u32 %p0, %r2, 0;
    @%p0 bra ready;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [address], 128;
    setp.ge.u32 %p0, %r1, 8;
    mad.lo.u32 %r4, %r1, 8, 0;
    mov.u32 %r5, done;
    add.u32 %r4, %r4, %r5;
    @!%p0 mbarrier.init.shared::cta.b64 [%r4], 1;
  ready:
    bar.sync 0;
    ld.shared.u32 %r5, [address];
    shl.b32 %r6, %r2, 21;
    add.u32 %r6, %r6, %r5;
    add.u32 %r7, %r0, 0;
    shr.u32 %r7, %r7, 4;
    and.b32 %r7, %r7, 0x3FFF;
    cvt.u64.u32 %d1, %r7;
    or.b64 %d1, %d1, 0x4000404000010000;
    mov.b32 %r8, 0x08040010;
)";
const std::string kEnd = R"(
    tcgen05.fence::before_thread_sync;
    bar.sync 0;
    @%p0 bra end;
  end:
    setp.ne.u32 %p0, %r2, 0;
    @%p0 bra freed;
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r5, 128;
  freed:
)";

std::string mma(const std::string& column, bool adds) {
  return "    add.u32 %r9, %r5, " + column + ";\n    tcgen05.mma.cta_group::1.kind::f16 [%r9], %d1, %d1, %r8, " +
         (adds ? "%yes" : "%no") + ";\n";
}
std::string commit(int barrier) {
  return "    tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done+" +
         std::to_string(8 * barrier) + "];\n";
}
std::string wait(const std::string& label, int barrier, int parity = 0) {
  return "  " + label + ":\n    mbarrier.try_wait.parity.shared::cta.b64 %p0, [done+" + std::to_string(8 * barrier) +
         "], " + std::to_string(parity) + ";\n    @!%p0 bra " + label + ";\n";
}
/// Each thread stores D(its lane, column) at word `word` of its four.
std::string show(int column, int word) {
  return "    tcgen05.fence::after_thread_sync;\n    add.u32 %r9, %r6, " + std::to_string(column) +
         ";\n    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%v1}, [%r9];\n    tcgen05.wait::ld.sync.aligned;\n"
         "    mad.wide.u32 %d2, %r1, 16, %d0;\n    st.global.b32 [%d2+" +
         std::to_string(4 * word) + "], %v1;\n";
}

std::vector<float> run(const std::string& body, int seeds = 12) {
  return probe::everywhere<float>(probe::kernel(kStart + body + kEnd, 1, ".extern .shared .align 1024 .b8 smem[];"),
                                  4 * 128, {}, {.block = {128, 1, 1}, .dynamic_shared_bytes = 16384}, seeds);
}

}  // namespace

TEST_CASE("tcgen05.commit arrives once, after all MMAs that its thread issued before") {
  // Nine MMAs, a commit, three more on other columns, a second commit on another barrier.
  std::string body = "    @!%p5 bra issued;\n";
  for (int i = 0; i < 9; ++i) body += mma("0", i > 0);
  body += commit(0);
  for (int i = 0; i < 3; ++i) body += mma("32", i > 0);
  body += commit(1);
  body += "  issued:\n" + wait("first", 0) + show(0, 0) + show(15, 1) + wait("second", 1) + show(32, 2) + show(47, 3);
  std::vector<float> got = run(body);
  for (size_t t = 0; t < 128; ++t) {
    CHECK(got[4 * t] == 9 * 16);
    CHECK(got[4 * t + 1] == 9 * 16);
    CHECK(got[4 * t + 2] == 3 * 16);
    CHECK(got[4 * t + 3] == 3 * 16);
  }
}

TEST_CASE("tcgen05.commit: the second commit covers what the first one covered") {
  // Only the later barrier is waited for.
  std::string body = "    @!%p5 bra issued;\n" + mma("0", false) + mma("0", true) + commit(0) + commit(1) +
                     "  issued:\n" + wait("second", 1) + show(0, 0) + wait("first", 0) + show(3, 1);
  std::vector<float> got = run(body);
  for (size_t t = 0; t < 128; ++t) CHECK(got[4 * t] == 32);
}

TEST_CASE("tcgen05.commit with nothing to wait for arrives too; it counts one arrival and no bytes") {
  std::string body =
      "    @!%p5 bra issued;\n" + commit(2) + "  issued:\n" + wait("a", 2) + "    bar.sync 0;\n    @!%p5 bra again;\n" +
      commit(2) + "  again:\n" + wait("b", 2, 1) +
      "    @%p5 mbarrier.inval.shared::cta.b64 [done+16];\n    @%p5 mbarrier.init.shared::cta.b64 [done+16], 2;\n"
      "    bar.sync 0;\n    @!%p5 bra third;\n" +
      commit(2) + "    mbarrier.arrive.shared::cta.b64 _, [done+16];\n  third:\n" + wait("c", 2) +
      "    mov.b32 %v1, 0f40A00000;\n    mad.wide.u32 %d2, %r1, 16, %d0;\n    st.global.b32 [%d2], %v1;\n";
  std::vector<float> got = run(body);
  for (size_t t = 0; t < 128; ++t) CHECK(got[4 * t] == 5);
}

TEST_CASE("tcgen05.commit to a generic address") {
  // And to one in shared memory, which Triton up to 3.5 gives: %d4 itself.
  for (const char* address : {"%d5", "%d4"}) {
    std::string body = "    @!%p5 bra issued;\n" + mma("0", false) + R"(
    mov.u64 %d4, done;
    cvta.shared.u64 %d5, %d4;
    tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [)" +
                       address + "];\n  issued:\n" + wait("first", 0) + show(0, 0);
    for (size_t t = 0; float value : run(body, 4)) {
      if (t++ % 4 == 0) CHECK(value == 16);
    }
  }
}

TEST_CASE("MMAs of two threads on one accumulator keep their order through fences and an arrival, without completion") {
  // Thread 0 starts D; thread 32 goes on as soon as thread 0 has issued (not completed) its own.
  std::string body = R"(
    @!%p5 bra other;
)" + mma("0", false) +
                     mma("0", true) + R"(
    tcgen05.fence::before_thread_sync;
    mbarrier.arrive.shared::cta.b64 _, [done+24];
  other:
    setp.ne.u32 %p1, %r1, 32;
    @%p1 bra issued;
)" + wait("go", 3) + "    tcgen05.fence::after_thread_sync;\n" +
                     mma("0", true) + mma("0", true) + mma("0", true) + commit(0) + "  issued:\n" + wait("first", 0) +
                     show(0, 0) + show(15, 1);
  std::vector<float> got = run(body, 16);
  for (size_t t = 0; t < 128; ++t) {
    CHECK(got[4 * t] == 5 * 16);
    CHECK(got[4 * t + 1] == 5 * 16);
  }
}

TEST_CASE("several active lanes are several MMAs") {
  // Lanes 0 to 4 each add to the same D; lane 0 starts it before.
  std::string body = "    @!%p5 bra started;\n" + mma("0", false) + commit(1) + "  started:\n" + wait("one", 1) +
                     "    setp.ge.u32 %p1, %r1, 5;\n    @%p1 bra issued;\n" + mma("0", true) +
                     "    mov.u32 %r20, done;\n    mad.lo.u32 %r20, %r1, 8, %r20;\n"
                     "    tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r20+16];\n"
                     "  issued:\n" +
                     wait("w2", 2) + wait("w3", 3) + wait("w4", 4) + wait("w5", 5) + wait("w6", 6) + show(0, 0);
  std::vector<float> got = run(body);
  for (size_t t = 0; t < 128; ++t) CHECK(got[4 * t] == 6 * 16);
}

TEST_CASE("tcgen05.ld of the whole tile, then an MMA that overwrites it: wait::ld, fence and barrier keep them apart") {
  std::string body = "    @!%p5 bra issued;\n" + mma("0", false) + commit(0) + "  issued:\n" + wait("first", 0) + R"(
    tcgen05.fence::after_thread_sync;
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%v2}, [%r6];
    tcgen05.wait::ld.sync.aligned;
    tcgen05.fence::before_thread_sync;
    bar.sync 0;
    @!%p5 bra again;
    tcgen05.fence::after_thread_sync;
)" + mma("0", false) +
                     mma("0", true) + commit(1) + "  again:\n" + wait("second", 1) + show(0, 1) +
                     "    st.global.b32 [%d2], %v2;\n";
  std::vector<float> got = run(body);
  for (size_t t = 0; t < 128; ++t) {
    CHECK(got[4 * t] == 16);
    CHECK(got[4 * t + 1] == 32);
  }
}

TEST_CASE("tcgen05.commit by another thread than the one that issued the MMA tracks nothing") {
  // PTX ISA, tcgen05.commit: it tracks the asynchronous operations "initiated by the executing thread". Thread 0 issues
  // the MMA, thread 32 commits.
  std::string head = "    setp.eq.u32 %p1, %r1, 32;\n    @!%p5 bra issued;\n" + mma("0", false);
  std::string right = head + commit(0) + "  issued:\n" + wait("done0", 0) + show(0, 0);
  std::string wrong = head + "  issued:\n    bar.sync 0;\n    @!%p1 bra committed;\n" + commit(0) + "  committed:\n" +
                      wait("done0", 0) + show(0, 0);
  auto ending = [](const std::string& body, emu::Schedule schedule) {
    return probe::launch_with(probe::options(schedule, 1),
                              probe::kernel(kStart + body + kEnd, 1, ".extern .shared .align 1024 .b8 smem[];"),
                              4 * 4 * 128, {}, {.block = {128, 1, 1}, .dynamic_shared_bytes = 16384});
  };
  CHECK(ending(right, emu::Schedule::latest).error == 0);
  CHECK(ending(wrong, emu::Schedule::latest) != ending(right, emu::Schedule::latest));
}
