#pragma once
// The arithmetic of .kind::mxf4 and .kind::mxf4nvf4: K = 64 elements of e2m1, with a scale for every 32 or 16 of them.
//
// The rule, by MMA-Sim (arXiv 2511.10909): the 16 products of a group are added exactly; a group's term is that sum
// times the significands of its two scales, with the sum of the scales' exponents as its exponent, whatever the sum is
// (a zero too). Terms and the old D are cut toward zero at 35 fraction bits below the largest exponent, added exactly
// and cut to f32. A scale that is NaN, or a NaN in D, gives 0x7FFFFFFF; a zero result is +0. As in tensor_core.h the
// largest exponent is at least -133, and a zero D or a group whose scale is zero does not count; of these kinds no
// source says so.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

namespace emu {

enum class ScaleType : uint8_t { ue8m0, ue4m3 };

/// A or B of one instruction.
struct ScaledFp4Operand {
  static constexpr uint32_t kMaxRows = 256, kDepth = 64, kGroup = 16, kGroups = kDepth / kGroup, kBlock = 64;

  /// `dense`: rows x 32 bytes, two elements a byte, the first in its low half. `scales`: for each row one scale for
  /// every `block` elements (16 or 32), 64 / block bytes a row. rows: a multiple of 8.
  void pack(uint32_t row_count, const std::byte* dense, ScaleType type, uint32_t block, std::span<const uint8_t> scales,
            bool negate = false);

  uint32_t rows = 0;
  /// At row / 64 * 64 * kDepth + k * 64 + row % 64: twice the element.
  alignas(64) int16_t value[kMaxRows * kDepth] = {};
  /// By group and row: the scale's exponent and significand, 8 being 1.
  alignas(64) int32_t exponent[kGroups][kMaxRows] = {};
  alignas(64) int32_t significand[kGroups][kMaxRows] = {};
  bool nan[kMaxRows] = {};  ///< one of the row's scales is NaN
};

/// D (f32) of the rows of `a` and of the rows of `b`; `input`, `d_rows`: as of fused_multiply_add.
void scaled_multiply_add(const ScaledFp4Operand& a, const ScaledFp4Operand& b, bool input,
                         std::span<uint32_t* const> d_rows);

}  // namespace emu
