#pragma once
// Elements of 4 and 6 bits. In shared memory 16 of them lie packed in each 16 bytes, from the lowest bit on, with
// padding behind (PTX ISA, "Packing format used for matrix A and B by .kind::mxf8f6f4 in Shared Memory"); in tensor
// memory each has a byte. Where a 4-bit element sits in its byte, the ISA says in a figure only: taken as for
// mma.sync's kind::f8f6f4, which wants 0b00xxxx00 (CUTLASS, mma_traits_sm120.hpp); 6-bit elements are the lower bits
// there.

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace emu {

inline constexpr uint32_t kFp4Shift = 2;  ///< lowest bit of a 4-bit element in a byte of tensor memory

/// Element i of 16 packed ones of `bits` bits each becomes out[i], in its low bits. `out` may be `chunk`.
inline void unpack_padded(uint32_t bits, const std::byte* chunk, std::byte* out) {
  constexpr uint32_t kElements = 16;
  std::byte packed[kElements + 1] = {};
  std::memcpy(packed, chunk, kElements);
  for (uint32_t i = 0; i < kElements; ++i) {
    const uint32_t at = i * bits;
    const uint32_t two = std::to_integer<uint32_t>(packed[at / 8]) | std::to_integer<uint32_t>(packed[at / 8 + 1]) << 8;
    out[i] = static_cast<std::byte>(two >> at % 8 & ((1u << bits) - 1));
  }
}

}  // namespace emu
