#pragma once
// A dense row-major matrix on the host, held as the bits that travel to the device.

#include <cstddef>
#include <cstdint>
#include <memory>

#include "common/harness/dtype.h"

namespace ladder {

class HostMatrix {
 public:
  HostMatrix() = default;
  /// Contents are undefined until written: large matrices are filled once, in parallel. Throws std::bad_alloc.
  HostMatrix(int64_t rows, int64_t cols, DType type)
      : rows_(rows), cols_(cols), type_(type), storage_(std::make_unique_for_overwrite<std::byte[]>(size_bytes())) {}

  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }
  int64_t size() const { return rows_ * cols_; }
  DType type() const { return type_; }
  size_t size_bytes() const { return static_cast<size_t>(size()) * bytes_of(type_); }
  std::byte* data() { return storage_.get(); }
  const std::byte* data() const { return storage_.get(); }

  /// The elements of a 16-bit matrix.
  uint16_t* row16(int64_t row) { return reinterpret_cast<uint16_t*>(data()) + row * cols_; }
  const uint16_t* row16(int64_t row) const { return reinterpret_cast<const uint16_t*>(data()) + row * cols_; }
  /// The elements of an f32 matrix.
  uint32_t* row32(int64_t row) { return reinterpret_cast<uint32_t*>(data()) + row * cols_; }
  const uint32_t* row32(int64_t row) const { return reinterpret_cast<const uint32_t*>(data()) + row * cols_; }

  /// The bits of one element, 16-bit types in the low half.
  uint32_t bits(int64_t row, int64_t col) const;
  void set_bits(int64_t row, int64_t col, uint32_t bits);
  float value(int64_t row, int64_t col) const;

 private:
  int64_t rows_ = 0, cols_ = 0;
  DType type_ = DType::f16;
  std::unique_ptr<std::byte[]> storage_;
};

/// A fingerprint of the bits of `matrix`, row by row: h = 0xcbf29ce484222325, then for each element
/// h = ((h ^ bits) * 0x100000001b3) mod 2^64 (FNV-1a over elements). Equal bits, equal hash, on every machine.
uint64_t hash_of(const HostMatrix& matrix);

}  // namespace ladder
