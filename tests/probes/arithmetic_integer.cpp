// PTX ISA, "Integer Arithmetic Instructions". Expected values: the definitions of the ISA, written out in 128-bit
// arithmetic.

#include <algorithm>
#include <limits>

#include "tests/probes/probe.h"

using probe::check;

namespace {

using Wide = __int128;

template <class T>
std::string name();
template <>
std::string name<uint16_t>() {
  return "u16";
}
template <>
std::string name<int16_t>() {
  return "s16";
}
template <>
std::string name<uint32_t>() {
  return "u32";
}
template <>
std::string name<int32_t>() {
  return "s32";
}
template <>
std::string name<uint64_t>() {
  return "u64";
}
template <>
std::string name<int64_t>() {
  return "s64";
}

template <class T>
T cut(Wide value) {
  return static_cast<T>(value);
}

int32_t saturated(Wide value) {
  return static_cast<int32_t>(
      std::clamp<Wide>(value, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()));
}

template <class T>
struct Sources {
  std::vector<T> a, b, c;
  explicit Sources(int random = 40) {
    auto list = probe::corners<T>(random);
    std::tie(a, b) = probe::pairs(list);
    for (size_t i = 0; i < a.size(); ++i) c.push_back(list[(i * 7 + i / list.size()) % list.size()]);
  }
};

}  // namespace

TEMPLATE_TEST_CASE("integer sums, products and comparisons of every type", "", uint16_t, int16_t, uint32_t, int32_t,
                   uint64_t, int64_t) {
  using T = TestType;
  const std::string t = name<T>();
  Sources<T> s;
  constexpr int kBits = sizeof(T) * 8;
  check<T, T, T>(
      "add." + t + " %d, %a, %b;", [](T a, T b) { return cut<T>(Wide{a} + b); }, s.a, s.b);
  check<T, T, T>(
      "sub." + t + " %d, %a, %b;", [](T a, T b) { return cut<T>(Wide{a} - b); }, s.a, s.b);
  check<T, T, T>(
      "mul.lo." + t + " %d, %a, %b;", [](T a, T b) { return cut<T>(Wide{a} * b); }, s.a, s.b);
  check<T, T, T>(
      "mul.hi." + t + " %d, %a, %b;",
      [](T a, T b) {
        if constexpr (kBits == 64 && std::is_unsigned_v<T>)
          return static_cast<T>((static_cast<unsigned __int128>(a) * b) >> 64);
        else
          return cut<T>((Wide{a} * b) >> kBits);
      },
      s.a, s.b);
  check<T, T, T, T>(
      "mad.lo." + t + " %d, %a, %b, %c;",
      [](T a, T b, T c) {
        return cut<T>(
            static_cast<Wide>(static_cast<unsigned __int128>(Wide{a}) * static_cast<unsigned __int128>(Wide{b})) + c);
      },
      s.a, s.b, s.c);
  check<T, T, T>(
      "min." + t + " %d, %a, %b;", [](T a, T b) { return std::min(a, b); }, s.a, s.b);
  check<T, T, T>(
      "max." + t + " %d, %a, %b;", [](T a, T b) { return std::max(a, b); }, s.a, s.b);
  check<T, T, T, T>(
      "sad." + t + " %d, %a, %b, %c;",
      [](T a, T b, T c) { return cut<T>(Wide{c} + (a < b ? Wide{b} - a : Wide{a} - b)); }, s.a, s.b, s.c);
  std::vector<T> divisor = s.b;
  std::replace(divisor.begin(), divisor.end(), T{0}, T{3});
  check<T, T, T>(
      "div." + t + " %d, %a, %b;", [](T a, T b) { return cut<T>(Wide{a} / b); }, s.a, divisor);
  check<T, T, T>(
      "rem." + t + " %d, %a, %b;", [](T a, T b) { return cut<T>(Wide{a} % b); }, s.a, divisor);
  if constexpr (std::is_signed_v<T>) {
    check<T, T>(
        "abs." + t + " %d, %a;", [](T a) { return cut<T>(a < 0 ? -Wide{a} : Wide{a}); }, s.a);
    check<T, T>(
        "neg." + t + " %d, %a;", [](T a) { return cut<T>(-Wide{a}); }, s.a);
  }
}

TEMPLATE_TEST_CASE("wide products and their sums", "", uint16_t, int16_t, uint32_t, int32_t) {
  using T = TestType;
  using W = std::conditional_t<sizeof(T) == 2, std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>,
                               std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;
  Sources<T> s;
  check<W, T, T>(
      "mul.wide." + name<T>() + " %d, %a, %b;", [](T a, T b) { return cut<W>(Wide{a} * b); }, s.a, s.b);
  std::vector<W> c = Sources<W>().a;
  c.resize(s.a.size(), 12345);
  check<W, T, T, W>(
      "mad.wide." + name<T>() + " %d, %a, %b, %c;", [](T a, T b, W w) { return cut<W>(Wide{a} * b + w); }, s.a, s.b, c);
  check<T, T, T, T>(
      "mad.hi." + name<T>() + " %d, %a, %b, %c;",
      [](T a, T b, T x) { return cut<T>(((Wide{a} * b) >> (sizeof(T) * 8)) + x); }, s.a, s.b, s.c);
}

