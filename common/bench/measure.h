#pragma once
// How sides are timed against each other. See docs/benchmarks.md for why there are two protocols.

#include <cuda_runtime_api.h>

#include <functional>
#include <string>
#include <vector>

#include "common/bench/gpu_clock.h"
#include "common/bench/power.h"
#include "common/bench/timing.h"
#include "common/harness/child.h"

namespace ladder {

struct Side {
  std::string name;
  std::function<void(int set)> launch;  ///< enqueues one run on a set of matrices and returns
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

/// Rounds of one sample of every side, in an order that is drawn anew for each. Before each sample the GPU idles for
/// `idle_s`, to begin from the same state; a sample is as many launches as take about `sample_s`.
std::vector<Timing> time_bursts(const Bench& bench, const std::vector<Side>& sides, int rounds, double idle_s,
                                double sample_s, const Progress& progress);

/// Each side back to back for `seconds`, in turn, `rounds` times. A sample is about 20 ms; those of the first 40 % are
/// left out: by then the GPU is as warm and as slow as its power limit makes it.
std::vector<Timing> time_sustained(const Bench& bench, const std::vector<Side>& sides, int rounds, double seconds,
                                   const Progress& progress);

}  // namespace ladder
