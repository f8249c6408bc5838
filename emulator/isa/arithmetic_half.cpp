// Arithmetic on f16, bf16 and pairs of them. PTX ISA, "Half Precision Floating Point Instructions".
//
// Sums and products are taken in double (exact, or rounded to odd) and rounded once.

#include <cmath>

#include "emulator/isa/arithmetic.h"
#include "emulator/isa/float_format.h"
#include "emulator/isa/lanes.h"

namespace emu::isa {
namespace {

enum : int { kPlain = 0, kFtz = 1, kSat = 2, kRelu = 4 };

template <class F>
constexpr uint16_t kExponentBits = ((1u << F::kExponent) - 1) << F::kMantissa;

template <class F>
uint16_t flushed(uint16_t a) {
  return a & kExponentBits<F> ? a : a & F::kSign;
}
template <class F, int kMode>
uint16_t taken(uint16_t a) {
  return kMode & kFtz ? flushed<F>(a) : a;
}
template <class F>
bool is_nan(uint16_t a) {
  return (a & (F::kSign - 1)) > kExponentBits<F>;
}

template <class F>
constexpr double kSmallest = F::kExponent == 5 ? 0x1p-14 : 0x1p-126;  // of normal numbers

template <class F, int kMode>
uint16_t given(double value) {
  if constexpr ((kMode & kSat) != 0) value = value > 0 ? std::fmin(value, 1.0) : 0.0;  // NaN becomes 0
  if constexpr ((kMode & kRelu) != 0) value = value <= 0 ? 0.0 : value;
  // .ftz flushes what is subnormal after it was rounded to the format's precision as if exponents had no end (an H200).
  if constexpr ((kMode & kFtz) != 0)
    if (std::fabs(value) < kSmallest<F>) {
      double scaled = decode<F>(encode<F>(value * 0x1p8, Round::nearest_even));
      value = std::copysign(std::fabs(scaled) >= kSmallest<F> * 0x1p8 ? kSmallest<F> : 0.0, value);
    }
  return static_cast<uint16_t>(encode<F>(value, Round::nearest_even));
}

template <class F, int kMode>
double value(uint16_t a) {
  return decode<F>(taken<F, kMode>(a));
}

template <class F, int kMode>
uint16_t add(uint16_t a, uint16_t b) {
  return given<F, kMode>(add_odd(value<F, kMode>(a), value<F, kMode>(b)));
}
template <class F, int kMode>
uint16_t subtract(uint16_t a, uint16_t b) {
  return given<F, kMode>(add_odd(value<F, kMode>(a), -value<F, kMode>(b)));
}
template <class F, int kMode>
uint16_t multiply(uint16_t a, uint16_t b) {
  return given<F, kMode>(value<F, kMode>(a) * value<F, kMode>(b));
}
template <class F, int kMode>
uint16_t multiply_add(uint16_t a, uint16_t b, uint16_t c) {
  return given<F, kMode>(multiply_add_odd(value<F, kMode>(a), value<F, kMode>(b), value<F, kMode>(c)));
}

template <class F, int kMode>
uint16_t negate(uint16_t a) {
  return is_nan<F>(a) ? F::kNan : taken<F, kMode>(a) ^ F::kSign;
}
template <class F, int kMode>
uint16_t absolute(uint16_t a) {
  return is_nan<F>(a) ? F::kNan : taken<F, kMode>(a) & (F::kSign - 1);
}

/// NaN loses against a number, or with kNan wins; -0 is less than +0.
template <class F, int kMode, bool kLeast, bool kNan>
uint16_t extreme(uint16_t a, uint16_t b) {
  a = taken<F, kMode>(a);
  b = taken<F, kMode>(b);
  if (is_nan<F>(a) || is_nan<F>(b)) {
    if (kNan || (is_nan<F>(a) && is_nan<F>(b))) return F::kNan;
    return is_nan<F>(a) ? b : a;
  }
  // Codes ordered as the values they stand for.
  auto key = [](uint16_t code) {
    int magnitude = code & (F::kSign - 1);
    return code & F::kSign ? -1 - magnitude : magnitude;
  };
  return (key(a) < key(b)) == kLeast ? a : b;
}
template <class F, int kMode, bool kLeast, bool kNan>
uint16_t extreme_magnitude(uint16_t a, uint16_t b) {
  uint16_t magnitude = extreme<F, kMode, kLeast, kNan>(a & (F::kSign - 1), b & (F::kSign - 1));
  return is_nan<F>(magnitude) ? magnitude : magnitude | ((a ^ b) & F::kSign);
}

template <class F, int kElements>
void bind_extreme(Binder& binder, bool least) {
  bool ftz = F::kExponent == 5 && binder.take("ftz"), nan = binder.take("NaN");
  bool magnitude = binder.take("xorsign"), absolute = binder.take("abs");
  if (magnitude != absolute) binder.refuse(".xorsign and .abs go together");
  if (binder.count() != 3) binder.refuse("two sources are wanted");
  auto bind = [&]<int kMode, bool kLeast, bool kNan>() {
    magnitude ? bind_map<extreme_magnitude<F, kMode, kLeast, kNan>, kElements>(binder)
              : bind_map<extreme<F, kMode, kLeast, kNan>, kElements>(binder);
  };
  auto with_nan = [&]<int kMode, bool kLeast>() {
    nan ? bind.template operator()<kMode, kLeast, true>() : bind.template operator()<kMode, kLeast, false>();
  };
  if (ftz)
    least ? with_nan.template operator()<kFtz, true>() : with_nan.template operator()<kFtz, false>();
  else
    least ? with_nan.template operator()<kPlain, true>() : with_nan.template operator()<kPlain, false>();
}

/// Takes .rn, .ftz, .sat, .relu: which of them exist with which instruction, ptxas has checked.
template <class Bind>
bool with_mode(Binder& binder, Bind&& bind) {
  binder.take("rn");
  bool ftz = binder.take("ftz"), sat = binder.take("sat"), relu = binder.take("relu");
  if (sat && relu) binder.refuse(".sat and .relu exclude each other");
  if (ftz)
    sat    ? bind.template operator()<kFtz | kSat>()
    : relu ? bind.template operator()<kFtz | kRelu>()
           : bind.template operator()<kFtz>();
  else
    sat    ? bind.template operator()<kSat>()
    : relu ? bind.template operator()<kRelu>()
           : bind.template operator()<kPlain>();
  return true;
}

template <class F, int kElements>
bool bind_format(Binder& binder, std::string_view name) {
  if (name == "add") return with_mode(binder, [&]<int kMode>() { bind_map<add<F, kMode>, kElements>(binder); });
  if (name == "sub") return with_mode(binder, [&]<int kMode>() { bind_map<subtract<F, kMode>, kElements>(binder); });
  if (name == "mul") return with_mode(binder, [&]<int kMode>() { bind_map<multiply<F, kMode>, kElements>(binder); });
  if (name == "fma")
    return with_mode(binder, [&]<int kMode>() { bind_map<multiply_add<F, kMode>, kElements>(binder); });
  if (name == "neg")
    return binder.take("ftz") ? bind_map<negate<F, kFtz>, kElements>(binder)
                              : bind_map<negate<F, kPlain>, kElements>(binder),
           true;
  if (name == "abs")
    return binder.take("ftz") ? bind_map<absolute<F, kFtz>, kElements>(binder)
                              : bind_map<absolute<F, kPlain>, kElements>(binder),
           true;
  if (name == "min" || name == "max") return bind_extreme<F, kElements>(binder, name == "min"), true;
  return false;
}

}  // namespace

bool bind_half(Binder& binder, std::string_view type) {
  std::string_view name = binder.source.name();
  if (type == "f16") return bind_format<F16, 1>(binder, name);
  if (type == "f16x2") return bind_format<F16, 2>(binder, name);
  if (type == "bf16") return bind_format<Bf16, 1>(binder, name);
  if (type == "bf16x2") return bind_format<Bf16, 2>(binder, name);
  return false;
}

}  // namespace emu::isa