TEST_CASE("sums of s32 that saturate") {
  Sources<int32_t> s;
  check<int32_t, int32_t, int32_t>(
      "add.sat.s32 %d, %a, %b;", [](int32_t a, int32_t b) { return saturated(Wide{a} + b); }, s.a, s.b);
  check<int32_t, int32_t, int32_t>(
      "sub.sat.s32 %d, %a, %b;", [](int32_t a, int32_t b) { return saturated(Wide{a} - b); }, s.a, s.b);
  check<int32_t, int32_t, int32_t, int32_t>(
      "mad.hi.sat.s32 %d, %a, %b, %c;",
      [](int32_t a, int32_t b, int32_t c) { return saturated(((Wide{a} * b) >> 32) + c); }, s.a, s.b, s.c);
}

TEST_CASE("three sources and relu of min and max") {
  Sources<int32_t> s;
  check<int32_t, int32_t, int32_t>(
      "min.relu.s32 %d, %a, %b;", [](int32_t a, int32_t b) { return std::max(0, std::min(a, b)); }, s.a, s.b);
  check<int32_t, int32_t, int32_t>(
      "max.s32.relu %d, %a, %b;",
      [](int32_t a, int32_t b) {
        return std::max({0, a, b});
      },
      s.a, s.b);
}

TEMPLATE_TEST_CASE("products of 24 bits", "", uint32_t, int32_t) {
  using T = TestType;
  Sources<T> s;
  auto cut24 = [](T x) -> Wide {
    return std::is_signed_v<T> ? Wide{static_cast<int32_t>(static_cast<uint32_t>(x) << 8) >> 8}
                               : Wide{static_cast<uint32_t>(x) & 0xFFFFFF};
  };
  check<T, T, T>(
      "mul24.lo." + name<T>() + " %d, %a, %b;", [&](T a, T b) { return cut<T>(cut24(a) * cut24(b)); }, s.a, s.b);
  check<T, T, T>(
      "mul24.hi." + name<T>() + " %d, %a, %b;", [&](T a, T b) { return cut<T>((cut24(a) * cut24(b)) >> 16); }, s.a,
      s.b);
  check<T, T, T, T>(
      "mad24.lo." + name<T>() + " %d, %a, %b, %c;", [&](T a, T b, T c) { return cut<T>(cut24(a) * cut24(b) + c); }, s.a,
      s.b, s.c);
  check<T, T, T, T>(
      "mad24.hi." + name<T>() + " %d, %a, %b, %c;",
      [&](T a, T b, T c) { return cut<T>(((cut24(a) * cut24(b)) >> 16) + c); }, s.a, s.b, s.c);
}

TEST_CASE("carries run through chains of additions, subtractions and products") {
  // 128-bit sums of 32-bit parts: a = {x, y, x, y}, b = {y, y, x, x}.
  auto parts = [](uint64_t x, uint64_t y) { return static_cast<unsigned __int128>(x) << 64 | y; };
  auto list = probe::corners<uint64_t>(40);
  auto [x, y] = probe::pairs(list);
  using Quad = unsigned __int128;
  check<uint64_t, uint64_t, uint64_t>(
      "{ .reg .b64 t; add.cc.u64 t, %a, %b; addc.u64 %d, %b, %a; }",
      [&](uint64_t a, uint64_t b) { return static_cast<uint64_t>((parts(b, a) + parts(a, b)) >> 64); }, x, y);
  check<uint64_t, uint64_t, uint64_t>(
      "{ .reg .b64 t; sub.cc.s64 t, %a, %b; subc.s64 %d, %b, %a; }",
      [&](uint64_t a, uint64_t b) { return static_cast<uint64_t>((parts(b, a) - parts(a, b)) >> 64); }, x, y);
  // After a subtraction the carry says that nothing was borrowed, for whatever comes next (an H200).
  check<uint64_t, uint64_t, uint64_t>(
      "{ .reg .b64 t; sub.cc.u64 t, %a, %b; addc.u64 %d, 0, 0; }",
      [](uint64_t a, uint64_t b) { return uint64_t{a >= b}; }, x, y);
  check<uint64_t, uint64_t, uint64_t>(
      "{ .reg .b64 t; add.cc.u64 t, %a, %b; subc.u64 %d, 0, 0; }",
      [](uint64_t a, uint64_t b) { return a + b < a ? uint64_t{0} : ~uint64_t{0}; }, x, y);
  // (a + 2^32 b) * b, upper word: parts of 32 bits with a carry between.
  auto small = probe::corners<uint32_t>(40);
  auto [u, v] = probe::pairs(small);
  check<uint32_t, uint32_t, uint32_t>(
      "{ .reg .b32 t; mul.lo.u32 t, %a, %b; mad.lo.cc.u32 t, %a, %b, t; madc.hi.u32 %d, %a, %b, 7; }",
      [](uint32_t a, uint32_t b) {
        uint64_t low = static_cast<uint32_t>(a * b);
        return static_cast<uint32_t>((uint64_t{a} * b >> 32) + 7 + ((low + low) >> 32));
      },
      u, v);
  check<uint32_t, uint32_t, uint32_t>(
      "{ .reg .b32 t, w; add.cc.u32 t, %a, %b; addc.cc.u32 w, %a, -1; addc.u32 %d, 0, 0; }",
      [](uint32_t a, uint32_t b) {
        uint64_t first = (uint64_t{a} + b) >> 32;
        return static_cast<uint32_t>((uint64_t{a} + 0xFFFFFFFFu + first) >> 32);
      },
      u, v);
  check<int64_t, int64_t, int64_t>(
      "{ .reg .b64 t; mad.lo.cc.s64 t, %a, %b, %a; madc.hi.s64 %d, %a, %b, %b; }",
      [](int64_t a, int64_t b) {
        Quad low = static_cast<uint64_t>(a) * static_cast<uint64_t>(b);
        Quad carry = (low + static_cast<uint64_t>(a)) >> 64;
        return static_cast<int64_t>(static_cast<uint64_t>((Wide{a} * b) >> 64) + static_cast<uint64_t>(b) +
                                    static_cast<uint64_t>(carry));
      },
      std::vector<int64_t>(x.begin(), x.end()), std::vector<int64_t>(y.begin(), y.end()));
}

