// The 32-bit instruction descriptor of tcgen05.mma, kinds without block scaling.

#include <fmt/format.h>

#include "emulator/machine/trap.h"
#include "emulator/units/descriptor.h"

namespace emu {
namespace {

constexpr const char* kFormat = "PTX ISA, tcgen05 instruction descriptor";
constexpr const char* kShape = "PTX ISA, tcgen05 matrix shape";

[[noreturn]] void refuse(uint32_t word, const std::string& why, const char* source) {
  throw Trap(FaultKind::descriptor, fmt::format("the instruction descriptor is {:#010x}: {}", word, why), source);
}

constexpr uint32_t field(uint32_t word, int first, int bits) {
  return word >> first & ((1u << bits) - 1);
}

ElementType element_type(uint32_t word, MmaKind kind, char operand, int first) {
  const uint32_t code = field(word, first, 3);
  const char* choice = "";
  switch (kind) {
    case MmaKind::f16:
      if (code == 0) return ElementType::f16;
      if (code == 1) return ElementType::bf16;
      choice = "0 (f16) or 1 (bf16)";
      break;
    case MmaKind::tf32:
      if (code == 2) return ElementType::tf32;
      choice = "2 (tf32)";
      break;
    case MmaKind::f8f6f4:
      switch (code) {
        case 0:
          return ElementType::e4m3;
        case 1:
          return ElementType::e5m2;
        case 3:
          return ElementType::e2m3;
        case 4:
          return ElementType::e3m2;
        case 5:
          return ElementType::e2m1;
      }
      choice = "0 (e4m3), 1 (e5m2), 3 (e2m3), 4 (e3m2) or 5 (e2m1)";
      break;
    case MmaKind::i8:
      if (code == 0) return ElementType::u8;
      if (code == 1) return ElementType::s8;
      choice = "0 (u8) or 1 (s8)";
      break;
    default:
      break;  // block-scaled kinds: descriptor_block_scaled.cpp
  }
  refuse(
      word,
      fmt::format("type {} of {} (bits {}-{}); kind::{} takes {}", code, operand, first, first + 2, name(kind), choice),
      kFormat);
}

AccumulatorType accumulator_type(uint32_t word, MmaKind kind, const InstructionDescriptor& inputs) {
  const uint32_t code = field(word, 4, 2);
  if (kind == MmaKind::i8) {
    if (code == 2) return AccumulatorType::s32;
    refuse(word, fmt::format("type {} of D (bits 4-5); kind::i8 takes 2 (s32)", code), kFormat);
  }
  if (code == 1) return AccumulatorType::f32;
  if (code == 0 && kind == MmaKind::f8f6f4) return AccumulatorType::f16;
  if (code == 0 && kind == MmaKind::f16) {
    if (inputs.a == ElementType::f16 && inputs.b == ElementType::f16) return AccumulatorType::f16;
    refuse(word, "D is f16 (bits 4-5 are 0) but an input is bf16; only f16 inputs can have an f16 D. Set bit 4 for f32",
           kFormat);
  }
  refuse(word,
         fmt::format("type {} of D (bits 4-5); kind::{} takes {}", code, name(kind),
                     kind == MmaKind::tf32 ? "1 (f32)" : "1 (f32) or 0 (f16)"),
         kFormat);
}

void check_flags(uint32_t word, const MmaForm& form, const InstructionDescriptor& descriptor) {
  for (int bit : {6, 23, 29}) {
    if (field(word, bit, 1)) refuse(word, fmt::format("bit {} is reserved and must be 0", bit), kFormat);
  }
  if (descriptor.sparse != form.sparse) {
    refuse(word,
           form.sparse ? "bit 2 says dense, but the instruction is tcgen05.mma.sp. Set bit 2"
                       : "bit 2 says sparse, but the instruction is not tcgen05.mma.sp. Clear bit 2",
           kFormat);
  }
  if (form.kind == MmaKind::i8 && (descriptor.negate_a || descriptor.negate_b)) {
    refuse(word, "bits 13-14 negate an operand, which kind::i8 cannot. Clear them", kFormat);
  }
  if (form.kind != MmaKind::i8 && descriptor.saturate) {
    refuse(word, fmt::format("bit 3 asks for saturation, which kind::{} does not have. Clear it", name(form.kind)),
           kFormat);
  }
  if (!form.weight_stationary && descriptor.max_b_shift != 0) {
    refuse(word, "bits 30-31 give a maximum shift of B, which only tcgen05.mma.ws has. Clear them", kFormat);
  }
}

void check_transpose(uint32_t word, const InstructionDescriptor& descriptor) {
  const auto padded = [](ElementType type) {
    return type == ElementType::e2m3 || type == ElementType::e3m2 || type == ElementType::e2m1;
  };
  if (descriptor.a_major == Major::mn && padded(descriptor.a)) {
    refuse(word, fmt::format("bit 15 says A is M-major, but {} can only be K-major. Clear it", name(descriptor.a)),
           kFormat);
  }
  if (descriptor.b_major == Major::mn && padded(descriptor.b)) {
    refuse(word, fmt::format("bit 16 says B is N-major, but {} can only be K-major. Clear it", name(descriptor.b)),
           kFormat);
  }
}

void check_m(uint32_t word, const MmaForm& form, uint32_t m) {
  if (form.weight_stationary) {
    if (m != 32 && m != 64 && m != 128) {
      refuse(word, fmt::format("M is {} (bits 24-28); tcgen05.mma.ws takes 32, 64 or 128", m), kShape);
    }
  } else if (form.cta_group == 1) {
    if (m != 64 && m != 128) {
      refuse(word,
             fmt::format("M is {} (bits 24-28); cta_group::1 takes 64 or 128{}", m,
                         m == 256 ? ". 256 is for a pair: cta_group::2" : ""),
             kShape);
    }
  } else if (m != 128 && m != 256) {
    refuse(word, fmt::format("M is {} (bits 24-28); cta_group::2 takes 128 or 256, the rows of both CTAs together", m),
           kShape);
  }
}

void check_n(uint32_t word, const MmaForm& form, const InstructionDescriptor& descriptor) {
  const uint32_t n = descriptor.n;
  const auto complain = [&](const std::string& rule) {
    refuse(word, fmt::format("N is {} (bits 17-22); {}", n, rule), kShape);
  };
  if (form.weight_stationary) {
    const bool legal = n == 64 || n == 128 || (n == 256 && !form.sparse);
    if (!legal) complain(form.sparse ? "tcgen05.mma.ws.sp takes 64 or 128" : "tcgen05.mma.ws takes 64, 128 or 256");
    return;
  }
  const bool pair = form.cta_group == 2;
  if (form.kind == MmaKind::i8) {
    const bool legal = n > 0 && n <= 256 && (pair ? n % 32 == 0 : n % 16 == 0 || n == 8 || n == 24);
    if (!legal) {
      complain(pair ? "kind::i8 with cta_group::2 takes 32 to 256 in steps of 32"
                    : "kind::i8 takes 8, 16, 24 and 32, then up to 256 in steps of 16");
    }
  } else {
    // With M = 128 public code keeps to multiples of 16 (and CUTLASS insists on them for A in tensor memory); the ISA
    // says 8.
    const uint32_t step = pair ? 16 : 8;
    if (n == 0 || n > 256 || n % step != 0) {
      complain(fmt::format("kind::{} with cta_group::{} takes {} to 256 in steps of {}", name(form.kind),
                           form.cta_group, step, step));
    }
  }
  if (descriptor.b_major == Major::mn && element_bytes(descriptor.b) == 1 && n % (pair ? 32 : 16) != 0) {
    complain(fmt::format("an N-major B of 8-bit elements takes multiples of {}", pair ? 32 : 16));
  }
}

}  // namespace

const char* name(MmaKind kind) {
  switch (kind) {
    case MmaKind::f16:
      return "f16";
    case MmaKind::tf32:
      return "tf32";
    case MmaKind::f8f6f4:
      return "f8f6f4";
    case MmaKind::i8:
      return "i8";
    case MmaKind::mxf8f6f4:
      return "mxf8f6f4";
    case MmaKind::mxf4:
      return "mxf4";
    case MmaKind::mxf4nvf4:
      return "mxf4nvf4";
  }
  return "?";
}

InstructionDescriptor decode_instruction_descriptor(uint32_t word, const MmaForm& form) {
  if (block_scaled(form.kind)) return decode_block_scaled_descriptor(word, form);
  InstructionDescriptor descriptor;
  descriptor.a = element_type(word, form.kind, 'A', 7);
  descriptor.b = element_type(word, form.kind, 'B', 10);
  descriptor.d = accumulator_type(word, form.kind, descriptor);
  descriptor.sparsity_selector = static_cast<uint8_t>(field(word, 0, 2));
  descriptor.sparse = field(word, 2, 1);
  descriptor.saturate = field(word, 3, 1);
  descriptor.negate_a = field(word, 13, 1);
  descriptor.negate_b = field(word, 14, 1);
  descriptor.a_major = field(word, 15, 1) ? Major::mn : Major::k;
  descriptor.b_major = field(word, 16, 1) ? Major::mn : Major::k;
  descriptor.n = field(word, 17, 6) << 3;
  descriptor.m = field(word, 24, 5) << 4;
  descriptor.max_b_shift = static_cast<uint8_t>(field(word, 30, 2) == 0 ? 0 : 4u << field(word, 30, 2));
  check_flags(word, form, descriptor);
  check_m(word, form, descriptor.m);
  check_n(word, form, descriptor);
  check_transpose(word, descriptor);
  return descriptor;
}

}  // namespace emu
