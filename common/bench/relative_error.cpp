#include "common/bench/relative_error.h"

#include <array>
#include <cmath>
#include <vector>

#include "common/harness/elements.h"
#include "common/harness/parallel.h"

namespace ladder {

double relative_error(const HostMatrix& d, const HostMatrix& expected) {
  struct Squares {
    double difference = 0, expected = 0;
  };
  std::vector<Squares> rows(static_cast<size_t>(d.rows()));
  parallel_for(d.rows(), 1, [&](int64_t begin, int64_t end, int) {
    const auto columns = static_cast<size_t>(d.cols());
    std::vector<float> ours(columns), theirs(columns);
    for (int64_t row = begin; row < end; ++row) {
      to_floats(d, row, 0, d.cols(), ours.data());
      to_floats(expected, row, 0, d.cols(), theirs.data());
      Squares& squares = rows[static_cast<size_t>(row)];
      for (size_t i = 0; i < columns; ++i) {
        const double difference = static_cast<double>(ours[i]) - static_cast<double>(theirs[i]);
        squares.difference += difference * difference;
        squares.expected += static_cast<double>(theirs[i]) * static_cast<double>(theirs[i]);
      }
    }
  });
  Squares sum;
  for (const Squares& row : rows) sum.difference += row.difference, sum.expected += row.expected;
  return std::sqrt(sum.difference / sum.expected);
}

}  // namespace ladder
