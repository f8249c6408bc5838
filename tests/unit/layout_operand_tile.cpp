// common/layout/operand_tile.h against CuTe's canonical layouts (tests/golden/cutlass_smem_layouts.json).
#include "common/layout/operand_tile.h"

#include "tests/catch.h"
#include "tests/unit/layout_golden.h"

using namespace ladder;
using namespace layout_test;

namespace {

// step04's tile: rows of 128 bytes, chunk c of row r at chunk c ^ (r % 8). Element (9, 20): byte 40 of row 9.
constexpr OperandTile kSwizzled{Major::k, Swizzle::k128B, AtomOrder::kRowsFirst, 2, 128, 64};
static_assert(kSwizzled.offset(9, 20) == 9 * 128 + (2 ^ 1) * 16 + 8);

// Columns: width in bits, major, mode, rows, k, order.
OperandTile tile_of(const nlohmann::json& row) {
  return {major_named(row[1]), swizzle_named(row[2]), order_named(row[5]), row[0].get<uint32_t>() / 8, row[3], row[4]};
}

}  // namespace

TEST_CASE("operand tile: sampled elements of every mode, major and order") {
  const auto data = golden("cutlass_smem_layouts.json");
  REQUIRE(data["samples"].size() == 50);
  for (const auto& row : data["samples"]) {
    const OperandTile tile = tile_of(row);
    INFO(row[0] << " bit " << row[1] << "-major " << row[2] << " " << row[3] << "x" << row[4] << " " << row[5]);
    for (const auto& sample : row[6]) {
      INFO("element " << sample[0] << ", " << sample[1]);
      CHECK(tile.offset(sample[0], sample[1]) == sample[2].get<uint32_t>());
    }
  }
}

TEST_CASE("operand tile: every element of every tile, by checksum") {
  const auto data = golden("cutlass_smem_layouts.json");
  REQUIRE(data["checksums"].size() == 504);
  for (const auto& row : data["checksums"]) {
    const OperandTile tile = tile_of(row);
    INFO(row[0] << " bit " << row[1] << "-major " << row[2] << " " << row[3] << "x" << row[4] << " " << row[5]);
    CHECK(tile.bytes() == row[6].get<uint32_t>());
    uint64_t hash = 0;
    for (uint32_t r = 0; r < tile.rows; ++r) {
      for (uint32_t k = 0; k < tile.k; ++k) hash = checksum_step(hash, tile.offset(r, k));
    }
    CHECK(hash == hexadecimal(row[7]));
  }
}

TEST_CASE("operand tile: the atom order matters as soon as there are atoms both ways") {
  const OperandTile rows_first{Major::k, Swizzle::kNone, AtomOrder::kRowsFirst, 2, 64, 32};
  OperandTile k_first = rows_first;
  k_first.order = AtomOrder::kKFirst;
  CHECK(rows_first.offset(0, 8) == 64 * 16);
  CHECK(k_first.offset(0, 8) == 8 * 16);
  CHECK(rows_first.leading_bytes() == 64 * 16);
  CHECK(k_first.leading_bytes() == 8 * 16);
}
