// Sums, products and comparisons of f32 and f64. PTX ISA, "Floating Point Instructions", "Mixed Precision Floating
// Point Instructions".

#include <type_traits>

#include "emulator/isa/approximate.h"
#include "emulator/isa/arithmetic.h"
#include "emulator/isa/lanes.h"
#include "emulator/isa/real.h"

namespace emu::isa {
namespace {

// ---- sums and products ----------------------------------------------------------------------------------------------

template <class M>
float add(float a, float b) {
  a = taken<M>(a);
  b = taken<M>(b);
  // A sum of floats is never subnormal before rounding and normal after it: below 2^-126 it is exact.
  if constexpr (M::kRound == Round::nearest_even) return given<M>(M::kFtz ? flush(a + b) : a + b);
  return rounded<M>(sum_odd<M>(a, b));
}
template <class M>
double add(double a, double b) {
  return given_f64(M::kRound == Round::nearest_even ? a + b : exact::add(a, b, M::kRound), b, a);
}
template <class M, class T>
T subtract(T a, T b) {
  if constexpr (std::is_same_v<T, double>)
    if (b != b) return quiet(b);
  return add<M>(a, -b);
}
template <class M>
float multiply(float a, float b) {
  a = taken<M>(a);
  b = taken<M>(b);
  if constexpr (M::kRound == Round::nearest_even && !M::kFtz) return given<M>(a * b);
  return rounded<M>(double{a} * b);
}
template <class M>
double multiply(double a, double b) {
  return given_f64(M::kRound == Round::nearest_even ? a * b : exact::multiply(a, b, M::kRound), b, a);
}
template <class M>
float multiply_add(float a, float b, float c) {
  a = taken<M>(a);
  b = taken<M>(b);
  c = taken<M>(c);
  // Not std::fma: without an FMA instruction at hand, that is a slow call for each lane.
  return rounded<M>(sum_odd<M>(double{a} * b, c));
}
template <class M>
double multiply_add(double a, double b, double c) {
  return given_f64(M::kRound == Round::nearest_even ? std::fma(a, b, c) : exact::fused_multiply_add(a, b, c, M::kRound),
                   b, c, a);
}

// Mixed precision: 16-bit factors or first summand, the rest f32.
template <class M, float (*kWiden)(uint16_t)>
float add_mixed(uint16_t a, float b) {
  return add<M>(kWiden(a), b);
}
template <class M, float (*kWiden)(uint16_t)>
float subtract_mixed(uint16_t a, float b) {
  return subtract<M>(kWiden(a), b);
}
template <class M, float (*kWiden)(uint16_t)>
float multiply_add_mixed(uint16_t a, uint16_t b, float c) {
  return multiply_add<M>(kWiden(a), kWiden(b), c);
}

// ---- division -------------------------------------------------------------------------------------------------------

template <class M>
float divide(float a, float b) {
  a = taken<M>(a);
  b = taken<M>(b);
  if constexpr (M::kRound == Round::nearest_even && !M::kFtz) return given<M>(a / b);
  // A quotient of two floats that is no float itself lies at least 2^-48 of itself from one, so 53 bits of it round as
  // all of them would.
  return rounded<M>(exact::divide(a, b, Round::zero));
}
template <class M>
double divide(double a, double b) {
  return given_f64(M::kRound == Round::nearest_even ? a / b : exact::divide(a, b, M::kRound), a, b);
}
// ---- sign and order -------------------------------------------------------------------------------------------------

template <class T>
using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
template <class T>
constexpr Bits<T> kSignBit = Bits<T>{1} << (sizeof(T) * 8 - 1);

/// NaN passes as a result does.
template <class M>
float nan_or(float a, float otherwise) {
  return a != a ? given<M>(a) : otherwise;
}
template <class M>
double nan_or(double a, double otherwise) {
  return a != a ? quiet(a) : otherwise;
}
template <class M, class T>
T negate(T a) {
  return nan_or<M>(a, std::bit_cast<T>(std::bit_cast<Bits<T>>(taken<M>(a)) ^ kSignBit<T>));
}
template <class M, class T>
T absolute(T a) {
  return nan_or<M>(a, std::bit_cast<T>(std::bit_cast<Bits<T>>(taken<M>(a)) & ~kSignBit<T>));
}
/// The sign of a on the magnitude of b.
template <class T>
T copy_sign(T a, T b) {
  Bits<T> sign = std::bit_cast<Bits<T>>(a) & kSignBit<T>;
  return std::bit_cast<T>(sign | (std::bit_cast<Bits<T>>(b) & ~kSignBit<T>));
}

/// NaN loses against a number, or with kNan wins; -0 is less than +0.
template <bool kLeast, bool kNan, class M, class T>
T extreme(T a, T b) {
  a = taken<M>(a);
  b = taken<M>(b);
  bool a_is_nan = a != a, b_is_nan = b != b;
  bool less = a < b || (a == b && std::signbit(a));
  T chosen = (less == kLeast || b_is_nan) && !a_is_nan ? a : b;
  if constexpr (std::is_same_v<T, double>) return given_f64(chosen, b, a);
  if (kNan && (a_is_nan || b_is_nan)) chosen = std::numeric_limits<T>::quiet_NaN();
  return given<M>(chosen);
}
template <bool kLeast, bool kNan, class M>
float extreme_of_three(float a, float b, float c) {
  return extreme<kLeast, kNan, M>(extreme<kLeast, kNan, M>(a, b), c);
}
/// .xorsign.abs: the extreme of the magnitudes with the product's sign.
template <bool kLeast, bool kNan, class M>
float extreme_magnitude(float a, float b) {
  float magnitude = extreme<kLeast, kNan, M>(std::fabs(a), std::fabs(b));
  uint32_t sign = (std::bit_cast<uint32_t>(a) ^ std::bit_cast<uint32_t>(b)) & kSignBit<float>;
  return magnitude == magnitude ? std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) ^ sign) : magnitude;
}
/// .abs with three inputs: the extreme of the magnitudes.
template <bool kLeast, bool kNan, class M>
float extreme_magnitude_of_three(float a, float b, float c) {
  return extreme_of_three<kLeast, kNan, M>(std::fabs(a), std::fabs(b), std::fabs(c));
}

