// Integers packed into a 32-bit register. PTX ISA, "Integer Arithmetic Instructions": add, min and max of .u16x2 and
// .s16x2, dp4a, dp2a.

#include <algorithm>
#include <type_traits>

#include "emulator/isa/arithmetic.h"
#include "emulator/isa/lanes.h"

namespace emu::isa {
namespace {

template <class T>
T add(T a, T b) {
  return static_cast<T>(a + b);
}
template <class T>
T smaller(T a, T b) {
  return std::min(a, b);
}
template <class T>
T larger(T a, T b) {
  return std::max(a, b);
}
int16_t smaller_relu(int16_t a, int16_t b) {
  return std::max<int16_t>(0, std::min(a, b));
}
int16_t larger_relu(int16_t a, int16_t b) {
  return std::max<int16_t>(0, std::max(a, b));
}

template <class T>
bool bind_pair(Binder& binder, std::string_view name) {
  if (name == "add") return bind_map<add<T>, 2>(binder), true;
  if constexpr (std::is_signed_v<T>)
    if ((name == "min" || name == "max") && binder.take("relu"))
      return name == "min" ? bind_map<smaller_relu, 2>(binder) : bind_map<larger_relu, 2>(binder), true;
  if (name == "min") return bind_map<smaller<T>, 2>(binder), true;
  if (name == "max") return bind_map<larger<T>, 2>(binder), true;
  return false;
}

template <class T>
uint32_t element(uint32_t word, int i) {
  return static_cast<uint32_t>(static_cast<T>(word >> (8 * static_cast<int>(sizeof(T)) * i)));
}

/// Four products of bytes, added to c.
template <class A, class B>
uint32_t dot_4(uint32_t a, uint32_t b, uint32_t c) {
  for (int i = 0; i < 4; ++i) c += element<A>(a, i) * element<B>(b, i);
  return c;
}
/// The two 16-bit parts of a by the lower or upper two bytes of b.
template <class A, class B, int kFirst>
uint32_t dot_2(uint32_t a, uint32_t b, uint32_t c) {
  for (int i = 0; i < 2; ++i) c += element<A>(a, i) * element<B>(b, kFirst + i);
  return c;
}

template <bool kSignedA, bool kSignedB>
void bind_dot(Binder& binder, bool four, bool high) {
  using ByteA = std::conditional_t<kSignedA, int8_t, uint8_t>;
  using WordA = std::conditional_t<kSignedA, int16_t, uint16_t>;
  using ByteB = std::conditional_t<kSignedB, int8_t, uint8_t>;
  if (four) return bind_map<dot_4<ByteA, ByteB>>(binder);
  high ? bind_map<dot_2<WordA, ByteB, 2>>(binder) : bind_map<dot_2<WordA, ByteB, 0>>(binder);
}

}  // namespace

bool bind_integer_pair(Binder& binder, std::string_view type) {
  std::string_view name = binder.source.name();
  if (type == "u16x2") return bind_pair<uint16_t>(binder, name);
  if (type == "s16x2") return bind_pair<int16_t>(binder, name);
  bool four = name == "dp4a";
  if (!four && name != "dp2a") return false;
  bool high = !four && binder.take("hi");
  if (!four && !high && !binder.take("lo")) binder.refuse(".lo or .hi is wanted");
  std::string_view a = binder.take_next();
  if ((a != "u32" && a != "s32") || (type != "u32" && type != "s32")) return false;
  if (a == "s32")
    type == "s32" ? bind_dot<true, true>(binder, four, high) : bind_dot<true, false>(binder, four, high);
  else
    type == "s32" ? bind_dot<false, true>(binder, four, high) : bind_dot<false, false>(binder, four, high);
  return true;
}

}  // namespace emu::isa
