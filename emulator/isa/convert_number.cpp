#include "emulator/isa/convert_number.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace emu::isa {
namespace {

using Whole = __int128;

Whole integer_value(Number from, uint64_t raw) {
  switch (from) {
    case Number::u8:
      return static_cast<uint8_t>(raw);
    case Number::s8:
      return static_cast<int8_t>(raw);
    case Number::u16:
      return static_cast<uint16_t>(raw);
    case Number::s16:
      return static_cast<int16_t>(raw);
    case Number::u32:
      return static_cast<uint32_t>(raw);
    case Number::s32:
      return static_cast<int32_t>(raw);
    case Number::u64:
      return raw;
    default:
      return static_cast<int64_t>(raw);
  }
}

double float_value(Number from, uint64_t raw, bool ftz) {
  switch (from) {
    case Number::f16:
      return decode<F16>(static_cast<uint32_t>(raw & 0xFFFF));
    case Number::bf16:
      return decode<Bf16>(static_cast<uint32_t>(raw & 0xFFFF));
    case Number::f32: {
      float value = std::bit_cast<float>(static_cast<uint32_t>(raw));
      return ftz ? flush(value) : value;
    }
    default:
      return std::bit_cast<double>(raw);
  }
}

/// An integer as a double: rounded to odd where the result will be rounded once more, else as `round` says.
double to_double(Whole value, Round round, bool odd) {
  bool negative = value < 0;
  uint64_t magnitude = static_cast<uint64_t>(negative ? -value : value);
  int excess = std::max(0, 11 - std::countl_zero(magnitude));  // bits beyond the 53 that a double holds
  uint64_t kept = magnitude >> excess, rest = magnitude & ((uint64_t{1} << excess) - 1);
  uint64_t half = excess ? uint64_t{1} << (excess - 1) : 0;
  bool up = false;
  if (odd)
    kept |= rest != 0;
  else if (rest != 0)
    up = round == Round::nearest_even   ? rest > half || (rest == half && (kept & 1))
         : round == Round::nearest_away ? rest >= half
         : round == Round::up           ? !negative
         : round == Round::down         ? negative
                                        : false;
  double result = std::ldexp(static_cast<double>(kept + up), excess);
  return negative ? -result : result;
}

double whole(double value, Round round) {
  switch (round) {
    case Round::nearest_even: {
      if (!(std::fabs(value) < 0x1p52)) return value;
      double below = std::floor(value), distance = value - below;
      double nearest = distance > 0.5 || (distance == 0.5 && std::fmod(below, 2) != 0) ? below + 1 : below;
      return std::copysign(nearest, value);
    }
    case Round::nearest_away:
      return std::round(value);
    case Round::zero:
      return std::trunc(value);
    case Round::down:
      return std::floor(value);
    case Round::up:
      return std::ceil(value);
  }
  return value;
}

/// Range of an integer type.
Whole lowest(Number type) {
  return is_signed(type) ? -(Whole{1} << (bytes_of(type) * 8 - 1)) : 0;
}
Whole highest(Number type) {
  return (Whole{1} << (bytes_of(type) * 8 - (is_signed(type) ? 1 : 0))) - 1;
}

uint64_t to_integer(const Conversion& c, double value) {
  // NaN: PTX ISA, cvt, "Float-to-integer conversions": zero, but 1 << (width - 1) where either side has 64 bits.
  if (value != value)
    return c.from != Number::f64 && bytes_of(c.to) != 8 ? 0
           : is_signed(c.to)                            ? static_cast<uint64_t>(lowest(c.to))
                                                        : uint64_t{1} << (bytes_of(c.to) * 8 - 1);
  value = whole(value, c.round);
  if (value <= static_cast<double>(lowest(c.to))) return static_cast<uint64_t>(lowest(c.to));
  if (value >= static_cast<double>(highest(c.to))) return static_cast<uint64_t>(highest(c.to));
  return static_cast<uint64_t>(static_cast<Whole>(value));
}

struct Layout {
  int sign, mantissa;  // bit of the sign, bits of the mantissa
};
Layout layout(Number type) {
  return type == Number::f64    ? Layout{63, 52}
         : type == Number::f32  ? Layout{31, 23}
         : type == Number::bf16 ? Layout{15, 7}
                                : Layout{15, 10};
}

/// Where a NaN is not made canonical, as an H200 has it: conversions from and to f64 keep its sign and the leading bits
/// of its payload, and moves of bits (bf16 to f32, f32 to itself) all of it. Nothing where the ordinary way is right.
std::optional<uint64_t> passed_nan(const Conversion& c, uint64_t raw) {
  if (c.saturate || c.relu) return std::nullopt;
  if (c.to == Number::f32 && c.from == Number::bf16 && !c.integral) return (raw & 0xFFFF) << 16;
  if (c.to == Number::f32 && c.from == Number::f32 && !c.integral && !c.ftz) return raw & 0xFFFFFFFFu;
  bool from_f64 = c.from == Number::f64;
  bool to_f64 = c.to == Number::f64 && !(c.from == Number::f32 && c.ftz);
  if (!from_f64 && !to_f64) return std::nullopt;
  const Layout from = layout(c.from), to = layout(c.to);
  const uint64_t payload = (raw & ((uint64_t{1} << from.mantissa) - 1)) << (63 - from.mantissa);
  const uint64_t exponent = ((uint64_t{1} << to.sign) - 1) >> to.mantissa << to.mantissa;
  return (raw >> from.sign & 1) << to.sign | exponent | uint64_t{1} << (to.mantissa - 1) |
         payload >> (63 - to.mantissa);
}

uint64_t to_float(const Conversion& c, double value) {
  if (c.integral) value = whole(value, c.round);
  if (c.saturate) value = value > 0 ? std::min(value, 1.0) : 0.0;  // NaN becomes 0
  if (c.relu && value <= 0) value = 0.0;
  switch (c.to) {
    case Number::f16:
      return encode<F16>(value, c.round, c.finite);
    case Number::bf16:
      return encode<Bf16>(value, c.round, c.finite);
    case Number::f32: {
      uint32_t code = encode<F32>(value, c.round, c.finite);
      return c.ftz ? std::bit_cast<uint32_t>(flush(std::bit_cast<float>(code))) : code;
    }
    default:
      if (value != value) return 0x7FFFFFFFE0000000ull;  // f32's canonical NaN, widened
      return std::bit_cast<uint64_t>(value);
  }
}

}  // namespace

