#include "emulator/report/fault_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "emulator/machine/grid.h"
#include "emulator/machine/mbarrier.h"

namespace emu {
namespace {

std::string short_path(const std::string& path) {
  // The last two parts tell a reader of the repository enough: step01_kloop/blackwell.cu.
  size_t last = path.rfind('/');
  if (last == std::string::npos || last == 0) return path;
  size_t before = path.rfind('/', last - 1);
  return before == std::string::npos ? path : path.substr(before + 1);
}

std::string plural(int64_t count, const char* one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

}  // namespace

std::string describe_location(const Location& location) {
  if (location.kernel.line == 0)
    return fmt::format("PTX line {} (no source lines: build with -lineinfo)", location.ptx_line);
  std::string text = fmt::format("{}:{}", short_path(location.kernel.file), location.kernel.line);
  if (location.wrapper.file != location.kernel.file || location.wrapper.line != location.kernel.line)
    text += fmt::format(" (in {}:{})", short_path(location.wrapper.file), location.wrapper.line);
  return text;
}

std::string describe_shared(const Cluster& cluster, uint32_t address) {
  uint32_t offset = shared_offset(address), rank = shared_rank(address);
  std::string where = cluster.ctas.size() > 1 ? fmt::format(" of CTA {} in the cluster", rank) : "";
  for (const SharedVariable& variable : cluster.grid.program.shared_variables) {
    if (variable.dynamic || offset < variable.offset || offset >= variable.offset + variable.bytes) continue;
    uint32_t into = offset - variable.offset;
    if (variable.bytes == 8) return variable.name + where;
    if (variable.bytes % 8 == 0 && into % 8 == 0 && variable.bytes <= 512)
      return fmt::format("{}[{}]{}", variable.name, into / 8, where);
    return into ? fmt::format("{} + {:#x}{}", variable.name, into, where) : variable.name + where;
  }
  uint32_t dynamic = cluster.grid.dynamic_shared_offset();
  if (offset >= dynamic && offset < cluster.grid.window_bytes())
    return fmt::format("dynamic shared memory + {:#x}{}", offset - dynamic, where);
  return fmt::format("shared address {:#x}{}", offset, where);
}

std::string describe_mbarrier(const Cluster& cluster, uint32_t address, const std::string& new_line) {
  const Cta& cta = *cluster.ctas[shared_rank(address)];
  uint32_t offset = shared_offset(address);
  auto found = cta.barrier_history.find(offset);
  if (found == cta.barrier_history.end()) return "nobody has initialised it";
  const BarrierHistory& history = found->second;
  uint64_t word;
  std::memcpy(&word, cta.window.data() + offset, 8);
  std::string text = history.invalidated ? "it was invalidated" : "its memory was overwritten";
  if (!history.invalidated && mbarrier::plausible(word)) {
    mbarrier::State state = mbarrier::State::decode(word);
    text = fmt::format("phase {} is running, of parity {}, ", history.phases, state.parity);
    if (state.pending == 0 && state.tx_bytes == 0) {
      text += "nothing missing";
    } else {
      text += fmt::format("{} of {} missing", state.pending, plural(state.expected, "arrival"));
      if (state.tx_bytes > 0) text += fmt::format(", {} bytes missing", state.tx_bytes);
      if (state.tx_bytes < 0) text += fmt::format(", {} bytes more than were expected", -state.tx_bytes);
    }
  }
  const auto& locations = cluster.grid.program.locations;
  std::string initialised = describe_location(locations[history.initialised_by]);
  if (history.signals.empty())
    return fmt::format("{}{}nobody has signalled it since its mbarrier.init, {}", text, new_line, initialised);
  text += fmt::format("{}initialised: {}", new_line, initialised);
  for (const auto& signal : history.signals)
    text += fmt::format("{}signalled so far: {}, warp {}, {} ({}, last at cycle {})", new_line, signal.what,
                        signal.warp, describe_location(locations[signal.source]),
                        plural(static_cast<int64_t>(signal.times), "time"), signal.last_clock);
  return text;
}

std::string report_trap(const Cluster& cluster, const Origin& who, const Trap& trap) {
  const Program& program = cluster.grid.program;
  const Cta& cta = *cluster.ctas[who.cta_rank];
  std::string lane = who.lane >= 0 ? fmt::format(", lane {}", who.lane) : "";
  std::string text = fmt::format("========= Emulated {}: {} stopped\n",
                                 cluster.grid.device.chip().device_name.substr(7, 4), program.pretty_name);
  text += fmt::format("=========     {}\n", trap.what());
  if (dynamic_cast<const mbarrier::Fault*>(&trap))
    text += fmt::format("=========     {}: {}\n", describe_shared(cluster, cluster.last_mbarrier),
                        describe_mbarrier(cluster, cluster.last_mbarrier, "\n=========       "));
  text += fmt::format("=========     at {}\n", describe_location(program.locations[who.source]));
  text += fmt::format("=========     by block ({},{},{}), warp {}{}: {}\n", cta.index.x, cta.index.y, cta.index.z,
                      who.warp, lane, program.text[who.source]);
  if (!trap.source.empty()) text += fmt::format("=========     rule: {}\n", trap.source);
  return text;
}

}  // namespace emu
