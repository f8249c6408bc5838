#pragma once
// Where the scale factors of block-scaled MMAs lie in tensor memory. Sources: PTX ISA, "Block Scaling" (one byte each,
// chosen by the scale factor's id, the same in all 32-lane partitions); CUTLASS's fragments, evaluated
// (tests/golden/cutlass_tmem_layouts.json).

#include <cstdint>

namespace emu {

/// The factors of A's rows or of B's rows (D's columns), as one CTA holds them.
struct ScaleFactors {
  uint32_t rows = 0;
  uint32_t per_row = 1;  ///< 1, 2 or 4: of K = 32 or 64 elements
  uint32_t id = 0;       ///< byte of the column where a row's first factor is
  /// Of B in a pair with M = 128: lanes 0 to 63, which hold D's first half of columns, have that half's factors, lanes
  /// 64 to 127 the others'.
  bool halves = false;

  uint32_t copies() const { return halves ? 2 : 4; }
  uint32_t columns() const { return ((halves ? rows / 2 : rows) + 31) / 32; }
};

struct ScaleFactorPlace {
  uint32_t lane = 0, column = 0, byte = 0;
};

/// Of factor `factor` of row `row`; `copy`: which of the partitions that must agree.
inline ScaleFactorPlace scale_factor_place(const ScaleFactors& factors, uint32_t row, uint32_t factor, uint32_t copy) {
  const uint32_t half = factors.halves ? factors.rows / 2 : factors.rows;
  const uint32_t r = row % half;
  return {r % 32 + 32 * copy + row / half * 64, r / 32, factors.id + factor};
}

}  // namespace emu
