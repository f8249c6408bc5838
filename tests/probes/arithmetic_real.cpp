// f32 and f64 arithmetic. PTX ISA, "Floating Point Instructions". Expected values: the host's own arithmetic under
// fesetround, which is IEEE 754's.

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <map>

#include "tests/probes/probe.h"

using probe::check;

namespace {

const std::map<std::string, int> kRounding = {
    {".rn", FE_TONEAREST}, {".rz", FE_TOWARDZERO}, {".rm", FE_DOWNWARD}, {".rp", FE_UPWARD}, {"", FE_TONEAREST}};

/// f(...) in another rounding; volatile arguments keep the compiler from computing it in the usual one.
template <class F, class T, class... Rest>
T under(int rounding, F&& f, T a, Rest... rest) {
  volatile T va = a;
  int before = std::fegetround();
  std::fesetround(rounding);
  volatile T result = f(va, rest...);
  std::fesetround(before);
  return result;
}

float flush(float v) {
  return std::fpclassify(v) == FP_SUBNORMAL ? std::copysign(0.0f, v) : v;
}

/// How f32 results are compared: all NaN results are 0x7FFFFFFF.
uint32_t code(float v) {
  return v != v ? 0x7FFFFFFFu : static_cast<uint32_t>(probe::bits(v));
}
/// f64: which NaN is asked for in a test of its own.
uint64_t code(double v) {
  return v != v ? 0x7FF8000000000000ull : probe::bits(v);
}

template <class T>
struct Sources {
  std::vector<T> a, b, c;
  explicit Sources(int random) {
    auto list = probe::corners<T>(random);
    std::tie(a, b) = probe::pairs(list);
    for (size_t i = 0; i < a.size(); ++i) c.push_back(list[(i * 7 + i / list.size()) % list.size()]);
    // Around the smallest normal number, where .ftz decides.
    const T kTiny = std::numeric_limits<T>::min(), kEps = std::numeric_limits<T>::epsilon();
    for (T x : {kTiny, kTiny * (1 + kEps), kTiny * 2 - kTiny * kEps, -kTiny})
      for (T y : {1 - kEps / 2, 1 - kEps, 1 + kEps, kTiny, -kTiny, kEps / 4, -kEps / 4, T{0.5}})
        for (T z : {kTiny, -kTiny, T{0}, kTiny * kEps}) {
          a.push_back(x);
          b.push_back(y);
          c.push_back(z);
        }
    // Sums that cancel to what the product's rounding lost, and halfway cases.
    for (size_t i = 0; i < 400; ++i) {
      T x = list[(i * 5) % list.size()], y = list[(i * 11 + 3) % list.size()];
      a.push_back(x);
      b.push_back(y);
      c.push_back(-(x * y));
      a.push_back(x);
      b.push_back(T{1} + std::numeric_limits<T>::epsilon());
      c.push_back(-x);
    }
  }
};

template <class T>
using Code = decltype(code(T{}));

/// NaN of f64 results made the same before the comparison.
template <class T, class... S, class F>
void check_real(const std::string& text, F&& expected, const std::vector<S>&... sources) {
  std::string bits = std::to_string(sizeof(T) * 8);
  std::string whole =
      sizeof(T) == 8 ? "{ .reg .pred p; " + text + " testp.notanumber.f64 p, %d; @p mov.b64 %d, 0x7FF8000000000000; }"
                     : text;
  check<Code<T>, S...>(
      whole, [&](S... s) { return code(static_cast<T>(expected(s...))); }, sources...);
}

template <class T>
std::string type() {
  return sizeof(T) == 4 ? ".f32" : ".f64";
}

}  // namespace

