// The fused step of the tensor core. The reference below is written from the rule's statement (MMA-Sim, arXiv
// 2511.10909, with the corrections read off an H200) in doubles, and shares nothing with the integer and vector forms
// that it checks.
#include "emulator/units/tensor_core.h"

#include <hwy/highway.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "tests/catch.h"

namespace {

using namespace emu;

struct Format {
  int exponent_bits, fraction_bits, shift;  // shift: bits of the container below the value
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  int lowest() const { return 1 - bias(); }
};

Format format_of(ElementType type) {
  switch (type) {
    case ElementType::f16:
      return {5, 10, 0};
    case ElementType::bf16:
      return {8, 7, 0};
    default:
      return {8, 10, 13};  // tf32: the low 13 bits of the container are not looked at
  }
}
constexpr Format kF32{8, 23, 0}, kF16{5, 10, 0};

/// A value and the exponent with which it enters the alignment.
struct Value {
  double value;
  int exponent;
};

Value decode(uint32_t bits, const Format& format) {
  bits >>= format.shift;
  const uint32_t fraction = bits & ((1u << format.fraction_bits) - 1);
  const int field = static_cast<int>(bits >> format.fraction_bits & ((1u << format.exponent_bits) - 1));
  const bool negative = bits >> (format.fraction_bits + format.exponent_bits) & 1;
  double value;
  int exponent = format.lowest();
  if (field == (1 << format.exponent_bits) - 1) {
    value = fraction ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  } else if (field == 0) {
    value = std::ldexp(fraction, format.lowest() - format.fraction_bits);
  } else {
    exponent = field - format.bias();
    value = std::ldexp(1.0 + std::ldexp(fraction, -format.fraction_bits), exponent);
  }
  return {negative ? -value : value, exponent};
}

uint32_t to_f32_toward_zero(double value) {
  if (value == 0) return 0;
  if (std::fabs(value) >= 0x1p128) return value < 0 ? 0xFF800000 : 0x7F800000;
  auto rounded = static_cast<float>(value);
  if (std::fabs(static_cast<double>(rounded)) > std::fabs(value)) rounded = std::nextafter(rounded, 0.0f);
  return rounded == 0 ? 0 : std::bit_cast<uint32_t>(rounded);
}

uint32_t to_f16_nearest(double value) {
  if (value == 0) return 0;
  const int exponent = std::max(std::ilogb(value), -14);
  const double magnitude = std::ldexp(std::nearbyint(std::ldexp(std::fabs(value), 10 - exponent)), exponent - 10);
  const uint32_t sign = value < 0 ? 0x8000 : 0;
  if (magnitude == 0) return 0;
  if (magnitude >= 65536) return sign | 0x7C00;
  if (magnitude < 0x1p-14) return sign | static_cast<uint32_t>(std::ldexp(magnitude, 24));
  const int e = std::ilogb(magnitude);
  return sign | static_cast<uint32_t>(e + 15) << 10 | static_cast<uint32_t>(std::ldexp(magnitude, 10 - e) - 1024);
}

/// D after one instruction, for one output.
uint32_t reference(const std::vector<Value>& a, const std::vector<Value>& b, const AccumulatorUse& use, uint32_t old) {
  const bool half = use.type == AccumulatorType::f16;
  Value d = use.input ? decode(old & (half ? 0xFFFF : 0xFFFFFFFF), half ? kF16 : kF32) : Value{0, 0};
  d.value = std::ldexp(d.value, -use.scale_shift);
  d.exponent -= use.scale_shift;
  std::vector<Value> terms{d};
  double plain = d.value;
  for (size_t k = 0; k < a.size(); ++k) {
    terms.push_back({a[k].value * b[k].value, a[k].exponent + b[k].exponent});
    plain += terms.back().value;
  }
  if (std::isnan(plain)) return half ? 0x7FFF : 0x7FFFFFFF;
  if (std::isinf(plain)) return half ? (plain < 0 ? 0xFC00 : 0x7C00) : (plain < 0 ? 0xFF800000 : 0x7F800000);
  int largest = -133;
  for (const Value& term : terms) {
    if (term.value != 0) largest = std::max(largest, term.exponent);
  }
  double sum = 0;  // of integers below 2^32: exact
  for (const Value& term : terms) sum += std::trunc(std::ldexp(term.value, 25 - largest));
  const double result = std::ldexp(sum, largest - 25);
  return half ? to_f16_nearest(result) : to_f32_toward_zero(result);
}

/// Bits of random operands and accumulators of one kind of values.
struct Inputs {
  const char* name;
  std::function<uint32_t(std::mt19937_64&, const Format&)> element;
  std::function<uint32_t(std::mt19937_64&)> old;  ///< f32
};

/// The bits of a double in a format whose numbers include it, or nearly: toward zero.
uint32_t encode(double value, const Format& format) {
  if (value == 0 || std::ilogb(value) < format.lowest()) {
    const auto fraction = static_cast<uint32_t>(std::ldexp(std::fabs(value), format.fraction_bits - format.lowest()));
    return (fraction | (std::signbit(value) ? 1u << (format.exponent_bits + format.fraction_bits) : 0)) << format.shift;
  }
  const int exponent = std::min(std::ilogb(value), format.bias());
  const double mantissa = std::ldexp(std::fabs(value), format.fraction_bits - exponent);
  const auto fraction = static_cast<uint32_t>(mantissa) & ((1u << format.fraction_bits) - 1);
  const auto field = static_cast<uint32_t>(exponent + format.bias());
  const uint32_t sign = std::signbit(value) ? 1 : 0;
  return ((sign << format.exponent_bits | field) << format.fraction_bits | fraction) << format.shift;
}

double normal(std::mt19937_64& random) {
  return std::normal_distribution<double>()(random);
}
uint32_t f32(double value) {
  return encode(value, kF32);
}
int between(std::mt19937_64& random, int low, int high) {
  return std::uniform_int_distribution<int>(low, high)(random);
}

/// Random sign and fraction, an exponent from a range.
double with_exponent(std::mt19937_64& random, int low, int high) {
  const double value = std::ldexp(1 + std::uniform_real_distribution<double>(0, 1)(random), between(random, low, high));
  return random() & 1 ? value : -value;
}

std::vector<Inputs> all_inputs() {
  using Random = std::mt19937_64;
  return {
      {"normal", [](Random& r, const Format& f) { return encode(normal(r), f); },
       [](Random& r) { return f32(10 * normal(r)); }},
      {"any bits", [](Random& r, const Format&) { return static_cast<uint32_t>(r()); },
       [](Random& r) { return static_cast<uint32_t>(r()); }},
      {"any finite bits",
       [](Random& r, const Format& f) {
         return static_cast<uint32_t>(r()) & ~(1u << (f.shift + f.fraction_bits + between(r, 0, f.exponent_bits - 1)));
       },
       [](Random& r) { return static_cast<uint32_t>(r()) & ~(1u << between(r, 23, 30)); }},
      {"subnormal",
       [](Random& r, const Format& f) { return encode(with_exponent(r, f.lowest() - f.fraction_bits, f.lowest()), f); },
       [](Random& r) { return f32(with_exponent(r, -149, -126)); }},
      {"small", [](Random& r, const Format& f) { return encode(with_exponent(r, std::max(f.lowest(), -70), -8), f); },
       [](Random& r) { return f32(with_exponent(r, -130, -20)); }},
      {"huge",
       [](Random& r, const Format& f) { return encode(with_exponent(r, f.bias() / 2 - 3, f.bias() / 2 + 3), f); },
       [](Random& r) { return f32(with_exponent(r, 100, 127)); }},
      {"past the largest",
       [](Random& r, const Format& f) { return encode(with_exponent(r, f.bias() - 2, f.bias()), f); },
       [](Random& r) { return f32(with_exponent(r, 125, 127)); }},
      {"nearly 2, one sign: sums past int32",
       [](Random& r, const Format& f) { return encode(2 - std::ldexp(between(r, 1, 3), -f.fraction_bits), f); },
       [](Random& r) { return f32(3.9 + 0.01 * normal(r)); }},
      {"small integers", [](Random& r, const Format& f) { return encode(between(r, -8, 8), f); },
       [](Random& r) { return f32(between(r, -1000, 1000)); }},
      {"powers of two that cancel",
       [](Random& r, const Format& f) { return encode(std::ldexp(r() & 1 ? 1 : -1, between(r, -1, 1)), f); },
       [](Random& r) { return f32(between(r, -4, 4)); }},
      {"signed zeros and ones",
       [](Random& r, const Format& f) {
         return encode(r() % 4 ? std::copysign(0.0, r() & 1 ? 1 : -1) : r() & 1 ? 1 : -1, f);
       },
       [](Random& r) { return r() % 2 ? 0x80000000u : 0u; }},
      {"wide exponents",
       [](Random& r, const Format& f) { return encode(with_exponent(r, f.lowest() / 2, f.bias() / 2), f); },
       [](Random& r) { return f32(with_exponent(r, -100, 100)); }},
      {"some Inf and NaN",
       [](Random& r, const Format& f) {
         const uint32_t infinity = ((1u << f.exponent_bits) - 1) << (f.fraction_bits + f.shift);
         return r() % 200 ? encode(normal(r), f)
                          : infinity | static_cast<uint32_t>(r() % 3) | (r() & 1 ? 0x8000u << f.shift : 0);
       },
       [](Random& r) { return r() % 100 ? f32(normal(r)) : 0x7F800000u | static_cast<uint32_t>(r() & 0x80000001); }},
      {"D far above", [](Random& r, const Format& f) { return encode(normal(r), f); },
       [](Random& r) { return f32(with_exponent(r, 20, 40)); }},
  };
}

/// Operands of one instruction: their 32 bytes a row, and the values that the reference works on.
struct Operand {
  ElementType type;
  std::vector<std::byte> dense;
  std::vector<std::vector<Value>> values;

