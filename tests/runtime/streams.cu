// Streams: what is ready when, who waits for whom, functions of the host in between. A host function that waits for a
// flag keeps a stream busy for as long as a check needs.

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "check.h"

extern "C" cudaError_t cudaStreamQuery_ptsz(cudaStream_t);
extern "C" cudaError_t cudaLaunchHostFunc_ptsz(cudaStream_t, cudaHostFn_t, void*);
extern "C" cudaError_t cudaStreamSynchronize_ptsz(cudaStream_t);

// Closed until `open`. A check that would wait for ever fails instead.
struct Gate {
  std::atomic<bool> open = false, gave_up = false;
  static void wait(void* data) {
    Gate& gate = *static_cast<Gate*>(data);
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (!gate.open) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
      if (std::chrono::steady_clock::now() > until) {
        gate.gave_up = true;
        return;
      }
    }
  }
  void expect_closed(const std::source_location& at = std::source_location::current()) {
    expect(!gave_up, "nothing before this line waits for the stream", at);
  }
  void let_pass(const std::source_location& at = std::source_location::current()) {
    expect_closed(at);
    open = true;
  }
};

__global__ void append(int* list, int value) {
  const int count = list[0];
  list[1 + count] = value;
  list[0] = count + 1;
}

static void readiness() {
  cudaStream_t blocking, other, apart;
  expect_success(cudaStreamCreate(&blocking));
  expect_success(cudaStreamCreate(&other));
  expect_success(cudaStreamCreateWithFlags(&apart, cudaStreamNonBlocking));
  {
    Gate gate;
    expect_success(cudaLaunchHostFunc(blocking, Gate::wait, &gate));
    expect_error(cudaStreamQuery(blocking), cudaErrorNotReady);
    expect_success(cudaPeekAtLastError());                      // "not ready" is an answer, not an error
    expect_error(cudaStreamQuery(nullptr), cudaErrorNotReady);  // the legacy stream includes every blocking one
    expect_error(cudaStreamQuery(cudaStreamLegacy), cudaErrorNotReady);
    expect_success(cudaStreamQuery(other));
    expect_success(cudaStreamQuery(apart));
    expect_success(cudaStreamQuery(cudaStreamPerThread));
    expect_success(cudaStreamSynchronize(apart));
    gate.let_pass();
    expect_success(cudaStreamSynchronize(nullptr));
    expect_success(cudaStreamQuery(blocking));
  }
  {
    Gate gate;
    expect_success(cudaLaunchHostFunc(apart, Gate::wait, &gate));
    expect_error(cudaStreamQuery(apart), cudaErrorNotReady);
    expect_success(cudaStreamQuery(nullptr));  // but no non-blocking one
    gate.let_pass();
    expect_success(cudaDeviceSynchronize());
    expect_success(cudaStreamQuery(apart));
  }
  {
    Gate gate;
    expect_success(cudaLaunchHostFunc(nullptr, Gate::wait, &gate));
    expect_error(cudaStreamQuery(nullptr), cudaErrorNotReady);
    expect_success(cudaStreamQuery(blocking));  // it has no work of its own
    gate.let_pass();
    expect_success(cudaDeviceSynchronize());
  }
  expect_success(cudaStreamDestroy(blocking));
  expect_success(cudaStreamDestroy(other));
  expect_success(cudaStreamDestroy(apart));
}

// Work enters `list` in the order that streams and events ask for.
static void order() {
  int* list;
  expect_success(cudaMallocManaged(&list, 100 * sizeof(int)));
  list[0] = 0;
  append<<<1, 1>>>(list, 0);  // a kernel's first launch loads it, which waits for the device
  expect_success(cudaDeviceSynchronize());
  list[0] = 0;
  cudaStream_t a, b;
  cudaEvent_t first;
  expect_success(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
  expect_success(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
  expect_success(cudaEventCreate(&first));
  Gate gate;
  expect_success(cudaLaunchHostFunc(a, Gate::wait, &gate));
  append<<<1, 1, 0, a>>>(list, 1);
  expect_success(cudaEventRecord(first, a));
  expect_success(cudaStreamWaitEvent(b, first, 0));
  expect_error(cudaStreamQuery(b), cudaErrorNotReady);
  append<<<1, 1, 0, b>>>(list, 2);
  expect_error(cudaEventQuery(first), cudaErrorNotReady);
  gate.let_pass();
  expect_success(cudaStreamSynchronize(b));
  expect_success(cudaEventQuery(first));
  expect_equal(list[0], 2);
  expect_equal(list[1], 1);
  expect_equal(list[2], 2);

  // The legacy stream comes after all blocking work before it, and before all after it.
  cudaStream_t c, d;
  expect_success(cudaStreamCreate(&c));
  expect_success(cudaStreamCreate(&d));
  list[0] = 0;
  append<<<1, 1, 0, c>>>(list, 10);
  append<<<1, 1>>>(list, 11);
  append<<<1, 1, 0, d>>>(list, 12);
  expect_success(cudaDeviceSynchronize());
  expect_equal(list[0], 3);
  for (int i = 0; i < 3; ++i) expect_equal(list[1 + i], 10 + i);

  // What is in flight when its stream's name goes is done all the same.
  list[0] = 0;
  append<<<1, 1, 0, c>>>(list, 20);
  expect_success(cudaStreamDestroy(c));
  expect_success(cudaDeviceSynchronize());
  expect_equal(list[0], 1);
  for (cudaStream_t stream : {a, b, d}) expect_success(cudaStreamDestroy(stream));
  expect_success(cudaEventDestroy(first));
  expect_success(cudaFree(list));
}

static void copies_and_the_host() {
  constexpr size_t bytes = 1 << 16;
  unsigned char *device, *pinned;
  std::vector<unsigned char> pageable(bytes, 7);
  expect_success(cudaMalloc(&device, bytes));
  expect_success(cudaMallocHost(&pinned, bytes));
  Gate gate;
  expect_success(cudaLaunchHostFunc(nullptr, Gate::wait, &gate));
  // None of these waits for the stream that they go into.
  expect_success(cudaMemcpyAsync(device, pageable.data(), bytes, cudaMemcpyHostToDevice, nullptr));
  gate.expect_closed();
  pageable.assign(bytes, 8);  // the bytes have been taken by now
  expect_success(cudaMemcpyAsync(pinned, device, bytes, cudaMemcpyDeviceToHost, nullptr));
  gate.expect_closed();
  expect_success(cudaMemset(device, 9, bytes));
  gate.expect_closed();
  expect_success(cudaMemcpy(device, device + bytes / 2, bytes / 4, cudaMemcpyDeviceToDevice));
  gate.expect_closed();
  expect_error(cudaStreamQuery(nullptr), cudaErrorNotReady);
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    gate.let_pass();
  });
  // Writing pageable memory does.
  expect_success(cudaMemcpyAsync(pageable.data(), device, bytes, cudaMemcpyDeviceToHost, nullptr));
  expect(gate.open, "a copy to pageable memory returns when it is done");
  opener.join();
  expect_equal(pinned[5], 7);
  expect_equal(pageable[5], 9);

  Gate second;
  expect_success(cudaLaunchHostFunc(nullptr, Gate::wait, &second));
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    second.let_pass();
  });
  expect_success(cudaFree(device));
  expect(second.open, "cudaFree waits for the device");
  later.join();
  expect_success(cudaFreeHost(pinned));
}

