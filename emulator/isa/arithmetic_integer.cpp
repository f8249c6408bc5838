// Integer arithmetic. PTX ISA, "Integer Arithmetic Instructions".

#include <algorithm>
#include <limits>
#include <type_traits>

#include "emulator/isa/arithmetic.h"
#include "emulator/isa/lanes.h"

namespace emu::isa {
namespace {

// Sums and products wrap, so they are taken on the unsigned type of at least 32 bits.
template <class T>
using Wrapping = std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;
// A type that holds every product.
template <class T>
using Wide =
    std::conditional_t<sizeof(T) == 2, std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>,
                       std::conditional_t<sizeof(T) == 4, std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>,
                                          std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>>>;

template <class T>
T add(T a, T b) {
  return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
}
template <class T>
T subtract(T a, T b) {
  return static_cast<T>(static_cast<Wrapping<T>>(a) - static_cast<Wrapping<T>>(b));
}
int32_t saturate(int64_t value) {
  return static_cast<int32_t>(
      std::clamp<int64_t>(value, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()));
}
int32_t add_saturate(int32_t a, int32_t b) {
  return saturate(int64_t{a} + b);
}
int32_t subtract_saturate(int32_t a, int32_t b) {
  return saturate(int64_t{a} - b);
}
template <class T>
T multiply_low(T a, T b) {
  return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
}
template <class T>
T multiply_high(T a, T b) {
  return static_cast<T>((static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b)) >> (sizeof(T) * 8));
}
template <class T>
Wide<T> multiply_wide(T a, T b) {
  return static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b);
}
template <class T>
T multiply_add_low(T a, T b, T c) {
  return add(multiply_low(a, b), c);
}
template <class T>
T multiply_add_high(T a, T b, T c) {
  return add(multiply_high(a, b), c);
}
int32_t multiply_add_high_saturate(int32_t a, int32_t b, int32_t c) {
  return saturate(int64_t{multiply_high(a, b)} + c);
}
template <class T>
Wide<T> multiply_add_wide(T a, T b, Wide<T> c) {
  return add(multiply_wide(a, b), c);
}

// mul24: 24-bit sources, a 48-bit product; .lo its low 32 bits, .hi bits 47..16.
template <class T>
int64_t product_24(T a, T b) {
  auto cut = [](T x) { return static_cast<T>(static_cast<T>(static_cast<uint32_t>(x) << 8) >> 8); };
  return int64_t{cut(a)} * int64_t{cut(b)};
}
template <class T>
T multiply_24_low(T a, T b) {
  return static_cast<T>(product_24(a, b));
}
template <class T>
T multiply_24_high(T a, T b) {
  return static_cast<T>(product_24(a, b) >> 16);
}
template <class T>
T multiply_add_24_low(T a, T b, T c) {
  return add(multiply_24_low(a, b), c);
}
template <class T>
T multiply_add_24_high(T a, T b, T c) {
  return add(multiply_24_high(a, b), c);
}
int32_t multiply_add_24_high_saturate(int32_t a, int32_t b, int32_t c) {
  return saturate(int64_t{multiply_24_high(a, b)} + c);
}

// Division by zero "yields an unspecified, machine-specific value": all ones, and so does its remainder (an H200's).
template <class T>
T divide(T a, T b) {
  if (b == 0) return static_cast<T>(-1);
  if constexpr (std::is_signed_v<T>)
    if (b == -1) return subtract<T>(0, a);
  return static_cast<T>(a / b);
}
template <class T>
T remainder(T a, T b) {
  if (b == 0) return static_cast<T>(-1);
  if constexpr (std::is_signed_v<T>)
    if (b == -1) return 0;
  return static_cast<T>(a % b);
}