  Operand(ElementType type, uint32_t rows, const std::function<uint32_t()>& element) : type(type) {
    const uint32_t bytes = element_bytes(type);
    for (uint32_t row = 0; row < rows; ++row) {
      values.emplace_back();
      for (uint32_t k = 0; k < elements_per_step(type); ++k) {
        const uint32_t bits = element() & (bytes == 2 ? 0xFFFFu : 0xFFFFFFFFu);
        values.back().push_back(decode(bits, format_of(type)));
        const size_t at = dense.size();
        dense.resize(at + bytes);
        std::memcpy(&dense[at], &bits, bytes);
      }
    }
  }

  const PackedOperand& pack(PackedOperand& packed, bool negate = false) const {
    packed.pack(type, static_cast<uint32_t>(values.size()), dense.data(), negate);
    return packed;
  }
};

/// D as in tensor memory: lanes of 512 columns.
using Lanes = std::vector<std::vector<uint32_t>>;

Lanes multiply(const PackedOperand& a, const PackedOperand& b, const AccumulatorUse& use, Lanes d) {
  std::vector<uint32_t*> rows;
  for (auto& lane : d) rows.push_back(lane.data());
  fused_multiply_add(a, b, use, rows);
  return d;
}

/// Runs `body` once for each instruction set that the code was compiled for and the machine has.
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

/// Multiplies on every target and compares all outputs with the reference.
size_t check(const Operand& a, const Operand& b, const AccumulatorUse& use, const Lanes& old) {
  const size_t rows = a.values.size(), columns = b.values.size();
  Lanes expected = old;
  for (size_t m = 0; m < rows; ++m) {
    for (size_t n = 0; n < columns; ++n) expected[m][n] = reference(a.values[m], b.values[n], use, old[m][n]);
  }
  on_every_target([&](const char* target) {
    INFO(target);
    PackedOperand packed_a, packed_b;
    const Lanes result = multiply(a.pack(packed_a), b.pack(packed_b), use, old);
    for (size_t m = 0; m < rows; ++m) {
      if (result[m] == expected[m]) continue;
      for (size_t n = 0; n < old[m].size(); ++n) {
        INFO("row " << m << " column " << n << " old " << std::hex << old[m][n]);
        REQUIRE(result[m][n] == expected[m][n]);  // past the last column: unchanged
      }
    }
  });
  return rows * columns;
}

struct TypePair {
  ElementType a, b;
};
constexpr TypePair kPairs[] = {{ElementType::f16, ElementType::f16},
                               {ElementType::bf16, ElementType::bf16},
                               {ElementType::tf32, ElementType::tf32},
                               {ElementType::f16, ElementType::bf16}};

}  // namespace

