// How the CTAs of a cluster lie in D, and who shares which tile. A CTA's rank counts down first, then across.
#pragma once

#include <cstdint>

struct ClusterShape {
  int m, n;        ///< tiles of D down and across
  bool multicast;  ///< false: each CTA loads its own tiles, as if it were alone

  /// CTAs that share a tile of A (side by side), and one of B (one below the other).
  constexpr int a_sharers() const { return multicast ? n : 1; }
  constexpr int b_sharers() const { return multicast ? m : 1; }

  /// A bit for the rank of each CTA that shares the tile of A, or B, with the CTA at (rank_m, rank_n), itself included.
  constexpr uint16_t a_mask(int rank_m, int rank_n) const {
    uint32_t mask = 0;
    for (int across = 0; across < n; ++across)
      if (multicast || across == rank_n) mask |= 1u << (across * m + rank_m);
    return static_cast<uint16_t>(mask);
  }
  constexpr uint16_t b_mask(int rank_m, int rank_n) const {
    uint32_t mask = 0;
    for (int down = 0; down < m; ++down)
      if (multicast || down == rank_m) mask |= 1u << (rank_n * m + down);
    return static_cast<uint16_t>(mask);
  }
};
