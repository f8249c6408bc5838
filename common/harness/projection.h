#pragma once
// Checks that touch every element of D in O(MN + MK + NK) operations: D x must equal A (Bᵀ x), and yᵀ D must equal
// (yᵀ A) Bᵀ, for random vectors x and y. A wrong element shows in its row and in its column, which is enough to find
// it.

#include <cstdint>
#include <vector>

#include "common/harness/matrix.h"
#include "common/harness/position.h"
#include "common/harness/reference.h"

namespace ladder {

struct ProjectionResult {
  std::vector<int64_t> bad_rows, bad_cols;
  std::vector<WrongElement> wrong;  ///< elements that had to be looked at one by one, and were wrong
  bool passed() const { return bad_rows.empty() && bad_cols.empty() && wrong.empty(); }
};

/// For integer inputs (IntegerReference). Exact, modulo 2^32, with odd random weights: a single wrong element in a row
/// always shows, several cancel with a chance near 2^-32 and that in both directions. Elements that are no integers, or
/// too large for the output type to hold all integers of their size, are compared with the reference one by one.
ProjectionResult project_integers(const HostMatrix& a, const HostMatrix& b, const HostMatrix& d,
                                  const IntegerReference& reference, uint64_t seed);

/// For inputs with rounding. A residual is wrong beyond what worst-case rounding with random signs explains, and, where
/// `alike` says that rows of A and B come from one distribution, beyond 20 times the median residual. Finds an element
/// from elsewhere anywhere, and small errors that fill a row; the bits are guarded by sampled outputs (check.h).
/// Elements that are not finite are compared with the reference one by one.
ProjectionResult project_rounded(const HostMatrix& a, const HostMatrix& b, const HostMatrix& d,
                                 const Reference& reference, uint64_t seed, bool alike);

}  // namespace ladder
