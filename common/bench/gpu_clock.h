#pragma once
// How fast the SMs' clocks ran while something else did.

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

namespace ladder {

/// An SM's cycle counter, and the GPU's time as it was read.
struct ClockReading {
  uint64_t cycles, nanoseconds;
};

/// Reads every SM's cycle counter beside the GPU's nanoseconds, before and after what is timed.
class GpuClock {
 public:
  GpuClock();
  ~GpuClock();
  GpuClock(const GpuClock&) = delete;
  GpuClock& operator=(const GpuClock&) = delete;

  /// Both are enqueued on `stream` and do not wait.
  void begin(cudaStream_t stream);
  void end(cudaStream_t stream);
  /// Mean over the SMs, in MHz, once both are complete. 0 where no SM was seen twice.
  double megahertz() const;

 private:
  int sms_ = 0;
  ClockReading* readings_ = nullptr;  ///< on the device, of `begin` and of `end`, by SM
};

/// Keeps the GPU busy for so many nanoseconds, so that what is enqueued behind it begins without gaps.
void enqueue_delay(cudaStream_t stream, uint64_t nanoseconds);

}  // namespace ladder
