// What most likely keeps a wait on an mbarrier from ending: a guess, from what the barrier, its like and its waiters
// have seen.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string_view>

#include "emulator/machine/grid.h"
#include "emulator/machine/mbarrier.h"
#include "emulator/report/fault_report.h"
#include "emulator/report/stuck.h"

namespace emu {
namespace {

using Signal = BarrierHistory::Signal;

bool is_copy(const Signal& signal) {
  return signal.what == std::string_view(mbarrier::kBytesOfACopy);
}
bool is_commit(const Signal& signal) {
  return signal.what == std::string_view("tcgen05.commit");
}

std::string who(const Cluster& cluster, const Signal& signal) {
  return fmt::format("{}{}warp {}", signal.what,
                     cluster.ctas.size() > 1 ? fmt::format(" of CTA {}, ", signal.cta_rank) : " of ", signal.warp);
}

std::string list(const Cluster& cluster, const std::vector<const Signal*>& signals) {
  std::string text;
  for (const Signal* signal : signals) text += (text.empty() ? "" : "; ") + who(cluster, *signal);
  return text;
}

/// The barrier that a wait is for, where it is one.
struct Barrier {
  const Cta* cta = nullptr;
  uint32_t offset = 0;
  const BarrierHistory* history = nullptr;
  mbarrier::State state = {};
  explicit operator bool() const { return history; }
};

Barrier barrier_of(const Cluster& cluster, uint32_t address) {
  const Cta& cta = *cluster.ctas[shared_rank(address)];
  const uint32_t offset = shared_offset(address);
  const auto found = cta.barrier_history.find(offset);
  if (found == cta.barrier_history.end() || found->second.invalidated) return {};
  uint64_t word;
  std::memcpy(&word, cta.window.data() + offset, 8);
  if (!mbarrier::plausible(word)) return {};
  return {&cta, offset, &found->second, mbarrier::State::decode(word)};
}

/// What the group does next that another one waits for: loads (bytes are announced, or copied by TMA) or multiplies,
/// before anything else signals a barrier.
enum class Next : uint8_t { loads, multiplies, other };
Next does_next(const Cluster& cluster, const BarrierWait& wait) {
  if (!wait.program) return Next::other;
  const std::vector<Instruction>& code = wait.program->code;
  for (size_t i = wait.pc; i < code.size(); ++i) {
    const std::string& text = cluster.grid.text(code[i].source);
    if (text.find("complete_tx") != std::string::npos || text.find("expect_tx") != std::string::npos)
      return Next::loads;
    if (text.starts_with("tcgen05.mma")) return Next::multiplies;
    if (text.find("mbarrier.arrive") != std::string::npos || text.starts_with("tcgen05.commit") ||
        text.starts_with("tcgen05.ld") || text.starts_with("wgmma"))
      return Next::other;
  }
  return Next::other;
}

/// The waiter itself asks for the wrong phase.
std::string lost_count(const BarrierHistory& history, const BarrierWait& wait) {
  const BarrierHistory::Passed* seen = nullptr;
  for (const auto& passed : history.passed)
    if (passed.cta_rank == wait.warp.cta.rank && passed.warp == wait.warp.index && (passed.lanes & wait.lanes) &&
        (!seen || passed.ended > seen->ended))
      seen = &passed;
  const uint32_t parity = wait.parity;
  const auto running = static_cast<int64_t>(history.phases);
  if (!seen) {
    if (running == 0 || (running == 1 && parity == 1))
      return running ? "this is its first wait here, and it asks for phase 1: phase 0, of parity 0, is over" : "";
    return fmt::format("this is its first wait here, and phases 0 to {} have ended without it", running - 1);
  }
  const int64_t next = seen->ended + 1;
  const std::string last = seen->ended < 0 ? "it passed here when the barrier was fresh"
                                           : fmt::format("it has seen phase {} end", seen->ended);
  if ((next & 1) != parity)
    return fmt::format(
        "{}, so phase {} is next, of parity {}; it asks for parity {}: a parity turns over once for each "
        "phase",
        last, next, next & 1, parity);
  if (next < running)
    return fmt::format(
        "{}, and waits for phase {}, which is over: phase {} looks the same. Who waits may be late by one "
        "phase, not by two",
        last, next, running);
  return "";
}

/// Signals of barriers at the same offset in other CTAs, by instructions of warps that have not signalled this one in
/// its running phase: they leave its CTA out.
std::vector<std::pair<uint32_t, const Signal*>> left_out_by_peers(const Cluster& cluster, const Barrier& barrier) {
  std::vector<std::pair<uint32_t, const Signal*>> out;  // whose barrier, by whom
  for (const auto& cta : cluster.ctas) {
    if (cta.get() == barrier.cta) continue;
    const auto found = cta->barrier_history.find(barrier.offset);
    if (found == cta->barrier_history.end()) continue;
    for (const Signal& signal : found->second.signals) {
      const bool here = std::ranges::any_of(barrier.history->signals, [&](const Signal& own) {
        return own.source == signal.source && own.cta_rank == signal.cta_rank && own.warp == signal.warp;
      });
      if (!here) out.emplace_back(cta->rank, &signal);
    }
  }
  return out;
}

bool says(const Cluster& cluster, const Signal& signal, std::string_view part) {
  return cluster.grid.text(signal.source).find(part) != std::string::npos;
}

std::string ranks_text(const std::set<uint32_t>& ranks) {
  std::string text;
  for (uint32_t rank : ranks) text += (text.empty() ? "" : ", ") + std::to_string(rank);
  return text;
}

/// An arrival of a CTA at its own barrier says nothing of others', but for a commit that may be for several.
bool is_for_several(const Cluster& cluster, const Barrier& barrier, const Signal& commit) {
  return barrier.state.expected > 1 || says(cluster, commit, "multicast") || says(cluster, commit, "cta_group::2");
}

/// Why an instruction that could tell this CTA's barrier does not.
std::string why_left_out(const Cluster& cluster, const Signal& signal) {
  if (says(cluster, signal, "multicast::cluster")) return ": its mask leaves that CTA out";
  if (is_commit(signal)) return ": without .multicast::cluster it tells one CTA alone";
  if (!is_copy(signal)) return "";
  return says(cluster, signal, "cta_group::2")
             ? ": the mbarrier named is the issuing CTA's own"
             : ": without .multicast::cluster or .cta_group::2 only the CTA that is written to is told";
}

/// What peers' instructions bring to the same barrier of other CTAs and not here. Of copies: with as many bytes as are
/// missing.
std::string mask_cause(const Cluster& cluster, const Barrier& barrier, bool copies) {
  std::set<uint32_t> issuers, reached;
  const Signal* one = nullptr;
  for (const auto& [rank, signal] : left_out_by_peers(cluster, barrier)) {
    if (is_copy(*signal) != copies || (one && one->source != signal->source)) continue;
    if (copies && -signal->last.bytes != barrier.state.tx_bytes * static_cast<int64_t>(signal->last.times)) continue;
    if (!copies && rank == signal->cta_rank && !(is_commit(*signal) && is_for_several(cluster, barrier, *signal)))
      continue;
    one = signal;
    issuers.insert(signal->cta_rank);
    reached.insert(rank);
  }
  if (!one || (!copies && static_cast<int64_t>(issuers.size()) < barrier.state.pending)) return "";
  // Those that have not issued it anywhere could be what is missing just as well; of a pair's commits one is enough.
  std::set<uint32_t> idle;
  if (copies || !says(cluster, *one, "cta_group::2"))
    for (const auto& cta : cluster.ctas) idle.insert(cta->rank);
  for (const auto& cta : cluster.ctas)
    if (const auto found = cta->barrier_history.find(barrier.offset); found != cta->barrier_history.end())
      for (const Signal& signal : found->second.signals)
        if (same_statement(cluster, signal.source, one->source)) idle.erase(signal.cta_rank);
  std::string text = fmt::format("{} of CTA {} at {} {} {} of CTA {} and not of CTA {}",
                                 copies ? "the copy" : one->what, ranks_text(issuers), place(cluster, one->source),
                                 copies ? fmt::format("brings {} bytes to", barrier.state.tx_bytes) : "arrives at",
                                 describe_shared(cluster.grid, barrier.offset), ranks_text(reached), barrier.cta->rank);
  text += why_left_out(cluster, *one);
  if (!idle.empty()) text += fmt::format(", or CTA {} should issue it, too", ranks_text(idle));
  if (!copies && barrier.state.expected > 1) text += ", or mbarrier.init counts too many";
  return text;
}

/// Copies of one CTA that together bring to its own barrier what is missing here.
std::string copies_to_own(const Cluster& cluster, const Barrier& barrier) {
  for (const auto& cta : cluster.ctas) {
    int64_t bytes = 0;
    std::set<std::string> places;
    const Signal* one = nullptr;
    for (const auto& [rank, signal] : left_out_by_peers(cluster, barrier)) {
      if (!is_copy(*signal) || rank != cta->rank || signal->cta_rank != cta->rank) continue;
      one = signal;
      bytes -= signal->last.bytes / static_cast<int64_t>(signal->last.times);
      places.insert(place(cluster, signal->source));
    }
    if (!one || bytes != barrier.state.tx_bytes) continue;
    std::string at;
    for (const std::string& each : places) at += (at.empty() ? "" : " and ") + each;
    return fmt::format("copies of CTA {} at {} bring {} bytes to {} of CTA {} and not of CTA {}{}", cta->rank, at,
                       bytes, describe_shared(cluster.grid, barrier.offset), cta->rank, barrier.cta->rank,
                       why_left_out(cluster, *one));
  }
  return "";
}

/// Arrivals by threads of another CTA at their own barrier, as many as are missing here, by the statement by which
/// those of this CTA have come.
std::string arrivals_at_own(const Cluster& cluster, const Barrier& barrier, const std::vector<const Signal*>& come) {
  for (const auto& cta : cluster.ctas) {
    int64_t arrivals = 0;
    const Signal* one = nullptr;
    for (const auto& [rank, signal] : left_out_by_peers(cluster, barrier)) {
      if (is_copy(*signal) || rank != cta->rank || signal->cta_rank != cta->rank) continue;
      if (std::ranges::none_of(come, [&](const Signal* own) {
            return own->cta_rank == barrier.cta->rank && same_statement(cluster, own->source, signal->source);
          }))
        continue;
      one = signal;
      arrivals += static_cast<int64_t>(signal->last.times);
    }
    if (!one || arrivals != barrier.state.pending) continue;
    return fmt::format(
        "with {} at {} CTA {} arrives at {} of CTA {} and not of CTA {} (mapa makes another CTA's address), "
        "or mbarrier.init counts too many",
        one->what, place(cluster, one->source), cta->rank, describe_shared(cluster.grid, barrier.offset), cta->rank,
        barrier.cta->rank);
  }
  return "";
}

/// What came in the phase before comes by another instruction now, of the same warp.
bool replaced(const BarrierHistory& history, const Signal& before) {
  return std::ranges::any_of(history.signals, [&](const Signal& now) {
    return now.last.phase == history.phases && now.cta_rank == before.cta_rank && now.warp == before.warp &&
           now.what == std::string_view(before.what) && (before.last.lanes & ~now.last.lanes) == 0 &&
           (!is_copy(now) || now.last.bytes == before.last.bytes);
  });
}

std::string bytes_cause(const Cluster& cluster, const Barrier& barrier) {
  const int64_t missing = barrier.state.tx_bytes;
  const BarrierHistory& history = *barrier.history;
  // A copy that came in the phase before, with as many bytes as are missing now.
  for (const Signal& signal : history.signals)
    if (is_copy(signal) && signal.last.phase + 1 == history.phases && -signal.last.bytes == missing &&
        !replaced(history, signal))
      return fmt::format("the copy at {} brought {} bytes in phase {} and none in this one; warp {} {}",
                         place(cluster, signal.source), missing, history.phases - 1, signal.warp,
                         where_now(cluster, signal.cta_rank, signal.warp, signal.last.lanes));
  if (std::string mask = mask_cause(cluster, barrier, true); !mask.empty()) return mask;
  if (std::string own = copies_to_own(cluster, barrier); !own.empty()) return own;
  // What the warp that announced them has copied to another barrier since then.
  const Signal* expects = nullptr;
  for (const Signal& signal : history.signals)
    if (signal.last.phase == history.phases && signal.last.bytes > 0) expects = &signal;
  if (expects)
    for (const auto& [offset, other] : barrier.cta->barrier_history) {
      if (offset == barrier.offset) continue;
      for (const Signal& signal : other.signals)
        if (is_copy(signal) && signal.warp == expects->warp && signal.cta_rank == expects->cta_rank &&
            signal.last_clock >= expects->last_clock && -signal.last.bytes >= missing &&
            other.phases == signal.last.phase)
          return fmt::format("the copy at {} tells another barrier, {}", place(cluster, signal.source),
                             describe_shared(cluster.grid, offset));
    }
  const bool some = std::any_of(history.signals.begin(), history.signals.end(), [&](const Signal& signal) {
    return is_copy(signal) && signal.last.phase == history.phases;
  });
  return some ? fmt::format("expect_tx announces {} bytes more than the copies bring, or one of them goes elsewhere",
                            missing)
              : "bytes are announced, and no copy has brought any in this phase: none was started, or it names another "
                "barrier";
}

/// MMAs that no commit tracks, where a commit could have been what is missing.
std::string missing_commit(const Cluster& cluster, const Barrier& barrier) {
  const BarrierHistory& history = *barrier.history;
  const bool by_commits = std::ranges::any_of(history.signals, is_commit);
  if (!by_commits && !history.signals.empty()) return "";
  for (const auto& cta : cluster.ctas)
    for (const auto& warp : cta->warps)
      for (uint32_t lane = 0; lane < kLanes; ++lane) {
        const Warp::Uncommitted& left = warp->uncommitted[lane];
        if (left.mmas == 0) continue;
        return fmt::format(
            "{}warp {}, lane {} has issued {} tcgen05.mma, the last at {}, and no tcgen05.commit since: "
            "nothing tells when they are done",
            cluster.ctas.size() > 1 ? fmt::format("CTA {}, ", cta->rank) : "", warp->index, lane, left.mmas,
            place(cluster, left.source));
      }
  return "";
}

/// The shared variable that holds an offset; nullptr for dynamic shared memory.
const SharedVariable* variable_at(const Cluster& cluster, uint32_t offset) {
  for (const SharedVariable& variable : cluster.grid.program.shared_variables)
    if (!variable.dynamic && offset >= variable.offset && offset < variable.offset + variable.bytes) return &variable;
  return nullptr;
}

/// Nobody has ever signalled the barrier: who signals its like.
std::string signals_go_elsewhere(const Cluster& cluster, const Barrier& barrier) {
  const SharedVariable* own = variable_at(cluster, barrier.offset);
  const Signal *of_array = nullptr, *commit = nullptr;
  uint32_t array_at = 0, commit_at = 0;
  for (const auto& [offset, other] : barrier.cta->barrier_history) {
    if (offset == barrier.offset) continue;
    const SharedVariable* variable = variable_at(cluster, offset);
    const bool alike = own ? variable == own : !variable && other.initialised_by == barrier.history->initialised_by;
    for (const Signal& signal : other.signals) {
      if (is_copy(signal)) continue;
      if (alike && (!of_array || signal.last_clock > of_array->last_clock)) of_array = &signal, array_at = offset;
      if (is_commit(signal) && (!commit || signal.last_clock > commit->last_clock))
        commit = &signal, commit_at = offset;
    }
  }
  const Signal* one = of_array ? of_array : commit;
  if (!one) return "";
  return fmt::format("{} at {} signals {} and never this one", who(cluster, *one), place(cluster, one->source),
                     describe_shared(cluster.grid, of_array ? array_at : commit_at));
}

/// Nobody has ever arrived here, but at the same barrier of other CTAs somebody has of their own.
std::string others_arrive_at_their_own(const Cluster& cluster, const Barrier& barrier) {
  if (!std::ranges::all_of(barrier.history->signals, is_copy)) return "";
  for (const auto& cta : cluster.ctas) {
    const auto found = cta->barrier_history.find(barrier.offset);
    if (cta.get() == barrier.cta || found == cta->barrier_history.end()) continue;
    for (const Signal& signal : found->second.signals)
      if (!is_copy(signal) && signal.cta_rank == cta->rank)
        return fmt::format("CTA {} arrives at its own with {} at {}; CTA {} has not", cta->rank, signal.what,
                           place(cluster, signal.source), barrier.cta->rank);
  }
  return "";
}

/// Who took part in the phase before and not in this one, and where they are.
std::string took_part_before(const Cluster& cluster, const std::vector<const Signal*>& left_out, uint64_t phase) {
  std::string text = fmt::format("{} took part in phase {} and not in this one", list(cluster, left_out), phase);
  std::set<std::string> places;
  for (const Signal* signal : left_out)
    places.insert(where_now(cluster, signal->cta_rank, signal->warp, signal->last.lanes));
  if (places.size() == 1) text += fmt::format("; {} {}", left_out.size() == 1 ? "it" : "each", *places.begin());
  return text;
}

std::string arrivals_cause(const Cluster& cluster, const Barrier& barrier) {
  const BarrierHistory& history = *barrier.history;
  std::vector<const Signal*> come, left_out;
  const Signal* fewer_lanes = nullptr;
  for (const Signal& signal : history.signals) {
    if (is_copy(signal)) continue;
    if (signal.last.phase == history.phases) come.push_back(&signal);
    if (signal.last.phase + 1 == history.phases && !replaced(history, signal)) left_out.push_back(&signal);
    if (signal.last.phase == history.phases && signal.before.phase + 1 == history.phases && signal.before.times &&
        (signal.before.lanes & ~signal.last.lanes))
      fewer_lanes = &signal;
  }
  if (!left_out.empty()) return took_part_before(cluster, left_out, history.phases - 1);
  if (fewer_lanes) {
    const uint32_t lanes = fewer_lanes->before.lanes & ~fewer_lanes->last.lanes;
    return fmt::format(
        "lanes {:#010x} of warp {} took part in phase {} and not in this one, with {} at {}; the first of them {}",
        lanes, fewer_lanes->warp, history.phases - 1, fewer_lanes->what, place(cluster, fewer_lanes->source),
        where_now(cluster, fewer_lanes->cta_rank, fewer_lanes->warp, lanes));
  }
  if (std::string mask = mask_cause(cluster, barrier, false); !mask.empty()) return mask;
  if (std::string own = arrivals_at_own(cluster, barrier, come); !own.empty()) return own;
  if (!come.empty())
    return fmt::format("{} of {} arrivals have come, by {}: somebody does not arrive, or mbarrier.init counts too many",
                       barrier.state.expected - barrier.state.pending, barrier.state.expected, list(cluster, come));
  if (std::string cause = others_arrive_at_their_own(cluster, barrier); !cause.empty()) return cause;
  return history.signals.empty() ? signals_go_elsewhere(cluster, barrier) : "";
}

}  // namespace

std::string own_mistake(const Cluster& cluster, const BarrierWait& wait) {
  const Barrier barrier = barrier_of(cluster, wait.address);
  if (!barrier) return "";
  if (std::string cause = lost_count(*barrier.history, wait); !cause.empty()) return cause;
  if (barrier.state.tx_bytes < 0 && barrier.state.pending == 0)
    return fmt::format(
        "expect_tx announces {} bytes fewer than the copies bring: it must be the sum of their boxes, what "
        "lies outside the tensor too",
        -barrier.state.tx_bytes);
  return "";
}

std::string waits_in_first_round(const Cluster& cluster, const BarrierWait& wait, bool for_arrivals) {
  const Barrier barrier = barrier_of(cluster, wait.address);
  if (!barrier || !barrier.history->signals.empty() || !barrier.history->passed.empty() || wait.parity != 0) return "";
  // Whose operands TMA brings multiplies next, too; that wait is for bytes.
  const Next next = does_next(cluster, wait);
  if (next == Next::other || (next == Next::multiplies && !for_arrivals)) return "";
  return fmt::format(
      "it {} next, so it waits for {} to be free; a fresh barrier is in phase 0, and a wait that is to pass there must "
      "ask for parity 1",
      next == Next::loads ? "loads" : "multiplies", next == Next::loads ? "a buffer" : "an accumulator");
}

std::string missing_signal(const Cluster& cluster, const BarrierWait& wait) {
  const Barrier barrier = barrier_of(cluster, wait.address);
  if (!barrier) return "";
  if (std::string cause = waits_in_first_round(cluster, wait, false); !cause.empty()) return cause;
  if (barrier.state.pending == 0 && barrier.state.tx_bytes > 0) return bytes_cause(cluster, barrier);
  if (std::string cause = missing_commit(cluster, barrier); !cause.empty()) return cause;
  return arrivals_cause(cluster, barrier);
}

}  // namespace emu
