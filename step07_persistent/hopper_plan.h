// What can be set in the last rung's Hopper twin, and what is chosen for a shape and a device where nothing is.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/harness/dtype.h"
#include "common/harness/rung.h"
#include "common/layout/tile_walk.h"

/// 0 where the plan is to choose. See known_hopper_settings.
struct HopperSettings {
  int ctas = 0;          ///< of a cluster; each loads its part of what they share for all
  bool share_a = false;  ///< CTAs side by side share a tile of A; otherwise one below the other, and share one of B
  int accumulators = 1;
  int tile_n = 0;
  int stages = 0;
  int buffers = 0;
  int walk = 0;      ///< tile rows of a group
  int clusters = 0;  ///< of the grid
  bool persistent = true;
  bool counter = false;
  bool direct_stores = false;
  bool early = true;  ///< programmatic dependent launch
};

/// What the launch needs to know of a device.
struct HopperDevice {
  int clusters_of_1, clusters_of_2;  ///< that it holds at once, with one CTA an SM
  int64_t l2_bytes;
};

/// The kernel's parameters beside matrices; `tile_n` and `accumulators` are its template's.
struct HopperPlan {
  int tile_n;
  int accumulators;       ///< 1: both warpgroups multiply one tile; 2: they take tiles in turn
  int box_m;              ///< rows of A that a CTA loads for a tile: 128, or fewer where D has fewer
  int down, across;       ///< CTAs of a cluster: those one below the other share B, those side by side share A
  ladder::TileWalk walk;  ///< over what a cluster computes: 128 rows for each CTA down, tile_n columns for each across
  int stages;
  int buffers;   ///< that D goes through, a stripe of the tile each; 0: straight from registers
  int clusters;  ///< of the grid
  bool counter;  ///< tiles on demand, from a counter in global memory
  bool early;    ///< CTAs may come while the launch before still runs

  constexpr int ctas() const { return down * across; }
};

constexpr int kMostHopperStages = 9;
/// Of the ring, per CTA: 128 rows of A and tile_n of B, 64 K elements of 16 bits each.
constexpr int hopper_stage_bytes(int tile_n) {
  return (128 + tile_n) * 128;
}
/// Bytes of a row of D that go through shared memory at a time: a stripe. 64 where 128 do not divide a tile's row.
constexpr int stripe_bytes(int tile_n, ladder::DType out) {
  return tile_n * static_cast<int>(ladder::bytes_of(out)) % 128 == 0 ? 128 : 64;
}

/// Reads `ctas=1,walk=4`; "": all as it is chosen. Throws ladder::UserError.
HopperSettings read_hopper_settings(std::string_view text);
const std::vector<ladder::Setting>& known_hopper_settings();

/// All that `settings` leave open, chosen. Throws ladder::UserError where a setting does not fit the others.
HopperPlan make_hopper_plan(const HopperSettings& settings, int64_t m, int64_t n, int64_t k, ladder::DType out,
                            const HopperDevice& device);
/// In one line.
std::string to_string(const HopperPlan& plan);
