// tcgen05.mma. PTX ISA, "tcgen05.mma". Arithmetic: units/tensor_core.h; operands in shared memory:
// units/descriptor_operand.h; rows and columns in tensor memory: units/tmem_layout.h.

#include <fmt/format.h>

#include <array>
#include <memory>
#include <utility>

#include "emulator/isa/tcgen05.h"
#include "emulator/machine/grid.h"
#include "emulator/units/descriptor.h"
#include "emulator/units/descriptor_operand.h"
#include "emulator/units/tensor_core.h"
#include "emulator/units/tmem_layout.h"

namespace emu::isa {
namespace {

// operand 0: A descriptor (64 bits) or A address in tensor memory (32 bits), 1: B descriptor, 2: instruction
// descriptor, 3: enable-input-d; address: D; list: disable-output-lane mask (or none); immediate: scale-input-d.
constexpr uint64_t kAInTensorMemory = 1, kTf32 = 2;

constexpr uint32_t kLanes128 = TensorMemory::kTmemLanes;

/// One MMA between issue and result. Of a pair, each CTA holds half of A's and of B's rows, and computes half of D's
/// rows; descriptors and addresses are the same in both.
struct Mma {
  CtaGroup group;
  InstructionDescriptor shape;
  AccumulatorLayout layout;
  AccumulatorUse use;
  uint32_t d_lane = 0, d_column = 0;
  uint32_t a_lane = 0, a_column = 0;
  bool a_in_tensor_memory = false;
  MatrixDescriptor a, b;
  std::array<uint32_t, 8> disabled_lanes{};  // of the even CTA, then of the odd one
  std::array<std::array<std::byte, kLanes128 * kOperandBytesPerRow>, 2> a_dense;
  std::array<std::byte, 256 * kOperandBytesPerRow> b_dense;

