#include "common/harness/reference.h"

#include <bit>

#include "common/harness/elements.h"
#include "common/harness/tensor_core_model.h"

namespace ladder {

uint32_t ModelReference::expected(int64_t row, int64_t col) const {
  return from_f32(out_, tensor_core_dot(a_.type(), a_.row16(row), b_.row16(col), a_.cols()));
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
