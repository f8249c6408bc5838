#pragma once
// Repeated launches. On a GPU: CUDA events around a round of launches on the same matrices (L2 warm), median and spread
// over rounds. On the emulator: host wall time, and labelled so, since an emulated launch has no other.

#include <functional>
#include <vector>

#include "common/harness/child.h"
#include "common/harness/median.h"

namespace ladder {

struct Benchmark {
  std::vector<double> rounds_s;  ///< seconds per launch, one entry a round
  int launches_per_round = 1;
  double median_s() const;
  double spread_s() const;  ///< slowest round minus fastest
};

/// `launch` enqueues one launch on the default stream. Throws CudaError.
Benchmark benchmark_gpu(const std::function<void()>& launch, const KernelClock& clock);
Benchmark benchmark_emulated(const std::function<void()>& launch);

}  // namespace ladder
