#include "emulator/report/trace_file.h"

#include <fmt/format.h>

#include <fstream>
#include <stdexcept>

#include "emulator/machine/grid.h"
#include "emulator/report/fault_report.h"

namespace emu {

void append_trace(const std::string& path, const Grid& grid) {
  std::ofstream file(path, std::ios::app);
  file << fmt::format("launch {}\nkernel {}\n", grid.kernel.name, grid.program.pretty_name);
  for (uint32_t offset : grid.trace().barriers)
    file << fmt::format("barrier {:#x} {}\n", offset, describe_shared(grid, offset));
  for (uint32_t source : grid.trace().sources)
    file << fmt::format("source {} {}\n", source, describe_location(grid.location(source)));
  for (const auto& [cluster, events] : grid.trace().events) file << events;
  if (!file.flush()) throw std::runtime_error("LADDER_TRACE=" + path + ": cannot write");
}

}  // namespace emu
