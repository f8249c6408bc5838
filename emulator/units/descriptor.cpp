#include "emulator/units/descriptor.h"

#include <fmt/format.h>

#include "emulator/machine/trap.h"

namespace emu {
namespace {

constexpr const char* kTcgen05Source = "PTX ISA, tcgen05 shared memory descriptor";
constexpr const char* kWgmmaSource = "PTX ISA, wgmma matrix descriptor";

[[noreturn]] void refuse(uint64_t word, std::string_view operand, const std::string& why, const char* source) {
  throw Trap(FaultKind::descriptor,
             fmt::format("the shared-memory descriptor of {} is {:#018x}: {}", operand, word, why), source);
}

constexpr uint64_t field(uint64_t word, int first, int bits) {
  return word >> first & ((uint64_t{1} << bits) - 1);
}

/// The fields that both forms have at the same place.
MatrixDescriptor common_fields(uint64_t word) {
  MatrixDescriptor descriptor;
  descriptor.start = static_cast<uint32_t>(field(word, 0, 14) << 4);
  descriptor.leading_bytes = static_cast<uint32_t>(field(word, 16, 14) << 4);
  descriptor.stride_bytes = static_cast<uint32_t>(field(word, 32, 14) << 4);
  descriptor.base_offset = static_cast<uint8_t>(field(word, 49, 3));
  return descriptor;
}

void check_reserved(uint64_t word, std::string_view operand, int first, int bits, const char* source) {
  if (field(word, first, bits) == 0) return;
  const std::string which =
      bits == 1 ? fmt::format("bit {}", first) : fmt::format("bits {}-{}", first, first + bits - 1);
  refuse(
      word, operand,
      fmt::format("{} must be zero. An address or offset put in without >> 4, or not masked to 18 bits, ends up there",
                  which),
      source);
}

/// The swizzle is a function of address bits 7 and up. Without a base offset a tile is read by that function wherever
/// it starts, as TMA writes it: wgmma on an H200 does so, and examples of NVIDIA's for tcgen05 put their tiles at
/// multiples of 128 bytes. A base offset says where the pattern starts, so the tile has to start there.
void check_pattern(const MatrixDescriptor& descriptor, uint64_t word, std::string_view operand, const char* source) {
  const uint32_t mask = pattern_mask(descriptor.swizzle);
  const uint32_t phase = descriptor.start >> 7 & mask;
  if ((descriptor.base_offset & mask) == 0 || phase == (descriptor.base_offset & mask)) return;
  const uint32_t period = (mask + 1) * 128;
  refuse(word, operand,
         fmt::format(
             "it starts at {:#x}, {} bytes into a {}-byte period of the {} swizzle, but its base offset (bits 49-51) "
             "is {}. Leave it 0, or set it to (pattern start >> 7) & 7",
             descriptor.start, phase * 128, period, name(descriptor.swizzle), descriptor.base_offset),
         source);
}

}  // namespace

const char* name(ElementType type) {
  switch (type) {
    case ElementType::f16:
      return "f16";
    case ElementType::bf16:
      return "bf16";
    case ElementType::tf32:
      return "tf32";
    case ElementType::e4m3:
      return "e4m3";
    case ElementType::e5m2:
      return "e5m2";
    case ElementType::e2m3:
      return "e2m3";
    case ElementType::e3m2:
      return "e3m2";
    case ElementType::e2m1:
      return "e2m1";
    case ElementType::u8:
      return "u8";
    case ElementType::s8:
      return "s8";
  }
  return "?";
}

const char* name(AccumulatorType type) {
  switch (type) {
    case AccumulatorType::f16:
      return "f16";
    case AccumulatorType::f32:
      return "f32";
    case AccumulatorType::s32:
      return "s32";
  }
  return "?";
}

const char* name(OperandSwizzle swizzle) {
  switch (swizzle) {
    case OperandSwizzle::none:
      return "no";
    case OperandSwizzle::b32:
      return "32B";
    case OperandSwizzle::b64:
      return "64B";
    case OperandSwizzle::b128:
      return "128B";
    case OperandSwizzle::b128_atom32:
      return "128B (32B atom)";
  }
  return "?";
}

MatrixDescriptor decode_tcgen05_matrix_descriptor(uint64_t word, std::string_view operand) {
  MatrixDescriptor descriptor = common_fields(word);
  check_reserved(word, operand, 14, 2, kTcgen05Source);
  check_reserved(word, operand, 30, 2, kTcgen05Source);
  if (const uint64_t version = field(word, 46, 3); version != 1) {
    refuse(
        word, operand,
        fmt::format("bits 46-48 are {:#05b}, tcgen05 wants 0b001. Set bit 46; the wgmma form, which has no such field, "
                    "cannot be used unchanged",
                    version),
        kTcgen05Source);
  }
  if (field(word, 52, 1)) {
    refuse(
        word, operand,
        "bit 52 asks for an absolute leading-dimension address, which exists on sm_103a only, for K = 96. Leave it 0",
        kTcgen05Source);
  }
  check_reserved(word, operand, 53, 8, kTcgen05Source);
  switch (field(word, 61, 3)) {
    case 0:
      descriptor.swizzle = OperandSwizzle::none;
      break;
    case 1:
      descriptor.swizzle = OperandSwizzle::b128_atom32;
      break;
    case 2:
      descriptor.swizzle = OperandSwizzle::b128;
      break;
    case 4:
      descriptor.swizzle = OperandSwizzle::b64;
      break;
    case 6:
      descriptor.swizzle = OperandSwizzle::b32;
      break;
    default:
      refuse(word, operand,
             fmt::format(
                 "layout {} (bits 61-63) does not exist. 0 is no swizzle, 1 128B with 32B atom, 2 128B, 4 64B, 6 32B",
                 field(word, 61, 3)),
             kTcgen05Source);
  }
  check_pattern(descriptor, word, operand, kTcgen05Source);
  return descriptor;
}

MatrixDescriptor decode_wgmma_matrix_descriptor(uint64_t word, std::string_view operand) {
  MatrixDescriptor descriptor = common_fields(word);
  check_reserved(word, operand, 14, 2, kWgmmaSource);
  check_reserved(word, operand, 30, 2, kWgmmaSource);
  if (field(word, 46, 3) != 0) {
    refuse(word, operand,
           fmt::format("bits 46-48 are {:#05b}, wgmma wants zeros. Bit 46 belongs to the tcgen05 form",
                       field(word, 46, 3)),
           kWgmmaSource);
  }
  check_reserved(word, operand, 52, 10, kWgmmaSource);
  constexpr OperandSwizzle layouts[] = {OperandSwizzle::none, OperandSwizzle::b128, OperandSwizzle::b64,
                                        OperandSwizzle::b32};
  descriptor.swizzle = layouts[field(word, 62, 2)];
  return descriptor;
}

}  // namespace emu
