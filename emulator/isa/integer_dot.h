#pragma once
// Products of the integer forms of mma.sync and wmma, some of whose elements PackedOperand does not have.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace emu::isa {

enum class Digit : uint8_t { u8, s8, u4, s4, bits_and, bits_xor };

/// The digit of a type; of .b1, which needs an operation too, nothing.
inline std::optional<Digit> digit_of(std::string_view type) {
  constexpr std::pair<std::string_view, Digit> kDigits[] = {
      {"u8", Digit::u8}, {"s8", Digit::s8}, {"u4", Digit::u4}, {"s4", Digit::s4}};
  for (auto [name, value] : kDigits)
    if (type == name) return value;
  return std::nullopt;
}

/// The sum over the bytes of one row of A and one column of B.
inline int64_t dot(std::span<const std::byte> a, const std::byte* b, Digit a_digit, Digit b_digit) {
  int64_t sum = 0;
  const auto digit = [](std::byte byte, Digit type, uint32_t i) -> int {
    const auto code = static_cast<int>(byte);
    switch (type) {
      case Digit::s8:
        return static_cast<int8_t>(code);
      case Digit::u4:
        return code >> (4 * i) & 15;
      case Digit::s4:
        return ((code >> (4 * i) & 15) ^ 8) - 8;
      default:
        return code;
    }
  };
  const bool bits = a_digit == Digit::bits_and || a_digit == Digit::bits_xor;
  const uint32_t digits = a_digit == Digit::u4 || a_digit == Digit::s4 ? 2 : 1;
  for (size_t k = 0; k < a.size(); ++k) {
    if (bits) {
      const std::byte both = a_digit == Digit::bits_and ? a[k] & b[k] : a[k] ^ b[k];
      sum += std::popcount(static_cast<uint8_t>(both));
      continue;
    }
    for (uint32_t i = 0; i < digits; ++i) sum += digit(a[k], a_digit, i) * digit(b[k], b_digit, i);
  }
  return sum;
}

}  // namespace emu::isa
