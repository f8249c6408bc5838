// The fused multiply-add of the tensor core, vectorised along the columns of D. Highway's foreach_target compiles this
// file once per instruction set; the best one for the machine is chosen at run time.
//
// The rule (tensor_core_exact.h) in vector form rests on two facts. The f32 product of two elements is exact, and a
// term cut at 25 fraction bits below the largest exponent fits an int32. So, per output:
//   largest = the largest of the products' exponents, found in bytes, and of D's
//   sum     = sum over k of int32(a[k] * b[k] * 2^(25 - largest)), converted toward zero, and the same of D
//   D       = f32(sum) * 2^(largest - 25), converted toward zero
// Outputs for which f32 or int32 could run out of range (exponents below -90 or above 120, Inf, NaN, a sum of 2^31) are
// left to fused_sum_exact.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "emulator/units/tensor_core.cpp"
#include "emulator/units/tensor_core_targets.h"
// tensor_core_targets.h must be the first to include Highway.
#include <algorithm>
#include <bit>
#include <cfenv>
#include <stdexcept>
#include <string>

#include "emulator/units/tensor_core.h"
#include "emulator/units/tensor_core_exact.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace emu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

constexpr uint32_t kBlock = PackedOperand::kBlock;

/// What is known when the code is compiled.
enum class Variant { plain, hopper8, scaled };

#if HWY_TARGET == HWY_SCALAR

template <uint32_t kDepth>
void largest_products(const PackedOperand&, uint32_t, const PackedOperand&, uint8_t*) {}

template <uint32_t kDepth, Variant>
void multiply_block(const PackedOperand& a, uint32_t m, const PackedOperand& b, uint32_t n, const AccumulatorUse& use,
                    const uint8_t*, uint32_t* d) {
  for (uint32_t i = 0; i < kBlock; ++i) d[i] = fused_sum_exact(a, m, b, n + i, use, d[i]);
}

#else

using F = hn::ScalableTag<float>;
using I = hn::RebindToSigned<F>;
using Bytes = hn::Repartition<uint8_t, F>;
using Float = hn::Vec<F>;
using Int = hn::Vec<I>;

/// Largest exponents, biased by 127, that the vector path takes. A subnormal f16 D counts as 2^-14, which its f32 value
/// does not show: below that the exact path decides.
constexpr int32_t kHighest = 127 + 120, kLowestF32 = 127 - 90, kLowestF16 = 127 - 14;
/// Any exponent below this says that all products are zeros: PackedOperand::kOnlyZeros plus whatever the other operand
/// adds.
constexpr int32_t kNothing = PackedOperand::kOnlyZeros / 2;

/// f32 to int32 toward zero. hn::ConvertTo also saturates, for two instructions more; here what does not fit is not
/// kept.
HWY_INLINE HWY_ATTR Int truncate(Float v) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  return Int{_mm512_cvttps_epi32(v.raw)};
#elif HWY_ARCH_X86 && HWY_TARGET == HWY_AVX2
  return Int{_mm256_cvttps_epi32(v.raw)};
#elif HWY_ARCH_X86 && HWY_TARGET < HWY_EMU128
  return Int{_mm_cvttps_epi32(v.raw)};
#else
  return hn::ConvertTo(I(), v);
#endif
}

/// For every column: how far the largest product exponent lies below the sum of row m's and the column's largest
/// exponents.
template <uint32_t kDepth>
HWY_INLINE HWY_ATTR void largest_products(const PackedOperand& a, uint32_t m, const PackedOperand& b,
                                          uint8_t* distance) {
  const Bytes d;
  alignas(64) uint8_t spread[kDepth][HWY_MAX_BYTES];  // row m's bytes, each as a whole vector
  for (uint32_t k = 0; k < kDepth; ++k)
    hn::Store(hn::Set(d, a.below[PackedOperand::index(m, k, kDepth)]), d, spread[k]);
  for (uint32_t n = 0; n < b.rows; n += hn::Lanes(d)) {
    const uint8_t* below = b.below + PackedOperand::index(n, 0, kDepth);
    auto smallest = hn::Set(d, 255);
    for (uint32_t k = 0; k < kDepth; ++k) {
      smallest = hn::Min(smallest, hn::SaturatedAdd(hn::Load(d, spread[k]), hn::Load(d, below + k * kBlock)));
    }
    hn::Store(smallest, d, distance + n);
  }
}