struct InHostFunction {
  cudaError_t allocation, query, last;
};

static void host_functions() {
  cudaStream_t stream;
  expect_success(cudaStreamCreate(&stream));
  InHostFunction seen{};
  expect_success(cudaLaunchHostFunc(
      stream,
      [](void* data) {
        auto& seen = *static_cast<InHostFunction*>(data);
        void* p;
        seen.allocation = cudaMalloc(&p, 10);
        seen.query = cudaStreamQuery(nullptr);
        seen.last = cudaGetLastError();
      },
      &seen));
  expect_success(cudaStreamSynchronize(stream));
  expect_error(seen.allocation, cudaErrorNotPermitted);
  expect_error(seen.query, cudaErrorNotPermitted);
  expect_error(seen.last, cudaErrorNotPermitted);
  expect_success(cudaGetLastError());  // that was another thread's

  cudaError_t status = cudaErrorUnknown;
  expect_success(cudaStreamAddCallback(
      stream, [](cudaStream_t, cudaError_t given, void* data) { *static_cast<cudaError_t*>(data) = given; }, &status,
      0));
  expect_success(cudaStreamSynchronize(stream));
  expect_success(status);
  expect_remembered(cudaLaunchHostFunc(stream, nullptr, nullptr), cudaErrorInvalidValue);
  expect_success(cudaStreamDestroy(stream));
}

static void names() {
  cudaStream_t stream;
  expect_remembered(cudaStreamDestroy(nullptr), cudaErrorInvalidResourceHandle);
  expect_remembered(cudaStreamDestroy(cudaStreamLegacy), cudaErrorInvalidResourceHandle);
  expect_remembered(cudaStreamDestroy(cudaStreamPerThread), cudaErrorInvalidResourceHandle);
  expect_remembered(cudaStreamCreate(nullptr), cudaErrorInvalidValue);
  expect_remembered(cudaStreamCreateWithFlags(&stream, 77), cudaErrorInvalidValue);
  int lowest = -1, highest = -1, priority = 0;
  expect_success(cudaDeviceGetStreamPriorityRange(&lowest, &highest));
  expect(highest < lowest, "higher priorities are lower numbers");
  expect_success(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, -100));
  expect_success(cudaStreamGetPriority(stream, &priority));
  expect_equal(priority, highest);
  unsigned flags = 0;
  expect_success(cudaStreamGetFlags(stream, &flags));
  expect_equal(flags, unsigned{cudaStreamNonBlocking});
  unsigned long long one = 0, two = 0;
  expect_success(cudaStreamGetId(stream, &one));
  expect_success(cudaStreamGetId(nullptr, &two));
  expect(one != two, "streams have different ids");
  cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusActive;
  expect_success(cudaStreamIsCapturing(stream, &capturing));
  expect(capturing == cudaStreamCaptureStatusNone, "nothing is captured");
  expect_success(cudaStreamDestroy(stream));
}

static void per_thread_streams() {
  Gate gate;
  expect_success(cudaLaunchHostFunc_ptsz(nullptr, Gate::wait, &gate));
  expect_error(cudaStreamQuery_ptsz(nullptr), cudaErrorNotReady);
  expect_error(cudaStreamQuery(cudaStreamPerThread), cudaErrorNotReady);
  std::thread([] { expect_success(cudaStreamQuery(cudaStreamPerThread)); }).join();  // that thread's own is idle
  gate.let_pass();
  expect_success(cudaStreamSynchronize_ptsz(nullptr));
  expect_success(cudaStreamQuery(cudaStreamPerThread));
}

int main() {
  readiness();
  order();
  copies_and_the_host();
  host_functions();
  names();
  per_thread_streams();
  return result();
}
