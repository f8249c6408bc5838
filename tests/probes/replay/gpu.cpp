#include "tests/probes/replay/gpu.h"

#include <cuda.h>
#include <dlfcn.h>

#include <algorithm>
#include <stdexcept>

namespace replay {
namespace {

template <class F>
F* driver_function(const char* name) {
  static void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) throw std::runtime_error("there is no libcuda.so.1: a GPU and its driver are wanted");
  void* symbol = dlsym(library, name);
  if (!symbol) throw std::runtime_error(std::string("the driver has no ") + name);
  return reinterpret_cast<F*>(symbol);
}

void check(CUresult result, const char* what) {
  if (result != CUDA_SUCCESS) throw std::runtime_error(std::string(what) + ": error " + std::to_string(result));
}

}  // namespace

Gpu::Gpu() {
  check(driver_function<decltype(cuInit)>("cuInit")(0), "cuInit");
  CUdevice device;
  check(driver_function<decltype(cuDeviceGet)>("cuDeviceGet")(&device, 0), "cuDeviceGet");
  const auto attribute = driver_function<decltype(cuDeviceGetAttribute)>("cuDeviceGetAttribute");
  int major = 0, minor = 0;
  attribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  attribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  target = "sm_" + std::to_string(major * 10 + minor) + (major >= 9 ? "a" : "");
  char text[128] = {};
  driver_function<decltype(cuDeviceGetName)>("cuDeviceGetName")(text, sizeof(text), device);
  name = text;
  driver_function<decltype(cuDriverGetVersion)>("cuDriverGetVersion")(&driver);
  // The signature that cuda.h had before CUDA 13 gave another function the name.
  CUcontext context;
  check(driver_function<CUresult(CUcontext*, unsigned, CUdevice)>("cuCtxCreate_v2")(&context, 0, device),
        "cuCtxCreate");
}

Gpu::Result Gpu::run(const Program& program) {
  const auto load = driver_function<decltype(cuModuleLoadDataEx)>("cuModuleLoadDataEx");
  const auto unload = driver_function<decltype(cuModuleUnload)>("cuModuleUnload");
  const auto find = driver_function<decltype(cuModuleGetFunction)>("cuModuleGetFunction");
  const auto allocate = driver_function<decltype(cuMemAlloc)>("cuMemAlloc_v2");
  const auto release = driver_function<decltype(cuMemFree)>("cuMemFree_v2");
  const auto upload = driver_function<decltype(cuMemcpyHtoD)>("cuMemcpyHtoD_v2");
  const auto download = driver_function<decltype(cuMemcpyDtoH)>("cuMemcpyDtoH_v2");
  const auto launch = driver_function<decltype(cuLaunchKernelEx)>("cuLaunchKernelEx");
  const auto allow = driver_function<decltype(cuFuncSetAttribute)>("cuFuncSetAttribute");
  const auto synchronise = driver_function<decltype(cuCtxSynchronize)>("cuCtxSynchronize");

  Result out;
  std::string ptx = program.ptx;
  if (size_t at = ptx.find("sm_100a"); at != std::string::npos) ptx.replace(at, 7, target);
  CUmodule module;
  CUfunction function;
  char log[512] = {};
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof(log))};
  if (CUresult result = load(&module, ptx.c_str(), 2, options, values); result != CUDA_SUCCESS) {
    out.refusal = "error " + std::to_string(result) + ": " + log;
    return out;
  }
  check(find(&function, module, "probe"), "cuModuleGetFunction");
  if (program.shared_bytes > 48 * 1024)
    allow(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, static_cast<int>(program.shared_bytes));
  std::vector<CUdeviceptr> buffers(program.sizes.size());
  std::vector<void*> parameters;
  size_t offset = 0;
  for (size_t i = 0; i < buffers.size(); ++i) {
    check(allocate(&buffers[i], std::max<uint64_t>(program.sizes[i], 1)), "cuMemAlloc");
    if (program.sizes[i]) check(upload(buffers[i], program.before.data() + offset, program.sizes[i]), "cuMemcpyHtoD");
    offset += program.sizes[i];
    parameters.push_back(&buffers[i]);
  }
  auto u = [](uint64_t extent) { return static_cast<unsigned>(extent); };
  CUlaunchAttribute cluster = {};
  cluster.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  cluster.value.clusterDim = {u(program.cluster[0]), u(program.cluster[1]), u(program.cluster[2])};
  CUlaunchConfig config = {};
  config.gridDimX = u(program.grid[0]), config.gridDimY = u(program.grid[1]), config.gridDimZ = u(program.grid[2]);
  config.blockDimX = u(program.block[0]), config.blockDimY = u(program.block[1]),
  config.blockDimZ = u(program.block[2]);
  config.sharedMemBytes = u(program.shared_bytes);
  config.attrs = &cluster;
  config.numAttrs = program.cluster[0] * program.cluster[1] * program.cluster[2] > 1 ? 1 : 0;
  CUresult result = launch(&config, function, parameters.data(), nullptr);
  if (result == CUDA_SUCCESS) result = synchronise();
  out.error = static_cast<int>(result);
  if (result != CUDA_SUCCESS) return out;
  out.after.resize(program.after.size());
  offset = 0;
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (program.sizes[i]) check(download(out.after.data() + offset, buffers[i], program.sizes[i]), "cuMemcpyDtoH");
    release(buffers[i]);
    offset += program.sizes[i];
  }
  unload(module);
  return out;
}

}  // namespace replay
