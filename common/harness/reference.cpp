#include "common/harness/reference.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "common/harness/elements.h"
#include "common/harness/tensor_core_model.h"

namespace ladder {

uint32_t ModelReference::expected(int64_t row, int64_t col) const {
  return from_f32(out_, tensor_core_dot(a_.type(), a_.row16(row), b_.row16(col), a_.cols()));
}

bool ModelReference::within_rounding(int64_t row, int64_t col, uint32_t got) const {
  constexpr int kChunk = 256;
  float x[kChunk], y[kChunk];
  double sum = 0, magnitudes = 0;
  for (int64_t first = 0; first < a_.cols(); first += kChunk) {
    const int64_t count = std::min<int64_t>(kChunk, a_.cols() - first);
    to_floats(a_, row, first, count, x);
    to_floats(b_, col, first, count, y);
    for (int64_t i = 0; i < count; ++i) {
      sum += double{x[i]} * y[i];
      magnitudes += std::fabs(double{x[i]} * y[i]);
    }
  }
  // No partial sum is larger than the sum of magnitudes, and each term may cost one unit in the last place of one: a
  // chain of additions that cut, and more than any sum of several at once. Then half a unit of the output.
  const double terms = static_cast<double>(std::max<int64_t>(a_.cols(), kFusedProducts));
  const double half_unit = out_ == DType::f16 ? 0x1p-11 : out_ == DType::bf16 ? 0x1p-8 : 0;
  const double smallest = out_ == DType::f16 ? 0x1p-24 : 0x1p-133;
  const double value = std::bit_cast<float>(to_f32(out_, got));
  return std::fabs(value - sum) <= terms * 0x1p-23 * magnitudes + half_unit * std::fabs(sum) + smallest;
}

int64_t IntegerReference::exact(int64_t row, int64_t col) const {
  constexpr int kChunk = 256;
  float x[kChunk], y[kChunk];
  int64_t sum = 0;
  for (int64_t first = 0; first < a_.cols(); first += kChunk) {
    const int64_t count = std::min<int64_t>(kChunk, a_.cols() - first);
    to_floats(a_, row, first, count, x);
    to_floats(b_, col, first, count, y);
    for (int64_t i = 0; i < count; ++i) sum += static_cast<int32_t>(x[i]) * static_cast<int32_t>(y[i]);
  }
  return sum;
}

uint32_t IntegerReference::expected(int64_t row, int64_t col) const {
  return from_f32(out_, std::bit_cast<uint32_t>(static_cast<float>(exact(row, col))));
}

}  // namespace ladder