template <bool kLeast>
void bind_extreme_f32(Binder& binder) {
  bool ftz = binder.take("ftz"), nan = binder.take("NaN"), xorsign = binder.take("xorsign");
  bool magnitude = binder.take("abs"), three = binder.count() == 4;
  if (xorsign != (magnitude && !three))
    binder.refuse("with two inputs .xorsign and .abs go together, with three there is .abs alone");
  auto bind = [&]<class M, bool kNan>() {
    if (magnitude)
      return three ? bind_map<extreme_magnitude_of_three<kLeast, kNan, M>>(binder)
                   : bind_map<extreme_magnitude<kLeast, kNan, M>>(binder);
    three ? bind_map<extreme_of_three<kLeast, kNan, M>>(binder) : bind_map<extreme<kLeast, kNan, M, float>>(binder);
  };
  using Flushing = Mode<Round::nearest_even, true, false>;
  if (ftz)
    nan ? bind.template operator()<Flushing, true>() : bind.template operator()<Flushing, false>();
  else
    nan ? bind.template operator()<Plain, true>() : bind.template operator()<Plain, false>();
}

// ---- testp ----------------------------------------------------------------------------------------------------------

enum class Test : uint64_t { finite, infinite, number, nan, normal, subnormal };

template <class T>
Flow test(Warp& warp, const Instruction& instruction) {
  const T* a = warp.read<T>(instruction.operand[1]);
  Test kind = static_cast<Test>(instruction.modifiers);
  uint32_t bits = 0;
  for_lanes(warp.active, [&](int lane) {
    int category = std::fpclassify(a[lane]);
    bool yes = false;
    switch (kind) {
      case Test::finite:
        yes = category != FP_NAN && category != FP_INFINITE;
        break;
      case Test::infinite:
        yes = category == FP_INFINITE;
        break;
      case Test::number:
        yes = category != FP_NAN;
        break;
      case Test::nan:
        yes = category == FP_NAN;
        break;
      case Test::normal:  // "positive and negative zero are considered normal numbers"
        yes = category == FP_NORMAL || category == FP_ZERO;
        break;
      case Test::subnormal:
        yes = category == FP_SUBNORMAL;
        break;
    }
    bits |= static_cast<uint32_t>(yes) << lane;
  });
  warp.set_predicate(instruction.operand[0], bits);
  return Flow::next;
}

void bind_testp(Binder& binder, std::string_view type) {
  constexpr std::string_view kNames[] = {"finite", "infinite", "number", "notanumber", "normal", "subnormal"};
  uint64_t kind = 0;
  while (kind < std::size(kNames) && !binder.take(kNames[kind])) ++kind;
  if (kind == std::size(kNames)) binder.refuse("a property is wanted");
  binder.out.operand[0] = result(binder, 0, 0);
  binder.out.operand[1] = source(binder, 1, type == "f64" ? 8 : 4);
  binder.out.modifiers = kind;
  binder.out.execute = type == "f64" ? test<double> : test<float>;
}

// ---- binding --------------------------------------------------------------------------------------------------------

