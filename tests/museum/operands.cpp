#include "tests/museum/operands.h"

#include <bit>
#include <cstring>

#include "common/harness/dtype.h"
#include "tests/museum/exhibit.h"

namespace museum {

Operand::Operand(const ladder::OperandTile& tile, uint32_t seed) : tile_(tile) {
  for (const uint32_t word : numbers(size_t{tile.rows} * tile.k)) {
    numbers_.push_back(static_cast<int>((word >> 8 ^ seed * 0x9E3779B9) % 9) - 4);
  }
}

uint16_t Operand::half(uint32_t row, uint32_t k) const {
  return ladder::f32_to_f16(std::bit_cast<uint32_t>(static_cast<float>(at(row, k))));
}

std::vector<uint32_t> Operand::image() const {
  std::vector<uint32_t> words(tile_.bytes() / 4);
  for (uint32_t row = 0; row < tile_.rows; ++row) {
    for (uint32_t k = 0; k < tile_.k; ++k) {
      const uint16_t element = half(row, k);
      std::memcpy(reinterpret_cast<char*>(words.data()) + tile_.offset(row, k), &element, sizeof element);
    }
  }
  return words;
}

std::vector<uint32_t> Operand::rows() const {
  std::vector<uint32_t> words;
  for (uint32_t row = 0; row < tile_.rows; ++row) {
    for (uint32_t k = 0; k < tile_.k; k += 2) words.push_back(half(row, k) | uint32_t{half(row, k + 1)} << 16);
  }
  return words;
}

std::vector<float> product(const Operand& a, const Operand& b) {
  std::vector<float> d;
  for (uint32_t m = 0; m < a.tile().rows; ++m) {
    for (uint32_t n = 0; n < b.tile().rows; ++n) {
      int sum = 0;
      for (uint32_t k = 0; k < a.tile().k; ++k) sum += a.at(m, k) * b.at(n, k);
      d.push_back(static_cast<float>(sum));
    }
  }
  return d;
}

}  // namespace museum