std::optional<Number> number_from_name(std::string_view name) {
  constexpr std::string_view kNames[] = {"u8",  "s8",  "u16", "s16",  "u32", "s32",
                                         "u64", "s64", "f16", "bf16", "f32", "f64"};
  for (size_t i = 0; i < std::size(kNames); ++i)
    if (kNames[i] == name) return static_cast<Number>(i);
  return std::nullopt;
}

uint8_t bytes_of(Number number) {
  constexpr uint8_t kBytes[] = {1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8};
  return kBytes[static_cast<size_t>(number)];
}

uint64_t convert(const Conversion& c, uint64_t raw) {
  if (is_float(c.from)) {
    double value = float_value(c.from, raw, c.ftz);
    if (value != value && is_float(c.to))
      if (std::optional<uint64_t> passed = passed_nan(c, raw)) return *passed;
    return is_float(c.to) ? to_float(c, value) : to_integer(c, value);
  }
  Whole value = integer_value(c.from, raw);
  if (is_float(c.to)) return to_float(c, to_double(value, c.round, c.to != Number::f64));
  if (c.saturate) value = std::clamp(value, lowest(c.to), highest(c.to));
  return static_cast<uint64_t>(integer_value(c.to, static_cast<uint64_t>(value)));
}

}  // namespace emu::isa
