// ldmatrix, stmatrix and movmatrix: which lane's register holds which element. CUTLASS's maps (golden) for stmatrix of
// 16 bits; the ISA's fragments for the others of 16 bits; CUTLASS's copy traits for those of 8 bits, SrcLayout and
// DstLayout of SM100_U8x8_LDSM_T and SM100_U8x4_STSM_T.

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/probes/everywhere.h"

#include <fmt/format.h>

namespace {

constexpr uint32_t kBytes = 512;

/// Shared memory starts with p1's 512 bytes, registers %m with p2's words by lane; `text` runs; shared memory goes to
/// p0, the registers behind it. Row r of lane l is at %r2 for lane l: rows are `stride` apart and `swap`ped.
std::string program(const std::string& text, uint32_t registers) {
  std::string body = fmt::format(R"(
    .reg .b32 %m<4>;
    .reg .b32 %v<4>;
    .shared .align 16 .b8 tile[512];
    ld.param.u64 %d0, [p0];
    ld.param.u64 %d1, [p1];
    ld.param.u64 %d2, [p2];
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, tile;
    mad.wide.u32 %d1, %r0, 16, %d1;
    mad.wide.u32 %d2, %r0, 16, %d2;
    mad.lo.u32 %r2, %r0, 16, %r1;
    ld.global.v4.b32 {{%v0, %v1, %v2, %v3}}, [%d1];
    st.shared.v4.b32 [%r2], {{%v0, %v1, %v2, %v3}};
    ld.global.v4.b32 {{%m0, %m1, %m2, %m3}}, [%d2];
    bar.sync 0;
    xor.b32 %r3, %r0, 5;
    mad.lo.u32 %r2, %r3, 16, %r1;
    {}
    bar.sync 0;
    mad.wide.u32 %d0, %r0, 16, %d0;
    mad.lo.u32 %r2, %r0, 16, %r1;
    ld.shared.v4.b32 {{%v0, %v1, %v2, %v3}}, [%r2];
    st.global.v4.b32 [%d0], {{%v0, %v1, %v2, %v3}};
)",
                                 text);
  for (uint32_t i = 0; i < registers; ++i) body += fmt::format("    st.global.b32 [%d0+{}], %m{};\n", 512 + 4 * i, i);
  return probe::kernel(body, 3);
}

/// Address of lane l: row l ^ 5, so that rows do not lie in order.
uint32_t row_of(uint32_t lane) {
  return lane ^ 5;
}

struct State {
  std::vector<uint8_t> shared;      ///< 512 bytes
  std::vector<uint32_t> registers;  ///< 4 by lane
};

State start() {
  State state;
  for (uint32_t i = 0; i < kBytes; ++i) state.shared.push_back(static_cast<uint8_t>(i * 7 + i / 256 * 3));
  for (uint32_t i = 0; i < 128; ++i) state.registers.push_back(0x9E3779B9u * (i + 1));
  return state;
}

State run(const std::string& text, uint32_t registers) {
  const State before = start();
  const auto ending =
      probe::launch_with({}, program(text, registers), 1024,
                         {probe::bytes_of(before.shared), probe::bytes_of(before.registers)}, {.block = {32, 1, 1}});
  if (!ending.report.empty()) {
    FAIL(ending.report << text);
    return before;
  }
  const auto bytes = probe::values_of<uint8_t>(ending.bytes);
  const auto words = probe::values_of<uint32_t>(ending.bytes);
  State after{{bytes.begin(), bytes.begin() + kBytes}, before.registers};
  for (uint32_t lane = 0; lane < 32; ++lane)
    for (uint32_t i = 0; i < registers; ++i) after.registers[lane * 4 + i] = words[kBytes / 4 + lane * 4 + i];
  return after;
}

std::string registers(uint32_t count) {
  std::string list;
  for (uint32_t i = 0; i < count; ++i) list += fmt::format("{}%m{}", i ? ", " : "{", i);
  return list + "}";
}

uint16_t half(const State& state, uint32_t lane, uint32_t j, uint32_t i) {
  return static_cast<uint16_t>(state.registers[lane * 4 + j] >> (16 * i));
}
uint16_t element(const std::vector<uint8_t>& shared, uint32_t row, uint32_t column) {
  return static_cast<uint16_t>(shared[row * 16 + 2 * column] | shared[row * 16 + 2 * column + 1] << 8);
}

}  // namespace

TEST_CASE("ldmatrix of 16 bits") {
  const State before = start();
  for (uint32_t count : {1u, 2u, 4u})
    for (bool transposed : {false, true})
      for (const char* space : {".shared", ".shared::cta", ""}) {
        std::string text = fmt::format("ldmatrix.sync.aligned.m8n8.x{}{}{}.b16 {}, [{}];", count,
                                       transposed ? ".trans" : "", space, registers(count), *space ? "%r2" : "%d3");
        if (!*space) text = "cvt.u64.u32 %d3, %r2;\n    cvta.shared.u64 %d3, %d3;\n    " + text;
        INFO(text);
        const State after = run(text, count);
        CHECK(after.shared == before.shared);
        bool right = true;
        for (uint32_t lane = 0; lane < 32; ++lane)
          for (uint32_t j = 0; j < count; ++j)
            for (uint32_t i = 0; i < 2; ++i) {
              const uint32_t a = lane / 4, b = 2 * (lane % 4) + i;
              right = right && half(after, lane, j, i) ==
                                   element(before.shared, row_of(8 * j + (transposed ? b : a)), transposed ? a : b);
            }
        CHECK(right);
      }
}