  // What one CTA's shared memory holds.
  OperandShape a_shape() const { return {shape.m / group.size, shape.a, shape.a_major}; }
  OperandShape b_shape() const { return {shape.n / group.size, shape.b, shape.b_major}; }
  bool disabled(uint32_t cta, uint32_t lane) const {
    const uint32_t bit = cta * kLanes128 + lane;
    return disabled_lanes[bit / 32] >> (bit % 32) & 1;
  }
};

SharedWindow window_of(const Cta& cta) {
  return {cta.window.data(), cta.cluster.grid.device.chip().shared_reserved_bytes, cta.window_bytes};
}

MmaForm form_of(const Instruction& instruction) {
  return {.kind = instruction.modifiers & kTf32 ? MmaKind::tf32 : MmaKind::f16,
          .cta_group = instruction.modifiers & kPair ? 2 : 1};
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
    mma.a = decode_tcgen05_matrix_descriptor(warp.scalar(instruction.operand[0], lane), "A");
    check_operand(mma.a, mma.a_shape(), "A");
    return;
  }
  uint32_t a = static_cast<uint32_t>(warp.scalar(instruction.operand[0], lane));
  mma.a_lane = a >> 16;
  mma.a_column = a & 0xFFFF;
  if (mma.a_lane != mma.d_lane)
    throw Trap(FaultCode::illegal_instruction,
               fmt::format("tcgen05.mma with A at lane {} and D at lane {}: both must start at the same lane",
                           mma.a_lane, mma.d_lane),
               "PTX ISA, tcgen05.mma: alignment of A and D in tensor memory");
  check_columns(mma.group, warp.cta, mma.a_column, kOperandBytesPerRow / 4, "tcgen05.mma reads A from");
}

/// Checks everything that the bits say. Nothing has been read yet.
void decode(Warp& warp, const Instruction& instruction, int lane, Mma& mma) {
  const MmaForm form = form_of(instruction);
  mma.group = cta_group(warp.cta, instruction.modifiers & kPair, "tcgen05.mma");
  mma.shape = decode_instruction_descriptor(static_cast<uint32_t>(warp.scalar(instruction.operand[2], lane)), form);
  mma.layout = accumulator_layout(form, mma.shape.m, mma.shape.n);
  decode_d(warp, instruction, lane, mma);
  mma.b = decode_tcgen05_matrix_descriptor(warp.scalar(instruction.operand[1], lane), "B");
  check_operand(mma.b, mma.b_shape(), "B");
  decode_a(warp, instruction, lane, mma);
  mma.use = {.type = mma.shape.d,
             .input = (warp.predicate(instruction.operand[3]) >> lane & 1) != 0,
             .scale_shift = static_cast<uint8_t>(instruction.immediate)};
  mma.disabled_lanes = {};
  for (uint32_t i = 0; i < instruction.list_count; ++i)
    mma.disabled_lanes[i] = static_cast<uint32_t>(warp.scalar(warp.listed(instruction.list, i), lane));
}

void read_operands(Mma& mma) {
  const OperandShape a = mma.a_shape(), b = mma.b_shape();
  for (uint32_t i = 0; i < mma.group.size; ++i) {
    const Cta& cta = *mma.group.ctas[i];
    if (mma.group.size > 1 && cta.exited())
      throw Trap(FaultCode::illegal_address,
                 fmt::format("tcgen05.mma reads the shared memory of CTA {}, which has ended: end a CTA of a pair only "
                             "when all MMAs that work on it are complete",
                             cta.rank),
                 "PTX ISA, CTA Pair");
    const SharedWindow window = window_of(cta);
    if (!mma.a_in_tensor_memory) gather_operand(window, mma.a, a, "A", mma.a_dense[i].data());
    gather_operand(window, mma.b, b, "B", mma.b_dense.data() + size_t{i} * b.rows * kOperandBytesPerRow);
  }
}

/// Refuses to add to columns that nothing has written, and notes that these are written now.
void note_written(const Mma& mma) {
  bool read_something = !mma.use.input, any = false;
  const uint32_t columns = mma.layout.columns_per_part;
  for (uint32_t i = 0; i < mma.group.size; ++i)
    for (uint32_t part = 0; part < mma.layout.parts; ++part)
      for (uint32_t row = 0; row < mma.layout.rows; ++row) {
        TensorMemory& tensor_memory = mma.group.ctas[i]->tensor_memory;
        const uint32_t lane = mma.d_lane + mma.layout.lane(row, part);
        if (mma.disabled(i, lane)) continue;
        any = true;
        read_something = read_something || tensor_memory.any_written(lane, mma.d_column, columns);
        tensor_memory.mark_written(lane, mma.d_column, columns);
      }
  if (any && !read_something)
    throw Trap(FaultCode::illegal_instruction,
               fmt::format("tcgen05.mma adds to columns {} to {} of tensor memory, which nothing has written since "
                           "they were allocated: "
                           "the first MMA of a tile must run with enable-input-d false",
                           mma.d_column, mma.d_column + columns - 1),
               "PTX ISA, tcgen05.alloc: contents are undefined");
}

/// A of one CTA, as the rows in part `part` of D meet it: A in tensor memory lies in the lanes of D.
void pack_a(const Mma& mma, uint32_t cta, uint32_t part, PackedOperand& a) {
  const uint32_t rows = mma.layout.rows;
  if (!mma.a_in_tensor_memory) {
    a.pack(mma.shape.a, rows, mma.a_dense[cta].data(), mma.shape.negate_a);
    return;
  }
  std::array<const uint32_t*, kLanes128> a_rows{};
  for (uint32_t row = 0; row < rows; ++row)
    a_rows[row] = mma.group.ctas[cta]->tensor_memory.row(mma.a_lane + mma.layout.lane(row, part)) + mma.a_column;
  a.pack_tmem(mma.shape.a, std::span(a_rows.data(), rows), mma.shape.negate_a);
}

/// D (+)= A * B in tensor memory.
void multiply(const Mma& mma) {
  // Packed operands are 20 KB each: one pair for every host thread, on the heap, since a library that is opened late
  // (as ours by libcuda.so.1) finds room for only a few hundred bytes of thread-local variables.
  thread_local const auto packed = std::make_unique<std::pair<PackedOperand, PackedOperand>>();
  auto& [a, b] = *packed;
  note_written(mma);
  const uint32_t rows = mma.layout.rows, columns = mma.layout.columns_per_part;
  for (uint32_t part = 0; part < mma.layout.parts; ++part) {
    b.pack(mma.shape.b, columns, mma.b_dense.data() + size_t{part} * columns * kOperandBytesPerRow, mma.shape.negate_b);
    for (uint32_t i = 0; i < mma.group.size; ++i) {
      pack_a(mma, i, part, a);
      std::array<uint32_t*, kLanes128> d_rows{};
      for (uint32_t row = 0; row < rows; ++row) {
        const uint32_t lane = mma.d_lane + mma.layout.lane(row, part);
        if (!mma.disabled(i, lane)) d_rows[row] = mma.group.ctas[i]->tensor_memory.row(lane) + mma.d_column;
      }
      fused_multiply_add(a, b, mma.use, std::span(d_rows.data(), rows));
    }
  }
}

void issue_mma(Warp& warp, const Instruction& instruction, int lane) {
  Cta& cta = warp.cta;
  Cluster& cluster = cta.cluster;
  warp.counters.mmas++;
  if (cluster.schedule() == Schedule::earliest) {
    thread_local const auto scratch = std::make_unique<Mma>();
    Mma& mma = *scratch;
    decode(warp, instruction, lane, mma);
    read_operands(mma);
    multiply(mma);
    cluster.mma_started();
    cluster.mma_ended();
    cluster.note_effect();
    return;
  }
  auto mma = std::make_shared<Mma>();
  decode(warp, instruction, lane, *mma);
  Origin who = cluster.origin(warp, lane);
  cluster.trace(who, "mma", mma->d_column, mma->b.start);
  cluster.mma_started();
  issue_to_tensor_core(
      warp, lane, mma->group, [mma] { read_operands(*mma); },
      [&cluster, &cta, mma, who] {
        check_columns(mma->group, cta, mma->d_column, mma->layout.columns_per_part,
                      "tcgen05.mma that was still under way writes D to");
        multiply(*mma);
        cluster.mma_ended();
        cluster.note_effect();
        cluster.trace(who, "mma_shown", mma->d_column);
      });
}

Flow execute_mma(Warp& warp, const Instruction& instruction) {
  // Every active lane is an issue of its own, as in the loop that ptxas makes where it cannot prove a single lane.
  for_lanes(warp.active, [&](int lane) { issue_mma(warp, instruction, lane); });
  return Flow::next;
}

}  // namespace

