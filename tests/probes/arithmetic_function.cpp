// Approximate functions. PTX ISA gives each an error bound; the emulator must stay inside it, and give the special
// values of the ISA's tables.

#include <cmath>
#include <functional>

#include "tests/probes/probe.h"
#include "tests/probes/small_floats.h"

namespace {

struct Bound {
  double relative, absolute;
};

/// Runs `text` on floats and compares with `exact`, in double.
void within(const std::string& text, const std::vector<float>& in, const std::function<double(double)>& exact,
            Bound bound) {
  auto got = probe::evaluate({text, 32, {32}}, {probe::all_bits(in)});
  for (size_t i = 0; i < in.size(); ++i) {
    double want = exact(in[i]), have = probe::value<float>(got[i]);
    INFO(text << " of " << in[i] << " gives " << have << ", exactly " << want);
    if (want != want)
      CHECK(got[i] == 0x7FFFFFFF);
    else if (std::isinf(static_cast<float>(want)))
      CHECK(have == static_cast<float>(want));
    else
      CHECK(std::fabs(have - want) <= std::max(bound.relative * std::fabs(want), bound.absolute) + 0x1p-149);
  }
}

std::vector<float> spread(float low, float high, int count) {
  std::vector<float> out;
  for (int i = 0; i <= count; ++i)
    out.push_back(low + (high - low) * static_cast<float>(i) / static_cast<float>(count));
  return out;
}

void special(const std::string& text, const std::vector<std::pair<float, float>>& rows) {
  std::vector<float> in;
  for (const auto& row : rows) in.push_back(row.first);
  auto got = probe::evaluate({text, 32, {32}}, {probe::all_bits(in)});
  for (size_t i = 0; i < rows.size(); ++i) {
    INFO(text << " of " << rows[i].first);
    float want = rows[i].second;
    CHECK(got[i] == (want != want ? 0x7FFFFFFFu : probe::bits(want)));
  }
}

}  // namespace

TEST_CASE("approximate functions stay within the error of the ISA") {
  std::vector<float> positive;
  for (float v : probe::corners<float>(300)) positive.push_back(std::fabs(v));
  std::vector<float> any = probe::corners<float>(300);
  // "rcp.approx.f32: maximum relative error 2^-23"; rsqrt 2^-22.9; sqrt 2^-23.
  within("rcp.approx.f32 %d, %a;", any, [](double v) { return 1 / v; }, {0x1p-23, 0});
  within("rsqrt.approx.f32 %d, %a;", positive, [](double v) { return 1 / std::sqrt(v); }, {0x1p-22, 0});
  within("sqrt.approx.f32 %d, %a;", positive, [](double v) { return std::sqrt(v); }, {0x1p-23, 0});
  // sin, cos: absolute error 2^-20.9 in [-pi, pi]. lg2: 2^-22 absolute in (0.5, 2), relative 2^-22 elsewhere.
  within("sin.approx.f32 %d, %a;", spread(-3.14159f, 3.14159f, 1000), [](double v) { return std::sin(v); },
         {0, 0x1p-20});
  within("cos.approx.f32 %d, %a;", spread(-3.14159f, 3.14159f, 1000), [](double v) { return std::cos(v); },
         {0, 0x1p-20});
  within("lg2.approx.f32 %d, %a;", spread(0.001f, 8, 1000), [](double v) { return std::log2(v); }, {0x1p-22, 0x1p-22});
  // ex2: relative 2^-22.5. tanh: relative 2^-11.
  within("ex2.approx.f32 %d, %a;", spread(-140, 130, 1000), [](double v) { return std::exp2(v); }, {0x1p-22, 0});
  within("tanh.approx.f32 %d, %a;", spread(-10, 10, 1000), [](double v) { return std::tanh(v); }, {0x1p-11, 0});
}

TEST_CASE("special values of functions") {
  // The tables of PTX ISA, rcp ... tanh.
  const float kInf = INFINITY, kNan = NAN, kSub = 0x1p-140f;
  special("rcp.approx.f32 %d, %a;", {{-kInf, -0.0f}, {-0.0f, -kInf}, {0.0f, kInf}, {kInf, 0.0f}, {kNan, kNan}});
  special("rcp.approx.ftz.f32 %d, %a;", {{kSub, kInf}, {-kSub, -kInf}, {0x1p127f, 0.0f}});
  special("sqrt.approx.f32 %d, %a;",
          {{-kInf, kNan}, {-1, kNan}, {-0.0f, -0.0f}, {0.0f, 0.0f}, {kInf, kInf}, {kNan, kNan}});
  special("sqrt.approx.ftz.f32 %d, %a;", {{-kSub, -0.0f}, {kSub, 0.0f}});
  special("rsqrt.approx.f32 %d, %a;",
          {{-kInf, kNan}, {-1, kNan}, {-0.0f, -kInf}, {0.0f, kInf}, {kInf, 0.0f}, {kNan, kNan}});
  special("rsqrt.approx.ftz.f32 %d, %a;", {{-kSub, -kInf}, {kSub, kInf}});
  special("sin.approx.ftz.f32 %d, %a;",
          {{-kInf, kNan}, {-kSub, -0.0f}, {-0.0f, -0.0f}, {0.0f, 0.0f}, {kSub, 0.0f}, {kInf, kNan}});
  special("cos.approx.ftz.f32 %d, %a;", {{-kInf, kNan}, {-kSub, 1}, {-0.0f, 1}, {0.0f, 1}, {kSub, 1}, {kNan, kNan}});
  special("lg2.approx.f32 %d, %a;",
          {{-kInf, kNan}, {-1, kNan}, {-0.0f, -kInf}, {0.0f, -kInf}, {kInf, kInf}, {kNan, kNan}, {8, 3}});
  special("lg2.approx.ftz.f32 %d, %a;", {{-kSub, -kInf}, {kSub, -kInf}});
  special("ex2.approx.f32 %d, %a;", {{-kInf, 0.0f}, {-0.0f, 1}, {0.0f, 1}, {kInf, kInf}, {kNan, kNan}, {10, 1024}});
  special("ex2.approx.ftz.f32 %d, %a;", {{-kSub, 1}, {kSub, 1}, {-130, 0.0f}});
  special("tanh.approx.f32 %d, %a;", {{-kInf, -1}, {-0.0f, -0.0f}, {0.0f, 0.0f}, {kInf, 1}, {kNan, kNan}});
}

