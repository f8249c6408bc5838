// Which calls a capture forbids, to whom, by its mode and the thread's.

#include <functional>
#include <optional>
#include <thread>

#include "check.h"

struct Bench {
  cudaStream_t capturing = nullptr, other = nullptr;
  cudaEvent_t event = nullptr;
  void* memory = nullptr;
  Bench() {
    expect_success(cudaStreamCreateWithFlags(&capturing, cudaStreamNonBlocking));
    expect_success(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    expect_success(cudaEventCreate(&event));
    expect_success(cudaEventRecord(event, other));
    expect_success(cudaMalloc(&memory, 4096));
    expect_success(cudaDeviceSynchronize());  // the event is over
  }

  struct Who {
    bool another_thread = false;
    std::optional<cudaStreamCaptureMode> mode{};  ///< to which the thread changes its own
  };
  /// `call` while a stream captures in `mode`: what it returns, and whether the capture survives it.
  void during(cudaStreamCaptureMode mode, Who who, const std::function<cudaError_t()>& call, bool allowed,
              const std::source_location& at = std::source_location::current()) {
    expect_success(cudaStreamBeginCapture(capturing, mode), at);
    const auto run = [&] {
      cudaStreamCaptureMode own = who.mode.value_or(cudaStreamCaptureModeGlobal);
      if (who.mode) expect_success(cudaThreadExchangeStreamCaptureMode(&own), at);
      expect_error(call(), allowed ? cudaSuccess : cudaErrorStreamCaptureUnsupported, at);
      if (who.mode) expect_success(cudaThreadExchangeStreamCaptureMode(&own), at);
    };
    if (who.another_thread) {
      std::thread(run).join();
    } else {
      run();
    }
    cudaStreamCaptureStatus status;
    cudaGraph_t graph = nullptr;
    expect_success(cudaStreamIsCapturing(capturing, &status), at);
    expect_equal(static_cast<int>(status),
                 static_cast<int>(allowed ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusInvalidated), at);
    expect_error(cudaStreamEndCapture(capturing, &graph), allowed ? cudaSuccess : cudaErrorStreamCaptureInvalidated,
                 at);
    expect((graph != nullptr) == allowed, "a graph comes of a capture that was not broken", at);
    if (graph) expect_success(cudaGraphDestroy(graph), at);
    cudaGetLastError();
  }
};

constexpr auto kGlobal = cudaStreamCaptureModeGlobal;
constexpr auto kThreadLocal = cudaStreamCaptureModeThreadLocal;
constexpr auto kRelaxed = cudaStreamCaptureModeRelaxed;

static void which_calls() {
  Bench bench;
  void* allocated = nullptr;
  const std::function<cudaError_t()> unsafe[] = {
      [&] { return cudaMalloc(&allocated, 256); },
      [&] { return cudaFree(bench.memory); },
      [&] { return cudaEventQuery(bench.event); },
      [&] { return cudaStreamSynchronize(bench.other); },
  };
  // Seen by others: PyTorch (pinned memory), CCCL (attributes of pools).
  cudaMemPool_t pool;
  uint64_t threshold = 0;
  expect_success(cudaDeviceGetDefaultMemPool(&pool, 0));
  bench.during(
      kGlobal, {}, [&] { return cudaHostAlloc(&allocated, 256, cudaHostAllocDefault); }, false);
  bench.during(
      kGlobal, {}, [&] { return cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold); }, false);
  for (const auto& call : unsafe) {
    bench.during(kGlobal, {}, call, false);
    bench.during(kThreadLocal, {}, call, false);
  }
  expect_error(cudaMemset(bench.memory, 0, 4096), cudaSuccess);  // it was not freed
  for (const auto& call : {unsafe[0], unsafe[2], unsafe[3]}) bench.during(kRelaxed, {}, call, true);

  // This one can never be right.
  for (const auto mode : {kGlobal, kThreadLocal, kRelaxed})
    bench.during(
        mode, {}, [] { return cudaDeviceSynchronize(); }, false);

