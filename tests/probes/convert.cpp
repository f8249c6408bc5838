// cvt. PTX ISA, "cvt" and "cvt.pack". Expected values: rounding by search among all codes of a small format
// (small_floats.h), the host's own conversions under fesetround, and integers in 128 bits.

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <limits>
#include <map>

#include "tests/probes/probe.h"
#include "tests/probes/small_floats.h"

using probe::check;
using probe::SmallFloat;

namespace {

const std::map<std::string, int> kHostRounding = {
    {"rn", FE_TONEAREST}, {"rz", FE_TOWARDZERO}, {"rm", FE_DOWNWARD}, {"rp", FE_UPWARD}};
const std::map<std::string, SmallFloat::Round> kRounding = {
    {"rn", SmallFloat::even}, {"rz", SmallFloat::zero}, {"rm", SmallFloat::down}, {"rp", SmallFloat::up}};

/// f() computed by the host in another rounding. The volatile keeps the compiler from computing it beforehand.
template <class T, class F>
T under(int rounding, F&& f) {
  int before = std::fegetround();
  std::fesetround(rounding);
  volatile T result = f();
  std::fesetround(before);
  return result;
}

/// Every second code near the formats' edges, and floats between and beyond them.
std::vector<float> floats_for(const SmallFloat& format, uint32_t highest) {
  std::vector<float> out = probe::corners<float>(100);
  uint32_t step = std::max(1u, highest / 300);
  for (uint32_t code = 0; code + 1 <= highest; code += code < 20 || code + 20 > highest ? 1 : step) {
    double low = format.value(code), high = format.value(code + 1);
    for (double v : {low, (low + high) / 2, low + (high - low) * 0.49, low + (high - low) * 0.51, high})
      for (double sign : {1.0, -1.0}) out.push_back(static_cast<float>(sign * v));
  }
  for (double v : {1.4, 1.5, 1.6, 2.0, 3.0}) out.push_back(static_cast<float>(format.value(highest) * v));
  std::vector<float> near = out;
  for (float v : near) {
    out.push_back(std::nextafter(v, INFINITY));
    out.push_back(std::nextafter(v, -INFINITY));
  }
  return out;
}

float flush(float v) {
  return std::fpclassify(v) == FP_SUBNORMAL ? std::copysign(0.0f, v) : v;
}

uint32_t canonical(float v) {
  return v != v ? 0x7FFFFFFFu : static_cast<uint32_t>(probe::bits(v));
}

template <class T>
std::string integer_type() {
  return (std::is_signed_v<T> ? "s" : "u") + std::to_string(sizeof(T) * 8);
}

template <class T>
using Held = std::conditional_t<sizeof(T) == 1, std::conditional_t<std::is_signed_v<T>, int16_t, uint16_t>, T>;

/// cvt between two integer types, with and without .sat.
template <class To, class From>
void check_integers() {
  std::vector<Held<From>> in;
  for (auto v : probe::corners<Held<From>>(60)) in.push_back(v);
  std::string types = integer_type<To>() + "." + integer_type<From>();
  check<Held<To>, Held<From>>(
      "cvt." + types + " %d, %a;", [](Held<From> v) { return static_cast<To>(static_cast<From>(v)); }, in);
  // .sat exists where there is something to saturate.
  if (std::numeric_limits<To>::min() <= __int128{std::numeric_limits<From>::min()} &&
      std::numeric_limits<To>::max() >= __int128{std::numeric_limits<From>::max()})
    return;
  check<Held<To>, Held<From>>(
      "cvt.sat." + types + " %d, %a;",
      [](Held<From> v) {
        __int128 wide = static_cast<From>(v);
        return static_cast<To>(
            std::clamp<__int128>(wide, std::numeric_limits<To>::min(), std::numeric_limits<To>::max()));
      },
      in);
}
template <class To>
void check_integers_to() {
  check_integers<To, uint8_t>();
  check_integers<To, int8_t>();
  check_integers<To, uint16_t>();
  check_integers<To, int16_t>();
  check_integers<To, uint32_t>();
  check_integers<To, int32_t>();
  check_integers<To, uint64_t>();
  check_integers<To, int64_t>();
}

}  // namespace

TEST_CASE("cvt between integers truncates, extends or saturates") {
  check_integers_to<uint8_t>();
  check_integers_to<int8_t>();
  check_integers_to<uint16_t>();
  check_integers_to<int16_t>();
  check_integers_to<uint32_t>();
  check_integers_to<int32_t>();
  check_integers_to<uint64_t>();
  check_integers_to<int64_t>();
}

