// common/layout/operand_tile.h against CuTe's canonical layouts (tests/golden/cutlass_smem_layouts.json).
#include "common/layout/operand_tile.h"

#include "tests/catch.h"
#include "tests/unit/layout_golden.h"

using namespace ladder;
using namespace layout_test;

namespace {

// step04's tile: rows of 128 bytes, chunk c of row r at chunk c ^ (r % 8). Element (9, 20): byte 40 of row 9.
constexpr OperandTile kSwizzled{Major::k, Swizzle::k128B, AtomOrder::kRowsFirst, 2, 128, 64};
static_assert(kSwizzled.offset(9, 20) == 9 * 128 + (0x2 ^ 0x1) * 16 + 8);

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

TEST_CASE("operand tile: a TMA box per span of K writes the K-major layout with rows first") {
  // The box of a K-major matrix seen as {span, rows, K / span}: dense in shared memory, innermost first, and swizzled
  // by the XOR of 16-byte chunk and row that the PTX ISA draws for each mode (m = 1, 3, 7 for 32B, 64B, 128B; rows per
  // step of the row term: 4, 2, 1).
  struct Mode {
    Swizzle swizzle;
    uint32_t span;
    uint32_t chunk_mask;
    uint32_t rows_per_step;
  };
  const Mode modes[] = {
      {Swizzle::kNone, 16, 0, 1}, {Swizzle::k32B, 32, 1, 4}, {Swizzle::k64B, 64, 3, 2}, {Swizzle::k128B, 128, 7, 1}};
  for (const Mode& mode : modes) {
    for (const uint32_t rows : {128u, 256u}) {
      const uint32_t group = mode.span / 2;  // 16-bit elements
      const OperandTile tile{Major::k, mode.swizzle, AtomOrder::kRowsFirst, 2, rows, 2 * group};
      INFO("span " << mode.span << ", " << rows << " rows");
      size_t wrong = 0;
      for (uint32_t row = 0; row < rows; ++row) {
        for (uint32_t k = 0; k < tile.k; ++k) {
          const uint32_t chunk = k % group / 8 ^ (row / mode.rows_per_step & mode.chunk_mask);
          const uint32_t written = k / group * rows * mode.span + row * mode.span + chunk * 16 + k % 8 * 2;
          wrong += tile.offset(row, k) != written;
        }
      }
      CHECK(wrong == 0);
    }
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
