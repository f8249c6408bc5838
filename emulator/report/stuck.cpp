#include "emulator/report/stuck.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>

#include "emulator/isa/warpgroup.h"
#include "emulator/machine/grid.h"
#include "emulator/report/fault_report.h"

namespace emu {
namespace {

/// The lanes' wait that has been in vain so far; nullptr where there is none on this barrier.
const BarrierHistory::Asked* asked_in_vain(const Group& group, uint32_t offset) {
  const auto& histories = group.warp->cta.barrier_history;
  const auto found = histories.find(offset);
  if (found == histories.end()) return nullptr;
  for (const BarrierHistory::Asked& asked : found->second.asked)
    if (asked.warp == group.warp->index && (asked.lanes & group.mask)) return &asked;
  return nullptr;
}

/// What a group asks for that stands in a loop, and of a wait on an mbarrier, that one.
std::vector<Wanted> wanted_by(Cluster& cluster, LookAhead& ahead, Group& group) {
  if (group.state == Group::State::parked && group.wait.kind == WaitKind::mbarrier)
    return {{Wanted::Kind::mbarrier, group.wait.address, group.wait.parity, stands_at(group).source}};
  if (group.state == Group::State::parked && group.wait.kind != WaitKind::time) return {};
  const Loop loop = loop_around(cluster, group);
  if (!loop.end) return {};
  const uint32_t first = group.frame->program->first_source;
  std::vector<Wanted> wanted;
  for (const Asks& asks : ahead.one_lap(group)) {
    if (asks.source < first + loop.begin || asks.source > first + loop.end) continue;
    if (std::ranges::any_of(wanted, [&](const Wanted& known) { return known.source == asks.source; })) continue;
    const std::string& text = cluster.grid.text(asks.source);
    if (!asks.is_wait) {
      if (text.find(".param") == std::string::npos && text.find(".local") == std::string::npos)
        wanted.push_back({Wanted::Kind::word, asks.address, 0, asks.source});
      continue;
    }
    const auto address = static_cast<uint32_t>(asks.address);  // the lower half of a generic address in shared memory
    if (const BarrierHistory::Asked* asked = asked_in_vain(group, shared_offset(address)))
      wanted.insert(wanted.begin(), {Wanted::Kind::mbarrier, address, asked->parity, asks.source});
  }
  return wanted;
}

/// Whether the running phase has had this of this warp's lanes already.
bool has_come(const Cluster& cluster, const BarrierHistory& history, const Deed& deed, const Warp& warp) {
  return std::ranges::any_of(history.signals, [&](const BarrierHistory::Signal& signal) {
    return signal.cta_rank == warp.cta.rank && signal.warp == warp.index && signal.last.phase == history.phases &&
           (deed.lanes & ~signal.last.lanes) == 0 && same_statement(cluster, signal.source, deed.source);
  });
}

/// Whether a deed brings what the running phase of a barrier still needs.
bool helps(const Cluster& cluster, const Wanted& wanted, const Deed& deed, const Warp& warp) {
  if (deed.address != wanted.address) return false;
  if (wanted.kind == Wanted::Kind::word) return deed.kind == Deed::Kind::store;
  if (deed.kind != Deed::Kind::signal) return false;
  const Cta& cta = *cluster.ctas[shared_rank(static_cast<uint32_t>(wanted.address))];
  const auto found = cta.barrier_history.find(shared_offset(static_cast<uint32_t>(wanted.address)));
  if (found == cta.barrier_history.end()) return true;
  if (has_come(cluster, found->second, deed, warp)) return false;
  uint64_t word;
  std::memcpy(&word, cta.window.data() + found->first, 8);
  const bool needs_bytes = mbarrier::State::decode(word).pending == 0;
  const std::string& text = cluster.grid.text(deed.source);
  const bool brings_bytes = text.find("complete_tx") != std::string::npos;
  return needs_bytes ? brings_bytes : !brings_bytes && text.find("mbarrier.expect_tx") == std::string::npos;
}

/// Whether the group must come to where `stuck` waits, by the kind of its wait.
bool is_missed(const Stuck& stuck, const Group& group, const Future& future) {
  const Group& waiter = *stuck.groups[0];
  if (waiter.state != Group::State::parked) return false;
  const Warp& warp = *group.warp;
  const Wait& wait = waiter.wait;
  switch (wait.kind) {
    case WaitKind::cta_barrier:
      if (&warp.cta != stuck.cta || (group.state == Group::State::parked && group.wait.kind == WaitKind::cta_barrier &&
                                     group.wait.address == wait.address))
        return false;
      return stuck.cta->barriers[wait.address].everyone || std::ranges::any_of(future.deeds, [&](const Deed& deed) {
               return deed.kind == Deed::Kind::arrive_at_barrier && deed.address == wait.address;
             });
    case WaitKind::cluster_barrier:
      return !warp.cta.cluster.arrived_at_cluster_barrier(warp);
    case WaitKind::join:
    case WaitKind::aligned:
    case WaitKind::lanes:
      return std::ranges::any_of(stuck.groups, [&](const Group* other) {
        return other->warp == &warp && (wait.kind == WaitKind::lanes ? wait.lanes & group.mask : true);
      });
    case WaitKind::tensor_memory:
    case WaitKind::tensor_free:
      return wait.for_peer && warp.cta.rank == (stuck.cta->rank ^ 1) &&
             std::ranges::any_of(future.deeds, [&](const Deed& deed) {
               return deed.kind == Deed::Kind::join_peer &&
                      warp.cta.cluster.grid.text(deed.source)
                          .starts_with(wait.kind == WaitKind::tensor_memory ? "tcgen05.alloc" : "tcgen05.dealloc");
             });
    case WaitKind::wgmma:
      return warp.warpgroup && warp.warpgroup == waiter.warp->warpgroup;
    case WaitKind::registers:
      return &warp.cta == stuck.cta;
    default:
      return false;
  }
}

BarrierWait barrier_wait(const Stuck& stuck) {
  const Group& group = *stuck.groups[0];
  const Wanted& wanted = stuck.wanted[0];
  return {*group.warp,   group.mask,           static_cast<uint32_t>(wanted.address),
          wanted.parity, group.frame->program, group.state == Group::State::parked ? group.wait.pc : group.pc};
}

bool waits_for_barrier(const Stuck& stuck) {
  return !stuck.wanted.empty() && stuck.wanted[0].kind == Wanted::Kind::mbarrier;
}

/// Whether a thread's arrival is what one that waits here would be helped by.
bool helped_by_arrival(const Cluster& cluster, const Stuck& stuck) {
  return std::ranges::any_of(stuck.helpers, [&](const Stuck::Helper& helper) {
    return helper.source != Stuck::Helper::kNowhere &&
           cluster.grid.text(helper.source).starts_with("mbarrier.arrive") &&
           cluster.grid.text(helper.source).find("expect_tx") == std::string::npos;
  });
}

uint64_t since(const Group& group, const std::vector<Wanted>& wanted) {
  if (group.state == Group::State::parked && group.wait.kind != WaitKind::mbarrier && group.wait.kind != WaitKind::time)
    return group.wait.kind == WaitKind::tensor_memory ? group.wait.began : group.wait.since;
  for (const Wanted& each : wanted)
    if (each.kind == Wanted::Kind::mbarrier)
      if (const auto* asked = asked_in_vain(group, shared_offset(static_cast<uint32_t>(each.address))))
        return asked->since;
  return group.warp->cta.cluster.last_effect();
}

/// Groups that wait alike, as one.
std::vector<Stuck> gather(Cluster& cluster) {
  std::vector<Stuck> all;
  LookAhead ahead(cluster, {});
  for (const auto& cta : cluster.ctas) {
    std::map<std::string, size_t> known;
    for (const auto& warp : cta->warps)
      for (const auto& group : warp->groups) {
        if (group->state == Group::State::free) continue;
        std::vector<Wanted> wanted = wanted_by(cluster, ahead, *group);
        const uint32_t source = stands_at(*group).source;
        const bool parked = group->state == Group::State::parked;
        std::string key =
            fmt::format("{} {} {} {}", source, static_cast<int>(parked ? group->wait.kind : WaitKind::none),
                        parked ? group->wait.address : 0, parked ? group->wait.parity : 0);
        if (parked && (group->wait.kind == WaitKind::aligned || group->wait.kind == WaitKind::lanes))
          key += fmt::format(" {} {}", group->mask, group->wait.lanes);
        for (const Wanted& each : wanted) key += fmt::format(" {:x}", each.address);
        const std::vector<std::string> calls = describe_calls(cluster, *group->frame);
        for (const std::string& call : calls) key += call;
        auto [it, fresh] = known.try_emplace(key, all.size());
        const uint64_t begin = since(*group, wanted);
        if (fresh)
          all.push_back({.cta = cta.get(),
                         .source = source,
                         .calls = calls,
                         .wanted = std::move(wanted),
                         .loops = !parked || group->wait.kind == WaitKind::time,
                         .since = begin});
        Stuck& stuck = all[it->second];
        stuck.groups.push_back(group.get());
        stuck.since = std::min(stuck.since, begin);
      }
  }
  for (Stuck& stuck : all) stuck.who = who_text(stuck.groups);
  return all;
}

/// Where a group goes on if its wait ends: behind the loop in which it asks for ever.
uint32_t goes_on_at(const Cluster& cluster, const Group& group, bool for_ever) {
  const bool asks = group.state != Group::State::parked || group.wait.kind == WaitKind::time;
  const Loop loop = asks && for_ever ? loop_around(cluster, group) : Loop{};
  return loop.end ? loop.end + 1 : group.pc;
}

void find_helpers(Cluster& cluster, std::vector<Stuck>& all, bool for_ever) {
  std::set<uint64_t> watched;
  for (const Stuck& stuck : all)
    for (const Wanted& wanted : stuck.wanted)
      if (wanted.kind == Wanted::Kind::word) watched.insert(wanted.address);
  LookAhead ahead(cluster, watched);
  bool all_known = true;
  for (Stuck& stuck : all) stuck.nobody = true;
  for (size_t other = 0; other < all.size(); ++other)
    for (Group* group : all[other].groups) {
      const Future future = ahead.of(*group, goes_on_at(cluster, *group, for_ever));
      all_known = all_known && future.known;
      for (size_t i = 0; i < all.size(); ++i) {
        Stuck& stuck = all[i];
        const bool own = std::ranges::find(stuck.groups, group) != stuck.groups.end();
        auto add = [&](uint32_t source, uint32_t lanes) {
          if (own && stuck.itself == Stuck::Helper::kNowhere) stuck.itself = source;
          if (!own && other != i &&
              std::ranges::none_of(stuck.helpers, [&](const auto& known) { return known.stuck == other; }))
            stuck.helpers.push_back({other, source,
                                     source == Stuck::Helper::kNowhere
                                         ? all[other].who
                                         : fmt::format("warp {}, {}", group->warp->index,
                                                       describe_lanes(lanes, group->warp->lanes_at_start))});
        };
        if (!own && is_missed(stuck, *group, future)) add(Stuck::Helper::kNowhere, 0);
        for (const Wanted& wanted : stuck.wanted)
          for (const Deed& deed : future.deeds)
            if (helps(cluster, wanted, deed, *group->warp)) {
              add(deed.source, deed.lanes);
              break;
            }
      }
    }
  for (Stuck& stuck : all) stuck.nobody = all_known && stuck.helpers.empty();
}

bool never_signalled(const Cluster& cluster, uint32_t address) {
  const auto& histories = cluster.ctas[shared_rank(address)]->barrier_history;
  const auto found = histories.find(shared_offset(address));
  return found != histories.end() && found->second.signals.empty();
}

/// Every one that is no root follows a root, over however many others. Where some wait for each other in a circle, one
/// of them is taken for the root: one with a likely cause, else who has waited longest.
void find_roots(const Cluster& cluster, std::vector<Stuck>& all, bool for_ever) {
  for (Stuck& stuck : all) {
    if (waits_for_barrier(stuck) && (for_ever || !stuck.loops)) stuck.cause = own_mistake(cluster, barrier_wait(stuck));
    stuck.unsure = for_ever && stuck.cause.empty() && stuck.helpers.empty() && !stuck.nobody &&
                   waits_for_barrier(stuck) && never_signalled(cluster, static_cast<uint32_t>(stuck.wanted[0].address));
    stuck.root = !stuck.unsure && (!stuck.cause.empty() || stuck.helpers.empty());
    if (for_ever && stuck.root && stuck.cause.empty() && waits_for_barrier(stuck))
      stuck.cause = missing_signal(cluster, barrier_wait(stuck));
  }
  // Steps to a root: 0 of a root itself, kFar of one that has not been found to follow any. Who is unsure is a root
  // where there is no other.
  constexpr uint32_t kFar = ~0u, kUnsure = 1u << 30;
  for (Stuck& stuck : all) stuck.behind = stuck.root ? 0 : stuck.unsure ? kUnsure : kFar;
  while (true) {
    for (bool more = true; more;) {
      more = false;
      for (Stuck& stuck : all)
        for (const Stuck::Helper& helper : stuck.helpers)
          if (const uint32_t behind = all[helper.stuck].behind; behind != kFar && behind + 1 < stuck.behind) {
            stuck.behind = behind + 1;
            more = true;
          }
    }
    Stuck* root = nullptr;
    std::string cause;
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i].behind != kFar) continue;
      const std::string hint = waits_for_barrier(all[i]) ? waits_in_first_round(cluster, barrier_wait(all[i]),
                                                                                helped_by_arrival(cluster, all[i]))
                                                         : "";
      if (!root || (cause.empty() && !hint.empty()) || (cause.empty() == hint.empty() && all[i].since < root->since))
        root = &all[i], cause = hint;
    }
    if (!root) break;
    root->root = true;
    root->behind = 0;
    root->cause = cause;
  }
  if (std::ranges::none_of(all, &Stuck::root))
    for (Stuck& stuck : all) {
      stuck.root = stuck.unsure;
      stuck.behind -= kUnsure;
      if (stuck.root) stuck.cause = missing_signal(cluster, barrier_wait(stuck));
    }
  // The helper that leads to a root soonest first, of the own CTA before others.
  for (Stuck& stuck : all)
    std::ranges::stable_sort(stuck.helpers, {}, [&](const Stuck::Helper& helper) {
      return std::pair(all[helper.stuck].behind, all[helper.stuck].cta != stuck.cta);
    });
}

}  // namespace

