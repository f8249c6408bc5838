// What step07 makes of settings, shapes and devices (step07_persistent/plan.h), against models of their own.
#include "step07_persistent/plan.h"

#include <fmt/format.h>

#include <set>
#include <tuple>

#include "common/harness/user_error.h"
#include "tests/catch.h"

namespace {

constexpr Device kB200{.clusters = 74, .l2_bytes = (126 * 1024 + 512) * 1024};
constexpr Operands kAll[] = {Operands::alone, Operands::multicast, Operands::pair};

auto fields(const Settings& s) {
  return std::tuple(s.operands, s.tile_n, s.stages, s.accumulators, s.walk, s.clusters, s.persistent, s.launch_control,
                    s.direct_stores);
}

template <class F>
std::string refusal(F&& f) {
  try {
    f();
  } catch (const ladder::UserError& error) {
    return error.what();
  }
  return "accepted";
}

std::string refused(std::string_view text) {
  return refusal([&] { read_settings(text); });
}

Plan plan(std::string_view settings, int64_t m, int64_t n, int64_t k = 64, const Device& device = kB200) {
  return make_plan(read_settings(settings), m, n, k, device);
}

/// A round at a time, each of so many clusters takes a tile while there are any.
int64_t rounds_of(int64_t tiles, int clusters) {
  int64_t rounds = 0;
  for (; tiles > 0; tiles -= clusters) ++rounds;
  return rounds;
}

int64_t tiles_along(int64_t length, int64_t tile) {
  int64_t tiles = 0;
  for (int64_t at = 0; at < length; at += tile) ++tiles;
  return tiles;
}

}  // namespace

TEST_CASE("step07 settings: the first value of each is the default") {
  std::string all;
  for (const ladder::Setting& setting : known_settings()) {
    INFO(setting.name);
    const std::string text = setting.name + "=" + setting.values.front();
    CHECK(fields(read_settings(text)) == fields(Settings{}));
    all += (all.empty() ? "" : ",") + text;
  }
  CHECK(fields(read_settings(all)) == fields(Settings{}));
}

TEST_CASE("step07 settings: each other value changes one thing") {
  const auto with = [](auto change) {
    Settings settings;
    change(settings);
    return fields(settings);
  };
  CHECK(fields(read_settings("cta-group=1")) == with([](Settings& s) { s.operands = Operands::alone; }));
  for (const char* text : {"cta-group=1,multicast=on", "multicast=on,cta-group=1"})
    CHECK(fields(read_settings(text)) == with([](Settings& s) { s.operands = Operands::multicast; }));
  CHECK(fields(read_settings("persistent=off")) == with([](Settings& s) { s.persistent = false; }));
  CHECK(fields(read_settings("accumulators=1")) == with([](Settings& s) { s.accumulators = 1; }));
  CHECK(fields(read_settings("scheduler=clc")) == with([](Settings& s) { s.launch_control = true; }));
  CHECK(fields(read_settings("stores=direct")) == with([](Settings& s) { s.direct_stores = true; }));
  for (int tile_n : {128, 224, 256})
    CHECK(fields(read_settings(fmt::format("tile-n={}", tile_n))) == with([&](Settings& s) { s.tile_n = tile_n; }));
  for (int walk = 1; walk <= 32; ++walk)
    CHECK(fields(read_settings(fmt::format("walk={}", walk))) == with([&](Settings& s) { s.walk = walk; }));
  for (int stages = 1; stages <= 9; ++stages)
    CHECK(fields(read_settings(fmt::format("stages={}", stages))) == with([&](Settings& s) { s.stages = stages; }));
  for (int clusters : {1, 2, 74, 1 << 20})
    CHECK(fields(read_settings(fmt::format("clusters={}", clusters))) ==
          with([&](Settings& s) { s.clusters = clusters; }));
}

