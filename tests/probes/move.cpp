// mov, cvta, isspacep, prmt, mapa, getctarank, createpolicy. PTX ISA, "Data Movement and Conversion Instructions";
// special registers: "Special Registers".

#include <map>

#include "tests/probes/probe.h"

using probe::check;

namespace {

std::vector<uint64_t> one_thread(const std::string& body, size_t count = 4) {
  return probe::run<uint64_t>("ld.param.u64 %d0, [p0];" + body, count, {}, {.block = {1, 1, 1}});
}

}  // namespace

TEST_CASE("mov packs and unpacks, lowest part first") {
  auto list = probe::corners<uint64_t>(30);
  auto [a, b] = probe::pairs(list);
  check<uint64_t, uint64_t, uint64_t>(
      "{ .reg .b32 x, y, z, w; mov.b64 {x, y}, %a; mov.b64 {z, w}, %b; mov.b64 %d, {y, z}; }",
      [](uint64_t x, uint64_t y) { return x >> 32 | y << 32; }, a, b);
  check<uint64_t, uint64_t>(
      "{ .reg .b16 x<4>; mov.b64 {x0, x1, x2, x3}, %a; mov.b64 %d, {x3, x2, x1, x0}; }",
      [](uint64_t x) { return x << 48 | (x & 0xFFFF0000u) << 16 | (x >> 16 & 0xFFFF0000u) | x >> 48; }, list);
  check<uint32_t, uint64_t>(
      "{ .reg .b32 x; mov.b64 {_, x}, %a; mov.b32 %d, x; }", [](uint64_t x) { return static_cast<uint32_t>(x >> 32); },
      list);
  check<uint32_t, uint32_t>(
      "{ .reg .b16 x, y; mov.b32 {x, y}, %a; mov.b32 %d, {y, x}; }", [](uint32_t x) { return x << 16 | x >> 16; },
      probe::corners<uint32_t>(30));
  check<uint64_t, uint64_t, uint64_t>(
      "{ .reg .b128 q; .reg .b64 x, y; mov.b128 q, {%a, %b}; mov.b128 {x, y}, q; sub.u64 %d, x, y; }",
      [](uint64_t x, uint64_t y) { return x - y; }, a, b);
  check<uint32_t, uint32_t>(
      "{ .reg .b8 x<4>; mov.b32 {x0, x1, x2, x3}, %a; mov.b32 %d, {x2, x3, x0, x1}; }",
      [](uint32_t x) { return x << 16 | x >> 16; }, probe::corners<uint32_t>(30));
}

