// Instruction descriptors: the 32-bit word that tells tcgen05.mma (kinds f16, tf32, f8f6f4 and i8) its types, majors
// and shape.
//
//   bits    field                bits     field
//   2       sparse               15, 16   A, B is MN-major
//   3       saturate (i8)        17-22    N >> 3
//   4-5     D: f16, f32, s32     24-28    M >> 4 (of both CTAs for a pair)
//   7-9     A type               30-31    largest B shift (.ws): none, 8, 16, 32
//   10-12   B type               0-1 sparsity selector; 6, 23, 29 zero
//   13, 14  negate A, B
//
// Sources: PTX ISA, tcgen05 instruction descriptor; tests/golden/cutlass_instr_descriptors.json.
#pragma once

#include <cassert>
#include <cstdint>

#include "common/layout/operand_tile.h"

namespace ladder {

enum class MmaInput : uint8_t { f16, bf16, tf32, e4m3, e5m2, e2m3, e3m2, e2m1, u8, s8 };
enum class MmaAccumulator : uint8_t { f16 = 0, f32 = 1, s32 = 2 };

/// The code of an input type; codes overlap between kinds, the instruction's .kind tells them apart.
constexpr uint32_t mma_input_code(MmaInput type) {
  switch (type) {
    case MmaInput::bf16:  // f16: 0
    case MmaInput::e5m2:  // e4m3: 0
    case MmaInput::s8:    // u8: 0
      return 1;
    case MmaInput::tf32:
      return 2;
    case MmaInput::e2m3:
      return 3;
    case MmaInput::e3m2:
      return 4;
    case MmaInput::e2m1:
      return 5;
    default:
      return 0;
  }
}

struct InstructionDescriptor {
  MmaInput a;
  MmaInput b;
  MmaAccumulator d;
  uint32_t m;  ///< 64 or 128, for a CTA pair 128 or 256, .ws 32 too
  uint32_t n;  ///< multiple of 8, at most 256
  Major a_major = Major::k;
  Major b_major = Major::k;
  bool negate_a = false;
  bool negate_b = false;
  bool saturate = false;
  bool sparse = false;
  uint32_t largest_shift_code = 0;

  constexpr uint32_t word() const {
    assert(m % 16 == 0 && m <= 256 && n % 8 == 0 && n <= 256 && largest_shift_code < 4);
    return uint32_t{sparse} << 2 | uint32_t{saturate} << 3 | static_cast<uint32_t>(d) << 4 | mma_input_code(a) << 7 |
           mma_input_code(b) << 10 | uint32_t{negate_a} << 13 | uint32_t{negate_b} << 14 |
           static_cast<uint32_t>(a_major) << 15 | static_cast<uint32_t>(b_major) << 16 | n >> 3 << 17 | m >> 4 << 24 |
           largest_shift_code << 30;
  }
};

}  // namespace ladder
