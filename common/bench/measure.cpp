#include "common/bench/measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "common/harness/cuda_error.h"
#include "common/harness/event.h"

namespace ladder {
namespace {

/// Times samples of one side, one at a time. The sets go on from sample to sample.
class Sampler {
 public:
  explicit Sampler(const Bench& bench) : bench_(bench) {}

  Sample take(const Side& side, int launches) {
    constexpr uint64_t kHeadStart = 300'000;  // nanoseconds: the launches are enqueued while the GPU waits
    if (launches > 1) enqueue_delay(bench_.stream, kHeadStart);
    bench_.kernel_clock.begin();
    bench_.clock.begin(bench_.stream);
    start_.record(bench_.stream);
    for (int i = 0; i < launches; ++i) side.launch(next_set());
    stop_.record(bench_.stream);
    bench_.clock.end(bench_.stream);
    check(cudaStreamSynchronize(bench_.stream), "waiting for the kernels");
    bench_.kernel_clock.end();
    return {stop_.seconds_since(start_) / launches, bench_.clock.megahertz(), bench_.power.watts()};
  }

  /// How many launches take about so long.
  int launches_in(const Side& side, double seconds) {
    take(side, 1);
    const double once = take(side, 2).seconds;
    return std::clamp(static_cast<int>(std::ceil(seconds / once)), 1, 2000);
  }

 private:
  int next_set() {
    set_ = (set_ + 1) % bench_.sets;
    return set_;
  }
  const Bench& bench_;
  Event start_, stop_;
  int set_ = 0;
};

}  // namespace

std::vector<Timing> time_bursts(const Bench& bench, const std::vector<Side>& sides, int rounds, double idle_s,
                                double sample_s, const Progress& progress) {
  Sampler sampler(bench);
  std::vector<Timing> timings(sides.size());
  for (size_t i = 0; i < sides.size(); ++i) timings[i].launches_per_sample = sampler.launches_in(sides[i], sample_s);
  const int all = rounds * static_cast<int>(sides.size());
  int done = 0;
  for (int round = 0; round < rounds; ++round)
    for (const size_t turn : order_of_round(round, sides.size())) {
      progress(done++, all);
      std::this_thread::sleep_for(std::chrono::duration<double>(idle_s));
      timings[turn].samples.push_back(sampler.take(sides[turn], timings[turn].launches_per_sample));
    }
  return timings;
}

std::vector<Timing> time_sustained(const Bench& bench, const std::vector<Side>& sides, int rounds, double seconds,
                                   const Progress& progress) {
  constexpr double kSampleSeconds = 20e-3, kLeftOut = .4;
  Sampler sampler(bench);
  std::vector<Timing> timings(sides.size());
  for (size_t i = 0; i < sides.size(); ++i)
    timings[i].launches_per_sample = sampler.launches_in(sides[i], kSampleSeconds);
  const int all = rounds * static_cast<int>(sides.size());
  int done = 0;
  for (int round = 0; round < rounds; ++round)
    for (size_t i = 0; i < sides.size(); ++i) {
      progress(done++, all);
      const auto begin = std::chrono::steady_clock::now();
      while (true) {
        const Sample sample = sampler.take(sides[i], timings[i].launches_per_sample);
        const double passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        if (passed > kLeftOut * seconds) timings[i].samples.push_back(sample);
        if (passed > seconds) break;
      }
    }
  return timings;
}

}  // namespace ladder
