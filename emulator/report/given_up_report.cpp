// Waits on mbarriers that a kernel's own bound, or its clock, has ended.

#include <fmt/format.h>

#include <algorithm>

#include "emulator/machine/grid.h"
#include "emulator/report/fault_report.h"
#include "emulator/report/stuck.h"

namespace emu {
namespace {

/// Parked, or between two tries of a wait on an mbarrier.
bool waits(const Group& group) {
  if (group.state == Group::State::free) return true;
  if (group.state == Group::State::parked) return group.wait.kind != WaitKind::time;
  return std::ranges::any_of(group.warp->cta.barrier_history, [&](const auto& known) {
    return std::ranges::any_of(known.second.asked, [&](const BarrierHistory::Asked& asked) {
      return asked.warp == group.warp->index && (asked.lanes & group.mask);
    });
  });
}

/// Nobody but this warp can do anything, as far as can be told.
bool all_others_wait(const Cluster& cluster, const Warp& warp) {
  if (cluster.loads_in_flight || cluster.mmas_in_flight) return false;
  return std::ranges::all_of(cluster.ctas, [&](const auto& cta) {
    return std::ranges::all_of(cta->warps, [&](const auto& other) {
      return other.get() == &warp ||
             std::ranges::all_of(other->groups, [](const auto& group) { return waits(*group); });
    });
  });
}

std::string meanwhile(const Cluster& cluster, const Stuck& stuck) {
  for (const Wanted& wanted : stuck.wanted)
    if (wanted.kind == Wanted::Kind::mbarrier)
      return "waits for " + describe_shared(cluster, static_cast<uint32_t>(wanted.address));
  return short_wait(cluster, *stuck.groups[0]);
}

/// Where a warp stood when it asked: the function that its lanes are in now, or none.
BarrierWait wait_of(const Warp& warp, uint32_t address, const BarrierHistory::Asked& asked) {
  const Program* program = warp.group && warp.group->frame ? warp.group->frame->program : nullptr;
  const uint32_t pc = program ? asked.source - program->first_source : 0;
  if (program && (asked.source < program->first_source || pc >= program->code.size())) program = nullptr;
  return {warp, asked.lanes, address, asked.parity, program, pc};
}

}  // namespace

std::string describe_given_up(const Cluster& cluster, const std::vector<Stuck>& all, const Warp* only) {
  std::string text;
  for (const auto& cta : cluster.ctas)
    for (const auto& [offset, history] : cta->barrier_history)
      for (const BarrierHistory::Asked& asked : history.asked) {
        const Warp& warp = *cta->warps[asked.warp];
        if ((only && &warp != only) || history.invalidated) continue;
        const uint32_t address = cta->rank << 24 | offset;
        const bool still = std::ranges::any_of(all, [&](const Stuck& stuck) {
          return std::ranges::any_of(stuck.wanted, [&](const Wanted& wanted) { return wanted.address == address; }) &&
                 std::ranges::any_of(stuck.groups, [&](const Group* group) {
                   return group->warp == &warp && (group->mask & asked.lanes);
                 });
        });
        if (still) continue;
        text += fmt::format(
            "=========       {}warp {}, {} has given up waiting{}at {}: {}{}asked {} in vain, from cycle {} to {}{}",
            cluster.ctas.size() > 1 ? fmt::format("CTA {}, ", cta->rank) : "", asked.warp,
            describe_lanes(asked.lanes, warp.lanes_at_start), kInto,
            describe_location(cluster.grid.location(asked.source)), cluster.grid.text(asked.source), kInto,
            plural(static_cast<int64_t>(asked.times), "time"), asked.since, asked.last, kInto);
        text += describe_mbarrier_wait(cluster, {Wanted::Kind::mbarrier, address, asked.parity, asked.source});
        const BarrierWait wait = wait_of(warp, address, asked);
        std::string cause = own_mistake(cluster, wait);
        if (cause.empty() && all_others_wait(cluster, warp)) cause = missing_signal(cluster, wait);
        if (!cause.empty()) text += std::string(kDeeper) + "likely: " + cause;
        text += "\n";
      }
  return text;
}

std::string report_given_up(Cluster& cluster, const Warp& warp) {
  const std::vector<Stuck> all = find_stuck(cluster, false);
  std::string text = describe_given_up(cluster, all, &warp);
  if (text.empty()) return "";
  std::string others;
  for (const Stuck& stuck : all) {
    if (std::ranges::any_of(stuck.groups, [&](const Group* group) { return group->warp == &warp; })) continue;
    others += fmt::format("=========       {} {} at {}, since cycle {}\n", who(stuck), meanwhile(cluster, stuck),
                          place(cluster, stuck.source), stuck.since);
  }
  return text + (others.empty() ? "" : "=========     meanwhile:\n" + others);
}

}  // namespace emu