TEST_CASE("mov takes immediates of every kind") {
  CHECK(one_thread(R"(
    mov.u64 %d1, 0x123456789abcdef0; st.global.u64 [%d0], %d1;
    mov.s64 %d1, -2; st.global.u64 [%d0+8], %d1;
    mov.f32 %r1, 0f40490FDB; mov.b32 %r2, -1; mov.b64 %d1, {%r1, %r2}; st.global.u64 [%d0+16], %d1;
    mov.f64 %d1, 1.5; st.global.u64 [%d0+24], %d1;
)") == std::vector<uint64_t>{0x123456789abcdef0, ~uint64_t{1}, 0xFFFFFFFF40490FDB, probe::bits(1.5)});
}

TEST_CASE("special registers say where a thread is") {
  // Grid 3x2x2 of blocks 4x3x2, in clusters of 1x2x1.
  struct Value {
    const char* name;
    uint32_t (*of)(uint32_t thread, uint32_t x, uint32_t y, uint32_t z);
  };
  const Value kValues[] = {
      {"%tid.x", [](uint32_t t, uint32_t, uint32_t, uint32_t) { return t % 4; }},
      {"%tid.y", [](uint32_t t, uint32_t, uint32_t, uint32_t) { return t / 4 % 3; }},
      {"%tid.z", [](uint32_t t, uint32_t, uint32_t, uint32_t) { return t / 12; }},
      {"%ntid.y", [](uint32_t, uint32_t, uint32_t, uint32_t) { return 3u; }},
      {"%ctaid.x", [](uint32_t, uint32_t x, uint32_t, uint32_t) { return x; }},
      {"%ctaid.y", [](uint32_t, uint32_t, uint32_t y, uint32_t) { return y; }},
      {"%ctaid.z", [](uint32_t, uint32_t, uint32_t, uint32_t z) { return z; }},
      {"%nctaid.x", [](uint32_t, uint32_t, uint32_t, uint32_t) { return 3u; }},
      {"%laneid", [](uint32_t t, uint32_t, uint32_t, uint32_t) { return t % 32; }},
      {"%lanemask_lt", [](uint32_t t, uint32_t, uint32_t, uint32_t) { return (1u << t % 32) - 1; }},
      {"%lanemask_eq", [](uint32_t t, uint32_t, uint32_t, uint32_t) { return 1u << t % 32; }},
      {"%lanemask_ge", [](uint32_t t, uint32_t, uint32_t, uint32_t) { return ~0u << t % 32; }},
      {"%lanemask_gt", [](uint32_t t, uint32_t, uint32_t, uint32_t) { return t % 32 == 31 ? 0 : ~0u << (t % 32 + 1); }},
      {"%lanemask_le", [](uint32_t t, uint32_t, uint32_t, uint32_t) { return ~0u >> (31 - t % 32); }},
      {"%cluster_ctaid.y", [](uint32_t, uint32_t, uint32_t y, uint32_t) { return y; }},
      {"%cluster_ctarank", [](uint32_t, uint32_t, uint32_t y, uint32_t) { return y; }},
      {"%cluster_nctarank", [](uint32_t, uint32_t, uint32_t, uint32_t) { return 2u; }},
      {"%clusterid.x", [](uint32_t, uint32_t x, uint32_t, uint32_t) { return x; }},
      {"%nclusterid.y", [](uint32_t, uint32_t, uint32_t, uint32_t) { return 1u; }},
  };
  for (const Value& value : kValues) {
    auto got = probe::run<uint32_t>(std::string(R"(
    mov.u32 %r0, %tid.z; mov.u32 %r1, %ntid.y; mov.u32 %r2, %tid.y; mad.lo.u32 %r0, %r0, %r1, %r2;
    mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x; mad.lo.u32 %r0, %r0, %r1, %r2;
    mov.u32 %r3, %ctaid.z; mov.u32 %r4, %nctaid.y; mov.u32 %r5, %ctaid.y; mad.lo.u32 %r3, %r3, %r4, %r5;
    mov.u32 %r4, %nctaid.x; mov.u32 %r5, %ctaid.x; mad.lo.u32 %r3, %r3, %r4, %r5;
    mad.lo.u32 %r3, %r3, 24, %r0;
    ld.param.u64 %d0, [p0]; mad.wide.u32 %d0, %r3, 4, %d0;
    mov.u32 %r6, )") + value.name + "; st.global.u32 [%d0], %r6;",
                                    12 * 24, {}, {.grid = {3, 2, 2}, .block = {4, 3, 2}, .cluster = {1, 2, 1}});
    INFO(value.name);
    for (uint32_t i = 0; i < got.size(); ++i) CHECK(got[i] == value.of(i % 24, i / 24 % 3, i / 24 / 3 % 2, i / 24 / 6));
  }
}

TEST_CASE("clocks run, and the timer runs with them") {
  auto got = one_thread(R"(
    mov.u64 %d1, %clock64; mov.u64 %d2, %globaltimer; mov.u32 %r1, %clock;
    nanosleep.u32 5000;
    mov.u64 %d3, %clock64; mov.u64 %d4, %globaltimer; mov.u32 %r2, %clock; mov.u32 %r3, %clock_hi;
    sub.u64 %d3, %d3, %d1; sub.u64 %d4, %d4, %d2; sub.u32 %r2, %r2, %r1;
    cvt.u64.u32 %d5, %r2; cvt.u64.u32 %d6, %r3;
    st.global.v2.u64 [%d0], {%d3, %d4}; st.global.v2.u64 [%d0+16], {%d5, %d6};
)");
  CHECK(got[0] > 0);
  CHECK(got[2] >= got[0]);
  CHECK(got[2] <= got[0] + 10);
  // Cycles and nanoseconds in the proportion of the chip's clock (B200: 1.965 GHz).
  CHECK(std::abs(static_cast<double>(got[0]) - static_cast<double>(got[1]) * 1.965) < 4);
  CHECK(got[3] == 0);
}

TEST_CASE("addresses go to the generic space and back, and say where they lie") {
  const std::string kSetup = R"(
    .shared .align 8 .b64 s; .local .align 8 .b64 l;
    mov.u64 %d1, s; cvta.shared.u64 %d2, %d1; cvta.to.shared.u64 %d3, %d2;
    mov.u64 %d4, l; cvta.local.u64 %d5, %d4; cvta.to.local.u64 %d6, %d5;
    cvta.to.global.u64 %d7, %d0; cvta.global.u64 %d8, %d7;
    sub.u64 %d3, %d3, %d1; sub.u64 %d6, %d6, %d4; sub.u64 %d8, %d8, %d0;
)";
  CHECK(one_thread(kSetup + "st.global.v2.u64 [%d0], {%d3, %d6}; st.global.u64 [%d0+16], %d8;", 3) ==
        std::vector<uint64_t>{0, 0, 0});
  // Rows: an address; columns: the spaces.
  const std::map<std::string, std::string> kWhere = {{"%d2", "shared"}, {"%d5", "local"}, {"%d0", "global"}};
  for (const auto& [reg, where] : kWhere)
    for (const char* space : {"shared", "shared::cta", "shared::cluster", "local", "global", "const"}) {
      bool yes = where == space || (where == "shared" && std::string(space).starts_with("shared"));
      INFO(reg << " isspacep." << space);
      CHECK(one_thread(
                kSetup + "isspacep." + space + " %p1, " + reg + "; selp.b64 %d9, 1, 0, %p1; st.global.u64 [%d0], %d9;",
                1)[0] == (yes ? 1u : 0u));
    }
}