TEST_CASE("integers packed in pairs") {
  auto list = probe::corners<uint32_t>(60);
  auto [a, b] = probe::pairs(list);
  auto each = [](uint32_t x, uint32_t y, auto f) {
    return static_cast<uint32_t>(static_cast<uint16_t>(f(static_cast<int16_t>(x), static_cast<int16_t>(y)))) |
           static_cast<uint32_t>(static_cast<uint16_t>(f(static_cast<int16_t>(x >> 16), static_cast<int16_t>(y >> 16))))
               << 16;
  };
  check<uint32_t, uint32_t, uint32_t>(
      "add.u16x2 %d, %a, %b;", [&](uint32_t x, uint32_t y) { return each(x, y, [](int p, int q) { return p + q; }); },
      a, b);
  check<uint32_t, uint32_t, uint32_t>(
      "add.s16x2 %d, %a, %b;", [&](uint32_t x, uint32_t y) { return each(x, y, [](int p, int q) { return p + q; }); },
      a, b);
  check<uint32_t, uint32_t, uint32_t>(
      "min.s16x2 %d, %a, %b;",
      [&](uint32_t x, uint32_t y) { return each(x, y, [](int p, int q) { return std::min(p, q); }); }, a, b);
  check<uint32_t, uint32_t, uint32_t>(
      "max.relu.s16x2 %d, %a, %b;",
      [&](uint32_t x, uint32_t y) { return each(x, y, [](int p, int q) {
                                      return std::max({0, p, q});
                                    }); }, a, b);
  check<uint32_t, uint32_t, uint32_t>(
      "min.u16x2 %d, %a, %b;",
      [&](uint32_t x, uint32_t y) { return each(x, y, [](int p, int q) { return std::min(p & 0xFFFF, q & 0xFFFF); }); },
      a, b);
  check<uint32_t, uint32_t, uint32_t>(
      "max.u16x2 %d, %a, %b;",
      [&](uint32_t x, uint32_t y) { return each(x, y, [](int p, int q) { return std::max(p & 0xFFFF, q & 0xFFFF); }); },
      a, b);
}

TEST_CASE("dot products of bytes") {
  auto list = probe::corners<uint32_t>(60);
  auto [a, b] = probe::pairs(list);
  std::vector<uint32_t> c(a.size(), 0xFFFFFF00u);
  auto byte = [](uint32_t word, int i, bool is_signed) {
    int v = static_cast<int>(word >> (8 * i) & 0xFF);
    return is_signed && v > 127 ? v - 256 : v;
  };
  auto half = [](uint32_t word, int i, bool is_signed) {
    int v = static_cast<int>(word >> (16 * i) & 0xFFFF);
    return is_signed && v > 32767 ? v - 65536 : v;
  };
  for (bool sa : {false, true})
    for (bool sb : {false, true}) {
      std::string types = std::string(sa ? ".s32" : ".u32") + (sb ? ".s32" : ".u32");
      check<uint32_t, uint32_t, uint32_t, uint32_t>(
          "dp4a" + types + " %d, %a, %b, %c;",
          [&](uint32_t x, uint32_t y, uint32_t z) {
            Wide sum = z;
            for (int i = 0; i < 4; ++i) sum += Wide{byte(x, i, sa)} * byte(y, i, sb);
            return static_cast<uint32_t>(sum);
          },
          a, b, c);
      for (int high : {0, 1})
        check<uint32_t, uint32_t, uint32_t, uint32_t>(
            std::string("dp2a.") + (high ? "hi" : "lo") + types + " %d, %a, %b, %c;",
            [&](uint32_t x, uint32_t y, uint32_t z) {
              Wide sum = z;
              for (int i = 0; i < 2; ++i) sum += Wide{half(x, i, sa)} * byte(y, 2 * high + i, sb);
              return static_cast<uint32_t>(sum);
            },
            a, b, c);
    }
}
