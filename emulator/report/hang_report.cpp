// The hang report: every group of lanes that waits, where, for what, what is missing, and who has signalled it before.

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>

#include "emulator/isa/warpgroup.h"
#include "emulator/machine/grid.h"
#include "emulator/report/fault_report.h"

namespace emu {
namespace {

std::string lanes_text(uint32_t mask, uint32_t live) {
  if (mask == kAllLanes || (mask == live && std::popcount(live) > 1)) return "all lanes";
  if (std::popcount(mask) == 1) return fmt::format("lane {}", std::countr_zero(mask));
  return fmt::format("lanes {:#010x}", mask);
}

/// "warps 0-3, all lanes; warp 4, lane 0": neighbours with the same lanes are told together.
std::string who_text(const std::vector<std::pair<uint32_t, std::string>>& who) {
  std::string text;
  for (size_t first = 0, end; first < who.size(); first = end) {
    end = first + 1;
    while (end < who.size() && who[end].first == who[end - 1].first + 1 && who[end].second == who[first].second) ++end;
    text += text.empty() ? "" : "; ";
    text += end - first == 1 ? fmt::format("warp {}, {}", who[first].first, who[first].second)
                             : fmt::format("warps {}-{}, {}", who[first].first, who[end - 1].first, who[first].second);
  }
  return text;
}

bool asks_in_a_loop(const Cluster& cluster) {
  for (const auto& cta : cluster.ctas)
    for (const auto& warp : cta->warps)
      for (const auto& group : warp->groups)
        if (group->state == Group::State::ready) return true;
  return false;
}

/// A group that runs for ever: what the loop around its pc reads.
std::string describe_loop(const Cluster& cluster, const Group& group) {
  const std::vector<Instruction>& code = group.frame->program->code;
  // The loop ends at the first branch behind the pc that leads back to it or before it.
  size_t end = group.pc, begin = group.pc;
  for (; end < code.size(); ++end)
    if (cluster.grid.text(code[end].source).starts_with("bra") && code[end].target <= group.pc) {
      begin = code[end].target;
      break;
    }
  std::string asked;
  if (end < code.size())
    for (size_t i = begin; i <= end; ++i) {
      const std::string& text = cluster.grid.text(code[i].source);
      if (!text.starts_with("ld.") && !text.starts_with("atom.") && text.find("test_wait") == std::string::npos)
        continue;
      asked += fmt::format("{}{} at {}", asked.empty() ? "" : ", ", text,
                           describe_location(cluster.grid.location(code[i].source)));
    }
  return "runs a loop that changes nothing" + (asked.empty() ? "" : ", and asks again and again: " + asked);
}

std::string describe_mbarrier_wait(const Cluster& cluster, const Group& group) {
  const Wait& wait = group.wait;
  const std::string cause = likely_cause(cluster, group);
  return fmt::format("waits for {}: the phase of parity {} to end; {}{}{}", describe_shared(cluster, wait.address),
                     wait.parity, describe_mbarrier(cluster, wait.address, "\n=========           "),
                     cause.empty() ? "" : "\n=========           likely: ", cause);
}

std::string describe_barrier(const Cta& cta, const Wait& wait) {
  const NamedBarrier& barrier = cta.barriers[wait.address];
  uint32_t wanted = barrier.everyone ? cta.live_threads() : barrier.wanted;
  std::string missing;
  for (const auto& warp : cta.warps) {
    bool here = false;
    for (const auto& waiter : barrier.waiting) here = here || waiter.group->warp == warp.get();
    if (!here && warp->live) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", warp->index);
  }
  return fmt::format("waits at barrier {}: {} of {} threads have arrived; warps not waiting there: {}", wait.address,
                     barrier.arrived, wanted, missing.empty() ? "none" : missing);
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

std::string describe_wait(const Cluster& cluster, const Group& group) {
  const Wait& wait = group.wait;
  const Cta& cta = group.warp->cta;
  switch (wait.kind) {
    case WaitKind::mbarrier:
      return describe_mbarrier_wait(cluster, group);
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
    case WaitKind::time:
      return "sleeps";
    case WaitKind::none:
      return describe_loop(cluster, group);
  }
  return "";
}

}  // namespace

std::string report_hang(const Cluster& cluster) {
  const Grid& grid = cluster.grid;
  const char* whose = cluster.ctas.size() > 1 ? "cluster" : "block";
  const bool somebody_asks = asks_in_a_loop(cluster);
  std::string text = fmt::format(
      "========= Emulated {}: {} hangs: {}\n", grid.device.chip().device_name.substr(7, 4), grid.program.pretty_name,
      somebody_asks ? fmt::format("every thread of the {} waits, or asks in a loop for what nobody changes", whose)
                    : fmt::format("no thread of the {} can go on", whose));
  uint64_t clock = cluster.clock;
  std::string in_vain;
  if (const Cluster::Lapse* lapse = cluster.lapse()) {
    const double per_hour = 3600e3 * grid.device.chip().clock_khz;
    in_vain =
        fmt::format("; {:.1f} hours have passed since, in vain", static_cast<double>(clock - lapse->since) / per_hour);
    clock = lapse->since;
  }
  for (const auto& cta : cluster.ctas) {
    text += fmt::format("=========     block ({},{},{}){} at virtual cycle {}{}{}\n", cta->index.x, cta->index.y,
                        cta->index.z, describe_rank(*cta), clock, in_vain, cta->exited() ? ": has ended" : "");
    // Warps that wait alike are told once.
    std::map<std::string, std::vector<std::pair<uint32_t, std::string>>> who_by_what;
    std::vector<std::string> order;
    for (const auto& warp : cta->warps)
      for (const auto& group : warp->groups) {
        if (group->state == Group::State::free) continue;
        const std::vector<Instruction>& code = group->frame->program->code;
        const Instruction& at =
            code[std::min<size_t>(group->state == Group::State::parked ? group->wait.pc : group->pc, code.size() - 1)];
        std::string what = fmt::format("at {}: {}", describe_location(grid.location(at.source)), grid.text(at.source));
        for (const std::string& call : describe_calls(cluster, *group->frame))
          what += fmt::format("\n=========         {}", call);
        what += fmt::format("\n=========         {}", describe_wait(cluster, *group));
        auto [it, fresh] = who_by_what.try_emplace(what);
        if (fresh) order.push_back(what);
        it->second.emplace_back(warp->index, lanes_text(group->mask, warp->lanes_at_start));
      }
    for (const std::string& what : order)
      text += fmt::format("=========       {}\n=========         {}\n", who_text(who_by_what[what]), what);
  }
  text += somebody_asks
              ? "=========     rule: what a loop asks for must be written by a thread that still gets there\n"
              : "=========     rule: a wait ends only when somebody arrives, commits or completes bytes; nothing "
                "that could is under way\n";
  return text;
}

}  // namespace emu
