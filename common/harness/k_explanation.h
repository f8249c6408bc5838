#pragma once
// Explains wrong outputs of any inputs by what a kernel may have summed instead: a K tile missing, twice or from
// elsewhere, rows from elsewhere. Only when something is wrong already, so it may take its time.

#include <string>
#include <vector>

#include "common/harness/pattern.h"

namespace ladder {

/// The explanations that most of `wrong` agree on, best first; empty when none fits.
std::vector<std::string> explain_sums(const HostMatrix& a, const HostMatrix& b, DType out,
                                      const std::vector<WrongElement>& wrong, TileSize tile);

}  // namespace ladder
