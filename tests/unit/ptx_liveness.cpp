// Intervals of registers: by hand on small bodies, and by running random programs with shared storage against private
// storage.

#include <map>
#include <random>

#include "emulator/ptx/liveness.h"
#include "tests/catch.h"
#include "tests/unit/ptx_text.h"

using namespace emu::ptx;

namespace {

struct Analysed {
  Module module;
  ControlFlow flow;
  std::vector<Interval> intervals;
  const Function& function() const { return *module.function("k"); }
  std::string interval(std::string_view name) const {
    for (size_t r = 0; r < intervals.size(); ++r) {
      if (function().registers[r].name != name) continue;
      if (intervals[r].empty()) return "none";
      return std::to_string(intervals[r].first) + "-" + std::to_string(intervals[r].last);
    }
    return "unknown";
  }
};

Analysed analysed(const std::string& body, const std::string& head = ".entry k()") {
  Analysed result;
  result.module = test::module(
      ".global .u32 g;\n" + head +
      " { .reg .b32 %r<99>, unused; .reg .b64 %rd<99>; .reg .b16 %rs<99>; .reg .pred %p<99>;\n" + body + " }");
  result.flow = analyse(result.function());
  result.intervals = live_intervals(result.function(), result.flow);
  return result;
}

}  // namespace

TEST_CASE("what instructions read and write") {
  const auto check = [](const std::string& text, const std::string& reads, const std::string& writes) {
    const Module m = test::kernel(text);
    const Function& f = test::entry(m);
    const Effects e = effects(f.body[0]);
    const auto names = [&](const std::vector<uint32_t>& registers) {
      std::string result;
      for (uint32_t r : registers) result += (result.empty() ? "" : " ") + std::string(f.registers[r].name);
      return result;
    };
    INFO(text);
    CHECK(names(e.reads) == reads);
    CHECK(names(e.writes) == writes);
  };
  check("add.u32 %r1, %r2, %r3;", "%r2 %r3", "%r1");
  check("@%p1 mov.u32 %r1, 5;", "%p1", "%r1");
  check("setp.eq.u32 %p1|%p2, %r1, %r2;", "%r1 %r2", "%p1 %p2");
  check("ld.global.v2.u32 {%r1, _}, [%rd1+4];", "%rd1", "%r1");
  check("st.global.v2.u32 [%rd1], {%r1, %r2};", "%rd1 %r1 %r2", "");
  check("ld.global.u32 %r1, a[%r2];", "%r2", "%r1");
  check("mov.b64 {%r1, %r2}, %rd1;", "%rd1", "%r1 %r2");
  check("mov.b64 %rd1, {%r1, %r2};", "%r1 %r2", "%rd1");
  check("elect.sync _|%p1, %r1;", "%r1", "%p1");
  check("bar.sync %r1, %r2;", "%r1 %r2", "");
  check("bar.warp.sync %r1;", "%r1", "");
  check("barrier.cta.red.popc.aligned.u32 %r1, 1, %p1;", "%p1", "%r1");
  check("red.global.add.u32 [%rd1], %r1;", "%rd1 %r1", "");
  check("atom.global.add.u32 %r1, [%rd1], %r2;", "%rd1 %r2", "%r1");
  check("nanosleep.u32 %r1;", "%r1", "");
  check("mbarrier.init.shared.b64 [%r1], %r2;", "%r1 %r2", "");
  check("mbarrier.arrive.shared.b64 %rd1, [%r1];", "%r1", "%rd1");
  check("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], %r2;", "%r1 %r2", "");
  check("mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], %r2;", "%r1 %r2", "%p1");
  check("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, %r3}], [%r4];",
        "%r1 %rd1 %r2 %r3 %r4", "");
  check("tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r1, %r2}, [%r3];", "%r3", "%r1 %r2");
  check("tcgen05.st.sync.aligned.32x32b.x2.b32 [%r3], {%r1, %r2};", "%r3 %r1 %r2", "");
  check("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, %r2;", "%r1 %r2", "");
  check("tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r2, %p1;", "%r1 %rd1 %rd2 %r2 %p1", "");
  check("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r1, %r2}, %rd1, %rd2, %p1, 1, 1, 0, 0;",
        "%r1 %r2 %rd1 %rd2 %p1", "%r1 %r2");
  check("t: .callprototype _; call (%r1), %rd1, (%r2, %r3), t;", "%rd1 %r2 %r3", "%r1");
  check("t: .branchtargets L; brx.idx %r1, t; L:", "%r1", "");
  check("never.heard.of %r1, %r2;", "%r1 %r2", "%r1");  // who knows
}