TEMPLATE_TEST_CASE("sums, products and fused sums in every rounding", "", float, double) {
  using T = TestType;
  Sources<T> s(40);
  const std::string t = type<T>();
  for (const auto& [name, rounding] : kRounding) {
    auto in = [rounding = rounding](auto f) { return [=](auto... v) { return under(rounding, f, v...); }; };
    check_real<T>("add" + name + t + " %d, %a, %b;", in([](T a, T b) { return a + b; }), s.a, s.b);
    check_real<T>("sub" + name + t + " %d, %a, %b;", in([](T a, T b) { return a - b; }), s.a, s.b);
    check_real<T>("mul" + name + t + " %d, %a, %b;", in([](T a, T b) { return a * b; }), s.a, s.b);
    if (name.empty()) continue;
    check_real<T>("fma" + name + t + " %d, %a, %b, %c;", in([](T a, T b, T c) { return std::fma(a, b, c); }), s.a, s.b,
                  s.c);
    check_real<T>("mad" + name + t + " %d, %a, %b, %c;", in([](T a, T b, T c) { return std::fma(a, b, c); }), s.a, s.b,
                  s.c);
    check_real<T>("div" + name + t + " %d, %a, %b;", in([](T a, T b) { return a / b; }), s.a, s.b);
    check_real<T>("rcp" + name + t + " %d, %a;", in([](T a) { return 1 / a; }), s.a);
    check_real<T>("sqrt" + name + t + " %d, %a;", in([](T a) { return std::sqrt(a); }), s.a);
  }
}

TEST_CASE(".ftz flushes subnormal sources and results, .sat clamps to [0, 1]") {
  Sources<float> s(40);
  for (const auto& [name, rounding] : kRounding)
    for (bool ftz : {false, true})
      for (bool sat : {false, true}) {
        if (!ftz && !sat) continue;
        // Flushed is what is subnormal after it was rounded as if exponents had no end (read off an H200); `scaled` is
        // the result so rounded, times 2^100.
        auto given = [=](float v, float truncated, float scaled) {
          if (ftz && std::fabs(truncated) < 0x1p-126f)
            v = std::copysign(truncated != 0 && std::fabs(scaled) >= 0x1p-26f ? 0x1p-126f : 0.0f, v);
          return sat ? (v > 0 ? std::min(v, 1.0f) : 0.0f) : v;
        };
        auto taken = [=](float v) { return ftz ? flush(v) : v; };
        std::string modifiers = name + (ftz ? ".ftz" : "") + (sat ? ".sat" : "") + ".f32";
        // f(scale, ...) gives scale times the operation's result where that is tiny.
        auto in = [&, rounding = rounding](auto f) {
          return [=](auto... v) {
            return given(under(rounding, f, 1.0f, taken(v)...), under(FE_TOWARDZERO, f, 1.0f, taken(v)...),
                         under(rounding, f, 0x1p100f, taken(v)...));
          };
        };
        auto product = [](float scale, float a, float b) {
          return std::fabs(a) < std::fabs(b) ? a * scale * b : a * (b * scale);
        };
        auto fused = [](float scale, float a, float b, float c) {
          return std::fabs(a) < std::fabs(b) ? std::fma(a * scale, b, c * scale) : std::fma(a, b * scale, c * scale);
        };
        check_real<float>("add" + modifiers + " %d, %a, %b;",
                          in([](float scale, float a, float b) { return a * scale + b * scale; }), s.a, s.b);
        check_real<float>("mul" + modifiers + " %d, %a, %b;", in(product), s.a, s.b);
        if (name.empty()) continue;
        check_real<float>("fma" + modifiers + " %d, %a, %b, %c;", in(fused), s.a, s.b, s.c);
        if (sat) continue;
        check_real<float>("div" + modifiers + " %d, %a, %b;",
                          in([](float scale, float a, float b) { return a * scale / b; }), s.a, s.b);
        check_real<float>("rcp" + modifiers + " %d, %a;", in([](float scale, float a) { return scale / a; }), s.a);
        check_real<float>("sqrt" + modifiers + " %d, %a;",
                          in([](float scale, float a) { return std::sqrt(a) * scale; }), s.a);
      }
}