/// The outputs of one vector that the vector path could not do: those where `bad` is negative. d still holds the old D.
HWY_ATTR HWY_NOINLINE Float leave_to_exact(const PackedOperand& a, uint32_t m, const PackedOperand& b, uint32_t n,
                                           const AccumulatorUse& use, Int bad, Float result, const uint32_t* d) {
  const F df;
  alignas(64) int32_t which[HWY_LANES(int32_t)];
  alignas(64) float results[HWY_LANES(float)];
  hn::Store(bad, I(), which);
  hn::Store(result, df, results);
  for (uint32_t i = 0; i < hn::Lanes(df); ++i) {
    if (which[i] >= 0) continue;
    const bool all_zeros = a.exponent[m] + b.exponent[n + i] < kNothing && (!use.input || (d[i] & 0x7FFFFFFF) == 0);
    results[i] = all_zeros ? 0 : std::bit_cast<float>(fused_sum_exact(a, m, b, n + i, use, d[i]));
  }
  return hn::Load(df, results);
}

/// Row m against columns [n, n + 64): d holds D as f32 bits. An f16 result is left as f32, with its last bit set when
/// bits below it were lost, so that the later rounding to f16 is the only one that counts.
template <uint32_t kDepth, Variant kVariant>
HWY_INLINE HWY_ATTR void multiply_block(const PackedOperand& a, uint32_t m, const PackedOperand& b, uint32_t n,
                                        const AccumulatorUse& use, const uint8_t* distance, uint32_t* d) {
  const F df;
  const I di;
  const hn::Rebind<uint8_t, I> d8;
  constexpr int32_t kFractionBits = kVariant == Variant::hopper8 ? 13 : 25;
  const bool half = use.type == AccumulatorType::f16;
  float a_value[kDepth];
  for (uint32_t k = 0; k < kDepth; ++k) a_value[k] = a.value[PackedOperand::index(m, k, kDepth)];
  const auto row_exponent = hn::Set(di, a.exponent[m] + 127);
  const auto lowest = hn::Set(di, half ? kLowestF16 : kLowestF32), highest = hn::Set(di, kHighest);
  const auto old_scale = hn::Set(df, std::bit_cast<float>((127u - use.scale_shift) << 23));

  for (uint32_t i = 0; i < kBlock; i += hn::Lanes(df)) {
    // The largest exponent, biased: of the products, then of D too.
    const auto column_exponent = hn::Load(di, b.exponent + n + i);
    auto largest = hn::Sub(hn::Add(row_exponent, column_exponent), hn::PromoteTo(di, hn::LoadU(d8, distance + i)));
    auto old = hn::Zero(df);
    if (use.input) {
      old = hn::LoadU(df, reinterpret_cast<const float*>(d) + i);
      if (HWY_UNLIKELY(use.scale_shift != 0)) old = hn::Mul(old, old_scale);
      const auto magnitude = hn::ShiftLeft<1>(hn::BitCast(di, old));
      largest =
          hn::Max(largest, hn::BitCast(di, hn::ShiftRight<24>(hn::BitCast(hn::RebindToUnsigned<I>(), magnitude))));
    }
    const auto out_of_range = hn::Or(hn::Sub(largest, lowest), hn::Sub(highest, largest));

    // Terms in units of 2^(largest - fraction bits), in sums of at most 2^30 + 2^26 so that none overflows.
    const auto scale_bits = hn::ShiftLeft<23>(hn::Sub(hn::Set(di, 127 + 127 + kFractionBits), largest));
    const auto scale = hn::BitCast(df, scale_bits);
    auto product_scale = scale;
    auto bad = out_of_range;
    if constexpr (kVariant == Variant::scaled) {
      const auto exponent = hn::Add(hn::Sub(hn::Set(di, 127 + 127 + kFractionBits), largest),
                                    hn::Add(hn::Set(di, a.scale_exponent[m]), hn::Load(di, b.scale_exponent + n + i)));
      product_scale = hn::BitCast(df, hn::ShiftLeft<23>(exponent));
      bad = hn::Or(bad, hn::Or(hn::Sub(exponent, hn::Set(di, 1)), hn::Sub(hn::Set(di, 254), exponent)));
    }
    constexpr uint32_t kSums = kDepth < 16 ? 2 : kDepth / 8, kTerms = kDepth / kSums;
    Int sums[kSums];
    sums[0] = truncate(hn::Mul(old, scale));
    for (uint32_t j = 1; j < kSums; ++j) sums[j] = hn::Zero(di);
    const float* b_value = b.value + n * kDepth + i;
    for (uint32_t k = 0; k < kDepth; ++k) {
      const auto product = hn::Mul(hn::Set(df, a_value[k]), hn::Load(df, b_value + k * kBlock));
      sums[k / kTerms] = hn::Add(sums[k / kTerms], truncate(hn::Mul(product, product_scale)));
    }
    const auto add = [&](Int x, Int y) HWY_ATTR {
      const auto total = hn::Add(x, y);
      bad = hn::Or(bad, hn::And(hn::Xor(x, total), hn::Xor(y, total)));
      return total;
    };
    auto sum = add(sums[0], sums[1]);
    if constexpr (kSums == 4) sum = add(sum, add(sums[2], sums[3]));

    auto rounded = hn::ConvertTo(df, sum);  // toward zero: see RoundTowardZero
    if (HWY_UNLIKELY(half)) {
      const auto lost = hn::VecFromMask(di, hn::Ne(truncate(rounded), sum));
      rounded = hn::BitCast(df, hn::Or(hn::BitCast(di, rounded), hn::And(lost, hn::Set(di, 1))));
    }
    auto result = hn::Mul(rounded, hn::BitCast(df, hn::Sub(hn::Set(di, 254 << 23), scale_bits)));
    if constexpr (kVariant == Variant::hopper8) {
      if (!half) result = hn::BitCast(df, hn::And(hn::BitCast(di, result), hn::Set(di, ~0x3FF)));
    }
    if (HWY_UNLIKELY(!hn::AllFalse(di, hn::Lt(bad, hn::Zero(di))))) {
      result = leave_to_exact(a, m, b, n + i, use, bad, result, d + i);
    }
    hn::StoreU(result, df, reinterpret_cast<float*>(d) + i);
  }
}