TEST_CASE("straight code: from the first write to the last read") {
  const Analysed a =
      analysed("mov.u32 %r1, 1; mov.u32 %r2, 2; add.u32 %r3, %r1, %r2; add.u32 %r4, %r3, %r2; st.u32 [g], %r4; ret;");
  CHECK(a.interval("%r1") == "0-2");
  CHECK(a.interval("%r2") == "1-3");
  CHECK(a.interval("%r3") == "2-3");
  CHECK(a.interval("%r4") == "3-4");
  CHECK(a.interval("unused") == "none");
}

TEST_CASE("a loop keeps alive what it carries round, and what it reads from before, but not what it makes anew") {
  const Analysed a = analysed(
      "mov.u32 %r1, 0; mov.u32 %r2, 7; mov.u32 %r3, 1;\n"               // 0 1 2
      "top: add.u32 %r4, %r1, %r2; mov.u32 %r1, %r4;\n"                 // 3 4
      "setp.lt.u32 %p1, %r1, 100; @%p1 bra top; st.u32 [g], %r3; ret;"  // 5 6 7
  );
  CHECK(a.interval("%r1") == "0-6");  // carried round
  CHECK(a.interval("%r2") == "1-6");  // read in every round
  CHECK(a.interval("%r3") == "2-7");  // read behind
  CHECK(a.interval("%r4") == "3-4");
  CHECK(a.interval("%p1") == "5-6");
}

TEST_CASE("a write under a guard does not end the old value") {
  const Analysed a = analysed("mov.u32 %r1, 0; x; top: y; @%p1 mov.u32 %r1, 1; st.u32 [g], %r1; @%p2 bra top; ret;");
  CHECK(a.interval("%r1") == "0-5");
  const Analysed unguarded = analysed("mov.u32 %r1, 0; x; top: y; mov.u32 %r1, 1; st.u32 [g], %r1; @%p2 bra top; ret;");
  CHECK(unguarded.interval("%r1") == "0-4");
}

TEST_CASE("a value under opposite guards begins at the first of them") {
  const Analysed a = analysed("x; x; @%p1 mov.u32 %r1, 1; @!%p1 mov.u32 %r1, 2; y; st.u32 [g], %r1; ret;");
  CHECK(a.interval("%r1") == "2-5");
}

TEST_CASE("a value of both arms of a branch lives across both") {
  const Analysed a =
      analysed("@%p1 bra other; mov.u32 %r1, 1; bra join; other: x; mov.u32 %r1, 2; join: st.u32 [g], %r1; ret;");
  CHECK(a.interval("%r1") == "1-5");
}

TEST_CASE("registers of asynchronous instructions stay until the wait") {
  const Analysed load = analysed(
      "tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r1, %r2}, [%r3]; x; tcgen05.wait::ld.sync.aligned; st.u32 [g], %r1; "
      "ret;");
  CHECK(load.interval("%r1") == "0-3");
  CHECK(load.interval("%r2") == "0-2");  // never read: the load still writes it
  const Analysed store = analysed(
      "mov.u32 %r1, 1; tcgen05.st.sync.aligned.32x32b.x1.b32 [%r3], {%r1}; tcgen05.wait::ld.sync.aligned; x; "
      "tcgen05.wait::st.sync.aligned; ret;");
  CHECK(store.interval("%r1") == "0-4");
  const Analysed group = analysed(
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r1}, %rd1, %rd2, %p1, 1, 1, 0, 0; "
      "wgmma.commit_group.sync.aligned;\n"
      "wgmma.wait_group.sync.aligned 1; x; wgmma.wait_group.sync.aligned 0; ret;");
  CHECK(group.interval("%r1") == "0-4");
}

