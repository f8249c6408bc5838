// The hang report: who waits, where, since when, for what, what is missing, who has signalled it before, the likely
// cause; then those that only wait for others that wait.

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>

#include "emulator/machine/grid.h"
#include "emulator/report/fault_report.h"
#include "emulator/report/stuck.h"

namespace emu {
namespace {

constexpr size_t kMostRoots = 3;  // of which everything is said

/// "warp 1, lane 0 would signal it at F:105".
std::string helper_text(const Cluster& cluster, const std::vector<Stuck>& all, const Stuck& stuck,
                        const Stuck::Helper& helper) {
  const Stuck& other = all[helper.stuck];
  const bool is_word = !stuck.wanted.empty() && stuck.wanted[0].kind == Wanted::Kind::word;
  const std::string name = other.cta == stuck.cta ? helper.who : fmt::format("CTA {}, {}", other.cta->rank, helper.who);
  if (helper.source == Stuck::Helper::kNowhere) return name;
  return fmt::format("{} would {} it at {}", name, is_word ? "write" : "signal", place(cluster, helper.source));
}

/// Everything about one that nobody else would help.
std::string root_text(const Cluster& cluster, const std::vector<Stuck>& all, const Stuck& stuck, bool for_ever) {
  std::string text =
      fmt::format("=========       {}{}at {}: {}", who(stuck), kInto,
                  describe_location(cluster.grid.location(stuck.source)), cluster.grid.text(stuck.source));
  if (for_ever || !stuck.loops) text += fmt::format(", since cycle {}", stuck.since);
  for (const std::string& call : stuck.calls) text += kInto + call;
  const Group& group = *stuck.groups[0];
  const bool for_barrier = !stuck.wanted.empty() && stuck.wanted[0].kind == Wanted::Kind::mbarrier;
  if (stuck.loops) text += kInto + describe_loop(cluster, stuck, for_ever);
  if (for_barrier)
    text += kInto + describe_mbarrier_wait(cluster, stuck.wanted[0]);
  else if (!stuck.loops)
    text += kInto + describe_wait(cluster, group);
  if (!stuck.cause.empty()) text += std::string(kDeeper) + "likely: " + stuck.cause;
  if (!for_ever) return text + "\n";
  if (!stuck.helpers.empty()) {
    text += std::string(kDeeper) + helper_text(cluster, all, stuck, stuck.helpers[0]) +
            (stuck.helpers[0].source == Stuck::Helper::kNowhere ? " waits" : ", and waits") + " itself, see below";
  } else if (!stuck.wanted.empty() && stuck.nobody && stuck.cause.empty()) {
    const char* what = for_barrier ? "signal" : "write";
    text += stuck.itself != Stuck::Helper::kNowhere && for_barrier
                ? fmt::format("{}it would {} it itself, at {}, behind this wait; nobody else would", kDeeper, what,
                              place(cluster, stuck.itself))
                : fmt::format("{}nobody who still runs would {} it, whatever waits end", kDeeper, what);
  }
  return text + "\n";
}

/// One that waits for others that wait.
std::string follower_text(const Cluster& cluster, const std::vector<Stuck>& all, const Stuck& stuck, bool for_ever) {
  const bool for_barrier = !stuck.wanted.empty() && stuck.wanted[0].kind == Wanted::Kind::mbarrier;
  std::string text;
  if (for_barrier) {
    const auto address = static_cast<uint32_t>(stuck.wanted[0].address);
    const Cta& cta = *cluster.ctas[shared_rank(address)];
    const auto found = cta.barrier_history.find(shared_offset(address));
    text = fmt::format("{} {}, phase {}", stuck.loops ? "asks for" : "waits for", describe_shared(cluster, address),
                       found == cta.barrier_history.end() ? 0 : found->second.phases);
  } else {
    text = stuck.loops ? describe_loop(cluster, stuck, for_ever) : describe_wait(cluster, *stuck.groups[0]);
  }
  if (stuck.helpers.empty()) return text + (for_barrier ? "; who would signal it cannot be told" : "");
  const Stuck::Helper& helper = stuck.helpers[0];
  const char* does = !for_ever && all[helper.stuck].loops ? "runs" : "waits itself";
  const bool comes = helper.source == Stuck::Helper::kNowhere;
  return fmt::format("{}{} {}{} {}", text, comes ? ";" : ":", helper_text(cluster, all, stuck, helper),
                     comes ? "" : ", and", does);
}

/// `text` said of any CTA: what it has is its own.
std::string of_own_cta(std::string text, uint32_t rank) {
  const std::string named = fmt::format(" of CTA {} in the cluster", rank);
  for (size_t at = text.find(named); at != std::string::npos; at = text.find(named))
    text.replace(at, named.size(), " of its CTA");
  return text;
}

/// "0-3, 6".
std::string ranks_text(const std::vector<uint32_t>& ranks) {
  std::string text;
  for (size_t first = 0, end; first < ranks.size(); first = end) {
    end = first + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    text += text.empty() ? "" : ", ";
    text += end - first == 1 ? fmt::format("{}", ranks[first]) : fmt::format("{}-{}", ranks[first], ranks[end - 1]);
  }
  return text;
}

/// What makes a root the same as another CTA's: the place, the barrier's name and state.
std::string likeness(const Cluster& cluster, const Stuck& stuck) {
  std::string text = fmt::format("{} {} ", stuck.who, stuck.source);
  for (const Wanted& wanted : stuck.wanted) {
    const uint32_t offset = shared_offset(static_cast<uint32_t>(wanted.address));
    uint64_t word = 0;
    if (wanted.kind == Wanted::Kind::mbarrier)
      std::memcpy(&word, cluster.ctas[shared_rank(static_cast<uint32_t>(wanted.address))]->window.data() + offset, 8);
    text += fmt::format("{:x} {:x} ", wanted.kind == Wanted::Kind::mbarrier ? offset : wanted.address, word);
  }
  return stuck.wanted.empty() ? text + of_own_cta(describe_wait(cluster, *stuck.groups[0]), stuck.cta->rank) : text;
}

/// One of too many roots.
std::string short_root_text(const Cluster& cluster, const Stuck& stuck) {
  const std::string wait = short_wait(cluster, *stuck.groups[0]);
  return fmt::format("=========       {} at {}, since cycle {}{}{}{}\n", who(stuck), place(cluster, stuck.source),
                     stuck.since, kInto, wait, stuck.cause.empty() ? "" : "; likely: " + stuck.cause);
}

std::string roots_text(const Cluster& cluster, const std::vector<Stuck>& all, bool for_ever) {
  std::vector<std::pair<std::string, std::vector<const Stuck*>>> alike;
  for (const Stuck& stuck : all) {
    if (!stuck.root) continue;
    const std::string key = likeness(cluster, stuck);
    auto known = std::ranges::find(alike, key, [](const auto& entry) { return entry.first; });
    if (known == alike.end()) known = alike.insert(known, {key, {}});
    known->second.push_back(&stuck);
  }
  std::string text;
  size_t told = 0;
  for (auto& [key, group] : alike) {
    const Stuck* first = *std::ranges::min_element(group, {}, [](const Stuck* stuck) { return stuck->cta->rank; });
    text += ++told <= kMostRoots ? root_text(cluster, all, *first, for_ever) : short_root_text(cluster, *first);
    std::vector<uint32_t> others;
    for (const Stuck* stuck : group)
      if (stuck != first) others.push_back(stuck->cta->rank);
    std::ranges::sort(others);
    if (!others.empty())
      text += fmt::format("=========           CTA {}: the same, at {} own\n", ranks_text(others),
                          others.size() > 1 ? "their" : "its");
  }
  return text;
}

std::string followers_text(const Cluster& cluster, const std::vector<Stuck>& all, bool for_ever) {
  struct Line {
    std::string who, at, what;
    std::vector<uint32_t> ranks;
    uint64_t since;
  };
  std::vector<Line> lines;
  for (const Stuck& stuck : all) {
    if (stuck.root) continue;
    Line line{stuck.who, place(cluster, stuck.source), follower_text(cluster, all, stuck, for_ever), {}, stuck.since};
    auto known = std::ranges::find_if(lines, [&](const Line& other) {
      return other.who == line.who && other.at == line.at &&
             of_own_cta(other.what, other.ranks[0]) == of_own_cta(line.what, stuck.cta->rank);
    });
    if (known == lines.end()) known = lines.insert(known, line);
    known->ranks.push_back(stuck.cta->rank);
    known->since = std::min(known->since, line.since);
  }
  std::string text;
  for (Line& line : lines) {
    if (line.ranks.size() > 1) line.what = of_own_cta(line.what, line.ranks[0]);
    std::ranges::sort(line.ranks);
    text += "=========       ";
    if (cluster.ctas.size() > 1) text += fmt::format("CTA {}, ", ranks_text(line.ranks));
    text += fmt::format("{} at {}, since cycle {}{}{}\n", line.who, line.at, line.since, kInto, line.what);
  }
  return text;
}

}  // namespace

Fault report_hang(Cluster& cluster, double time_limit_s) {
  const Grid& grid = cluster.grid;
  const bool for_ever = time_limit_s == 0;
  const std::vector<Stuck> all = find_stuck(cluster, for_ever);
  const char* whose = cluster.ctas.size() > 1 ? "cluster" : "block";
  const bool somebody_asks =
      std::ranges::any_of(all, [](const Stuck& stuck) { return stuck.groups[0]->state == Group::State::ready; });
  const std::string why =
      !for_ever ? fmt::format("stopped: it has run for longer than {} s, which LADDER_TIME_LIMIT allows", time_limit_s)
      : somebody_asks
          ? fmt::format("hangs: every thread of the {} waits, or asks in a loop for what nobody changes", whose)
          : fmt::format("hangs: no thread of the {} can go on", whose);
  Fault fault{.error = static_cast<int>(FaultCode::launch_timeout),
              .kind = !for_ever       ? FaultKind::time_limit
                      : somebody_asks ? FaultKind::livelock
                                      : FaultKind::hang,
              .title = why};
  for (const Stuck& stuck : all)
    if (stuck.root)
      fault.sides.push_back({short_wait(cluster, *stuck.groups[0]), describe_location(grid.location(stuck.source)),
                             who(stuck), grid.text(stuck.source)});
  std::string text = headline(grid, fault, why);
  uint64_t clock = cluster.clock;
  std::string in_vain;
  if (const Cluster::Lapse* lapse = for_ever ? cluster.lapse() : nullptr) {
    const double per_hour = 3600e3 * grid.device.chip().clock_khz;
    in_vain =
        fmt::format("; {:.1f} hours have passed since, in vain", static_cast<double>(clock - lapse->since) / per_hour);
    clock = lapse->since;
  }
  const Cta &first = *cluster.ctas.front(), &last = *cluster.ctas.back();
  text += fmt::format("=========     block ({},{},{})", first.index.x, first.index.y, first.index.z);
  if (cluster.ctas.size() > 1)
    text +=
        fmt::format(" to ({},{},{}), CTA 0 to {} of its cluster,", last.index.x, last.index.y, last.index.z, last.rank);
  text +=
      fmt::format(" at virtual cycle {}{}; the last change was at cycle {}\n", clock, in_vain, cluster.last_effect());
  for (const auto& cta : cluster.ctas)
    if (cta->exited() && cluster.ctas.size() > 1)
      text += fmt::format("=========     CTA {}, block ({},{},{}), has ended\n", cta->rank, cta->index.x, cta->index.y,
                          cta->index.z);
  text += roots_text(cluster, all, for_ever);
  if (const std::string followers = followers_text(cluster, all, for_ever); !followers.empty())
    text += "=========     the others wait for those, or for others that do:\n" + followers;
  text += describe_given_up(cluster, all);
  if (for_ever) {
    fault.source = somebody_asks
                       ? "what a loop asks for must be written by a thread that still gets there"
                       : "a wait ends only when somebody arrives, commits or completes bytes; nothing that could is "
                         "under way";
    text += fmt::format("=========     rule: {}\n", fault.source);
  }
  fault.report = std::move(text);
  return fault;
}

}  // namespace emu
