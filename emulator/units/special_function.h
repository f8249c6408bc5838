#pragma once
// The special function unit, bit for bit as an H200 has it: what SASS calls MUFU, which the .approx instructions are
// made of (their wrappers: isa/arithmetic_function.cpp).
//
// Quadratic interpolation (Oberman and Siu, A High-Performance Area-Efficient Multifunction Interpolator, 2005): the
// upper bits of the argument choose a segment, the others, x, go into constant + linear * x + quadratic * x^2. The
// square is cut short: products of two bits of x below a certain weight are not added. The sum is exact and is
// truncated to 24 bits. No result of any function differed from an H200's: tests/golden/h200_functions.json.
//
// NaN comes out as 0x7FFFFFFF. Unless said otherwise subnormal arguments count as zero and subnormal results are zero.

#include <cstdint>

namespace emu::special_function {

float reciprocal(float x);
float root(float x);
float reciprocal_root(float x);
float binary_logarithm(float x);
float power_of_two(float x);
float sine_of_turns(float t);  ///< sin(2 pi t), of the 25 fraction bits of t
float cosine_of_turns(float t);
float hyperbolic_tangent(float x);  ///< below 2^-8 x itself, subnormal or not

/// Of the upper half of a double, whose lower half does not matter, to the upper half of a double. NaN: 0x7FFFFFFF.
uint32_t reciprocal_of_upper_half(uint32_t x);
uint32_t reciprocal_root_of_upper_half(uint32_t x);

}  // namespace emu::special_function