TEST_CASE("the fused sum equals the rule on every instruction set, f32 accumulator") {
  std::mt19937_64 random(1);
  size_t outputs = 0;
  for (const Inputs& inputs : all_inputs()) {
    for (const TypePair& types : kPairs) {
      INFO(inputs.name << ", " << name(types.a) << " x " << name(types.b));
      const Operand a(types.a, 128, [&] { return inputs.element(random, format_of(types.a)); });
      const Operand b(types.b, 256, [&] { return inputs.element(random, format_of(types.b)); });
      Lanes old(128, std::vector<uint32_t>(256));
      for (auto& lane : old) {
        for (uint32_t& word : lane) word = inputs.old(random);
      }
      outputs += check(a, b, {}, old);
    }
  }
  CHECK(outputs > 1'800'000);
}

TEST_CASE("the fused sum equals the rule, f16 accumulator") {
  std::mt19937_64 random(2);
  for (const Inputs& inputs : all_inputs()) {
    INFO(inputs.name);
    const Operand a(ElementType::f16, 64, [&] { return inputs.element(random, kF16); });
    const Operand b(ElementType::f16, 256, [&] { return inputs.element(random, kF16); });
    Lanes old(64, std::vector<uint32_t>(256));
    for (auto& lane : old) {
      for (uint32_t& word : lane) word = inputs.element(random, kF16) | static_cast<uint32_t>(random() << 16);
    }
    const AccumulatorUse use{AccumulatorType::f16};
    check(a, b, use, old);
    check(a, b, {AccumulatorType::f16, false}, old);
  }
}

