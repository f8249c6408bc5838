#pragma once

#include <cstdint>

namespace emu {

inline constexpr uint64_t kGoldenRatio = 0x9E3779B97F4A7C15ull;

/// SplitMix64's finaliser (Steele, Lea, Flood 2014): every input bit moves every output bit.
inline constexpr uint64_t mix(uint64_t x) {
  x += kGoldenRatio;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

}  // namespace emu
