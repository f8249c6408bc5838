#pragma once
// The generic address space, and shared-memory addresses.
//
// A shared::cluster address is (CTA rank << 24) | offset in that CTA's window, and an own shared::cta address carries
// the own rank (read off an H200: isa-facts 8.1). Generic addresses of shared and local memory lie in windows far above
// any host or device pointer; everything else is global.

#include <cstdint>

namespace emu {

inline constexpr uint64_t kSharedWindow = uint64_t{1} << 60;
inline constexpr uint64_t kLocalWindow = uint64_t{1} << 61;
inline constexpr uint64_t kWindowBytes = uint64_t{1} << 32;

inline bool is_shared(uint64_t generic) {
  return generic - kSharedWindow < kWindowBytes;
}
inline bool is_local(uint64_t generic) {
  return generic - kLocalWindow < kWindowBytes;
}

inline constexpr uint32_t shared_rank(uint32_t address) {
  return address >> 24;
}
inline constexpr uint32_t shared_offset(uint32_t address) {
  return address & 0xFFFFFFu;
}

}  // namespace emu
