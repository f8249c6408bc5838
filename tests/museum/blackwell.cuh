// What the Blackwell exhibits share: one tile of D, its operands, and the way out of tensor memory.
#pragma once

#include <cstdint>

#include "common/layout/instruction_descriptor.h"
#include "common/layout/operand_tile.h"
#include "common/ptx/shared.cuh"
#include "common/ptx/tcgen05.cuh"
#include "common/ptx/tmem.cuh"
#include "common/ptx/warp.cuh"

namespace museum {

constexpr uint32_t kTileM = 128, kTileN = 32, kTileK = 64, kTmemColumns = kTileN;
constexpr ladder::OperandTile kATile{
    ladder::Major::k, ladder::Swizzle::kNone, ladder::AtomOrder::kRowsFirst, 2, kTileM, kTileK};
constexpr ladder::OperandTile kBTile{
    ladder::Major::k, ladder::Swizzle::kNone, ladder::AtomOrder::kRowsFirst, 2, kTileN, kTileK};
constexpr uint32_t kABytes = kATile.bytes(), kBBytes = kBTile.bytes();
constexpr uint32_t kAStep = 2 * kATile.k_step_bytes(), kBStep = 2 * kBTile.k_step_bytes();  // 16 elements of K
constexpr ladder::InstructionDescriptor kMma{ladder::MmaInput::f16, ladder::MmaInput::f16, ladder::MmaAccumulator::f32,
                                             kTileM, kTileN};

__device__ __forceinline__ uint64_t a_descriptor(const uint32_t* a_tile) {
  return ladder::tcgen05_smem_descriptor(ladder::shared_address(*a_tile), kATile.leading_bytes(), kATile.stride_bytes(),
                                         ladder::Swizzle::kNone);
}
__device__ __forceinline__ uint64_t b_descriptor(const uint32_t* b_tile) {
  return ladder::tcgen05_smem_descriptor(ladder::shared_address(*b_tile), kBTile.leading_bytes(), kBTile.stride_bytes(),
                                         ladder::Swizzle::kNone);
}

/// Issues the MMAs of one K tile: A (kTileM x kTileK) and B (kTileN x kTileK) in shared memory. `accumulate`: the first
/// adds to what the accumulator holds. One thread.
__device__ __forceinline__ void issue_mmas(uint32_t accumulator, uint64_t a, uint64_t b, bool accumulate) {
  for (uint32_t step = 0; step < kTileK / 16; ++step) {
    ladder::tcgen05_mma_f16<1>(accumulator, a + step * (kAStep >> 4), b + step * (kBStep >> 4), kMma.word(),
                               accumulate || step > 0);
  }
}

/// Row `row` of the tile, which lies in the calling thread's lane of tensor memory, on its way to `out`. Whole warps.
__device__ __forceinline__ void store_row(float* out, uint32_t row, uint32_t accumulator) {
  float values[kTileN];
  ladder::tcgen05_ld_32x32b_x32(values, accumulator + (ladder::warp_index() % 4 * 32 << 16));
  ladder::tcgen05_wait_ld();
  for (uint32_t column = 0; column < kTileN; ++column) out[row * kTileN + column] = values[column];
}

}  // namespace museum