bool bind_f32(Binder& binder, std::string_view name) {
  auto with = [&](auto&& f) {
    with_mode(binder, true, true, f);
    return true;
  };
  if (name == "add") return with([&]<class M>() { bind_map<static_cast<float (*)(float, float)>(add<M>)>(binder); });
  if (name == "sub") return with([&]<class M>() { bind_map<subtract<M, float>>(binder); });
  if (name == "mul")
    return with([&]<class M>() { bind_map<static_cast<float (*)(float, float)>(multiply<M>)>(binder); });
  if (name == "fma" || name == "mad")
    return with([&]<class M>() { bind_map<static_cast<float (*)(float, float, float)>(multiply_add<M>)>(binder); });
  if (name == "div") {
    if (binder.take("approx")) {
      binder.take("ftz") ? bind_map<approximate::divide<true>>(binder) : bind_map<approximate::divide<false>>(binder);
      return true;
    }
    if (binder.take("full")) {
      binder.take("ftz") ? bind_map<approximate::divide_full<true>>(binder)
                         : bind_map<approximate::divide_full<false>>(binder);
      return true;
    }
    with_mode(binder, true, false,
              [&]<class M>() { bind_map<static_cast<float (*)(float, float)>(divide<M>)>(binder); });
    return true;
  }
  using Flushing = Mode<Round::nearest_even, true, false>;
  if (name == "neg")
    return binder.take("ftz") ? bind_map<negate<Flushing, float>>(binder) : bind_map<negate<Plain, float>>(binder),
           true;
  if (name == "abs")
    return binder.take("ftz") ? bind_map<absolute<Flushing, float>>(binder) : bind_map<absolute<Plain, float>>(binder),
           true;
  if (name == "min") return bind_extreme_f32<true>(binder), true;
  if (name == "max") return bind_extreme_f32<false>(binder), true;
  if (name == "copysign") return bind_map<copy_sign<float>>(binder), true;
  if (name == "testp") return bind_testp(binder, "f32"), true;
  return false;
}

bool bind_f64(Binder& binder, std::string_view name) {
  auto with = [&](auto&& f) {
    with_mode(binder, false, false, f);
    return true;
  };
  if (name == "add") return with([&]<class M>() { bind_map<static_cast<double (*)(double, double)>(add<M>)>(binder); });
  if (name == "sub") return with([&]<class M>() { bind_map<subtract<M, double>>(binder); });
  if (name == "mul")
    return with([&]<class M>() { bind_map<static_cast<double (*)(double, double)>(multiply<M>)>(binder); });
  if (name == "fma" || name == "mad")
    return with([&]<class M>() { bind_map<static_cast<double (*)(double, double, double)>(multiply_add<M>)>(binder); });
  if (name == "div")
    return with([&]<class M>() { bind_map<static_cast<double (*)(double, double)>(divide<M>)>(binder); });
  if (name == "neg") return bind_map<negate<Plain, double>>(binder), true;
  if (name == "abs") return bind_map<absolute<Plain, double>>(binder), true;
  if (name == "min") return bind_map<extreme<true, false, Plain, double>>(binder), true;
  if (name == "max") return bind_map<extreme<false, false, Plain, double>>(binder), true;
  if (name == "copysign") return bind_map<copy_sign<double>>(binder), true;
  if (name == "testp") return bind_testp(binder, "f64"), true;
  return false;
}

/// Two floats in a 64-bit register.
bool bind_f32x2(Binder& binder, std::string_view name) {
  auto with = [&](auto&& f) {
    with_mode(binder, true, false, f);
    return true;
  };
  if (name == "add") return with([&]<class M>() { bind_map<static_cast<float (*)(float, float)>(add<M>), 2>(binder); });
  if (name == "sub") return with([&]<class M>() { bind_map<subtract<M, float>, 2>(binder); });
  if (name == "mul")
    return with([&]<class M>() { bind_map<static_cast<float (*)(float, float)>(multiply<M>), 2>(binder); });
  if (name == "fma")
    return with([&]<class M>() { bind_map<static_cast<float (*)(float, float, float)>(multiply_add<M>), 2>(binder); });
  return false;
}

template <float (*kWiden)(uint16_t)>
bool bind_mixed(Binder& binder, std::string_view name) {
  auto with = [&](auto&& f) {
    with_mode(binder, false, true, f);
    return true;
  };
  if (name == "add") return with([&]<class M>() { bind_map<add_mixed<M, kWiden>>(binder); });
  if (name == "sub") return with([&]<class M>() { bind_map<subtract_mixed<M, kWiden>>(binder); });
  if (name == "fma") return with([&]<class M>() { bind_map<multiply_add_mixed<M, kWiden>>(binder); });
  return false;
}

}  // namespace

bool bind_real(Binder& binder, std::string_view type) {
  std::string_view name = binder.source.name();
  if (type == "f32") return bind_f32(binder, name);
  if (type == "f64") return bind_f64(binder, name);
  if (type == "f32x2") return bind_f32x2(binder, name);
  if (type == "f16" && binder.take("f32")) return bind_mixed<f16_to_float>(binder, name);
  if (type == "bf16" && binder.take("f32")) return bind_mixed<bf16_to_float>(binder, name);
  return false;
}

}  // namespace emu::isa
