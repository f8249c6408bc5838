#include "common/bench/gpu_clock.h"

#include "common/harness/cuda_error.h"

namespace ladder {
namespace {

__device__ uint64_t global_nanoseconds() {
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__global__ void read_clocks(ClockReading* readings) {
  uint32_t sm;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  // The timer ticks once in a while: read the cycles as it does.
  const uint64_t before = global_nanoseconds();
  uint64_t now;
  do now = global_nanoseconds();
  while (now == before);
  readings[sm] = {static_cast<uint64_t>(clock64()), now};
  while (global_nanoseconds() < now + 5000) {  // long enough that each SM gets a block of its own
  }
}

__global__ void wait_until(uint64_t nanoseconds) {
  const uint64_t begin = global_nanoseconds();
  while (global_nanoseconds() - begin < nanoseconds) {
  }
}

}  // namespace

GpuClock::GpuClock() {
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&sms_, cudaDevAttrMultiProcessorCount, device), "asking for the number of SMs");
  check(cudaMalloc(reinterpret_cast<void**>(&readings_), 2 * static_cast<size_t>(sms_) * sizeof(ClockReading)),
        "cudaMalloc");
}

GpuClock::~GpuClock() {
  cudaFree(readings_);
}

void GpuClock::begin(cudaStream_t stream) {
  check(cudaMemsetAsync(readings_, 0, 2 * static_cast<size_t>(sms_) * sizeof(ClockReading), stream), "cudaMemsetAsync");
  read_clocks<<<sms_, 1, 0, stream>>>(readings_);
  check(cudaGetLastError(), "reading the clocks");
}

void GpuClock::end(cudaStream_t stream) {
  read_clocks<<<sms_, 1, 0, stream>>>(readings_ + sms_);
  check(cudaGetLastError(), "reading the clocks");
}

double GpuClock::megahertz() const {
  std::vector<ClockReading> all(2 * static_cast<size_t>(sms_));
  check(cudaMemcpy(all.data(), readings_, all.size() * sizeof(ClockReading), cudaMemcpyDeviceToHost), "cudaMemcpy");
  double sum = 0;
  int seen = 0;
  for (int sm = 0; sm < sms_; ++sm) {
    const ClockReading &first = all[sm], &last = all[sms_ + sm];
    if (first.nanoseconds == 0 || last.nanoseconds <= first.nanoseconds) continue;
    sum += static_cast<double>(last.cycles - first.cycles) * 1e3 /
           static_cast<double>(last.nanoseconds - first.nanoseconds);
    ++seen;
  }
  return seen ? sum / seen : 0;
}

void enqueue_delay(cudaStream_t stream, uint64_t nanoseconds) {
  wait_until<<<1, 1, 0, stream>>>(nanoseconds);
  check(cudaGetLastError(), "enqueueing a delay");
}

}  // namespace ladder
