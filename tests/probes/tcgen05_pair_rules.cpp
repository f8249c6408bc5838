// What a pair of CTAs must do together, and what is said when it does not. PTX ISA, "CTA Pair", "tcgen05.alloc",
// "tcgen05.dealloc", "tcgen05.commit", "Matrix shape".

#include "tests/probes/pair_program.h"

namespace {

using probe::PairProgram;

const std::string kStart = R"(
    .shared .align 8 .b64 never;
    .shared .align 4 .b32 address[2];
    ld.param.u64 %d0, [p0];
    mov.u32 %r0, %cluster_ctarank;
    setp.eq.u32 %p1, %r0, 1;
)";
const std::string kAlloc = "    tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [address], 64;\n";
const std::string kDealloc =
    "    ld.shared.u32 %r1, [address];\n    tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r1, 64;\n";
const std::string kWaitForEver =
    "    mbarrier.init.shared::cta.b64 [never], 1;\n  ever:\n"
    "    mbarrier.try_wait.parity.shared::cta.b64 %p2, [never], 0;\n    @!%p2 bra ever;\n";

/// The report of a program that a pair runs, one warp in each CTA.
std::string report_of(const std::string& body, uint32_t cluster = 2, uint32_t threads = 32) {
  return probe::failure(probe::kernel(kStart + body, 1), {},
                        {.grid = {cluster, 1, 1}, .block = {threads, 1, 1}, .cluster = {cluster, 1, 1}})
      .report;
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  size_t at = text.find(what);
  INFO(what << " in\n" << text);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), with);
}

PairProgram plain() {
  PairProgram program;
  program.finish();
  return program;
}
std::vector<std::vector<std::byte>> ones(const PairProgram& program) {
  auto one = [](uint32_t, uint32_t) { return 0x3C00u; };
  return probe::inputs_of(program, one, one, std::vector<uint32_t>(program.words()));
}
/// The report when `what` in the program's text is replaced. `valid`: whether ptxas takes it, too.
std::string report_with(const PairProgram& program, const std::string& what, const std::string& with,
                        bool valid = true) {
  probe::Machine machine;
  std::vector<uint64_t> parameters{machine.buffer(std::vector<uint32_t>(program.words()))};
  for (const auto& input : ones(program)) parameters.push_back(machine.buffer(input));
  std::optional<emu::Fault> fault =
      machine.launch(replaced(program.text(), what, with), parameters, program.shape(), valid);
  if (!fault) FAIL("the program was expected to fault");
  return fault->report;
}

}  // namespace

TEST_CASE("pairs: tcgen05.alloc gives both CTAs the same columns, several times over, by different warps") {
  // Two warps of each CTA allocate at once; each pair of calls gets columns of its own.
  const std::string body = kStart + R"(
    mov.u32 %r2, %tid.x;
    shr.u32 %r3, %r2, 5;
    shl.b32 %r4, %r3, 2;
    mov.u32 %r5, address;
    add.u32 %r5, %r5, %r4;
    tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%r5], 128;
    ld.shared.u32 %r6, [%r5];
)" + probe::kClusterBarrier +
                           R"(
    shr.u32 %r8, %r6, 7;
    mad.lo.u32 %r7, %r0, 2, %r8;
    mad.wide.u32 %d1, %r7, 4, %d0;
    st.global.u32 [%d1], %r6;
    tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r6, 128;
)";
  std::vector<uint32_t> got = probe::everywhere<uint32_t>(
      probe::kernel(body, 1), 4, {}, {.grid = {2, 1, 1}, .block = {64, 1, 1}, .cluster = {2, 1, 1}}, 8);
  REQUIRE(got.size() == 4);
  CHECK(got == std::vector<uint32_t>{0, 128, 0, 128});
}

