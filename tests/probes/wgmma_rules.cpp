// wgmma: the register maps against CUTLASS's, what is asked of the four warps, and when shared memory is read.

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/probes/wgmma_program.h"

using probe::WgmmaProgram;
using probe::WgmmaType;

namespace {

emu::Options h200(emu::Schedule schedule = emu::Schedule::earliest, bool strict = false, uint64_t seed = 1) {
  emu::Options out;
  out.chip = "h200";
  out.schedule = schedule;
  out.strict = strict;
  out.seed = seed;
  return out;
}

constexpr const char* kScope = ".extern .shared .align 1024 .b8 smem[];";

/// Every byte of shared memory that the operands lie in.
std::string fill(const std::string& value) {
  return "    mov.u32 %r2, smem;\n    shl.b32 %r3, %r1, 5;\n    add.u32 %r2, %r2, %r3;\n    mov.b32 %r4, " + value +
         R"(;
    st.shared.v4.b32 [%r2], {%r4, %r4, %r4, %r4};
    st.shared.v4.b32 [%r2+16], {%r4, %r4, %r4, %r4};
    fence.proxy.async.shared::cta;
    bar.sync 0;
)";
}

/// f16 64x8, shared memory full of NaN, both operands at smem without swizzle: %d5 and %d6 are their descriptors, %e
/// the registers of D.
std::string program(const std::string& body) {
  return probe::kernel(R"(
    .reg .b32 %e<8>;
    mov.u32 %r0, smem;
    and.b32 %r0, %r0, 0x3FFFF;
    shr.u32 %r0, %r0, 4;
    cvt.u64.u32 %d5, %r0;
    or.b64 %d5, %d5, 0x0000000800400000;
    add.u64 %d6, %d5, 128;
    mov.u32 %r1, %tid.x;
    ld.param.u64 %d0, [p0];
    mad.wide.u32 %d0, %r1, 16, %d0;
    mov.b32 %e0, 0f3F800000;
    mov.b32 %e1, 0f40000000;
    mov.b32 %e2, 0f40400000;
    mov.b32 %e3, 0f40800000;
)" + fill("-1") + body,
                       1, kScope, "sm_90a");
}
constexpr const char* kFence = "    wgmma.fence.sync.aligned;\n";
constexpr const char* kMma =
    "    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%e0, %e1, %e2, %e3}, %d5, %d6, 1, 1, 1, 0, 0;\n";
constexpr const char* kCommit = "    wgmma.commit_group.sync.aligned;\n";
constexpr const char* kWait = "    wgmma.wait_group.sync.aligned 0;\n";
constexpr const char* kStore = "    st.global.v4.b32 [%d0], {%e0, %e1, %e2, %e3};\n";

probe::Shape shape(uint32_t threads, const char* apart = nullptr) {
  return {.block = {threads, 1, 1}, .dynamic_shared_bytes = 8192, .apart = apart};
}
constexpr const char* kUndefined = "the ISA leaves it undefined, the emulator stops";
constexpr const char* kStrict = "LADDER_STRICT shows what ptxas and silicon hide";

std::string report(const std::string& text, uint32_t threads = 128, const emu::Options& with = h200()) {
  return probe::failure(text, {}, shape(threads, kUndefined), with).report;
}

void contains(const std::string& text, const std::string& part) {
  INFO(text);
  CHECK(text.find(part) != std::string::npos);
}

}  // namespace

TEST_CASE("wgmma: the register maps are CUTLASS's") {
  std::ifstream stream(SOURCE_FOLDER "/tests/golden/cutlass_wgmma_fragments.json");
  REQUIRE(stream.good());
  const auto golden = nlohmann::json::parse(stream);
  int seen = 0;
  for (const auto& row : golden["rows"]) {
    const std::string what = row[0], variant = row[1];
    if (what != "D" && what != "A") continue;
    ++seen;
    const uint32_t es = variant == "tf32" ? 4 : variant == "8-bit" ? 1 : 2, size = row[2];
    const uint32_t elements = what == "D" ? size / 2 : 16 / es;
    const auto cell = [&](uint32_t thread, uint32_t i) {
      return what == "D" ? probe::wgmma_d(thread, i) : probe::wgmma_a(es, thread, i);
    };
    uint64_t hash = 0;
    for (uint32_t thread = 0; thread < 128; ++thread)
      for (uint32_t i = 0; i < elements; ++i) {
        const probe::Cell at = cell(thread, i);
        hash = hash * 1000003 + at.row * 65536 + at.column;
      }
    INFO(what << " " << variant << " " << size);
    CHECK(hash == std::stoull(row[3].get<std::string>(), nullptr, 16));
    for (const auto& sample : row[4]) {
      const probe::Cell at = cell(sample[0], sample[1]);
      CHECK(at.row == sample[2].get<uint32_t>());
      CHECK(at.column == sample[3].get<uint32_t>());
    }
  }
  CHECK(seen == 10);
}