TEST_CASE("stmatrix of 16 bits puts elements where CUTLASS says") {
  std::ifstream stream(SOURCE_FOLDER "/tests/golden/cutlass_wgmma_fragments.json");
  REQUIRE(stream.good());
  const auto golden = nlohmann::json::parse(stream);
  int seen = 0;
  for (const auto& row : golden["rows"]) {
    if (row[0] != "stmatrix") continue;
    ++seen;
    const std::string variant = row[1];
    const uint32_t count = row[2];
    const State before = start();
    const State after =
        run(fmt::format("stmatrix.sync.aligned.m8n8.{}.shared.b16 [%r2], {};", variant, registers(count)), 0);
    INFO(variant);
    std::vector<bool> written(32);
    uint64_t hash = 0;
    const bool transposed = variant.find("trans") != std::string::npos;
    for (uint32_t lane = 0; lane < 32; ++lane)
      for (uint32_t i = 0; i < 2 * count; ++i) {
        const uint32_t a = lane / 4, b = 2 * (lane % 4) + i % 2;
        const uint32_t address_lane = i / 2 * 8 + (transposed ? b : a), column = transposed ? a : b;
        hash = hash * 1000003 + address_lane * 65536 + column;
        written[row_of(address_lane)] = true;
        CHECK(element(after.shared, row_of(address_lane), column) == half(before, lane, i / 2, i % 2));
      }
    CHECK(hash == std::stoull(row[3].get<std::string>(), nullptr, 16));
    for (const auto& sample : row[4])
      CHECK(element(after.shared, row_of(sample[2]), sample[3]) ==
            half(before, sample[0], sample[1].get<uint32_t>() / 2, sample[1].get<uint32_t>() % 2));
    for (uint32_t r = 0; r < 32; ++r)
      if (!written[r]) CHECK(element(after.shared, r, 0) == element(before.shared, r, 0));
  }
  CHECK(seen == 6);
}

TEST_CASE("movmatrix transposes") {
  const State before = start();
  const State after = run("movmatrix.sync.aligned.m8n8.trans.b16 %m1, %m0;", 2);
  for (uint32_t lane = 0; lane < 32; ++lane)
    for (uint32_t i = 0; i < 2; ++i) {
      const uint32_t row = lane / 4, column = 2 * (lane % 4) + i;
      CHECK(half(after, lane, 1, i) == half(before, column * 4 + row / 2, 0, row % 2));
    }
}

TEST_CASE("ldmatrix and stmatrix of 8 bits") {
  const State before = start();
  for (uint32_t count : {1u, 2u}) {
    const State after =
        run(fmt::format("ldmatrix.sync.aligned.m16n16.x{}.trans.shared.b8 {}, [%r2];", count, registers(2 * count)),
            2 * count);
    // Bits of the tile: SrcLayout ((2,2,4,2),128):((128,1024,256,2048),1), DstLayout
    // ((4,8),(8,2,2,2 count)):((256,8),(1,128,64,1024)).
    std::vector<uint32_t> lane_of_row(16 * count);
    for (uint32_t lane = 0; lane < 16 * count; ++lane)
      lane_of_row[lane % 2 + lane / 2 % 2 * 8 + lane / 4 % 4 * 2 + lane / 16 * 16] = lane;
    for (uint32_t lane = 0; lane < 32; ++lane)
      for (uint32_t byte = 0; byte < 8 * count; ++byte) {
        const uint32_t bit = lane % 4 * 256 + lane / 4 * 8 + byte % 2 * 128 + byte / 2 % 2 * 64 + byte / 4 * 1024;
        const uint32_t row = row_of(lane_of_row[bit / 128]), column = bit % 128 / 8;
        const uint32_t got = after.registers[lane * 4 + byte / 4] >> (byte % 4 * 8) & 0xFF;
        CHECK(got == before.shared[row * 16 + column]);
      }
  }
  for (uint32_t count : {1u, 2u, 4u}) {
    const State after =
        run(fmt::format("stmatrix.sync.aligned.m16n8.x{}.trans.shared.b8 [%r2], {};", count, registers(count)), 0);
    for (uint32_t lane = 0; lane < 32; ++lane)
      for (uint32_t byte = 0; byte < 4 * count; ++byte) {
        const uint32_t bit = lane % 4 * 256 + lane / 4 * 8 + byte % 2 * 128 + byte / 2 % 2 * 64 + byte / 4 * 1024;
        const uint32_t got = after.shared[row_of(bit / 128) * 16 + bit % 128 / 8];
        CHECK(got == (before.registers[lane * 4 + byte / 4] >> (byte % 4 * 8) & 0xFF));
      }
  }
}

TEST_CASE("ldmatrix and stmatrix: rows must be aligned and in shared memory; forms refused by name") {
  const auto reports = [](const std::string& body, bool valid, const std::string& part) {
    const std::string report = valid ? probe::fault(body) : probe::refusal(body);
    INFO(report);
    CHECK(report.find(part) != std::string::npos);
  };
  const std::string tile = "    .shared .align 16 .b8 tile[512];\n    mov.u32 %r2, tile;\n    mov.u32 %r0, 0;\n";
  reports(tile + "    add.u32 %r2, %r2, 8;\n    stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r2], {%r0};\n", true, "16");
  reports(tile + "    add.u32 %r2, %r2, 65536;\n    stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r2], {%r0};\n", true,
          "shared");
  reports("    ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b4x16_p64 {%r0}, [%r2];\n", false, "b8x16");
  reports("    ldmatrix.sync.aligned.m16n16.x4.trans.shared.b8 {%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}, [%r8];\n",
          false, "there is no form");
  reports("    ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r0}, [%r2];\n", false, "2 registers are wanted, not 1");
}