TEST_CASE("pairs: more of them than tensor memory has room for wait for one another") {
  // 256 columns each: two pairs fit on their SMs at once, many more are resident. Each adds its cluster's number.
  const std::string body =
      kStart + "    tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [address], 256;\n" + R"(
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %tid.x;
    setp.ne.u32 %p0, %r3, 0;
    @%p0 bra counted;
    red.global.add.u32 [%d0], %r2;
    nanosleep.u32 300;
  counted:
    ld.shared.u32 %r1, [address];
    tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r1, 256;
)";
  std::vector<uint32_t> got = probe::everywhere<uint32_t>(
      probe::kernel(body, 1), 1, {}, {.grid = {1200, 1, 1}, .block = {32, 1, 1}, .cluster = {2, 1, 1}}, 2);
  REQUIRE(got.size() == 1);
  CHECK(got[0] == 0xEEEEEEEE + 1200 * 1199 / 2);
}

TEST_CASE("pairs: tcgen05.alloc by one CTA only hangs, and the report names the other") {
  std::string report = report_of("    @%p1 bra end;\n" + kAlloc + kDealloc + "  end:\n");
  CHECK_THAT(report, test::contains("hangs"));
  CHECK_THAT(report, test::contains("tcgen05.alloc of 64 columns for the other CTA of its pair, CTA 1"));
  CHECK_THAT(report, test::contains("has ended without calling it"));
  report = report_of("    @!%p1 bra alloc;\n" + kWaitForEver + "  alloc:\n" + kAlloc + kDealloc);
  CHECK_THAT(report, test::contains("CTA 1 of the cluster, which has not called it"));
}

TEST_CASE("pairs: tcgen05.dealloc by one CTA only hangs, or finds that the other ended with columns") {
  CHECK_THAT(report_of(kAlloc + "    @%p1 bra end;\n" + kDealloc + "  end:\n"),
             test::contains("ends with 64 columns of tensor memory still allocated"));
  CHECK_THAT(report_of(kAlloc + "    @!%p1 bra free;\n" + kWaitForEver + "  free:\n" + kDealloc),
             test::contains("tcgen05.dealloc of 64 columns for the other CTA of its pair, CTA 1"));
}

TEST_CASE("pairs: both CTAs must ask for the same number of columns, and a CTA that gave up the permit for none") {
  CHECK_THAT(report_of("    mov.u32 %r1, 64;\n    selp.u32 %r1, 32, %r1, %p1;\n"
                       "    tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [address], %r1;\n"),
             test::contains("in the allocation that both make together"));
  CHECK_THAT(report_of(kAlloc + "    tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;\n" + kAlloc),
             test::contains("gave up the permit"));
}

TEST_CASE("pairs exist in clusters of an even size only") {
  for (uint32_t cluster : {1u, 3u}) CHECK_THAT(report_of(kAlloc, cluster), test::contains("even number of CTAs"));
}

TEST_CASE("pairs: an instruction of the other cta_group is refused") {
  // ptxas refuses such a kernel as a whole.
  const std::string commit = "tcgen05.commit.cta_group::2",
                    report = report_with(plain(), commit, "tcgen05.commit.cta_group::1", false);
  CHECK_THAT(report, test::contains("of cta_group::1, another one of the kernel of cta_group::2"));
  CHECK_THAT(report, test::contains("same .cta_group"));
}

TEST_CASE("pairs: disabled lanes are given in eight registers") {
  // ptxas wants eight, too.
  PairProgram program = plain();
  program.with_mask = true;
  CHECK_THAT(report_with(program, ", {%m0, %m1, %m2, %m3, %m4, %m5, %m6, %m7}", ", {%m0, %m1, %m2, %m3}", false),
             test::contains("8 registers of disabled lanes"));
}

TEST_CASE("pairs: tcgen05.mma refuses shapes that a pair does not have") {
  PairProgram program = plain();
  const uint32_t good = program.instruction_descriptor();
  const auto with = [&](uint32_t word) {
    return report_with(program, fmt::format("mov.b32 %r9, {:#x};", good), fmt::format("mov.b32 %r9, {:#x};", word));
  };
  CHECK_THAT(with((good & ~0x7E0000u) | 24u >> 3 << 17), test::contains("16 to 256 in steps of 16"));
  CHECK_THAT(with((good & ~0x1F000000u) | 64u >> 4 << 24), test::contains("cta_group::2 takes 128 or 256"));
}

