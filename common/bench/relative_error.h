#pragma once

#include "common/harness/matrix.h"

namespace ladder {

/// ||d - expected|| / ||expected|| of two matrices of one size and type. NaN where either holds one.
double relative_error(const HostMatrix& d, const HostMatrix& expected);

}  // namespace ladder
