// tcgen05.alloc, dealloc, relinquish_alloc_permit. PTX ISA, "Tensor Memory Allocation and Management Instructions".
//
// With .cta_group::2 one warp of each CTA of a pair calls: the first to come waits for the other, and both get the same
// columns once those are free on both SMs.

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "emulator/hazards/hazards.h"
#include "emulator/isa/tcgen05.h"
#include "emulator/machine/grid.h"

namespace emu::isa {
namespace {

/// The value that all active lanes must agree on.
uint32_t uniform(const Warp& warp, const Slot& slot, const char* what) {
  int first = std::countr_zero(warp.active);
  uint32_t value = static_cast<uint32_t>(warp.scalar(slot, first));
  for_lanes(warp.active, [&](int lane) {
    if (static_cast<uint32_t>(warp.scalar(slot, lane)) != value)
      throw Trap(FaultKind::tensor_memory_alloc,
                 fmt::format("{} differs between the lanes of the warp ({:#x} and {:#x})", what, value,
                             static_cast<uint32_t>(warp.scalar(slot, lane))),
                 "PTX ISA, tcgen05: .sync.aligned, operands the same for all threads of the warp");
  });
  return value;
}

void check_column_count(uint32_t columns, const char* instruction) {
  if (columns < 32 || columns > TensorMemory::kColumns || !std::has_single_bit(columns))
    throw Trap(FaultKind::tensor_memory_alloc,
               fmt::format("{} of {} columns: it must be a power of two from 32 to 512", instruction, columns),
               "PTX ISA, tcgen05.alloc: nCols");
}

/// Waits for a warp of the other CTA; the instruction is done when it has come.
Flow await_peer(Warp& warp, std::vector<PairCall>& calls, WaitKind kind, uint32_t columns, uint32_t address) {
  Group& group = warp.cta.cluster.park(warp, warp.active, {.kind = kind, .address = columns, .for_peer = true},
                                       warp.group->pc + 1);
  calls.push_back({&group, columns, address, nullptr});
  return Flow::parked;
}

/// Where tcgen05.alloc leaves the address of what it got.
constexpr uint64_t kGeneric = 1;
uint32_t result_address(const Warp& warp, const Instruction& instruction) {
  uint64_t address = warp.address(instruction.address, std::countr_zero(warp.active));
  if (instruction.modifiers & kGeneric) {
    if (!is_shared(address))
      throw Trap(FaultKind::tensor_memory_alloc,
                 fmt::format("tcgen05.alloc to generic address {:#x}, which is not shared memory", address),
                 "PTX ISA, tcgen05.alloc: dst must be in shared memory");
    address -= kSharedWindow;
  }
  if (shared_rank(static_cast<uint32_t>(address)) != warp.cta.rank)
    throw Trap(FaultKind::tensor_memory_alloc,
               fmt::format("tcgen05.alloc to shared address {:#x}, which is another CTA's", address),
               "PTX ISA, tcgen05.alloc: dst must be in .shared::cta");
  warp.cta.cluster.shared(static_cast<uint32_t>(address), 4, Access::read);  // refuses a bad one
  return static_cast<uint32_t>(address);
}

void leave_result(Warp& warp, uint32_t address, uint32_t first, uint32_t columns, Warp* peer = nullptr) {
  Cta& cta = warp.cta;
  std::memcpy(cta.cluster.shared(address, 4, Access::write), &first, 4);
  cta.last_alloc_columns = columns;
  if (auto* const hazards = cta.cluster.hazards.get()) {
    hazards->warp_writes(warp, address, 4, hazards::Kind::alloc_slot);
    hazards->tensor_allocated(warp, first, columns, peer);
  }
}

Flow wait_for_columns(Warp& warp, uint32_t columns) {
  Cluster& cluster = warp.cta.cluster;
  Group& group = cluster.park(warp, warp.active, {.kind = WaitKind::tensor_memory, .address = columns}, warp.group->pc);
  cluster.poll_later(group);
  return Flow::parked;
}

Flow alloc_pair(Warp& warp, uint32_t columns, uint32_t address) {
  Cta& cta = warp.cta;
  Cta& peer = peer_of(cta, "tcgen05.alloc");
  auto call = std::find_if(peer.pair_allocs.begin(), peer.pair_allocs.end(),
                           [&](const PairCall& c) { return !c.partner || c.partner == &warp; });
  const bool again = call != peer.pair_allocs.end() && call->partner;  // it has waited for columns
  if (auto* const hazards = cta.cluster.hazards.get(); hazards && !again) hazards->pair_allocates(warp, peer);
  if (call == peer.pair_allocs.end())
    return await_peer(warp, cta.pair_allocs, WaitKind::tensor_memory, columns, address);
  if (call->columns != columns)
    throw Trap(FaultKind::tensor_memory_alloc,
               fmt::format("tcgen05.alloc of {} columns, but the other CTA of the pair (CTA {}) asks for {} in the "
                           "allocation that both make together",
                           columns, peer.rank, call->columns),
               "PTX ISA, tcgen05.alloc: .cta_group::2");
  std::optional<uint32_t> first =
      TensorMemory::allocate_both(cta.tensor_memory, cta.owner, peer.tensor_memory, peer.owner, columns);
  if (!first) {
    call->partner = &warp;
    return wait_for_columns(warp, columns);
  }
  Cluster& cluster = cta.cluster;
  const PairCall done = *call;
  peer.pair_allocs.erase(call);
  leave_result(*done.group->warp, done.address, *first, columns, &warp);
  leave_result(warp, address, *first, columns, done.group->warp);
  cluster.trace(cluster.origin(*done.group->warp), "tmem_alloc", {*first, columns});
  cluster.trace(cluster.origin(warp), "tmem_alloc", {*first, columns});
  cluster.note_effect();
  cluster.wake(*done.group);
  return Flow::next;
}

/// address: where the tensor-memory address goes; operand 0: number of columns.
Flow execute_alloc(Warp& warp, const Instruction& instruction) {
  Cta& cta = warp.cta;
  Cluster& cluster = cta.cluster;
  uint32_t columns = uniform(warp, instruction.operand[0], "the number of columns");
  check_column_count(columns, "tcgen05.alloc");
  if (!cta.alloc_permit)
    throw Trap(FaultKind::tensor_memory_alloc,
               "tcgen05.alloc after this CTA gave up the permit with tcgen05.relinquish_alloc_permit",
               "PTX ISA, tcgen05.relinquish_alloc_permit");
  if (columns > cta.last_alloc_columns)
    throw Trap(
        FaultKind::tensor_memory_alloc,
        fmt::format("tcgen05.alloc of {} columns after one of {}: a CTA may not ask for more than the time before. "
                    "Allocate the largest first",
                    columns, cta.last_alloc_columns),
        "PTX ISA, tcgen05.alloc: the number of columns should not increase between any two allocations");
  uint32_t address = result_address(warp, instruction);
  if (instruction.modifiers & kPair) return alloc_pair(warp, columns, address);
  std::optional<uint32_t> first = cta.tensor_memory.allocate(cta.owner, columns);
  if (!first) return wait_for_columns(warp, columns);
  leave_result(warp, address, *first, columns);
  cluster.trace(cluster.origin(warp), "tmem_alloc", {*first, columns});
  return Flow::next;
}

void free_columns(Cta& cta, Warp& warp, uint32_t address, uint32_t columns) {
  if (cta.cluster.hazards) cta.cluster.hazards->tensor_freed(warp, address, columns);
  cta.tensor_memory.release(cta.owner, address, columns);
  cta.cluster.note_effect();
  cta.cluster.trace(cta.cluster.origin(warp), "tmem_dealloc", {address, columns});
}

Flow dealloc_pair(Warp& warp, uint32_t address, uint32_t columns) {
  Cta& cta = warp.cta;
  Cta& peer = peer_of(cta, "tcgen05.dealloc");
  if (cta.cluster.hazards) cta.cluster.hazards->pair_frees(warp, peer);
  auto call = std::find_if(peer.pair_deallocs.begin(), peer.pair_deallocs.end(),
                           [&](const PairCall& c) { return c.address == address && c.columns == columns; });
  if (call == peer.pair_deallocs.end())
    return await_peer(warp, cta.pair_deallocs, WaitKind::tensor_free, columns, address);
  Group& waiting = *call->group;
  peer.pair_deallocs.erase(call);
  free_columns(peer, *waiting.warp, address, columns);
  free_columns(cta, warp, address, columns);
  cta.cluster.wake(waiting);
  return Flow::next;
}

/// operand 0: tensor-memory address, 1: number of columns.
Flow execute_dealloc(Warp& warp, const Instruction& instruction) {
  Cta& cta = warp.cta;
  uint32_t address = uniform(warp, instruction.operand[0], "the tensor-memory address");
  uint32_t columns = uniform(warp, instruction.operand[1], "the number of columns");
  check_column_count(columns, "tcgen05.dealloc");
  if (address >> 16 || !cta.tensor_memory.holds(cta.owner, address, columns))
    throw Trap(
        FaultKind::tensor_memory_free,
        fmt::format(
            "tcgen05.dealloc of {} columns at {:#010x}: this CTA has no such allocation (it holds {} columns now)",
            columns, address, cta.tensor_memory.held_by(cta.owner)),
        "PTX ISA, tcgen05.dealloc: taddr and nCols must be those of an earlier tcgen05.alloc");
  if (instruction.modifiers & kPair) return dealloc_pair(warp, address, columns);
  free_columns(cta, warp, address, columns);
  return Flow::next;
}

Flow execute_relinquish(Warp& warp, const Instruction& instruction) {
  if (instruction.modifiers & kPair) peer_of(warp.cta, "tcgen05.relinquish_alloc_permit");
  warp.cta.alloc_permit = false;
  return Flow::next;
}

}  // namespace

void bind_alloc(Binder& binder) {
  Instruction& out = binder.out;
  take_cta_group(binder);
  binder.take("sync");
  binder.take("b32");
  if (!binder.take("shared::cta")) out.modifiers |= kGeneric;
  out.address = binder.address(0);
  out.operand[0] = binder.input(1, 4);
  out.visible = true;
  out.execute = execute_alloc;
}

void bind_dealloc(Binder& binder) {
  Instruction& out = binder.out;
  take_cta_group(binder);
  binder.take("sync");
  binder.take("b32");
  out.operand[0] = binder.input(0, 4);
  out.operand[1] = binder.input(1, 4);
  out.visible = true;
  out.execute = execute_dealloc;
}

void bind_relinquish(Binder& binder) {
  take_cta_group(binder);
  binder.take("sync");
  binder.out.execute = execute_relinquish;
}

}  // namespace emu::isa