TEST_CASE("step07 settings: what goes together, and what is refused with how to mend it") {
  for (const char* group : {"", "cta-group=1,", "cta-group=2,"})
    for (const char* multicast : {"", "multicast=on,", "multicast=off,"})
      for (const char* persistent : {"", "persistent=off,", "persistent=on,"})
        for (const char* scheduler : {"", "scheduler=clc,", "scheduler=static,"})
          for (const char* clusters : {"", "clusters=3,", "clusters=auto,"}) {
            const std::string text = std::string(group) + multicast + persistent + scheduler + clusters + "walk=2";
            INFO(text);
            const auto has = [&](const char* part) { return text.find(part) != text.npos; };
            const bool one_each = has("persistent=off"), asks = has("scheduler=clc"), counted = has("clusters=3");
            const std::string said = refused(text);
            if (has("multicast=on") && !has("cta-group=1")) {
              CHECK(said == "multicast=on: the CTAs of a pair need no copies of each other's B; add cta-group=1");
            } else if (asks && one_each) {
              CHECK(said == "scheduler=clc: hands more tiles to clusters that stay; leave persistent=off out");
            } else if (counted && (asks || one_each)) {
              CHECK(said ==
                    fmt::format("clusters=3: with {} the grid has a cluster for each tile; leave one of them out",
                                asks ? "scheduler=clc" : "persistent=off"));
            } else {
              CHECK(said == "accepted");
            }
          }
}

TEST_CASE("step07 settings: texts that are none") {
  const std::string all =
      "cta-group, multicast, persistent, accumulators, walk, tile-n, stages, scheduler, stores, clusters";
  for (const auto& [text, named] : {std::pair{"", ""},
                                    {"walk", "walk"},
                                    {"speed=1", "speed=1"},
                                    {"walk=1,", ""},
                                    {",walk=1", ""},
                                    {"walk=1,,stages=2", ""},
                                    {"Walk=1", "Walk=1"},
                                    {"=1", "=1"}}) {
    INFO(text);
    CHECK(
        refused(text) ==
        fmt::format("--variant: '{}' is no setting; expected NAME=VALUE, with commas between them, of {}", named, all));
  }
  CHECK(refused("walk=1,stages=2,walk=2") == "--variant: walk is set twice");
  for (const auto& [text, rule] : {std::pair{"cta-group=3", "2|1"},
                                   {"multicast=yes", "off|on"},
                                   {"persistent=", "on|off"},
                                   {"accumulators=0", "2|1"},
                                   {"walk=0", "auto|1..32"},
                                   {"walk=33", "auto|1..32"},
                                   {"walk=1..32", "auto|1..32"},
                                   {"walk=-1", "auto|1..32"},
                                   {"walk=2x", "auto|1..32"},
                                   {"walk=99999999999", "auto|1..32"},
                                   {"tile-n=192", "auto|128|224|256"},
                                   {"stages=10", "auto|1..9"},
                                   {"scheduler=dynamic", "static|clc"},
                                   {"stores=64", "tma|direct"},
                                   {"clusters=0", "auto|1..1048576"},
                                   {"clusters=1048577", "auto|1..1048576"}}) {
    CHECK(refused(text) == fmt::format("{}: must be {}", text, rule));
  }
}

