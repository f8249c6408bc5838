#pragma once
// Operands of an MMA with small whole numbers in them: products are exact, whatever the order of the sum.

#include <cstdint>
#include <vector>

#include "common/layout/operand_tile.h"

namespace museum {

class Operand {
 public:
  /// The numbers -4 to 4 without a pattern, others for another seed.
  Operand(const ladder::OperandTile& tile, uint32_t seed);

  /// The tile's bytes as they lie in shared memory, in f16.
  std::vector<uint32_t> image() const;
  /// Row after row in f16, two elements a word.
  std::vector<uint32_t> rows() const;
  const ladder::OperandTile& tile() const { return tile_; }
  int at(uint32_t row, uint32_t k) const { return numbers_[row * tile_.k + k]; }

 private:
  uint16_t half(uint32_t row, uint32_t k) const;

  ladder::OperandTile tile_;
  std::vector<int> numbers_;
};

/// a b^T, row by row.
std::vector<float> product(const Operand& a, const Operand& b);

}  // namespace museum