TEST_CASE("pairs: tcgen05.mma refuses columns that are not allocated, naming the CTA") {
  std::string few = replaced(plain().text(), "cta.b32 [address], 512;", "cta.b32 [address], 32;");
  few = replaced(few, "%r5, 512;", "%r5, 32;");
  CHECK_THAT(probe::failure(few, ones(plain()), plain().shape()).report,
             test::contains("of CTA 0: column 32 is not allocated"));
}

TEST_CASE("pairs: operands that reach outside the shared memory of a CTA") {
  PairProgram program = plain();
  CHECK_THAT(report_with(program, fmt::format("add.u32 %r7, %r0, {};", program.b.start(0)),
                         fmt::format("add.u32 %r7, %r0, {};", program.b.start(0) + 8192)),
             test::contains("B (32 rows"));
}

TEST_CASE("pairs: each CTA sees a multicast commit for itself; a CTA may end only when its own has come") {
  // CTA 1 waits for its barrier, then both meet. Nobody waits for CTA 0's: with `latest` it has not completed then.
  PairProgram program = plain();
  const std::string wait = R"(  issued:
    mbarrier.try_wait.parity.shared::cta.b64 %p0, [done], 0;
    @!%p0 bra issued;
)";
  std::string text = program.text();
  const size_t from = text.find(wait), to = text.find("    tcgen05.fence::before_thread_sync;", from);
  REQUIRE(from != std::string::npos);
  text.replace(from, to - from,
               "  issued:\n    setp.eq.u32 %p2, %r20, 0;\n    @%p2 bra passed;\n  one:\n"
               "    mbarrier.try_wait.parity.shared::cta.b64 %p0, [done], 0;\n    @!%p0 bra one;\n  passed:\n" +
                   probe::kClusterBarrier +
                   "    mbarrier.test_wait.parity.shared::cta.b64 %p0, [done], 0;\n    selp.u32 %r7, 1, 0, %p0;\n"
                   "    mad.wide.u32 %d4, %r21, 4, %d0;\n    st.global.u32 [%d4], %r7;\n");
  // Sleep, so that what is under way completes before the end.
  std::string patient = text;
  patient.insert(patient.find("    setp.ne.u32 %p1, %r2, 0;\n    @%p1 bra freed;"),
                 "  own:\n    mbarrier.try_wait.parity.shared::cta.b64 %p0, [done], 0;\n    @!%p0 bra own;\n" +
                     probe::kClusterBarrier);
  for (emu::Schedule schedule : {emu::Schedule::earliest, emu::Schedule::latest}) {
    probe::Ending ending =
        probe::launch_with(probe::options(schedule), patient, program.words() * 4, ones(program), program.shape());
    REQUIRE(ending.report.empty());
    std::vector<uint32_t> seen = probe::values_of<uint32_t>(ending.bytes);
    for (size_t t = 0; t < 128; ++t) {
      REQUIRE(seen[t] == (schedule == emu::Schedule::earliest ? 1u : 0u));
      REQUIRE(seen[128 + t] == 1);
    }
  }
  // Without the last wait CTA 0 ends before its commit has come.
  emu::Options latest = probe::options(emu::Schedule::latest);
  probe::Ending ending = probe::launch_with(latest, text, program.words() * 4, ones(program), program.shape());
  CHECK(ending.report.empty());
  CHECK_THAT(ending.remarks, test::contains("a commit came after its CTA of the cluster had ended and is lost"));
  latest.strict = true;
  ending = probe::launch_with(latest, text, program.words() * 4, ones(program), program.shape());
  CHECK_THAT(ending.report, test::contains("tcgen05.commit"));
  CHECK_THAT(ending.report, test::contains("CTA 0 of the cluster had ended"));
}
