// What the device says about itself.

#include "check.h"

static int attribute(cudaDeviceAttr which) {
  int value = -1;
  expect_success(cudaDeviceGetAttribute(&value, which, 0));
  return value;
}

static void properties() {
  cudaDeviceProp all;
  expect_success(cudaGetDeviceProperties(&all, 0));
  expect_equal(sizeof all, size_t{1008});
  expect(std::strstr(all.name, "NVIDIA") != nullptr, "a name");
  const bool blackwell = all.major == 10, hopper = all.major == 9;
  expect((blackwell || hopper) && all.minor == 0, "compute capability 10.0 or 9.0");
  expect_equal(all.multiProcessorCount, blackwell ? 148 : 132);
  // CUDA programming guide, "Technical Specifications per Compute Capability": the same for 9.0 and 10.0.
  expect_equal(all.sharedMemPerBlockOptin, size_t{232448});
  expect_equal(all.sharedMemPerMultiprocessor, size_t{233472});
  expect_equal(all.reservedSharedMemPerBlock, size_t{1024});
  expect_equal(all.sharedMemPerBlock, size_t{49152});
  expect_equal(all.regsPerMultiprocessor, 65536);
  expect_equal(all.maxThreadsPerMultiProcessor, 2048);
  expect_equal(all.maxBlocksPerMultiProcessor, 32);
  expect_equal(all.maxThreadsPerBlock, 1024);
  expect_equal(all.maxThreadsDim[2], 64);
  expect_equal(all.maxGridSize[0], 2147483647);
  expect_equal(all.maxGridSize[1], 65535);
  expect_equal(all.warpSize, 32);
  expect_equal(all.clusterLaunch, 1);
  expect_equal(all.cooperativeLaunch, 1);
  expect_equal(all.unifiedAddressing, 1);
  expect_equal(all.managedMemory, 1);

  expect_equal(attribute(cudaDevAttrComputeCapabilityMajor), all.major);
  expect_equal(attribute(cudaDevAttrMultiProcessorCount), all.multiProcessorCount);
  expect_equal(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin), 232448);
  expect_equal(attribute(cudaDevAttrL2CacheSize), all.l2CacheSize);
  expect_equal(attribute(cudaDevAttrMaxTexture3DDepth), all.maxTexture3D[2]);
  expect_equal(attribute(cudaDevAttrMemoryPoolsSupported), 1);
  expect(attribute(cudaDevAttrClockRate) > 1000000, "a clock in kHz");

  int value;
  expect_remembered(cudaDeviceGetAttribute(&value, static_cast<cudaDeviceAttr>(9999), 0), cudaErrorInvalidValue);
  expect_remembered(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 3), cudaErrorInvalidDevice);
  expect_remembered(cudaGetDeviceProperties(&all, 4), cudaErrorInvalidDevice);
  expect_remembered(cudaGetDeviceProperties(nullptr, 0), cudaErrorInvalidValue);
}

static void versions_and_numbers() {
  int count = 0, device = -1, runtime = 0, driver = 0;
  expect_success(cudaGetDeviceCount(&count));
  expect(count >= 1, "a device");
  expect_success(cudaGetDevice(&device));
  expect_equal(device, 0);
  expect_success(cudaRuntimeGetVersion(&runtime));
  expect_equal(runtime, CUDART_VERSION);
  expect_success(cudaDriverGetVersion(&driver));
  expect(driver >= runtime, "the driver is not older than the runtime");
  expect_remembered(cudaSetDevice(count), cudaErrorInvalidDevice);
  expect_remembered(cudaSetDevice(-1), cudaErrorInvalidDevice);
  expect_remembered(cudaGetDevice(nullptr), cudaErrorInvalidValue);
  expect_remembered(cudaGetDeviceCount(nullptr), cudaErrorInvalidValue);
  int can = 1;
  expect_success(cudaDeviceCanAccessPeer(&can, 0, 0));
  expect_equal(can, 0);
  expect_remembered(cudaDeviceEnablePeerAccess(0, 0), cudaErrorPeerAccessUnsupported);
}

static void settings() {
  size_t value = 0;
  expect_success(cudaDeviceGetLimit(&value, cudaLimitStackSize));
  expect_equal(value, size_t{1024});
  expect_success(cudaDeviceGetLimit(&value, cudaLimitMallocHeapSize));
  expect_equal(value, size_t{8} << 20);
  expect_remembered(cudaDeviceGetLimit(&value, cudaLimitDevRuntimeSyncDepth), cudaErrorUnsupportedLimit);
  expect_remembered(cudaDeviceSetLimit(static_cast<cudaLimit>(44), 1), cudaErrorInvalidValue);
  expect_success(cudaDeviceSetLimit(cudaLimitStackSize, 2048));
  expect_success(cudaDeviceGetLimit(&value, cudaLimitStackSize));
  expect_equal(value, size_t{2048});
  unsigned flags = 0;
  expect_success(cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync));
  expect_remembered(cudaSetDeviceFlags(0x1234), cudaErrorInvalidValue);
  expect_success(cudaGetDeviceFlags(&flags));
  expect_equal(flags, unsigned{cudaDeviceScheduleBlockingSync | cudaDeviceMapHost});
}

static void entry_points() {
  void* function = reinterpret_cast<void*>(1);
  cudaDriverEntryPointQueryResult status = cudaDriverEntryPointVersionNotSufficent;
  expect_success(
      cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &status));
  expect(function && status == cudaDriverEntryPointSuccess, "cuTensorMapEncodeTiled is there");
  expect_success(
      cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 11000, cudaEnableDefault, &status));
  expect(!function && status == cudaDriverEntryPointVersionNotSufficent, "but not in CUDA 11.0");
  expect_success(cudaGetDriverEntryPointByVersion("cuNoSuchFunction", &function, 12000, cudaEnableDefault, &status));
  expect(!function && status == cudaDriverEntryPointSymbolNotFound, "no such function");
  expect_success(cudaGetDriverEntryPointByVersion("cuMemAlloc_v2", &function, 12000, cudaEnableDefault, &status));
  expect(!function && status == cudaDriverEntryPointSymbolNotFound, "names go without their versions");
  expect_remembered(cudaGetDriverEntryPointByVersion("cuInit", &function, 12000, 99, &status), cudaErrorInvalidValue);
}

static void reset() {
  void* device;
  expect_success(cudaMalloc(&device, 100));
  expect_success(cudaDeviceReset());
  expect_remembered(cudaFree(device), cudaErrorInvalidValue);
  expect_success(cudaMalloc(&device, 100));
  expect_success(cudaFree(device));
}

int main() {
  properties();
  versions_and_numbers();
  settings();
  entry_points();
  reset();
  return result();
}
