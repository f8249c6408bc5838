#pragma once
// Matrices to multiply. The same seed gives the same bits on every machine and for any number of threads.

#include <cstdint>

#include "common/harness/matrix.h"
#include "common/harness/philox.h"

namespace ladder {

/// Normal numbers, mean 0, standard deviation 0.98, rounded to the matrix's 16-bit type.
/// The recipe, per element, from two random words v and w: s = (popcount(v) - 16) * 65536 + (w & 0xFFFF) + (w >> 16) -
/// 65535, x = 11 s / 2^21, rounded to nearest even. A count of 32 coin tosses smoothed by two uniform numbers: its
/// excess kurtosis is -0.06 and its largest value 5.9 standard deviations.
/// Element e takes words 0, 1 (e / 16 even) or 2, 3 (odd) of block (e / 32) * 16 + e % 16 of its stream.
void fill_random(HostMatrix& matrix, uint64_t seed, Stream stream);

/// How integer inputs are drawn: uniform in [-magnitude, magnitude], and set to zero unless a 16-bit draw is below
/// `keep` (65536: never).
struct IntegerRange {
  int magnitude = 1;
  uint32_t keep = 65536;
};

/// The widest range for which products over `k` stay exact. Output f32: every partial sum is below 2^24 for sure.
/// 16-bit output: eight standard deviations of a sum stay within the integers that the type holds (2048 for f16, 256
/// for bf16); a rarer larger sum is still exact in the accumulator and is compared after rounding to nearest even.
IntegerRange integer_range(int64_t k, DType out);

/// Element e takes word (e / 16) % 4 of block (e / 64) * 16 + e % 16: its low half draws the value, its high half
/// `keep`.
void fill_integer(HostMatrix& matrix, uint64_t seed, Stream stream, IntegerRange range);

}  // namespace ladder
