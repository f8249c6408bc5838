#include "common/bench/timing.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "common/harness/median.h"

namespace ladder {
namespace {

std::vector<double> seconds_of(const std::vector<Sample>& samples) {
  std::vector<double> seconds;
  for (const Sample& sample : samples) seconds.push_back(sample.seconds);
  return seconds;
}

}  // namespace

double Timing::quantile_s(double fraction) const {
  std::vector<double> seconds = seconds_of(samples);
  std::sort(seconds.begin(), seconds.end());
  return seconds[static_cast<size_t>(std::lround(fraction * static_cast<double>(seconds.size() - 1)))];
}

double Timing::median_s() const {
  return median_of(seconds_of(samples));
}

double Timing::median_megahertz() const {
  std::vector<double> all;
  for (const Sample& sample : samples) all.push_back(sample.megahertz);
  return median_of(all);
}

std::optional<double> Timing::median_watts() const {
  std::vector<double> all;
  for (const Sample& sample : samples)
    if (sample.watts) all.push_back(*sample.watts);
  if (all.empty()) return std::nullopt;
  return median_of(all);
}

size_t fastest(const std::vector<Timing>& timings) {
  const auto best = std::min_element(timings.begin(), timings.end(), [](const Timing& one, const Timing& other) {
    return one.median_s() < other.median_s();
  });
  return static_cast<size_t>(best - timings.begin());
}

std::vector<size_t> order_of_round(int round, size_t count) {
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  std::mt19937 random(static_cast<unsigned>(round));
  for (size_t left = count; left > 1; --left) std::swap(order[left - 1], order[random() % left]);
  return order;
}

}  // namespace ladder
