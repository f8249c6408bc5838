#pragma once
// What one output should be. None of these shares code with a kernel or with the emulator.

#include <cstdint>
#include <memory>

#include "common/harness/matrix.h"

namespace ladder {

class Reference {
 public:
  virtual ~Reference() = default;
  /// The bits of D[row][col] in the output type.
  virtual uint32_t expected(int64_t row, int64_t col) const = 0;
};

/// By the rule of the tensor core (tensor_core_model.h), then rounded to `out` to nearest even. For any inputs.
class ModelReference : public Reference {
 public:
  /// Keeps references to both matrices.
  ModelReference(const HostMatrix& a, const HostMatrix& b, DType out) : a_(a), b_(b), out_(out) {}
  uint32_t expected(int64_t row, int64_t col) const override;
  /// Whether `got` may come from the right products summed by another rule: in another order, or cut elsewhere.
  bool within_rounding(int64_t row, int64_t col, uint32_t got) const;

 private:
  const HostMatrix &a_, &b_;
  DType out_;
};

/// By exact integer arithmetic, then rounded to `out` to nearest even. For matrices of integers whose sums stay below
/// 2^24 (inputs.h: integer_range): there every order of summation gives this very result.
class IntegerReference : public Reference {
 public:
  IntegerReference(const HostMatrix& a, const HostMatrix& b, DType out) : a_(a), b_(b), out_(out) {}
  uint32_t expected(int64_t row, int64_t col) const override;
  int64_t exact(int64_t row, int64_t col) const;

 private:
  const HostMatrix &a_, &b_;
  DType out_;
};

}  // namespace ladder
