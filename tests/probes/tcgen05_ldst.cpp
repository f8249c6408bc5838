// tcgen05.ld and tcgen05.st: which register of which thread is which cell, for every shape and repeat, plain and
// packed. The maps are CUTLASS's (tests/golden/cutlass_tmem_ld_maps.json: a checksum over all of a map, and samples of
// it). Every load here reads what stores of another shape wrote, and the other way round.

#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tests/probes/everywhere.h"

namespace {

struct Row {
  std::string shape;
  uint32_t repeat = 0, registers = 0;
  bool packed = false;
  int immediate = -1;
  uint64_t checksum = 0;
  nlohmann::json samples;

  uint32_t lanes() const { return shape == "32x32b" ? 32 : 16; }
  std::string spelling(const char* operation) const {
    return fmt::format("tcgen05.{}.sync.aligned.{}.x{}{}.b32", operation, shape, repeat,
                       !packed                          ? ""
                       : std::string(operation) == "ld" ? ".pack::16b"
                                                        : ".unpack::16b");
  }
  std::string extra() const { return immediate < 0 ? "" : ", " + std::to_string(immediate); }
};

const std::vector<Row>& rows() {
  static const std::vector<Row> all = [] {
    std::ifstream file(SOURCE_FOLDER "/tests/golden/cutlass_tmem_ld_maps.json");
    std::vector<Row> out;
    const auto golden = nlohmann::json::parse(file);
    for (const auto& row : golden["rows"])
      out.push_back({row[0], row[1], row[4], row[2] == 1, row[3].is_null() ? -1 : row[3].get<int>(),
                     std::stoull(row[6].get<std::string>(), nullptr, 16), row[7]});
    return out;
  }();
  return all;
}

/// What a register holds, as the golden file counts it: lane * 65536 + column of its cell, or of its halves' cells.
using Map = std::vector<std::array<uint32_t, 2>>;

void compare(const Row& row, const Map& map, const std::string& what) {
  uint64_t hash = 0;
  for (const auto& cells : map)
    for (int half = 0; half <= row.packed; ++half) hash = hash * 1000003 + cells[static_cast<size_t>(half)];
  INFO(what << ": " << row.spelling("ld") << row.extra());
  for (const auto& sample : row.samples) {
    const auto& cells = map[sample[0].get<size_t>() * row.registers + sample[1].get<size_t>()];
    uint32_t lane = sample[2];
    REQUIRE(cells[0] == lane * 65536 + sample[3].get<uint32_t>());
    if (row.packed) REQUIRE(cells[1] == lane * 65536 + sample[4].get<uint32_t>());
  }
  CHECK(hash == row.checksum);
}

std::string list_of(uint32_t count) {
  std::string text = "{";
  for (uint32_t i = 0; i < count; ++i) text += fmt::format("{}%x{}", i ? ", " : "", i);
  return text + "}";
}

/// Warp `warp` of the block has all 512 columns; `body` has %r5, their address in the warp's lane quarter, %r1, the
/// lane.
std::string module(const std::string& body, uint32_t warp) {
  return probe::kernel(fmt::format(R"(
    .shared .align 4 .b32 address;
    .reg .b32 %x<128>;
    ld.param.u64 %d0, [p0];
    mov.u32 %r0, %tid.x;
    and.b32 %r1, %r0, 31;
    shr.u32 %r2, %r0, 5;
    setp.eq.u32 %p0, %r2, 0;
    @!%p0 bra allocated;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [address], 512;
  allocated:
    bar.sync 0;
    setp.eq.u32 %p0, %r2, {0};
    @!%p0 bra done;
    ld.shared.u32 %r5, [address];
    add.u32 %r5, %r5, {1};
{2}
  done:
    bar.sync 0;
    setp.eq.u32 %p0, %r2, 0;
    @!%p0 bra freed;
    ld.shared.u32 %r5, [address];
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r5, 512;
  freed:
)",
                                   warp, (warp % 4) << 21, body),
                       1);
}

/// Cells of the warp's 32 lanes get lane << `shift` | column (column in the low half unless `lanes_low`).
std::string fill(bool lanes_low) {
  return fmt::format(R"(
    mov.u32 %r6, 0;
  fill:
    shl.b32 %r7, %r1, {};
    shl.b32 %r8, %r6, {};
    add.u32 %x0, %r7, %r8;
    add.u32 %r9, %r5, %r6;
    tcgen05.st.sync.aligned.32x32b.x1.b32 [%r9], {{%x0}};
    add.u32 %r6, %r6, 1;
    setp.lt.u32 %p1, %r6, 512;
    @%p1 bra fill;
    tcgen05.wait::st.sync.aligned;
)",
                     lanes_low ? 0 : 16, lanes_low ? 16 : 0);
}

