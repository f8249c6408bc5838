// Tells as JSON what step07 plans for a shape on a B200, for the pages: tile_plan M N K WALK. WALK: tile rows to a
// group, 0 for the plan's own.
#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "common/listing/number.h"
#include "step07_persistent/plan.h"

namespace {

constexpr Device kB200{.clusters = 148 / 2, .l2_bytes = (126 * 1024 + 512) * 1024};  // emulator/machine/chip.cpp
constexpr int kTileM = 128;

nlohmann::ordered_json told(int64_t m, int64_t n, int64_t k, int walk) {
  const Plan plan = make_plan({.walk = walk}, m, n, k, kB200);
  const int tile_m = kTileM * ctas_of(plan.operands);
  nlohmann::ordered_json json = {{"tile_m", tile_m},
                                 {"tile_n", plan.tile_n},
                                 {"m_tiles", plan.walk.m_tiles},
                                 {"n_tiles", plan.walk.n_tiles},
                                 {"walk", plan.walk.group},
                                 {"stages", plan.stages},
                                 {"clusters", kB200.clusters},
                                 {"order", nlohmann::ordered_json::array()},
                                 {"widths", nlohmann::ordered_json::array()},
                                 {"rows_of_wave", rows_of_wave(plan.walk, tile_m, plan.tile_n, kB200.clusters)}};
  for (int tile = 0; tile < plan.walk.tiles(); ++tile) {
    const ladder::TilePlace place = plan.walk.place(tile);
    json["order"].push_back({place.m, place.n});
  }
  for (const int tile_n : kTileWidths) {
    json["widths"].push_back({{"tile_n", tile_n},
                              {"tiles", waves(plan.operands, tile_n, m, n, 1)},
                              {"waves", waves(plan.operands, tile_n, m, n, kB200.clusters)},
                              {"k_tile_cycles", k_tile_cycles(plan.operands, tile_n)}});
  }
  return json;
}

}  // namespace

int main(int argc, char** argv) {
  std::array<int64_t, 4> values{};
  bool good = argc == 5;
  for (size_t i = 0; good && i < values.size(); ++i) {
    values[i] = number<int64_t>(argv[i + 1], -1);
    good = values[i] >= (i == 3 ? 0 : 1) && values[i] <= 1 << 20;
  }
  if (!good) {
    fmt::print(stderr, "expected M, N, K and the tile rows to a group, 0 for the plan's own\n");
    return 2;
  }
  fmt::print("{}\n", told(values[0], values[1], values[2], static_cast<int>(values[3])).dump());
  return 0;
}