TEST_CASE("long sums: the accumulator of one step is the input of the next") {
  std::mt19937_64 random(3);
  for (const TypePair& types : kPairs) {
    Lanes d(64, std::vector<uint32_t>(64));
    for (int step = 0; step < 40; ++step) {
      const Operand a(types.a, 64, [&] { return encode(normal(random), format_of(types.a)); });
      const Operand b(types.b, 64, [&] { return encode(normal(random), format_of(types.b)); });
      check(a, b, {AccumulatorType::f32, step > 0}, d);
      PackedOperand packed_a, packed_b;
      d = multiply(a.pack(packed_a), b.pack(packed_b), {AccumulatorType::f32, step > 0}, d);
    }
  }
}

TEST_CASE("without enable-input-d nothing of the old D enters, not even a NaN") {
  std::mt19937_64 random(4);
  const Operand a(ElementType::f16, 64, [&] { return encode(normal(random), kF16); });
  const Operand b(ElementType::f16, 64, [&] { return encode(normal(random), kF16); });
  const Lanes old(64, std::vector<uint32_t>(64, 0x7FC12345));
  check(a, b, {AccumulatorType::f32, false}, old);
  PackedOperand packed_a, packed_b;
  CHECK(multiply(a.pack(packed_a), b.pack(packed_b), {}, old)[0][0] == 0x7FFFFFFF);
}

TEST_CASE("any legal N, and columns past it stay untouched") {
  std::mt19937_64 random(5);
  for (uint32_t n = 8; n <= 256; n += 8) {
    const Operand a(ElementType::bf16, 64, [&] { return encode(normal(random), format_of(ElementType::bf16)); });
    const Operand b(ElementType::bf16, n, [&] { return encode(normal(random), format_of(ElementType::bf16)); });
    check(a, b, {}, Lanes(64, std::vector<uint32_t>(272, f32(0.5))));
  }
}

