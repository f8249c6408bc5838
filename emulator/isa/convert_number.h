#pragma once
// One scalar conversion between number types, exact and then rounded once. PTX ISA, "cvt".

#include <cstdint>
#include <optional>
#include <string_view>

#include "emulator/isa/float_format.h"

namespace emu::isa {

enum class Number : uint8_t { u8, s8, u16, s16, u32, s32, u64, s64, f16, bf16, f32, f64 };

std::optional<Number> number_from_name(std::string_view name);
uint8_t bytes_of(Number number);
inline bool is_float(Number number) {
  return number >= Number::f16;
}
inline bool is_signed(Number number) {
  return number == Number::s8 || number == Number::s16 || number == Number::s32 || number == Number::s64;
}

struct Conversion {
  Number from, to;
  Round round = Round::nearest_even;  ///< of results that their type does not hold
  bool integral = false;              ///< .rni, .rzi, .rmi, .rpi: `round` says how to become a whole number
  bool ftz = false, saturate = false, relu = false, finite = false;

  uint64_t packed() const {
    return static_cast<uint64_t>(from) | static_cast<uint64_t>(to) << 4 | static_cast<uint64_t>(round) << 8 |
           static_cast<uint64_t>(integral) << 12 | static_cast<uint64_t>(ftz) << 13 |
           static_cast<uint64_t>(saturate) << 14 | static_cast<uint64_t>(relu) << 15 |
           static_cast<uint64_t>(finite) << 16;
  }
  static Conversion unpack(uint64_t bits) {
    return {.from = static_cast<Number>(bits & 15),
            .to = static_cast<Number>(bits >> 4 & 15),
            .round = static_cast<Round>(bits >> 8 & 15),
            .integral = (bits >> 12 & 1) != 0,
            .ftz = (bits >> 13 & 1) != 0,
            .saturate = (bits >> 14 & 1) != 0,
            .relu = (bits >> 15 & 1) != 0,
            .finite = (bits >> 16 & 1) != 0};
  }
};

/// `raw`: the source in the low bits; the result likewise, sign-extended to 64 bits when its type is signed.
uint64_t convert(const Conversion& conversion, uint64_t raw);

}  // namespace emu::isa
