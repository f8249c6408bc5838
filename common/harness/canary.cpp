#include "common/harness/canary.h"

#include <algorithm>
#include <cstring>

namespace ladder {
namespace {

/// Both halves have exponent bits all ones for f16 (0x7C00) and bf16 (0x7F80), and a fraction that is not zero.
uint32_t canary_word(size_t index, uint32_t which) {
  const uint32_t mixed = (static_cast<uint32_t>(index) + which * 0x9E3779B9u) * 0x85EBCA6Bu;
  const uint32_t low = 0x7F81u + ((mixed >> 7) & 0x3Fu), high = 0x7F81u + ((mixed >> 19) & 0x3Fu);
  return high << 16 | low;
}

}  // namespace

void fill_canary(std::span<std::byte> band, uint32_t which) {
  for (size_t offset = 0; offset < band.size(); offset += sizeof(uint32_t)) {
    const uint32_t word = canary_word(offset / sizeof word, which);
    std::memcpy(band.data() + offset, &word, std::min(sizeof word, band.size() - offset));
  }
}

std::optional<size_t> find_canary_damage(std::span<const std::byte> band, uint32_t which) {
  for (size_t offset = 0; offset < band.size(); offset += sizeof(uint32_t)) {
    const uint32_t word = canary_word(offset / sizeof word, which);
    std::byte expected[sizeof word];
    std::memcpy(expected, &word, sizeof word);
    for (size_t i = 0; i < sizeof word && offset + i < band.size(); ++i) {
      if (band[offset + i] != expected[i]) return offset + i;
    }
  }
  return std::nullopt;
}

}  // namespace ladder