TEST_CASE("rows of zeros, and zeros everywhere") {
  std::mt19937_64 random(6);
  int row = 0;
  const Operand sparse(ElementType::f16, 64, [&] { return row++ / 16 % 3 ? 0x8000u : encode(normal(random), kF16); });
  const Operand zeros(ElementType::f16, 64, [] { return 0u; });
  const Operand numbers(ElementType::f16, 128, [&] { return encode(normal(random), kF16); });
  const Operand infinities(ElementType::f16, 128,
                           [&] { return random() % 50 ? encode(normal(random), kF16) : 0x7C00; });
  Lanes old(64, std::vector<uint32_t>(128));
  const uint32_t specials[] = {0, 0x80000000, 0x7F800000, 0xFF800000, 0x7F800001, 1, 0x80000001, f32(1.5), f32(-3)};
  for (auto& lane : old) {
    for (uint32_t& word : lane) word = specials[random() % 9];
  }
  for (const Operand* a : {&sparse, &zeros}) {
    for (const Operand* b : {&numbers, &infinities}) {
      for (bool input : {true, false}) {
        for (uint8_t shift : {0, 3}) check(*a, *b, {AccumulatorType::f32, input, shift}, old);
      }
    }
  }
}

TEST_CASE("scale-input-d multiplies the old D by a power of two before the sum") {
  std::mt19937_64 random(7);
  for (const Inputs& inputs : all_inputs()) {
    INFO(inputs.name);
    const Operand a(ElementType::bf16, 64, [&] { return inputs.element(random, format_of(ElementType::bf16)); });
    const Operand b(ElementType::bf16, 64, [&] { return inputs.element(random, format_of(ElementType::bf16)); });
    Lanes old(64, std::vector<uint32_t>(64));
    for (auto& lane : old) {
      for (uint32_t& word : lane) word = inputs.old(random);
    }
    for (uint8_t shift : {1, 7, 15}) check(a, b, {AccumulatorType::f32, true, shift}, old);
  }
  // 3 * 4 + 5 * 2^-2.
  const Operand a(ElementType::f16, 8, [k = 0]() mutable { return k++ % 16 ? 0u : encode(3, kF16); });
  const Operand b(ElementType::f16, 8, [k = 0]() mutable { return k++ % 16 ? 0u : encode(4, kF16); });
  PackedOperand packed_a, packed_b;
  const Lanes d = multiply(a.pack(packed_a), b.pack(packed_b), {AccumulatorType::f32, true, 2},
                           Lanes(8, std::vector<uint32_t>(8, f32(5))));
  CHECK(d[3][5] == f32(13.25));
}

TEST_CASE("negated operands") {
  std::mt19937_64 random(8);
  for (ElementType type : {ElementType::f16, ElementType::bf16, ElementType::tf32}) {
    const auto element = [&] { return encode(normal(random), format_of(type)); };
    const Operand a(type, 64, element), b(type, 64, element);
    Operand minus_a = a;
    for (auto& row : minus_a.values) {
      for (Value& value : row) value.value = -value.value;
    }
    const Lanes old(64, std::vector<uint32_t>(64, f32(2)));
    PackedOperand packed_a, packed_b;
    const Lanes one = multiply(a.pack(packed_a, true), b.pack(packed_b), {}, old);
    const Lanes other = multiply(a.pack(packed_a), b.pack(packed_b, true), {}, old);
    const Lanes both = multiply(a.pack(packed_a, true), b.pack(packed_b, true), {}, old);
    const Lanes none = multiply(a.pack(packed_a), b.pack(packed_b), {}, old);
    CHECK(one == other);
    CHECK(both == none);
    for (size_t m = 0; m < 64; ++m) {
      for (size_t n = 0; n < 64; ++n) REQUIRE(one[m][n] == reference(minus_a.values[m], b.values[n], {}, old[m][n]));
    }
  }
}

