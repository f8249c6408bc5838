#include "emulator/report/fault_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "emulator/machine/grid.h"

namespace emu {
namespace {

std::string short_path(const std::string& path) {
  // The last two parts tell a reader of the repository enough: step01_kloop/blackwell.cu.
  size_t last = path.rfind('/');
  if (last == std::string::npos || last == 0) return path;
  size_t before = path.rfind('/', last - 1);
  return before == std::string::npos ? path : path.substr(before + 1);
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

std::string report_trap(const Cluster& cluster, const Origin& who, const Trap& trap) {
  const Program& program = cluster.grid.program;
  const Cta& cta = *cluster.ctas[who.cta_rank];
  std::string lane = who.lane >= 0 ? fmt::format(", lane {}", who.lane) : "";
  std::string text = fmt::format("========= Emulated {}: {} stopped\n",
                                 cluster.grid.device.chip().device_name.substr(7, 4), program.pretty_name);
  text += fmt::format("=========     {}\n", trap.what());
  text += fmt::format("=========     at {}\n", describe_location(program.locations[who.source]));
  text += fmt::format("=========     by block ({},{},{}), warp {}{}: {}\n", cta.index.x, cta.index.y, cta.index.z,
                      who.warp, lane, program.text[who.source]);
  if (!trap.source.empty()) text += fmt::format("=========     rule: {}\n", trap.source);
  return text;
}

}  // namespace emu
