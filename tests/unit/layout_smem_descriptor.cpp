// common/layout/smem_descriptor.h against CUTLASS's descriptor builders (tests/golden/cutlass_smem_descriptors.json),
// and descriptors against layouts: what an MMA reads through a word must be what the layout put there.
#include "common/layout/smem_descriptor.h"

#include "tests/catch.h"
#include "tests/unit/layout_golden.h"

using namespace ladder;
using namespace layout_test;

namespace {

// High words for packed K-major tiles (PTX ISA, tcgen05 shared memory descriptor; LBO 0): swizzle, 1 at bit 46, SBO.
static_assert(tcgen05_smem_descriptor(0, 0, 1024, Swizzle::k128B) >> 32 == 0x40004040);
static_assert(tcgen05_smem_descriptor(0, 0, 512, Swizzle::k64B) >> 32 == 0x80004020);
static_assert(tcgen05_smem_descriptor(0, 0, 256, Swizzle::k32B) >> 32 == 0xC0004010);
static_assert(tcgen05_smem_descriptor(0, 0, 128, Swizzle::kNone) >> 32 == 0x00004008);
static_assert(wgmma_smem_descriptor(0, 0, 1024, Swizzle::k128B) >> 32 == 0x40000040);

uint32_t element_bytes_of(const std::string& type) {
  return type == "tf32" ? 4 : type == "e4m3" ? 1 : 2;
}

// Columns: type, major, mode, rows, k, order, base, tcgen05 words, wgmma words.
OperandTile tile_of(const nlohmann::json& row) {
  return {major_named(row[1]), swizzle_named(row[2]), order_named(row[5]), element_bytes_of(row[0]), row[3], row[4]};
}

// The bits that mean something. Where one instruction (all rows, 32 bytes of K) spans a single group along an offset,
// that offset is never used, and CUTLASS leaves 0 there or not. Group sizes: PTX ISA, canonical layouts.
uint64_t meaningful_bits(const OperandTile& tile) {
  if (tile.major == Major::k) return ~uint64_t{0};
  const uint64_t leading = uint64_t{0x3FFF} << 16;
  const uint64_t stride = uint64_t{0x3FFF} << 32;
  const uint32_t instruction_k = 32 / tile.element_bytes;
  const bool one_k_group = instruction_k <= (tile.swizzle == Swizzle::k128BAtom32B ? 4u : 8u);
  const uint32_t span_bytes[] = {16, 32, 64, 128, 128};
  const bool one_row_group = tile.rows * tile.element_bytes <= span_bytes[static_cast<int>(tile.swizzle)];
  const uint64_t along_k = tile.swizzle == Swizzle::kNone ? leading : stride;
  const uint64_t along_rows = tile.swizzle == Swizzle::kNone ? stride : leading;
  return ~((one_k_group ? along_k : 0) | (one_row_group ? along_rows : 0));
}

// Where an MMA looks for (row, k) by a tcgen05 word: the table of canonical layouts in the PTX ISA (byte addresses; T
// is the number of elements in 16 bytes), written out mode by mode and apart from the code under test.
uint32_t address_by_word(uint64_t word, Major major, uint32_t es, uint32_t row, uint32_t k) {
  const uint32_t start = static_cast<uint32_t>(word & 0x3FFF) << 4;
  const uint32_t leading = static_cast<uint32_t>(word >> 16 & 0x3FFF) << 4;
  const uint32_t stride = static_cast<uint32_t>(word >> 32 & 0x3FFF) << 4;
  const uint32_t code = static_cast<uint32_t>(word >> 61);
  const uint32_t t = 16 / es;
  uint32_t address = start;
  const uint32_t span = code == 0 ? 16 : code == 6 ? 32 : code == 4 ? 64 : 128;
  if (major == Major::k) {
    const uint32_t k_bytes = k * es;
    address += row / 8 * stride + row % 8 * span;
    address += code == 0 ? k_bytes / 16 * leading + k_bytes % 16 : k_bytes;
  } else if (code == 0) {
    address += row / t * stride + k / 8 * leading + k % 8 * 16 + row % t * es;
  } else if (code == 1) {
    address += row / (8 * t) * leading + k / 4 * stride + k % 4 * 128 + row % (8 * t) * es;
  } else {
    const uint32_t group = span / es;
    address += row / group * leading + k / 8 * stride + k % 8 * span + row % group * es;
  }
  switch (code) {
    case 1:
      return address ^ (address >> 7 & 3) << 5;
    case 2:
      return address ^ (address >> 7 & 7) << 4;
    case 4:
      return address ^ (address >> 7 & 3) << 4;
    case 6:
      return address ^ (address >> 7 & 1) << 4;
    default:
      return address;
  }
}

}  // namespace

