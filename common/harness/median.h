#pragma once

#include <vector>

namespace ladder {

/// Of one value at least.
double median_of(std::vector<double> values);

}  // namespace ladder
