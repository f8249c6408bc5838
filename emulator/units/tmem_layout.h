#pragma once
// Where things live in tensor memory: the rows and columns of D, the rows of A, and the registers of tcgen05.ld and st.
// Tensor memory is 128 lanes x 512 columns x 32 bits; lanes and columns here are relative to the address the
// instruction gives. Sources: PTX ISA "tcgen05 Data Path Layout", "Matrix fragments"; CUTLASS's fragments, evaluated
// (tests/golden).

#include <cstdint>

#include "emulator/units/descriptor.h"

namespace emu {

struct TmemCell {
  uint32_t lane = 0, column = 0;
};

/// D of one MMA as one CTA holds it. A row is cut into `parts` runs of columns_per_part columns; the runs of a row lie
/// in different lanes at the same tensor memory columns.
struct AccumulatorLayout {
  uint32_t rows = 0;              ///< rows that this CTA holds
  uint32_t first_row = 0;         ///< of the whole MMA, that row 0 is
  uint32_t parts = 1;             ///< 1, 2 or 4
  uint32_t columns_per_part = 0;  ///< tensor memory columns used
  uint32_t part_lanes = 0;        ///< lanes from one part to the next
  bool spread = false;            ///< M = 64: 16 rows in every 32 lanes (from lane 0 or 16 of each quarter)

  uint32_t lane(uint32_t row, uint32_t part) const {
    return (spread ? row % 16 + row / 16 * 32 : row) + part * part_lanes;
  }
  TmemCell cell(uint32_t row, uint32_t n) const { return {lane(row, n / columns_per_part), n % columns_per_part}; }
};

/// m, n: of the whole MMA, validated (decode_instruction_descriptor). `rank`: 0 or 1 in a pair. The sparse pair with M
/// = 128 is the one case that rests on the ISA text alone, whose figures leave the lanes open: read here as those of M
/// = 64.
AccumulatorLayout accumulator_layout(const MmaForm& form, uint32_t m, uint32_t n, uint32_t rank = 0);

// tcgen05.ld and tcgen05.st

enum class TmemShape : uint8_t { s32x32b, s16x64b, s16x128b, s16x256b, s16x32bx2 };

struct TmemAccess {
  TmemShape shape = TmemShape::s32x32b;
  uint32_t repeat = 1;     ///< the N of .xN
  bool packed = false;     ///< .pack::16b / .unpack::16b
  uint32_t immediate = 0;  ///< .16x32bx2: column offset of the second half's lanes
};

/// Registers per thread; 0 when the shape has no such repeat.
uint32_t register_count(const TmemAccess& access);

/// Lanes a warp reaches (16 or 32).
constexpr uint32_t lane_count(TmemShape shape) {
  return shape == TmemShape::s32x32b ? 32 : 16;
}

/// Columns reached, from the address on: [0, column_span).
uint32_t column_span(const TmemAccess& access);

/// What register `reg` of thread `thread` (0..31) holds. Plain: the 32 bits of (lane, column). Packed: its low half is
/// the low half of (lane, column), its high half the low half of (lane, column + 1).
TmemCell register_cell(const TmemAccess& access, uint32_t thread, uint32_t reg);

}  // namespace emu
