// What the operands of a tcgen05.mma say, checked.

#include <fmt/format.h>

#include <bit>

#include "emulator/isa/tcgen05_mma.h"
#include "emulator/units/scale_factor.h"

namespace emu::isa {
namespace {

MmaForm form_of(const Instruction& instruction) {
  return {.kind = static_cast<MmaKind>(instruction.modifiers >> 8 & 0xFF),
          .cta_group = instruction.modifiers & kPair ? 2 : 1,
          .weight_stationary = (instruction.modifiers & kWeightStationary) != 0,
          .block = static_cast<uint32_t>(instruction.modifiers >> 16 & 0xFF)};
}

void decode_d(Warp& warp, const Instruction& instruction, int lane, Mma& mma) {
  uint32_t d = static_cast<uint32_t>(warp.address(instruction.address, lane));
  mma.d_lane = d >> 16;
  mma.d_column = d & 0xFFFF;
  bool lane_fits = mma.layout.spread ? mma.d_lane == 0 || mma.d_lane == 16 : mma.d_lane == 0;
  if (!lane_fits)
    throw Trap(FaultCode::illegal_instruction,
               fmt::format("tcgen05.mma with M = {} and D at lane {}: it must start at lane 0{}", mma.shape.m,
                           mma.d_lane, mma.layout.spread ? " or 16" : ""),
               "PTX ISA, tcgen05 Data Path Layout Organization");
  check_columns(mma.group, warp.cta, mma.d_column, mma.layout.columns_per_part, "tcgen05.mma writes D to");
}

void decode_a(Warp& warp, const Instruction& instruction, int lane, Mma& mma) {
  mma.a_in_tensor_memory = instruction.modifiers & kAInTensorMemory;
  if (!mma.a_in_tensor_memory) {
    mma.a = matrix_descriptor(warp, warp.scalar(instruction.operand[0], lane), "A");
    check_operand(mma.a, mma.a_shape(), "A");
    return;
  }
  const uint32_t a = static_cast<uint32_t>(warp.address(warp.second_address(instruction, 0), lane));
  mma.a_lane = a >> 16;
  mma.a_column = a & 0xFFFF;
  if (mma.a_lane != mma.d_lane)
    throw Trap(FaultCode::illegal_instruction,
               fmt::format("tcgen05.mma with A at lane {} and D at lane {}: both must start at the same lane",
                           mma.a_lane, mma.d_lane),
               "PTX ISA, tcgen05.mma: alignment of A and D in tensor memory");
  if (mma.form.weight_stationary && mma.shape.m != 128)
    throw Unimplemented(fmt::format(
        "tcgen05.mma.ws with A in tensor memory and M = {}: which lanes hold A no readable source says", mma.shape.m));
  check_columns(mma.group, warp.cta, mma.a_column, kOperandBytesPerRow / 4, "tcgen05.mma reads A from");
}

/// Column of scale-A (which = 0) or scale-B (1). Bits 30 and 31 of such an address are not part of it: CUTLASS keeps
/// the factors' id there, and passes them on.
uint32_t scale_column(Warp& warp, const Instruction& instruction, int lane, const Mma& mma, uint32_t which) {
  const uint32_t position = which + (mma.a_in_tensor_memory ? 1 : 0);
  const uint32_t address =
      static_cast<uint32_t>(warp.address(warp.second_address(instruction, position), lane)) & 0x3FFFFFFF;
  const char* name = which == 0 ? "A" : "B";
  if (address >> 16)
    throw Trap(
        FaultCode::illegal_instruction,
        fmt::format("tcgen05.mma with the scale factors of {} at lane {}: they start at lane 0", name, address >> 16),
        "PTX ISA, tcgen05 Block Scaling");
  const ScaleFactors factors{.rows = which == 0 ? mma.shape.m / mma.group.size : mma.shape.n,
                             .halves = which == 1 && mma.layout.parts == 2};
  check_columns(
      mma.group, warp.cta, address, factors.columns(),
      which == 0 ? "tcgen05.mma reads the scale factors of A from" : "tcgen05.mma reads the scale factors of B from");
  return address;
}

ZeroColumns decode_zero_columns(uint64_t word, const Mma& mma) {
  const auto refuse = [&](const std::string& why) {
    throw Trap(FaultKind::descriptor, fmt::format("the zero-column mask descriptor is {:#018x}: {}", word, why),
               "PTX ISA, Zero-Column Mask Descriptor");
  };
  if (word >> 36 & 7 || word >> 62) refuse("bits 36-38 and 62-63 are reserved and must be 0");
  ZeroColumns out;
  for (uint32_t i = 0; i < 4; ++i) {
    out.start[i] = static_cast<uint8_t>(word >> 8 * i);
    out.first_span[i] = word >> (32 + i) & 1;
  }
  out.any = word >> 39 & 1;
  out.zeros = static_cast<uint32_t>(word >> 40 & 0xFF) + 1;
  out.used = static_cast<uint32_t>(word >> 48 & 0xFF) + 1;
  out.shift = static_cast<uint32_t>(word >> 56 & 0x3F);
  const uint32_t most = mma.shape.m == 32 ? 16 : 32;
  if (out.shift > most)
    refuse(fmt::format("a shift of {} columns; with M = {} at most {}", out.shift, mma.shape.m, most));
  if (out.shift > mma.shape.max_b_shift)
    refuse(fmt::format("a shift of {} columns, but the instruction descriptor (bits 30-31) allows {}", out.shift,
                       mma.shape.max_b_shift));
  return out;
}

}  // namespace

/// Runs of `used` zeros and `zeros` ones take turns, the first of ones where first_span says so, the first `start` bits
/// left out. (The ISA's table describes the two lengths the other way round than its three examples have them.)
bool ZeroColumns::zero(uint32_t part, uint32_t column) const {
  if (!any) return false;
  const uint32_t at = (column + start[part]) % (zeros + used);
  return first_span[part] ? at < zeros : at >= used;
}

void decode_mma(Warp& warp, const Instruction& instruction, int lane, Mma& mma) {
  mma.form = form_of(instruction);
  mma.group = cta_group(warp.cta, instruction.modifiers & kPair, "tcgen05.mma");
  mma.shape = decode_instruction_descriptor(static_cast<uint32_t>(warp.scalar(instruction.operand[2], lane)), mma.form);
  mma.layout = accumulator_layout(mma.form, mma.shape.m, mma.shape.n);
  decode_d(warp, instruction, lane, mma);
  mma.zero_columns = {};
  if (instruction.operand[4].present())
    mma.zero_columns = decode_zero_columns(warp.scalar(instruction.operand[4], lane), mma);
  mma.b = matrix_descriptor(warp, warp.scalar(instruction.operand[1], lane), "B");
  check_operand(mma.b, mma.b_shape(), "B");
  decode_a(warp, instruction, lane, mma);
  if (block_scaled(mma.form.kind)) {
    mma.sfa_column = scale_column(warp, instruction, lane, mma, 0);
    mma.sfb_column = scale_column(warp, instruction, lane, mma, 1);
  }
  mma.use = {.type = mma.shape.d,
             .input = (warp.predicate(instruction.operand[3]) >> lane & 1) != 0,
             .scale_shift = static_cast<uint8_t>(instruction.immediate),
             .saturate = mma.shape.saturate};
  mma.disabled_lanes = {};
  for (uint32_t i = 0; i < instruction.list_count; ++i)
    mma.disabled_lanes[i] = static_cast<uint32_t>(warp.scalar(warp.listed(instruction.list, i), lane));
}

}  // namespace emu::isa
