// What tcgen05.mma refuses: descriptors, shapes, addresses. PTX ISA, "Shared memory descriptor", "Instruction
// descriptor", "Data path layout"; nothing checks a descriptor before run time, so the emulator must.

#include "tests/probes/mma_program.h"

namespace {

using probe::MmaProgram;
using probe::Swizzle;

MmaProgram plain() {
  MmaProgram program;
  program.n = 64;
  program.finish();
  return program;
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  size_t at = text.find(what);
  INFO(what << " in\n" << text);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), with);
}

/// The report when `what` in the program's text is replaced.
std::string report_of(const MmaProgram& program, const std::string& what, const std::string& with) {
  auto one = [](uint32_t, uint32_t) { return 0x3C00u; };
  probe::Ending ending = probe::failure(replaced(program.text(), what, with),
                                        probe::inputs_of(program, one, one, std::vector<uint32_t>(128 * program.n)),
                                        probe::shape_of(program));
  CHECK(ending.error == 715);
  return ending.report;
}

/// Of a program whose descriptor of A (%d5) or B (%d6) has other constant bits.
std::string with_descriptor(const char* operand, uint64_t flip) {
  MmaProgram program = plain();
  const probe::Operand& o = std::string(operand) == "%d5" ? program.a : program.b;
  return report_of(program, fmt::format("or.b64 {0}, {0}, {1:#x};", operand, o.descriptor()),
                   fmt::format("or.b64 {0}, {0}, {1:#x};", operand, o.descriptor() ^ flip));
}

std::string with_instruction_descriptor(uint32_t word) {
  MmaProgram program = plain();
  return report_of(program, fmt::format("mov.b32 %r9, {:#x};", program.instruction_descriptor()),
                   fmt::format("mov.b32 %r9, {:#x};", word));
}

}  // namespace

TEST_CASE("tcgen05.mma takes matrix descriptors without bit 46, unless LADDER_STRICT asks for it") {
  const MmaProgram program = plain();
  const auto value = [](uint32_t row, uint32_t column) { return 0x3C00u + (row + column) % 8 * 0x80; };
  const auto inputs = probe::inputs_of(program, value, value, std::vector<uint32_t>(128 * program.n));
  const size_t count = size_t{4} * 128 * program.n;
  const auto launch = [&](bool strict, uint64_t flip) {
    emu::Options options;
    options.strict = strict;
    const uint64_t word = program.a.descriptor();
    return probe::launch_with(options,
                              replaced(program.text(), fmt::format("or.b64 %d5, %d5, {:#x};", word),
                                       fmt::format("or.b64 %d5, %d5, {:#x};", word ^ flip)),
                              count, inputs, probe::shape_of(program));
  };
  const probe::Ending good = launch(false, 0), zeros = launch(false, uint64_t{1} << 46);
  CHECK(good.report.empty());
  CHECK(good.bytes == zeros.bytes);
  CHECK(zeros.report.empty());
  CHECK_THAT(zeros.remarks, test::contains("the descriptor of A has zeros in bits 46-48"));
  CHECK(good.remarks.empty());
  CHECK_THAT(launch(true, uint64_t{1} << 46).report, test::contains("descriptor of A") && test::contains("bit 46"));
}

TEST_CASE("tcgen05.mma refuses matrix descriptors with wrong bits, naming operand and bits") {
  for (const char* operand : {"%d5", "%d6"}) {
    const std::string name = std::string(operand) == "%d5" ? "descriptor of A" : "descriptor of B";
    std::string report = with_descriptor(operand, uint64_t{3} << 46);
    CHECK_THAT(report, test::contains(name));
    CHECK_THAT(report, test::contains("bit 46"));
    // Layouts 3, 5 and 7 (2 is the right one).
    for (uint64_t layout : {3, 5, 7})
      CHECK_THAT(with_descriptor(operand, (layout ^ 2) << 61), test::contains("layout " + std::to_string(layout)));
    for (int bit : {14, 30, 31, 47, 48, 52, 53, 60}) {
      INFO("bit " << bit);
      CHECK_THAT(with_descriptor(operand, uint64_t{1} << bit), test::contains(name));
    }
  }
}

TEST_CASE("tcgen05.mma refuses a base offset that is not where the tile starts") {
  for (const char* operand : {"%d5", "%d6"})
    for (uint64_t base : {1, 4, 7})
      CHECK_THAT(with_descriptor(operand, base << 49),
                 test::contains(fmt::format("0 bytes into a 1024-byte period of the 128B swizzle, but its base offset "
                                            "(bits 49-51) is {}",
                                            base)));
}

