// The 32-bit instruction descriptor of the tcgen05.mma kinds with block scaling.

#include <fmt/format.h>

#include "emulator/machine/trap.h"
#include "emulator/units/descriptor.h"

namespace emu {
namespace {

constexpr const char* kFormat = "PTX ISA, tcgen05 instruction descriptor of .kind::mxf8f6f4, mxf4, mxf4nvf4";
constexpr const char* kShape = "PTX ISA, tcgen05 matrix shape";

[[noreturn]] void refuse(uint32_t word, const std::string& why, const char* source = kFormat) {
  throw Trap(FaultKind::descriptor, fmt::format("the instruction descriptor is {:#010x}: {}", word, why), source);
}

constexpr uint32_t field(uint32_t word, int first, int bits) {
  return word >> first & ((1u << bits) - 1);
}

ElementType element_type(uint32_t word, MmaKind kind, char operand, int first, int bits) {
  const uint32_t code = field(word, first, bits);
  if (kind != MmaKind::mxf8f6f4) {
    if (code == 1) return ElementType::e2m1;
    refuse(word, fmt::format("type {} of {} (bits {}-{}); kind::{} takes 1 (e2m1)", code, operand, first,
                             first + bits - 1, name(kind)));
  }
  constexpr ElementType kTypes[] = {ElementType::e4m3, ElementType::e5m2, ElementType::e4m3,
                                    ElementType::e2m3, ElementType::e3m2, ElementType::e2m1};
  if (code <= 5 && code != 2) return kTypes[code];
  refuse(word, fmt::format("type {} of {} (bits {}-{}); kind::mxf8f6f4 takes 0 (e4m3), 1 (e5m2), 3 (e2m3), 4 (e3m2) or "
                           "5 (e2m1)",
                           code, operand, first, first + bits - 1));
}

void check_zero(uint32_t word, int first, int bits, const char* why) {
  if (field(word, first, bits) == 0) return;
  refuse(word, bits == 1 ? fmt::format("bit {} must be 0{}", first, why)
                         : fmt::format("bits {}-{} must be 0{}", first, first + bits - 1, why));
}

void check_id(uint32_t word, const MmaForm& form, uint32_t id, const char* operand, int first) {
  // A row's factors of one MMA lie in one column: 4 of block 16, 2 of block 32 and K = 64, 1 of K = 32.
  const uint32_t factors = (form.kind == MmaKind::mxf8f6f4 ? 32 : 64) / form.block;
  if (id % factors == 0) return;
  refuse(word, fmt::format("the id of {}'s scale factors is {} (bits {}-{}); with {} factors a row it must be {}",
                           operand, id, first, first + 1, factors, factors == 2 ? "0 or 2" : "0"));
}

void check_shape(uint32_t word, const MmaForm& form, const InstructionDescriptor& descriptor) {
  const bool pair = form.cta_group == 2;
  if (descriptor.m != 128 && !(pair && descriptor.m == 256))
    refuse(word,
           fmt::format("M is {} (bits 27-28); kind::{} with cta_group::{} takes {}", descriptor.m, name(form.kind),
                       form.cta_group, pair ? "128 or 256" : "128"),
           kShape);
  const uint32_t step = pair ? 16 : 8;
  if (descriptor.n == 0 || descriptor.n > 256 || descriptor.n % step)
    refuse(word,
           fmt::format("N is {} (bits 17-22); kind::{} with cta_group::{} takes {} to 256 in steps of {}", descriptor.n,
                       name(form.kind), form.cta_group, step, step),
           kShape);
  if (descriptor.b_major == Major::mn && descriptor.n % (pair ? 32 : 16))
    refuse(word,
           fmt::format("N is {} (bits 17-22); an N-major B of 8-bit elements takes multiples of {}", descriptor.n,
                       pair ? 32 : 16),
           kShape);
}

void check_major(uint32_t word, const MmaForm& form, Major major, ElementType type, char operand, int bit) {
  if (major == Major::k) return;
  if (form.kind == MmaKind::mxf8f6f4 && (type == ElementType::e4m3 || type == ElementType::e5m2)) return;
  refuse(word, fmt::format("bit {} says {} is {}-major, but {} can only be K-major. Clear it", bit, operand,
                           operand == 'A' ? 'M' : 'N', name(type)));
}

}  // namespace

InstructionDescriptor decode_block_scaled_descriptor(uint32_t word, const MmaForm& form) {
  const bool fp4 = form.kind != MmaKind::mxf8f6f4;
  InstructionDescriptor descriptor;
  descriptor.a = element_type(word, form.kind, 'A', 7, 3);
  descriptor.b = element_type(word, form.kind, 'B', 10, fp4 ? 2 : 3);
  descriptor.d = AccumulatorType::f32;
  descriptor.sparse = field(word, 2, 1);
  descriptor.sfb_id = static_cast<uint8_t>(field(word, 4, 2));
  descriptor.negate_a = field(word, 13, 1);
  descriptor.negate_b = field(word, 14, 1);
  descriptor.a_major = field(word, 15, 1) ? Major::mn : Major::k;
  descriptor.b_major = field(word, 16, 1) ? Major::mn : Major::k;
  descriptor.n = field(word, 17, 6) << 3;
  descriptor.scale_ue8m0 = field(word, 23, 1);
  descriptor.m = field(word, 27, 2) << 7;
  descriptor.sfa_id = static_cast<uint8_t>(field(word, 29, 2));
  check_zero(word, 0, 2, "");
  if (descriptor.sparse != form.sparse)
    refuse(word, "bit 2 says sparse, but the instruction is not tcgen05.mma.sp. Clear it");
  check_zero(word, 3, 1, "");
  check_zero(word, 6, 1, "");
  // Bit 12 of the 4-bit kinds, 0 in the PTX ISA, is not looked at: CuTe DSL's builder calls it the version of sparsity,
  // irrelevant for sm_100, and sets it.
  check_zero(word, 24, 3, ": M of these kinds is in bits 27-28, as M >> 7");
  check_zero(word, 31, 1, ": K = 96 exists on sm_103a only");
  if (!descriptor.scale_ue8m0 && (form.kind != MmaKind::mxf4nvf4 || form.block != 16))
    refuse(word, fmt::format("bit 23 is 0, which says that the scale factors are UE4M3; {} takes UE8M0. Set it",
                             form.kind == MmaKind::mxf4nvf4 ? "kind::mxf4nvf4 with blocks of 32"
                                                            : fmt::format("kind::{}", name(form.kind))));
  check_id(word, form, descriptor.sfa_id, "A", 29);
  check_id(word, form, descriptor.sfb_id, "B", 4);
  check_shape(word, form, descriptor);
  check_major(word, form, descriptor.a_major, descriptor.a, 'A', 15);
  check_major(word, form, descriptor.b_major, descriptor.b, 'B', 16);
  return descriptor;
}

}  // namespace emu
