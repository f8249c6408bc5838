// cvt from 16-bit floats and from pairs of 8-bit floats, on every code. Expected values: the codes' values by
// small_floats.h, NaN as an H200 has it.

#include <limits>

#include "tests/probes/probe.h"
#include "tests/probes/small_floats.h"

namespace {

using probe::check;
using probe::SmallFloat;

std::vector<uint16_t> all_codes() {
  std::vector<uint16_t> out(65536);
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<uint16_t>(i);
  return out;
}
bool is_nan(double value) {
  return value != value;
}

/// PTX ISA, cvt: what does not fit becomes the nearest that does. NaN becomes 0, in 64 bits only the top one is set
/// (H200).
template <class T>
T integer(double value) {
  if (is_nan(value)) return sizeof(T) == 8 ? static_cast<T>(uint64_t{1} << 63) : T{0};
  if (value <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  if (value >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  return static_cast<T>(value);
}

template <class T>
void to_integer(const std::string& type) {
  const std::vector<uint16_t> codes = all_codes();
  struct Rounding {
    const char* name;
    double (*round)(double);
  };
  for (const Rounding& r : {Rounding{"rni", [](double v) { return std::nearbyint(v); }},
                            Rounding{"rzi", [](double v) { return std::trunc(v); }},
                            Rounding{"rmi", [](double v) { return std::floor(v); }},
                            Rounding{"rpi", [](double v) { return std::ceil(v); }}})
    check<T, uint16_t>(
        std::string("cvt.") + r.name + "." + type + ".f16 %d, %a;",
        [&](uint16_t code) { return integer<T>(r.round(probe::f16().value(code))); }, codes);
}

}  // namespace

TEST_CASE("every f16 and bf16 becomes an f32") {
  check<uint32_t, uint16_t>(
      "cvt.f32.f16 %d, %a;",
      [](uint16_t code) {
        double value = probe::f16().value(code);
        return is_nan(value) ? 0x7FFFFFFFu : probe::bits(static_cast<float>(value));
      },
      all_codes());
  check<uint32_t, uint16_t>(
      "cvt.f32.bf16 %d, %a;", [](uint16_t code) { return uint32_t{code} << 16; }, all_codes());
}

TEST_CASE("every f16 becomes an integer") {
  to_integer<int16_t>("s16");
  to_integer<uint16_t>("u16");
  to_integer<int32_t>("s32");
  to_integer<uint32_t>("u32");
  to_integer<int64_t>("s64");
  to_integer<uint64_t>("u64");
}

TEST_CASE("every pair of 8-bit floats becomes a pair of halves, and every half becomes one") {
  struct Kind {
    const char* type;
    const SmallFloat& format;
  };
  for (const Kind& kind : {Kind{"e4m3x2", probe::e4m3()}, Kind{"e5m2x2", probe::e5m2()}}) {
    const std::string type = kind.type;
    for (const char* relu : {"", ".relu"})
      check<uint32_t, uint16_t>(
          "cvt.rn" + std::string(relu) + ".f16x2." + type + " %d, %a;",
          [&](uint16_t code) {
            auto one = [&](uint32_t byte) {
              double value = kind.format.value(byte);
              return probe::f16().code(*relu && value <= 0 ? 0.0 : value, SmallFloat::even);
            };
            return one(code >> 8) << 16 | one(code & 0xFF);
          },
          all_codes());
    std::vector<uint32_t> pairs;
    for (uint32_t code = 0; code < 65536; ++code) pairs.push_back(code | (code * 40503 + 1) << 16);
    for (const char* relu : {"", ".relu"})
      check<uint16_t, uint32_t>(
          "cvt.rn.satfinite" + std::string(relu) + "." + type + ".f16x2 %d, %a;",
          [&](uint32_t pair) {
            auto one = [&](uint32_t half) {
              double value = probe::f16().value(half & 0xFFFF);
              return kind.format.code(*relu && value <= 0 ? 0.0 : value, SmallFloat::even, true);
            };
            return static_cast<uint16_t>(one(pair >> 16) << 8 | one(pair));
          },
          pairs);
  }
}

TEST_CASE("f32 near every f16 and every bf16, and halfway to the next") {
  for (bool brain : {false, true}) {
    const SmallFloat& format = brain ? probe::bf16() : probe::f16();
    std::vector<float> values;
    for (uint32_t code = 0; code < (brain ? 0x7F80u : 0x7C00u); code += 3) {
      float here = static_cast<float>(format.value(code));
      uint32_t bits = static_cast<uint32_t>(probe::bits(here));
      uint32_t half = brain ? 0x8000 : here < 0x1p-14f ? 0 : 0x1000;
      float between = half ? probe::value<float>(bits + half) : here + 0x1p-25f;
      for (float v : {here, between, std::nextafter(between, 0.0f), std::nextafter(between, INFINITY)})
        for (float sign : {1.0f, -1.0f}) values.push_back(sign * v);
    }
    const std::string type = brain ? "bf16" : "f16";
    check<uint16_t, float>(
        "cvt.rn." + type + ".f32 %d, %a;",
        [&](float v) { return static_cast<uint16_t>(format.code(v, SmallFloat::even)); }, values);
    check<uint16_t, float>(
        "cvt.rz." + type + ".f32 %d, %a;",
        [&](float v) { return static_cast<uint16_t>(format.code(v, SmallFloat::zero)); }, values);
  }
}
