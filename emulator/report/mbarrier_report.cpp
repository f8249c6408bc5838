// What reports say of an mbarrier: the running phase, its bytes, who has initialised and signalled it.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "emulator/machine/grid.h"
#include "emulator/machine/mbarrier.h"
#include "emulator/report/fault_report.h"

namespace emu {
namespace {

using Signal = BarrierHistory::Signal;

constexpr size_t kMostSignals = 10;  // of a barrier with many: those that came last

std::string phase_text(const BarrierHistory& history, const mbarrier::State& state) {
  std::string text = fmt::format("phase {} is running, of parity {}, ", history.phases, state.parity);
  if (state.pending == 0 && state.tx_bytes == 0) return text + "nothing missing";
  text += fmt::format("{} of {} missing", state.pending, plural(state.expected, "arrival"));
  if (state.tx_bytes > 0) text += fmt::format(", {} bytes missing", state.tx_bytes);
  if (state.tx_bytes < 0)
    text += fmt::format(", {} bytes more than were expected{}", -state.tx_bytes, state.pending ? " so far" : "");
  return text;
}

/// "12304 bytes expected in this phase (F:85), 12288 delivered (2 copies)"; "" where no bytes are spoken of.
std::string bytes_text(const Cluster& cluster, const BarrierHistory& history) {
  int64_t expected = 0, delivered = 0, copies = 0;
  std::string places;
  for (const Signal& signal : history.signals) {
    if (signal.last.phase != history.phases) continue;
    if (signal.last.bytes < 0) {
      delivered -= signal.last.bytes;
      copies += static_cast<int64_t>(signal.last.times);
    } else if (signal.last.bytes > 0) {
      expected += signal.last.bytes;
      const Place place = cluster.grid.location(signal.source).kernel;
      const std::string at = place.line ? fmt::format("line {}", place.line) : "";
      if (!at.empty() && places.find(at) == std::string::npos) places += (places.empty() ? "" : ", ") + at;
    }
  }
  if (!expected && !delivered) return "";
  return fmt::format("bytes of this phase: {} expected{}, {} delivered{}", expected,
                     places.empty() ? "" : " (" + places + ")", delivered,
                     copies ? fmt::format(" by {}", copies == 1 ? "1 copy" : fmt::format("{} copies", copies)) : "");
}

}  // namespace

std::string describe_mbarrier(const Cluster& cluster, uint32_t address, const std::string& new_line) {
  const Cta& cta = *cluster.ctas[shared_rank(address)];
  const auto found = cta.barrier_history.find(shared_offset(address));
  if (found == cta.barrier_history.end()) return "nobody has initialised it";
  const BarrierHistory& history = found->second;
  uint64_t word;
  std::memcpy(&word, cta.window.data() + found->first, 8);
  std::string text = history.invalidated ? "it was invalidated" : "its memory was overwritten";
  const std::string initialised = describe_location(cluster.grid.location(history.initialised_by));
  if (!history.invalidated && mbarrier::plausible(word)) {
    text = phase_text(history, mbarrier::State::decode(word));
    if (const std::string bytes = bytes_text(cluster, history); !bytes.empty()) text += new_line + bytes;
  }
  if (history.signals.empty())
    return fmt::format("{}{}nobody has signalled it since its mbarrier.init, {}", text, new_line, initialised);
  text += fmt::format("{}initialised: {}", new_line, initialised);

  std::vector<const Signal*> shown;
  for (const Signal& signal : history.signals) shown.push_back(&signal);
  const size_t left_out = shown.size() > kMostSignals ? shown.size() - kMostSignals : 0;
  if (left_out) {
    std::ranges::stable_sort(shown, {}, &Signal::last_clock);
    shown.erase(shown.begin(), shown.begin() + static_cast<std::ptrdiff_t>(left_out));
    text += fmt::format("{}signalled so far, but for {} earlier:", new_line, left_out);
  }
  for (const Signal* signal : shown) {
    const std::string phase =
        signal->last.phase == history.phases ? "in this phase" : fmt::format("in phase {}", signal->last.phase);
    text += fmt::format("{}signalled so far: {}, {}warp {}, {} ({}, last at cycle {}, {})", new_line, signal->what,
                        cluster.ctas.size() > 1 ? fmt::format("CTA {}, ", signal->cta_rank) : "", signal->warp,
                        describe_location(cluster.grid.location(signal->source)),
                        plural(static_cast<int64_t>(signal->times), "time"), signal->last_clock, phase);
  }
  return text;
}

}  // namespace emu
