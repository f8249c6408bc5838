// The order in which tiles of D are computed, one after the other, by CTAs (or pairs of them) that stay.
#pragma once

namespace ladder {

struct TilePlace {
  int m, n;  ///< tile row, tile column
};

/// Tiles are numbered down the columns of a group of `group` tile rows, group by group; the last group has the rows
/// that are left. CTAs that run at the same time have tiles of successive numbers, so a group of about the square root
/// of their number makes them a square: of all their forms the one that needs the fewest rows of A and of B.
///
///   m_tiles 5, n_tiles 4, group 2:   0  2  4  6
///                                    1  3  5  7
///                                    8 10 12 14
///                                    9 11 13 15
///                                   16 17 18 19
struct TileWalk {
  int m_tiles, n_tiles;
  int group;  ///< 1 or more; m_tiles or more: down whole columns

  constexpr int tiles() const { return m_tiles * n_tiles; }

  constexpr TilePlace place(int tile) const {
    const int rows_above = tile / (group * n_tiles) * group;
    const int rows = group < m_tiles - rows_above ? group : m_tiles - rows_above;
    const int in_group = tile - rows_above * n_tiles;
    return {rows_above + in_group % rows, in_group / rows};
  }
};

}  // namespace ladder
