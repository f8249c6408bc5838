#include "common/harness/timing.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "common/harness/cuda_error.h"
#include "common/harness/event.h"

namespace ladder {
namespace {

double time_round(const std::function<void()>& launch, int launches, const KernelClock& clock) {
  Event start, stop;
  clock.begin();
  start.record(nullptr);
  for (int i = 0; i < launches; ++i) launch();
  stop.record(nullptr);
  stop.wait();
  clock.end();
  return stop.seconds_since(start) / launches;
}

}  // namespace

double Benchmark::median_s() const {
  return median_of(rounds_s);
}

double Benchmark::spread_s() const {
  const auto [least, most] = std::minmax_element(rounds_s.begin(), rounds_s.end());
  return *most - *least;
}

Benchmark benchmark_gpu(const std::function<void()>& launch, const KernelClock& clock) {
  constexpr int kRounds = 11, kWarmUpRounds = 2, kMostLaunches = 1000;
  constexpr double kRoundSeconds = 0.02;
  Benchmark result;
  const double once = time_round(launch, 1, clock);
  result.launches_per_round = std::clamp(static_cast<int>(std::ceil(kRoundSeconds / once)), 1, kMostLaunches);
  for (int round = 0; round < kWarmUpRounds + kRounds; ++round) {
    const double seconds = time_round(launch, result.launches_per_round, clock);
    if (round >= kWarmUpRounds) result.rounds_s.push_back(seconds);
  }
  return result;
}

Benchmark benchmark_emulated(const std::function<void()>& launch) {
  constexpr int kRounds = 3;
  Benchmark result;
  for (int round = 0; round < kRounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    launch();
    check(cudaDeviceSynchronize(), "waiting for the kernel");
    result.rounds_s.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return result;
}

}  // namespace ladder
