// The fused sums of the types of 8 bits and fewer, of integers and with block scales, on every instruction set, against
// tests/tensor_model.h and plain integers.

#include <hwy/highway.h>

#include <algorithm>
#include <functional>
#include <random>
#include <vector>

#include "emulator/units/scaled_fp4.h"
#include "emulator/units/tensor_core.h"
#include "tests/catch.h"
#include "tests/tensor_model.h"

namespace {

using namespace emu;
namespace model = tensor_model;

constexpr uint32_t kRows = 64, kDepth = 32;

void on_every_target(const std::function<void(const char*)>& body) {
  const auto supported = hwy::SupportedTargets();
  for (int bit = 0; bit < 63; ++bit) {
    const auto target = int64_t{1} << bit;
    if ((target & HWY_TARGETS & supported) == 0) continue;
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    body(hwy::TargetName(target));
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

model::Type model_type(ElementType type) {
  switch (type) {
    case ElementType::e4m3:
      return model::Type::e4m3;
    case ElementType::e5m2:
      return model::Type::e5m2;
    case ElementType::e2m3:
      return model::Type::e2m3;
    case ElementType::e3m2:
      return model::Type::e3m2;
    default:
      return model::Type::e2m1;
  }
}

/// Bytes of `rows` x 32 elements: any bits; near 1 in exponent; only the highest; mostly zeros.
enum class Class { any, near, highest, sparse, finite };
constexpr Class kClasses[] = {Class::any, Class::near, Class::highest, Class::sparse, Class::finite};

std::vector<std::byte> elements(std::mt19937_64& random, ElementType type, Class kind, uint32_t rows) {
  const model::Format format = model::format_of(model_type(type));
  const uint32_t bits = static_cast<uint32_t>(1 + format.exponent_bits + format.fraction_bits);
  const uint32_t bias = (1u << (format.exponent_bits - 1)) - 1;
  std::vector<std::byte> out(size_t{rows} * kDepth);
  for (std::byte& one : out) {
    const auto r = static_cast<uint32_t>(random());
    uint32_t code = r & ((1u << bits) - 1);
    const uint32_t fraction = r & ((1u << format.fraction_bits) - 1), sign = r >> 31 << (bits - 1);
    if (kind == Class::near) code = sign | (bias - r % 7 / 6) << format.fraction_bits | fraction;
    if (kind == Class::highest) code = sign | ((1u << (bits - 1)) - 2 - r / 8 % 4);
    if (kind == Class::sparse && r % 8) code = sign;
    const model::Number number = model::decode(model_type(type), code);
    if (kind != Class::any && (number.nan || number.infinite)) code = sign;
    one = static_cast<std::byte>(code);
  }
  return out;
}

std::vector<model::Number> numbers(ElementType type, const std::vector<std::byte>& dense, uint32_t row) {
  std::vector<model::Number> out;
  for (uint32_t k = 0; k < kDepth; ++k)
    out.push_back(model::decode(model_type(type), static_cast<uint32_t>(dense[row * kDepth + k])));
  return out;
}

uint32_t accumulator(std::mt19937_64& random, Class kind, bool half) {
  const auto r = static_cast<uint32_t>(random());
  if (kind == Class::any) return half ? r & 0xFFFF : r;
  const uint32_t sign = r >> 31;
  if (random() % 8 == 0) return half ? sign << 15 : sign << 31;
  if (half) return sign << 15 | (15 - 8 + r % 12) << 10 | (r >> 8 & 0x3FF);
  return sign << 31 | (127 - 20 + r / 64 % 40) << 23 | (r & 0x7FFFFF);
}

struct Scales {
  std::vector<uint8_t> a, b;
};

/// Every output on every instruction set.
void check(std::mt19937_64& random, ElementType a_type, ElementType b_type, Class kind, uint32_t columns,
           const AccumulatorUse& use, const Scales* scales = nullptr) {
  const auto a = elements(random, a_type, kind, kRows), b = elements(random, b_type, kind, columns);
  const bool half = use.type == AccumulatorType::f16, narrow = use.rule == FusedRule::hopper8;
  std::vector<uint32_t> old(size_t{kRows} * columns), want = old;
  for (uint32_t& word : old) word = accumulator(random, kind, half);
  for (uint32_t row = 0; row < kRows; ++row)
    for (uint32_t column = 0; column < columns; ++column) {
      const auto result = half ? model::Result::f16 : narrow ? model::Result::f32_13 : model::Result::f32;
      uint32_t& word = want[row * columns + column];
      if (scales && (scales->a[row] == 255 || scales->b[column] == 255)) {
        word = model::nan_of(result);
        continue;
      }
      const auto before = use.input
                              ? model::decode(half ? model::Type::f16 : model::Type::f32, old[row * columns + column])
                              : model::Number{};
      word = model::fused(numbers(a_type, a, row), numbers(b_type, b, column), before, narrow ? 13 : 25, result,
                          scales ? scales->a[row] + scales->b[column] - 254 : 0);
    }
  on_every_target([&](const char* target) {
    INFO(target << " " << name(a_type) << " x " << name(b_type) << " class " << static_cast<int>(kind));
    static PackedOperand packed_a, packed_b;
    packed_a.pack(a_type, kRows, a.data());
    packed_b.pack(b_type, columns, b.data());
    if (scales) packed_a.scale(scales->a), packed_b.scale(scales->b);
    std::vector<uint32_t> d = old;
    std::vector<uint32_t*> rows;
    for (uint32_t row = 0; row < kRows; ++row) rows.push_back(&d[row * columns]);
    fused_multiply_add(packed_a, packed_b, use, rows);
    for (size_t i = 0; i < d.size(); ++i) {
      if (d[i] == want[i]) continue;
      INFO("row " << i / columns << " column " << i % columns << std::hex << " old " << old[i]);
      REQUIRE(d[i] == want[i]);
    }
    CHECK(d == want);
  });
}

constexpr ElementType kSmall[] = {ElementType::e4m3, ElementType::e5m2, ElementType::e2m3, ElementType::e3m2,
                                  ElementType::e2m1};

}  // namespace

TEST_CASE("types of 8 bits and fewer: 25 fraction bits, f32 and f16 accumulators") {
  std::mt19937_64 random(1);
  for (Class kind : kClasses)
    for (ElementType a : kSmall)
      for (ElementType b : kSmall) {
        check(random, a, b, kind, 72, {});
        check(random, a, b, kind, 64, {.type = AccumulatorType::f16});
      }
  check(random, ElementType::e4m3, ElementType::e5m2, Class::near, 16, {.input = false});
}

TEST_CASE("Hopper's rule for e4m3 and e5m2: 13 fraction bits") {
  std::mt19937_64 random(2);
  for (Class kind : kClasses)
    for (ElementType a : {ElementType::e4m3, ElementType::e5m2})
      for (ElementType b : {ElementType::e4m3, ElementType::e5m2}) {
        check(random, a, b, kind, 72, {.rule = FusedRule::hopper8});
        check(random, a, b, kind, 64, {.type = AccumulatorType::f16, .rule = FusedRule::hopper8});
        check(random, a, b, kind, 8, {.input = false, .rule = FusedRule::hopper8});
      }
}

TEST_CASE("scales of rows: their exponents are added to those of the products") {
  std::mt19937_64 random(3);
  const auto scales = [&](uint32_t rows, int low, int high) {
    std::vector<uint8_t> out(rows);
    for (uint8_t& one : out)
      one = static_cast<uint8_t>(low + static_cast<int>(random() % static_cast<uint64_t>(high - low + 1)));
    return out;
  };
  for (Class kind : kClasses)
    for (ElementType a : kSmall)
      for (ElementType b : {ElementType::e4m3, ElementType::e2m1}) {
        for (auto [low, high] : {std::pair{120, 134}, {0, 255}, {0, 40}, {220, 254}}) {
          const Scales both{scales(kRows, low, high), scales(72, low, high)};
          check(random, a, b, kind, 72, {}, &both);
        }
      }
}

TEST_CASE("integers wrap around, or saturate") {
  std::mt19937_64 random(4);
  for (ElementType a_type : {ElementType::u8, ElementType::s8})
    for (ElementType b_type : {ElementType::u8, ElementType::s8})
      for (bool saturate : {false, true})
        for (bool input : {false, true}) {
          constexpr uint32_t kColumns = 72;
          std::vector<std::byte> a(kRows * kDepth), b(kColumns * kDepth);
          const bool extreme = saturate == input;
          for (std::byte& one : a) one = static_cast<std::byte>(extreme && random() % 4 ? 0x80 : random());
          for (std::byte& one : b) one = static_cast<std::byte>(extreme && random() % 4 ? 0x80 : random());
          std::vector<uint32_t> old(kRows * kColumns), want = old;
          for (uint32_t& word : old)
            word = (random() % 2 ? 0x7FFFFF00u : 0x80000000u) + static_cast<uint32_t>(random() % 256);
          const auto value = [](ElementType type, std::byte bits) {
            return type == ElementType::s8 ? static_cast<int8_t>(bits) : static_cast<int>(bits);
          };
          for (uint32_t row = 0; row < kRows; ++row)
            for (uint32_t column = 0; column < kColumns; ++column) {
              int64_t sum = input ? static_cast<int32_t>(old[row * kColumns + column]) : 0;
              for (uint32_t k = 0; k < kDepth; ++k)
                sum += value(a_type, a[row * kDepth + k]) * value(b_type, b[column * kDepth + k]);
              if (saturate) sum = std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX);
              want[row * kColumns + column] = static_cast<uint32_t>(sum);
            }
          on_every_target([&](const char* target) {
            INFO(target << " " << name(a_type) << " x " << name(b_type) << " saturate " << saturate);
            static PackedOperand packed_a, packed_b;
            packed_a.pack(a_type, kRows, a.data());
            packed_b.pack(b_type, kColumns, b.data());
            std::vector<uint32_t> d = old;
            std::vector<uint32_t*> rows;
            for (uint32_t row = 0; row < kRows; ++row) rows.push_back(&d[row * kColumns]);
            fused_multiply_add(packed_a, packed_b, {.type = AccumulatorType::s32, .input = input, .saturate = saturate},
                               rows);
            CHECK(d == want);
          });
        }
}

TEST_CASE("block-scaled e2m1: groups of 16 added exactly, 35 fraction bits") {
  std::mt19937_64 random(5);
  constexpr uint32_t kColumns = 72;
  for (ScaleType type : {ScaleType::ue8m0, ScaleType::ue4m3})
    for (uint32_t block : {16u, 32u})
      for (int kind = 0; kind < 4; ++kind) {
        const uint32_t per_row = 64 / block;
        std::vector<std::byte> a(kRows * 32), b(kColumns * 32);
        for (auto* bytes : {&a, &b})
          for (std::byte& one : *bytes) one = static_cast<std::byte>(kind == 3 && random() % 4 ? 0 : random());
        std::vector<uint8_t> a_scales(kRows * per_row), b_scales(kColumns * per_row);
        for (auto* scales : {&a_scales, &b_scales})
          for (uint8_t& one : *scales) {
            const auto r = static_cast<uint8_t>(random());
            one = kind == 0                  ? r
                  : type == ScaleType::ue8m0 ? static_cast<uint8_t>(119 + r % 16)
                                             : static_cast<uint8_t>(kind == 2 ? r & 7 : 40 + r % 32);
          }
        std::vector<uint32_t> old(kRows * kColumns), want = old;
        for (uint32_t& word : old) word = accumulator(random, kind == 0 ? Class::any : Class::near, false);

        const auto scale_number = [&](uint8_t code) {
          model::Number out;
          if (type == ScaleType::ue4m3) return model::decode(model::Type::e4m3, code & 0x7F);
          out.nan = code == 255;
          out.significand = 1;
          out.exponent = code - 127;
          return out;
        };
        const auto element = [](const std::vector<std::byte>& bytes, uint32_t row, uint32_t k) {
          return model::decode(model::Type::e2m1, static_cast<uint32_t>(bytes[row * 32 + k / 2]) >> (k % 2 * 4) & 15);
        };
        for (uint32_t row = 0; row < kRows; ++row)
          for (uint32_t column = 0; column < kColumns; ++column) {
            const model::Number before = model::decode(model::Type::f32, old[row * kColumns + column]);
            bool nan = before.nan;
            std::vector<model::Term> terms;
            for (uint32_t group = 0; group < 4; ++group) {
              const auto x = scale_number(a_scales[row * per_row + group * 16 / block]);
              const auto y = scale_number(b_scales[column * per_row + group * 16 / block]);
              nan |= x.nan || y.nan;
              model::Wide sum = 0;  // in units of 1/4
              for (uint32_t k = group * 16; k < group * 16 + 16; ++k) {
                const auto p = element(a, row, k), q = element(b, column, k);
                // significand * 2^(exponent - 1), exponents 0 to 2
                const model::Wide product = model::Wide{p.significand << p.exponent} * (q.significand << q.exponent);
                sum += p.negative != q.negative ? -product : product;
              }
              const bool counts = x.significand != 0 && y.significand != 0;
              terms.push_back({sum * x.significand * y.significand, x.exponent + y.exponent,
                               2 + x.fraction_bits + y.fraction_bits, counts});
            }
            if (before.significand != 0)
              terms.push_back({before.negative ? -model::Wide{before.significand} : model::Wide{before.significand},
                               before.exponent, 23});
            uint32_t& word = want[row * kColumns + column];
            if (nan) {
              word = 0x7FFFFFFF;
            } else if (before.infinite) {
              word = old[row * kColumns + column];
            } else {
              int scale = 0;
              const model::Wide sum = model::cut_sum(terms, 35, scale);
              word = model::round(sum, scale, model::Result::f32);
            }
          }
        on_every_target([&](const char* target) {
          INFO(target << " scales " << static_cast<int>(type) << " block " << block << " kind " << kind);
          static ScaledFp4Operand packed_a, packed_b;
          packed_a.pack(kRows, a.data(), type, block, a_scales);
          packed_b.pack(kColumns, b.data(), type, block, b_scales);
          std::vector<uint32_t> d = old;
          std::vector<uint32_t*> rows;
          for (uint32_t row = 0; row < kRows; ++row) rows.push_back(&d[row * kColumns]);
          scaled_multiply_add(packed_a, packed_b, true, rows);
          size_t wrong = 0;
          for (size_t i = 0; i < d.size(); ++i) wrong += d[i] != want[i];
          CHECK(wrong == 0);
        });
      }
}

TEST_CASE("what has no arithmetic is refused") {
  static PackedOperand a, b;
  const std::vector<std::byte> dense(64 * 32);
  std::vector<uint32_t> d(64 * 64);
  std::vector<uint32_t*> rows;
  for (uint32_t row = 0; row < 64; ++row) rows.push_back(&d[row * 64]);
  const auto refuses = [&](ElementType x, ElementType y, const AccumulatorUse& use) {
    a.pack(x, 64, dense.data());
    b.pack(y, 64, dense.data());
    CHECK_THROWS_AS(fused_multiply_add(a, b, use, rows), std::invalid_argument);
  };
  refuses(ElementType::u8, ElementType::e4m3, {.type = AccumulatorType::s32});
  refuses(ElementType::u8, ElementType::u8, {});
  refuses(ElementType::e4m3, ElementType::e4m3, {.type = AccumulatorType::s32});
  refuses(ElementType::f16, ElementType::f16, {.rule = FusedRule::hopper8});
  refuses(ElementType::f16, ElementType::e4m3, {});
  CHECK_THROWS_AS(a.pack(ElementType::s8, 64, dense.data(), true), std::invalid_argument);
}
