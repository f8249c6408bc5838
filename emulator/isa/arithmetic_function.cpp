// Functions of one number. PTX ISA, "Floating Point Instructions": rcp, sqrt, rsqrt, sin, cos, lg2, ex2, tanh.
//
// Forms with .rn and its kin are exact. The .approx forms are computed in double and rounded once, which is inside the
// error that the ISA allows for each of them; hardware gets there by tables, so its last bits may differ.

#include <cmath>

#include "emulator/isa/arithmetic.h"
#include "emulator/isa/lanes.h"
#include "emulator/isa/real.h"

namespace emu::isa {
namespace {

using Flushing = Mode<Round::nearest_even, true, false>;

// Quotients and roots of floats come no nearer to a float than 2^-48 of themselves, so rounding 53 bits of them is
// rounding them.
template <class M>
float reciprocal(float a) {
  a = taken<M>(a);
  if constexpr (M::kRound == Round::nearest_even && !M::kFtz) return given<M>(1.0f / a);
  return rounded<M>(exact::divide(1.0, a, Round::zero));
}
template <class M>
double reciprocal(double a) {
  return given_f64(M::kRound == Round::nearest_even ? 1.0 / a : exact::divide(1.0, a, M::kRound), a);
}
template <class M>
float root(float a) {
  a = taken<M>(a);
  if constexpr (M::kRound == Round::nearest_even) return given<M>(std::sqrt(a));
  return rounded<M>(exact::square_root(a, Round::zero));
}
template <class M>
double root(double a) {
  return given_f64(M::kRound == Round::nearest_even ? std::sqrt(a) : exact::square_root(a, M::kRound), a);
}
double reciprocal_root_of(double a) {
  return 1.0 / std::sqrt(a);
}

/// A function of a double as an f32 instruction.
template <class M, double (*kFunction)(double)>
float approximately(float a) {
  return rounded<M>(kFunction(taken<M>(a)));
}
double sine(double a) {
  return std::sin(a);
}
double cosine(double a) {
  return std::cos(a);
}
double binary_logarithm(double a) {
  return std::log2(a);
}
double power_of_two(double a) {
  return std::exp2(a);
}
double hyperbolic_tangent(double a) {
  return std::tanh(a);
}

double reciprocal_root(double a) {
  return given_f64(reciprocal_root_of(a), a);
}

/// rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64 work on the upper halves: 20 bits of mantissa in and out, the lower half
/// of the result is zero.
template <double (*kFunction)(double)>
double of_upper_half(double a) {
  constexpr uint64_t kUpper = 0xFFFFFFFF00000000ull;
  auto flushed = [](uint64_t bits) { return bits & 0x7FF0000000000000ull ? bits : bits & 0x8000000000000000ull; };
  double value = kFunction(std::bit_cast<double>(flushed(std::bit_cast<uint64_t>(a)) & kUpper));
  if (a != a || value != value) return std::bit_cast<double>(0x7FFFFFFF00000000ull);
  return std::bit_cast<double>(flushed(std::bit_cast<uint64_t>(value) & kUpper));
}
double inverse(double a) {
  return 1.0 / a;
}

// 16-bit forms round the same functions.
template <class F, bool kFtz, double (*kFunction)(double)>
uint16_t half_approximately(uint16_t a) {
  double value = decode<F>(a);
  if (kFtz && std::fabs(value) < 0x1p-126) value = std::copysign(0.0, value);
  uint32_t code = encode<F>(kFunction(value), Round::nearest_even);
  if (kFtz && (code & ((1u << F::kExponent) - 1) << F::kMantissa) == 0) code &= F::kSign;
  return static_cast<uint16_t>(code);
}

bool bind_f32(Binder& binder, std::string_view name) {
  if (name == "rcp" || name == "sqrt") {
    bool is_root = name == "sqrt";
    if (binder.take("approx")) {
      // The nearest float is within the error that .approx may have.
      if (binder.take("ftz"))
        is_root ? bind_map<static_cast<float (*)(float)>(root<Flushing>)>(binder)
                : bind_map<static_cast<float (*)(float)>(reciprocal<Flushing>)>(binder);
      else
        is_root ? bind_map<static_cast<float (*)(float)>(root<Plain>)>(binder)
                : bind_map<static_cast<float (*)(float)>(reciprocal<Plain>)>(binder);
      return true;
    }
    with_mode(binder, true, false, [&]<class M>() {
      is_root ? bind_map<static_cast<float (*)(float)>(root<M>)>(binder)
              : bind_map<static_cast<float (*)(float)>(reciprocal<M>)>(binder);
    });
    return true;
  }
  if (!binder.take("approx")) binder.refuse(".approx is wanted");
  bool ftz = binder.take("ftz");
  auto bind = [&]<double (*kFunction)(double)>() {
    ftz ? bind_map<approximately<Flushing, kFunction>>(binder) : bind_map<approximately<Plain, kFunction>>(binder);
    return true;
  };
  if (name == "rsqrt") return bind.template operator()<reciprocal_root_of>();
  if (name == "sin") return bind.template operator()<sine>();
  if (name == "cos") return bind.template operator()<cosine>();
  if (name == "lg2") return bind.template operator()<binary_logarithm>();
  if (name == "ex2") return bind.template operator()<power_of_two>();
  if (name == "tanh") return bind.template operator()<hyperbolic_tangent>();
  return false;
}

bool bind_f64(Binder& binder, std::string_view name) {
  bool approximate = binder.take("approx");
  if (name == "rsqrt") {
    if (!approximate) binder.refuse(".approx is wanted");
    binder.take("ftz") ? bind_map<of_upper_half<reciprocal_root_of>>(binder) : bind_map<reciprocal_root>(binder);
    return true;
  }
  if (name == "rcp" && approximate) {
    if (!binder.take("ftz")) binder.refuse(".ftz is wanted");
    return bind_map<of_upper_half<inverse>>(binder), true;
  }
  if ((name != "rcp" && name != "sqrt") || approximate) return false;
  with_mode(binder, false, false, [&]<class M>() {
    name == "rcp" ? bind_map<static_cast<double (*)(double)>(reciprocal<M>)>(binder)
                  : bind_map<static_cast<double (*)(double)>(root<M>)>(binder);
  });
  return true;
}

template <class F, int kElements>
bool bind_16_bits(Binder& binder, std::string_view name) {
  if (!binder.take("approx")) binder.refuse(".approx is wanted");
  if (name == "tanh") return bind_map<half_approximately<F, false, hyperbolic_tangent>, kElements>(binder), true;
  if (name != "ex2") return false;
  // ex2 of bf16 exists with .ftz only, of f16 without.
  constexpr bool kFtz = F::kExponent == 8;
  if (binder.take("ftz") != kFtz) binder.refuse("ex2 has .ftz on bf16 and not on f16");
  return bind_map<half_approximately<F, kFtz, power_of_two>, kElements>(binder), true;
}

}  // namespace

bool bind_real_function(Binder& binder, std::string_view type) {
  std::string_view name = binder.source.name();
  if (name != "rcp" && name != "sqrt" && name != "rsqrt" && name != "sin" && name != "cos" && name != "lg2" &&
      name != "ex2" && name != "tanh")
    return false;
  if (type == "f32") return bind_f32(binder, name);
  if (type == "f64") return bind_f64(binder, name);
  if (type == "f16") return bind_16_bits<F16, 1>(binder, name);
  if (type == "f16x2") return bind_16_bits<F16, 2>(binder, name);
  if (type == "bf16") return bind_16_bits<Bf16, 1>(binder, name);
  if (type == "bf16x2") return bind_16_bits<Bf16, 2>(binder, name);
  return false;
}

}  // namespace emu::isa