void bind_mma(Binder& binder) {
  Instruction& out = binder.out;
  if (binder.source.has("ws")) binder.refuse("the emulator does not execute .ws");
  if (binder.source.has("sp")) binder.refuse("the emulator does not execute .sp");
  take_cta_group(binder);
  if (binder.take("kind::tf32"))
    out.modifiers |= kTf32;
  else if (!binder.take("kind::f16"))
    binder.refuse("the emulator executes .kind::f16 and .kind::tf32");
  // Where A is kept between MMAs: speed only.
  binder.take_any({"collector::a::fill", "collector::a::use", "collector::a::lastuse", "collector::a::discard"});
  // [d], a, b, idesc{, {disabled lanes}}, enable{, scale}
  out.address = binder.address(0);
  if (binder.is_address(1)) {
    out.modifiers |= kAInTensorMemory;
    AddressOperand a = binder.address(1);
    if (a.offset != 0) binder.refuse("an offset in the tensor-memory address of A");
    out.operand[0] = a.base;
  } else {
    out.operand[0] = binder.input(1, 8);
  }
  out.operand[1] = binder.input(2, 8);
  out.operand[2] = binder.input(3, 4);
  size_t next = 4;
  if (binder.is_vector(next)) {
    std::vector<Slot> lanes = binder.inputs(binder.operand(next++), 4);
    const uint32_t wanted = out.modifiers & kPair ? 8 : 4;
    if (lanes.size() != wanted)
      binder.refuse(fmt::format("{} registers of disabled lanes are wanted, 32 lanes each", wanted));
    out.list = binder.list(lanes);
    out.list_count = wanted;
  }
  out.operand[3] = binder.input(next++, 0);
  if (binder.count() > next) out.immediate = binder.immediate(next);
  if (out.immediate < 0 || out.immediate > 15) binder.refuse("scale-input-d must be 0 to 15");
  out.execute = execute_mma;
}

}  // namespace emu::isa
