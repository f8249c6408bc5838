#pragma once
// Inputs of the tensor core instructions that are recorded on a real GPU (record_tensor_core.cu writes
// h200_tensor_core.json), made from integers alone. The recorder and the tests that replay it share this file, the
// generator of fused_sum_inputs.h, and nothing else.

#include "fused_sum_inputs.h"

namespace tensor_core_record {

using fused_sums::Layout;
using fused_sums::Random;

enum class Element { f16, bf16, tf32, e4m3, e5m2, u8, s8 };
enum class Result { f32, f16, s32, s32_saturated };

struct Kind {
  const char* name;
  bool wgmma;  ///< m64n8, one instruction of 32 bytes of K; else mma.sync m16n8
  Element a, b;
  Result d;
  int rows() const { return wgmma ? 64 : 16; }
};
inline constexpr int kColumns = 8, kRepeats = 16;  // instructions per class

inline constexpr Kind kKinds[] = {
    {"wgmma.f32.f16.f16", true, Element::f16, Element::f16, Result::f32},
    {"wgmma.f16.f16.f16", true, Element::f16, Element::f16, Result::f16},
    {"wgmma.f32.bf16.bf16", true, Element::bf16, Element::bf16, Result::f32},
    {"wgmma.f32.tf32.tf32", true, Element::tf32, Element::tf32, Result::f32},
    {"wgmma.f32.e4m3.e4m3", true, Element::e4m3, Element::e4m3, Result::f32},
    {"wgmma.f32.e4m3.e5m2", true, Element::e4m3, Element::e5m2, Result::f32},
    {"wgmma.f32.e5m2.e4m3", true, Element::e5m2, Element::e4m3, Result::f32},
    {"wgmma.f32.e5m2.e5m2", true, Element::e5m2, Element::e5m2, Result::f32},
    {"wgmma.f16.e4m3.e4m3", true, Element::e4m3, Element::e4m3, Result::f16},
    {"wgmma.f16.e4m3.e5m2", true, Element::e4m3, Element::e5m2, Result::f16},
    {"wgmma.f16.e5m2.e4m3", true, Element::e5m2, Element::e4m3, Result::f16},
    {"wgmma.f16.e5m2.e5m2", true, Element::e5m2, Element::e5m2, Result::f16},
    {"wgmma.s32.s8.s8", true, Element::s8, Element::s8, Result::s32},
    {"wgmma.s32.s8.u8", true, Element::s8, Element::u8, Result::s32},
    {"wgmma.s32.u8.s8", true, Element::u8, Element::s8, Result::s32},
    {"wgmma.s32.u8.u8", true, Element::u8, Element::u8, Result::s32},
    {"wgmma.satfinite.s32.s8.s8", true, Element::s8, Element::s8, Result::s32_saturated},
    {"wgmma.satfinite.s32.u8.u8", true, Element::u8, Element::u8, Result::s32_saturated},
    {"mma.f32.f16.f16", false, Element::f16, Element::f16, Result::f32},
    {"mma.f16.f16.f16", false, Element::f16, Element::f16, Result::f16},
    {"mma.f32.bf16.bf16", false, Element::bf16, Element::bf16, Result::f32},
    {"mma.f32.tf32.tf32", false, Element::tf32, Element::tf32, Result::f32},
    {"mma.f32.e4m3.e4m3", false, Element::e4m3, Element::e4m3, Result::f32},
    {"mma.f32.e4m3.e5m2", false, Element::e4m3, Element::e5m2, Result::f32},
    {"mma.f32.e5m2.e4m3", false, Element::e5m2, Element::e4m3, Result::f32},
    {"mma.f32.e5m2.e5m2", false, Element::e5m2, Element::e5m2, Result::f32},
    {"mma.f16.e4m3.e4m3", false, Element::e4m3, Element::e4m3, Result::f16},
    {"mma.f16.e5m2.e5m2", false, Element::e5m2, Element::e5m2, Result::f16},
    {"mma.s32.s8.s8", false, Element::s8, Element::s8, Result::s32},
    {"mma.satfinite.s32.u8.s8", false, Element::u8, Element::s8, Result::s32_saturated},
};
inline constexpr int kKindCount = sizeof kKinds / sizeof kKinds[0];

/// Those of fused_sum_inputs.h, and two more.
inline constexpr int kClassCount = fused_sums::kClassCount + 2;
inline const char* class_name(int kind) {
  if (kind < fused_sums::kClassCount) return fused_sums::kClasses[kind];
  return kind == fused_sums::kClassCount ? "signed zeros, few ones" : "rows with an Inf beside rows far below D";
}

inline int element_bytes(Element element) {
  return element == Element::tf32 ? 4 : element == Element::f16 || element == Element::bf16 ? 2 : 1;
}
inline int depth(Element element) {
  return 32 / element_bytes(element);
}
inline bool is_integer(Element element) {
  return element == Element::u8 || element == Element::s8;
}

inline Layout layout_of(Element element) {
  constexpr Layout kLayouts[] = {{5, 10, 0}, {8, 7, 0}, {8, 10, 13}, {4, 3, 0}, {5, 2, 0}};
  return kLayouts[static_cast<int>(element)];
}

inline uint32_t multiplicand(Random& random, int kind, Element element, int row) {
  if (is_integer(element)) {
    const auto r = static_cast<uint32_t>(random.next());
    return (kind % 2 && r & 0x300 ? 0x80u - (r >> 16 & 1) : r) & 0xFF;
  }
  const Layout layout = layout_of(element);
  const auto sign = static_cast<uint32_t>(random.next() & 1);
  const auto fraction = static_cast<uint32_t>(random.next());
  if (kind == fused_sums::kClassCount)
    return fraction & 0x700 ? layout.make(sign, 0, 0) : layout.make(sign, layout.bias(), 0);
  if (kind > fused_sums::kClassCount) {
    if (row % 8 == 0 && fraction % 16 == 0) return layout.make(sign, layout.highest() + 1, 0);
    return layout.make(sign,
                       fused_sums::clamp(layout.bias() - 6 + static_cast<int>(fraction >> 8 & 3), 0, layout.bias()),
                       fraction >> 12);
  }
  return fused_sums::element(random, kind, layout, false);
}

inline uint32_t accumulator(Random& random, int kind, Result result) {
  if (result == Result::s32 || result == Result::s32_saturated) {
    const auto r = static_cast<uint32_t>(random.next());
    return kind % 3 == 0 ? r : (r & 1 ? 0x7FFFFF00u : 0x80000000u) + (r >> 8 & 0xFF);
  }
  const Layout layout = result == Result::f16 ? layout_of(Element::f16) : fused_sums::kF32;
  const auto sign = static_cast<uint32_t>(random.next() & 1);
  const auto fraction = static_cast<uint32_t>(random.next());
  if (kind == fused_sums::kClassCount)
    return fraction & 3 ? layout.make(sign, 0, 0) : layout.make(sign, layout.bias(), 0);
  if (kind > fused_sums::kClassCount)
    return layout.make(
        sign, fused_sums::clamp(layout.bias() + 12 + static_cast<int>(fraction >> 24 & 7), 0, layout.highest()),
        fraction);
  return fused_sums::element(random, kind, layout, true);
}

/// Bits: rows x K, columns x K, rows x columns.
inline fused_sums::Instruction make(int which, int kind, int repeat) {
  const Kind& what = kKinds[which];
  Random random{static_cast<uint64_t>(kind) << 40 | static_cast<uint64_t>(which + 100) << 24 |
                static_cast<uint64_t>(repeat)};
  fused_sums::Instruction one;
  for (int i = 0; i < what.rows() * depth(what.a); ++i)
    one.a.push_back(multiplicand(random, kind, what.a, i / depth(what.a)));
  for (int i = 0; i < kColumns * depth(what.b); ++i) one.b.push_back(multiplicand(random, kind, what.b, 1));
  for (int i = 0; i < what.rows() * kColumns; ++i) one.d.push_back(accumulator(random, kind, what.d));
  return one;
}

}  // namespace tensor_core_record