  int value = 0;
  cudaEvent_t event;
  const std::function<cudaError_t()> safe[] = {
      [&] { return cudaEventCreate(&event); },
      [&] { return cudaMemcpy(&value, bench.memory, sizeof value, cudaMemcpyDeviceToHost); },
      [&] { return cudaMemsetAsync(bench.memory, 0, 4096, bench.other); },
  };
  for (const auto& call : safe) bench.during(kGlobal, {}, call, true);
}

// CUDA runtime API, cudaThreadExchangeStreamCaptureMode: the capture's mode says whom it forbids, the thread's what it
// heeds.
static void whose_calls() {
  Bench bench;
  const auto query = [&] { return cudaEventQuery(bench.event); };
  const bool theirs = true, mine = false;
  bench.during(kGlobal, {theirs}, query, false);
  bench.during(kThreadLocal, {theirs}, query, true);
  bench.during(kRelaxed, {theirs}, query, true);
  bench.during(kGlobal, {theirs, kThreadLocal}, query, true);
  bench.during(kGlobal, {theirs, kRelaxed}, query, true);
  bench.during(kGlobal, {mine, kThreadLocal}, query, false);
  bench.during(kGlobal, {mine, kRelaxed}, query, true);
  bench.during(kThreadLocal, {mine, kRelaxed}, query, true);

  cudaStreamCaptureMode mode = kRelaxed;
  expect_success(cudaThreadExchangeStreamCaptureMode(&mode));
  expect_equal(static_cast<int>(mode), static_cast<int>(kGlobal));
  expect_success(cudaThreadExchangeStreamCaptureMode(&mode));
  expect_equal(static_cast<int>(mode), static_cast<int>(kRelaxed));
  mode = static_cast<cudaStreamCaptureMode>(3);
  expect_error(cudaThreadExchangeStreamCaptureMode(&mode), cudaErrorInvalidValue);
  cudaGetLastError();
}

// How allocators get memory during a capture: in a relaxed moment.
static void memory_for_a_capture() {
  Bench bench;
  void* memory = nullptr;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  expect_success(cudaStreamBeginCapture(bench.capturing, kGlobal));
  cudaStreamCaptureMode mode = kRelaxed;
  expect_success(cudaThreadExchangeStreamCaptureMode(&mode));
  expect_success(cudaMalloc(&memory, sizeof(int)));
  expect_success(cudaThreadExchangeStreamCaptureMode(&mode));
  expect_success(cudaMemsetAsync(memory, 1, sizeof(int), bench.capturing));
  expect_success(cudaStreamEndCapture(bench.capturing, &graph));
  expect_success(cudaGraphInstantiate(&exec, graph, 0));
  expect_success(cudaGraphLaunch(exec, bench.capturing));
  int value = 0;
  expect_success(cudaMemcpyAsync(&value, memory, sizeof value, cudaMemcpyDeviceToHost, bench.capturing));
  expect_success(cudaStreamSynchronize(bench.capturing));
  expect_equal(value, 0x01010101);
}

// While a blocking stream captures, the legacy stream cannot be used, and asking about it breaks nothing.
static void beside_the_legacy_stream() {
  Bench bench;
  cudaStream_t blocking;
  cudaStreamCaptureStatus status;
  cudaGraph_t graph;
  expect_success(cudaStreamCreate(&blocking));
  expect_success(cudaStreamBeginCapture(blocking, kRelaxed));
  expect_error(cudaStreamIsCapturing(cudaStreamLegacy, &status), cudaErrorStreamCaptureImplicit);
  expect_success(cudaStreamIsCapturing(blocking, &status));
  expect_equal(static_cast<int>(status), static_cast<int>(cudaStreamCaptureStatusActive));
  expect_error(cudaMemset(bench.memory, 0, 4), cudaErrorStreamCaptureImplicit);
  expect_error(cudaStreamEndCapture(blocking, &graph), cudaErrorStreamCaptureInvalidated);
  expect_success(cudaStreamBeginCapture(blocking, kRelaxed));
  expect_error(cudaStreamSynchronize(cudaStreamLegacy), cudaErrorStreamCaptureImplicit);
  expect_error(cudaStreamEndCapture(blocking, &graph), cudaErrorStreamCaptureInvalidated);
  cudaGetLastError();
}

int main() {
  which_calls();
  whose_calls();
  memory_for_a_capture();
  beside_the_legacy_stream();
  return result();
}