TEST_CASE("A from tensor memory, and rows that are left alone") {
  std::mt19937_64 random(9);
  const Operand a(ElementType::f16, 64, [&] { return encode(normal(random), kF16); });
  const Operand b(ElementType::f16, 64, [&] { return encode(normal(random), kF16); });
  // Two values a column, even k in the low half.
  Lanes columns(64, std::vector<uint32_t>(8));
  for (size_t m = 0; m < 64; ++m) {
    for (size_t k = 0; k < 16; ++k) {
      uint16_t bits;
      std::memcpy(&bits, &a.dense[m * 32 + k * 2], 2);
      columns[m][k / 2] |= uint32_t{bits} << (k % 2 * 16);
    }
  }
  std::vector<const uint32_t*> pointers;
  for (const auto& row : columns) pointers.push_back(row.data());
  PackedOperand from_shared, from_tmem, packed_b;
  from_tmem.pack_tmem(ElementType::f16, pointers);
  b.pack(packed_b);
  const Lanes old(64, std::vector<uint32_t>(64, f32(1)));
  const Lanes expected = multiply(a.pack(from_shared), packed_b, {}, old);
  CHECK(multiply(from_tmem, packed_b, {}, old) == expected);

  Lanes masked = old;
  std::vector<uint32_t*> rows;
  for (size_t m = 0; m < 64; ++m) rows.push_back(m % 3 ? masked[m].data() : nullptr);
  fused_multiply_add(from_tmem, packed_b, {}, rows);
  for (size_t m = 0; m < 64; ++m) CHECK(masked[m] == (m % 3 ? expected[m] : old[m]));
}

TEST_CASE("a few sums by hand") {
  const auto one = [](ElementType type, double x, double y, uint32_t old, AccumulatorUse use = {}) {
    const Operand a(type, 8, [&, k = uint32_t{0}]() mutable {
      return k++ % elements_per_step(type) ? 0 : encode(x, format_of(type));
    });
    const Operand b(type, 8, [&, k = uint32_t{0}]() mutable {
      return k++ % elements_per_step(type) ? 0 : encode(y, format_of(type));
    });
    PackedOperand packed_a, packed_b;
    return multiply(a.pack(packed_a), b.pack(packed_b), use, Lanes(8, std::vector<uint32_t>(8, old)))[2][3];
  };
  const auto f16 = ElementType::f16, bf16 = ElementType::bf16;
  CHECK(one(f16, 2, 3, f32(1)) == f32(7));
  // 1 + 2^-24: below half a unit of f32, cut. 1 - 2^-25 survives the alignment and is then cut to the f32 below 1.
  CHECK(one(f16, 0x1p-12, 0x1p-12, f32(1)) == f32(1));
  CHECK(one(f16, -0x1p-12, 0x1p-12, f32(1)) == 0x3F7FFFFF);
  CHECK(one(f16, -0x1p-13, 0x1p-12, f32(1)) == 0x3F7FFFFF);
  // 2^-26 below 1 is cut before the sum: nothing is left of it, whatever its sign.
  CHECK(one(f16, -0x1p-13, 0x1p-13, f32(1)) == f32(1));
  // A sum of zero is +0; the exponents' floor of -133 cuts products below 2^-158.
  CHECK(one(f16, -1, 1, f32(1)) == 0);
  CHECK(one(f16, -0.0, 1, 0x80000000) == 0);
  CHECK(one(bf16, 0x1p-75, 0x1p-74, 0) == 1);  // 2^-149, the smallest f32
  CHECK(one(bf16, -0x1p-75, 0x1p-75, 0) == 0);
  // Past the largest f32.
  CHECK(one(bf16, 0x1p100, 0x1p100, 0) == 0x7F800000);
  CHECK(one(bf16, -0x1p100, 0x1p100, 0) == 0xFF800000);
  CHECK(one(bf16, 0x1p100, 0x1p100, 0xFF800000) == 0xFF800000);
  // f16 D: to nearest even, past 65519 to Inf, zeros above its 16 bits.
  const AccumulatorUse half{AccumulatorType::f16};
  CHECK(one(f16, 0x1p-11, 1, 0xABCD3C00, half) == 0x3C00);
  CHECK(one(f16, 0x1.8p-10, 1, 0x3C00, half) == 0x3C02);
  CHECK(one(f16, 32768, 2, 0, half) == 0x7C00);
  CHECK(one(f16, -16, 1, 0x7BFF, half) == 0x7BFE);  // 65488, halfway between 65472 and 65504
}

