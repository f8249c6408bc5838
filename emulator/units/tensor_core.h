#pragma once
// The arithmetic of one tensor core instruction, bit for bit: D[m][n] = fused(sum over k of A[m][k] * B[n][k],
// D[m][n]).
//
// All products of the instruction and the old D enter one sum: each term is aligned to the largest exponent among them
// and cut toward zero at 25 fraction bits, the cut terms are added exactly, and the sum is rounded once (f32: toward
// zero, f16: to nearest even). docs/numerics.md has the rule in full; it is MMA-Sim's (arXiv 2511.10909), checked on an
// H200 for wgmma and mma.sync, and taken to hold for tcgen05 on the authority of that paper.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "emulator/units/descriptor.h"

namespace emu {

/// A of one instruction, converted for the vector units. Fixed size, no allocation: keep one per thread and pack into
/// it.
class PackedA {
 public:
  static constexpr uint32_t kMaxRows = 128, kMaxK = 16;

  /// `dense`: rows x 32 bytes, K fastest (what gather_operand gives). f16, bf16, tf32 (low 13 bits dropped).
  void pack(ElementType type, uint32_t rows, const std::byte* dense, bool negate = false);

  /// A in tensor memory: rows[m] points at the first of the 8 columns of row m (two 16-bit values a column, even k
  /// low).
  void pack_tmem(ElementType type, std::span<const uint32_t* const> rows, bool negate = false);

  uint32_t rows() const { return rows_; }
  uint32_t k() const { return k_; }
  ElementType type() const { return type_; }

 private:
  friend struct TensorCoreAccess;
  void set_row(uint32_t row, const std::byte* bytes, bool negate);

  uint32_t rows_ = 0, k_ = 0;
  ElementType type_ = ElementType::f16;
  alignas(64) std::array<std::array<float, kMaxK>, kMaxRows> value_;
  alignas(
      64) std::array<std::array<uint32_t, kMaxK>, kMaxRows> below_;  // exponents below the row's, one byte four times
  std::array<int32_t, kMaxRows> exponent_;                           // largest of the row
};

/// B of one instruction (N rows x K), transposed so that columns of D lie along vector lanes.
class PackedB {
 public:
  static constexpr uint32_t kMaxColumns = 256, kMaxK = 16, kBlock = 64;

  void pack(ElementType type, uint32_t columns, const std::byte* dense, bool negate = false);

  uint32_t columns() const { return columns_; }
  uint32_t k() const { return k_; }
  ElementType type() const { return type_; }

 private:
  friend struct TensorCoreAccess;
  uint32_t columns_ = 0, k_ = 0;
  ElementType type_ = ElementType::f16;
  // Blocks of 64 columns: [block][k][column in block].
  alignas(64) std::array<float, kMaxK * kMaxColumns> value_;
  alignas(64) std::array<uint8_t, kMaxK * kMaxColumns> below_;
  alignas(64) std::array<int32_t, kMaxColumns> exponent_;
};

/// How D takes part.
struct AccumulatorUse {
  AccumulatorType type = AccumulatorType::f32;  ///< f32, or f16 in the low half of each 32-bit column
  bool input = true;                            ///< enable-input-d: false computes A * B alone, whatever D held
  uint8_t scale_shift = 0;                      ///< scale-input-d: the old D enters as D * 2^-shift, 0..15
};

/// Columns [first, first + count) of the product; `first` a multiple of 8.
struct ColumnRange {
  uint32_t first = 0, count = 0;
};

/// d_rows[m] points at the 32-bit word of the first column of `columns` in the lane that holds row m; nullptr leaves
/// that row alone (disable-output-lane). a.type() and b.type() must be f16/bf16 (mixed or not) or both tf32.
void fused_multiply_add(const PackedA& a, const PackedB& b, const AccumulatorUse& use, ColumnRange columns,
                        std::span<uint32_t* const> d_rows);

}  // namespace emu