TEST_CASE("pairs of f32 in 64 bits") {
  Sources<float> s(30);
  std::vector<uint64_t> a, b, c;
  for (size_t i = 0; i < s.a.size(); ++i) {
    size_t j = (i * 17 + 5) % s.a.size();
    a.push_back(probe::bits(s.a[i]) | probe::bits(s.a[j]) << 32);
    b.push_back(probe::bits(s.b[i]) | probe::bits(s.b[j]) << 32);
    c.push_back(probe::bits(s.c[i]) | probe::bits(s.c[j]) << 32);
  }
  auto each = [](auto f) {
    return [=](auto... words) {
      uint64_t low = code(f(probe::value<float>(words & 0xFFFFFFFFu)...));
      uint64_t high = code(f(probe::value<float>(words >> 32)...));
      return high << 32 | low;
    };
  };
  using U = uint64_t;
  for (const auto& [name, rounding] : kRounding) {
    if (name.empty()) continue;
    auto in = [rounding = rounding](auto f) { return [=](auto... v) { return under(rounding, f, v...); }; };
    check<U, U, U>("add" + name + ".f32x2 %d, %a, %b;", each(in([](float x, float y) { return x + y; })), a, b);
    check<U, U, U>("mul" + name + ".f32x2 %d, %a, %b;", each(in([](float x, float y) { return x * y; })), a, b);
    check<U, U, U, U>("fma" + name + ".f32x2 %d, %a, %b, %c;",
                      each(in([](float x, float y, float z) { return std::fma(x, y, z); })), a, b, c);
  }
  check<U, U, U>("add.ftz.f32x2 %d, %a, %b;", each([](float x, float y) { return flush(flush(x) + flush(y)); }), a, b);
}

TEST_CASE("quotients that may be approximate") {
  // PTX ISA, div: .full is within 2 ulp. .ftz flushes what comes out a little below 2^-126.
  Sources<float> s(40);
  for (bool ftz : {false, true}) {
    const std::string text = std::string("div.full") + (ftz ? ".ftz" : "") + ".f32 %d, %a, %b;";
    std::vector<uint64_t> got = probe::evaluate({text, 32, {32, 32}}, {probe::all_bits(s.a), probe::all_bits(s.b)});
    for (size_t i = 0; i < got.size(); ++i) {
      const float a = ftz ? flush(s.a[i]) : s.a[i], b = ftz ? flush(s.b[i]) : s.b[i], want = a / b;
      const float have = probe::value<float>(got[i]);
      INFO(text << " of " << a << " and " << b << " gives " << have << ", the nearest float is " << want);
      if (want != want) {
        CHECK(got[i] == 0x7FFFFFFF);
      } else if (std::isinf(want)) {
        CHECK(std::fabs(have) >= 0x1.fffffcp127f);
      } else if (!ftz || std::fabs(want) > 0x1.000004p-126f) {
        int64_t apart = int64_t(got[i] & 0x7FFFFFFF) - int64_t(probe::bits(want) & 0x7FFFFFFF);
        CHECK(std::abs(apart) <= 2);
        CHECK(std::signbit(have) == std::signbit(want));
      } else {
        CHECK(std::fabs(have) <= 0x1.00000Cp-126f);
        CHECK((have == 0 || std::fabs(have) >= 0x1p-126f));
      }
    }
  }
  // div.approx flushes the reciprocal of large divisors.
  std::vector<float> large(32, 0x1.8p126f), numerator;
  for (int i = 0; i < 32; ++i) numerator.push_back(static_cast<float>(i + 1) * 0x1p120f);
  numerator[3] = INFINITY;
  check_real<float>(
      "div.approx.f32 %d, %a, %b;", [](float a, float) { return std::isinf(a) ? NAN : 0.0f; }, numerator, large);
}