#endif

/// A row of zeros adds nothing: D stays, but a NaN becomes the NaN and a zero +0.
void multiply_zeros(const AccumulatorUse& use, uint32_t columns, uint32_t* d) {
  for (uint32_t n = 0; n < columns; ++n) {
    const uint32_t magnitude = d[n] & 0x7FFFFFFF;
    d[n] = !use.input || magnitude == 0 ? 0 : magnitude > 0x7F800000 ? 0x7FFFFFFF : d[n];
  }
}

template <uint32_t kDepth, Variant kVariant>
HWY_ATTR void multiply_row(const PackedOperand& a, uint32_t m, const PackedOperand& b, const AccumulatorUse& use,
                           uint32_t* d) {
  const bool half = use.type == AccumulatorType::f16;
  const bool zeros = kVariant == Variant::plain && a.exponent[m] == PackedOperand::kOnlyZeros && !b.has_special &&
                     use.scale_shift == 0;
  alignas(64) uint8_t distance[PackedOperand::kMaxRows];
  if (!zeros) largest_products<kDepth>(a, m, b, distance);

  for (uint32_t n = 0; n < b.rows; n += kBlock, d += kBlock) {
    const uint32_t columns = std::min(kBlock, b.rows - n);
    alignas(64) uint32_t block[kBlock];
    const bool in_place = columns == kBlock && !half;
    uint32_t* to = in_place ? d : block;
    if (!in_place) {
      std::fill(block, block + kBlock, 0x3F800000);  // columns past the end hold 1, which needs no special care
      for (uint32_t i = 0; i < columns; ++i) block[i] = half ? std::bit_cast<uint32_t>(f16_to_float(d[i])) : d[i];
    }
    if (zeros) {
      multiply_zeros(use, columns, to);
    } else {
      multiply_block<kDepth, kVariant>(a, m, b, n, use, distance + n, to);
    }
    if (!in_place) {
      for (uint32_t i = 0; i < columns; ++i) d[i] = half ? float_to_f16(std::bit_cast<float>(block[i])) : block[i];
    }
  }
}

