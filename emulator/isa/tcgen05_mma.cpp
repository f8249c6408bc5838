// tcgen05.mma and tcgen05.commit. PTX ISA, "tcgen05.mma", "tcgen05.commit". Arithmetic: units/tensor_core.h; operands
// in shared memory: units/descriptor_operand.h; rows and columns in tensor memory: units/tmem_layout.h.

#include <fmt/format.h>

#include <array>
#include <bit>
#include <memory>
#include <utility>

#include "emulator/isa/tcgen05.h"
#include "emulator/machine/grid.h"
#include "emulator/machine/mbarrier.h"
#include "emulator/report/fault_report.h"
#include "emulator/units/descriptor.h"
#include "emulator/units/descriptor_operand.h"
#include "emulator/units/tensor_core.h"
#include "emulator/units/tmem_layout.h"

namespace emu::isa {
namespace {

// operand 0: A descriptor (64 bits) or A address in tensor memory (32 bits), 1: B descriptor, 2: instruction
// descriptor, 3: enable-input-d; address: D; list: disable-output-lane mask (or none); immediate: scale-input-d.
constexpr uint64_t kAInTensorMemory = 1, kTf32 = 2;

/// One MMA between issue and result.
struct Mma {
  InstructionDescriptor shape;
  AccumulatorLayout layout;
  AccumulatorUse use;
  uint32_t d_lane = 0, d_column = 0;
  uint32_t a_lane = 0, a_column = 0;
  bool a_in_tensor_memory = false;
  MatrixDescriptor a, b;
  std::array<uint32_t, 4> disabled_lanes{};
  std::array<std::byte, 128 * kOperandBytesPerRow> a_dense;
  std::array<std::byte, 256 * kOperandBytesPerRow> b_dense;
};

SharedWindow window_of(const Cta& cta) {
  return {cta.window.data(), cta.cluster.grid.device.chip().shared_reserved_bytes, cta.window_bytes};
}

MmaForm form_of(const Instruction& instruction) {
  return {.kind = instruction.modifiers & kTf32 ? MmaKind::tf32 : MmaKind::f16, .cta_group = 1};
}

/// Checks everything that the bits say. Nothing has been read yet.
void decode(Warp& warp, const Instruction& instruction, int lane, Mma& mma) {
  const MmaForm form = form_of(instruction);
  mma.shape = decode_instruction_descriptor(static_cast<uint32_t>(warp.scalar(instruction.operand[2], lane)), form);
  mma.layout = accumulator_layout(form, mma.shape.m, mma.shape.n);
  mma.a_in_tensor_memory = instruction.modifiers & kAInTensorMemory;
  uint32_t d = static_cast<uint32_t>(warp.address(instruction.address, lane));
  mma.d_lane = d >> 16;
  mma.d_column = d & 0xFFFF;
  bool lane_fits = mma.layout.spread ? mma.d_lane == 0 || mma.d_lane == 16 : mma.d_lane == 0;
  if (!lane_fits)
    throw Trap(FaultCode::illegal_instruction,
               fmt::format("tcgen05.mma with M = {} and D at lane {}: it must start at lane 0{}", mma.shape.m,
                           mma.d_lane, mma.layout.spread ? " or 16" : ""),
               "PTX ISA, tcgen05 Data Path Layout Organization");
  check_columns(warp.cta, mma.d_column, mma.layout.columns_per_part, "tcgen05.mma writes D to");
  mma.b = decode_tcgen05_matrix_descriptor(warp.scalar(instruction.operand[1], lane), "B");
  check_operand(mma.b, {mma.shape.n, mma.shape.b, mma.shape.b_major}, "B");
  if (mma.a_in_tensor_memory) {
    uint32_t a = static_cast<uint32_t>(warp.scalar(instruction.operand[0], lane));
    mma.a_lane = a >> 16;
    mma.a_column = a & 0xFFFF;
    if (mma.a_lane != mma.d_lane)
      throw Trap(FaultCode::illegal_instruction,
                 fmt::format("tcgen05.mma with A at lane {} and D at lane {}: both must start at the same lane",
                             mma.a_lane, mma.d_lane),
                 "PTX ISA, tcgen05.mma: alignment of A and D in tensor memory");
    check_columns(warp.cta, mma.a_column, kOperandBytesPerRow / 4, "tcgen05.mma reads A from");
  } else {
    mma.a = decode_tcgen05_matrix_descriptor(warp.scalar(instruction.operand[0], lane), "A");
    check_operand(mma.a, {mma.shape.m, mma.shape.a, mma.shape.a_major}, "A");
  }
  mma.use = {.type = mma.shape.d,
             .input = (warp.predicate(instruction.operand[3]) >> lane & 1) != 0,
             .scale_shift = static_cast<uint8_t>(instruction.immediate)};
  mma.disabled_lanes = {};
  for (uint32_t i = 0; i < instruction.list_count; ++i)
    mma.disabled_lanes[i] = static_cast<uint32_t>(warp.scalar(warp.listed(instruction.list, i), lane));
}

void read_operands(const Cta& cta, Mma& mma) {
  if (!mma.a_in_tensor_memory)
    gather_operand(window_of(cta), mma.a, {mma.shape.m, mma.shape.a, mma.shape.a_major}, "A", mma.a_dense.data());
  gather_operand(window_of(cta), mma.b, {mma.shape.n, mma.shape.b, mma.shape.b_major}, "B", mma.b_dense.data());
}

/// D (+)= A * B in tensor memory.
void multiply(Cta& cta, const Mma& mma) {
  // Packed operands are 20 KB each: one pair for every host thread, on the heap, since a library that is opened late
  // (as ours by libcuda.so.1) finds room for only a few hundred bytes of thread-local variables.
  thread_local const auto packed = std::make_unique<std::pair<PackedOperand, PackedOperand>>();
  auto& [a, b] = *packed;
  TensorMemory& tensor_memory = cta.tensor_memory;
  uint32_t rows = mma.layout.rows;
  std::array<uint32_t*, 128> d_rows{};
  bool read_something = false;
  for (uint32_t row = 0; row < rows; ++row) {
    uint32_t lane = mma.d_lane + mma.layout.lane(row, 0);
    if (mma.disabled_lanes[lane / 32] >> (lane % 32) & 1) continue;
    if (mma.use.input) read_something = read_something || tensor_memory.any_written(lane, mma.d_column, mma.shape.n);
    tensor_memory.mark_written(lane, mma.d_column, mma.shape.n);
    d_rows[row] = tensor_memory.row(lane) + mma.d_column;
  }
  if (mma.use.input && !read_something)
    throw Trap(FaultCode::illegal_instruction,
               fmt::format("tcgen05.mma adds to columns {} to {} of tensor memory, which nothing has written since "
                           "they were allocated: "
                           "the first MMA of a tile must run with enable-input-d false",
                           mma.d_column, mma.d_column + mma.shape.n - 1),
               "PTX ISA, tcgen05.alloc: contents are undefined");
  if (mma.a_in_tensor_memory) {
    std::array<const uint32_t*, 128> a_rows{};
    for (uint32_t row = 0; row < rows; ++row) {
      uint32_t lane = mma.a_lane + mma.layout.lane(row, 0);
      a_rows[row] = tensor_memory.row(lane) + mma.a_column;
    }
    a.pack_tmem(mma.shape.a, std::span(a_rows.data(), rows), mma.shape.negate_a);
  } else {
    a.pack(mma.shape.a, mma.shape.m, mma.a_dense.data(), mma.shape.negate_a);
  }
  b.pack(mma.shape.b, mma.shape.n, mma.b_dense.data(), mma.shape.negate_b);
  fused_multiply_add(a, b, mma.use, std::span(d_rows.data(), rows));
}

// Chains apart from those that Cluster::new_chain hands out: a CTA's MMAs, and a thread's commits.
uint64_t tensor_core_chain(const Cta& cta) {
  return uint64_t{1} << 63 | cta.rank;
}
uint64_t commit_chain(const Warp& warp, int lane) {
  return uint64_t{1} << 62 | uint64_t{warp.cta.rank} << 32 | warp.index << 5 | static_cast<uint32_t>(lane);
}

void issue_mma(Warp& warp, const Instruction& instruction, int lane) {
  Cta& cta = warp.cta;
  Cluster& cluster = cta.cluster;
  Origin who = cluster.origin(warp, lane);
  warp.counters.mmas++;
  if (cluster.schedule() == Schedule::earliest) {
    thread_local const auto scratch = std::make_unique<Mma>();
    Mma& mma = *scratch;
    decode(warp, instruction, lane, mma);
    read_operands(cta, mma);
    multiply(cta, mma);
    cluster.mma_started();
    cluster.mma_ended();
    cluster.note_effect();
    return;
  }
  auto mma = std::make_shared<Mma>();
  decode(warp, instruction, lane, *mma);
  // A CTA's MMAs are carried out in the order of issue, also those of different threads (PTX ISA asks for fences and a
  // barrier between them, not for completion): none shows before the one ahead of it.
  Cluster::Times times = cluster.draw_times();
  times.show = cta.tensor_core_time = std::max(times.show, cta.tensor_core_time);
  cluster.trace(who, "mma", mma->d_column, mma->b.start);
  cluster.mma_started();
  Cluster::Order order{.chain = tensor_core_chain(cta)};
  cluster.at(times.read, cta, who, order, [&cta, mma] { read_operands(cta, *mma); });
  uint64_t number = cluster.at(times.show, cta, who, order, [&cluster, &cta, mma, who] {
    check_columns(cta, mma->d_column, mma->layout.columns_per_part, "tcgen05.mma that was still under way writes D to");
    multiply(cta, *mma);
    cluster.mma_ended();
    cluster.note_effect();
    cluster.trace(who, "mma_shown", mma->d_column);
  });
  warp.tensor_core_work[static_cast<uint32_t>(lane)] = {times.show, number};
}

Flow execute_mma(Warp& warp, const Instruction& instruction) {
  // Every active lane is an issue of its own, as in the loop that ptxas makes where it cannot prove a single lane.
  for_lanes(warp.active, [&](int lane) { issue_mma(warp, instruction, lane); });
  return Flow::next;
}

/// One arrive at each barrier when all MMAs that this thread issued before are complete.
void issue_commit(Warp& warp, const Instruction& instruction, int lane) {
  Cta& cta = warp.cta;
  Cluster& cluster = cta.cluster;
  uint64_t address = warp.address(instruction.address, lane);
  if (instruction.modifiers) {  // generic
    if (!is_shared(address))
      throw Trap(FaultCode::invalid_address_space,
                 fmt::format("tcgen05.commit to generic address {:#x}, which is not shared memory", address),
                 "PTX ISA, tcgen05.commit: mbar must be in shared memory");
    address -= kSharedWindow;
  }
  std::vector<uint32_t> barriers;
  if (instruction.operand[0].present()) {
    uint32_t mask = static_cast<uint32_t>(warp.scalar(instruction.operand[0], lane)) & 0xFFFF;
    if (mask == 0 || mask >> cluster.ctas.size())
      throw Trap(FaultCode::illegal_instruction,
                 fmt::format("tcgen05.commit to CTAs {:#06x} of a cluster of {}", mask, cluster.ctas.size()),
                 "PTX ISA, tcgen05.commit: .multicast::cluster");
    for_lanes(mask, [&](int rank) {
      barriers.push_back(static_cast<uint32_t>(rank) << 24 | shared_offset(static_cast<uint32_t>(address)));
    });
  } else {
    barriers.push_back(static_cast<uint32_t>(address));
  }
  for (uint32_t barrier : barriers) cluster.mbarrier_word(barrier, Access::read);  // refuses a bad address at issue
  Origin who = cluster.origin(warp, lane);
  warp.counters.commits++;
  Warp::TensorCoreWork& work = warp.tensor_core_work[static_cast<uint32_t>(lane)];
  Cluster::Times times = cluster.draw_times();
  work.shown = std::max(times.show, work.shown);
  Cluster::Order order{.chain = commit_chain(warp, lane), .signal = barriers[0]};
  if (work.number) order.after_chain = tensor_core_chain(cta), order.after = work.number;
  cluster.at(work.shown, cta, who, order, [&cluster, barriers, who] {
    for (uint32_t barrier : barriers) {
      mbarrier::Outcome outcome = mbarrier::arrive(cluster.mbarrier_word(barrier, Access::atomic), 1);
      cluster.mbarrier_signal(barrier, who, "tcgen05.commit");
      cluster.mbarrier_store(barrier, outcome.word, outcome.completed);
    }
  });
}

Flow execute_commit(Warp& warp, const Instruction& instruction) {
  for_lanes(warp.active, [&](int lane) { issue_commit(warp, instruction, lane); });
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
    if (lanes.size() != 4) binder.refuse("four registers of disabled lanes are wanted with cta_group::1");
    out.list = binder.list(lanes);
    out.list_count = 4;
  }
  out.operand[3] = binder.input(next++, 0);
  if (binder.count() > next) out.immediate = binder.immediate(next);
  if (out.immediate < 0 || out.immediate > 15) binder.refuse("scale-input-d must be 0 to 15");
  out.execute = execute_mma;
}

void bind_commit(Binder& binder) {
  Instruction& out = binder.out;
  take_cta_group(binder);
  if (!binder.take("mbarrier::arrive::one")) binder.refuse(".mbarrier::arrive::one is missing");
  out.modifiers = binder.take("shared::cluster") ? 0 : 1;
  bool multicast = binder.take("multicast::cluster");
  binder.take("b64");
  out.address = binder.address(0);
  if (multicast) out.operand[0] = binder.input(1, 2);
  out.execute = execute_commit;
}

}  // namespace emu::isa
