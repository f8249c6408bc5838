#pragma once
// What f32 and f64 instructions do to their sources and results: rounding, .ftz, .sat, NaN.

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "emulator/isa/binder.h"
#include "emulator/isa/exact_double.h"
#include "emulator/isa/float_format.h"

namespace emu::isa {

/// How an instruction was qualified.
template <Round kRound_, bool kFtz_, bool kSat_>
struct Mode {
  static constexpr Round kRound = kRound_;
  static constexpr bool kFtz = kFtz_, kSat = kSat_;
};
using Plain = Mode<Round::nearest_even, false, false>;

/// A source: subnormals flushed where the mode says so.
template <class M>
inline float taken(float value) {
  return M::kFtz ? flush(value) : value;
}
template <class M>
inline double taken(double value) {
  return value;
}

/// A result: clamped to [0, 1] (NaN to 0), or NaN made canonical.
template <class M>
inline float given(float value) {
  if constexpr (M::kSat) return value > 0 ? (value < 1 ? value : 1.0f) : 0.0f;
  return canonical(value);
}

/// A double that holds the exact result or was rounded to odd, as a result. What is subnormal before it is rounded is
/// flushed, also where rounding would have made it normal (an H200 does so).
template <class M>
inline float rounded(double odd) {
  if constexpr (M::kFtz)
    if (std::fabs(odd) < 0x1p-126) odd = std::copysign(0.0, odd);
  if constexpr (M::kRound == Round::nearest_even) return given<M>(static_cast<float>(odd));
  return given<M>(std::bit_cast<float>(encode<F32>(odd, M::kRound)));
}

/// An exact sum of a and b, rounded to odd. In round-down one of zero is -0 unless both parts are +0; in the other
/// roundings it is as add_odd has it.
template <class M>
inline double sum_odd(double a, double b) {
  const double sum = add_odd(a, b);
  if constexpr (M::kRound == Round::down)
    if (sum == 0) return std::signbit(a) || std::signbit(b) ? -0.0 : 0.0;
  return sum;
}

/// NaN results of f64 instructions: the source that is NaN, made quiet; an invalid operation gives the one that CUDA
/// calls CUDART_NAN. Of several sources the last counts (read off an H200).
inline double quiet(double nan) {
  return std::bit_cast<double>(std::bit_cast<uint64_t>(nan) | 0x0008000000000000ull);
}
inline double given_f64(double value, double a, double b, double c) {
  if (value == value) return value;
  return c != c ? quiet(c) : b != b ? quiet(b) : a != a ? quiet(a) : std::bit_cast<double>(0xFFF8000000000000ull);
}
inline double given_f64(double value, double a, double b = 0) {
  return given_f64(value, a, b, 0);
}

/// Takes .rn, .rz, .rm or .rp, and with them .ftz and .sat; f.template operator()<Mode>().
template <class F>
inline void with_mode(Binder& binder, bool has_ftz, bool has_sat, F&& f) {
  std::string_view rounding = binder.take_any({"rn", "rz", "rm", "rp"});
  bool ftz = has_ftz && binder.take("ftz"), sat = has_sat && binder.take("sat");
  auto with_round = [&]<Round kRound>() {
    if (ftz)
      sat ? f.template operator()<Mode<kRound, true, true>>() : f.template operator()<Mode<kRound, true, false>>();
    else
      sat ? f.template operator()<Mode<kRound, false, true>>() : f.template operator()<Mode<kRound, false, false>>();
  };
  if (rounding == "rz") return with_round.template operator()<Round::zero>();
  if (rounding == "rm") return with_round.template operator()<Round::down>();
  if (rounding == "rp") return with_round.template operator()<Round::up>();
  with_round.template operator()<Round::nearest_even>();
}

}  // namespace emu::isa
