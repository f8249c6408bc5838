// The cluster barrier. PTX ISA, "barrier.cluster": every thread of the cluster that has not exited arrives once a
// phase, and waits later; the lanes of a warp arrive together.

#include <fmt/format.h>

#include <bit>

#include "emulator/hazards/hazards.h"
#include "emulator/machine/cluster.h"

namespace emu {
namespace {

constexpr const char* kSource = "PTX ISA, barrier.cluster";

}  // namespace

uint32_t Cluster::cluster_arrive(Warp& warp, uint32_t lanes, uint32_t resume_pc) {
  ClusterArrival& arrival = warp.cta.cluster_arrivals[warp.index];
  if (uint32_t twice = arrival.arrived & lanes)
    throw Trap(FaultKind::barrier_misuse, FaultCode::launch_failure,
               fmt::format("barrier.cluster.arrive a second time in one phase (lanes {:#010x}): each arrive needs its "
                           "barrier.cluster.wait before the next",
                           twice),
               kSource);
  note_effect();
  arrival.arrived |= lanes;
  arrival.unpaired |= lanes;
  cluster_arrivals_ = true;
  if (!arrived_at_cluster_barrier(warp)) {
    Group& group = park(warp, lanes, {.kind = WaitKind::lanes, .lanes = warp.live}, resume_pc);
    arrival.gathering.push_back(&group);
    return lanes;
  }
  --missing_warps_;
  for (Group* group : std::exchange(arrival.gathering, {})) wake(*group);
  cluster_barrier_check();
  return 0;
}

uint32_t Cluster::cluster_wait(Warp& warp, uint32_t lanes, uint32_t resume_pc) {
  ClusterArrival& arrival = warp.cta.cluster_arrivals[warp.index];
  if (uint32_t unasked = lanes & ~arrival.unpaired)
    throw Trap(FaultKind::barrier_misuse, FaultCode::launch_failure,
               fmt::format("barrier.cluster.wait without a barrier.cluster.arrive before it (lanes {:#010x})", unasked),
               kSource);
  arrival.unpaired &= ~lanes;
  uint32_t waiting = lanes & arrival.arrived;  // the others' phase has ended
  if (hazards && lanes != waiting) hazards->leaves_cluster_barrier(warp, lanes & ~waiting);
  if (waiting) at_cluster_.push_back(&park(warp, waiting, {.kind = WaitKind::cluster_barrier}, resume_pc));
  return waiting;
}

/// Lanes exited: perhaps those that the barrier misses.
void Cluster::cluster_lanes_left(Warp& warp) {
  ClusterArrival& arrival = warp.cta.cluster_arrivals[warp.index];
  // Whether the warp had arrived is told by the lanes that left and those that stay together.
  uint32_t left = arrival.present & ~warp.live;
  if (!left) return;
  bool had_arrived = (arrival.present & ~arrival.arrived) == 0;
  arrival.present = warp.live;
  arrival.arrived &= warp.live;
  arrival.unpaired &= warp.live;
  if (had_arrived || !arrived_at_cluster_barrier(warp)) return;
  --missing_warps_;
  for (Group* group : std::exchange(arrival.gathering, {})) wake(*group);
  cluster_barrier_check();
}

void Cluster::cluster_barrier_check() {
  if (missing_warps_ || !cluster_arrivals_) return;
  cluster_arrivals_ = false;
  uint32_t threads = 0;
  for (auto& cta : ctas)
    for (auto& warp : cta->warps) {
      cta->cluster_arrivals[warp->index].arrived = 0;
      missing_warps_ += warp->live != 0;
      threads += static_cast<uint32_t>(std::popcount(warp->live));
    }
  note_effect();
  trace(current_, "cluster_barrier", {threads});
  if (hazards) hazards->cluster_barrier_ended();
  for (Group* group : std::exchange(at_cluster_, {})) {
    if (hazards) hazards->leaves_cluster_barrier(*group->warp, group->mask);
    wake(*group);
  }
}

}  // namespace emu
