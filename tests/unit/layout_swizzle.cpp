// common/layout/swizzle.h against CuTe's swizzle functors (tests/golden/cutlass_swizzle.json).
#include "common/layout/swizzle.h"

#include <set>

#include "tests/catch.h"
#include "tests/unit/layout_golden.h"

using namespace ladder;
using namespace layout_test;

// Usable where the compiler needs a constant. Values: PTX ISA, 128B swizzling, chunk c of row r sits at chunk c ^ (r %
// 8).
static_assert(swizzle_address(Swizzle::k128B, 3 * 128 + 5 * 16) == 3 * 128 + (5 ^ 3) * 16);

TEST_CASE("swizzle: every address of an 18-bit window, every mode") {
  const auto data = golden("cutlass_swizzle.json");
  std::set<std::string> modes;
  for (const auto& row : data["rows"]) {
    const std::string name = row[0];
    INFO(name);
    modes.insert(name);
    const Swizzle swizzle = swizzle_named(name);
    const uint32_t period = row[2];
    CHECK(swizzle_period_bytes(swizzle) == period);
    REQUIRE(row[3].size() == period / 16);
    for (uint32_t i = 0; i < period / 16; ++i) CHECK(swizzle_address(swizzle, 16 * i) == row[3][i].get<uint32_t>());
    uint64_t hash = 0;
    for (uint32_t address = 0; address < 1u << 18; address += 8) {
      hash = checksum_step(hash, swizzle_address(swizzle, address));
    }
    CHECK(hash == hexadecimal(row[4]));
    for (const auto& sample : row[5]) CHECK(swizzle_address(swizzle, sample[0]) == sample[1].get<uint32_t>());
  }
  CHECK(modes == std::set<std::string>{"none", "32B", "64B", "128B", "128B, 32B atom"});
}

TEST_CASE("swizzle: acts on the absolute address, so an unaligned tile is not the aligned one moved") {
  const auto data = golden("cutlass_swizzle.json");
  REQUIRE(data["unaligned"].size() == 12);
  size_t moved = 0;
  for (const auto& row : data["unaligned"]) {
    const Swizzle swizzle = swizzle_named(row[0]);
    const uint32_t base = row[1];
    INFO(row[0] << " at " << base);
    for (const auto& sample : row[2]) {
      // 16-bit elements, rows as long as the span.
      const uint32_t offset = sample[0].get<uint32_t>() * swizzle_span_bytes(swizzle) + sample[1].get<uint32_t>() * 2;
      CHECK(swizzle_address(swizzle, base + offset) == sample[2].get<uint32_t>());
      moved += base + swizzle_address(swizzle, offset) != sample[2].get<uint32_t>();
    }
  }
  CHECK(moved > 0);
}