TEST_CASE("wgmma: the whole warpgroup must take part") {
  const std::string good = std::string(kFence) + kMma + kCommit + kWait + kStore;
  contains(report(program(good), 96), "a warpgroup is four whole warps");
  contains(report(program(good), 112), "a warpgroup is four whole warps");
  contains(report(program(good), 192), "wgmma by warp");
  // Warp 3 leaves without it.
  const std::string leaves = "    setp.ge.u32 %p0, %r1, 96;\n    @%p0 exit;\n";
  const std::string text = report(program(leaves + good));
  const bool told = text.find("warp 3 of its warpgroup has exited without it") != std::string::npos ||
                    text.find("waits for a wgmma.mma_async that warps 3 have not executed") != std::string::npos;
  INFO(text);
  CHECK(told);
  // Warp 2 executes another one.
  contains(report(program("    setp.lt.u32 %p0, %r1, 64;\n    @%p0 bra first;\n    setp.ge.u32 %p0, %r1, 96;\n"
                          "    @%p0 bra first;\n" +
                          std::string(kMma) + "    bra after;\n  first:\n" + kMma + "  after:\n" + kCommit + kWait)),
           "that is not the one of the other warps");
  // Lanes differ.
  contains(report(program("    and.b32 %r2, %r1, 1;\n    cvt.u64.u32 %d7, %r2;\n    add.u64 %d6, %d6, %d7;\n" + good)),
           "the descriptor of B differs between the lanes");
  contains(report(program("    shr.u32 %r2, %r1, 5;\n    cvt.u64.u32 %d7, %r2;\n    add.u64 %d6, %d6, %d7;\n" + good)),
           "the descriptor of B is");
}

TEST_CASE("wgmma: descriptors and addresses are checked") {
  const std::string tail = std::string(kMma) + kCommit + kWait;
  contains(report(program("    or.b64 %d6, %d6, 0x0000400000000000;\n" + tail)), "bits 46-48");
  contains(report(program("    or.b64 %d6, %d6, 0x3000;\n" + tail)), "is read from shared address");
  contains(report(program("    or.b64 %d5, %d5, 0x4000;\n" + tail)), "bits 14-15 must be zero");
}

TEST_CASE("wgmma: only sm_90a has it") {
  emu::Options options;
  probe::Machine machine(options);
  CHECK_THROWS(
      machine.launch(program(std::string(kMma)), {machine.buffer(std::vector<uint32_t>(4))}, shape(128), false));
}

TEST_CASE("wgmma: forms that the emulator refuses by name") {
  const auto refused = [](const std::string& text, const std::string& part) {
    const std::string got =
        probe::launch_with(h200(), program("    .reg .b64 %m; mov.b64 %m, 0;\n" + text), 16, {}, shape(128), false)
            .report;
    contains(got, part);
  };
  refused("wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {%e0, %e1, %e2, %e3}, %d5, %d6, %r0, 0, 1, 1, 1, 0, 0;",
          "sparse wgmma");
  refused("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.bf16 {%e0, %e1, %e2, %e3}, %d5, %d6, 1, 1, 1, 0, 0;",
          "there is no form with D .f32, A .f16, B .bf16");
  refused("wgmma.mma_async.sync.aligned.m64n12k16.f32.f16.f16 {%e0, %e1, %e2, %e3}, %d5, %d6, 1, 1, 1, 0, 0;",
          "shape .m64n12k16 does not exist");
  refused("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%e0, %e1}, %d5, %d6, 1, 1, 1, 0, 0;",
          "D takes 4 registers, not 2");
  refused("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%e0, %e1, %e2, %e3}, %d5, %d6, 1, 2, 1, 0, 0;",
          "imm-scale-a is 2");
  refused("wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {%e0, %e1, %e2, %e3}, %d5, %d6, 1, 1, 1, 0, 0;",
          "operands are wanted");
}

TEST_CASE("wgmma: with LADDER_STRICT the registers of D are no good before the wait") {
  const std::string before = std::string(kFence) + kMma + kCommit + kStore + kWait;
  const std::string after = std::string(kFence) + kMma + kCommit + kWait + kStore;
  for (emu::Schedule schedule : {emu::Schedule::earliest, emu::Schedule::latest, emu::Schedule::random}) {
    for (const std::string& body : {before, after}) {
      const auto ending = probe::launch_with(h200(schedule, true), program(body), 2048, {}, shape(128, kStrict));
      REQUIRE(ending.report.empty());
      const auto values = probe::values_of<uint32_t>(ending.bytes);
      CHECK(values == std::vector<uint32_t>(512, body == before ? 0xFFFFDEADu : 0x7FFFFFFFu));
    }
    const auto ending = probe::launch_with(h200(schedule), program(before), 2048, {}, shape(128));
    REQUIRE(ending.report.empty());
    CHECK(probe::values_of<uint32_t>(ending.bytes) == std::vector<uint32_t>(512, 0x7FFFFFFFu));
  }
}

