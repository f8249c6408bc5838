// Which registers hold the time and nothing else.

#include "emulator/ptx/clock_values.h"

#include "tests/catch.h"
#include "tests/unit/ptx_text.h"

using namespace emu::ptx;

namespace {

std::string clock_registers(const std::string& body) {
  const Module m = test::kernel(body);
  const Function& f = test::entry(m);
  const std::vector<bool> found = clock_values(f);
  std::string names;
  for (size_t r = 0; r < found.size(); ++r)
    if (found[r]) names += (names.empty() ? "" : " ") + std::string(f.registers[r].name);
  return names;
}

}  // namespace

TEST_CASE("clock values: what is read, and what follows from it") {
  CHECK(clock_registers("mov.u32 %r1, %clock; mov.u32 %r2, %tid.x; add.u32 %r3, %r1, %r2; ret;") == "%r1 %r3");
  CHECK(clock_registers("mov.u64 %rd1, %globaltimer; shr.u64 %rd2, %rd1, 2; cvt.u32.u64 %r1, %rd2; ret;") ==
        "%rd1 %rd2 %r1");
  CHECK(clock_registers("mov.u32 %r1, %laneid; ret;") == "");
}

TEST_CASE("clock values: a register that its own last value goes into counts, and so does what follows from it") {
  CHECK(clock_registers("mov.u32 %r1, %clock; L: add.u32 %r1, %r1, 1; mov.u32 %r2, %r1; bra L;") == "");
  CHECK(clock_registers(
            "L: mov.u32 %r1, %clock; add.u32 %r2, %r3, %r1; mov.u32 %r3, %r2; add.u32 %r4, %r3, 1; bra L;") == "%r1");
}

TEST_CASE("clock values: a predicate is none, and what it selects is none") {
  CHECK(clock_registers("mov.u32 %r1, %clock; setp.lt.u32 %p1, %r1, 9; selp.u32 %r2, 1, 2, %p1; ret;") == "%r1");
  CHECK(clock_registers("mov.u32 %r1, %clock; setp.lt.u32 %p1, %r1, 9; @%p1 mov.u32 %r2, 1; ret;") == "%r1");
}

TEST_CASE("clock values: what is written otherwise too follows from the clock all the same") {
  CHECK(clock_registers("mov.u32 %r1, 0; @%p1 mov.u32 %r1, %clock_hi; ret;") == "%r1");
}