template <class T>
T negate(T a) {
  return subtract<T>(0, a);
}
template <class T>
T absolute(T a) {
  return a < 0 ? negate(a) : a;
}
template <class T>
T smaller(T a, T b) {
  return b < a ? b : a;
}
template <class T>
T larger(T a, T b) {
  return a < b ? b : a;
}
int32_t smaller_relu(int32_t a, int32_t b) {
  return std::max(0, smaller(a, b));
}
int32_t larger_relu(int32_t a, int32_t b) {
  return std::max(0, larger(a, b));
}
template <class T>
T sum_of_differences(T a, T b, T c) {
  return add(c, a < b ? subtract(b, a) : subtract(a, b));
}

void bind_multiply(Binder& binder, std::string_view type) {
  std::string_view part = binder.take_any({"lo", "hi", "wide"});
  with_integer(type, [&]<class T>() {
    if (part == "lo") return bind_map<multiply_low<T>>(binder);
    if (part == "hi") return bind_map<multiply_high<T>>(binder);
    if constexpr (sizeof(T) < 8)
      if (part == "wide") return bind_map<multiply_wide<T>>(binder);
    binder.refuse(".lo, .hi or .wide is wanted");
  });
}

void bind_multiply_add(Binder& binder, std::string_view type) {
  std::string_view part = binder.take_any({"lo", "hi", "wide"});
  if (part == "hi" && type == "s32" && binder.take("sat")) return bind_map<multiply_add_high_saturate>(binder);
  with_integer(type, [&]<class T>() {
    if (part == "lo") return bind_map<multiply_add_low<T>>(binder);
    if (part == "hi") return bind_map<multiply_add_high<T>>(binder);
    if constexpr (sizeof(T) < 8)
      if (part == "wide") return bind_map<multiply_add_wide<T>>(binder);
    binder.refuse(".lo, .hi or .wide is wanted");
  });
}

template <class T>
void bind_24(Binder& binder, bool adds) {
  std::string_view part = binder.take_any({"lo", "hi"});
  if (part.empty()) binder.refuse(".lo or .hi is wanted");
  if (!adds) return part == "lo" ? bind_map<multiply_24_low<T>>(binder) : bind_map<multiply_24_high<T>>(binder);
  if constexpr (std::is_signed_v<T>)
    if (part == "hi" && binder.take("sat")) return bind_map<multiply_add_24_high_saturate>(binder);
  part == "lo" ? bind_map<multiply_add_24_low<T>>(binder) : bind_map<multiply_add_24_high<T>>(binder);
}

/// min and max.
template <class T>
void bind_extreme(Binder& binder, bool least) {
  if constexpr (std::is_same_v<T, int32_t>)
    if (binder.take("relu")) return least ? bind_map<smaller_relu>(binder) : bind_map<larger_relu>(binder);
  least ? bind_map<smaller<T>>(binder) : bind_map<larger<T>>(binder);
}

}  // namespace

bool bind_integer(Binder& binder, std::string_view type) {
  std::string_view name = binder.source.name();
  if (name == "mul") return bind_multiply(binder, type), true;
  if (name == "mad") return bind_multiply_add(binder, type), true;
  if (type == "s32" && (name == "add" || name == "sub") && binder.take("sat"))
    return name == "add" ? bind_map<add_saturate>(binder) : bind_map<subtract_saturate>(binder), true;
  bool bound = true;
  bool known = with_integer(type, [&]<class T>() {
    if (name == "add") return bind_map<add<T>>(binder);
    if (name == "sub") return bind_map<subtract<T>>(binder);
    if (name == "div") return bind_map<divide<T>>(binder);
    if (name == "rem") return bind_map<remainder<T>>(binder);
    if (name == "min") return bind_extreme<T>(binder, true);
    if (name == "max") return bind_extreme<T>(binder, false);
    if (name == "sad") return bind_map<sum_of_differences<T>>(binder);
    if constexpr (std::is_signed_v<T>) {
      if (name == "abs") return bind_map<absolute<T>>(binder);
      if (name == "neg") return bind_map<negate<T>>(binder);
    }
    if constexpr (sizeof(T) == 4)
      if (name == "mul24" || name == "mad24") return bind_24<T>(binder, name == "mad24");
    bound = false;
  });
  return known && bound;
}

}  // namespace emu::isa
