#pragma once
// What f32 and f64 instructions do to their sources and results: rounding, .ftz, .sat, NaN.

#include <bit>
#include <cmath>
#include <cstdint>
#include <initializer_list>
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

template <Round kRound>
inline float to_float(double odd) {
  if constexpr (kRound == Round::nearest_even) return static_cast<float>(odd);
  return std::bit_cast<float>(encode<F32>(odd, kRound));
}

/// A double that holds the exact result or was rounded to odd, as a result. .ftz flushes what is subnormal after it was
/// rounded to 24 bits as if exponents had no end (read off an H200: 2^-126 - 2^-150 is flushed, 2^-126 - 2^-250 is
/// not).
template <class M>
inline float rounded(double odd) {
  if constexpr (M::kFtz)
    if (std::fabs(odd) < 0x1p-126) {
      const bool grows = std::fabs(to_float<M::kRound>(odd * 0x1p100)) >= 0x1p-26f;
      return given<M>(std::copysign(grows ? 0x1p-126f : 0.0f, static_cast<float>(odd)));
    }
  return given<M>(to_float<M::kRound>(odd));
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

inline double quiet(double nan) {
  return std::bit_cast<double>(std::bit_cast<uint64_t>(nan) | 0x0008000000000000ull);
}
/// NaN results of f64 instructions: the first of `sources` that is NaN, made quiet; an invalid operation gives the one
/// that CUDA calls CUDART_NAN. In which order sources count was read off an H200.
template <class... T>
inline double given_f64(double value, T... sources) {
  if (value == value) return value;
  for (double source : {sources...})
    if (source != source) return quiet(source);
  return std::bit_cast<double>(0xFFF8000000000000ull);
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
