// What a fault on the device does to the calls after it, and what a thread remembers of errors.

#include <thread>

#include "check.h"

extern "C" cudaError_t cudaProfilerStart(void);  // of cuda_profiler_api.h

__global__ void nothing() {}
constexpr unsigned kStoreLine = __LINE__ + 2;
__global__ void store(int* where, int value) {
  *where = value;
}
constexpr unsigned kTrapLine = __LINE__ + 2;
__global__ void trap() {
  asm volatile("trap;");
}
// The context is gone: what needs it fails with the same error for ever, what does not goes on.
static void after_a_fault() {
  cudaStream_t stream, another;
  cudaEvent_t one, two;
  void *device, *pinned;
  expect_success(cudaStreamCreate(&stream));
  expect_success(cudaEventCreate(&one));
  expect_success(cudaEventCreate(&two));
  expect_success(cudaMalloc(&device, 100));
  expect_success(cudaMallocHost(&pinned, 100));
  expect_success(cudaEventRecord(one));
  expect_success(cudaEventRecord(two));
  expect_success(cudaDeviceSynchronize());
  const cudaError_t gone = cudaErrorIllegalAddress;
  store<<<1, 1>>>(reinterpret_cast<int*>(16), 1);
  expect_error(cudaStreamSynchronize(nullptr), gone);
  expect_error(cudaGetLastError(), gone);
  expect_success(cudaGetLastError());  // the thread has been told; the context is as broken as before

  expect_error(cudaDeviceSynchronize(), gone);
  expect_error(cudaStreamQuery(stream), gone);
  expect_error(cudaStreamCreate(&another), gone);
  expect_error(cudaStreamDestroy(stream), gone);
  expect_error(cudaEventQuery(one), gone);
  expect_error(cudaEventRecord(one), gone);
  expect_error(cudaEventDestroy(one), gone);
  float ms;
  expect_error(cudaEventElapsedTime(&ms, one, two), gone);
  expect_error(cudaMalloc(&device, 100), gone);
  expect_error(cudaFree(device), gone);
  expect_error(cudaFree(nullptr), gone);
  expect_error(cudaFreeHost(pinned), gone);
  int here = 0, there = 0, number = 0;
  expect_error(cudaMemcpy(&here, &there, 4, cudaMemcpyHostToHost), gone);
  size_t free, total;
  expect_error(cudaMemGetInfo(&free, &total), gone);
  cudaFuncAttributes attributes;
  expect_error(cudaFuncGetAttributes(&attributes, nothing), gone);
  expect_error(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&number, nothing, 32, 0), gone);
  expect_error(cudaLaunchHostFunc(
                   nullptr, [](void*) {}, nullptr),
               gone);
  expect_error(cudaProfilerStart(), gone);
  cudaGetLastError();
  nothing<<<1, 1>>>();
  expect_error(cudaGetLastError(), gone);
  std::thread([&] { expect_error(cudaDeviceSynchronize(), gone); }).join();

  expect_success(cudaGetDeviceCount(&number));
  expect_success(cudaGetDevice(&number));
  expect_success(cudaSetDevice(0));
  expect_success(cudaDriverGetVersion(&number));
  expect_success(cudaRuntimeGetVersion(&number));
  expect_success(cudaDeviceGetAttribute(&number, cudaDevAttrWarpSize, 0));
  cudaDeviceProp properties;
  expect_success(cudaGetDeviceProperties(&properties, 0));

  // A reset gives the process no second chance.
  expect_success(cudaDeviceReset());
  cudaGetLastError();
  expect_error(cudaDeviceSynchronize(), cudaErrorDevicesUnavailable);
  expect_error(cudaMalloc(&device, 100), cudaErrorDevicesUnavailable);
}

template <class Launch>
static std::string fault(cudaError_t wanted, Launch launch) {
  return in_child([=] {
    launch();
    expect_success(cudaGetLastError());
    expect_error(cudaDeviceSynchronize(), wanted);
    expect_error(cudaPeekAtLastError(), wanted);
    if (emulated()) std::fprintf(stderr, "(emulated)");
  });
}

static std::string at_line(unsigned line) {
  return "errors.cu:" + std::to_string(line);
}

static void expect_report(const std::string& text, std::initializer_list<std::string> words) {
  if (text.find("(emulated)") == std::string::npos) return;
  for (const std::string& word : words)
    if (text.find(word) == std::string::npos)
      fail(("no '" + word + "' in the report:\n" + text).c_str(), std::source_location::current());
}

// Errors that break nothing.
static void ordinary_errors() {
  void* p;
  expect_error(cudaMalloc(static_cast<void**>(nullptr), 1), cudaErrorInvalidValue);
  expect_success(cudaMalloc(&p, 16));  // success does not wipe out what was remembered
  expect_error(cudaPeekAtLastError(), cudaErrorInvalidValue);
  expect_error(cudaSetDevice(7), cudaErrorInvalidDevice);
  expect_error(cudaGetLastError(), cudaErrorInvalidDevice);  // the latest counts
  expect_success(cudaGetLastError());
  std::thread([] { expect_error(cudaSetDevice(7), cudaErrorInvalidDevice); }).join();
  expect_success(cudaPeekAtLastError());  // each thread has its own
  nothing<<<1, 4096>>>();
  expect_success(cudaDeviceSynchronize());
  expect_error(cudaGetLastError(), cudaErrorInvalidValue);
  expect_success(cudaFree(p));

  expect(std::strcmp(cudaGetErrorName(cudaErrorInvalidValue), "cudaErrorInvalidValue") == 0, "a name");
  expect(std::strcmp(cudaGetErrorString(cudaErrorInvalidValue), "invalid argument") == 0, "a text");
  expect(std::strcmp(cudaGetErrorString(cudaErrorLaunchFailure), "unspecified launch failure") == 0, "a text");
  expect(std::strcmp(cudaGetErrorName(static_cast<cudaError_t>(-1)), "unrecognized error code") == 0, "no name");
  expect(std::strcmp(cudaGetErrorString(static_cast<cudaError_t>(1234)), "unrecognized error code") == 0, "no text");
}

int main() {
  in_child(after_a_fault);
  expect_report(fault(cudaErrorIllegalAddress, [] { store<<<1, 1>>>(reinterpret_cast<int*>(16), 1); }),
                {"store", "null pointer", at_line(kStoreLine)});
  // A real GPU may well let this pass.
  in_child([] {
    if (!emulated()) return;
    int* p;
    cudaMalloc(&p, 4096);
    cudaFree(p);
    store<<<1, 1>>>(p, 1);
    expect_error(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  });
  expect_report(fault(cudaErrorMisalignedAddress,
                      [] {
                        char* p;
                        cudaMalloc(&p, 4096);
                        store<<<1, 1>>>(reinterpret_cast<int*>(p + 1), 1);
                      }),
                {"store", "align", at_line(kStoreLine)});
  // Launches return what earlier work did wrong, never what they have only just begun, however soon it fails.
  for (int turn = 0; turn < 30; ++turn)
    in_child([] {
      void* nowhere = nullptr;
      int value = 1;
      void* arguments[] = {&nowhere, &value};
      expect_success(cudaLaunchKernel(store, dim3(1), dim3(1), arguments, 0, nullptr));
      expect_error(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    });
  expect_report(fault(cudaErrorLaunchFailure, [] { trap<<<1, 1>>>(); }), {"trap", at_line(kTrapLine)});
  ordinary_errors();
  return result();
}
