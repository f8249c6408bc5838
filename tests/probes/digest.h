#pragma once
// FNV-1a, 64 bits (Fowler, Noll, Vo): names programs and condenses what they leave in memory, the same on every
// machine.

#include <cstddef>
#include <cstdint>
#include <string>

namespace probe {

class Digest {
 public:
  Digest& add(const void* data, size_t bytes) {
    const auto* at = static_cast<const unsigned char*>(data);
    for (size_t i = 0; i < bytes; ++i) state_ = (state_ ^ at[i]) * 0x100000001B3ull;
    return *this;
  }
  uint64_t value() const { return state_; }

  std::string hex() const {
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string text(16, '0');
    for (int i = 0; i < 16; ++i) text[static_cast<size_t>(i)] = kDigits[state_ >> (60 - 4 * i) & 15];
    return text;
  }

 private:
  uint64_t state_ = 0xCBF29CE484222325ull;
};

}  // namespace probe