TEST_CASE("descriptors: every word of every mode, major, type and order, tcgen05 and wgmma") {
  const auto data = golden("cutlass_smem_descriptors.json");
  REQUIRE(data["rows"].size() == 678);
  size_t words = 0;
  for (const auto& row : data["rows"]) {
    const OperandTile tile = tile_of(row);
    const uint32_t base = row[6];
    const uint64_t mask = meaningful_bits(tile);
    const uint32_t instruction_k = 32 / tile.element_bytes;
    INFO(row[0] << " " << row[1] << "-major " << row[2] << " " << row[3] << "x" << row[4] << " " << row[5]);
    REQUIRE(row[7].size() == tile.k / instruction_k);
    for (uint32_t step = 0; step < row[7].size(); ++step, ++words) {
      INFO("K step " << step);
      CHECK((tile.tcgen05_descriptor(base, step * instruction_k) & mask) == (hexadecimal(row[7][step]) & mask));
    }
    REQUIRE(row[8].size() == (tile.swizzle == Swizzle::k128BAtom32B ? 0 : row[7].size()));
    for (uint32_t step = 0; step < row[8].size(); ++step, ++words) {
      INFO("K step " << step);
      CHECK((tile.wgmma_descriptor(base, step * instruction_k) & mask) == (hexadecimal(row[8][step]) & mask));
    }
  }
  CHECK(words == 6416);
}

TEST_CASE("descriptors: an MMA finds every element where the layout put it") {
  const auto data = golden("cutlass_smem_descriptors.json");
  for (const auto& row : data["rows"]) {
    const OperandTile tile = tile_of(row);
    const uint32_t base = row[6];
    const uint32_t instruction_k = 32 / tile.element_bytes;
    INFO(row[0] << " " << row[1] << "-major " << row[2] << " " << row[3] << "x" << row[4] << " " << row[5]);
    size_t wrong = 0;
    for (uint32_t first_k = 0; first_k < tile.k; first_k += instruction_k) {
      const uint64_t word = tile.tcgen05_descriptor(base, first_k);
      for (uint32_t r = 0; r < tile.rows; ++r) {
        for (uint32_t k = 0; k < instruction_k; ++k) {
          const uint32_t seen = address_by_word(word, tile.major, tile.element_bytes, r, k);
          wrong += seen != base + tile.offset(r, first_k + k);
        }
      }
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("descriptors: the two chips differ by bit 46, and addresses lose the CTA rank") {
  const uint64_t blackwell = tcgen05_smem_descriptor(0x1400, 2048, 128, Swizzle::kNone);
  const uint64_t hopper = wgmma_smem_descriptor(0x1400, 2048, 128, Swizzle::kNone);
  CHECK(blackwell == hopper + (uint64_t{1} << 46));
  CHECK(hopper == (uint64_t{0x140} | uint64_t{128} << 16 | uint64_t{8} << 32));
  CHECK(tcgen05_smem_descriptor(0x03001400, 2048, 128, Swizzle::kNone) == blackwell);
}
