#include "step07_persistent/hopper_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/harness/settings.h"
#include "common/harness/user_error.h"
#include "step07_persistent/plan.h"

using ladder::DType;
using ladder::Setting;
using ladder::UserError;

namespace {

constexpr int kTileM = 128;  // rows of D a CTA computes
constexpr int kMaxWalk = 32;
constexpr int kMostBuffers = 8;
constexpr int kSharedBytes = 226 * 1024;  // of the 227 KB that a CTA may have; the rest for barriers
constexpr int kTileWidths[] = {256, 224, 192, 160, 128, 64};
// Two stages always fit: one is released when the MMAs of the next are issued.
static_assert(kSharedBytes - kMostBuffers * kTileM * 128 >= 2 * hopper_stage_bytes(kTileWidths[0]));

/// Cycles that an SM has to do with a K tile at least: 4 for each column to multiply it, and one for 48 bytes to load
/// from L2, whichever is more. At 8192^3 an H200 loads 46 (bench/h200_counters.json). Of what CTAs share, each loads
/// its part.
int64_t k_tile_cycles(int tile_n, int down, int across) {
  constexpr int kLoadBytesPerCycle = 48;
  return std::max(4 * tile_n, (kTileM / across + tile_n / down) * 128 / kLoadBytesPerCycle);
}

/// Clusters that may run at the same time.
int clusters_at_once(const HopperSettings& settings, int ctas, const HopperDevice& device) {
  const int held = ctas == 1 ? device.clusters_of_1 : device.clusters_of_2;
  return settings.clusters ? std::min(settings.clusters, held) : held;
}

struct Tile {
  int tile_n, ctas;
};

/// What takes the fewest waves times cycles. Of those that differ by less than 3 %, the widest, and rather without a
/// cluster: a chip at its power limit runs the slower, the more bytes it moves.
Tile best_tile(const HopperSettings& settings, int64_t m, int64_t n, const HopperDevice& device) {
  Tile best{0, 0};
  double fewest = 0;
  for (const int tile_n : kTileWidths) {
    if (settings.tile_n && tile_n != settings.tile_n) continue;
    for (const int ctas : {1, 2}) {
      if (settings.ctas ? ctas != settings.ctas : ctas == 2 && m <= kTileM) continue;
      const int clusters = clusters_at_once(settings, ctas, device);
      const int across = settings.share_a ? ctas : 1, down = ctas / across;
      const int64_t waves = tiles_of(tiles_of(m, kTileM * down) * tiles_of(n, tile_n * across), clusters);
      const auto cycles = static_cast<double>(waves * k_tile_cycles(tile_n, down, across));
      if (best.tile_n == 0 || cycles * 1.03 < fewest) best = {tile_n, ctas}, fewest = cycles;
    }
  }
  return best;
}

}  // namespace

const std::vector<Setting>& known_hopper_settings() {
  static const std::vector<Setting> all = {
      {"ctas", {"auto", "1", "2"}, "of a cluster; 2: each loads half of what they share for both"},
      {"share", {"b", "a"}, "b: the CTAs of a cluster lie one below the other; a: side by side"},
      {"persistent", {"on", "off"}, "off: a cluster for each tile"},
      {"accumulators", {"1", "2"}, "2: the warpgroups take tiles of 128 columns in turn"},
      {"walk", {"auto", fmt::format("1..{}", kMaxWalk)}, "tile rows to a group"},
      {"tile-n", {"auto", "64", "128", "160", "192", "224", "256"}, "columns of a tile"},
      {"stages", {"auto", fmt::format("2..{}", kMostHopperStages)}, "of the ring; auto: what fits beside buffers"},
      {"buffers", {"auto", fmt::format("1..{}", kMostBuffers)}, "stripes of D in shared memory at a time"},
      {"scheduler", {"static", "counter"}, "counter: tiles on demand, from a counter in global memory"},
      {"stores", {"tma", "direct"}, "direct: from registers, two elements each"},
      {"clusters", {"auto", "1..1048576"}, "of the grid; auto: as many as the device holds, fewer for the same waves"},
      {"start", {"early", "late"}, "late: no CTA comes before all of the launch before have left"},
  };
  return all;
}

