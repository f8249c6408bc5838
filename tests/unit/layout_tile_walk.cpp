// common/layout/tile_walk.h against a sorted list of all tiles.
#include "common/layout/tile_walk.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "tests/catch.h"

using ladder::TilePlace;
using ladder::TileWalk;

namespace {

// The picture in the header.
constexpr TileWalk kDrawn{5, 4, 2};
static_assert(kDrawn.tiles() == 20);
static_assert(kDrawn.place(5).m == 1 && kDrawn.place(5).n == 2);
static_assert(kDrawn.place(14).m == 2 && kDrawn.place(14).n == 3);
static_assert(kDrawn.place(19).m == 4 && kDrawn.place(19).n == 3);

/// All tiles, sorted by group, then column, then row: every tile once, the tiles of a group one after the other.
std::vector<TilePlace> sorted(int m_tiles, int n_tiles, int group) {
  std::vector<TilePlace> all;
  for (int n = 0; n < n_tiles; ++n)
    for (int m = 0; m < m_tiles; ++m) all.push_back({m, n});
  std::sort(all.begin(), all.end(), [&](const TilePlace& a, const TilePlace& b) {
    return std::tuple(a.m / group, a.n, a.m) < std::tuple(b.m / group, b.n, b.m);
  });
  return all;
}

bool same(const TilePlace& a, const TilePlace& b) {
  return a.m == b.m && a.n == b.n;
}

}  // namespace

TEST_CASE("tile walk: every tile once, group by group, for all small grids of tiles") {
  int walks = 0;
  for (int m_tiles = 1; m_tiles <= 21; ++m_tiles)
    for (int n_tiles = 1; n_tiles <= 13; ++n_tiles)
      for (int group = 1; group <= m_tiles + 2; ++group) {  // those that divide the rows, do not, and are more
        const TileWalk walk{m_tiles, n_tiles, group};
        const std::vector<TilePlace> expected = sorted(m_tiles, n_tiles, group);
        REQUIRE(walk.tiles() == static_cast<int>(expected.size()));
        for (int tile = 0; tile < walk.tiles(); ++tile) {
          if (same(walk.place(tile), expected[static_cast<size_t>(tile)])) continue;
          FAIL(m_tiles << " x " << n_tiles << ", group " << group << ": tile " << tile << " is at "
                       << walk.place(tile).m << ", " << walk.place(tile).n);
        }
        ++walks;
      }
  CHECK(walks == 3549);
}

TEST_CASE("tile walk: groups of one and of all rows") {
  for (int tile = 0; tile < 7 * 9; ++tile) {
    CHECK(same(TileWalk{7, 9, 1}.place(tile), {tile / 9, tile % 9}));
    for (int group : {7, 8, 1000}) CHECK(same(TileWalk{7, 9, group}.place(tile), {tile % 7, tile / 7}));
  }
}

TEST_CASE("tile walk: as many tiles as the longest rows of D have") {
  constexpr int kMost = 1 << 24;  // 2^31 columns in tiles of 128
  constexpr TileWalk kWide{3, kMost, 2}, kHigh{kMost, 3, 32};
  CHECK(same(kWide.place(2 * kMost - 1), {1, kMost - 1}));
  CHECK(same(kWide.place(2 * kMost), {2, 0}));
  CHECK(same(kWide.place(3 * kMost - 1), {2, kMost - 1}));
  CHECK(same(kHigh.place(3 * kMost - 1), {kMost - 1, 2}));
  CHECK(same(kHigh.place(3 * kMost - 96), {kMost - 32, 0}));
}
