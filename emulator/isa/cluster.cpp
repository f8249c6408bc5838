// The cluster barrier. PTX ISA, "barrier.cluster". Its state: machine/cluster_barrier.cpp.
//
// Where a launch has no clusters, ptxas makes nothing of an arrive and `bar.sync 0` of a wait (seen in its code), so
// that code for clusters runs there too.

#include "emulator/machine/cluster.h"
#include "emulator/hazards/hazards.h"
#include "emulator/isa/families.h"
#include "emulator/machine/grid.h"

namespace emu::isa {
namespace {

// Instruction::modifiers of an arrive.
constexpr uint64_t kRelaxed = 1;

Flow execute_arrive(Warp& warp, const Instruction& instruction) {
  Cluster& cluster = warp.cta.cluster;
  if (!cluster.grid.explicit_cluster) return Flow::next;
  if (!(instruction.modifiers & kRelaxed)) cluster.complete_remote(warp.cta);
  if (cluster.hazards) cluster.hazards->arrives_at_cluster_barrier(warp, warp.active, instruction.modifiers & kRelaxed);
  uint32_t mask = warp.group->mask;
  return cluster.cluster_arrive(warp, warp.active, warp.group->pc + 1) == mask ? Flow::parked : Flow::next;
}

/// bar.sync 0.
Flow wait_for_cta(Warp& warp) {
  Cluster& cluster = warp.cta.cluster;
  NamedBarrier& barrier = warp.cta.barriers[0];
  if (barrier.in_use() && !barrier.everyone)
    throw Trap(FaultKind::barrier_misuse,
               "barrier.cluster.wait in a launch without clusters is bar.sync 0, and barrier 0 is in use with a count",
               "PTX ISA, barrier.cluster; what ptxas makes of it");
  barrier.everyone = true;
  uint32_t lanes = warp.active;
  cluster.barrier_arrive(warp, 0, lanes);
  bool all = lanes == warp.group->mask;
  Group& group = cluster.park(warp, lanes, {.kind = WaitKind::cta_barrier}, warp.group->pc + 1);
  barrier.waiting.push_back({&group});
  cluster.barrier_check(warp.cta, 0);
  return all ? Flow::parked : Flow::next;
}

Flow execute_wait(Warp& warp, const Instruction&) {
  Cluster& cluster = warp.cta.cluster;
  if (!cluster.grid.explicit_cluster) return wait_for_cta(warp);
  uint32_t mask = warp.group->mask;
  return cluster.cluster_wait(warp, warp.active, warp.group->pc + 1) == mask ? Flow::parked : Flow::next;
}

}  // namespace

void bind_cluster_barrier(Binder& binder) {
  Instruction& out = binder.out;
  binder.take("aligned");
  if (binder.take("arrive")) {
    out.modifiers = binder.take("relaxed") ? kRelaxed : 0;
    binder.take("release");
    out.execute = execute_arrive;
  } else if (binder.take("wait")) {
    binder.take("acquire");
    out.execute = execute_wait;
  } else {
    binder.refuse(".arrive or .wait is wanted");
  }
}

}  // namespace emu::isa
