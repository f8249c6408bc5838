#pragma once
// The two words that describe a tensor core operand to the hardware: the 64-bit shared-memory matrix descriptor and the
// 32-bit instruction descriptor of tcgen05.mma. Decoding checks every rule that can be checked from the bits alone and
// throws emu::Trap (illegal instruction) naming the value, the rule and the way out.
//
// Sources: PTX ISA "tcgen05 Shared Memory Descriptor", "Instruction Descriptor", "Shape"; CUTLASS mma_sm100_desc.hpp.

#include <cstdint>
#include <string_view>

namespace emu {

/// Which dimension lies dense in shared memory. An operand is rows (M of A, N of B) x K.
enum class Major : uint8_t { k, mn };

enum class ElementType : uint8_t { f16, bf16, tf32, e4m3, e5m2, e2m3, e3m2, e2m1, u8, s8 };
enum class AccumulatorType : uint8_t { f16, f32, s32 };

const char* name(ElementType type);
const char* name(AccumulatorType type);

/// Bits an element takes in shared memory (the 4- and 6-bit types are padded to a byte there).
constexpr uint32_t element_bytes(ElementType type) {
  switch (type) {
    case ElementType::f16:
    case ElementType::bf16:
      return 2;
    case ElementType::tf32:
      return 4;
    default:
      return 1;
  }
}

/// One dense MMA reads 32 bytes along K, whatever the type: 16 f16, 8 tf32, 32 bytes.
constexpr uint32_t kOperandBytesPerRow = 32;
constexpr uint32_t elements_per_step(ElementType type) {
  return kOperandBytesPerRow / element_bytes(type);
}

/// How 16-byte chunks are permuted inside a pattern. `b128_atom32` moves 32-byte chunks (tcgen05, MN-major tf32 only).
enum class OperandSwizzle : uint8_t { none, b32, b64, b128, b128_atom32 };

const char* name(OperandSwizzle swizzle);

/// Which bits of (address >> 7) choose the permutation; 0 without swizzle. The pattern repeats every (mask + 1) * 128
/// bytes.
constexpr uint32_t pattern_mask(OperandSwizzle swizzle) {
  switch (swizzle) {
    case OperandSwizzle::none:
      return 0;
    case OperandSwizzle::b32:
      return 1;
    case OperandSwizzle::b64:
      return 3;
    case OperandSwizzle::b128:
      return 7;
    case OperandSwizzle::b128_atom32:
      return 3;
  }
  return 0;
}

/// A decoded shared-memory matrix descriptor. All quantities are bytes; addresses are shared::cta addresses of the CTA
/// that owns the operand.
struct MatrixDescriptor {
  uint32_t start = 0;          ///< of the first element, below 2^18
  uint32_t leading_bytes = 0;  ///< "leading dimension byte offset"
  uint32_t stride_bytes = 0;   ///< "stride dimension byte offset"
  OperandSwizzle swizzle = OperandSwizzle::none;
  uint8_t base_offset = 0;  ///< (pattern start >> 7) & 7 when the pattern does not start on its natural boundary
};

/// `operand` names the operand in messages ("A", "B"). Traps: bits 46-48 other than 0b001, reserved bits, layout 3, 5,
/// 7, LBO mode 1 (sm_103a only), a base offset that says something else than the start. Without one, a tile may start
/// anywhere in its swizzle's pattern.
MatrixDescriptor decode_tcgen05_matrix_descriptor(uint64_t word, std::string_view operand);

/// The sm_90a form: no version field, two layout bits. A tile may start anywhere in its swizzle's pattern.
MatrixDescriptor decode_wgmma_matrix_descriptor(uint64_t word, std::string_view operand);

enum class MmaKind : uint8_t { f16, tf32, f8f6f4, i8, mxf8f6f4, mxf4, mxf4nvf4 };
const char* name(MmaKind kind);
/// .block_scale: A and B have scale factors.
constexpr bool block_scaled(MmaKind kind) {
  return kind >= MmaKind::mxf8f6f4;
}

/// What the instruction itself says, which the instruction descriptor must agree with.
struct MmaForm {
  MmaKind kind = MmaKind::f16;
  int cta_group = 1;
  bool weight_stationary = false;  ///< tcgen05.mma.ws
  bool sparse = false;             ///< tcgen05.mma.sp
  uint32_t block = 0;              ///< .block_scale: elements along K that share a scale factor, 16 or 32
};

/// A decoded 32-bit instruction descriptor.
struct InstructionDescriptor {
  ElementType a = ElementType::f16, b = ElementType::f16;
  AccumulatorType d = AccumulatorType::f32;
  uint32_t m = 0, n = 0;  ///< of the whole MMA: both CTAs of a pair together
  Major a_major = Major::k, b_major = Major::k;
  bool negate_a = false, negate_b = false;
  bool saturate = false;  ///< i8 only
  bool sparse = false;
  uint8_t sparsity_selector = 0;
  uint8_t max_b_shift = 0;  ///< .ws only: 0, 8, 16, 32
  // Block-scaled kinds only.
  bool scale_ue8m0 = false;        ///< else UE4M3
  uint8_t sfa_id = 0, sfb_id = 0;  ///< which byte of a column holds the first factor

  /// Elements along K; not of kind::mxf4 and mxf4nvf4, which take two a byte.
  uint32_t k() const { return elements_per_step(a) * (sparse ? 2 : 1); }
};

/// Traps: reserved bits, type codes the kind does not have, D types the inputs do not allow, M and N outside the kind's
/// table for this cta_group (or .ws), flags the kind does not have, sparse flag unlike the instruction's .sp. N in
/// steps of 8 is taken for cta_group::1, M = 128: the ISA says so, though public code keeps to 16.
InstructionDescriptor decode_instruction_descriptor(uint32_t word, const MmaForm& form);
/// The form that the kinds with block scaling have. Called by decode_instruction_descriptor.
InstructionDescriptor decode_block_scaled_descriptor(uint32_t word, const MmaForm& form);

}  // namespace emu
