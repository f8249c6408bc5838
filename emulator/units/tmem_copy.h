#pragma once
// tcgen05.cp: which bytes of shared memory go to which cells of tensor memory. Sources: PTX ISA, "tcgen05.cp",
// "Optional Decompression"; CUTLASS's traits of these copies (copy_traits_sm100.hpp); where row r starts: TVM's page on
// tcgen05.cp (the K-major canonical layout, rows of 16 or 32 bytes).

#include <array>
#include <cstddef>
#include <cstdint>

#include "emulator/units/descriptor_operand.h"

namespace emu {

enum class CopyShape : uint8_t {
  s128x256b,
  s4x256b,
  s128x128b,
  s64x128b_02_13,  ///< .warpx2::02_13
  s64x128b_01_23,  ///< .warpx2::01_23
  s32x128b,        ///< .warpx4
};

/// How 16 bytes of shared memory become 16 bytes of tensor memory.
enum class Decompression : uint8_t {
  none,
  b6x16_p32,  ///< 16 elements of 6 bits and 4 bytes of padding: each gets a byte (padded_elements.h)
  b4x16_p64,  ///< 16 elements of 4 bits and 8 bytes of padding
};

/// Rows that are read, bytes of each, and how often each is written.
struct CopyExtent {
  uint32_t rows = 0, row_bytes = 0, copies = 1;
};
constexpr CopyExtent extent_of(CopyShape shape) {
  switch (shape) {
    case CopyShape::s128x256b:
      return {128, 32, 1};
    case CopyShape::s4x256b:
      return {4, 32, 1};
    case CopyShape::s128x128b:
      return {128, 16, 1};
    case CopyShape::s64x128b_02_13:
    case CopyShape::s64x128b_01_23:
      return {64, 16, 2};
    case CopyShape::s32x128b:
      return {32, 16, 4};
  }
  return {};
}

/// Lane, from the address's on, to which copy `copy` of row `row` goes.
constexpr uint32_t copy_lane(CopyShape shape, uint32_t row, uint32_t copy) {
  switch (shape) {
    case CopyShape::s4x256b:
      return 32 * row;
    case CopyShape::s64x128b_02_13:
      return row + 64 * copy;
    case CopyShape::s64x128b_01_23:
      return row / 32 * 64 + row % 32 + 32 * copy;
    default:
      return row + 32 * copy;
  }
}
/// One more than the highest of them.
constexpr uint32_t lane_span(CopyShape shape) {
  return shape == CopyShape::s4x256b ? 97 : 128;
}

/// The rows, row_bytes each, as they come out of shared memory. Traps when one reaches outside the window.
using CopiedRows = std::array<std::byte, 128 * 32>;
void gather_copy(const SharedWindow& shared, const MatrixDescriptor& descriptor, CopyShape shape,
                 Decompression decompression, CopiedRows& out);

/// 16 bytes of shared memory into 16 bytes of tensor memory.
void decompress(Decompression decompression, const std::byte* chunk, std::byte* out);

}  // namespace emu
