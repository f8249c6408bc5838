#pragma once
// A mismatch as a pattern: which tiles, which rows and columns inside them, which K tiles, rather than one number.

#include <cstdint>
#include <string>
#include <vector>

#include "common/harness/position.h"
#include "common/harness/reference.h"
#include "common/harness/shapes.h"

namespace ladder {

struct TileSize {
  int m, n, k;
};

/// "all 128", "64-127", "r % 8 = 3", "0, 5, 17": a set of indices below `size`, given in ascending order, as a person
/// would say it. `letter` names the index where it appears.
std::string describe_set(const std::vector<int>& members, int size, char letter);

struct PatternInput {
  const HostMatrix& a;
  const HostMatrix& b;
  const HostMatrix& d;
  const Reference& reference;
  const PositionCode* position = nullptr;  ///< set for position-coded inputs: what arrived is decoded
  TileSize tile;
  const std::vector<WrongElement>& known;  ///< wrong elements found so far, at least one unless others can be found
  bool known_is_all = false;               ///< every element was compared
};

/// Lines for a person, without indentation. Looks at more elements where `known` is not all of them.
std::vector<std::string> describe_pattern(const PatternInput& input);

}  // namespace ladder
