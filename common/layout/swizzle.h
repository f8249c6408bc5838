// Shared-memory swizzles: how TMA permutes the 16-byte chunks of a tile, and how an MMA finds them again.
// A swizzle XORs some bits of the absolute shared-memory address with higher ones, so a tile must start where its
// pattern does. Sources: PTX ISA, tensor swizzling modes; CUTLASS's Swizzle<B, M, S> functors
// (tests/golden/cutlass_swizzle.json).
#pragma once

#include <cstdint>

namespace ladder {

/// The modes that an MMA can read, numbered as CUtensorMapSwizzle.
enum class Swizzle : uint8_t {
  kNone = 0,
  k32B = 1,
  k64B = 2,
  k128B = 3,
  k128BAtom32B = 4,  ///< 32-byte chunks instead of 16-byte ones: tcgen05 with MN-major tf32 only
};

/// Bytes of one row of the pattern: the inner extent of a TMA box is at most this (kNone: one 16-byte chunk, no limit).
constexpr uint32_t swizzle_span_bytes(Swizzle swizzle) {
  switch (swizzle) {
    case Swizzle::k32B:
      return 32;
    case Swizzle::k64B:
      return 64;
    case Swizzle::k128B:
    case Swizzle::k128BAtom32B:
      return 128;
    default:
      return 16;
  }
}

/// Bytes after which the pattern repeats: the alignment that a tile needs.
constexpr uint32_t swizzle_period_bytes(Swizzle swizzle) {
  switch (swizzle) {
    case Swizzle::k32B:
      return 256;
    case Swizzle::k64B:
    case Swizzle::k128BAtom32B:
      return 512;
    case Swizzle::k128B:
      return 1024;
    default:
      return 16;
  }
}

/// Where the byte that belongs at shared-memory address `address` is kept.
constexpr uint32_t swizzle_address(Swizzle swizzle, uint32_t address) {
  switch (swizzle) {
    case Swizzle::k32B:  // bit 4 by bit 7
      return address ^ ((address >> 3) & 0x10);
    case Swizzle::k64B:  // bits 5:4 by bits 8:7
      return address ^ ((address >> 3) & 0x30);
    case Swizzle::k128B:  // bits 6:4 by bits 9:7
      return address ^ ((address >> 3) & 0x70);
    case Swizzle::k128BAtom32B:  // bits 6:5 by bits 8:7
      return address ^ ((address >> 2) & 0x60);
    default:
      return address;
  }
}

}  // namespace ladder
