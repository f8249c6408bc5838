// tcgen05.ld, tcgen05.st and their waits. PTX ISA, "Tensor Memory Load and Store Instructions". Which register of which
// thread is which cell: units/tmem_layout.h.
//
// A load is asynchronous: it reads tensor memory some time after its issue, at the latest when its registers are needed
// (the scoreboard) or when tcgen05.wait::ld asks. A store takes its registers at issue and writes some time later, at
// the latest at tcgen05.wait::st. Until then both are pending in their warp.

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>

#include "emulator/hazards/hazards.h"
#include "emulator/isa/tcgen05.h"
#include "emulator/isa/tensor_access.h"
#include "emulator/units/tmem_layout.h"

namespace emu {
namespace {

/// A NaN that no arithmetic makes.
constexpr uint32_t kPoison = 0xFFFFDEAD;

/// modifiers: shape | repeat << 8 | packed << 24; immediate: of .16x32bx2.
TmemAccess access_of(const Instruction& instruction) {
  return {.shape = static_cast<TmemShape>(instruction.modifiers & 0xFF),
          .repeat = static_cast<uint32_t>(instruction.modifiers >> 8 & 0xFFFF),
          .packed = (instruction.modifiers >> 24 & 1) != 0,
          .immediate = static_cast<uint32_t>(instruction.immediate)};
}

uint32_t captured_address(const PendingTensorAccess& pending) {
  uint32_t address;
  std::memcpy(&address, pending.captured.data(), 4);
  return address;
}

void perform_load(Warp& warp, const PendingTensorAccess& pending) {
  const Instruction& instruction = *pending.instruction;
  TmemAccess access = access_of(instruction);
  TensorMemory& tensor_memory = warp.cta.tensor_memory;
  uint32_t address = captured_address(pending);
  uint32_t first_lane = warp.index % 4 * 32 + (address >> 16) % 32, first_column = address & 0xFFFF;
  isa::check_columns(warp.cta, first_column, column_span(access), "tcgen05.ld reads");
  bool written = false;
  for (uint32_t lane = 0; lane < lane_count(access.shape) && !written; ++lane)
    written = tensor_memory.any_written(first_lane + lane, first_column, column_span(access));
  if (!written) {
    // Not a fault by itself: compilers that pipeline load ahead and drop what they got, as where a loop has no turns
    // and skips its MMAs. Fresh cells hold NaN.
    if (warp.strict())
      throw Trap(FaultKind::tensor_memory_unwritten, FaultCode::illegal_address,
                 fmt::format("tcgen05.ld reads lanes {} to {}, columns {} to {} of tensor memory, which nothing has "
                             "written since they were allocated: wait first for the mbarrier that the MMAs' "
                             "tcgen05.commit signals",
                             first_lane, first_lane + lane_count(access.shape) - 1, first_column,
                             first_column + column_span(access) - 1),
                 "PTX ISA, tcgen05.alloc: contents are undefined");
    Cluster& cluster = warp.cta.cluster;
    cluster.remark(
        {warp.cta.rank, warp.index, instruction.source},
        "tcgen05.ld got NaN from tensor memory that nothing has written since it was allocated: wait first for "
        "the mbarrier that the MMAs' tcgen05.commit signals");
  }
  for (uint32_t reg = 0; reg < instruction.list_count; ++reg) {
    const Slot& slot = warp.listed(instruction.list, reg);
    if (!slot.present()) continue;
    uint32_t* out = warp.write<uint32_t>(slot);
    for_lanes(pending.mask, [&](int thread) {
      TmemCell cell = register_cell(access, static_cast<uint32_t>(thread), reg);
      const uint32_t* at = tensor_memory.row(first_lane + cell.lane) + first_column + cell.column;
      out[thread] = access.packed ? (at[0] & 0xFFFF) | at[1] << 16 : at[0];
    });
  }
}

void perform_store(Warp& warp, const PendingTensorAccess& pending) {
  const Instruction& instruction = *pending.instruction;
  TmemAccess access = access_of(instruction);
  TensorMemory& tensor_memory = warp.cta.tensor_memory;
  uint32_t address = captured_address(pending);
  uint32_t first_lane = warp.index % 4 * 32 + (address >> 16) % 32, first_column = address & 0xFFFF;
  isa::check_columns(warp.cta, first_column, column_span(access), "tcgen05.st writes");
  for (uint32_t reg = 0; reg < instruction.list_count; ++reg)
    for_lanes(pending.mask, [&](int thread) {
      uint32_t value;
      std::memcpy(&value, pending.captured.data() + 4 + (size_t{reg} * kLanes + static_cast<size_t>(thread)) * 4, 4);
      TmemCell cell = register_cell(access, static_cast<uint32_t>(thread), reg);
      uint32_t lane = first_lane + cell.lane, column = first_column + cell.column;
      uint32_t* at = tensor_memory.row(lane) + column;
      if (access.packed) {
        at[0] = value & 0xFFFF;
        at[1] = value >> 16;
        tensor_memory.mark_written(lane, column, 2);
      } else {
        at[0] = value;
        tensor_memory.mark_written(lane, column, 1);
      }
    });
  warp.cta.cluster.note_effect();
}

void tell_hazards(Warp& warp, const PendingTensorAccess& pending) {
  if (!pending.announced) return;
  const TmemAccess access = access_of(*pending.instruction);
  const uint32_t address = captured_address(pending);
  const uint32_t lane = warp.index % 4 * 32 + (address >> 16) % 32, column = address & 0xFFFF;
  std::vector<hazards::Hazards::Cells> cells;
  if (access.shape == TmemShape::s16x32bx2) {
    // Two runs of columns: one for each half of the warp's threads.
    const uint32_t columns = access.repeat * (access.packed ? 2 : 1);
    cells = {{lane, 16, column, columns}, {lane, 16, column + access.immediate, columns}};
  } else {
    cells = {{lane, lane_count(access.shape), column, column_span(access)}};
  }
  warp.cta.cluster.hazards->tensor(
      *pending.announced, pending.is_load ? hazards::Kind::tensor_load : hazards::Kind::tensor_store, warp.cta, cells);
}

void perform(Warp& warp, const PendingTensorAccess& pending) {
  tell_hazards(warp, pending);
  Origin outer = warp.cta.cluster.act_as({warp.cta.rank, warp.index, pending.source, -1});
  const InFrame registers(warp, *pending.frame);
  if (pending.is_load)
    perform_load(warp, pending);
  else
    perform_store(warp, pending);
  warp.cta.cluster.trace({warp.cta.rank, warp.index, pending.source, -1},
                         pending.is_load ? "tmem_load_shown" : "tmem_store_shown", {pending.operation});
  warp.cta.cluster.act_as(outer);
}

/// Carries out pending[0..count), in order, those of one kind only when asked.
void perform_first(Warp& warp, size_t count) {
  for (size_t i = 0; i < count; ++i) perform(warp, warp.pending[i]);
  warp.pending.erase(warp.pending.begin(), warp.pending.begin() + static_cast<std::ptrdiff_t>(count));
}

void issue(Warp& warp, PendingTensorAccess pending) {
  Cluster& cluster = warp.cta.cluster;
  pending.source = cluster.origin(warp).source;
  pending.frame = warp.group->frame;
  pending.operation = cluster.new_operation();
  if (cluster.hazards) {
    pending.announced = cluster.hazards->issue(warp, -1);
    cluster.hazards->completes_with_tensor_wait(*pending.announced, warp, pending.is_load);
    if (pending.is_load) warp.unread.push_back({pending.instruction, pending.frame, pending.announced});
  }
  uint32_t address;
  std::memcpy(&address, pending.captured.data(), sizeof address);
  cluster.trace(cluster.origin(warp), pending.is_load ? "tmem_load" : "tmem_store",
                {pending.operation, address & 0xFFFF, column_span(access_of(*pending.instruction))});
  if (pending.is_load && warp.strict()) {
    // Only tcgen05.wait::ld may make the registers good: until then they hold a value that shows.
    for (uint32_t reg = 0; reg < pending.instruction->list_count; ++reg) {
      const Slot& slot = warp.listed(pending.instruction->list, reg);
      if (!slot.present()) continue;
      for_lanes(pending.mask, [&](int thread) { warp.write<uint32_t>(slot)[thread] = kPoison; });
    }
    warp.pending.push_back(std::move(pending));
    return;
  }
  Cluster::Times times = cluster.draw_times();
  if (cluster.schedule() == Schedule::earliest) {
    perform(warp, pending);
    return;
  }
  uint64_t id = pending.id = cluster.draw();
  warp.pending.push_back(std::move(pending));
  cluster.at(times.show, warp.cta, cluster.origin(warp), {}, [&warp, id] {
    auto it = std::find_if(warp.pending.begin(), warp.pending.end(), [id](auto& p) { return p.id == id; });
    if (it == warp.pending.end()) return;
    PendingTensorAccess due = std::move(*it);
    warp.pending.erase(it);
    perform(warp, due);
  });
}

uint32_t tensor_address(Warp& warp, const Instruction& instruction, TmemShape shape, const char* name) {
  uint32_t address = static_cast<uint32_t>(warp.address(instruction.address, std::countr_zero(warp.active)));
  for_lanes(warp.active, [&](int lane) {
    if (static_cast<uint32_t>(warp.address(instruction.address, lane)) != address)
      throw Trap(FaultCode::illegal_instruction,
                 fmt::format("{}: the tensor-memory address differs between lanes of the warp", name),
                 "PTX ISA, tcgen05.ld: taddr must be the same for all threads of the warp");
  });
  // The quarter is the warp's, whatever the address says: code of NVIDIA's, and others', leaves it at 0 in all warps.
  // An address that names another one was meant for another warp.
  const uint32_t quarter = warp.index % 4;
  if (quarter != 0 && (address >> 16) / 32 % 4 == 0 && !warp.strict()) {
    warp.cta.cluster.remark(
        warp.cta.cluster.origin(warp),
        "the address of tcgen05.ld or .st names lanes 0 to 31, which are warp 0's of four; taken as the "
        "warp's own quarter. The PTX ISA wants it named: add 32 * (warp % 4) lanes");
    address += quarter * 32 << 16;
  }
  uint32_t lane = address >> 16;
  if (lane / 32 % 4 != quarter)
    throw Trap(FaultKind::tensor_memory_quarter,
               fmt::format("{} of lane {} by warp {}: a warp reaches lanes {} to {} only (its index mod 4, times 32)",
                           name, lane, warp.index, quarter * 32, quarter * 32 + 31),
               "PTX ISA, tcgen05.ld: access restrictions");
  uint32_t base = lane % 32;
  if (base != 0 && !(base == 16 && lane_count(shape) == 16))
    throw Trap(FaultKind::tensor_memory_quarter,
               fmt::format("{} starts at lane {}: this shape starts at lane {} of the warp's 32", name, lane,
                           lane_count(shape) == 16 ? "0 or 16" : "0"),
               "PTX ISA, tcgen05.ld: shapes");
  return address;
}

Flow execute_load(Warp& warp, const Instruction& instruction) {
  uint32_t address = tensor_address(warp, instruction, access_of(instruction).shape, "tcgen05.ld");
  warp.counters.tmem_loads++;
  PendingTensorAccess pending{
      .instruction = &instruction, .mask = warp.active, .is_load = true, .captured = std::vector<std::byte>(4)};
  std::memcpy(pending.captured.data(), &address, 4);
  issue(warp, std::move(pending));
  return Flow::next;
}

Flow execute_store(Warp& warp, const Instruction& instruction) {
  uint32_t address = tensor_address(warp, instruction, access_of(instruction).shape, "tcgen05.st");
  warp.counters.tmem_stores++;
  PendingTensorAccess pending{.instruction = &instruction, .mask = warp.active, .is_load = false, .captured = {}};
  pending.captured.resize(4 + size_t{instruction.list_count} * kLanes * 4);
  std::memcpy(pending.captured.data(), &address, 4);
  for (uint32_t reg = 0; reg < instruction.list_count; ++reg)
    std::memcpy(pending.captured.data() + 4 + size_t{reg} * kLanes * 4,
                warp.read<uint32_t>(warp.listed(instruction.list, reg)), kLanes * 4);
  issue(warp, std::move(pending));
  return Flow::next;
}

/// modifiers: 1 for wait::ld, 0 for wait::st. Loads and stores are carried out in issue order among their kind.
Flow execute_wait(Warp& warp, const Instruction& instruction) {
  bool loads = instruction.modifiers;
  if (warp.cta.cluster.hazards) {
    warp.cta.cluster.hazards->tensor_waited(warp, loads, warp.active);
    if (loads) warp.unread.clear();
  }
  std::vector<PendingTensorAccess> due, left;
  for (PendingTensorAccess& pending : warp.pending)
    (pending.is_load == loads ? due : left).push_back(std::move(pending));
  warp.pending = std::move(left);
  for (const PendingTensorAccess& pending : due) perform(warp, pending);
  return Flow::next;
}

/// Does `instruction` touch a register that `load` will write? The load's address was taken when it was issued.
bool depends(const Warp& warp, const Instruction& instruction, const Instruction& load) {
  for (uint32_t i = 0; i < load.list_count; ++i) {
    const Slot& result = warp.listed(load.list, i);
    if (!result.present()) continue;
    for (uint32_t j = 0; j < instruction.touched_count; ++j) {
      const Range& range = warp.program().touched[instruction.touched + j];
      if (result.offset < range.end && range.begin < result.offset + kLanes * 4) return true;
    }
  }
  return false;
}

}  // namespace

void note_tensor_consumption(Warp& warp, const Instruction& instruction, uint32_t lanes) {
  for (size_t i = warp.unread.size(); i-- > 0;) {
    UnreadTensorLoad& load = warp.unread[i];
    if (&*load.frame != &warp.frame() || &instruction == load.instruction ||
        !depends(warp, instruction, *load.instruction))
      continue;
    warp.cta.cluster.hazards->tensor_consumed(warp, *load.announced, lanes);
    // The lanes that have not got here yet are told by the next instruction that reads.
    if ((lanes & warp.live) == warp.live) {
      warp.unread.erase(warp.unread.begin(), warp.unread.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    }
    return;
  }
}

void resolve_tensor_dependencies(Warp& warp, const Instruction& instruction) {
  if (warp.strict()) return;
  for (size_t i = warp.pending.size(); i-- > 0;)
    if (warp.pending[i].is_load && &*warp.pending[i].frame == &warp.frame() &&
        depends(warp, instruction, *warp.pending[i].instruction)) {
      perform_first(warp, i + 1);
      return;
    }
}

namespace isa {
namespace {

void bind_access(Binder& binder, bool load) {
  Instruction& out = binder.out;
  if (binder.source.has("red")) binder.refuse("tcgen05.ld.red exists on sm_103 only, which the emulator is not");
  binder.take("sync");
  constexpr std::pair<std::string_view, TmemShape> kShapes[] = {{"32x32b", TmemShape::s32x32b},
                                                                {"16x64b", TmemShape::s16x64b},
                                                                {"16x128b", TmemShape::s16x128b},
                                                                {"16x256b", TmemShape::s16x256b},
                                                                {"16x32bx2", TmemShape::s16x32bx2}};
  TmemAccess access;
  bool found = false;
  for (auto [name, shape] : kShapes)
    if (binder.take(name)) access.shape = shape, found = true;
  if (!found) binder.refuse("the shape is missing");
  access.repeat = 0;
  for (uint32_t repeat = 1; repeat <= 128; repeat *= 2)
    if (binder.take("x" + std::to_string(repeat))) access.repeat = repeat;
  if (access.repeat == 0) binder.refuse("the repeat (.x1 to .x128) is missing");
  access.packed = binder.take(load ? "pack::16b" : "unpack::16b");
  binder.take("b32");
  // ld {registers}, [address]{, immediate}; st [address]{, immediate}, {registers}
  bool halves = access.shape == TmemShape::s16x32bx2;
  size_t address = load ? 1 : 0, registers = load ? 0 : halves ? 2 : 1;
  if (halves) access.immediate = static_cast<uint32_t>(binder.immediate(load ? 2 : 1));
  out.address = binder.address(address);
  std::vector<Slot> slots =
      load ? binder.outputs(binder.operand(registers)) : binder.inputs(binder.operand(registers), 4);
  if (slots.size() != register_count(access))
    binder.refuse("this shape and repeat take " + std::to_string(register_count(access)) + " registers, not " +
                  std::to_string(slots.size()));
  out.list = binder.list(slots);
  out.list_count = static_cast<uint32_t>(slots.size());
  out.modifiers = static_cast<uint64_t>(access.shape) | uint64_t{access.repeat} << 8 | uint64_t{access.packed} << 24;
  out.immediate = access.immediate;
  out.execute = load ? execute_load : execute_store;
}

}  // namespace

void bind_tensor_load(Binder& binder) {
  bind_access(binder, true);
}
void bind_tensor_store(Binder& binder) {
  bind_access(binder, false);
}

void bind_tensor_wait(Binder& binder, bool loads) {
  binder.take("sync");
  binder.out.modifiers = loads;
  binder.out.drains = true;
  binder.out.execute = execute_wait;
}

}  // namespace isa
}  // namespace emu
