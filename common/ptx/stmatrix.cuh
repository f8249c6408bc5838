// Stores of small matrices from the registers of a warp to shared memory (sm_90).
#pragma once

#include <cstdint>

namespace ladder {

/// Stores four 8 x 8 matrices of 16-bit elements, of which each lane holds two neighbours of each: row l / 4, columns
/// 2 * (l % 4) and + 1. Lane l gives the shared address, a multiple of 16, of row l % 8 of matrix l / 8. Whole warps.
/// PTX ISA: stmatrix.
__device__ __forceinline__ void stmatrix_x4(uint32_t row, uint32_t m0, uint32_t m1, uint32_t m2, uint32_t m3) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row), "r"(m0), "r"(m1), "r"(m2),
               "r"(m3)
               : "memory");
}

}  // namespace ladder
