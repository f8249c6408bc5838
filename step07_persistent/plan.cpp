#include "step07_persistent/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <set>

#include "common/harness/settings.h"
#include "common/harness/user_error.h"

using ladder::Setting;
using ladder::TileWalk;
using ladder::UserError;

namespace {

constexpr int kTileM = 128;  // rows of D a CTA computes
constexpr int kMaxWalk = 32;

}  // namespace

const std::vector<Setting>& known_settings() {
  static const std::vector<Setting> all = {
      {"cta-group", {"2", "1"}, "CTAs to an MMA: a pair, or each its own"},
      {"multicast", {"off", "on"}, "with cta-group=1: two CTAs load halves of B for each other"},
      {"persistent", {"on", "off"}, "off: a cluster for each tile"},
      {"accumulators", {"2", "1"}, "1: a tile's MMAs wait until the tile before has left"},
      {"walk", {"auto", fmt::format("1..{}", kMaxWalk)}, "tile rows to a group"},
      {"tile-n", {"auto", "128", "224", "256"}, "columns of a tile"},
      {"stages", {"auto", fmt::format("1..{}", kMaxStages)}, "of the ring; auto: as many as fit"},
      {"scheduler", {"static", "clc"}, "clc: the hardware hands out tiles (cluster launch control)"},
      {"stores", {"tma", "direct"}, "direct: from registers, 32 bytes each; mostly one stage more fits"},
      {"clusters", {"auto", "1..1048576"}, "of the grid; auto: as many as the device holds, fewer for the same waves"},
  };
  return all;
}

Settings read_settings(std::string_view text) {
  Settings settings;
  int cta_group = 2;
  bool multicast = false;
  for (const auto& [name, value, number] : ladder::parse_settings(text, known_settings())) {
    if (name == "cta-group") cta_group = number;
    if (name == "multicast") multicast = value == "on";
    if (name == "persistent") settings.persistent = value == "on";
    if (name == "accumulators") settings.accumulators = number;
    if (name == "walk") settings.walk = number;
    if (name == "tile-n") settings.tile_n = number;
    if (name == "stages") settings.stages = number;
    if (name == "scheduler") settings.launch_control = value == "clc";
    if (name == "stores") settings.direct_stores = value == "direct";
    if (name == "clusters") settings.clusters = number;
  }
  if (multicast && cta_group == 2) {
    throw UserError("multicast=on: the CTAs of a pair need no copies of each other's B; add cta-group=1");
  }
  settings.operands = cta_group == 2 ? Operands::pair : multicast ? Operands::multicast : Operands::alone;
  if (settings.launch_control && !settings.persistent) {
    throw UserError("scheduler=clc: hands more tiles to clusters that stay; leave persistent=off out");
  }
  if (settings.clusters > 0 && (settings.launch_control || !settings.persistent)) {
    throw UserError(fmt::format("clusters={}: with {} the grid has a cluster for each tile; leave one of them out",
                                settings.clusters, settings.launch_control ? "scheduler=clc" : "persistent=off"));
  }
  return settings;
}

int k_tile_cycles(Operands operands, int tile_n) {
  constexpr int kLoadBytesPerCycle = 72;  // ademeure, on a B300: 20.5 TB/s from L2 to 148 SMs, at 1.9 GHz
  const int rows_loaded = kTileM + tile_n / ctas_of(operands);
  return std::max(2 * tile_n, rows_loaded * 128 / kLoadBytesPerCycle);
}

int64_t waves(Operands operands, int tile_n, int64_t m, int64_t n, int clusters) {
  return tiles_of(tiles_of(m, kTileM * ctas_of(operands)) * tiles_of(n, tile_n), clusters);
}

int best_tile_n(Operands operands, int64_t m, int64_t n, int clusters) {
  const auto cycles = [&](int tile_n) {
    return waves(operands, tile_n, m, n, clusters) * k_tile_cycles(operands, tile_n);
  };
  return *std::min_element(std::begin(kTileWidths), std::end(kTileWidths),
                           [&](int a, int b) { return cycles(a) < cycles(b); });
}

