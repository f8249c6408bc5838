#include "common/harness/matrix.h"

#include <bit>

namespace ladder {
namespace {

template <class Element>
uint64_t fnv1a(const Element* elements, int64_t count) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (int64_t i = 0; i < count; ++i) hash = (hash ^ elements[i]) * 0x100000001B3u;
  return hash;
}

}  // namespace

uint32_t HostMatrix::bits(int64_t row, int64_t col) const {
  return type_ == DType::f32 ? row32(row)[col] : row16(row)[col];
}

void HostMatrix::set_bits(int64_t row, int64_t col, uint32_t bits) {
  if (type_ == DType::f32) {
    row32(row)[col] = bits;
  } else {
    row16(row)[col] = static_cast<uint16_t>(bits);
  }
}

float HostMatrix::value(int64_t row, int64_t col) const {
  return std::bit_cast<float>(to_f32(type_, bits(row, col)));
}

uint64_t hash_of(const HostMatrix& matrix) {
  return matrix.type() == DType::f32 ? fnv1a(matrix.row32(0), matrix.size()) : fnv1a(matrix.row16(0), matrix.size());
}

}  // namespace ladder
