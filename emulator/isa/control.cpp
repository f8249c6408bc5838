// Control flow within a function: bra, brx.idx, exit, trap, nanosleep. PTX ISA, "Control Flow Instructions".

#include <map>

#include "emulator/isa/families.h"
#include "emulator/machine/cluster.h"
#include "emulator/machine/decoder.h"

namespace emu::isa {
namespace {

Flow execute_bra(Warp& warp, const Instruction& instruction) {
  return warp.cta.cluster.diverge(warp, instruction, warp.active, instruction.target);
}

void bind_bra(Binder& binder) {
  binder.take("uni");
  const ptx::Operand& label = binder.operand(0);
  if (label.kind != ptx::Operand::Kind::label) binder.refuse("a label is wanted");
  binder.out.target = label.index;
  binder.out.execute = execute_bra;
}

/// brx.idx: the lanes of each index go to its label. Targets are immediates in a slot list.
Flow execute_brx(Warp& warp, const Instruction& instruction) {
  const uint32_t* index = warp.read<uint32_t>(instruction.operand[0]);
  std::map<uint32_t, uint32_t> lanes_by_target;
  for_lanes(warp.active, [&](int lane) {
    if (index[lane] >= instruction.list_count)
      throw Trap(FaultCode::invalid_pc,
                 "brx.idx with index " + std::to_string(index[lane]) + ": the list has " +
                     std::to_string(instruction.list_count) + " targets",
                 "PTX ISA, brx.idx");
    lanes_by_target[warp.listed(instruction.list, index[lane]).offset] |= 1u << lane;
  });
  Cluster& cluster = warp.cta.cluster;
  // All but the last part leave this group; the last one goes on as it.
  Group* group = warp.group;
  uint32_t fall_through = group->mask & ~warp.active;
  auto last = std::prev(lanes_by_target.end());
  for (auto it = lanes_by_target.begin(); it != lanes_by_target.end(); ++it) {
    if (it == last && !fall_through) break;
    cluster.part(warp, it->second, it->first, instruction.reconverge);
  }
  if (fall_through) return Flow::next;
  group->pc = last->first;
  return Flow::jump;
}

void bind_brx(Binder& binder) {
  if (!binder.take("idx")) binder.refuse("only brx.idx exists");
  binder.take("uni");
  binder.out.operand[0] = binder.input(0, 4);
  const ptx::Operand& targets = binder.operand(1);
  if (targets.kind != ptx::Operand::Kind::targets) binder.refuse("a list of branch targets is wanted");
  std::vector<Slot> slots;
  for (uint32_t target : binder.decoder().function().branch_targets[targets.index]) slots.push_back({.offset = target});
  binder.out.list = binder.list(slots);
  binder.out.list_count = static_cast<uint32_t>(slots.size());
  binder.out.execute = execute_brx;
}

Flow execute_exit(Warp& warp, const Instruction&) {
  Group& group = *warp.group;
  uint32_t lanes = warp.active;
  group.mask &= ~lanes;
  bool gone = group.mask == 0;
  if (gone) warp.cta.cluster.discard(group);
  warp.cta.cluster.retire_lanes(warp, lanes);
  return gone ? Flow::ended : Flow::next;
}

Flow execute_trap(Warp&, const Instruction&) {
  throw KernelTrap();
}

void bind_trap(Binder& binder) {
  binder.out.execute = execute_trap;
}

Flow execute_nanosleep(Warp& warp, const Instruction& instruction) {
  // One tick of the virtual clock stands for a nanosecond here: nothing but the order of things depends on it.
  const uint32_t* ns = warp.read<uint32_t>(instruction.operand[0]);
  uint64_t longest = 1;
  for_lanes(warp.active, [&](int lane) { longest = std::max<uint64_t>(longest, ns[lane]); });
  Cluster& cluster = warp.cta.cluster;
  uint32_t resume = warp.group->pc + 1;
  bool all = warp.active == warp.group->mask;
  Group& sleeper = cluster.park(warp, warp.active, {.kind = WaitKind::time}, resume);
  cluster.wake_later(sleeper, longest);
  return all ? Flow::parked : Flow::next;
}

void bind_nanosleep(Binder& binder) {
  binder.take("u32");
  binder.out.operand[0] = binder.input(0, 4);
  binder.out.execute = execute_nanosleep;
}

Flow execute_nothing(Warp&, const Instruction&) {
  return Flow::next;
}

void bind_nothing(Binder& binder) {
  binder.out.execute = execute_nothing;
}

/// Nobody counts events here.
void bind_event(Binder& binder) {
  binder.take("mask");
  bind_nothing(binder);
}

constexpr Entry kEntries[] = {
    {"bra", bind_bra},       {"brx", bind_brx},    {"exit", bind_exit},
    {"trap", bind_trap},     {"brkpt", bind_trap}, {"nanosleep", bind_nanosleep},
    {"pmevent", bind_event},
};

}  // namespace

void bind_exit(Binder& binder) {
  binder.take("uni");
  binder.out.execute = execute_exit;
}

std::span<const Entry> control_entries() {
  return kEntries;
}

}  // namespace emu::isa