std::vector<uint32_t> loaded(const Row& row, uint32_t first_lane, bool lanes_low, uint32_t warp) {
  std::string body = fill(lanes_low) + fmt::format("    add.u32 %r9, %r5, {};\n    {} {}, [%r9]{};\n", first_lane << 16,
                                                   row.spelling("ld"), list_of(row.registers), row.extra());
  body += fmt::format("    tcgen05.wait::ld.sync.aligned;\n    mad.wide.u32 %d1, %r1, {}, %d0;\n", 4 * row.registers);
  for (uint32_t r = 0; r < row.registers; ++r) body += fmt::format("    st.global.u32 [%d1+{}], %x{};\n", 4 * r, r);
  return probe::everywhere<uint32_t>(module(body, warp), size_t{32} * row.registers, {},
                                     {.block = {32 * (warp + 1), 1, 1}}, 1);
}

/// 32 lanes x 512 columns after a store whose registers hold their own numbers (thread * registers + r, and 0x8000 more
/// in the high half).
std::vector<uint32_t> stored(const Row& row, uint32_t first_lane, uint32_t warp) {
  std::string body = R"(
    mov.u32 %r6, 0;
    mov.b32 %x0, 0xFFFFFFFF;
  clear:
    add.u32 %r9, %r5, %r6;
    tcgen05.st.sync.aligned.32x32b.x1.b32 [%r9], {%x0};
    add.u32 %r6, %r6, 1;
    setp.lt.u32 %p1, %r6, 512;
    @%p1 bra clear;
    tcgen05.wait::st.sync.aligned;
)";
  for (uint32_t r = 0; r < row.registers; ++r) {
    body += fmt::format("    mad.lo.u32 %x{}, %r1, {}, {};\n", r, row.registers, r);
    if (row.packed) body += fmt::format("    mad.lo.u32 %x{0}, %x{0}, 65537, 0x80000000;\n", r);
  }
  body += fmt::format("    add.u32 %r9, %r5, {};\n    {} [%r9]{}, {};\n", first_lane << 16, row.spelling("st"),
                      row.extra(), list_of(row.registers));
  body += R"(
    tcgen05.wait::st.sync.aligned;
    mov.u32 %r6, 0;
    mad.wide.u32 %d1, %r1, 2048, %d0;
  show:
    add.u32 %r9, %r5, %r6;
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%x0}, [%r9];
    tcgen05.wait::ld.sync.aligned;
    st.global.u32 [%d1], %x0;
    add.u64 %d1, %d1, 4;
    add.u32 %r6, %r6, 1;
    setp.lt.u32 %p1, %r6, 512;
    @%p1 bra show;
)";
  return probe::everywhere<uint32_t>(module(body, warp), 32 * 512, {}, {.block = {32 * (warp + 1), 1, 1}}, 1);
}

}  // namespace

TEST_CASE("tcgen05.ld: every shape and repeat reads the cells that CUTLASS says") {
  REQUIRE(rows().size() == 74);
  uint32_t turn = 0;
  for (const Row& row : rows()) {
    // Every warp reaches its own quarter, and 16-lane shapes start at either half of it.
    uint32_t warp = ++turn % 5, first = row.lanes() == 16 && turn % 2 ? 16 : 0;
    Map map(size_t{32} * row.registers);
    std::vector<uint32_t> columns = loaded(row, first, false, warp);
    std::vector<uint32_t> lanes = row.packed ? loaded(row, first, true, warp) : columns;
    for (size_t i = 0; i < map.size(); ++i) {
      if (row.packed)
        map[i] = {((lanes[i] & 0xFFFF) - first) << 16 | (columns[i] & 0xFFFF),
                  ((lanes[i] >> 16) - first) << 16 | columns[i] >> 16};
      else
        map[i] = {columns[i] - (first << 16), 0};
    }
    compare(row, map, "warp " + std::to_string(warp));
  }
}

TEST_CASE("tcgen05.st: every shape and repeat writes the cells that CUTLASS says, and no others") {
  uint32_t turn = 0;
  for (const Row& row : rows()) {
    uint32_t warp = ++turn % 4, first = row.lanes() == 16 && turn % 2 ? 16 : 0;
    std::vector<uint32_t> cells = stored(row, first, warp);
    Map map(size_t{32} * row.registers, {~0u, ~0u});
    uint32_t found = 0;
    for (uint32_t lane = 0; lane < 32; ++lane)
      for (uint32_t column = 0; column < 512; ++column) {
        uint32_t value = cells[size_t{lane} * 512 + column];
        if (value == ~0u) continue;
        ++found;
        size_t half = row.packed ? value >> 15 & 1 : 0;
        map.at(value & 0x7FFF).at(half) = (lane - first) << 16 | column;
      }
    CHECK(found == map.size() * (row.packed ? 2 : 1));
    compare(row, map, "warp " + std::to_string(warp));
  }
}