TEMPLATE_TEST_CASE("order and sign", "", float, double) {
  using T = TestType;
  Sources<T> s(60);
  const std::string t = type<T>();
  auto least = [](T a, T b) {
    if (a != a) return b;
    if (b != b) return a;
    return a < b || (a == b && std::signbit(a)) ? a : b;
  };
  auto most = [](T a, T b) {
    if (a != a) return b;
    if (b != b) return a;
    return a > b || (a == b && !std::signbit(a)) ? a : b;
  };
  check_real<T>("min" + t + " %d, %a, %b;", least, s.a, s.b);
  check_real<T>("max" + t + " %d, %a, %b;", most, s.a, s.b);
  std::vector<T> numbers = s.a;
  std::erase_if(numbers, [](T v) { return v != v; });
  check_real<T>(
      "neg" + t + " %d, %a;", [](T a) { return -a; }, numbers);
  check_real<T>(
      "abs" + t + " %d, %a;", [](T a) { return std::fabs(a); }, numbers);
  check<T, T, T>(
      "copysign" + t + " %d, %a, %b;", [](T a, T b) { return std::copysign(b, a); }, s.a, s.b);
  if constexpr (sizeof(T) == 4) {
    auto nan_wins = [](auto f) {
      return [=](T a, T b) { return a != a || b != b ? std::numeric_limits<T>::quiet_NaN() : f(a, b); };
    };
    check_real<T>("min.NaN.f32 %d, %a, %b;", nan_wins(least), s.a, s.b);
    check_real<T>("max.NaN.f32 %d, %a, %b;", nan_wins(most), s.a, s.b);
    check_real<T>(
        "max.ftz.f32 %d, %a, %b;", [&](T a, T b) { return most(flush(a), flush(b)); }, s.a, s.b);
    check_real<T>(
        "min.f32 %d, %a, %b, %c;", [&](T a, T b, T c) { return least(least(a, b), c); }, s.a, s.b, s.c);
    check_real<T>(
        "max.NaN.f32 %d, %a, %b, %c;", [&](T a, T b, T c) { return nan_wins(most)(nan_wins(most)(a, b), c); }, s.a, s.b,
        s.c);
    // PTX ISA, min: with three inputs .abs asks for the extreme of their absolute values.
    check_real<T>(
        "min.NaN.abs.f32 %d, %a, %b, %c;",
        [&](T a, T b, T c) { return nan_wins(least)(nan_wins(least)(std::fabs(a), std::fabs(b)), std::fabs(c)); }, s.a,
        s.b, s.c);
    check_real<T>(
        "max.abs.f32 %d, %a, %b, %c;",
        [&](T a, T b, T c) { return most(most(std::fabs(a), std::fabs(b)), std::fabs(c)); }, s.a, s.b, s.c);
    check_real<T>(
        "max.xorsign.abs.f32 %d, %a, %b;",
        [&](T a, T b) {
          T m = most(std::fabs(a), std::fabs(b));
          return std::signbit(a) != std::signbit(b) ? -m : m;
        },
        s.a, s.b);
    check_real<T>(
        "neg.ftz.f32 %d, %a;", [](T a) { return -flush(a); }, numbers);
    check_real<T>(
        "abs.ftz.f32 %d, %a;", [](T a) { return std::fabs(flush(a)); }, numbers);
  }
}

TEMPLATE_TEST_CASE("testp tells what kind of number it is", "", float, double) {
  using T = TestType;
  auto list = probe::corners<T>(100);
  const std::map<std::string, bool (*)(int)> kTests = {
      {"finite", [](int c) { return c != FP_NAN && c != FP_INFINITE; }},
      {"infinite", [](int c) { return c == FP_INFINITE; }},
      {"number", [](int c) { return c != FP_NAN; }},
      {"notanumber", [](int c) { return c == FP_NAN; }},
      {"normal", [](int c) { return c == FP_NORMAL || c == FP_ZERO; }},
      {"subnormal", [](int c) { return c == FP_SUBNORMAL; }},
  };
  // "As a special case, positive and negative zero are considered normal numbers."
  for (const auto& [name, test] : kTests)
    check<uint32_t, T>(
        "{ .reg .pred p; testp." + name + type<T>() + " p, %a; selp.b32 %d, 1, 0, p; }",
        [&, test = test](T v) { return test(std::fpclassify(v)) ? 1u : 0u; }, list);
}

