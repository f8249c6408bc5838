#pragma once
// Sizes and offsets rounded up to a granule.

#include <cstdint>

namespace emu {

/// The least multiple of `align` (not 0) that is at least `value`.
constexpr uint32_t align_up(uint32_t value, uint32_t align) {
  return (value + align - 1) / align * align;
}

}  // namespace emu