HopperSettings read_hopper_settings(std::string_view text) {
  HopperSettings settings;
  if (text.empty()) return settings;
  for (const auto& [name, value, number] : ladder::parse_settings(text, known_hopper_settings())) {
    if (name == "ctas") settings.ctas = number;
    if (name == "share") settings.share_a = value == "a";
    if (name == "start") settings.early = value == "early";
    if (name == "persistent") settings.persistent = value == "on";
    if (name == "accumulators") settings.accumulators = number;
    if (name == "walk") settings.walk = number;
    if (name == "tile-n") settings.tile_n = number;
    if (name == "stages") settings.stages = number;
    if (name == "buffers") settings.buffers = number;
    if (name == "scheduler") settings.counter = value == "counter";
    if (name == "stores") settings.direct_stores = value == "direct";
    if (name == "clusters") settings.clusters = number;
  }
  if (settings.accumulators == 2 && settings.tile_n && settings.tile_n != 128) {
    throw UserError(
        fmt::format("accumulators=2: a warpgroup has registers for all of a tile of 128 columns, not {}; "
                    "leave tile-n={} out",
                    settings.tile_n, settings.tile_n));
  }
  if (settings.accumulators == 2) settings.tile_n = 128;
  if (settings.counter && !settings.persistent) {
    throw UserError("scheduler=counter: hands more tiles to clusters that stay; leave persistent=off out");
  }
  if (settings.clusters > 0 && !settings.persistent) {
    throw UserError(
        fmt::format("clusters={}: with persistent=off the grid has a cluster for each tile; leave one of "
                    "them out",
                    settings.clusters));
  }
  if (settings.buffers > 0 && settings.direct_stores) {
    throw UserError(fmt::format("buffers={}: stores=direct needs none; leave one of them out", settings.buffers));
  }
  if (settings.share_a && settings.ctas == 1) {
    throw UserError("share=a: two CTAs share a tile of A; leave ctas=1 out");
  }
  if (settings.share_a) settings.ctas = 2;
  return settings;
}

HopperPlan make_hopper_plan(const HopperSettings& settings, int64_t m, int64_t n, int64_t k, DType out,
                            const HopperDevice& device) {
  HopperPlan plan{};
  const Tile tile = best_tile(settings, m, n, device);
  plan.tile_n = tile.tile_n;
  plan.down = settings.share_a ? 1 : tile.ctas;
  plan.across = settings.share_a ? tile.ctas : 1;
  // Rows that TMA fills with zeros cost it more time than rows that it loads. What the MMAs read in their place ends in
  // rows of a tile that are not stored. Each CTA's part of a box is whole swizzle atoms, of eight rows.
  const int atoms = 8 * plan.across;
  plan.box_m = static_cast<int>(std::min<int64_t>(tiles_of(m, atoms) * atoms, kTileM));
  plan.accumulators = settings.accumulators;
  plan.counter = settings.counter;
  plan.early = settings.early;

  const int at_once = clusters_at_once(settings, plan.ctas(), device);
  const int tile_m = kTileM * plan.down, tile_n = plan.tile_n * plan.across;
  plan.walk = {static_cast<int>(tiles_of(m, tile_m)), static_cast<int>(tiles_of(n, tile_n)), settings.walk};
  const int tiles = plan.walk.tiles();
  plan.clusters = settings.persistent ? clusters_that_stay(settings.clusters, at_once, tiles) : tiles;

  // With buffers for more than half of a tile, its way out hardly waits for earlier stores; what is left is stages'.
  // Where the launch is one wave, nothing is won by that, and stages come first.
  const int stage = hopper_stage_bytes(plan.tile_n), row_bytes = plan.tile_n * static_cast<int>(bytes_of(out));
  const int stripes = row_bytes / stripe_bytes(plan.tile_n, out), buffer = kTileM * stripe_bytes(plan.tile_n, out);
  const int wanted = settings.direct_stores ? 0
                     : settings.buffers     ? settings.buffers
                     : tiles <= at_once     ? 1
                                            : stripes / 2 + 1;
  const int fit = std::min(kMostHopperStages, (kSharedBytes - wanted * buffer) / stage);
  const int most = std::min(kMostHopperStages, (kSharedBytes - (wanted ? buffer : 0)) / stage);
  if (settings.stages > (settings.buffers ? fit : most)) {
    throw UserError(fmt::format("stages={}: {} fit where a tile is {} columns wide; ask for fewer, or leave it out",
                                settings.stages, settings.buffers ? fit : most, plan.tile_n));
  }
  plan.stages = settings.stages ? settings.stages : fit;
  plan.buffers = settings.buffers ? settings.buffers
                 : wanted         ? std::min({stripes, kMostBuffers, (kSharedBytes - plan.stages * stage) / buffer})
                                  : 0;

  if (!settings.walk) {
    const Device used{std::min(at_once, plan.clusters), device.l2_bytes};
    plan.walk.group = best_walk(plan.walk, tile_m, tile_n, (m + n) * k * 2, used);
  }
  return plan;
}

std::string to_string(const HopperPlan& plan) {
  const auto some = [](int count, const char* what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
  };
  return fmt::format("{} x {} tiles of {} x {}, walk {}; {} of {}{}{}{}; {}, {}, {}", plan.walk.m_tiles,
                     plan.walk.n_tiles, kTileM * plan.down, plan.tile_n * plan.across, plan.walk.group,
                     some(plan.clusters, "cluster"), plan.ctas(), plan.across > 1 ? ", side by side" : "",
                     plan.counter ? ", tiles on demand" : "", plan.early ? "" : ", late", some(plan.stages, "stage"),
                     some(plan.accumulators, "accumulator"), some(plan.buffers, "store buffer"));
}