TEST_CASE("NaN of f64 passes through, quiet; f32's becomes 0x7FFFFFFF (as an H200 has it)") {
  const uint64_t kQuiet = 0xFFF8123456789ABC, kSignalling = 0x7FF0000000000002, kMadeQuiet = 0x7FF8000000000002;
  const uint64_t kInvalid = 0xFFF8000000000000;
  struct Case {
    const char* text;
    std::vector<double> sources;
    uint64_t want;
  };
  const double kNan = probe::value<double>(kQuiet), kOther = probe::value<double>(kSignalling);
  const Case kCases[] = {{"add.f64 %d, %a, %b;", {kNan, 1}, kQuiet},
                         {"add.f64 %d, %a, %b;", {1, kOther}, kMadeQuiet},
                         {"sub.f64 %d, %a, %b;", {1, kNan}, kQuiet},
                         {"mul.f64 %d, %a, %b;", {kOther, 1}, kMadeQuiet},
                         {"add.f64 %d, %a, %b;", {INFINITY, -INFINITY}, kInvalid},
                         {"mul.f64 %d, %a, %b;", {INFINITY, 0}, kInvalid},
                         {"div.rn.f64 %d, %a, %b;", {0, 0}, kInvalid},
                         {"fma.rn.f64 %d, %a, %b, %c;", {INFINITY, 0, kNan}, kQuiet},
                         {"max.f64 %d, %a, %b;", {kNan, kOther}, kMadeQuiet},
                         // Of several, b counts before c and that before a; a division takes the dividend.
                         {"add.f64 %d, %a, %b;", {kNan, kOther}, kMadeQuiet},
                         {"fma.rn.f64 %d, %a, %b, %c;", {kOther, kNan, kOther}, kQuiet},
                         {"fma.rn.f64 %d, %a, %b, %c;", {kOther, 1, kNan}, kQuiet},
                         {"div.rn.f64 %d, %a, %b;", {kNan, kOther}, kQuiet},
                         {"sqrt.rn.f64 %d, %a;", {-1}, kInvalid},
                         {"neg.f64 %d, %a;", {kNan}, kQuiet},
                         {"abs.f64 %d, %a;", {kNan}, kQuiet}};
  for (const Case& c : kCases) {
    std::vector<std::vector<uint64_t>> sources;
    for (double v : c.sources) sources.push_back({probe::bits(v)});
    INFO(c.text);
    CHECK(probe::evaluate({c.text, 64, std::vector<int>(sources.size(), 64)}, sources)[0] == c.want);
  }
  for (const char* text : {"neg.f32 %d, %a;", "abs.f32 %d, %a;", "neg.ftz.f32 %d, %a;", "sqrt.rn.f32 %d, %a;"})
    CHECK(probe::evaluate({text, 32, {32}}, {{0xFFC12345}})[0] == 0x7FFFFFFF);
}

TEST_CASE("mixed precision: halves with floats") {
  std::vector<uint16_t> a, b;
  std::vector<float> c;
  auto list = probe::corners<float>(40);
  for (uint32_t i = 0; i < 4000; ++i) {
    a.push_back(static_cast<uint16_t>(i * 17));
    b.push_back(static_cast<uint16_t>(i * 40503 + 77));
    c.push_back(list[i % list.size()]);
  }
  auto bf16 = [](uint16_t v) { return probe::value<float>(uint64_t{v} << 16); };
  check_real<float>(
      "add.f32.bf16 %d, %a, %b;", [&](uint16_t x, float y) { return bf16(x) + y; }, a, c);
  check_real<float>(
      "sub.rz.f32.bf16 %d, %a, %b;",
      [&](uint16_t x, float y) {
        return under(
            FE_TOWARDZERO, [](float p, float q) { return p - q; }, bf16(x), y);
      },
      a, c);
  check_real<float>(
      "fma.rn.f32.bf16 %d, %a, %b, %c;", [&](uint16_t x, uint16_t y, float z) { return std::fma(bf16(x), bf16(y), z); },
      a, b, c);
}