TEST_CASE("cvt reads the low bits of wider registers and fills wider results") {
  auto in = probe::corners<uint32_t>(40);
  check<uint32_t, uint32_t>(
      "cvt.u32.u8 %d, %a;", [](uint32_t v) { return v & 0xFF; }, in);
  check<int32_t, uint32_t>(
      "cvt.s32.s8 %d, %a;", [](uint32_t v) { return static_cast<int8_t>(v); }, in);
  check<uint64_t, uint32_t>(
      "cvt.u64.u16 %d, %a;", [](uint32_t v) { return v & 0xFFFF; }, in);
  check<int32_t, uint32_t>(
      "cvt.s8.s32 %d, %a;", [](uint32_t v) { return static_cast<int8_t>(v); }, in);
  check<uint16_t, uint32_t>(
      "{ .reg .b16 t; cvt.u16.u32 t, %a; cvt.u16.u8 %d, t; }", [](uint32_t v) { return v & 0xFF; }, in);
}

TEMPLATE_TEST_CASE("integers become floats in every rounding", "", uint32_t, int32_t, uint64_t, int64_t) {
  using T = TestType;
  auto in = probe::corners<T>(400);
  for (int shift = 0; shift < 60; ++shift)  // around the widths of the significands
    for (int64_t low : {-1, 0, 1})
      in.push_back(static_cast<T>((int64_t{0x1000003} << shift) + low)),
          in.push_back(static_cast<T>((int64_t{0x20000000000001} << (shift % 10)) + low));
  for (const auto& [name, rounding] : kHostRounding) {
    check<float, T>(
        "cvt." + name + ".f32." + integer_type<T>() + " %d, %a;",
        [&, rounding = rounding](T v) {
          volatile T source = v;
          return under<float>(rounding, [&] { return static_cast<float>(source); });
        },
        in);
    check<double, T>(
        "cvt." + name + ".f64." + integer_type<T>() + " %d, %a;",
        [&, rounding = rounding](T v) {
          volatile T source = v;
          return under<double>(rounding, [&] { return static_cast<double>(source); });
        },
        in);
  }
  for (const char* name : {"rn", "rz"})
    check<uint16_t, T>(
        std::string("cvt.") + name + ".f16." + integer_type<T>() + " %d, %a;",
        [&](T v) {
          // Far below 2^53 wherever f16 is not infinite.
          return probe::f16().code(static_cast<double>(v), kRounding.at(name));
        },
        in);
}