TEST_CASE("wgmma: with LADDER_STRICT a group that is still allowed to run keeps its registers") {
  const std::string other =
      "    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%e4, %e5, %e6, %e7}, %d5, %d6, 0, 1, 1, 0, 0;\n";
  const std::string body = std::string(kFence) + kMma + kCommit + other + kCommit +
                           "    wgmma.wait_group.sync.aligned 1;\n    st.global.v4.b32 [%d0], {%e0, %e1, %e4, %e5};\n" +
                           kWait;
  for (emu::Schedule schedule : {emu::Schedule::earliest, emu::Schedule::latest, emu::Schedule::random}) {
    const auto ending = probe::launch_with(h200(schedule, true), program(body), 2048, {}, shape(128, kStrict));
    REQUIRE(ending.report.empty());
    const auto values = probe::values_of<uint32_t>(ending.bytes);
    for (size_t i = 0; i < values.size(); ++i) CHECK(values[i] == (i % 4 < 2 ? 0x7FFFFFFFu : 0xFFFFDEADu));
  }
}

TEST_CASE("wgmma: shared memory that is overwritten before the wait shows with late schedules") {
  // Zeros first, then NaN over them: only after the wait is that harmless.
  const std::string zeros = fill("0");
  const std::string over = R"(
    bar.sync 0;
    mov.b32 %r4, -1;
    st.shared.v4.b32 [%r2], {%r4, %r4, %r4, %r4};
    st.shared.v4.b32 [%r2+16], {%r4, %r4, %r4, %r4};
)";
  const std::string issue = std::string(kFence) + kMma + kCommit;
  const std::string good = program(zeros + issue + kWait + over + kStore);
  const std::string bad = program(zeros + issue + over + kWait + kStore);
  std::vector<uint32_t> want(512);
  for (uint32_t i = 0; i < 512; ++i) want[i] = std::bit_cast<uint32_t>(static_cast<float>(i % 4 + 1));
  for (emu::Schedule schedule : {emu::Schedule::earliest, emu::Schedule::latest, emu::Schedule::random})
    CHECK(probe::values_of<uint32_t>(probe::launch_with(h200(schedule), good, 2048, {}, shape(128)).bytes) == want);
  CHECK(probe::values_of<uint32_t>(
            probe::launch_with(h200(emu::Schedule::latest), bad, 2048, {}, shape(128, "a race on purpose")).bytes) ==
        std::vector<uint32_t>(512, 0x7FFFFFFFu));
  int noticed = 0;
  for (uint64_t seed = 1; seed <= 16; ++seed)
    noticed += probe::values_of<uint32_t>(probe::launch_with(h200(emu::Schedule::random, false, seed), bad, 2048, {},
                                                             shape(128, "a race on purpose"))
                                              .bytes) != want;
  CHECK(noticed > 4);
}

TEST_CASE("wgmma: warps that come at other times, other registers in between") {
  // Warp 0 is far ahead of warp 3; A in registers comes from another wgmma's D.
  const std::string late = R"(
    shr.u32 %r2, %r1, 5;
    mul.lo.u32 %r3, %r2, 50;
  again:
    setp.eq.u32 %p0, %r3, 0;
    @%p0 bra on;
    sub.u32 %r3, %r3, 1;
    bra again;
  on:
)";
  const std::string chained =
      "    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%e4, %e5, %e6, %e7}, {%e0, %e1, %e2, %e3}, %d6, 0, 1, 1, "
      "0;\n";
  const std::string body = fill("0") + late + kFence + kMma + kCommit + chained + kCommit + kWait +
                           "    st.global.v4.b32 [%d0], {%e0, %e3, %e4, %e7};\n";
  for (emu::Schedule schedule : {emu::Schedule::earliest, emu::Schedule::latest, emu::Schedule::random})
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      const auto ending = probe::launch_with(h200(schedule, false, seed), program(body), 2048, {}, shape(128));
      REQUIRE(ending.report.empty());
      const auto values = probe::values_of<uint32_t>(ending.bytes);
      bool right = true;
      for (size_t i = 0; i < values.size(); ++i)
        right = right && values[i] == (i % 4 == 0 ? 0x3F800000u : i % 4 == 1 ? 0x40800000u : 0u);
      CHECK(right);
    }
}