TEST_CASE("constants are told from global memory, and parameters too") {
  probe::Machine machine;
  std::vector<uint64_t> parameters{machine.buffer(std::vector<uint32_t>(4, 9))};
  auto fault = machine.launch(probe::kernel(R"(
    ld.param.u64 %d0, [p0];
    mov.u64 %d1, table; cvta.const.u64 %d1, %d1; add.u64 %d1, %d1, 7;
    mov.u64 %d2, counter; mov.b64 %d3, p0; cvta.param.u64 %d3, %d3;
    isspacep.const %p1, %d1; selp.u32 %r1, 1, 0, %p1; isspacep.const %p1, %d2; selp.u32 %r2, 1, 0, %p1;
    isspacep.global %p1, %d1; selp.u32 %r3, 1, 0, %p1; isspacep.param::entry %p1, %d3; selp.u32 %r4, 1, 0, %p1;
    st.global.v4.u32 [%d0], {%r1, %r2, %r3, %r4};
)",
                                            1, ".const .align 8 .u32 table[2] = {1, 2};\n.global .u32 counter;\n"),
                              parameters, {.block = {1, 1, 1}});
  if (fault) FAIL(fault->report);
  CHECK(machine.read<uint32_t>(parameters[0], 4) == std::vector<uint32_t>{1, 0, 0, 1});
}

TEST_CASE("shared::cluster addresses: rank in the top byte") {
  // CUDA's map_shared_rank and the record of an H200 (rank << 24 | offset).
  auto got = probe::run<uint32_t>(R"(
    .shared .align 8 .b64 s;
    mov.u32 %r0, s; mapa.shared::cluster.u32 %r1, %r0, 3; getctarank.shared::cluster.u32 %r2, %r1;
    mov.u64 %d1, s; cvta.shared.u64 %d1, %d1; mov.u32 %r5, 2; mapa.u64 %d2, %d1, %r5; getctarank.u64 %r3, %d2;
    cvta.to.shared.u64 %d3, %d2; cvt.u32.u64 %r4, %d3;
    ld.param.u64 %d0, [p0]; mov.u32 %r7, %cluster_ctarank; setp.ne.u32 %p0, %r7, 1; @%p0 exit;
    st.global.v4.u32 [%d0], {%r0, %r1, %r2, %r3}; st.global.u32 [%d0+16], %r4;
)",
                                  5, {}, {.grid = {4, 1, 1}, .block = {1, 1, 1}, .cluster = {4, 1, 1}});
  uint32_t offset = got[0] & 0xFFFFFF;
  CHECK(got == std::vector<uint32_t>{1u << 24 | offset, 3u << 24 | offset, 3, 2, 2u << 24 | offset});
}

TEST_CASE("mapa of an address outside shared memory is a fault") {
  CHECK_THAT(probe::fault("ld.param.u64 %d0, [p0]; mov.u32 %r0, 0; mapa.u64 %d1, %d0, %r0; st.global.u64 [%d0], %d1;",
                          {.apart = "PTX ISA, mapa: an address of shared memory; an H200 does not mind"}),
             test::contains("mapa") && test::contains("shared"));
}

