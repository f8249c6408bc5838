// Tensor memory layouts and the register maps of tcgen05.ld and st, against CUTLASS's fragments and copy traits
// (tests/golden).
#include "emulator/units/tmem_layout.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "emulator/units/scale_factor.h"
#include "emulator/units/tmem_copy.h"
#include "tests/catch.h"

namespace {

using namespace emu;

nlohmann::json golden(const std::string& file) {
  std::ifstream stream(std::string(SOURCE_FOLDER "/tests/golden/") + file);
  REQUIRE(stream.good());
  return nlohmann::json::parse(stream);
}

uint64_t number(const nlohmann::json& hexadecimal) {
  return std::stoull(hexadecimal.get<std::string>(), nullptr, 16);
}

struct Checksum {
  uint64_t value = 0;
  void add(uint64_t next) { value = value * 1000003 + next; }
};

MmaForm form_of(const std::string& name) {
  MmaForm form;
  form.cta_group = name.starts_with("cta_group::2") ? 2 : 1;
  form.weight_stationary = name == ".ws";
  return form;
}

TmemAccess access_of(const nlohmann::json& row) {
  const std::string shape = row[0];
  TmemAccess access;
  access.shape = shape == "32x32b"    ? TmemShape::s32x32b
                 : shape == "16x64b"  ? TmemShape::s16x64b
                 : shape == "16x128b" ? TmemShape::s16x128b
                 : shape == "16x256b" ? TmemShape::s16x256b
                                      : TmemShape::s16x32bx2;
  access.repeat = row[1];
  access.packed = row[2] == 1;
  if (!row[3].is_null()) access.immediate = row[3];
  return access;
}

}  // namespace

TEST_CASE("rows and columns of D lie where CUTLASS's accumulator fragments put them") {
  int cases = 0;
  const auto layouts = golden("cutlass_tmem_layouts.json");
  for (const auto& row : layouts["D"]) {
    INFO(row.dump().substr(0, 80));
    const uint32_t m = row[2], n = row[3], rank = row[4];
    const AccumulatorLayout layout = accumulator_layout(form_of(row[0]), m, n, rank);
    CHECK(layout.first_row == row[5].get<uint32_t>());
    REQUIRE(layout.rows == row[6].get<uint32_t>());
    CHECK(layout.columns_per_part == row[7].get<uint32_t>());
    Checksum checksum;
    for (uint32_t i = 0; i < layout.rows; ++i) {
      for (uint32_t j = 0; j < n; ++j) checksum.add(layout.cell(i, j).lane * 65536 + layout.cell(i, j).column);
    }
    CHECK(checksum.value == number(row[8]));
    for (const auto& sample : row[9]) {
      const TmemCell cell = layout.cell(sample[0].get<uint32_t>() - layout.first_row, sample[1]);
      CHECK(cell.lane == sample[2].get<uint32_t>());
      CHECK(cell.column == sample[3].get<uint32_t>());
    }
    ++cases;
  }
  CHECK(cases == 40);
}

TEST_CASE("an A operand in tensor memory lies in the lanes of D, two 16-bit elements a column") {
  int cases = 0;
  const auto layouts = golden("cutlass_tmem_layouts.json");
  for (const auto& row : layouts["A"]) {
    INFO(row.dump().substr(0, 80));
    const uint32_t m = row[2], depth = row[3], rank = row[4];
    const AccumulatorLayout layout = accumulator_layout(form_of(row[0]), m, 64, rank);
    CHECK(layout.first_row == row[5].get<uint32_t>());
    REQUIRE(layout.rows == row[6].get<uint32_t>());
    Checksum checksum;
    for (uint32_t i = 0; i < layout.rows; ++i) {
      for (uint32_t k = 0; k < depth; ++k) checksum.add(layout.lane(i, 0) * 65536 + k);
    }
    CHECK(checksum.value == number(row[7]));
    ++cases;
  }
  CHECK(cases == 6);
}

TEST_CASE("scale factors lie where CUTLASS's fragments put them, in every partition") {
  int cases = 0;
  const auto layouts = golden("cutlass_tmem_layouts.json");
  for (const auto& row : layouts["scale_factor"]) {
    INFO(row.dump().substr(0, 80));
    const ScaleFactors factors{.rows = row[2], .per_row = row[3], .halves = row[0] == "B, pair with M = 128"};
    Checksum checksum;
    for (uint32_t i = 0; i < factors.rows; ++i)
      for (uint32_t factor = 0; factor < factors.per_row; ++factor)
        for (uint32_t copy = 0; copy < factors.copies(); ++copy) {
          const ScaleFactorPlace place = scale_factor_place(factors, i, factor, copy);
          CHECK(place.column < factors.columns());
          checksum.add(place.lane * 65536 + place.column * 4 + place.byte);
        }
    CHECK(checksum.value == number(row[4]));
    ++cases;
  }
  CHECK(cases == 6);
}

