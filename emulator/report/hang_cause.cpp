// What most likely keeps a wait on an mbarrier from ending: a guess, from what the barrier and its waiters have seen.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "emulator/machine/grid.h"
#include "emulator/machine/mbarrier.h"
#include "emulator/report/fault_report.h"

namespace emu {
namespace {

using Signal = BarrierHistory::Signal;

bool is_copy(const Signal& signal) {
  return signal.what == std::string_view(mbarrier::kBytesOfACopy);
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

/// Whether the group loads next: bytes are announced, or copied by TMA, before anything else signals a barrier.
bool loads_next(const Cluster& cluster, const Group& group) {
  const std::vector<Instruction>& code = group.frame->program->code;
  for (size_t i = group.wait.pc; i < code.size(); ++i) {
    const std::string& text = cluster.grid.text(code[i].source);
    if (text.find("complete_tx") != std::string::npos || text.find("expect_tx") != std::string::npos) return true;
    if (text.find("mbarrier.arrive") != std::string::npos || text.starts_with("tcgen05.commit") ||
        text.starts_with("tcgen05.mma") || text.starts_with("tcgen05.ld") || text.starts_with("wgmma"))
      return false;
  }
  return false;
}

/// The waiter itself asks for the wrong phase.
std::string lost_count(const BarrierHistory& history, const Group& group) {
  const BarrierHistory::Passed* seen = nullptr;
  for (const auto& passed : history.passed)
    if (passed.cta_rank == group.warp->cta.rank && passed.warp == group.warp->index && (passed.lanes & group.mask) &&
        (!seen || passed.ended > seen->ended))
      seen = &passed;
  const uint32_t parity = group.wait.parity;
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

std::string bytes_cause(const BarrierHistory& history, int64_t missing) {
  if (missing < 0)
    return fmt::format(
        "expect_tx announces {} bytes fewer than the copies bring: it must be the sum of their boxes, what "
        "lies outside the tensor too",
        -missing);
  const bool some = std::any_of(history.signals.begin(), history.signals.end(), [&](const Signal& signal) {
    return is_copy(signal) && signal.last.phase == history.phases;
  });
  return some ? fmt::format("expect_tx announces {} bytes more than the copies bring, or one of them goes elsewhere",
                            missing)
              : "bytes are announced, and no copy has brought any in this phase: none was started, or it names another "
                "barrier";
}

std::string arrivals_cause(const Cluster& cluster, const BarrierHistory& history, const Group& group,
                           const mbarrier::State& state) {
  std::vector<const Signal*> come, left_out;
  for (const Signal& signal : history.signals) {
    if (is_copy(signal)) continue;
    if (signal.last.phase == history.phases) come.push_back(&signal);
    if (signal.last.phase + 1 == history.phases) left_out.push_back(&signal);
  }
  if (!come.empty() && !left_out.empty())
    return fmt::format("{} took part in phase {} and not in this one", list(cluster, left_out), history.phases - 1);
  if (!come.empty())
    return fmt::format(
        "{} of {} arrivals have come, by {}: somebody does not arrive (a CTA that a commit's mask leaves out, "
        "a role that skips it), or mbarrier.init counts too many",
        state.expected - state.pending, state.expected, list(cluster, come));
  if (history.signals.empty() && history.passed.empty() && group.wait.parity == 0 && loads_next(cluster, group))
    return "it loads next, so it waits for a buffer to be free; a fresh barrier is in phase 0, and a wait that is to "
           "pass "
           "there must ask for parity 1";
  return "";
}

}  // namespace

std::string likely_cause(const Cluster& cluster, const Group& group) {
  const Cta& cta = *cluster.ctas[shared_rank(group.wait.address)];
  const uint32_t offset = shared_offset(group.wait.address);
  const auto found = cta.barrier_history.find(offset);
  if (found == cta.barrier_history.end() || found->second.invalidated) return "";
  uint64_t word;
  std::memcpy(&word, cta.window.data() + offset, 8);
  if (!mbarrier::plausible(word)) return "";
  const mbarrier::State state = mbarrier::State::decode(word);
  const BarrierHistory& history = found->second;
  if (std::string cause = lost_count(history, group); !cause.empty()) return cause;
  if (state.pending == 0 && state.tx_bytes != 0) return bytes_cause(history, state.tx_bytes);
  return arrivals_cause(cluster, history, group, state);
}

}  // namespace emu