TEST_CASE("a load that waits only in the next round lives through the loop") {
  const Analysed a = analysed(
      "top: tcgen05.wait::ld.sync.aligned; x; tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r1}, [%r3]; y; @%p1 bra top;\n"
      "z; tcgen05.wait::ld.sync.aligned; ret;");
  CHECK(a.interval("%r1") == "0-6");
}

TEST_CASE("register parameters live from the beginning, register results to every return") {
  const Analysed a =
      analysed("x; mov.u32 result, argument; @%p1 ret; y; ret;", ".func (.reg .b32 result) k(.reg .b32 argument)");
  CHECK(a.interval("argument") == "0-1");
  CHECK(a.interval("result") == "1-4");
}

TEST_CASE("slots: kinds apart, sizes aligned, no two overlapping intervals in one place") {
  const Analysed a = analysed(
      "mov.u32 %r1, 1; mov.u64 %rd1, 2; mov.u32 %r2, 3; setp.eq.u32 %p1, %r1, %r2; st.u64 [g], %rd1;\n"
      "mov.u64 %rd2, 4; @%p1 st.u64 [g], %rd2; mov.u32 %r3, 5; st.u32 [g], %r3; ret;");
  const Slots slots = assign_slots(a.function(), a.intervals);
  CHECK(slots.predicates == 1);
  CHECK(slots.words == 4);  // %rd1 in 0 and 1, %r1 in 2, %r2 in 3; then everything again
  std::map<std::string_view, uint32_t> slot;
  for (size_t r = 0; r < slots.slot.size(); ++r) slot[a.function().registers[r].name] = slots.slot[r];
  CHECK(slot["%r1"] == 2);
  CHECK(slot["%rd1"] == 0);
  CHECK(slot["%r2"] == 3);
  CHECK(slot["%rd2"] == 0);
  CHECK(slot["%r3"] == 2);
  CHECK(slot["unused"] == kNone);
}

TEST_CASE("slots: registers of different widths never share, since their lanes lie differently") {
  const Analysed a = analysed(
      "mov.u16 %rs1, 1; st.u16 [g], %rs1; mov.u32 %r1, 1; st.u32 [g], %r1; mov.u64 %rd1, 2; st.u64 [g], %rd1;\n"
      "mov.u32 %r2, 3; st.u32 [g], %r2; mov.u64 %rd2, 4; st.u64 [g], %rd2; ret;");
  const Slots slots = assign_slots(a.function(), a.intervals);
  std::map<std::string_view, uint32_t> slot;
  for (size_t r = 0; r < slots.slot.size(); ++r) slot[a.function().registers[r].name] = slots.slot[r];
  CHECK(slots.words == 4);
  CHECK(slot["%rd1"] == 0);
  CHECK(slot["%rd2"] == 0);
  CHECK(slot["%r1"] == 2);
  CHECK(slot["%r2"] == 2);
  CHECK(slot["%rs1"] == 3);
}