/// Integers: their products and sums are exact in f32.
HWY_ATTR void multiply_integers(const PackedOperand& a, uint32_t m, const PackedOperand& b, const AccumulatorUse& use,
                                uint32_t* d) {
  constexpr uint32_t kDepth = 32;
  for (uint32_t n = 0; n < b.rows; n += kBlock) {
    float sum[kBlock] = {};
    for (uint32_t k = 0; k < kDepth; ++k) {
      const float x = a.value[PackedOperand::index(m, k, kDepth)];
      const float* y = b.value + PackedOperand::index(n, k, kDepth);
      for (uint32_t i = 0; i < kBlock; ++i) sum[i] += x * y[i];
    }
    const uint32_t columns = std::min(kBlock, b.rows - n);
    for (uint32_t i = 0; i < columns; ++i) {
      const int64_t exact = int64_t{static_cast<int32_t>(sum[i])} + (use.input ? static_cast<int32_t>(d[n + i]) : 0);
      d[n + i] = static_cast<uint32_t>(use.saturate ? std::clamp<int64_t>(exact, INT32_MIN, INT32_MAX) : exact);
    }
  }
}

template <uint32_t kDepth, Variant kVariant>
HWY_ATTR void multiply_rows(const PackedOperand& a, const PackedOperand& b, const AccumulatorUse& use,
                            uint32_t* const* d_rows) {
  for (uint32_t m = 0; m < a.rows; ++m)
    if (d_rows[m] != nullptr) multiply_row<kDepth, kVariant>(a, m, b, use, d_rows[m]);
}

HWY_ATTR void multiply(const PackedOperand& a, const PackedOperand& b, const AccumulatorUse& use,
                       uint32_t* const* d_rows) {
  if (use.type == AccumulatorType::s32) {
    for (uint32_t m = 0; m < a.rows; ++m)
      if (d_rows[m] != nullptr) multiply_integers(a, m, b, use, d_rows[m]);
  } else if (a.k == 8) {
    multiply_rows<8, Variant::plain>(a, b, use, d_rows);
  } else if (a.k == 16) {
    multiply_rows<16, Variant::plain>(a, b, use, d_rows);
  } else if (use.rule == FusedRule::hopper8) {
    multiply_rows<32, Variant::hopper8>(a, b, use, d_rows);
  } else if (a.scaled) {
    multiply_rows<32, Variant::scaled>(a, b, use, d_rows);
  } else {
    multiply_rows<32, Variant::plain>(a, b, use, d_rows);
  }
}

}  // namespace
}  // namespace emu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace emu {
namespace {

/// The vector path rounds toward zero by the processor's own mode.
class RoundTowardZero {
 public:
  RoundTowardZero() : before_(std::fegetround()) { std::fesetround(FE_TOWARDZERO); }
  ~RoundTowardZero() { std::fesetround(before_); }
  RoundTowardZero(const RoundTowardZero&) = delete;
  RoundTowardZero& operator=(const RoundTowardZero&) = delete;

 private:
  int before_;
};

}  // namespace

HWY_EXPORT(multiply);

void fused_multiply_add(const PackedOperand& a, const PackedOperand& b, const AccumulatorUse& use,
                        std::span<uint32_t* const> d_rows) {
  const auto integer = [](ElementType type) { return type == ElementType::u8 || type == ElementType::s8; };
  if (a.k != b.k || (a.type == ElementType::tf32) != (b.type == ElementType::tf32) ||
      integer(a.type) != integer(b.type)) {
    throw std::invalid_argument(std::string("no multiplication of ") + name(a.type) + " by " + name(b.type));
  }
  if (d_rows.size() != a.rows) throw std::invalid_argument("one pointer into D for each row of A");
  if ((use.type == AccumulatorType::s32) != integer(a.type))
    throw std::invalid_argument(std::string(name(a.type)) + " with a D of " + name(use.type));
  if (a.scaled != b.scaled) throw std::invalid_argument("scales for one operand only");
  if (use.rule == FusedRule::hopper8 && (a.k != 32 || a.scaled))
    throw std::invalid_argument("the rule of Hopper's 8-bit types for others");
  const RoundTowardZero rounding;
  HWY_DYNAMIC_DISPATCH(multiply)(a, b, use, d_rows.data());
}

}  // namespace emu
#endif  // HWY_ONCE
