#pragma once
// Inputs whose product says what arrived where. D[i][j] belongs to one of three classes, (i + j) % 3:
//   0  holds i + 1: which row of A arrived
//   1  holds j + 1: which row of B arrived
//   2  holds the sum of a weight per K slice of 16: which slices arrived, and how often
// so that any three neighbours name their row, their column and their K slices. That works because (i + j) % 3 == c is
// a sum of three products, one for each value of i % 3: class 0, say, is the product of columns "i % 3 == u, times the
// code of i" of A and "j % 3 == (3 - u) % 3" of B. Codes have two digits of 8 bits, so that they are exact in bf16;
// with one column per digit and value of i % 3, rows take 6 columns, columns 6 and weights 3, all inside one K slice
// (the home slice, chosen by the seed); the other slices hold weights only. All sums stay below 2^24.

#include <cstdint>
#include <string>
#include <vector>

#include "common/harness/reference.h"
#include "common/harness/shapes.h"

namespace ladder {

inline constexpr const char* kTransposed = "D[i][j] holds what belongs to D[j][i]: rows and columns are swapped";

struct WrongElement {
  int64_t row, col;
  uint32_t got, expected;  ///< bits in the output type
};

class PositionCode : public Reference {
 public:
  static constexpr int kSlice = 16;
  PositionCode(const Shape& shape, uint64_t seed);

  void fill_a(HostMatrix& a) const;
  void fill_b(HostMatrix& b) const;

  /// f32 bits.
  uint32_t expected(int64_t row, int64_t col) const override;
  int64_t expected_value(int64_t row, int64_t col) const;

  /// What the wrong elements say about what arrived, most telling first, one line each; `tile_k` groups slices.
  std::vector<std::string> decode(const std::vector<WrongElement>& wrong, int tile_k) const;

 private:
  int64_t code_of(int64_t index) const { return index % codes_ + 1; }
  int64_t slices() const { return static_cast<int64_t>(weight_.size()); }
  int64_t weight_column(int64_t slice) const;
  std::string decode_slices(int64_t value, int tile_k) const;

  Shape shape_;
  int64_t codes_;  ///< different codes for rows, and for columns: 1 to codes_; larger matrices repeat them
  int64_t home_ = 0;
  std::vector<int32_t> factor_a_, factor_b_;  ///< per slice; their product is its weight
  std::vector<int64_t> weight_;
  int64_t total_weight_ = 0;
};

}  // namespace ladder
