#pragma once
// An independent model of small floating-point formats for tests: all codes with their values, and rounding by search
// among them.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

namespace probe {

class SmallFloat {
 public:
  /// `top_is_special`: the highest exponent holds infinity and NaN, as in IEEE 754. Otherwise `highest` is the largest
  /// finite code.
  SmallFloat(int exponent_bits, int mantissa_bits, bool top_is_special, uint32_t highest, uint32_t nan)
      : sign_(1u << (exponent_bits + mantissa_bits)), infinity_(highest + 1), nan_(nan), special_(top_is_special) {
    int bias = (1 << (exponent_bits - 1)) - 1;
    for (uint32_t code = 0; code <= highest; ++code) {
      int exponent = static_cast<int>(code >> mantissa_bits);
      double fraction = std::ldexp(static_cast<double>(code & ((1u << mantissa_bits) - 1)), -mantissa_bits);
      values_.push_back(exponent ? std::ldexp(1 + fraction, exponent - bias) : std::ldexp(fraction, 1 - bias));
    }
    beyond_ = values_.back() + (values_.back() - values_[values_.size() - 2]);
  }

  double value(uint32_t code) const {
    uint32_t magnitude = code & (sign_ - 1);
    double v = magnitude < values_.size() ? values_[magnitude] : special_ && magnitude == infinity_ ? INFINITY : NAN;
    return code & sign_ ? -v : v;
  }

  enum Round { even, away, zero, down, up };
  uint32_t code(double v, Round round, bool finite = false) const {
    if (v != v) return nan_;
    uint32_t sign = std::signbit(v) ? sign_ : 0;
    double m = std::fabs(v);
    uint32_t largest = static_cast<uint32_t>(values_.size() - 1);
    uint32_t too_large = finite || !special_ ? largest : infinity_;
    if (std::isinf(v)) return sign | too_large;
    bool outwards = (round == up && !sign) || (round == down && sign);
    auto above = std::lower_bound(values_.begin(), values_.end(), m);
    uint32_t low, high;
    double high_value;
    if (above == values_.end()) {
      low = largest;
      high = too_large;
      high_value = beyond_;
      if (m >= beyond_) return sign | (round == even || round == away || outwards ? too_large : largest);
    } else {
      high = static_cast<uint32_t>(above - values_.begin());
      if (*above == m) return sign | high;
      low = high - 1;
      high_value = *above;
    }
    double to_low = m - values_[low], to_high = high_value - m;
    bool take_high = outwards;
    if (round == even) take_high = to_high < to_low || (to_high == to_low && low % 2 == 1);
    if (round == away) take_high = to_high <= to_low;
    return sign | (take_high ? high : low);
  }

 private:
  std::vector<double> values_;
  uint32_t sign_, infinity_, nan_;
  bool special_;
  double beyond_;
};

inline const SmallFloat& f16() {
  static const SmallFloat kFormat(5, 10, true, 0x7BFF, 0x7FFF);
  return kFormat;
}
inline const SmallFloat& bf16() {
  static const SmallFloat kFormat(8, 7, true, 0x7F7F, 0x7FFF);
  return kFormat;
}
inline const SmallFloat& e4m3() {
  static const SmallFloat kFormat(4, 3, false, 0x7E, 0x7F);
  return kFormat;
}
inline const SmallFloat& e5m2() {
  static const SmallFloat kFormat(5, 2, true, 0x7B, 0x7F);
  return kFormat;
}
inline const SmallFloat& e2m3() {
  static const SmallFloat kFormat(2, 3, false, 0x1F, 0x1F);
  return kFormat;
}
inline const SmallFloat& e3m2() {
  static const SmallFloat kFormat(3, 2, false, 0x1F, 0x1F);
  return kFormat;
}
inline const SmallFloat& e2m1() {
  static const SmallFloat kFormat(2, 1, false, 0x7, 0x7);
  return kFormat;
}

}  // namespace probe
