// The fused multiply-add of block-scaled e2m1, vectorised along the columns of D. All terms, cut at 35 fraction bits,
// and their sum are integers below 2^50, so doubles hold them exactly; rounding toward zero is the processor's own
// mode.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "emulator/units/scaled_fp4.cpp"
#include "emulator/units/tensor_core_targets.h"
// tensor_core_targets.h must be the first to include Highway.
#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "emulator/units/scaled_fp4.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace emu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using Operand = ScaledFp4Operand;
constexpr uint32_t kBlock = Operand::kBlock;
constexpr int kFractionBits = 35, kLowestAlignment = -133;
constexpr int kTermFractionBits = 2 + 2 * 3;  // of two doubled elements, and of two significands

/// sums[i]: the exact sum of a group's products for row m and column n + i.
HWY_ATTR void group_sums(const Operand& a, uint32_t m, const Operand& b, uint32_t n, uint32_t group, int16_t* sums) {
  const hn::CappedTag<int16_t, kBlock> d;
  const size_t first = size_t{group} * Operand::kGroup * kBlock;
  const int16_t* a_value = a.value + m / kBlock * kBlock * Operand::kDepth + first + m % kBlock;
  const int16_t* b_value = b.value + n * Operand::kDepth + first;
  for (uint32_t i = 0; i < kBlock; i += hn::Lanes(d)) {
    auto sum = hn::Zero(d);
    for (uint32_t k = 0; k < Operand::kGroup; ++k)
      sum = hn::Add(sum, hn::Mul(hn::Set(d, a_value[k * kBlock]), hn::Load(d, b_value + k * kBlock + i)));
    hn::Store(sum, d, sums + i);
  }
}

/// 2^exponent, for exponents of normal doubles.
HWY_INLINE double power(int exponent) {
  return std::bit_cast<double>(static_cast<uint64_t>(exponent + 1023) << 52);
}

/// One output, when the rounding mode is toward zero.
HWY_INLINE uint32_t combine(const Operand& a, uint32_t m, const Operand& b, uint32_t n, const int16_t* const* sums,
                            uint32_t i, uint32_t old, bool input) {
  const float d = input ? std::bit_cast<float>(old) : 0.0f;
  if (a.nan[m] || b.nan[n] || d != d) return 0x7FFFFFFF;
  if (std::isinf(d)) return old;
  int exponents[Operand::kGroups], largest = kLowestAlignment;
  for (uint32_t g = 0; g < Operand::kGroups; ++g) {
    exponents[g] = a.exponent[g][m] + b.exponent[g][n];
    if (a.significand[g][m] != 0 && b.significand[g][n] != 0) largest = std::max(largest, exponents[g]);
  }
  if (d != 0) largest = std::max(largest, std::max(static_cast<int>(old >> 23 & 0xFF), 1) - 127);
  double sum = std::trunc(static_cast<double>(d) * power(kFractionBits - largest));
  for (uint32_t g = 0; g < Operand::kGroups; ++g) {
    const int32_t term = sums[g][i] * a.significand[g][m] * b.significand[g][n];
    if (term != 0) sum += std::trunc(term * power(exponents[g] - kTermFractionBits + kFractionBits - largest));
  }
  const double result = sum * power(largest - kFractionBits);
  if (std::fabs(result) >= 0x1p128) return result < 0 ? 0xFF800000 : 0x7F800000;
  const float rounded = static_cast<float>(result);
  return rounded == 0 ? 0 : std::bit_cast<uint32_t>(rounded);
}

HWY_ATTR void scaled_multiply(const Operand& a, const Operand& b, bool input, uint32_t* const* d_rows) {
  alignas(64) int16_t sums[Operand::kGroups][kBlock];
  const int16_t* groups[Operand::kGroups];
  for (uint32_t g = 0; g < Operand::kGroups; ++g) groups[g] = sums[g];
  for (uint32_t m = 0; m < a.rows; ++m) {
    if (d_rows[m] == nullptr) continue;
    for (uint32_t n = 0; n < b.rows; n += kBlock) {
      for (uint32_t g = 0; g < Operand::kGroups; ++g) group_sums(a, m, b, n, g, sums[g]);
      const uint32_t columns = std::min(kBlock, b.rows - n);
      for (uint32_t i = 0; i < columns; ++i)
        d_rows[m][n + i] = combine(a, m, b, n + i, groups, i, d_rows[m][n + i], input);
    }
  }
}

}  // namespace
}  // namespace emu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace emu {

HWY_EXPORT(scaled_multiply);

void ScaledFp4Operand::pack(uint32_t row_count, const std::byte* dense, ScaleType type, uint32_t block,
                            std::span<const uint8_t> scales, bool negate) {
  if (row_count == 0 || row_count > kMaxRows || row_count % 8 != 0)
    throw std::invalid_argument("rows must be a multiple of 8 up to 256");
  if ((block != 16 && block != 32) || scales.size() != size_t{row_count} * (kDepth / block))
    throw std::invalid_argument("one scale for every 16 or 32 elements");
  // Twice the values of e2m1: 0, 0.5, 1, 1.5, 2, 3, 4, 6.
  constexpr int16_t kTwice[8] = {0, 1, 2, 3, 4, 6, 8, 12};
  rows = row_count;
  std::memset(value, 0, sizeof value);
  for (uint32_t row = 0; row < rows; ++row) {
    int16_t* to = value + row / kBlock * kBlock * kDepth + row % kBlock;
    for (uint32_t k = 0; k < kDepth; ++k) {
      const uint32_t code = static_cast<uint32_t>(dense[row * 32 + k / 2]) >> (k % 2 * 4) & 15;
      to[k * kBlock] = static_cast<int16_t>((code >> 3 != 0) != negate ? -kTwice[code & 7] : kTwice[code & 7]);
    }
    nan[row] = false;
    for (uint32_t group = 0; group < kGroups; ++group) {
      const uint8_t scale = scales[row * (kDepth / block) + group * kGroup / block];
      if (type == ScaleType::ue8m0) {
        nan[row] |= scale == 0xFF;
        exponent[group][row] = scale - 127;
        significand[group][row] = 8;
      } else {  // e4m3 without its sign
        const int field = scale >> 3 & 15, fraction = scale & 7;
        nan[row] |= (scale & 0x7F) == 0x7F;
        exponent[group][row] = std::max(field, 1) - 7;
        significand[group][row] = field ? fraction + 8 : fraction;
      }
    }
  }
}

void scaled_multiply_add(const ScaledFp4Operand& a, const ScaledFp4Operand& b, bool input,
                         std::span<uint32_t* const> d_rows) {
  if (d_rows.size() != a.rows) throw std::invalid_argument("one pointer into D for each row of A");
  const int before = std::fegetround();
  std::fesetround(FE_TOWARDZERO);
  HWY_DYNAMIC_DISPATCH(scaled_multiply)(a, b, input, d_rows.data());
  std::fesetround(before);
}

}  // namespace emu
#endif  // HWY_ONCE
