#pragma once
// The arithmetic of one tensor core instruction, bit for bit: D[m][n] = fused(sum over k of A[m][k] * B[n][k],
// D[m][n]).
//
// All products of the instruction and the old D enter one sum: each term is aligned to the largest exponent among them
// and cut toward zero at so many fraction bits below it, the cut terms are added exactly, and the sum is rounded once
// (f32: toward zero, f16: to nearest even). tensor_core_exact.h has the rule in full. What it rests on:
//
//   types                                    fraction bits   known from
//   f16, bf16, tf32                          25              MMA-Sim (arXiv 2511.10909); an H200, wgmma and mma.sync
//   e4m3, e5m2, wgmma (FusedRule::hopper8)   13, D keeps 13  the same two
//   e4m3, e5m2, e2m1, tcgen05                25              MMA-Sim
//   e2m3, e3m2, tcgen05                      25              nothing: taken to be as the others of .kind::f8f6f4
//   .kind::mxf8f6f4                          25              MMA-Sim; scale exponents are added to those of the
//   products .kind::mxf4, mxf4nvf4                    35              MMA-Sim: see scaled_fp4.h u8, s8 exact PTX ISA: D
//   wraps around or saturates
//
// An H200 differs from MMA-Sim in one point, and that is followed everywhere: zeros do not count for the largest
// exponent, which is at least -133.

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "emulator/units/descriptor.h"

namespace emu {

/// A or B of one instruction, converted for the vector units and transposed, so that rows lie along vector lanes.
/// Fixed size, no allocation: keep one per thread and pack into it.
struct PackedOperand {
  static constexpr uint32_t kMaxRows = 256, kMaxK = 32, kBlock = 64;

  /// `dense`: rows x 32 bytes, K fastest, as gather_operand leaves it. `rows`: M of A, N of B; a multiple of 8. The low
  /// 13 bits of tf32 are dropped; types of 6 and 4 bits are the low bits of a byte each. `negate` flips every sign (not
  /// of integers).
  void pack(ElementType type, uint32_t rows, const std::byte* dense, bool negate = false);

  /// A in tensor memory: columns[m] points at the first of the 8 columns that hold row m's K elements.
  void pack_tmem(ElementType type, std::span<const uint32_t* const> columns, bool negate = false);

  /// .kind::mxf8f6f4: one UE8M0 scale for each row, 2^(scale - 127); 255 is NaN. After pack.
  void scale(std::span<const uint8_t> scales);

  ElementType type = ElementType::f16;
  uint32_t rows = 0, k = 0;
  bool has_special = false;  ///< an Inf or NaN is among the elements or scales
  bool scaled = false;

  static constexpr uint32_t index(uint32_t row, uint32_t k, uint32_t depth) {
    return row / kBlock * kBlock * depth + k * kBlock + row % kBlock;
  }
  /// At index(row, k): the element, and how far its exponent lies below the row's largest (255: zero, or that far).
  alignas(64) float value[kMaxRows * kMaxK] = {};
  alignas(64) uint8_t below[kMaxRows * kMaxK] = {};
  /// Largest exponent of each row, its scale's included; subnormals count at their format's lowest exponent.
  alignas(64) int32_t exponent[kMaxRows] = {};
  /// Exponent of each row's scale. Only where `scaled`.
  alignas(64) int32_t scale_exponent[kMaxRows] = {};

  static constexpr int32_t kOnlyZeros = -20000;  ///< exponent of a row with nothing in it
  static constexpr int32_t kSpecial = 30000;     ///< exponent of a row with an Inf or NaN
  static constexpr int32_t kNanScale = 1 << 20;  ///< exponent of a scale that is NaN
};

/// Two operands to pack into, of the host thread. They are on the heap, since a library that is opened late (as ours by
/// libcuda.so.1) finds room for only a few hundred bytes of thread-local variables.
std::pair<PackedOperand, PackedOperand>& packed_operands();

/// Where terms are cut.
enum class FusedRule : uint8_t {
  wide,     ///< at 25 fraction bits
  hopper8,  ///< at 13, and an f32 result keeps 13: wgmma of e4m3 and e5m2
};

/// How D takes part.
struct AccumulatorUse {
  AccumulatorType type = AccumulatorType::f32;  ///< f32; f16 in the low half of each 32-bit column; s32 of u8 and s8
  bool input = true;                            ///< enable-input-d: false computes A * B alone, whatever D held
  /// scale-input-d: the old D enters as D * 2^-shift, 0..15. No source says how that is rounded; here it is not rounded
  /// at all: the exponent of D is lowered before the alignment.
  uint8_t scale_shift = 0;
  FusedRule rule = FusedRule::wide;
  bool saturate = false;  ///< s32: the sum stays at the least or largest value instead of wrapping around
};

/// D of the rows of `a` and of the rows of `b`, which are the columns of D. d_rows[m] points at the 32-bit word of
/// column 0 in the lane that holds row m; nullptr leaves that row alone (disable-output-lane). Where D's columns lie in
/// several lanes (AccumulatorLayout::parts), pack and multiply each part of B by itself. Both operands are f16 or bf16
/// (mixed or not), or both tf32, or both of 8 bits and fewer, or both integers. A D of f16 is written as its 16 bits
/// with zeros above them (no source says what the upper half holds).
void fused_multiply_add(const PackedOperand& a, const PackedOperand& b, const AccumulatorUse& use,
                        std::span<uint32_t* const> d_rows);

}  // namespace emu
