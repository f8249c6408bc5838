#pragma once
// f64 arithmetic rounded as asked, in integers: the host computes in round-to-nearest only.

#include "emulator/isa/float_format.h"

namespace emu::isa::exact {

double fused_multiply_add(double a, double b, double c, Round round);
double add(double a, double b, Round round);
double multiply(double a, double b, Round round);
double divide(double a, double b, Round round);
double square_root(double a, Round round);
/// A double as f32.
inline float to_float(double value, Round round) {
  return std::bit_cast<float>(encode<F32>(value, round));
}

}  // namespace emu::isa::exact