TEST_CASE("tcgen05.cp.32x128b.warpx4 puts CUTLASS's block of 512 bytes where scale factors belong") {
  // The block: byte offset of (row, factor), 128 rows x 4 factors. Byte o is byte o % 16 of the copy's row o / 16.
  const auto layouts = golden("cutlass_tmem_layouts.json");
  const ScaleFactors factors{.rows = 128, .per_row = 4};
  const auto& block = layouts["scale_factor_smem"];
  Checksum checksum;
  for (uint32_t row = 0; row < 128; ++row)
    for (uint32_t factor = 0; factor < 4; ++factor)
      for (uint32_t offset = 0; offset < 512; ++offset) {
        bool here = true;
        for (uint32_t copy = 0; copy < 4; ++copy) {
          const ScaleFactorPlace place = scale_factor_place(factors, row, factor, copy);
          here = here && place.lane == copy_lane(CopyShape::s32x128b, offset / 16, copy) &&
                 place.column * 4 + place.byte == offset % 16;
        }
        if (here) checksum.add(offset);
      }
  CHECK(checksum.value == number(block[1]));
}

TEST_CASE("the lanes of a D in several parts do not overlap") {
  for (const auto& [form, m] : {std::pair(MmaForm{MmaKind::f16, 2}, 128), std::pair(MmaForm{MmaKind::f16, 1, true}, 32),
                                std::pair(MmaForm{MmaKind::f16, 1, true}, 64), std::pair(MmaForm{}, 128)}) {
    const AccumulatorLayout layout = accumulator_layout(form, m, 128);
    std::set<std::pair<uint32_t, uint32_t>> cells;
    for (uint32_t i = 0; i < layout.rows; ++i) {
      for (uint32_t j = 0; j < 128; ++j) cells.insert({layout.cell(i, j).lane, layout.cell(i, j).column});
    }
    CHECK(cells.size() == layout.rows * 128);
    CHECK(cells.rbegin()->first == 127);
  }
}

TEST_CASE("tcgen05.ld and st: registers of every thread, all shapes and repeats, plain and packed") {
  int cases = 0;
  const auto maps = golden("cutlass_tmem_ld_maps.json");
  for (const auto& row : maps["rows"]) {
    INFO(row.dump().substr(0, 80));
    const TmemAccess access = access_of(row);
    REQUIRE(register_count(access) == row[4].get<uint32_t>());
    Checksum checksum;
    uint32_t columns = 0, lanes = 0;
    for (uint32_t thread = 0; thread < 32; ++thread) {
      for (uint32_t reg = 0; reg < register_count(access); ++reg) {
        const TmemCell cell = register_cell(access, thread, reg);
        const uint32_t last = cell.column + (access.packed ? 1 : 0);
        checksum.add(cell.lane * 65536 + cell.column);
        if (access.packed) checksum.add(cell.lane * 65536 + last);
        columns = std::max(columns, last + 1);
        lanes = std::max(lanes, cell.lane + 1);
      }
    }
    CHECK(checksum.value == number(row[6]));
    CHECK(columns == column_span(access));
    CHECK(lanes == lane_count(access.shape));
    for (const auto& sample : row[7]) {
      const TmemCell cell = register_cell(access, sample[0], sample[1]);
      CHECK(cell.lane == sample[2].get<uint32_t>());
      CHECK(cell.column == sample[3].get<uint32_t>());
      if (access.packed) CHECK(cell.column + 1 == sample[4].get<uint32_t>());
    }
    ++cases;
  }
  CHECK(cases == 74);
}

TEST_CASE("repeats that a shape does not have") {
  CHECK(register_count({TmemShape::s32x32b, 128}) == 128);
  CHECK(register_count({TmemShape::s32x32b, 256}) == 0);
  CHECK(register_count({TmemShape::s16x128b, 128}) == 0);
  CHECK(register_count({TmemShape::s16x256b, 64}) == 0);
  CHECK(register_count({TmemShape::s16x64b, 3}) == 0);
  CHECK(register_count({TmemShape::s16x64b, 0}) == 0);
}
