#pragma once
// What came out of measuring, and what is made of it.

#include <cstddef>
#include <optional>
#include <vector>

namespace ladder {

struct Sample {
  double seconds;               ///< of one launch, mean of a sample's
  double megahertz;             ///< of the SMs, while it ran
  std::optional<double> watts;  ///< of the GPU, just behind it
};

/// A side's samples, in order.
struct Timing {
  std::vector<Sample> samples;
  int launches_per_sample = 0;

  double median_s() const;
  double quantile_s(double fraction) const;
  double median_megahertz() const;
  std::optional<double> median_watts() const;
};

/// The index of the one with the least median.
size_t fastest(const std::vector<Timing>& timings);

/// 0 to count - 1 in the order in which the sides take their turns in a round: another one for each round, the same in
/// every run.
std::vector<size_t> order_of_round(int round, size_t count);

}  // namespace ladder
