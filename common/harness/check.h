#pragma once
// Is D right? Everything is compared bit for bit where that is affordable; where it is not, every element is covered by
// a projection and thousands are compared bit for bit, every row and every column among them.

#include <cstdint>
#include <string>
#include <vector>

#include "common/harness/matrix.h"
#include "common/harness/options.h"
#include "common/harness/pattern.h"

namespace ladder {

/// What can be seen without a reference; done after every run.
struct Scan {
  int64_t unwritten = 0;  ///< elements that still hold the poison
  int64_t nan = 0;        ///< other NaNs
  int64_t infinite = 0;
};
Scan scan(const HostMatrix& d);

struct CheckResult {
  bool passed = false;
  int64_t compared = 0;  ///< outputs compared bit for bit
  int64_t wrong = 0;     ///< outputs known to be wrong, compared or found otherwise; 0 only if none was pinned down
  bool projected = false;
  /// Failed, but no output looked at is further off than another rule or order of summing explains. Inputs that round
  /// only: integers and position codes are exact by any rule.
  bool rounding_only = false;
  std::string summary;               ///< one line: what was compared and how it went
  std::vector<std::string> pattern;  ///< lines, when it failed
};

struct CheckSettings {
  Input input = Input::random;
  uint64_t seed = 1;
  TileSize tile{128, 256, 16};
};

/// `a` and `b` are what the kernel was given. Throws UserError for inputs that are not finite (file inputs only).
CheckResult check_product(const HostMatrix& a, const HostMatrix& b, const HostMatrix& d, const CheckSettings& settings);

/// Throws UserError naming the first element that is NaN or infinite: such inputs cannot be checked. `name`: of a file.
void require_finite(const HostMatrix& matrix, const std::string& name);

}  // namespace ladder
