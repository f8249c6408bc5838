#pragma once
// One tcgen05.mma between issue and result: what its three files share.

#include <array>
#include <optional>

#include "emulator/isa/tcgen05.h"
#include "emulator/units/descriptor.h"
#include "emulator/units/descriptor_operand.h"
#include "emulator/units/tensor_core.h"
#include "emulator/units/tmem_layout.h"

namespace emu::isa {

// operand 0: A descriptor (64 bits) or A address in tensor memory (32 bits), 1: B descriptor, 2: instruction
// descriptor, 3: enable-input-d, 4: zero-column mask descriptor (.ws); address: D; list: disable-output-lane mask (or
// none); list2: base and offset of scale-A and scale-B (block-scaled kinds); immediate: scale-input-d.
// modifiers: these, the kind << 8, the block of scale factors << 16, and kPair.
constexpr uint64_t kAInTensorMemory = 1, kWeightStationary = 2;

/// Columns of B that count as zeros, and where its first column is. PTX ISA, "Zero-Column Mask Descriptor".
struct ZeroColumns {
  std::array<uint8_t, 4> start{}, first_span{};
  uint32_t zeros = 1, used = 1;  ///< lengths of the runs
  bool any = false;
  uint32_t shift = 0;

  /// `part`, `column`: sub-mask, and the column in it.
  bool zero(uint32_t part, uint32_t column) const;
};

/// Of a pair, each CTA holds half of A's and of B's rows, and computes half of D's rows; descriptors and addresses are
/// the same in both.
struct Mma {
  static constexpr uint32_t kLanes = TensorMemory::kTmemLanes, kMostBRows = 256 + 32;

  CtaGroup group;
  MmaForm form;
  InstructionDescriptor shape;
  AccumulatorLayout layout;
  AccumulatorUse use;
  uint32_t d_lane = 0, d_column = 0;
  uint32_t a_lane = 0, a_column = 0;
  uint32_t sfa_column = 0, sfb_column = 0;
  bool a_in_tensor_memory = false;
  MatrixDescriptor a, b;
  hazards::IssuedPointer announced;          ///< for the hazard rules
  std::array<uint32_t, 8> disabled_lanes{};  // of the even CTA, then of the odd one
  ZeroColumns zero_columns;
  std::array<std::array<std::byte, kLanes * kOperandBytesPerRow>, 2> a_dense;
  std::array<std::byte, kMostBRows * kOperandBytesPerRow> b_dense;

  // What one CTA's shared memory holds. A shift of B's columns needs some behind the last.
  OperandShape a_shape() const { return {shape.m / group.size, shape.a, shape.a_major}; }
  OperandShape b_shape() const {
    return {shape.n / group.size + (zero_columns.shift + 7) / 8 * 8, shape.b, shape.b_major};
  }
  bool disabled(uint32_t cta, uint32_t lane) const {
    const uint32_t bit = cta * kLanes + lane;
    return disabled_lanes[bit / 32] >> (bit % 32) & 1;
  }
};

/// Checks everything that the bits say. Nothing has been read yet. tcgen05_mma_decode.cpp
void decode_mma(Warp& warp, const Instruction& instruction, int lane, Mma& mma);
/// Takes A and B out of shared memory. tcgen05_mma_work.cpp
void read_operands(Mma& mma);
/// D (+)= A * B in tensor memory.
void multiply(const Mma& mma);

}  // namespace emu::isa
