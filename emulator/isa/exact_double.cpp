#include "emulator/isa/exact_double.h"

#include <bit>
#include <cmath>

namespace emu::isa::exact {
namespace {

using Wide = unsigned __int128;

/// significand * 2^exponent
struct Number {
  bool negative;
  int exponent;
  Wide significand;
};

Number unpack(double value) {
  uint64_t bits = std::bit_cast<uint64_t>(value);
  int exponent = static_cast<int>(bits >> 52 & 0x7FF);
  uint64_t fraction = bits & 0xFFFFFFFFFFFFFull;
  return {bits >> 63 != 0, (exponent ? exponent : 1) - 1075, exponent ? fraction | uint64_t{1} << 52 : fraction};
}

int top_bit(Wide value) {
  uint64_t high = static_cast<uint64_t>(value >> 64);
  return high ? 127 - std::countl_zero(high) : 63 - std::countl_zero(static_cast<uint64_t>(value));
}

/// value >> by; bits that fall off are remembered in the last bit.
Wide shift_sticky(Wide value, int by) {
  if (by <= 0) return value;
  if (by > 127) return value != 0;
  return value >> by | ((value & ((Wide{1} << by) - 1)) != 0);
}

/// Highest bit at 125: room for a carry above, and for what is shifted out below.
void normalise(Number& n) {
  int up = 125 - top_bit(n.significand);
  if (up >= 0)
    n.significand <<= up;
  else
    n.significand = shift_sticky(n.significand, -up);
  n.exponent -= up;
}

/// The nearest double; the last bit of the significand may be sticky, so it has at least 55 bits.
double pack(Number n, Round round) {
  normalise(n);
  // The leading bit weighs 2^(exponent + 125).
  int leading = n.exponent + 125;
  int drop = 125 - 52;
  if (leading < -1022) drop += -1022 - leading;
  Wide kept = drop > 127 ? 0 : n.significand >> drop;
  Wide rest = drop > 127 ? n.significand : n.significand & ((Wide{1} << drop) - 1);
  bool above_half = false, half = false;
  if (drop <= 127) {
    Wide middle = Wide{1} << (drop - 1);
    above_half = rest > middle;
    half = rest == middle;
  }
  bool up = false;
  switch (round) {
    case Round::nearest_even:
      up = above_half || (half && (kept & 1));
      break;
    case Round::nearest_away:
      up = above_half || half;
      break;
    case Round::zero:
      break;
    case Round::down:
      up = rest != 0 && n.negative;
      break;
    case Round::up:
      up = rest != 0 && !n.negative;
      break;
  }
  uint64_t code = static_cast<uint64_t>(kept) + up;
  if (leading >= -1022) {
    if (leading > 1023)
      code = 0x7FF0000000000000ull;
    else
      code += static_cast<uint64_t>(leading + 1022) << 52;
  }
  constexpr uint64_t kInfinity = 0x7FF0000000000000ull;
  if (code >= kInfinity) {
    bool to_infinity = round == Round::nearest_even || round == Round::nearest_away ||
                       (round == Round::up && !n.negative) || (round == Round::down && n.negative);
    code = to_infinity ? kInfinity : kInfinity - 1;
  }
  return std::bit_cast<double>(code | (n.negative ? uint64_t{1} << 63 : 0));
}

double zero(bool negative) {
  return negative ? -0.0 : 0.0;
}

/// x + y, exactly rounded. Neither is zero.
double sum(Number x, Number y, Round round) {
  normalise(x);
  normalise(y);
  if (x.exponent < y.exponent || (x.exponent == y.exponent && x.significand < y.significand)) std::swap(x, y);
  Wide other = shift_sticky(y.significand, x.exponent - y.exponent);
  if (x.negative == y.negative)
    x.significand += other;
  else
    x.significand -= other;
  if (x.significand == 0) return zero(round == Round::down);
  return pack(x, round);
}

}  // namespace

double fused_multiply_add(double a, double b, double c, Round round) {
  if (!std::isfinite(a) || !std::isfinite(b) || !std::isfinite(c)) return std::fma(a, b, c);
  Number x = unpack(a), y = unpack(b), z = unpack(c);
  Number product{x.negative != y.negative, x.exponent + y.exponent, x.significand * y.significand};
  if (product.significand == 0) {
    if (z.significand != 0) return c;
    return product.negative == z.negative ? c : zero(round == Round::down);
  }
  return z.significand == 0 ? pack(product, round) : sum(product, z, round);
}

double add(double a, double b, Round round) {
  return fused_multiply_add(a, 1.0, b, round);
}

double multiply(double a, double b, Round round) {
  if (!std::isfinite(a) || !std::isfinite(b)) return a * b;
  return fused_multiply_add(a, b, zero(std::signbit(a) != std::signbit(b)), round);
}

double divide(double a, double b, Round round) {
  if (!std::isfinite(a) || !std::isfinite(b) || a == 0 || b == 0) return a / b;
  Number x = unpack(a), y = unpack(b);
  normalise(x);
  // 126 bits by at most 53 leave a quotient of at least 73.
  Wide quotient = x.significand / y.significand;
  bool rest = quotient * y.significand != x.significand;
  // Room for the sticky bit below.
  return pack({x.negative != y.negative, x.exponent - y.exponent - 1, quotient << 1 | (rest ? 1 : 0)}, round);
}

double square_root(double a, Round round) {
  if (!(a > 0) || !std::isfinite(a)) return std::sqrt(a);
  Number x = unpack(a);
  normalise(x);
  if (x.exponent & 1) {  // an even exponent can be halved
    x.significand >>= 1;
    ++x.exponent;
  }
  Wide root = 0;  // the largest whose square is not above the significand, bit by bit
  for (int bit = 62; bit >= 0; --bit) {
    Wide candidate = root | Wide{1} << bit;
    if (candidate * candidate <= x.significand) root = candidate;
  }
  bool rest = root * root != x.significand;
  return pack({false, x.exponent / 2 - 1, root << 1 | (rest ? 1 : 0)}, round);
}

}  // namespace emu::isa::exact
