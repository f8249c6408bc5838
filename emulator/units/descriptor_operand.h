#pragma once
// Where the elements of a tensor core operand live in shared memory, and fetching them. The layouts are those of the
// matrix descriptor (PTX ISA "tcgen05 Canonical Layouts"); tcgen05 and wgmma share them.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "emulator/units/descriptor.h"

namespace emu {

/// The shared memory that one CTA owns: bytes [begin, end) of its shared::cta window, `base[address]` being the byte at
/// `address`.
struct SharedWindow {
  const std::byte* base = nullptr;
  uint32_t begin = 0, end = 0;
};

/// The part of an operand that one MMA reads.
struct OperandShape {
  uint32_t rows = 0;  ///< M or N rows read from this CTA's memory, a multiple of 8
  ElementType type = ElementType::f16;
  Major major = Major::k;
};

/// Traps when descriptor and shape do not fit each other: MN-major of a type that has none in this swizzle mode, the
/// 32-byte atom for another type than tf32 or K-major.
void check_operand(const MatrixDescriptor& descriptor, const OperandShape& shape, std::string_view operand);

/// Smallest range of shared addresses that holds every byte read: [first, last].
struct ByteExtent {
  uint64_t first = 0, last = 0;
};
ByteExtent operand_extent(const MatrixDescriptor& descriptor, const OperandShape& shape);

/// Copies the operand into `out`: shape.rows rows of 32 bytes, K fastest, whatever the major and swizzle.
/// Traps naming the first and last byte when the operand reaches outside the window.
void gather_operand(const SharedWindow& shared, const MatrixDescriptor& descriptor, const OperandShape& shape,
                    std::string_view operand, std::byte* out);

/// Shared address of the 16-byte chunk `index` of the operand (after the swizzle). K-major: chunk index = 2 * row +
/// half, 16 bytes of K. MN-major: chunk index = k * (rows / T) + row / T, T = elements per 16 bytes.
uint64_t chunk_address(const MatrixDescriptor& descriptor, const OperandShape& shape, uint32_t index);
constexpr uint32_t chunk_count(const OperandShape& shape) {
  return shape.rows * kOperandBytesPerRow / 16;
}

/// Calls visit(address, bytes) for each piece of shared memory that the operand is read from, neighbours merged.
template <class Visit>
void for_each_piece(const MatrixDescriptor& descriptor, const OperandShape& shape, Visit visit) {
  uint64_t begin = 0, end = 0;
  for (uint32_t i = 0; i < chunk_count(shape); ++i) {
    const uint64_t address = chunk_address(descriptor, shape, i);
    if (address != end || begin == end) {
      if (begin != end) visit(begin, end - begin);
      begin = address;
    }
    end = address + 16;
  }
  if (begin != end) visit(begin, end - begin);
}

}  // namespace emu
