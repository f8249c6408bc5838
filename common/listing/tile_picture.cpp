// Draws where the 16-byte chunks of a K-major operand tile of 16-bit elements lie, for the pages: tile_picture SWIZZLE
// ROWS K LINES [FIRST]. A line is 128 bytes of shared memory, once across its 32 banks; a cell names the row and the
// chunk of K that lie there. FIRST: how many lines to leave out.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/layout/operand_tile.h"
#include "common/listing/number.h"

namespace {

using namespace ladder;

constexpr uint32_t kElementBytes = 2, kChunkBytes = 16, kLineBytes = 128;
constexpr uint32_t kChunkElements = kChunkBytes / kElementBytes, kLineChunks = kLineBytes / kChunkBytes;

std::optional<Swizzle> swizzle_named(std::string_view name) {
  constexpr std::pair<std::string_view, Swizzle> kNames[] = {
      {"none", Swizzle::kNone}, {"32B", Swizzle::k32B}, {"64B", Swizzle::k64B}, {"128B", Swizzle::k128B}};
  for (const auto& [each, swizzle] : kNames) {
    if (each == name) return swizzle;
  }
  return std::nullopt;
}

void draw(const OperandTile& tile, uint32_t lines, uint32_t first) {
  std::vector<std::string> cells(tile.bytes() / kChunkBytes);
  for (uint32_t row = 0; row < tile.rows; ++row) {
    for (uint32_t chunk = 0; chunk < tile.k / kChunkElements; ++chunk) {
      cells[tile.offset(row, chunk * kChunkElements) / kChunkBytes] = fmt::format("{}.{}", row, chunk);
    }
  }
  fmt::print("{:>6}", "banks");
  for (uint32_t bank = 0; bank < 32; bank += 4) fmt::print("{:>8}", fmt::format("{}-{}", bank, bank + 3));
  fmt::print("\n");
  for (uint32_t line = first; line < first + lines; ++line) {
    fmt::print("{:>6}", fmt::format("+{}", line * kLineBytes));
    for (uint32_t at = 0; at < kLineChunks; ++at) fmt::print("{:>8}", cells[line * kLineChunks + at]);
    fmt::print("\n");
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::optional<Swizzle> swizzle = argc == 5 || argc == 6 ? swizzle_named(argv[1]) : std::nullopt;
  if (!swizzle) {
    fmt::print(stderr,
               "expected a swizzle (none, 32B, 64B or 128B), rows, K elements, lines of 128 bytes, and perhaps "
               "how many to leave out\n");
    return 2;
  }
  const OperandTile tile{Major::k,
                         *swizzle,
                         AtomOrder::kRowsFirst,
                         kElementBytes,
                         number<uint32_t>(argv[2], 0),
                         number<uint32_t>(argv[3], 0)};
  const uint32_t lines = number<uint32_t>(argv[4], 0), first = argc == 6 ? number<uint32_t>(argv[5], 0) : 0;
  const auto fits = [](uint32_t extent, uint32_t atom) { return extent > 0 && extent <= 256 && extent % atom == 0; };
  if (!fits(tile.rows, tile.atom_rows()) || !fits(tile.k, tile.atom_k())) {
    fmt::print(stderr, "a tile of {} rows x {} of K: expected multiples of {} and {}, at most 256\n", argv[2], argv[3],
               tile.atom_rows(), tile.atom_k());
    return 2;
  }
  const uint32_t all = tile.bytes() / kLineBytes, left = all - std::min(first, all);
  if (lines == 0 || lines > left) {
    fmt::print(stderr, "{} lines: expected 1 to {}, which is all {}\n", argv[4], left,
               first > 0 ? "that is left" : "of the tile");
    return 2;
  }
  draw(tile, lines, first);
  return 0;
}
