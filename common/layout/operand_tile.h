// The canonical layouts: where element (row, k) of an MMA operand lies in shared memory, for every major and swizzle,
// and the two byte offsets by which a descriptor says so. Row means row of A (m) or of B (n).
//
// A tile is a grid of atoms, each contiguous (span = swizzle_span_bytes, 16 without swizzle):
//   K-major    8 rows of `span` bytes of K     element at (row % 8) * span + bytes of k within the span
//   MN-major   8 k of `span` bytes of rows     element at (k % 8) * span + bytes of row within the span
//              (128B with 32B atom: 4 k)
// TMA writes one column of atoms, rows running downwards, per box whose inner extent is the span.
//
// What the descriptor's offsets mean, in steps between atoms ("-": not used, 16 by convention):
//                        leading byte offset     stride byte offset
//   K-major, none        along K                 along rows
//   K-major, swizzled    -                       along rows
//   MN-major, none       along K                 along rows
//   MN-major, swizzled   along rows              along K
// One instruction spans 32 bytes of K, so in K-major swizzled tiles it never leaves its column of atoms.
// Sources: PTX ISA, canonical layouts of the shared memory operands;
// tests/golden/cutlass_smem_{layouts,descriptors}.json.
#pragma once

#include <cassert>
#include <cstdint>

#include "common/layout/smem_descriptor.h"
#include "common/layout/swizzle.h"

namespace ladder {

/// Which index is contiguous in memory: K-major for a row-major A (m x k) and B (n x k).
enum class Major : uint8_t { k = 0, mn = 1 };

/// Which neighbours of an atom follow it in memory.
enum class AtomOrder : uint8_t {
  kRowsFirst,  ///< a column of all rows, then the next column: what one TMA box per span of K writes
  kKFirst,     ///< all of K for the first rows, then the next rows
};

/// A tile of `rows` x `k` elements (whole atoms) at an address aligned to swizzle_period_bytes.
struct OperandTile {
  Major major;
  Swizzle swizzle;
  AtomOrder order;
  uint32_t element_bytes;  ///< 1, 2 or 4
  uint32_t rows;
  uint32_t k;

  constexpr uint32_t span_bytes() const { return swizzle_span_bytes(swizzle); }
  constexpr uint32_t atom_rows() const { return major == Major::k ? 8 : span_bytes() / element_bytes; }
  constexpr uint32_t atom_k() const {
    if (major == Major::k) return span_bytes() / element_bytes;
    return swizzle == Swizzle::k128BAtom32B ? 4 : 8;
  }
  constexpr uint32_t atom_bytes() const { return atom_rows() * atom_k() * element_bytes; }
  constexpr uint32_t bytes() const { return rows * k * element_bytes; }

  /// Bytes from an atom to its neighbour along the rows, and along K.
  constexpr uint32_t row_step_bytes() const {
    return order == AtomOrder::kRowsFirst ? atom_bytes() : atom_bytes() * (k / atom_k());
  }
  constexpr uint32_t k_step_bytes() const {
    return order == AtomOrder::kKFirst ? atom_bytes() : atom_bytes() * (rows / atom_rows());
  }

  /// Offset of an element from the start of the tile, before the swizzle.
  constexpr uint32_t plain_offset(uint32_t row, uint32_t k_index) const {
    assert(row < rows && k_index < k && rows % atom_rows() == 0 && k % atom_k() == 0);
    const uint32_t in_row = row % atom_rows();
    const uint32_t in_k = k_index % atom_k();
    const uint32_t in_atom =
        major == Major::k ? in_row * span_bytes() + in_k * element_bytes : in_k * span_bytes() + in_row * element_bytes;
    return row / atom_rows() * row_step_bytes() + k_index / atom_k() * k_step_bytes() + in_atom;
  }

  /// Offset of an element from the start of the tile, as it lies in shared memory.
  constexpr uint32_t offset(uint32_t row, uint32_t k_index) const {
    return swizzle_address(swizzle, plain_offset(row, k_index));
  }

  /// The descriptor's offsets.
  constexpr uint32_t leading_bytes() const {
    if (swizzle == Swizzle::kNone) return k_step_bytes();
    return major == Major::k ? 16 : row_step_bytes();
  }
  constexpr uint32_t stride_bytes() const {
    return major == Major::mn && swizzle != Swizzle::kNone ? k_step_bytes() : row_step_bytes();
  }

  /// Descriptors of all rows and of the K step (32 bytes of K) that begins at `k_index`, of a tile at address `start`.
  /// The step is added before the swizzle, so stepping along K inside an atom only adds to the start address.
  constexpr uint64_t tcgen05_descriptor(uint32_t start, uint32_t k_index = 0) const {
    return tcgen05_smem_descriptor(start + plain_offset(0, k_index), leading_bytes(), stride_bytes(), swizzle);
  }
  constexpr uint64_t wgmma_descriptor(uint32_t start, uint32_t k_index = 0) const {
    return wgmma_smem_descriptor(start + plain_offset(0, k_index), leading_bytes(), stride_bytes(), swizzle);
  }
};

}  // namespace ladder
