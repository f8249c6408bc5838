// Shared-memory matrix descriptors: the 64-bit words by which tcgen05.mma and wgmma find an operand in shared memory.
//
//   bits    field                     tcgen05                            wgmma
//   0-13    start address >> 4        the same
//   16-29   leading byte offset >> 4  the same
//   32-45   stride byte offset >> 4   the same
//   46-48   constant                  0b001                              0
//   49-51   base offset               the same, 0 for aligned tiles
//   61-63   swizzle                   0 none, 1 128B with 32B atom,      (62-63) 0 none, 1 128B,
//                                     2 128B, 4 64B, 6 32B               2 64B, 3 32B
//
// What the two offsets mean depends on major and swizzle: see operand_tile.h.
// Sources: PTX ISA, tcgen05 shared memory descriptor and wgmma matrix descriptor;
// tests/golden/cutlass_smem_descriptors.json.
#pragma once

#include <cassert>
#include <cstdint>

#include "common/layout/swizzle.h"

namespace ladder {

/// The fields that both chips share. `start`: shared address; its CTA-rank bits (24 up) are dropped, so the operand is
/// always in the executing CTA's own window. Offsets in bytes, multiples of 16 below 2^18. Base offset 0: the swizzle
/// pattern starts on its period.
constexpr uint64_t smem_descriptor_fields(uint32_t start, uint32_t leading_bytes, uint32_t stride_bytes) {
  assert(start % 16 == 0 && leading_bytes % 16 == 0 && stride_bytes % 16 == 0);
  assert(leading_bytes < (1u << 18) && stride_bytes < (1u << 18));
  return uint64_t{(start & 0x3FFFF) >> 4} | uint64_t{leading_bytes >> 4} << 16 | uint64_t{stride_bytes >> 4} << 32;
}

/// The descriptor as tcgen05 (sm_100) reads it.
constexpr uint64_t tcgen05_smem_descriptor(uint32_t start, uint32_t leading_bytes, uint32_t stride_bytes,
                                           Swizzle swizzle) {
  const uint64_t code = swizzle == Swizzle::k128BAtom32B ? 1
                        : swizzle == Swizzle::k128B      ? 2
                        : swizzle == Swizzle::k64B       ? 4
                        : swizzle == Swizzle::k32B       ? 6
                                                         : 0;
  return smem_descriptor_fields(start, leading_bytes, stride_bytes) | uint64_t{1} << 46 | code << 61;
}

/// The descriptor as wgmma (sm_90a) reads it, which has no 128B mode with a 32B atom.
constexpr uint64_t wgmma_smem_descriptor(uint32_t start, uint32_t leading_bytes, uint32_t stride_bytes,
                                         Swizzle swizzle) {
  assert(swizzle != Swizzle::k128BAtom32B);
  const uint64_t code = swizzle == Swizzle::k128B ? 1 : swizzle == Swizzle::k64B ? 2 : swizzle == Swizzle::k32B ? 3 : 0;
  return smem_descriptor_fields(start, leading_bytes, stride_bytes) | code << 62;
}

}  // namespace ladder