TEST_CASE("step07 plan: as many stages as the 227 KB of a CTA hold beside barriers and store buffers") {
  for (Operands operands : kAll)
    for (int tile_n : kTileWidths)
      for (bool direct : {false, true}) {
        // Elements of 2 bytes: 128 rows of 64 of A; of B half the rows where the other CTA of a pair has the others.
        const int rows_of_b = operands == Operands::pair ? tile_n / 2 : tile_n;
        int fit = 0;
        while (fit < 9 && 1024 + (fit + 1) * (128 + rows_of_b) * 64 * 2 + (direct ? 0 : 2 * 128 * 128) <= 232'448)
          ++fit;
        CHECK(stages_that_fit(operands, tile_n, direct) == fit);
        Settings settings;
        settings.operands = operands;
        settings.tile_n = tile_n;
        settings.direct_stores = direct;
        for (settings.stages = 0; settings.stages <= 9; ++settings.stages) {
          const auto planned = [&] { return make_plan(settings, 1000, 1000, 64, kB200); };
          if (settings.stages <= fit) {
            CHECK(planned().stages == (settings.stages ? settings.stages : fit));
          } else {
            CHECK(refusal(planned) ==
                  fmt::format("stages={}: {} fit beside {} where a tile is {} columns wide; leave it out for as many{}",
                              settings.stages, fit, direct ? "the barriers" : "the store buffers", tile_n,
                              settings.stages <= stages_that_fit(operands, tile_n, true)
                                  ? ", or add stores=direct, which needs no buffers"
                                  : ""));
          }
        }
      }
  // As the pages have them.
  CHECK(stages_that_fit(Operands::pair, 256, false) == 6);
  CHECK(stages_that_fit(Operands::pair, 256, true) == 7);
  CHECK(stages_that_fit(Operands::alone, 256, false) == 4);
}

TEST_CASE("step07 plan: the tile width with the least rounds times cycles, of two alike the wider") {
  struct Row {
    Operands operands;
    int cycles[3];  // of kTileWidths
  };
  for (const Row& row : {Row{Operands::pair, {512, 448, 341}}, Row{Operands::multicast, {512, 448, 341}},
                         Row{Operands::alone, {682, 625, 455}}}) {
    for (size_t i = 0; i < 3; ++i) CHECK(k_tile_cycles(row.operands, kTileWidths[i]) == row.cycles[i]);
    const int64_t tile_m = row.operands == Operands::alone ? 128 : 256;
    int chosen[3] = {};
    for (int64_t m : {1, 128, 129, 256, 300, 512, 1000, 4096, 20'000})
      for (int64_t n = 8; n <= 40'000; n += n / 5 + 88)
        for (int clusters : {1, 2, 3, 74, 148}) {
          int best = 0;
          int64_t least = 0;
          for (size_t i = 0; i < 3; ++i) {
            const int64_t rounds = rounds_of(tiles_along(m, tile_m) * tiles_along(n, kTileWidths[i]), clusters);
            CHECK(waves(row.operands, kTileWidths[i], m, n, clusters) == rounds);
            if (best == 0 || rounds * row.cycles[i] < least) {
              best = kTileWidths[i];
              least = rounds * row.cycles[i];
            }
          }
          INFO(m << " x " << n << ", " << clusters << " clusters");
          CHECK(best_tile_n(row.operands, m, n, clusters) == best);
          ++chosen[best == 256 ? 0 : best == 224 ? 1 : 2];
        }
    for (int count : chosen) CHECK(count > 50);
  }
}

TEST_CASE("step07 plan: tile widths that others found best on a B200") {
  CHECK(plan("walk=auto", 512, 8192, 5376).tile_n == 224);  // Modular: 148 CTAs have work, with 256 only 128
  CHECK(plan("walk=auto", 4096, 4096, 4096).tile_n == 256);
  // A row of tiles for the whole chip: as many as there are pairs, or nearly.
  CHECK(plan("walk=auto", 256, 8192, 8192).tile_n == 128);
  CHECK(plan("tile-n=256", 256, 8192, 8192).tile_n == 256);
  CHECK(plan("clusters=1", 256, 8192, 8192).tile_n == 256);  // for one pair alone, narrow tiles save nothing
}

TEST_CASE("step07 plan: the walk whose waves need the fewest rows, once A and B are more than half of L2") {
  // The origin's sweep at 8192^3: 8 was best, 4 and 16 alike and worse, 1 and 32 alike and worst.
  const Plan large = plan("walk=auto", 8192, 8192, 8192);
  CHECK(large.walk.group == 8);
  const auto rows = [&](int group) { return rows_of_wave({32, 32, group}, 256, 256, 74); };
  CHECK(rows(8) < rows(4));
  CHECK(rows(4) < rows(1));
  CHECK(rows(8) < rows(16));
  CHECK(rows(16) < rows(32));
  CHECK(rows(8) == (8 + 10) * 256);
  CHECK(plan("walk=3", 8192, 8192, 8192).walk.group == 3);

  for (int m_tiles : {1, 2, 5, 8, 13, 40})
    for (int n_tiles : {1, 3, 8, 31, 100})
      for (int clusters : {1, 2, 9, 74}) {
        int best = 0;
        int64_t fewest = 0;
        for (int group : {1, 2, 4, 8, 16, 32}) {
          const ladder::TileWalk walk{m_tiles, n_tiles, group};
          std::set<int64_t> of_a, of_b;  // rows of A and of B, 256 and 224 to a tile
          for (int tile = 0; tile < walk.tiles() && tile < clusters; ++tile) {
            for (int row = 0; row < 256; ++row) of_a.insert(walk.place(tile).m * 256 + row);
            for (int row = 0; row < 224; ++row) of_b.insert(walk.place(tile).n * 224 + row);
          }
          const int64_t needed = static_cast<int64_t>(of_a.size() + of_b.size());
          CHECK(rows_of_wave(walk, 256, 224, clusters) == needed);
          if (best == 0 || needed < fewest) best = group, fewest = needed;
        }
        INFO(m_tiles << " x " << n_tiles << " tiles, " << clusters << " clusters");
        CHECK(best_walk({m_tiles, n_tiles, 0}, 256, 224, 1000, {clusters, 1998}) == best);
        CHECK(best_walk({m_tiles, n_tiles, 0}, 256, 224, 1000, {clusters, 2000}) == 1);  // they fit
      }
}

TEST_CASE("step07 plan: at least one cluster, no more than tiles, no more rounds than with all") {
  for (const char* operands : {"cta-group=2", "cta-group=1", "cta-group=1,multicast=on"})
    for (int64_t m : {1, 128, 129, 256, 257, 5000})
      for (int64_t n : {8, 128, 136, 2000, 9000})
        for (int held : {1, 2, 5, 74}) {
          const Device device{held, 1000};
          const auto with = [&](const std::string& more) { return plan(operands + more, m, n, 64, device); };
          INFO(operands << ", " << m << " x " << n << ", " << held << " clusters");
          const Plan usual = with("");
          const int tiles = usual.walk.tiles();
          CHECK(tiles ==
                tiles_along(m, std::string(operands) == "cta-group=1" ? 128 : 256) * tiles_along(n, usual.tile_n));
          CHECK(usual.clusters >= 1);
          CHECK(usual.clusters <= std::min(held, tiles));
          CHECK(rounds_of(tiles, usual.clusters) == rounds_of(tiles, held));
          if (usual.clusters > 1) CHECK(rounds_of(tiles, usual.clusters - 1) > rounds_of(tiles, held));
          for (int asked : {1, 3, 100'000}) {
            const Plan counted = with(fmt::format(",clusters={}", asked));
            CHECK(counted.clusters == std::min(asked, counted.walk.tiles()));
            // Widths and walks are for those that run at the same time.
            CHECK(counted.tile_n == best_tile_n(counted.operands, m, n, std::min(asked, held)));
          }
          for (const char* each : {",persistent=off", ",scheduler=clc"}) {
            const Plan one_each = with(each);
            CHECK(one_each.clusters == one_each.walk.tiles());
          }
        }
}

TEST_CASE("step07 plan: the largest matrices that TMA addresses") {
  constexpr int64_t kMost = (int64_t{1} << 31) - 8;
  for (const char* operands : {"cta-group=2", "cta-group=1"}) {
    const Plan wide = plan(operands, 1, kMost, 8), high = plan(operands, kMost, 8, 8);
    CHECK(wide.walk.m_tiles == 1);
    CHECK(wide.walk.n_tiles == (kMost + wide.tile_n - 1) / wide.tile_n);
    CHECK(high.walk.n_tiles == 1);
    CHECK(high.walk.m_tiles == (kMost + 127) / 128 / ctas_of(high.operands));
    for (const Plan& each : {wide, high}) CHECK(each.clusters <= 74);
  }
}

TEST_CASE("step07 plan: in one line") {
  CHECK(to_string(plan("walk=auto", 4096, 4096, 4096)) ==
        "16 x 16 tiles of 256 x 256, walk 8; 64 clusters of 2; 6 stages, 2 accumulators");
  CHECK(to_string(plan("cta-group=1,accumulators=1,clusters=1,walk=3,tile-n=224,stages=1", 128, 8)) ==
        "1 x 1 tiles of 128 x 224, walk 3; 1 cluster of 1; 1 stage, 1 accumulator");
  CHECK(to_string(plan("scheduler=clc,tile-n=256", 4096, 4096)) ==
        "16 x 16 tiles of 256 x 256, walk 1; 256 clusters of 2, each of which may take over others; 6 stages, 2 "
        "accumulators");
}
