#pragma once
// The part of a box that lies inside its tensor, as loops over rows. Internal to the TMA unit.

#include <cstddef>
#include <cstdint>
#include <span>

#include "emulator/machine/global_memory.h"
#include "emulator/units/tma.h"

namespace emu::tma {

/// Loops innermost first, sorted by global stride, so that neighbours in memory follow each other.
struct Nest {
  /// `pitch`: bytes from row to row on the local side (shared memory or staging).
  static Nest of(const Box& box, uint32_t pitch);

  /// The bytes behind one row: `width` of them, or `inner_width` where the allocation ends with the tensor. A fault
  /// names the box.
  std::span<std::byte> row(const Box& box, const GlobalMemory& memory, uint64_t global_offset, Access access) const;

  uint32_t width = 0;        ///< bytes of each row that move
  uint32_t inner_width = 0;  ///< those of them inside the tensor
  uint64_t global = 0;       ///< address of the first
  uint64_t extent = 0;       ///< from there to past the last byte; 0 when nothing is inside
  uint64_t local = 0;        ///< offset of the first from the box's begin on the local side, before swizzle
  struct Loop {
    uint32_t count = 1;
    uint64_t global_step = 0, local_step = 0;
  } loops[4];
};

/// Calls row(offset from nest.global, offset from nest.local) for each row.
template <class Row>
void for_rows(const Nest& nest, Row&& row) {
  // Copies: a row's bytes may be written through any pointer, and the compiler must not fear for the loops.
  const auto [l0, l1, l2, l3] = nest.loops;
  for (uint32_t i3 = 0; i3 < l3.count; ++i3) {
    for (uint32_t i2 = 0; i2 < l2.count; ++i2) {
      uint64_t global1 = i3 * l3.global_step + i2 * l2.global_step;
      uint64_t local1 = i3 * l3.local_step + i2 * l2.local_step;
      for (uint32_t i1 = 0; i1 < l1.count; ++i1) {
        uint64_t global = global1, local = local1;
        for (uint32_t i0 = 0; i0 < l0.count; ++i0) {
          row(global, local);
          global += l0.global_step;
          local += l0.local_step;
        }
        global1 += l1.global_step;
        local1 += l1.local_step;
      }
    }
  }
}

}  // namespace emu::tma