TEST_CASE("tcgen05.ld: registers are usable without a wait, wherever the schedule puts the load") {
  // PTX ISA: a true register dependency on a tcgen05.ld is respected without tcgen05.wait::ld.
  std::vector<uint32_t> got = probe::everywhere<uint32_t>(module(fill(false) + R"(
    tcgen05.ld.sync.aligned.32x32b.x4.b32 {%x0, %x1, %x2, %x3}, [%r5+100];
    add.u32 %x4, %x0, %x3;
    mad.wide.u32 %d1, %r1, 4, %d0;
    st.global.u32 [%d1], %x4;
)",
                                                                 0),
                                                          32, {}, {}, 8);
  for (uint32_t lane = 0; lane < 32; ++lane) CHECK(got[lane] == (lane << 17) + 203);
}

TEST_CASE("tcgen05.ld and st: an address of lanes 0 to 31 is one of the warp's own quarter") {
  // Warp 2 writes through the address without its quarter and reads through the one with it, and the other way round.
  std::vector<uint32_t> got = probe::everywhere<uint32_t>(module(R"(
    sub.u32 %r9, %r5, 0x400000;
    mad.lo.u32 %x0, %r1, 10, 1;
    mad.lo.u32 %x1, %r1, 10, 2;
    tcgen05.st.sync.aligned.32x32b.x1.b32 [%r9+40], {%x0};
    tcgen05.st.sync.aligned.32x32b.x1.b32 [%r5+41], {%x1};
    tcgen05.wait::st.sync.aligned;
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%x2}, [%r5+40];
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%x3}, [%r9+41];
    tcgen05.wait::ld.sync.aligned;
    mad.wide.u32 %d1, %r1, 8, %d0;
    st.global.v2.u32 [%d1], {%x2, %x3};
)",
                                                                 2),
                                                          64, {}, {.block = {96, 1, 1}});
  for (uint32_t lane = 0; lane < 32; ++lane) {
    CHECK(got[2 * lane] == 10 * lane + 1);
    CHECK(got[2 * lane + 1] == 10 * lane + 2);
  }
}

TEST_CASE("tcgen05.ld with LADDER_STRICT: registers hold no value before wait::ld") {
  const std::string early = R"(
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%x0}, [%r5+3];
    mov.b32 %x1, %x0;
    tcgen05.wait::ld.sync.aligned;
    mad.wide.u32 %d1, %r1, 8, %d0;
    st.global.v2.u32 [%d1], {%x0, %x1};
)";
  emu::Options strict;
  strict.strict = true;
  probe::Ending ending = probe::launch_with(strict, module(fill(false) + early, 0), 256, {}, {});
  std::vector<uint32_t> got = probe::values_of<uint32_t>(ending.bytes);
  REQUIRE(got.size() == 64);
  for (uint32_t lane = 0; lane < 32; ++lane) {
    CHECK(got[2 * lane] == (lane << 16) + 3);
    CHECK(got[2 * lane + 1] != (lane << 16) + 3);
  }
}

TEST_CASE("tcgen05.ld and st refuse foreign lanes, columns not owned, and cells never written") {
  const auto report = [](const std::string& body, uint32_t warp) {
    return probe::failure(module(body, warp), {}, {.block = {32 * (warp + 1), 1, 1}}).report;
  };
  const std::string ld = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%x0}, [%r9]; tcgen05.wait::ld.sync.aligned;";
  const std::string st =
      "mov.u32 %x0, 0; tcgen05.st.sync.aligned.32x32b.x1.b32 [%r9], {%x0}; tcgen05.wait::st.sync.aligned;";
  for (const std::string& access : {ld, st}) {
    CHECK_THAT(report("add.u32 %r9, %r5, 0x200000;" + access, 1), test::contains("reaches lanes 32 to 63 only"));
    CHECK_THAT(report("add.u32 %r9, %r5, 512;" + access, 0), test::contains("512"));
    CHECK_THAT(report("add.u32 %r9, %r5, 0x100000;" + access, 0), test::contains("starts at lane 16"));
  }
  emu::Options strict;
  strict.strict = true;
  CHECK_THAT(probe::launch_with(strict, module("mov.u32 %r9, %r5;" + ld, 0), 128, {}, {}).report,
             test::contains("nothing has written"));
  const std::string show = "mad.wide.u32 %d1, %r1, 4, %d0; st.global.u32 [%d1], %x0;";
  const probe::Ending ending = probe::launch_with({}, module("mov.u32 %r9, %r5;" + ld + show, 0), 128, {}, {});
  CHECK(ending.report.empty());
  CHECK_THAT(ending.remarks, test::contains("tcgen05.ld got NaN from tensor memory that nothing has written"));
  CHECK(probe::values_of<uint32_t>(ending.bytes) == std::vector<uint32_t>(32, 0xFFFFA5A5));
  CHECK_THAT(report("mul.lo.u32 %r9, %r1, 0x20000; add.u32 %r9, %r9, %r5;" + st, 0),
             test::contains("differs between lanes"));
}
