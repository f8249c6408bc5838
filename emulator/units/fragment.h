#pragma once
// How the registers of a warp hold the parts of a matrix that wgmma works on. PTX ISA, "wgmma.mma_async: register
// fragments"; CUTLASS's layouts, evaluated (tests/golden/cutlass_wgmma_fragments.json). A warp of a warpgroup holds 16
// of the 64 rows.
//
//  D, 32 bits an element, register i of lane l: row l/4 + 8 * (i/2 % 2), column 8 * (i/4) + 2 * (l%4) + i%2
//  D, f16, register j of lane l:                row l/4 + 8 * (j%2), columns 8 * (j/2) + 2 * (l%4) and the next
//  A, register j of lane l:                     row l/4 + 8 * (j%2), bytes 16 * (j/2) + 4 * (l%4) to + 3 of the 32

#include <cstddef>
#include <cstdint>

#include "emulator/units/descriptor.h"

namespace emu {

inline constexpr uint32_t kFragmentRows = 16;

/// Registers that D of 16 x n takes.
constexpr uint32_t accumulator_registers(AccumulatorType type, uint32_t n) {
  return type == AccumulatorType::f16 ? n / 4 : n / 2;
}

/// `registers[i]`: the 32 lanes of register i. `rows`: 16 rows of `n` words, `stride` words apart; an f16 is the low
/// half of its word. n: a multiple of 8.
void accumulator_to_rows(AccumulatorType type, uint32_t n, const uint32_t* const* registers, uint32_t* rows,
                         uint32_t stride);
void rows_to_accumulator(AccumulatorType type, uint32_t n, const uint32_t* rows, uint32_t stride,
                         uint32_t* const* registers);

/// A of 16 rows x 32 bytes from 4 registers.
void multiplicand_to_rows(const uint32_t* const* registers, std::byte* rows);

}  // namespace emu