TEMPLATE_TEST_CASE("floats become integers: rounded, clamped, NaN as the ISA says", "", uint8_t, int8_t, uint16_t,
                   int16_t, uint32_t, int32_t, uint64_t, int64_t) {
  using T = TestType;
  auto whole = [](double v, const std::string& name) {
    int rounding = kHostRounding.at(name.substr(0, 2));
    volatile double source = v;
    return under<double>(rounding, [&] { return std::nearbyint(source); });
  };
  auto clamp = [](double v) {
    if (v <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
    if (v >= std::ldexp(1.0, std::numeric_limits<T>::digits)) return std::numeric_limits<T>::max();
    return static_cast<T>(v);
  };
  constexpr T kTop = static_cast<T>(std::make_unsigned_t<T>{1} << (sizeof(T) * 8 - 1));
  std::vector<float> f = probe::corners<float>(200);
  std::vector<double> d = probe::corners<double>(200);
  for (int i = -9; i <= 9; ++i)
    for (double scale : {1.0, 127.0, 255.0, 32767.0, 2147483647.0}) {
      f.push_back(static_cast<float>(scale + i / 4.0));
      f.push_back(static_cast<float>(-scale + i / 4.0));
      d.push_back(scale + i / 4.0);
      d.push_back(-scale + i / 4.0);
    }
  for (const char* name : {"rni", "rzi", "rmi", "rpi"}) {
    check<Held<T>, float>(
        std::string("cvt.") + name + "." + integer_type<T>() + ".f32 %d, %a;",
        [&](float v) { return v != v ? (sizeof(T) == 8 ? kTop : T{0}) : clamp(whole(v, name)); }, f);
    check<Held<T>, float>(
        std::string("cvt.") + name + ".ftz." + integer_type<T>() + ".f32 %d, %a;",
        [&](float v) { return v != v ? (sizeof(T) == 8 ? kTop : T{0}) : clamp(whole(flush(v), name)); }, f);
    check<Held<T>, double>(
        std::string("cvt.") + name + "." + integer_type<T>() + ".f64 %d, %a;",
        [&](double v) { return v != v ? kTop : clamp(whole(v, name)); }, d);
  }
  std::vector<uint16_t> h;
  for (uint32_t code = 0; code < 65536; code += 37) h.push_back(static_cast<uint16_t>(code));
  check<Held<T>, uint16_t>(
      "cvt.rzi." + integer_type<T>() + ".f16 %d, %a;",
      [&](uint16_t code) {
        double v = probe::f16().value(code);
        return v != v ? (sizeof(T) == 8 ? kTop : T{0}) : clamp(std::trunc(v));
      },
      h);
}

TEST_CASE("f32 and f64") {
  auto d = probe::corners<double>(400);
  std::erase_if(d, [](double v) { return v != v; });
  for (float v : probe::corners<float>(100))
    for (double step : {0.0, 1e-9, -1e-9})
      if (v == v) d.push_back(v * (1 + step));
  for (const auto& [name, rounding] : kHostRounding) {
    auto narrowed = [&, rounding = rounding](double v) {
      volatile double source = v;
      return under<float>(rounding, [&] { return static_cast<float>(source); });
    };
    check<uint32_t, double>(
        "cvt." + name + ".f32.f64 %d, %a;", [&](double v) { return canonical(narrowed(v)); }, d);
    check<uint32_t, double>(
        "cvt." + name + ".sat.f32.f64 %d, %a;",
        [&](double v) { return canonical(v > 0 ? std::min(1.0f, narrowed(v)) : 0.0f); }, d);
  }
  std::vector<float> f = probe::corners<float>(200);
  std::erase_if(f, [](float v) { return v != v; });
  check<double, float>(
      "cvt.f64.f32 %d, %a;", [](float v) { return double{v}; }, f);
  check<double, float>(
      "cvt.ftz.f64.f32 %d, %a;", [](float v) { return double{flush(v)}; }, f);
  check<double, float>(
      "cvt.sat.f64.f32 %d, %a;", [](float v) { return v > 0 ? std::min(1.0, double{v}) : 0.0; }, f);
  for (const auto& [name, rounding] : kHostRounding) {
    auto whole = [&, rounding = rounding](auto v) {
      volatile decltype(v) source = v;
      return under<decltype(v)>(rounding, [&] { return std::nearbyint(source); });
    };
    check<float, float>("cvt." + name + "i.f32.f32 %d, %a;", whole, f);
    check<float, float>(
        "cvt." + name + "i.ftz.f32.f32 %d, %a;", [&](float v) { return whole(flush(v)); }, f);
    std::vector<double> numbers = d;
    std::erase_if(numbers, [](double v) { return v != v; });
    check<double, double>("cvt." + name + "i.f64.f64 %d, %a;", whole, numbers);
  }
}

TEST_CASE("16-bit floats") {
  for (bool brain : {false, true}) {
    const SmallFloat& format = brain ? probe::bf16() : probe::f16();
    const std::string type = brain ? "bf16" : "f16";
    auto f = floats_for(format, brain ? 0x7F7F : 0x7BFF);
    for (const char* name : {"rn", "rz"}) {
      SmallFloat::Round round = kRounding.at(name);
      auto relu = [](double v) { return v <= 0 ? 0.0 : v; };
      std::string cvt = std::string("cvt.") + name;
      check<uint16_t, float>(
          cvt + "." + type + ".f32 %d, %a;", [&](float v) { return format.code(v, round); }, f);
      check<uint16_t, float>(
          cvt + ".relu." + type + ".f32 %d, %a;", [&](float v) { return format.code(relu(v), round); }, f);
      check<uint16_t, float>(
          cvt + ".satfinite." + type + ".f32 %d, %a;", [&](float v) { return format.code(v, round, true); }, f);
      // Pairs: a in the upper half.
      std::vector<float> other(f.rbegin(), f.rend());
      for (const char* modifier : {"", ".relu", ".satfinite", ".relu.satfinite"}) {
        bool relus = std::string(modifier).find("relu") != std::string::npos;
        bool finite = std::string(modifier).find("satfinite") != std::string::npos;
        check<uint32_t, float, float>(
            cvt + modifier + "." + type + "x2.f32 %d, %a, %b;",
            [&](float a, float b) {
              auto one = [&](float v) { return format.code(relus ? relu(v) : v, round, finite); };
              return one(a) << 16 | one(b);
            },
            f, other);
      }
    }
    std::vector<uint16_t> codes;
    for (uint32_t code = 0; code < 65536; code += 13) codes.push_back(static_cast<uint16_t>(code));
    check<uint32_t, uint16_t>(
        "cvt.f32." + type + " %d, %a;",
        [&](uint16_t code) { return brain ? uint32_t{code} << 16 : canonical(static_cast<float>(format.value(code))); },
        codes);
  }
  std::vector<double> d = probe::corners<double>(200);
  for (float v : floats_for(probe::f16(), 0x7BFF)) d.push_back(v * (1 + 1e-12));
  std::erase_if(d, [](double v) { return v != v; });
  check<uint16_t, double>(
      "cvt.rn.f16.f64 %d, %a;", [](double v) { return probe::f16().code(v, SmallFloat::even); }, d);
}

TEST_CASE("NaN becomes canonical where a conversion computes, and keeps its payload where it does not") {
  // Read off an H200.
  struct Case {
    const char* text;
    int to, from;
    uint64_t source, want;
  };
  const Case kCases[] = {{"cvt.rn.f32.f64 %d, %a;", 32, 64, 0xFFF8123456789ABC, 0xFFC091A2},
                         {"cvt.rn.f16.f64 %d, %a;", 16, 64, 0xFFF8123456789ABC, 0xFE04},
                         {"cvt.f64.f32 %d, %a;", 64, 32, 0x7F800001, 0x7FF8000020000000},
                         {"cvt.ftz.f64.f32 %d, %a;", 64, 32, 0xFFC12345, 0x7FFFFFFFE0000000},
                         {"cvt.f64.f16 %d, %a;", 64, 16, 0x7C01, 0x7FF8040000000000},
                         {"cvt.rni.f64.f64 %d, %a;", 64, 64, 0x7FF0000000000001, 0x7FF8000000000001},
                         {"cvt.f32.bf16 %d, %a;", 32, 16, 0x7F81, 0x7F810000},
                         {"cvt.f32.f16 %d, %a;", 32, 16, 0x7C01, 0x7FFFFFFF},
                         {"cvt.f32.f32 %d, %a;", 32, 32, 0xFF812345, 0xFF812345},
                         {"cvt.rni.f32.f32 %d, %a;", 32, 32, 0xFF812345, 0x7FFFFFFF},
                         {"cvt.rn.f16.f32 %d, %a;", 16, 32, 0xFF812345, 0x7FFF},
                         {"cvt.rn.bf16.f32 %d, %a;", 16, 32, 0xFF812345, 0x7FFF},
                         {"cvt.rna.tf32.f32 %d, %a;", 32, 32, 0xFFC12345, 0xFFC12000}};
  for (const Case& c : kCases) {
    INFO(c.text);
    CHECK(probe::evaluate({c.text, c.to, {c.from}}, {{c.source}})[0] == c.want);
  }
}

TEST_CASE("tf32 keeps ten bits of the fraction") {
  std::vector<float> f = probe::corners<float>(600);
  for (float v : std::vector<float>(f))  // halfway between two results, and beside that
    for (uint64_t low : {0x0FFF, 0x1000, 0x1001, 0x2FFF, 0x3000, 0x3001})
      f.push_back(probe::value<float>((probe::bits(v) & ~uint64_t{0x3FFF}) | low));
  // Drop 13 bits by integer arithmetic on magnitudes; a carry into the exponent is what rounding up means.
  auto rounded = [](float v, const std::string& name) {
    uint32_t bits = static_cast<uint32_t>(probe::bits(v)), sign = bits & 0x80000000u, m = bits & 0x7FFFFFFFu;
    if (m > 0x7F800000u) return (name == "rna" ? bits : 0x7FFFFFFFu) & ~0x1FFFu;  // as an H200 has it
    if (name == "rna") m += 0x1000;
    if (name == "rn") m += 0xFFF + (m >> 13 & 1);
    return sign | std::min(m & ~0x1FFFu, 0x7F800000u);
  };
  for (const char* name : {"rna", "rn", "rz"})
    check<uint32_t, float>(
        std::string("cvt.") + name + ".tf32.f32 %d, %a;", [&](float v) { return rounded(v, name); }, f);
}

TEST_CASE("8, 6 and 4-bit floats, two at a time") {
  struct Kind {
    const char* type;
    const SmallFloat& format;
    int bits;
    uint32_t highest;
    bool has_nan;
  };
  const Kind kKinds[] = {{"e4m3x2", probe::e4m3(), 8, 0x7E, true},
                         {"e5m2x2", probe::e5m2(), 8, 0x7B, true},
                         {"e2m3x2", probe::e2m3(), 8, 0x1F, false},
                         {"e3m2x2", probe::e3m2(), 8, 0x1F, false},
                         {"e2m1x2", probe::e2m1(), 4, 0x7, false}};
  for (const Kind& kind : kKinds) {
    auto f = floats_for(kind.format, kind.highest);
    std::vector<float> other(f.rbegin(), f.rend());
    // The result of e2m1x2 is a .b8 register.
    std::string before = kind.bits == 4 ? "{ .reg .b8 t; " : "{ .reg .b16 t; ";
    std::string after = kind.bits == 4 ? " mov.b16 %d, {t, 0}; }" : " mov.b16 %d, t; }";
    if (kind.bits == 4) after = " cvt.u16.u8 %d, t; }";
    for (bool relu : {false, true})
      check<uint16_t, float, float>(
          before + "cvt.rn.satfinite" + (relu ? ".relu." : ".") + kind.type + ".f32 t, %a, %b;" + after,
          [&](float a, float b) {
            auto one = [&](float v) { return kind.format.code(relu && v <= 0 ? 0.0f : v, SmallFloat::even, true); };
            return one(a) << kind.bits | one(b);
          },
          f, other);
    std::vector<uint16_t> codes;
    for (uint32_t code = 0; code < (kind.bits == 4 ? 256u : 65536u); code += kind.bits == 4 ? 1 : 61)
      codes.push_back(static_cast<uint16_t>(kind.highest <= 0x1F && kind.bits == 8 ? code & 0x3F3F : code));
    std::string narrow = kind.bits == 4 ? "{ .reg .b8 t; cvt.u8.u16 t, %a; " : "{ .reg .b16 t; mov.b16 t, %a; ";
    check<uint32_t, uint16_t>(
        narrow + "cvt.rn.f16x2." + kind.type + " %d, t; }",
        [&](uint16_t code) {
          uint32_t mask = (1u << kind.bits) - 1;
          uint32_t low = probe::f16().code(kind.format.value(code & mask), SmallFloat::even);
          uint32_t high = probe::f16().code(kind.format.value(code >> kind.bits & mask), SmallFloat::even);
          return high << 16 | low;
        },
        codes);
    if (kind.has_nan) {
      std::vector<uint32_t> pairs;
      for (uint32_t i = 0; i < 65536; i += 23) pairs.push_back(i | (i * 40503u) << 16);
      check<uint16_t, uint32_t>(
          "cvt.rn.satfinite." + std::string(kind.type) + ".f16x2 %d, %a;",
          [&](uint32_t pair) {
            auto one = [&](uint32_t code) {
              return kind.format.code(probe::f16().value(code & 0xFFFF), SmallFloat::even, true);
            };
            return one(pair >> 16) << 8 | one(pair);
          },
          pairs);
    }
  }
}

TEST_CASE("cvt.pack saturates two integers into one register") {
  auto list = probe::corners<int32_t>(60);
  auto [a, b] = probe::pairs(list);
  std::vector<uint32_t> c(a.size(), 0xABCDEF97u);
  auto part = [](int32_t v, int bits, bool is_signed) {
    int64_t low = is_signed ? -(1 << (bits - 1)) : 0, high = is_signed ? (1 << (bits - 1)) - 1 : (1 << bits) - 1;
    return static_cast<uint32_t>(std::clamp<int64_t>(v, low, high)) & ((1u << bits) - 1);
  };
  for (bool is_signed : {false, true}) {
    std::string letter = is_signed ? "s" : "u";
    check<uint32_t, int32_t, int32_t>(
        "cvt.pack.sat." + letter + "16.s32 %d, %a, %b;",
        [&](int32_t x, int32_t y) { return part(x, 16, is_signed) << 16 | part(y, 16, is_signed); }, a, b);
    for (int bits : {2, 4, 8})
      check<uint32_t, int32_t, int32_t, uint32_t>(
          "cvt.pack.sat." + letter + std::to_string(bits) + ".s32.b32 %d, %a, %b, %c;",
          [&](int32_t x, int32_t y, uint32_t z) {
            return z << (2 * bits) | part(x, bits, is_signed) << bits | part(y, bits, is_signed);
          },
          a, b, c);
  }
}

TEST_CASE("conversions that are not executed are refused by name") {
  CHECK_THAT(probe::fault("mov.b32 %r1, 0; cvt.rs.satfinite.e4m3x4.f32 %r0, {%r1, %r1, %r1, %r1}, %r1;"
                          "ld.param.u64 %d0, [p0]; st.global.u32 [%d0], %r0;"),
             test::contains("cvt.rs.satfinite.e4m3x4.f32"));
}
