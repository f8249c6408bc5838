// Events: states, times, misuse.

#include <atomic>
#include <chrono>
#include <thread>

#include "check.h"

int main() {
  cudaEvent_t start, end, timeless;
  expect_success(cudaEventCreate(&start));
  expect_success(cudaEventCreate(&end));
  expect_success(cudaEventCreateWithFlags(&timeless, cudaEventDisableTiming));
  float ms = -1;

  // Never recorded: nothing to wait for, and no time.
  expect_success(cudaEventQuery(start));
  expect_success(cudaEventSynchronize(start));
  expect_remembered(cudaEventElapsedTime(&ms, start, end), cudaErrorInvalidResourceHandle);
  expect_success(cudaStreamWaitEvent(nullptr, start, 0));

  static std::atomic<bool> open = false;
  const auto gate = [](void*) {
    while (!open) std::this_thread::sleep_for(std::chrono::microseconds(100));
  };
  expect_success(cudaEventRecord(start));
  expect_success(cudaEventSynchronize(start));
  expect_success(cudaLaunchHostFunc(nullptr, gate, nullptr));
  expect_success(cudaEventRecord(end));
  expect_success(cudaEventRecord(timeless));
  expect_error(cudaEventQuery(end), cudaErrorNotReady);
  expect_error(cudaEventElapsedTime(&ms, start, end), cudaErrorNotReady);
  expect_success(cudaPeekAtLastError());
  std::this_thread::sleep_for(std::chrono::milliseconds(40));
  open = true;
  expect_success(cudaEventSynchronize(end));
  expect_success(cudaEventQuery(end));
  expect_success(cudaEventElapsedTime(&ms, start, end));
  expect(ms >= 39 && ms < 10000, ("the time between is the time that passed, not " + std::to_string(ms)).c_str());
  float back = 0;
  expect_success(cudaEventElapsedTime(&back, end, start));
  expect(back == -ms, "and the other way round it is negative");
  expect_success(cudaDeviceSynchronize());
  expect_remembered(cudaEventElapsedTime(&ms, start, timeless), cudaErrorInvalidResourceHandle);
  expect_remembered(cudaEventElapsedTime(nullptr, start, end), cudaErrorInvalidValue);
  expect_remembered(cudaEventElapsedTime(&ms, nullptr, end), cudaErrorInvalidResourceHandle);

  // The latest record counts.
  open = false;
  expect_success(cudaLaunchHostFunc(nullptr, gate, nullptr));
  expect_success(cudaEventQuery(end));
  expect_success(cudaEventRecord(end));
  expect_error(cudaEventQuery(end), cudaErrorNotReady);
  expect_success(cudaEventDestroy(end));  // while it is pending
  open = true;
  expect_success(cudaDeviceSynchronize());

  expect_remembered(cudaEventCreate(nullptr), cudaErrorInvalidValue);
  expect_remembered(cudaEventCreateWithFlags(&end, 0x77), cudaErrorInvalidValue);
  expect_remembered(cudaEventRecord(nullptr), cudaErrorInvalidResourceHandle);
  expect_remembered(cudaEventRecordWithFlags(start, nullptr, 5), cudaErrorInvalidValue);
  expect_remembered(cudaEventQuery(nullptr), cudaErrorInvalidResourceHandle);
  expect_remembered(cudaEventDestroy(nullptr), cudaErrorInvalidResourceHandle);
  expect_remembered(cudaStreamWaitEvent(nullptr, nullptr, 0), cudaErrorInvalidResourceHandle);
  expect_success(cudaEventDestroy(start));
  expect_success(cudaEventDestroy(timeless));
  return result();
}
