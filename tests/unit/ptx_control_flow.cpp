// Where lanes meet again: hand-made graphs with the answer worked out by hand, and random ones against the definition.

#include <random>
#include <set>

#include "emulator/ptx/control_flow.h"
#include "tests/catch.h"
#include "tests/unit/ptx_text.h"

using namespace emu::ptx;

namespace {

struct Analysed {
  Module module;
  ControlFlow flow;
  const Function& function() const { return *module.function("k"); }
  uint32_t size() const { return static_cast<uint32_t>(function().body.size()); }
  /// Where the lanes that part at the instruction with this name meet; names are opcodes that occur once, "end" is the
  /// function's.
  std::string meeting_of(const std::string& opcode) const {
    const uint32_t at = flow.reconvergence[index_of(opcode)];
    return at == kNone ? "does not part" : at == size() ? "end" : function().body[at].opcode->text;
  }
  uint32_t index_of(const std::string& opcode) const {
    for (uint32_t i = 0; i < size(); ++i) {
      if (function().body[i].opcode->text == opcode) return i;
    }
    FAIL("no instruction " << opcode);
    return 0;
  }
};

Analysed analysed(const std::string& body, bool entry = true) {
  Analysed result;
  result.module =
      test::module((entry ? ".entry" : ".func") + std::string(" k() { .reg .pred p; .reg .b32 r;\n") + body + " }");
  result.flow = analyse(result.function());
  return result;
}

}  // namespace

TEST_CASE("if, with and without else") {
  const Analysed a = analysed("@p bra.1 skip; x; skip: y; @p bra.2 other; z; bra.3 join; other: w; join: last; ret;");
  CHECK(a.meeting_of("bra.1") == "y");
  CHECK(a.meeting_of("bra.2") == "last");
  CHECK(a.meeting_of("bra.3") == "does not part");
  CHECK(a.meeting_of("x") == "does not part");
}

TEST_CASE("nested ifs meet inside out") {
  const Analysed a = analysed("@p bra.1 A; x; @p bra.2 B; y; B: z; A: w; ret;");
  CHECK(a.meeting_of("bra.1") == "w");
  CHECK(a.meeting_of("bra.2") == "z");
}

TEST_CASE("a loop's lanes meet behind it, those of a continue at its closing step") {
  const Analysed a = analysed("top: x; @p bra.1 next; y; next: z; @p bra.2 top; after; ret;");
  CHECK(a.meeting_of("bra.1") == "z");
  CHECK(a.meeting_of("bra.2") == "after");
}

TEST_CASE("a break meets behind the loop") {
  const Analysed a = analysed("top: x; @p bra.1 out; y; @p bra.2 top; out: z; ret;");
  CHECK(a.meeting_of("bra.1") == "z");
  CHECK(a.meeting_of("bra.2") == "z");
}

TEST_CASE("a jump table") {
  const Analysed a = analysed("t: .branchtargets A, B, C, A; brx.idx r, t; A: x; bra J; B: y; bra J; C: z; J: w; ret;");
  CHECK(a.meeting_of("brx.idx") == "w");
}

TEST_CASE("a branch to the next instruction parts nobody for long") {
  const Analysed a = analysed("@p bra.1 L; L: x; ret;");
  CHECK(a.meeting_of("bra.1") == "x");
}

TEST_CASE("lanes that leave do not keep the others apart") {
  // if (p) { if (p) return; x } y
  const Analysed a = analysed("@p bra.1 inner; bra after; inner: i; @p ret.2; x; after: y; ret;");
  CHECK(a.meeting_of("bra.1") == "y");
  CHECK(a.meeting_of("ret.2") == "end");
  const Analysed b =
      analysed("@p bra.1 inner; bra after; inner: i; @p bra.2 out; x; bra after; out: w; exit; after: y; ret;");
  CHECK(b.meeting_of("bra.1") == "y");
  CHECK(b.meeting_of("bra.2") == "end");  // one way only goes on: nobody to wait for
  const Analysed c = analysed("@p bra.1 fine; trap; fine: y; ret;");
  CHECK(c.meeting_of("bra.1") == "end");
}

TEST_CASE("roles that end by themselves do not meet") {
  const Analysed a = analysed(
      "@p bra.1 consumer; top: x; @p bra.2 top; ret; consumer: @p bra.3 epilogue; y; ret; epilogue: z; @p bra.4 w; v; "
      "w: u; ret;");
  CHECK(a.meeting_of("bra.1") == "end");
  CHECK(a.meeting_of("bra.2") == "ret");
  CHECK(a.meeting_of("bra.3") == "end");
  CHECK(a.meeting_of("bra.4") == "u");
}

