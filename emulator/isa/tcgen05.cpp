// tcgen05: allocation of tensor memory, and the table entry of the whole family.
// PTX ISA, "Tensor Memory Allocation and Management Instructions".

#include "emulator/isa/tcgen05.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "emulator/isa/families.h"
#include "emulator/machine/decoder.h"
#include "emulator/machine/grid.h"

namespace emu::isa {
namespace {

/// The value that all active lanes must agree on.
uint32_t uniform(const Warp& warp, const Slot& slot, const char* what) {
  int first = std::countr_zero(warp.active);
  uint32_t value = static_cast<uint32_t>(warp.scalar(slot, first));
  for_lanes(warp.active, [&](int lane) {
    if (static_cast<uint32_t>(warp.scalar(slot, lane)) != value)
      throw Trap(FaultCode::illegal_instruction,
                 fmt::format("{} differs between the lanes of the warp ({:#x} and {:#x})", what, value,
                             static_cast<uint32_t>(warp.scalar(slot, lane))),
                 "PTX ISA, tcgen05: .sync.aligned, operands the same for all threads of the warp");
  });
  return value;
}

void check_column_count(uint32_t columns, const char* instruction) {
  if (columns < 32 || columns > TensorMemory::kColumns || !std::has_single_bit(columns))
    throw Trap(FaultCode::illegal_instruction,
               fmt::format("{} of {} columns: it must be a power of two from 32 to 512", instruction, columns),
               "PTX ISA, tcgen05.alloc: nCols");
}

/// address: where the tensor-memory address goes (modifiers: 1 when generic); operand 0: number of columns.
Flow execute_alloc(Warp& warp, const Instruction& instruction) {
  Cta& cta = warp.cta;
  Cluster& cluster = cta.cluster;
  uint32_t columns = uniform(warp, instruction.operand[0], "the number of columns");
  check_column_count(columns, "tcgen05.alloc");
  if (!cta.alloc_permit)
    throw Trap(FaultCode::illegal_instruction,
               "tcgen05.alloc after this CTA gave up the permit with tcgen05.relinquish_alloc_permit",
               "PTX ISA, tcgen05.relinquish_alloc_permit");
  uint64_t address = warp.address(instruction.address, std::countr_zero(warp.active));
  if (instruction.modifiers) {  // generic
    if (!is_shared(address))
      throw Trap(FaultCode::illegal_instruction,
                 fmt::format("tcgen05.alloc to generic address {:#x}, which is not shared memory", address),
                 "PTX ISA, tcgen05.alloc: dst must be in shared memory");
    address -= kSharedWindow;
  }
  std::optional<uint32_t> first = cta.tensor_memory.allocate(cta.owner, columns);
  if (!first) {
    Group& group =
        cluster.park(warp, warp.active, {.kind = WaitKind::tensor_memory, .address = columns}, warp.group->pc);
    cluster.poll_later(group);
    return Flow::parked;
  }
  std::memcpy(cluster.shared(static_cast<uint32_t>(address), 4, Access::write), &*first, 4);
  cluster.trace(cluster.origin(warp), "tmem_alloc", *first, columns);
  return Flow::next;
}

/// operand 0: tensor-memory address, 1: number of columns.
Flow execute_dealloc(Warp& warp, const Instruction& instruction) {
  Cta& cta = warp.cta;
  uint32_t address = uniform(warp, instruction.operand[0], "the tensor-memory address");
  uint32_t columns = uniform(warp, instruction.operand[1], "the number of columns");
  check_column_count(columns, "tcgen05.dealloc");
  if (address >> 16 || !cta.tensor_memory.release(cta.owner, address, columns))
    throw Trap(
        FaultCode::illegal_instruction,
        fmt::format(
            "tcgen05.dealloc of {} columns at {:#010x}: this CTA has no such allocation (it holds {} columns now)",
            columns, address, cta.tensor_memory.held_by(cta.owner)),
        "PTX ISA, tcgen05.dealloc: taddr and nCols must be those of an earlier tcgen05.alloc");
  cta.cluster.note_effect();
  cta.cluster.trace(cta.cluster.origin(warp), "tmem_dealloc", address, columns);
  return Flow::next;
}

Flow execute_relinquish(Warp& warp, const Instruction&) {
  warp.cta.alloc_permit = false;
  return Flow::next;
}

Flow execute_fence(Warp&, const Instruction&) {
  return Flow::next;
}

void bind_tcgen05(Binder& binder) {
  Instruction& out = binder.out;
  if (binder.take("alloc")) {
    take_cta_group(binder);
    binder.take("sync");
    binder.take("b32");
    out.modifiers = binder.take("shared::cta") ? 0 : 1;
    out.address = binder.address(0);
    out.operand[0] = binder.input(1, 4);
    out.visible = true;
    out.execute = execute_alloc;
    binder.decoder().program().uses_tensor_memory = true;
  } else if (binder.take("dealloc")) {
    take_cta_group(binder);
    binder.take("sync");
    binder.take("b32");
    out.operand[0] = binder.input(0, 4);
    out.operand[1] = binder.input(1, 4);
    out.visible = true;
    out.execute = execute_dealloc;
  } else if (binder.take("relinquish_alloc_permit")) {
    take_cta_group(binder);
    binder.take("sync");
    out.execute = execute_relinquish;
  } else if (binder.take("fence::before_thread_sync") || binder.take("fence::after_thread_sync")) {
    out.execute = execute_fence;  // orders nothing here that is not in order; the hazard rules look at it
  } else if (binder.take("ld")) {
    bind_tensor_load(binder);
  } else if (binder.take("st")) {
    bind_tensor_store(binder);
  } else if (binder.take("wait::ld")) {
    bind_tensor_wait(binder, true);
  } else if (binder.take("wait::st")) {
    bind_tensor_wait(binder, false);
  } else if (binder.take("mma")) {
    bind_mma(binder);
  } else if (binder.take("commit")) {
    bind_commit(binder);
  } else {
    binder.refuse("the emulator does not execute this operation");
  }
}

constexpr Entry kEntries[] = {{"tcgen05", bind_tcgen05}};

}  // namespace

void take_cta_group(Binder& binder) {
  if (binder.take("cta_group::1")) return;
  if (binder.take("cta_group::2")) binder.refuse("the emulator does not execute CTA pairs (cta_group::2)");
  binder.refuse("a .cta_group is wanted");
}

void check_columns(const Cta& cta, uint32_t first, uint32_t count, const char* what) {
  if (first + count > TensorMemory::kColumns)
    throw Trap(FaultCode::illegal_address,
               fmt::format("{} columns {} to {}: tensor memory has 512", what, first, first + count - 1),
               "PTX ISA, Tensor Memory: 128 lanes x 512 columns");
  for (uint32_t column = first; column < first + count; ++column) {
    TensorMemory::Owner owner = cta.tensor_memory.owner(column);
    if (owner == cta.owner) continue;
    throw Trap(FaultCode::illegal_address,
               fmt::format("{} columns {} to {}: column {} is {}. This CTA may use what its tcgen05.alloc gave it",
                           what, first, first + count - 1, column, owner ? "another CTA's" : "not allocated"),
               "PTX ISA, Tensor Memory: columns must be allocated before use");
  }
}

std::span<const Entry> tcgen05_entries() {
  return kEntries;
}

}  // namespace emu::isa
