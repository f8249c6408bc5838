#pragma once
// How sides are timed against each other. See docs/benchmarks.md for why there are two protocols.

#include <cuda_runtime_api.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/bench/gpu_clock.h"
#include "common/bench/power.h"
#include "common/harness/child.h"

namespace ladder {

struct Side {
  std::string name;
  std::function<void(int set)> launch;  ///< enqueues one run on a set of matrices and returns
};

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

/// Called before each sample with what has been done and what there is to do, in samples.
using Progress = std::function<void(int done, int all)>;

struct Bench {
  cudaStream_t stream;
  int sets;  ///< of matrices, through which launches go in turn
  GpuClock& clock;
  const PowerMeter& power;
  const KernelClock& kernel_clock;  ///< told what runs, so that what hangs is killed
};

/// Rounds of one sample of every side, each time in another order. Before each sample the GPU idles for `idle_s`, so
/// that its clock is at its top; a sample is as many launches as take about `sample_s`.
std::vector<Timing> time_bursts(const Bench& bench, const std::vector<Side>& sides, int rounds, double idle_s,
                                double sample_s, const Progress& progress);

/// Each side back to back for `seconds`, in turn, `rounds` times. A sample is about 20 ms; those of the first 40 % are
/// left out: by then the GPU is as warm and as slow as its power limit makes it.
std::vector<Timing> time_sustained(const Bench& bench, const std::vector<Side>& sides, int rounds, double seconds,
                                   const Progress& progress);

/// The index of the one with the least median.
size_t fastest(const std::vector<Timing>& timings);

}  // namespace ladder