TEST_CASE("prmt picks bytes") {
  auto list = probe::corners<uint32_t>(30);
  auto [a, b] = probe::pairs(list);
  std::vector<uint32_t> c;
  probe::Random random(3);
  for (size_t i = 0; i < a.size(); ++i) c.push_back(static_cast<uint32_t>(random.next()));
  auto byte = [](uint32_t x, uint32_t y, uint32_t selector) {
    uint8_t bytes[8];
    std::memcpy(bytes, &x, 4);
    std::memcpy(bytes + 4, &y, 4);
    uint8_t v = bytes[selector & 7];
    return selector & 8 ? (v >= 128 ? 0xFFu : 0u) : v;
  };
  auto pick = [&](uint32_t x, uint32_t y, const uint32_t(&which)[4]) {  // highest byte first, as the ISA's tables
    return byte(x, y, which[0]) << 24 | byte(x, y, which[1]) << 16 | byte(x, y, which[2]) << 8 | byte(x, y, which[3]);
  };
  using U = uint32_t;
  check<U, U, U, U>(
      "prmt.b32 %d, %a, %b, %c;",
      [&](U x, U y, U s) {
        return pick(x, y, {s >> 12 & 15, s >> 8 & 15, s >> 4 & 15, s & 15});
      },
      a, b, c);
  // PTX ISA, prmt: table of modes, d.b3 to d.b0 by the two low bits of c.
  struct Mode {
    const char* name;
    uint32_t table[4][4];
  };
  const Mode kModes[] = {
      {"f4e", {{3, 2, 1, 0}, {4, 3, 2, 1}, {5, 4, 3, 2}, {6, 5, 4, 3}}},
      {"b4e", {{5, 6, 7, 0}, {6, 7, 0, 1}, {7, 0, 1, 2}, {0, 1, 2, 3}}},
      {"rc8", {{0, 0, 0, 0}, {1, 1, 1, 1}, {2, 2, 2, 2}, {3, 3, 3, 3}}},
      {"ecl", {{3, 2, 1, 0}, {3, 2, 1, 1}, {3, 2, 2, 2}, {3, 3, 3, 3}}},
      {"ecr", {{0, 0, 0, 0}, {1, 1, 1, 0}, {2, 2, 1, 0}, {3, 2, 1, 0}}},
      {"rc16", {{1, 0, 1, 0}, {3, 2, 3, 2}, {1, 0, 1, 0}, {3, 2, 3, 2}}},
  };
  for (const Mode& mode : kModes)
    check<U, U, U, U>(
        "prmt.b32." + std::string(mode.name) + " %d, %a, %b, %c;",
        [&](U x, U y, U s) { return pick(x, y, mode.table[s & 3]); }, a, b, c);
}

TEST_CASE("special registers that the emulator has not are refused by name") {
  CHECK_THAT(probe::fault("mov.u32 %r0, %reserved_smem_offset_0; ld.param.u64 %d0, [p0]; st.global.u32 [%d0], %r0;",
                          {.apart = "a chip has such a register"}),
             test::contains("%reserved_smem_offset_0"));
}

TEST_CASE("the part of a CTA's reserved shared memory that cooperative groups use") {
  const std::string find = "mov.u32 %r0, %reserved_smem_offset_1; ld.param.u64 %d0, [p0]; ";
  // As its header does: by a generic address. The ISA does not say where it is, nor what it holds: the header wants 288
  // bytes, and zeros.
  const auto got = probe::run<uint32_t>(find +
                                            "cvt.u64.u32 %d1, %r0; cvta.shared.u64 %d1, %d1; ld.u32 %r1, [%d1];"
                                            "st.u32 [%d1+284], 7; ld.shared.u32 %r2, [%r0+284];"
                                            "st.global.u32 [%d0], %r1; st.global.u32 [%d0+4], %r2;",
                                        2);
  CHECK(got == std::vector<uint32_t>{0, 7});
  const char* apart = "on a chip this is another part of the same kilobyte";
  CHECK_THAT(probe::fault(find + "ld.shared.u32 %r1, [%r0+288]; st.global.u32 [%d0], %r1;", {.apart = apart}),
             test::contains("shared address"));
  CHECK_THAT(probe::fault(find + "st.shared.u32 [%r0+-4], %r0;", {.apart = apart}), test::contains("shared address"));
}

TEST_CASE("programmatic dependent launch: the earlier grids are complete") {
  probe::run<uint32_t>("griddepcontrol.wait; griddepcontrol.launch_dependents;", 1);
}

TEST_CASE("createpolicy.fractional makes the words that an H200 makes") {
  const std::pair<const char*, uint64_t> policies[] = {
      {"evict_last.b64 %d4, 1.0", 0x14F0000000000000},
      {"evict_normal.b64 %d4", 0x16F0000000000000},
      {"evict_first.b64 %d4, 1.0", 0x12F0000000000000},
      {"evict_unchanged.b64 %d4, 0.5", 0x1070000000000000},
      {"evict_last.b64 %d4, 0.1", 0x1410000000000000},
      {"evict_last.b64 %d4, 0.9", 0x14E0000000000000},
      {"evict_last.b64 %d4, 0.03", 0x1400000000000000},
      {"evict_first.L2::evict_unchanged.b64 %d4, 0.5", 0x1270000000000000},
      {"evict_unchanged.L2::evict_first.b64 %d4, 0.5", 0x1170000000000000},
      {"evict_last.L2::evict_first.b64 %d4, 1.0", 0x15F0000000000000},
  };
  for (const auto& [text, word] : policies) {
    INFO(text);
    REQUIRE(one_thread(std::string("createpolicy.fractional.L2::") + text + "; st.global.u64 [%d0], %d4;", 1)[0] ==
            word);
  }
}
