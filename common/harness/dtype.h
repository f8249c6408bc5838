#pragma once
// The element types of the ladder and their bit-level conversions. Host only, integer arithmetic only, so the bits are
// the same on every machine.

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ladder {

enum class DType { f16, bf16, f32 };

constexpr size_t bytes_of(DType type) {
  return type == DType::f32 ? 4 : 2;
}
constexpr std::string_view name_of(DType type) {
  return type == DType::f16 ? "f16" : type == DType::bf16 ? "bf16" : "f32";
}

/// Round to nearest, ties to even, of the f32 with these bits. NaN keeps its sign and becomes quiet, overflow becomes
/// infinity, small values become subnormal.
uint16_t f32_to_f16(uint32_t bits);
uint16_t f32_to_bf16(uint32_t bits);

/// Exact.
uint32_t f16_to_f32(uint16_t bits);
constexpr uint32_t bf16_to_f32(uint16_t bits) {
  return uint32_t{bits} << 16;
}

/// The f32 bits of one stored element (16-bit types: the low half of `bits`), and back with rounding.
uint32_t to_f32(DType type, uint32_t bits);
uint32_t from_f32(DType type, uint32_t f32_bits);

constexpr bool is_nan_f32(uint32_t bits) {
  return (bits & 0x7FFFFFFFu) > 0x7F800000u;
}
constexpr bool is_finite_f32(uint32_t bits) {
  return (bits & 0x7F800000u) != 0x7F800000u;
}

}  // namespace ladder