TEST_CASE("slots: registers that are kept apart come first, and share with their like only") {
  const Analysed a = analysed(
      "mov.u32 %r1, 1; st.u32 [g], %r1; mov.u32 %r2, 2; st.u32 [g], %r2; mov.u64 %rd1, 3; st.u64 [g], %rd1;\n"
      "mov.u32 %r3, 4; st.u32 [g], %r3; mov.u64 %rd2, 5; st.u64 [g], %rd2; ret;");
  std::vector<bool> apart;
  for (const auto& reg : a.function().registers)
    apart.push_back(reg.name == "%r2" || reg.name == "%r3" || reg.name == "%rd1");
  const Slots slots = assign_slots(a.function(), a.intervals, apart);
  std::map<std::string_view, uint32_t> slot;
  for (size_t r = 0; r < slots.slot.size(); ++r) slot[a.function().registers[r].name] = slots.slot[r];
  CHECK(slots.apart_words == 4);  // three, and one so that what follows is aligned
  CHECK(slots.words == 7);
  CHECK(slot["%rd1"] == 0);
  CHECK(slot["%r2"] == 2);
  CHECK(slot["%r3"] == 2);
  CHECK(slot["%rd2"] == 4);
  CHECK(slot["%r1"] == 6);
}

TEST_CASE("random programs: lanes at different places never meet another register's value in a shared slot") {
  // Each lane walks its own random way through the same body. Storage is shared by slot and lane; beside it stands the
  // value that the register itself should have. Reading a register that this lane has written must give that.
  std::mt19937 random(11);
  size_t shared = 0, reads = 0;
  for (int round = 0; round < 300; ++round) {
    const uint32_t count = 8 + random() % 40, registers = 3 + random() % 12;
    std::string body;
    const auto reg = [&] { return (random() % 4 ? "%r" : "%rd") + std::to_string(random() % registers); };
    for (uint32_t i = 0; i < count; ++i) {
      body += "L" + std::to_string(i) + ": ";
      const std::string guard = random() % 3 ? "" : random() % 2 ? "@%p1 " : "@!%p1 ";
      switch (random() % 6) {
        case 0:
          body += "@%p1 bra L" + std::to_string(random() % (count + 1));
          break;
        case 1:
          body += guard + "st.u32 [g], " + reg();
          break;
        case 2:
          body += guard + "mov.u32 " + reg() + ", 1";
          break;
        case 3:
          body += guard + "mov.b64 {" + reg() + ", " + reg() + "}, " + reg();
          break;
        default:
          body += guard + "add.u32 " + reg() + ", " + reg() + ", " + reg();
      }
      body += ";\n";
    }
    const Analysed a = analysed(body + "L" + std::to_string(count) + ": ret;");
    const Function& f = a.function();
    std::vector<bool> apart(f.registers.size());
    for (size_t r = 0; r < apart.size(); ++r) apart[r] = random() % 4 == 0;
    const Slots slots = assign_slots(f, a.intervals, apart);
    std::vector<uint32_t> users(slots.words);
    for (size_t r = 0; r < slots.slot.size(); ++r) {
      if (slots.slot[r] != kNone && f.registers[r].type != Type::pred) ++users[slots.slot[r]];
    }
    for (uint32_t u : users) shared += u > 1;

    const auto words = [&](uint32_t r) { return f.registers[r].type == Type::b64 ? 2u : 1u; };
    for (int lane = 0; lane < 8; ++lane) {
      std::vector<uint64_t> storage(slots.words, 0);
      std::map<uint32_t, uint64_t> own;
      uint64_t stamp = 0;
      uint32_t at = 0;
      for (int step = 0; step < 400; ++step) {
        const Instruction& i = f.body[at];
        if (i.name() == "ret") break;
        if (i.guard != kNone && random() % 2) {
          ++at;
          continue;
        }
        const Effects e = effects(i);
        for (uint32_t r : e.reads) {
          if (f.registers[r].type == Type::pred || !own.count(r)) continue;
          ++reads;
          for (uint32_t w = 0; w < words(r); ++w) REQUIRE(storage[slots.slot[r] + w] == own[r]);
        }
        for (uint32_t r : e.writes) {
          own[r] = ++stamp;
          for (uint32_t w = 0; w < words(r); ++w) storage[slots.slot[r] + w] = stamp;
        }
        at = i.name() == "bra" ? i.operands[0].index : at + 1;
      }
    }
  }
  CHECK(shared > 100);
  CHECK(reads > 10000);
}