TEST_CASE("tcgen05.mma refuses operands that reach outside shared memory") {
  MmaProgram program = plain();
  const std::string start_b = fmt::format("add.u32 %r7, %r0, {};", program.b.start(0));
  for (uint32_t start : {8u * 1024, 120u * 1024, 200u * 1024}) {
    std::string report = report_of(program, start_b, fmt::format("add.u32 %r7, %r0, {};", program.b.start(0) + start));
    CHECK_THAT(report, test::contains("B (64 rows"));
    CHECK_THAT(report, test::contains("is read from shared address"));
  }
  // A stride in bytes where it belongs >> 4: 16 times too far.
  program.a.gap = 1024 * 15;
  CHECK_THAT(
      report_of(plain(), fmt::format("{:#x}", plain().a.descriptor()), fmt::format("{:#x}", program.a.descriptor())),
      test::contains("A (128 rows"));
}

TEST_CASE("tcgen05.mma refuses instruction descriptors that are none") {
  const uint32_t good = plain().instruction_descriptor();
  struct Case {
    uint32_t word;
    const char* says;
  };
  for (const Case& c :
       {Case{(good & ~0x1F000000u) | 96u >> 4 << 24, "M is 96"},
        Case{(good & ~0x1F000000u) | 256u >> 4 << 24, "M is 256"}, Case{(good & ~0x1F000000u), "M is 0"},
        Case{(good & ~0x7E0000u), "N is 0"}, Case{(good & ~0x7E0000u) | 264u >> 3 << 17, "N is 264"},
        Case{good | 1u << 6, "bit 6"}, Case{good | 1u << 23, "bit 23"}, Case{good | 1u << 29, "bit 29"},
        Case{good | 1u << 2, "sparse"}, Case{good | 1u << 3, "saturation"}, Case{good | 3u << 30, "bits 30-31"},
        Case{good | 2u << 7, "type 2 of A"}, Case{good | 7u << 10, "type 7 of B"},
        Case{(good & ~0x30u) | 2u << 4, "type 2 of D"}, Case{(good & ~0x30u) | 1u << 7, "bf16"}})
    CHECK_THAT(with_instruction_descriptor(c.word), test::contains(c.says));
}

TEST_CASE("tcgen05.mma refuses D and A at lanes where they cannot start") {
  MmaProgram program = plain();
  CHECK_THAT(report_of(program, "add.u32 %r10, %r5, 0;", "add.u32 %r10, %r5, 0x100000;"), test::contains("lane 16"));
  program.m = 64;
  program.finish();
  CHECK_THAT(report_of(program, "add.u32 %r10, %r5, 0;", "add.u32 %r10, %r5, 0x80000;"),
             test::contains("lane 0 or 16"));
  program.a_in_tmem = true;
  program.finish();
  CHECK_THAT(report_of(program, "add.u32 %r8, %r10, 256;", "add.u32 %r8, %r10, 0x100100;"),
             test::contains("both must start at the same lane"));
}

TEST_CASE("tcgen05.mma refuses columns that are not this CTA's") {
  MmaProgram program = plain();
  auto one = [](uint32_t, uint32_t) { return 0x3C00u; };
  const auto report = [&](const std::string& what, const std::string& with) {
    return probe::failure(replaced(program.text(), what, with),
                          probe::inputs_of(program, one, one, std::vector<uint32_t>(128 * program.n)),
                          probe::shape_of(program))
        .report;
  };
  CHECK_THAT(report("add.u32 %r10, %r5, 0;", "add.u32 %r10, %r5, 480;"), test::contains("512"));
  std::string few = replaced(program.text(), "cta.b32 [address], 512;", "cta.b32 [address], 32;");
  few = replaced(few, "%r5, 512;", "%r5, 32;");
  CHECK_THAT(probe::failure(few, probe::inputs_of(program, one, one, std::vector<uint32_t>(128 * program.n)),
                            probe::shape_of(program))
                 .report,
             test::contains("column 32 is not allocated"));
}

TEST_CASE("tcgen05.mma that adds to tensor memory which nothing has written is reported") {
  CHECK_THAT(report_of(plain(), "setp.eq.u32 %enable, 0, 1;", "setp.eq.u32 %enable, 0, 0;"),
             test::contains("nothing has written"));
}

TEST_CASE("tensor memory given back while an MMA still writes it is reported") {
  // The wait for the commit is gone, and D is never read: only a schedule that takes its time can tell.
  MmaProgram program = plain();
  std::string text = program.text();
  size_t from = text.find("    mbarrier.try_wait"), to = text.find("    tcgen05.fence::before_thread_sync;", from);
  text.erase(from, to - from);
  auto one = [](uint32_t, uint32_t) { return 0x3C00u; };
  for (int seed = 0; seed < 8; ++seed) {
    emu::Options with =
        probe::options(seed ? emu::Schedule::random : emu::Schedule::latest, static_cast<uint64_t>(seed));
    probe::Ending ending =
        probe::launch_with(with, text, 64, probe::inputs_of(program, one, one, std::vector<uint32_t>(128 * program.n)),
                           probe::shape_of(program));
    if (seed == 0) CHECK_THAT(ending.report, test::contains("still under way"));
  }
}
