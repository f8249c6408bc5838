// What can be set in the last rung's kernel, and what is chosen for a shape and a device where nothing is.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/harness/dtype.h"
#include "common/harness/rung.h"
#include "common/layout/tile_walk.h"

/// How the operands of a cluster's MMAs come about.
enum class Operands {
  alone,      ///< no cluster: each CTA loads all of its own
  multicast,  ///< two CTAs, MMAs of their own, each loads one half of B for both
  pair,       ///< two CTAs, one MMA: each loads one half of B, for its own shared memory
};
constexpr int ctas_of(Operands operands) {
  return operands == Operands::alone ? 1 : 2;
}

/// 0 where the plan is to choose. See known_settings.
struct Settings {
  Operands operands = Operands::pair;
  int tile_n = 0;
  int stages = 0;
  int accumulators = 2;
  int walk = 0;      ///< tile rows of a group
  int clusters = 0;  ///< of the grid
  bool persistent = true;
  bool launch_control = false;
  bool direct_stores = false;
};

/// What the launch needs to know of a device.
struct Device {
  int clusters;      ///< that it holds at once, with one CTA an SM
  int64_t l2_bytes;  ///< of its L2
};

/// The kernel's parameters beside matrices; `operands` and `tile_n` are its template's.
struct Plan {
  Operands operands;
  int tile_n;
  ladder::TileWalk walk;  ///< over tiles of 128 rows for each CTA of a cluster, and tile_n columns
  int stages;
  int accumulators;
  int clusters;  ///< of the grid
  bool launch_control;
  bool direct_stores;
};

constexpr int kMaxStages = 9;
/// Of the ring, per CTA: 128 rows of A, and of B what the CTA keeps, 64 K elements of 16 bits each.
constexpr int stage_bytes(Operands operands, int tile_n) {
  return (128 + (operands == Operands::pair ? tile_n / 2 : tile_n)) * 128;
}
/// Two buffers for a tile's 128 rows, 128 bytes of each; direct stores need none.
constexpr int store_bytes(bool direct_stores) {
  return direct_stores ? 0 : 2 * 128 * 128;
}
/// The stages that fit beside the store buffers and 1 KB of barriers, in the 227 KB that a CTA may have.
constexpr int stages_that_fit(Operands operands, int tile_n, bool direct_stores) {
  const int stages = (226 * 1024 - store_bytes(direct_stores)) / stage_bytes(operands, tile_n);
  return stages < kMaxStages ? stages : kMaxStages;
}

/// Reads `cta-group=1,walk=4`. Throws ladder::UserError.
Settings read_settings(std::string_view text);
const std::vector<ladder::Setting>& known_settings();

constexpr int kTileWidths[] = {256, 224, 128};
/// Cycles that an SM has to do with a K tile at least: 2 for each column to multiply it, and one for 72 bytes to
/// load from L2, whichever is more. Published figures, not ours: see docs/step07_persistent.md.
int k_tile_cycles(Operands operands, int tile_n);
/// How often `clusters` have to take a tile each.
int64_t waves(Operands operands, int tile_n, int64_t m, int64_t n, int clusters);
/// The tile width with the least waves times cycles.
int best_tile_n(Operands operands, int64_t m, int64_t n, int clusters);

/// Tiles of so many rows or columns that cover a length.
constexpr int64_t tiles_of(int64_t length, int64_t tile) {
  return (length + tile - 1) / tile;
}
/// Clusters of a grid that stays: so many as are asked for, or (0) as few as make the same number of waves.
int clusters_that_stay(int asked, int at_once, int tiles);
/// Rows of A and of B that the first `wave` tiles of a walk need.
int64_t rows_of_wave(const ladder::TileWalk& walk, int tile_m, int tile_n, int wave);
/// The tile rows to a group: 1 where A and B fit in half of L2 (D goes through it, too), for then DRAM is asked for
/// each byte once whatever the order; else the power of two, 32 at most, for which the tiles that `device` computes at
/// once need the fewest rows of A and B.
int best_walk(const ladder::TileWalk& tiles, int tile_m, int tile_n, int64_t operand_bytes, const Device& device);

/// All that `settings` leave open, chosen. Throws ladder::UserError where a setting does not fit the others.
Plan make_plan(const Settings& settings, int64_t m, int64_t n, int64_t k, const Device& device);
/// In one line.
std::string to_string(const Plan& plan);