TEST_CASE("where the alignment stands, to the bit") {
  using Products = std::vector<std::pair<double, double>>;
  const auto sum = [](ElementType type, const Products& products, uint32_t old, AccumulatorUse use = {}) {
    const auto factor = [&](auto member) {
      return [&, member, k = size_t{0}]() mutable {
        const size_t at = k++ % elements_per_step(type);
        return at < products.size() ? encode(products[at].*member, format_of(type)) : 0;
      };
    };
    const Operand a(type, 8, factor(&Products::value_type::first)), b(type, 8, factor(&Products::value_type::second));
    PackedOperand packed_a, packed_b;
    return multiply(a.pack(packed_a), b.pack(packed_b), use, Lanes(8, std::vector<uint32_t>(8, old)))[4][1];
  };
  const auto f16 = ElementType::f16, bf16 = ElementType::bf16;

  // The floor of the largest exponent is -133, so the unit of the cut is never below 2^-158: 2^-149, the smallest f32,
  // loses its bit to a subtracted 2^-158, not to 2^-159. A zero D does not raise it: sixteen times 2^-152 are 2^-148.
  CHECK(sum(bf16, {{0x1p-75, 0x1p-74}, {-0x1p-79, 0x1p-79}}, 0) == 0);
  CHECK(sum(bf16, {{0x1p-75, 0x1p-74}, {-0x1p-80, 0x1p-79}}, 0) == 1);
  CHECK(sum(bf16, Products(16, {0x1p-76, 0x1p-76}), 0) == 2);
  CHECK(sum(bf16, Products(16, {0x1p-76, 0x1p-76}), 0x80000000) == 2);
  // A D of 2^-126 does raise it: the unit is 2^-151 and nothing of them is left.
  CHECK(sum(bf16, Products(16, {0x1p-76, 0x1p-76}), 0x00800000) == 0x00800000);

  // f16 D: a subnormal stands at 2^-14, where 2^-42 is cut and 2^-25 makes an exact tie, which goes to even. A zero
  // stands nowhere.
  const AccumulatorUse half{AccumulatorType::f16};
  CHECK(sum(f16, {{0x1p-12, 0x1p-13}, {-0x1p-18, 0x1p-24}}, 0x0001, half) == 2);
  CHECK(sum(f16, {{0x1.8p-12, 0x1p-12}, {-0x1p-18, 0x1p-24}}, 0x0000, half) == 1);
  CHECK(sum(f16, {{0x1.8p-12, 0x1p-12}}, 0x0000, half) == 2);

  // Mantissas are not normalised: 1.5 * 1.5 = 2.25 stands at exponent 0, so a unit of 2^-25 remains.
  CHECK(sum(f16, {{1.5, 1.5}, {-0x1p-12, 0x1p-13}}, f32(-1.25)) == f32(1 - 0x1p-24));
  CHECK(sum(f16, {{1.5, 1.5}, {-0x1p-13, 0x1p-13}}, f32(-1.25)) == f32(1));
}

TEST_CASE("operands that do not belong together are refused") {
  PackedOperand a, b;
  std::vector<std::byte> zeros(256 * 32);
  a.pack(ElementType::f16, 64, zeros.data());
  b.pack(ElementType::tf32, 64, zeros.data());
  std::vector<uint32_t*> rows(64);
  CHECK_THROWS_WITH(fused_multiply_add(a, b, {}, rows), test::contains("no multiplication of f16 by tf32"));
  b.pack(ElementType::f16, 64, zeros.data());
  CHECK_THROWS(fused_multiply_add(a, b, {}, std::span(rows).first(32)));
  CHECK_THROWS(a.pack(ElementType::f16, 60, zeros.data()));
}