TEST_CASE("approximate functions of f64") {
  auto in = probe::corners<double>(300);
  std::erase_if(in, [](double v) { return v != v; });
  auto run = [&](const std::string& text) { return probe::evaluate({text, 64, {64}}, {probe::all_bits(in)}); };
  auto reciprocal = run("rcp.approx.ftz.f64 %d, %a;"), root = run("rsqrt.approx.ftz.f64 %d, %a;");
  auto full = run("rsqrt.approx.f64 %d, %a;");
  for (size_t i = 0; i < in.size(); ++i) {
    double v = std::fpclassify(in[i]) == FP_SUBNORMAL ? std::copysign(0.0, in[i]) : in[i];
    double want = 1 / v;
    if (std::fpclassify(want) == FP_SUBNORMAL) want = std::copysign(0.0, want);
    // "maximum relative error 2^-23 with the lower 32 bits zero".
    INFO("rcp.approx.ftz.f64 of " << in[i]);
    CHECK((reciprocal[i] & 0xFFFFFFFFu) == 0);
    double have = probe::value<double>(reciprocal[i]);
    if (std::isinf(want) || want == 0)
      CHECK(reciprocal[i] == probe::bits(want));
    else
      CHECK(std::fabs(have - want) <= 0x1p-19 * std::fabs(want));
    if (v > 0 && !std::isinf(v)) {
      CHECK((root[i] & 0xFFFFFFFFu) == 0);
      CHECK(std::fabs(probe::value<double>(root[i]) * std::sqrt(v) - 1) <= 0x1p-19);
    }
    if (in[i] > 0 && !std::isinf(in[i]))
      CHECK(std::fabs(probe::value<double>(full[i]) * std::sqrt(in[i]) - 1) <= 0x1p-22);
  }
}

TEST_CASE("functions of halves") {
  std::vector<uint64_t> codes;
  for (uint64_t code = 0; code < 65536; code += 7) codes.push_back(code);
  struct Case {
    const char* text;
    const probe::SmallFloat& format;
    double (*exact)(double);
    double relative, absolute;
    bool ftz;
  };
  // PTX ISA: ex2.f16 2^-9.9 relative, ex2.bf16 2^-7; tanh.f16 2^-10.987 absolute, tanh.bf16 2^-8. An H200 cuts off bits
  // and is beyond the last by a hair (0.00390651 at 0.746094).
  const Case kCases[] = {
      {"ex2.approx.f16 %d, %a;", probe::f16(), [](double v) { return std::exp2(v); }, 0x1p-9, 0x1p-24, false},
      {"ex2.approx.ftz.bf16 %d, %a;", probe::bf16(), [](double v) { return std::exp2(v); }, 0x1p-7, 0, true},
      {"tanh.approx.f16 %d, %a;", probe::f16(), [](double v) { return std::tanh(v); }, 0, 0x1.025p-11, false},
      {"tanh.approx.bf16 %d, %a;", probe::bf16(), [](double v) { return std::tanh(v); }, 0, 0x1.0006p-8, false}};
  for (const Case& c : kCases) {
    auto got = probe::evaluate({c.text, 16, {16}}, {codes});
    for (size_t i = 0; i < codes.size(); ++i) {
      double v = c.format.value(static_cast<uint32_t>(codes[i])), want = c.exact(v);
      double have = c.format.value(static_cast<uint32_t>(got[i]));
      INFO(c.text << " of " << v << " gives " << have << ", exactly " << want);
      if (want != want)
        CHECK(got[i] == 0x7FFF);
      else if (std::isinf(c.format.value(c.format.code(want, probe::SmallFloat::even))))
        CHECK(have == INFINITY);
      else if (c.ftz && std::fabs(want) < 0x1p-126)
        CHECK(have == 0);
      else
        CHECK(std::fabs(have - want) <= c.relative * std::fabs(want) + c.absolute);
    }
  }
}
