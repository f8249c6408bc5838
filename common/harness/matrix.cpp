#include "common/harness/matrix.h"

namespace ladder {
namespace {

template <class Element>
uint64_t fnv1a(const Element* elements, int64_t count) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (int64_t i = 0; i < count; ++i) hash = (hash ^ elements[i]) * 0x100000001B3u;
  return hash;
}

}  // namespace

uint64_t hash_of(const HostMatrix& matrix) {
  return matrix.type() == DType::f32 ? fnv1a(matrix.row32(0), matrix.size()) : fnv1a(matrix.row16(0), matrix.size());
}

}  // namespace ladder
