#pragma once
// Poison and canary bands: what a buffer holds before a kernel runs, so that what the kernel did not write, and what it
// should not have written, can be seen afterwards.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "common/harness/matrix.h"

namespace ladder {

/// D is filled with this byte: a NaN in every type, and none that a tensor core makes (0x7FFFFFFF, 0x7FFF).
constexpr unsigned char kPoisonByte = 0xFF;
constexpr uint32_t poison_bits(DType type) {
  return type == DType::f32 ? 0xFFFFFFFFu : 0xFFFFu;
}

/// Bytes before and after each matrix on the device. Also keeps the matrix at the alignment of the allocation.
constexpr size_t kBandBytes = 64 * 1024;

/// Writes the canary pattern: 32-bit words whose value depends on their place, each of them a NaN in f32, f16 and bf16,
/// so that reading a band spoils a result as surely as writing one is noticed. `which` tells bands apart.
void fill_canary(std::span<std::byte> band, uint32_t which);

/// The offset of the first damaged byte.
std::optional<size_t> find_canary_damage(std::span<const std::byte> band, uint32_t which);

}  // namespace ladder
