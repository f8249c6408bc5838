#pragma once
// The fused sum of a tensor core instruction, one output at a time and in integers: the rule itself, for the values
// that the vector path does not take.

#include <cstdint>

#include "emulator/units/tensor_core.h"

namespace emu {

/// D[row][column] after the instruction, given what it was before: both as f32 bits, an f16 D too.
///
/// The rule (K products and the old D):
///  - A NaN anywhere, Inf * 0, or Infs of both signs give NaN: 0x7FFFFFFF, as f16 0x7FFF. Otherwise an Inf gives that
///  Inf.
///  - The exponent of a product is the sum of its factors' exponents, mantissas not normalised; a subnormal has its
///  format's
///    lowest exponent. Zero terms have none. The largest exponent of all terms counts, but never less than -133.
///  - Each term is cut toward zero to a multiple of 2^(largest - 25), by FusedRule::hopper8 of 2^(largest - 13); the
///  cut
///    terms are added exactly.
///  - The sum is rounded to f32 toward zero (by hopper8 to 13 fraction bits), or to f16 to nearest even, subnormals
///    included; past the largest finite number it becomes Inf. A result of zero is +0.
///  - Scales of rows: a scale's exponent is added to that of each product; one that is NaN gives NaN.
uint32_t fused_sum_exact(const PackedOperand& a, uint32_t row, const PackedOperand& b, uint32_t column,
                         const AccumulatorUse& use, uint32_t old);

/// The value of an f16; exact, NaN and Inf kept as such.
float f16_to_float(uint32_t bits);
/// The f16 nearest to a value, to even; Inf when too large. A zero becomes +0, a NaN 0x7FFF.
uint16_t float_to_f16(float value);

}  // namespace emu
