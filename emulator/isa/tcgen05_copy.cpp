// tcgen05.cp and tcgen05.shift. PTX ISA, "Tensor Memory and Shared Memory data movement". Both go into the tensor
// core's order of work, and tcgen05.commit tracks them.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "emulator/isa/tcgen05.h"
#include "emulator/machine/grid.h"
#include "emulator/units/tmem_copy.h"

namespace emu::isa {
namespace {

// modifiers: shape | decompression << 8; address: tensor memory; operand 0: descriptor.
CopyShape shape_of(const Instruction& instruction) {
  return static_cast<CopyShape>(instruction.modifiers & 0xFF);
}

struct Copy {
  CtaGroup group;
  CopyShape shape;
  Decompression decompression;
  uint32_t lane = 0, column = 0;
  MatrixDescriptor source;
  std::array<CopiedRows, 2> rows;
  hazards::IssuedPointer announced;
};

void read(Copy& copy) {
  for (uint32_t i = 0; i < copy.group.size; ++i) {
    const Cta& cta = *copy.group.ctas[i];
    if (copy.group.size > 1 && cta.exited())
      throw Trap(FaultKind::peer_gone, FaultCode::illegal_address,
                 fmt::format("tcgen05.cp reads the shared memory of CTA {}, which has ended", cta.rank),
                 "PTX ISA, CTA Pair");
    const SharedWindow window{cta.window.data(), cta.cluster.grid.device.chip().shared_reserved_bytes,
                              cta.window_bytes};
    gather_copy(window, copy.source, copy.shape, copy.decompression, copy.rows[i]);
    if (copy.announced) {
      const CopyExtent extent = extent_of(copy.shape);
      std::vector<hazards::Hazards::Bytes> ranges;
      for (uint32_t row = 0; row < extent.rows; ++row)
        for (uint32_t chunk = 0; chunk < extent.row_bytes / 16; ++chunk)
          ranges.push_back(
              {chunk_address(copy.source, {extent.rows, ElementType::e4m3, Major::k}, row * 2 + chunk), 16});
      cta.cluster.hazards->shared(*copy.announced, hazards::Kind::copy_source, *copy.group.ctas[i], ranges);
    }
  }
}

void write(const Copy& copy) {
  const CopyExtent extent = extent_of(copy.shape);
  if (copy.announced)
    for (uint32_t i = 0; i < copy.group.size; ++i) {
      std::vector<hazards::Hazards::Cells> cells;
      for (uint32_t row = 0; row < extent.rows; row += extent.rows < 16 ? 1 : 16)
        for (uint32_t again = 0; again < extent.copies; ++again)
          cells.push_back({copy.lane + copy_lane(copy.shape, row, again), std::min(extent.rows, 16u), copy.column,
                           extent.row_bytes / 4});
      Cta& cta = *copy.group.ctas[i];
      cta.cluster.hazards->tensor(*copy.announced, hazards::Kind::tensor_copy, cta, cells);
    }
  for (uint32_t i = 0; i < copy.group.size; ++i) {
    TensorMemory& tensor_memory = copy.group.ctas[i]->tensor_memory;
    for (uint32_t row = 0; row < extent.rows; ++row)
      for (uint32_t again = 0; again < extent.copies; ++again) {
        const uint32_t lane = copy.lane + copy_lane(copy.shape, row, again);
        std::memcpy(tensor_memory.row(lane) + copy.column, copy.rows[i].data() + row * extent.row_bytes,
                    extent.row_bytes);
        tensor_memory.mark_written(lane, copy.column, extent.row_bytes / 4);
      }
  }
}

void issue_copy(Warp& warp, const Instruction& instruction, int lane) {
  auto copy = std::make_shared<Copy>();
  copy->group = cta_group(warp.cta, instruction.modifiers & kPair, "tcgen05.cp");
  copy->shape = shape_of(instruction);
  copy->decompression = static_cast<Decompression>(instruction.modifiers >> 8 & 0xFF);
  const uint32_t address = static_cast<uint32_t>(warp.address(instruction.address, lane));
  copy->lane = address >> 16;
  copy->column = address & 0xFFFF;
  if (copy->lane + lane_span(copy->shape) > TensorMemory::kTmemLanes)
    throw Trap(FaultCode::illegal_instruction,
               fmt::format("tcgen05.cp to lane {}: this shape reaches {} lanes further, tensor memory has 128",
                           copy->lane, lane_span(copy->shape) - 1),
               "PTX ISA, tcgen05.cp: shapes");
  const uint32_t columns = extent_of(copy->shape).row_bytes / 4;
  if (copy->column % 4)
    throw Trap(FaultCode::illegal_instruction,
               fmt::format("tcgen05.cp to column {}: it must be a multiple of 4 (128 bits)", copy->column),
               "PTX ISA, tcgen05.cp: data movement shape");
  check_columns(copy->group, warp.cta, copy->column, columns, "tcgen05.cp writes");
  copy->source = matrix_descriptor(warp, warp.scalar(instruction.operand[0], lane), "the source");
  Cluster& cluster = warp.cta.cluster;
  const Origin who = cluster.origin(warp, lane);
  copy->announced = announce_tensor_work(warp, lane);
  cluster.trace(who, "tmem_copy", {copy->column, copy->source.start});
  issue_to_tensor_core(
      warp, lane, copy->group, [copy] { read(*copy); },
      [&cluster, &cta = warp.cta, copy, columns] {
        check_columns(copy->group, cta, copy->column, columns, "tcgen05.cp that was still under way writes");
        write(*copy);
        cluster.note_effect();
      });
}

Flow execute_copy(Warp& warp, const Instruction& instruction) {
  for_lanes(warp.active, [&](int lane) { issue_copy(warp, instruction, lane); });
  return Flow::next;
}

constexpr uint32_t kShiftColumns = 8, kShiftLanes = 32;  // .31x256b: 31 lanes of 32 change

/// Row i takes what row i + 1 holds; the last of the 32 keeps its own. The ISA says "downwards across all the rows,
/// except the last, by one row"; that the last one is the one to be filled anew afterwards, CUTLASS says of
/// tcgen05.cp.4x256b ("designed to refresh the last 4 lanes of each tmem subpartition").
void shift(const CtaGroup& group, uint32_t lane, uint32_t column) {
  for (uint32_t i = 0; i < group.size; ++i) {
    TensorMemory& tensor_memory = group.ctas[i]->tensor_memory;
    for (uint32_t row = 0; row + 1 < kShiftLanes; ++row) {
      std::memcpy(tensor_memory.row(lane + row) + column, tensor_memory.row(lane + row + 1) + column,
                  kShiftColumns * 4);
      tensor_memory.mark_written(lane + row, column, kShiftColumns);
    }
  }
}

void issue_shift(Warp& warp, const Instruction& instruction, int lane) {
  const CtaGroup group = cta_group(warp.cta, instruction.modifiers & kPair, "tcgen05.shift");
  const uint32_t address = static_cast<uint32_t>(warp.address(instruction.address, lane));
  const uint32_t first = address >> 16, column = address & 0xFFFF;
  if (first % kShiftLanes || first >= TensorMemory::kTmemLanes)
    throw Trap(FaultCode::illegal_instruction,
               fmt::format("tcgen05.shift from lane {}: it must be 0, 32, 64 or 96", first),
               "PTX ISA, tcgen05.shift: the lane of taddr must be aligned to 32");
  check_columns(group, warp.cta, column, kShiftColumns, "tcgen05.shift moves");
  Cluster& cluster = warp.cta.cluster;
  const auto announced = announce_tensor_work(warp, lane);
  issue_to_tensor_core(warp, lane, group, nullptr, [&cluster, &cta = warp.cta, group, first, column, announced] {
    check_columns(group, cta, column, kShiftColumns, "tcgen05.shift that was still under way moves");
    if (announced) {
      const hazards::Hazards::Cells cells{first, kShiftLanes, column, kShiftColumns};
      for (uint32_t i = 0; i < group.size; ++i)
        cluster.hazards->tensor(*announced, hazards::Kind::tensor_shift, *group.ctas[i], {&cells, 1});
    }
    shift(group, first, column);
    cluster.note_effect();
  });
}

Flow execute_shift(Warp& warp, const Instruction& instruction) {
  for_lanes(warp.active, [&](int lane) { issue_shift(warp, instruction, lane); });
  return Flow::next;
}

CopyShape take_shape(Binder& binder) {
  if (binder.take("128x256b")) return CopyShape::s128x256b;
  if (binder.take("4x256b")) return CopyShape::s4x256b;
  if (binder.take("128x128b")) return CopyShape::s128x128b;
  if (binder.take("64x128b")) {
    if (binder.take("warpx2::02_13")) return CopyShape::s64x128b_02_13;
    if (binder.take("warpx2::01_23")) return CopyShape::s64x128b_01_23;
    binder.refuse(".64x128b wants .warpx2::02_13 or .warpx2::01_23");
  }
  if (binder.take("32x128b")) {
    if (binder.take("warpx4")) return CopyShape::s32x128b;
    binder.refuse(".32x128b wants .warpx4");
  }
  binder.refuse("the shape is missing");
}

}  // namespace

void bind_copy(Binder& binder) {
  Instruction& out = binder.out;
  take_cta_group(binder);
  out.modifiers |= static_cast<uint64_t>(take_shape(binder));
  Decompression decompression = Decompression::none;
  if (binder.take("b8x16")) {
    if (binder.take("b6x16_p32"))
      decompression = Decompression::b6x16_p32;
    else if (binder.take("b4x16_p64"))
      decompression = Decompression::b4x16_p64;
    else
      binder.refuse(".b8x16 wants .b6x16_p32 or .b4x16_p64");
  }
  out.modifiers |= static_cast<uint64_t>(decompression) << 8;
  out.address = binder.address(0);
  out.operand[0] = binder.input(1, 8);
  out.execute = execute_copy;
}

void bind_shift(Binder& binder) {
  Instruction& out = binder.out;
  take_cta_group(binder);
  if (!binder.take("down")) binder.refuse(".down is missing");
  out.address = binder.address(0);
  out.execute = execute_shift;
}

}  // namespace emu::isa