int clusters_that_stay(int asked, int at_once, int tiles) {
  return asked ? std::min(asked, tiles) : static_cast<int>(tiles_of(tiles, tiles_of(tiles, at_once)));
}

int64_t rows_of_wave(const TileWalk& walk, int tile_m, int tile_n, int wave) {
  std::set<int> m, n;
  for (int tile = 0; tile < std::min(wave, walk.tiles()); ++tile) {
    const ladder::TilePlace place = walk.place(tile);
    m.insert(place.m), n.insert(place.n);
  }
  return static_cast<int64_t>(m.size()) * tile_m + static_cast<int64_t>(n.size()) * tile_n;
}

int best_walk(const TileWalk& tiles, int tile_m, int tile_n, int64_t operand_bytes, const Device& device) {
  if (operand_bytes <= device.l2_bytes / 2) return 1;
  int best = 1;
  int64_t fewest = std::numeric_limits<int64_t>::max();
  for (int group = 1; group <= kMaxWalk; group *= 2) {
    const int64_t rows = rows_of_wave({tiles.m_tiles, tiles.n_tiles, group}, tile_m, tile_n, device.clusters);
    if (rows < fewest) fewest = rows, best = group;
  }
  return best;
}

Plan make_plan(const Settings& settings, int64_t m, int64_t n, int64_t k, const Device& device) {
  Plan plan{};
  plan.operands = settings.operands;
  const int at_once = std::min(settings.clusters ? settings.clusters : device.clusters, device.clusters);
  plan.tile_n = settings.tile_n ? settings.tile_n : best_tile_n(settings.operands, m, n, at_once);
  const int fit = stages_that_fit(plan.operands, plan.tile_n, settings.direct_stores);
  if (settings.stages > fit) {
    const bool others_fit = settings.stages <= stages_that_fit(plan.operands, plan.tile_n, true);
    throw UserError(
        fmt::format("stages={}: {} fit beside {} where a tile is {} columns wide; leave it out for as many{}",
                    settings.stages, fit, settings.direct_stores ? "the barriers" : "the store buffers", plan.tile_n,
                    others_fit ? ", or add stores=direct, which needs no buffers" : ""));
  }
  const int tile_m = kTileM * ctas_of(plan.operands);
  plan.walk = {static_cast<int>(tiles_of(m, tile_m)), static_cast<int>(tiles_of(n, plan.tile_n)), settings.walk};
  const int tiles = plan.walk.tiles();  // a D that fits in any memory has fewer than 2^26
  if (settings.launch_control || !settings.persistent) {
    plan.clusters = tiles;
  } else {
    plan.clusters = clusters_that_stay(settings.clusters, at_once, tiles);
  }
  if (!settings.walk) {
    const Device used{std::min(at_once, plan.clusters), device.l2_bytes};
    plan.walk.group = best_walk(plan.walk, tile_m, plan.tile_n, (m + n) * k * 2, used);
  }
  plan.stages = settings.stages ? settings.stages : fit;
  plan.accumulators = settings.accumulators;
  plan.launch_control = settings.launch_control;
  plan.direct_stores = settings.direct_stores;
  return plan;
}

std::string to_string(const Plan& plan) {
  const int ctas = ctas_of(plan.operands);
  return fmt::format("{} x {} tiles of {} x {}, walk {}; {} cluster{} of {}{}; {} stage{}, {} accumulator{}",
                     plan.walk.m_tiles, plan.walk.n_tiles, kTileM * ctas, plan.tile_n, plan.walk.group, plan.clusters,
                     plan.clusters == 1 ? "" : "s", ctas,
                     plan.launch_control ? ", each of which may take over others" : "", plan.stages,
                     plan.stages == 1 ? "" : "s", plan.accumulators, plan.accumulators == 1 ? "" : "s");
}
