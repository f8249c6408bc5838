#pragma once
// Inputs of the fused sums that were recorded on a real GPU (record_fused_sums.cu wrote h200_fused_sums.json), made
// from integers alone so that every machine makes the same bits. The recorder and the test that replays it share this
// file and nothing else.

#include <cstdint>
#include <vector>

namespace fused_sums {

inline constexpr int kRows = 64, kColumns = 8;  // of D, one wgmma
inline constexpr int kRepeats = 64;             // instructions per class and type

enum class Type { f16, bf16, tf32, f16_to_f16 };  // the last accumulates in f16
inline constexpr Type kTypes[] = {Type::f16, Type::bf16, Type::tf32, Type::f16_to_f16};
inline const char* name(Type type) {
  constexpr const char* names[] = {"f16", "bf16", "tf32", "f16_to_f16"};
  return names[static_cast<int>(type)];
}

inline constexpr const char* kClasses[] = {
    "any bits",          "exponents near 0",       "any finite exponent",    "subnormal and lowest",
    "highest exponents", "one exponent, nearly 2", "powers of two",          "mostly zeros",
    "D far above",       "about the largest f32",  "about the smallest f32", "some Inf and NaN"};
inline constexpr int kClassCount = sizeof kClasses / sizeof kClasses[0];

inline int depth(Type type) {
  return type == Type::tf32 ? 8 : 16;
}

/// splitmix64 over a counter.
struct Random {
  uint64_t state;
  uint64_t next() {
    uint64_t z = state += 0x9E3779B97F4A7C15;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return z ^ z >> 31;
  }
  int between(int low, int high) { return low + static_cast<int>(next() % static_cast<uint64_t>(high - low + 1)); }
};

struct Layout {
  int exponent_bits, fraction_bits, shift;
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  int highest() const { return (1 << exponent_bits) - 2; }  // exponent field of finite numbers
  uint32_t make(uint32_t sign, int field, uint32_t fraction) const {
    const uint32_t mask = (1u << fraction_bits) - 1;
    return ((sign << exponent_bits | static_cast<uint32_t>(field)) << fraction_bits | (fraction & mask)) << shift;
  }
};
inline Layout layout_of(Type type) {
  switch (type) {
    case Type::bf16:
      return {8, 7, 0};
    case Type::tf32:
      return {8, 10, 13};
    default:
      return {5, 10, 0};
  }
}
inline constexpr Layout kF32{8, 23, 0};

inline int clamp(int value, int low, int high) {
  return value < low ? low : value > high ? high : value;
}

/// One number of class `kind` in `layout`; `accumulator`: as the old D.
inline uint32_t element(Random& random, int kind, const Layout& layout, bool accumulator) {
  const int bias = layout.bias(), top = layout.highest();
  const auto sign = static_cast<uint32_t>(random.next() & 1);
  auto fraction = static_cast<uint32_t>(random.next());
  const auto field = [&](int low, int high) { return random.between(clamp(low, 0, top), clamp(high, 0, top)); };
  switch (kind) {
    case 0:
      return layout.make(sign, random.between(0, top + 1), fraction) | (fraction >> 16 & ((1u << layout.shift) - 1));
    case 1:
      return layout.make(sign, accumulator ? field(bias - 4, bias + 4) : field(bias - 3, bias), fraction);
    case 2:
      return layout.make(sign, field(0, top), fraction);
    case 3:
      return layout.make(sign, field(0, 2), fraction);
    case 4:
      return layout.make(sign, field(top - 2, top), fraction);
    case 5:
      return layout.make(0, accumulator ? bias + 1 : bias, ~(fraction & 3));
    case 6:
      return layout.make(sign, field(bias - 1, bias + 1), 0);
    case 7:
      return fraction & 0x300 ? layout.make(sign, 0, 0) : layout.make(sign, bias, fraction);
    case 8:
      return layout.make(sign, accumulator ? field(bias + 10, bias + 34) : field(bias - 2, bias), fraction);
    case 9:
      return layout.make(sign, accumulator ? field(top - 6, top) : field(bias + bias / 2 - 2, bias + bias / 2 + 1),
                         fraction);
    case 10:
      return layout.make(sign, accumulator ? field(0, 8) : field(bias - 75, bias - 60), fraction);
    default:
      if (random.next() % (accumulator ? 32 : 64) == 0)
        return layout.make(sign, top + 1, random.next() % 3 ? 0 : fraction);
      return layout.make(sign, field(bias - 2, bias), fraction);
  }
}

struct Instruction {
  std::vector<uint32_t> a, b, d;  // bits: rows x K, columns x K, rows x columns
};

inline Instruction make(int kind, Type type, int repeat) {
  Random random{static_cast<uint64_t>(kind) << 40 | static_cast<uint64_t>(type) << 32 | static_cast<uint64_t>(repeat)};
  const Layout layout = layout_of(type);
  Instruction result;
  for (int i = 0; i < kRows * depth(type); ++i) result.a.push_back(element(random, kind, layout, false));
  for (int i = 0; i < kColumns * depth(type); ++i) result.b.push_back(element(random, kind, layout, false));
  const Layout& old = type == Type::f16_to_f16 ? layout : kF32;
  for (int i = 0; i < kRows * kColumns; ++i) result.d.push_back(element(random, kind, old, true));
  return result;
}

/// The checksum of a class: over every word of D of every instruction in order.
inline uint64_t checksum(uint64_t hash, uint32_t word) {
  return hash * 1000003 + word;
}

}  // namespace fused_sums
