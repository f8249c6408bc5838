// Functions of one number. PTX ISA, "Floating Point Instructions": rcp, sqrt, rsqrt, sin, cos, lg2, ex2, tanh.
//
// Forms with .rn and its kin are exact. The .approx forms give the bits that an H200 gives.

#include <cmath>

#include "emulator/isa/approximate.h"
#include "emulator/isa/arithmetic.h"
#include "emulator/isa/lanes.h"
#include "emulator/isa/real.h"

namespace emu::isa {
namespace {

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
bool bind_f32(Binder& binder, std::string_view name) {
  const bool approximately = binder.take("approx");
  if (!approximately) {
    if (name != "rcp" && name != "sqrt") binder.refuse(".approx is wanted");
    with_mode(binder, true, false, [&]<class M>() {
      name == "sqrt" ? bind_map<static_cast<float (*)(float)>(root<M>)>(binder)
                     : bind_map<static_cast<float (*)(float)>(reciprocal<M>)>(binder);
    });
    return true;
  }
  const bool ftz = binder.take("ftz");
  auto bind = [&]<float (*kPlain)(float), float (*kFlushing)(float)>() {
    ftz ? bind_map<kFlushing>(binder) : bind_map<kPlain>(binder);
    return true;
  };
  using namespace approximate;
  if (name == "rcp") return bind.template operator()<approximate::reciprocal<false>, approximate::reciprocal<true>>();
  if (name == "sqrt") return bind.template operator()<approximate::root<false>, approximate::root<true>>();
  if (name == "rsqrt") return bind.template operator()<reciprocal_root<false>, reciprocal_root<true>>();
  if (name == "sin") return bind.template operator()<sine, sine>();
  if (name == "cos") return bind.template operator()<cosine, cosine>();
  if (name == "lg2") return bind.template operator()<binary_logarithm<false>, binary_logarithm<true>>();
  if (name == "ex2") return bind.template operator()<power_of_two<false>, power_of_two<true>>();
  if (name == "tanh" && !ftz) return bind_map<special_function::hyperbolic_tangent>(binder), true;
  return false;
}

bool bind_f64(Binder& binder, std::string_view name) {
  bool approximate = binder.take("approx");
  if (name == "rsqrt") {
    if (!approximate) binder.refuse(".approx is wanted");
    binder.take("ftz") ? bind_map<approximate::of_upper_half<special_function::reciprocal_root_of_upper_half>>(binder)
                       : bind_map<static_cast<double (*)(double)>(approximate::reciprocal_root)>(binder);
    return true;
  }
  if (name == "rcp" && approximate) {
    if (!binder.take("ftz")) binder.refuse(".ftz is wanted");
    return bind_map<approximate::of_upper_half<special_function::reciprocal_of_upper_half>>(binder), true;
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
  if (name == "tanh")
    return bind_map<approximate::of_half<F, special_function::hyperbolic_tangent>, kElements>(binder), true;
  if (name != "ex2") return false;
  // ex2 of bf16 exists with .ftz only, of f16 without.
  constexpr bool kFtz = F::kExponent == 8;
  if (binder.take("ftz") != kFtz) binder.refuse("ex2 has .ftz on bf16 and not on f16");
  return bind_map<approximate::of_half<F, special_function::power_of_two>, kElements>(binder), true;
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
