#include "emulator/report/counters_file.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "emulator/machine/grid.h"

namespace emu {
namespace {

nlohmann::ordered_json to_json(const WarpCounters& counters) {
  return {{"instructions", counters.instructions},
          {"parked_waits", counters.parked_waits},
          {"parked_cycles", counters.parked_cycles},
          {"tma_loads", counters.tma_loads},
          {"tma_stores", counters.tma_stores},
          {"tma_box_rows", counters.tma_box_rows},
          {"bytes_from_global", counters.bytes_from_global},
          {"bytes_to_global", counters.bytes_to_global},
          {"bytes_into_shared", counters.bytes_into_shared},
          {"mmas", counters.mmas},
          {"commits", counters.commits},
          {"tmem_loads", counters.tmem_loads},
          {"tmem_stores", counters.tmem_stores}};
}

}  // namespace

void append_counters(const std::string& path, const Grid& grid) {
  const Counters& counters = grid.counters();
  WarpCounters total;
  nlohmann::ordered_json warps = nlohmann::ordered_json::array();
  for (const WarpCounters& warp : counters.warps) {
    total.add(warp);
    warps.push_back(to_json(warp));
  }
  nlohmann::ordered_json line = {{"kernel", grid.program.pretty_name},
                                 {"mangled", grid.program.name},
                                 {"chip", grid.device.chip().name},
                                 {"ctas", counters.ctas},
                                 {"clusters", counters.clusters},
                                 {"most_resident_ctas", counters.most_resident_ctas},
                                 {"dynamic_shared_bytes", grid.config.dynamic_shared_bytes},
                                 {"virtual_cycles", counters.last_clock},
                                 {"most_loads_in_flight", counters.most_loads_in_flight},
                                 {"most_bytes_in_flight", counters.most_bytes_in_flight},
                                 {"most_mmas_in_flight", counters.most_mmas_in_flight},
                                 {"total", to_json(total)},
                                 {"by_warp", std::move(warps)}};
  std::ofstream file(path, std::ios::app);
  file << line.dump() << '\n';
  if (!file.flush()) throw std::runtime_error("LADDER_COUNTERS=" + path + ": cannot write");
}

}  // namespace emu
