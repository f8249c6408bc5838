// .loc: which line of CUDA source an instruction comes from, through inlined functions. PTX ISA section 11.5.3.

#include "tests/catch.h"
#include "tests/unit/ptx_text.h"

using namespace emu::ptx;

namespace {

const Location& location(const Module& m, size_t instruction) {
  const Function& f = test::entry(m);
  REQUIRE(f.body.at(instruction).location != kNone);
  return m.locations.at(f.body[instruction].location);
}

const std::string kNames =
    "\n.file 1 \"/home/me/step00/blackwell.cu\"\n.file 2 \"/home/me/common/mbarrier.cuh\"\n"
    ".section .debug_str\n{\nname0:\n.b8 95\n.b8 90\n.b8 49\n.b8 0\nname1: .b8 102, 0\n}\n.section .debug_info { .b8 "
    "1\n.b64 name0-name1\n }\n";

}  // namespace

TEST_CASE("instructions have the line of the .loc before them") {
  const Module m =
      test::module(".entry k() { w; .loc 1 12 3\nx; y; .loc 1 13 5\nz; ret; } .entry other() { x; }" + kNames);
  CHECK(test::entry(m).body[0].location == kNone);
  CHECK(location(m, 1).innermost.line == 12);
  CHECK(location(m, 1).innermost.column == 3);
  CHECK(location(m, 2).innermost.line == 12);
  CHECK(location(m, 3).innermost.line == 13);
  CHECK(location(m, 3).outermost.line == 13);
  CHECK(location(m, 3).inlined_at == kNone);
  CHECK(location(m, 3).function.empty());
  CHECK(m.describe(location(m, 1).innermost) == "blackwell.cu:12");
  CHECK(m.function("other")->body[0].location == kNone);  // not the last line of the function before
}

TEST_CASE("inlined code has the wrapper's line and the kernel's") {
  const Module m = test::module(
      ".entry k() { .loc 1 40 3\n.loc 2 22 7, function_name name1, inlined_at 1 40 3\n"
      ".loc 2 17 11, function_name name0, inlined_at 2 22 7\nx; .loc 1 41 1\ny; ret; }" +
      kNames);
  const Location& l = location(m, 0);
  CHECK(m.describe(l.innermost) == "mbarrier.cuh:17");
  CHECK(m.describe(l.outermost) == "blackwell.cu:40");
  CHECK(l.function == "_Z1");
  REQUIRE(l.inlined_at != kNone);
  CHECK(m.describe(m.locations[l.inlined_at].innermost) == "mbarrier.cuh:22");
  CHECK(m.locations[l.inlined_at].function == "f");
  CHECK(m.describe(location(m, 1).innermost) == "blackwell.cu:41");
}

TEST_CASE("a wrapper that was inlined twice belongs to the call that came last") {
  const Module m = test::module(
      ".entry k() { .loc 1 10 1\n.loc 2 5 1, function_name name1, inlined_at 1 10 1\nx;\n"
      ".loc 1 20 1\n.loc 2 5 1, function_name name1, inlined_at 1 20 1\ny;\n"
      ".loc 2 6 1, function_name name0, inlined_at 2 5 1\nz; ret; }" +
      kNames);
  CHECK(location(m, 0).outermost.line == 10);
  CHECK(location(m, 1).outermost.line == 20);
  CHECK(location(m, 2).outermost.line == 20);
}

TEST_CASE("line 0 is no line: the one before it stays") {
  const Module m = test::module(".entry k() { .loc 1 10 1\nx; .loc 1 0 1\ny; ret; }" + kNames);
  CHECK(location(m, 1).innermost.line == 10);
}

TEST_CASE("equal lines share one location") {
  const Module m = test::module(".entry k() { .loc 1 10 1\nx; .loc 1 11 1\ny; .loc 1 10 1\nz; ret; }" + kNames);
  CHECK(test::entry(m).body[0].location == test::entry(m).body[2].location);
  CHECK(m.locations.size() == 2);
}

TEST_CASE("a file without a name is described by nothing") {
  const Module m = test::module(".entry k() { .loc 3 10 1\nx; }" + kNames);
  CHECK(m.describe(location(m, 0).innermost).empty());
}
