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
  void *allocated = nullptr, *pooled = nullptr, *empty = nullptr;
  cudaMemPool_t pool, made, spare;
  cudaMemLocation on_device{cudaMemLocationTypeDevice, 0};
  const cudaMemAccessDesc access{on_device, cudaMemAccessFlagsProtReadWrite};
  cudaMemAccessFlags flags;
  cudaGraph_t graph;
  cudaGraphExec_t exec, before;
  uint64_t threshold = 0;
  const cudaMemPoolProps of_device{.allocType = cudaMemAllocationTypePinned,
                                   .location = {cudaMemLocationTypeDevice, 0}};
  static char registered[1 << 16];
  expect_success(cudaDeviceGetDefaultMemPool(&pool, 0));
  expect_success(cudaMallocAsync(&pooled, 256, bench.other));
  expect_success(cudaMemPoolCreate(&spare, &of_device));
  expect_success(cudaGraphCreate(&graph, 0));
  expect_success(cudaGraphInstantiate(&before, graph, 0));
  // In an order in which a relaxed capture allows each of them.
  const std::function<cudaError_t()> unsafe[] = {
      [&] { return cudaMalloc(&allocated, 256); },
      [&] { return cudaMallocManaged(&allocated, 256); },
      [&] { return cudaHostAlloc(&allocated, 256, cudaHostAllocDefault); },
      [&] { return cudaFreeHost(allocated); },
      [&] { return cudaHostRegister(registered, 4096, cudaHostRegisterDefault); },
      [&] { return cudaHostUnregister(registered); },
      [&] { return cudaMallocAsync(&allocated, 256, bench.other); },
      [&] { return cudaFreeAsync(pooled, bench.other); },
      [&] { return cudaMemPoolCreate(&made, &of_device); },
      [&] { return cudaDeviceSetMemPool(0, pool); },
      [&] { return cudaMemPoolSetAccess(spare, &access, 1); },
      [&] { return cudaMemPoolGetAccess(&flags, spare, &on_device); },
      [&] { return cudaMemPoolDestroy(spare); },
      [&] { return cudaFreeAsync(nullptr, bench.other); },
      [&] { return cudaMemPoolTrimTo(pool, 0); },
      [&] { return cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold); },
      [&] { return cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold); },
      [&] { return cudaEventQuery(bench.event); },
      [&] { return cudaEventSynchronize(bench.event); },
      [&] { return cudaStreamQuery(bench.other); },
      [&] { return cudaStreamSynchronize(bench.other); },
      [&] { return cudaGraphInstantiate(&exec, graph, 0); },
      [&] { return cudaGraphExecDestroy(before); },
      [&] { return cudaDeviceSetLimit(cudaLimitStackSize, 2048); },
      [&] { return cudaDeviceSetCacheConfig(cudaFuncCachePreferL1); },
      [&] { return cudaFree(nullptr); },
      [&] { return cudaFree(bench.memory); },
  };
  expect_success(cudaStreamSynchronize(bench.other));
  for (const auto& call : unsafe) {
    bench.during(kGlobal, {}, call, false);
    bench.during(kThreadLocal, {}, call, false);
  }
  bench.during(
      kGlobal, {}, [&] { return cudaMallocAsync(&empty, 0, bench.other); }, false);
  expect_success(cudaMemset(bench.memory, 0, 4096));  // it was not freed
  expect_success(cudaStreamSynchronize(cudaStreamLegacy));
  for (const auto& call : unsafe) {
    bench.during(kRelaxed, {}, call, true);
    cudaDeviceSynchronize();
  }
  expect_success(cudaMalloc(&bench.memory, 4096));

  // This one can never be right.
  for (const auto mode : {kGlobal, kThreadLocal, kRelaxed})
    bench.during(
        mode, {}, [] { return cudaDeviceSynchronize(); }, false);

  int value = 0;
  float milliseconds = 0;
  size_t free_bytes = 0, all_bytes = 0;
  cudaEvent_t event;
  cudaStream_t stream;
  const std::function<cudaError_t()> safe[] = {
      [&] { return cudaMalloc(&allocated, 0); },
      [&] { return cudaMallocHost(&allocated, 0); },
      [&] { return cudaMallocManaged(&allocated, 0); },
      [&] { return cudaGraphLaunch(exec, bench.other); },
      [&] { return cudaEventCreate(&event); },
      [&] { return cudaEventElapsedTime(&milliseconds, bench.event, bench.event); },
      [&] { return cudaStreamCreate(&stream); },
      [&] { return cudaMemGetInfo(&free_bytes, &all_bytes); },
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
  mode = static_cast<cudaStreamCaptureMode>(3);  // no mode, and no error
  expect_success(cudaThreadExchangeStreamCaptureMode(&mode));
  expect_equal(static_cast<int>(mode), static_cast<int>(kGlobal));
  expect_success(cudaThreadExchangeStreamCaptureMode(&mode));
}

// Nobody can know when an event of a capture is reached, and that comes before what the capture forbids.
static void events_of_a_capture() {
  Bench bench;
  cudaEvent_t event;
  cudaGraph_t graph;
  expect_success(cudaEventCreate(&event));
  for (const auto mode : {kGlobal, kRelaxed})
    for (const auto call : {cudaEventQuery, cudaEventSynchronize}) {
      expect_success(cudaStreamBeginCapture(bench.capturing, mode));
      expect_success(cudaEventRecord(event, bench.capturing));
      expect_error(call(event), cudaErrorCapturedEvent);
      expect_error(cudaStreamEndCapture(bench.capturing, &graph), cudaErrorStreamCaptureInvalidated);
      expect_error(cudaEventQuery(event), cudaErrorInvalidValue);
    }
  float milliseconds = 0;
  expect_success(cudaStreamBeginCapture(bench.capturing, kRelaxed));
  expect_success(cudaEventRecord(event, bench.capturing));
  expect_error(cudaEventElapsedTime(&milliseconds, bench.event, event), cudaErrorCapturedEvent);  // and breaks nothing
  expect_success(cudaStreamEndCapture(bench.capturing, &graph));
  expect_error(cudaEventQuery(event), cudaErrorInvalidValue);
  expect_error(cudaEventElapsedTime(&milliseconds, bench.event, event), cudaErrorInvalidValue);
  expect_error(cudaStreamWaitEvent(bench.other, event), cudaErrorInvalidValue);
  expect_error(cudaStreamWaitEvent(cudaStreamLegacy, event), cudaErrorInvalidValue);
  expect_success(cudaEventRecord(event, bench.other));
  expect_success(cudaEventSynchronize(event));
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
  events_of_a_capture();
  memory_for_a_capture();
  beside_the_legacy_stream();
  return result();
}