TEST_CASE("all returns of a function lead to its caller") {
  const Analysed a = analysed("@p bra.1 inner; bra after; inner: i; @p ret.2; x; after: y; ret;", false);
  CHECK(a.meeting_of("bra.1") == "end");
  CHECK(a.meeting_of("ret.2") == "end");
  const Analysed b = analysed("@p bra.1 inner; bra after; inner: i; @p exit.2; x; after: y; ret;", false);
  CHECK(b.meeting_of("bra.1") == "y");
}

TEST_CASE("loops without an end have meeting places inside") {
  const Analysed a = analysed("@p bra.1 server; x; ret; server: s; @p bra.2 odd; y; odd: z; bra.3 server;");
  CHECK(a.meeting_of("bra.1") == "end");
  CHECK(a.meeting_of("bra.2") == "z");
  // An inner loop in an endless one: behind the inner one, as everywhere.
  const Analysed b = analysed("top: s; @p bra.1 top; t; bra.2 top;");
  CHECK(b.meeting_of("bra.1") == "t");
  // Two endless loops: never.
  const Analysed c = analysed("@p bra.1 other; one: x; bra.2 one; other: y; bra.3 other;");
  CHECK(c.meeting_of("bra.1") == "end");
}

TEST_CASE("guarded calls meet at the next instruction, calls do not part") {
  Module m = test::module(".func f() { ret; } .entry k() { .reg .pred p; @p call.1 f; x; call.2 f; ret; }");
  const Function& k = *m.function("k");
  const ControlFlow flow = analyse(k);
  CHECK(flow.reconvergence == std::vector<uint32_t>{1, kNone, kNone, kNone});
}

TEST_CASE("blocks") {
  const Analysed a = analysed("x; @p bra L; y; z; ret; dead: u; bra dead; L: v; ret;");
  const auto& blocks = a.flow.blocks;
  REQUIRE(blocks.size() == 4);
  CHECK((blocks[0].first == 0 && blocks[0].last == 1 && blocks[0].next == std::vector<uint32_t>{1, 3}));
  CHECK((blocks[1].leaves && blocks[1].next.empty() && blocks[1].previous == std::vector<uint32_t>{0}));
  CHECK(!blocks[2].reachable);
  CHECK(blocks[3].reachable);
  CHECK(a.flow.block_of == std::vector<uint32_t>{0, 0, 1, 1, 1, 2, 2, 3, 3});
}

TEST_CASE("a function without a body has nothing to analyse") {
  Module m = test::module(".extern .func k();");
  CHECK(analyse(*m.function("k")).blocks.empty());
}

TEST_CASE("random graphs: the meeting place is the nearest instruction that no way to the end avoids") {
  // One ret, at the end; loops may be endless nowhere, as every block's last instruction can fall through.
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    const uint32_t count = 2 + random() % 12;
    std::string body;
    std::vector<std::vector<uint32_t>> next(count + 1);  // the block `count` is the ret
    for (uint32_t b = 0; b < count; ++b) {
      const uint32_t target = random() % (count + 1);
      body += "B" + std::to_string(b) + ": @p bra.x" + std::to_string(b) + " B" + std::to_string(target) + ";\n";
      next[b] = {b + 1, target};
    }
    body += "B" + std::to_string(count) + ": ret;";
    const Analysed a = analysed(body);

    const auto reaches_end_without = [&](uint32_t from, uint32_t avoided) {
      std::set<uint32_t> seen{from};
      std::vector<uint32_t> pending{from};
      while (!pending.empty()) {
        const uint32_t b = pending.back();
        pending.pop_back();
        if (b == count) return true;
        for (uint32_t n : next[b]) {
          if (n != avoided && seen.insert(n).second) pending.push_back(n);
        }
      }
      return false;
    };
    for (uint32_t b = 0; b < count; ++b) {
      // Blocks on every way from b to the end, other than b; the nearest is the one from which all others are still
      // ahead.
      std::vector<uint32_t> certain;
      for (uint32_t c = 0; c <= count; ++c) {
        if (c != b && (c == count || !reaches_end_without(b, c))) certain.push_back(c);
      }
      uint32_t nearest = kNone;
      for (uint32_t c : certain) {
        bool first = true;
        for (uint32_t other : certain) {
          if (other != c && other != count && reaches_end_without(c, other)) first = false;
        }
        if (first) nearest = c;
      }
      REQUIRE(nearest != kNone);
      CHECK(a.flow.reconvergence[b] == nearest);
    }
  }
}

TEST_CASE("long bodies take time in proportion") {
  // A chain of nested ifs that all close at the end, and a ladder of breaks: what quadratic methods choke on.
  std::string body;
  constexpr int kDepth = 20000;
  for (int i = 0; i < kDepth; ++i) body += "@p bra E" + std::to_string(i) + "; x;\n";
  for (int i = kDepth; i-- > 0;) body += "E" + std::to_string(i) + ": y;\n";
  const Analysed a = analysed(body + "ret;");
  for (uint32_t i = 0; i < kDepth; ++i) REQUIRE(a.flow.reconvergence[2 * i] == 3 * kDepth - 1 - i);
}
