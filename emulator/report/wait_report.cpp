// What reports say of a wait, or of a loop that asks: for what, and what of it is missing.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "emulator/isa/warpgroup.h"
#include "emulator/machine/grid.h"
#include "emulator/report/fault_report.h"
#include "emulator/report/stuck.h"

namespace emu {
namespace {

std::string describe_barrier(const Cta& cta, const Wait& wait) {
  const NamedBarrier& barrier = cta.barriers[wait.address];
  uint32_t wanted = barrier.everyone ? cta.live_threads() : barrier.wanted;
  std::string missing, ended;
  for (const auto& warp : cta.warps) {
    bool here = false;
    for (const auto& waiter : barrier.waiting) here = here || waiter.group->warp == warp.get();
    std::string& list = warp->live ? missing : ended;
    if (!here) list += fmt::format("{}{}", list.empty() ? "" : ", ", warp->index);
  }
  std::string text = fmt::format("waits at barrier {}: {} of {} threads have arrived; warps not waiting there: {}",
                                 wait.address, barrier.arrived, wanted, missing.empty() ? "none" : missing);
  if (barrier.everyone) return text;
  if (!ended.empty()) text += fmt::format("; warps that have ended: {}", ended);
  if (barrier.completed)
    text += fmt::format("; it was complete {} before", plural(static_cast<int64_t>(barrier.completed), "time"));
  return text;
}

/// Which warps the barrier misses, CTA by CTA.
std::string describe_cluster_barrier(const Cluster& cluster) {
  std::string missing;
  for (const auto& cta : cluster.ctas) {
    std::string warps;
    for (const auto& warp : cta->warps)
      if (!cluster.arrived_at_cluster_barrier(*warp))
        warps += fmt::format("{}{}", warps.empty() ? "" : ", ", warp->index);
    if (!warps.empty()) missing += fmt::format("{}CTA {} (warps {})", missing.empty() ? "" : ", ", cta->rank, warps);
  }
  return fmt::format("waits at the cluster barrier; not arrived: {}", missing);
}

bool is_arriving_at_cluster(const Cta& cta, const Group& group) {
  const auto& gathering = cta.cluster_arrivals[group.warp->index].gathering;
  return std::find(gathering.begin(), gathering.end(), &group) != gathering.end();
}

std::string describe_pair_wait(const Cluster& cluster, const Cta& cta, const std::string& what) {
  const uint32_t peer = cta.rank ^ 1;
  return fmt::format(
      "waits in {} for the other CTA of its pair, CTA {} of the cluster, which {}: with cta_group::2 one warp of each "
      "CTA must call it",
      what, peer, cluster.ctas[peer]->live_warps ? "has not called it" : "has ended without calling it");
}

/// What a loop reads, and sees each time.
std::string describe_word(const Cluster& cluster, const Wanted& wanted) {
  const std::string& text = cluster.grid.text(wanted.source);
  const uint32_t bytes = std::min(8u, accessed_bytes(text));
  uint64_t value = 0;
  std::string name = fmt::format("global address {:#x}", wanted.address);
  bool readable = false;
  if (is_shared(wanted.address)) {
    const auto address = static_cast<uint32_t>(wanted.address - kSharedWindow);
    if (shared_rank(address) < cluster.ctas.size()) {
      const Cta& cta = *cluster.ctas[shared_rank(address)];
      readable = uint64_t{shared_offset(address)} + bytes <= cta.window.size();
      if (readable) std::memcpy(&value, cta.window.data() + shared_offset(address), bytes);
      name = describe_shared(cluster, address);
    }
  } else if (const auto* allocation = cluster.grid.device.memory().find(wanted.address)) {
    readable = wanted.address + bytes <= allocation->address + allocation->bytes;
    if (readable) std::memcpy(&value, cluster.grid.device.memory().reading(wanted.address, bytes), bytes);
    name = fmt::format("byte {} of {} at {:#x}", wanted.address - allocation->address, allocation->what,
                       allocation->address);
  }
  return fmt::format("{} at {}, which finds {:#x} in {}", text, place(cluster, wanted.source), value,
                     readable ? name : name + " (unknown)");
}

}  // namespace

std::string place(const Cluster& cluster, uint32_t source) {
  return describe_line(cluster.grid.location(source));
}

/// "warp 0, lane 0", with its CTA where there are several.
std::string who(const Stuck& stuck) {
  return stuck.cta->cluster.ctas.size() > 1 ? fmt::format("CTA {}, {}", stuck.cta->rank, stuck.who) : stuck.who;
}

std::string describe_wait(const Cluster& cluster, const Group& group) {
  const Wait& wait = group.wait;
  const Cta& cta = group.warp->cta;
  switch (wait.kind) {
    case WaitKind::mbarrier:
    case WaitKind::time:
    case WaitKind::none:
      break;  // of these it says more: see root_text
    case WaitKind::cta_barrier:
      return describe_barrier(cta, wait);
    case WaitKind::cluster_barrier:
      return describe_cluster_barrier(cluster);
    case WaitKind::join:
      return "waits for the other lanes of its warp to meet again";
    case WaitKind::aligned:
      return fmt::format(
          "waits at an .aligned instruction for lanes {:#010x} of its warp, which are elsewhere: all lanes must "
          "execute it together",
          group.warp->live & ~group.mask);
    case WaitKind::lanes:
      if (is_arriving_at_cluster(cta, group))
        return fmt::format("waits for lanes {:#010x} of its warp to arrive at the cluster barrier with it",
                           group.warp->live & ~cta.cluster_arrivals[group.warp->index].arrived);
      return fmt::format("waits at a .sync instruction for lanes {:#010x} of its member mask",
                         wait.lanes & group.warp->live & ~group.mask);
    case WaitKind::tensor_free:
      return describe_pair_wait(cluster, cta, fmt::format("tcgen05.dealloc of {} columns", wait.address));
    case WaitKind::tensor_memory: {
      if (wait.for_peer)
        return describe_pair_wait(cluster, cta, fmt::format("tcgen05.alloc of {} columns", wait.address));
      uint32_t own = cta.tensor_memory.held_by(cta.owner), used = 0;
      for (uint32_t column = 0; column < TensorMemory::kColumns; column += TensorMemory::kGranule)
        if (cta.tensor_memory.owner(column)) used += TensorMemory::kGranule;
      return fmt::format(
          "waits in tcgen05.alloc for {} columns of tensor memory: {} of 512 are in use on this SM, {} by this CTA",
          wait.address, used, own);
    }
    case WaitKind::bulk_group:
      return fmt::format("waits for its bulk copies: all but {} groups", wait.address);
    case WaitKind::copy_group:
      return "waits for its cp.async copies";
    case WaitKind::completion:
      return "waits for its tensor-memory accesses";
    case WaitKind::wgmma:
      return fmt::format(
          "waits for a wgmma.mma_async that warps {} have not executed: all four warps of a warpgroup must",
          group.warp->warpgroup->missing(*group.warp));
    case WaitKind::registers:
      return fmt::format(
          "waits in setmaxnreg.inc for {} registers for its warp: {} are free of those that the CTA was launched with. "
          "The counts of all warps together must not exceed the entry count times the threads",
          wait.address, cta.registers.free);
  }
  return "";
}

/// What a group that does not wait asks for, again and again.
std::string describe_loop(const Cluster& cluster, const Stuck& stuck, bool for_ever) {
  const Group& group = *stuck.groups[0];
  std::string text = group.state == Group::State::parked ? "sleeps, in a loop" : "runs a loop";
  if (!for_ever)
    text = fmt::format("{}; its warp has executed {} instructions",
                       group.state == Group::State::parked ? "sleeps" : "runs", group.warp->counters.instructions);
  else if (group.state != Group::State::parked)
    text += " that changes nothing";
  const char* lead = for_ever ? ", and asks again and again: " : "; the loop around it asks: ";
  for (const Wanted& wanted : stuck.wanted) {
    text += lead;
    lead = "; ";
    if (wanted.kind == Wanted::Kind::word)
      text += describe_word(cluster, wanted);
    else
      text += fmt::format("{} at {}, for {}", cluster.grid.text(wanted.source), place(cluster, wanted.source),
                          describe_shared(cluster, static_cast<uint32_t>(wanted.address)));
  }
  return text;
}

std::string describe_mbarrier_wait(const Cluster& cluster, const Wanted& wanted) {
  const auto address = static_cast<uint32_t>(wanted.address);
  return fmt::format("waits for {}: the phase of parity {} to end; {}", describe_shared(cluster, address),
                     wanted.parity, describe_mbarrier(cluster, address, kDeeper));
}

}  // namespace emu
