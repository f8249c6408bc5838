// setmaxnreg: what one warpgroup gives back another can take. The entry count follows from the launch bounds, as
// ptxas 13.0 -v says ("Used 168 registers" with .maxntid 384 and .minnctapersm 1); without them ptxas leaves setmaxnreg
// out (C7508).

#include "tests/probes/everywhere.h"

#include <fmt/format.h>

namespace {

/// 384 threads: the first 128 give back to `dec`, the others take `inc`; every thread writes its number.
std::string program(int dec, int inc, const std::string& bounds, bool first_gives = true) {
  std::string text =
      probe::kernel(fmt::format(R"(
    ld.param.u64 %d0, [p0];
    mov.u32 %r0, %tid.x;
    mad.wide.u32 %d0, %r0, 4, %d0;
    setp.lt.u32 %p0, %r0, 128;
    @%p0 bra gives;
    setmaxnreg.inc.sync.aligned.u32 {};
    bra after;
  gives:
    {}
  after:
    st.global.u32 [%d0], %r0;
)",
                                inc, first_gives ? fmt::format("setmaxnreg.dec.sync.aligned.u32 {};", dec) : ""),
                    1);
  text.replace(text.find(")\n{"), 2, ") " + bounds + "\n");
  return text;
}

constexpr const char* kBounds = ".maxntid 384, 1, 1 .minnctapersm 1";
const probe::Shape kShape{.block = {384, 1, 1}};

void hangs(const std::string& text, const std::string& part) {
  const auto ending = probe::launch_with({}, text, 384 * 4, {}, {.block = {384, 1, 1}, .apart = "it hangs there, too"});
  INFO(ending.report);
  CHECK(ending.report.find(part) != std::string::npos);
}

}  // namespace

TEST_CASE("setmaxnreg: 168 registers at entry become 40 and 232") {
  const auto values = probe::everywhere<uint32_t>(program(40, 232, kBounds), 384, {}, kShape);
  for (uint32_t i = 0; i < values.size(); ++i) CHECK(values[i] == i);
}

TEST_CASE("setmaxnreg: nobody has more at entry than the largest .inc takes") {
  // ptxas 13.0 -v: "Used 160 registers", though 168 would fit; and 160 with .maxnreg 200.
  for (const char* bounds : {kBounds, ".maxntid 384, 1, 1 .maxnreg 200"}) {
    const auto values = probe::everywhere<uint32_t>(program(40, 160, bounds), 384, {}, kShape);
    for (uint32_t i = 0; i < values.size(); ++i) CHECK(values[i] == i);
  }
}

TEST_CASE("setmaxnreg.inc waits for registers that nobody gives back") {
  hangs(program(48, 232, kBounds), "waits in setmaxnreg.inc for 2048 registers for its warp");
  hangs(program(40, 232, kBounds, false), "waits in setmaxnreg.inc for 2048 registers for its warp: 0 are free");
  hangs(program(40, 240, ".maxnreg 168"), "waits in setmaxnreg.inc for 2304 registers");
}

TEST_CASE("setmaxnreg is left out where ptxas does not know the entry count") {
  const auto values = probe::everywhere<uint32_t>(program(40, 256, ""), 384, {}, kShape, 1);
  for (uint32_t i = 0; i < values.size(); ++i) CHECK(values[i] == i);
}

TEST_CASE("setmaxnreg in the wrong direction, and counts that do not exist") {
  const auto traps = [](const std::string& text, const std::string& part) {
    const auto ending =
        probe::launch_with({}, text, 384 * 4, {}, {.block = {384, 1, 1}, .apart = "the ISA leaves it undefined"});
    INFO(ending.report);
    CHECK(ending.report.find(part) != std::string::npos);
  };
  traps(program(176, 232, kBounds), "setmaxnreg.dec to 176 registers a thread by a warp that has 168");
  std::string twice = program(40, 232, kBounds);
  twice.insert(twice.find("    bra after;"), "    setmaxnreg.inc.sync.aligned.u32 224;\n");
  traps(twice, "setmaxnreg.inc to 224 registers a thread by a warp that has 232");
  CHECK(probe::refusal("    setmaxnreg.dec.sync.aligned.u32 44;\n").find("24 to 256 in steps of 8") !=
        std::string::npos);
  CHECK(probe::refusal("    setmaxnreg.dec.sync.aligned.u32 16;\n").find("24 to 256 in steps of 8") !=
        std::string::npos);
}