std::string describe_lanes(uint32_t mask, uint32_t live) {
  if (mask == kAllLanes || (mask == live && std::popcount(live) > 1)) return "all lanes";
  if (std::popcount(mask) == 1) return fmt::format("lane {}", std::countr_zero(mask));
  return fmt::format("lanes {:#010x}", mask);
}

const Instruction& stands_at(const Group& group) {
  const std::vector<Instruction>& code = group.frame->program->code;
  return code[std::min<size_t>(group.state == Group::State::parked ? group.wait.pc : group.pc, code.size() - 1)];
}

bool same_statement(const Cluster& cluster, uint32_t source, uint32_t other) {
  if (source == other) return true;
  const Location a = cluster.grid.location(source), b = cluster.grid.location(other);
  return a.kernel.line && a.kernel.line == b.kernel.line && a.kernel.file == b.kernel.file &&
         cluster.grid.text(source) == cluster.grid.text(other);
}

/// The loop ends at the first branch behind the place that leads back to it or before it.
Loop loop_around(const Cluster& cluster, const Group& group) {
  const std::vector<Instruction>& code = group.frame->program->code;
  const auto at = static_cast<uint32_t>(&stands_at(group) - code.data());
  for (uint32_t end = at; end < code.size(); ++end)
    if (code[end].target <= at && cluster.grid.text(code[end].source).starts_with("bra"))
      return {code[end].target, end};
  return {};
}

std::string short_wait(const Cluster& cluster, const Group& group) {
  if (group.state != Group::State::parked) return "runs";
  const Wait& wait = group.wait;
  switch (wait.kind) {
    case WaitKind::mbarrier:
      return "waits for " + describe_shared(cluster, wait.address);
    case WaitKind::cta_barrier:
      return fmt::format("waits at barrier {}", wait.address);
    case WaitKind::cluster_barrier:
      return "waits at the cluster barrier";
    case WaitKind::tensor_memory:
      return "waits in tcgen05.alloc";
    case WaitKind::time:
      return "sleeps";
    default:
      return "waits";
  }
}

std::string where_now(const Cluster& cluster, uint32_t cta_rank, uint32_t index, uint32_t lanes) {
  const Cta& cta = *cluster.ctas[cta_rank];
  if (index >= cta.warps.size() || !(cta.warps[index]->live & (lanes ? lanes : kAllLanes))) return "has ended";
  for (const auto& group : cta.warps[index]->groups)
    if (group->state != Group::State::free && (group->mask & (lanes ? lanes : kAllLanes)))
      return fmt::format("{} at {}", short_wait(cluster, *group),
                         describe_line(cluster.grid.location(stands_at(*group).source)));
  return "has ended";
}

std::string who_text(const std::vector<Group*>& groups) {
  std::string text;
  auto lanes = [&](size_t i) { return describe_lanes(groups[i]->mask, groups[i]->warp->lanes_at_start); };
  for (size_t first = 0, end; first < groups.size(); first = end) {
    end = first + 1;
    while (end < groups.size() && groups[end]->warp->index == groups[end - 1]->warp->index + 1 &&
           lanes(end) == lanes(first))
      ++end;
    text += text.empty() ? "" : "; ";
    text += end - first == 1 ? fmt::format("warp {}, {}", groups[first]->warp->index, lanes(first))
                             : fmt::format("warps {}-{}, {}", groups[first]->warp->index, groups[end - 1]->warp->index,
                                           lanes(first));
  }
  return text;
}

std::vector<Stuck> find_stuck(Cluster& cluster, bool for_ever) {
  std::vector<Stuck> all = gather(cluster);
  find_helpers(cluster, all, for_ever);
  find_roots(cluster, all, for_ever);
  // Roots first, the longest wait first, then who is nearest to one.
  std::vector<size_t> order(all.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, {},
                           [&](size_t i) { return std::pair(all[i].behind, all[i].behind ? 0 : all[i].since); });
  std::vector<size_t> now_at(all.size());
  for (size_t i = 0; i < order.size(); ++i) now_at[order[i]] = i;
  std::vector<Stuck> sorted;
  for (size_t old : order) sorted.push_back(std::move(all[old]));
  for (Stuck& stuck : sorted)
    for (Stuck::Helper& helper : stuck.helpers) helper.stuck = now_at[helper.stuck];
  return sorted;
}

}  // namespace emu
