#include "tests/probes/replay/gpu.h"

#include <cuda.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstring>
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

/// The driver's map for one that the emulator made; false when the driver does not make such a map for this chip.
bool encode(const TensorMapAt& map, CUdeviceptr buffer, CUtensorMap& out) {
  static const auto encode_tiled = driver_function<decltype(cuTensorMapEncodeTiled)>("cuTensorMapEncodeTiled");
  cuuint64_t extents[5], strides[4];
  cuuint32_t box[5], element_strides[5];
  for (size_t d = 0; d < 5; ++d) {
    extents[d] = map.dimension[d].extent;
    box[d] = static_cast<cuuint32_t>(map.dimension[d].box);
    element_strides[d] = static_cast<cuuint32_t>(map.dimension[d].element_stride);
    if (d > 0) strides[d - 1] = map.dimension[d].stride_bytes;
  }
  const auto rank = static_cast<cuuint32_t>(map.rank & 0xFF);
  if (map.rank != rank) {
    static const auto encode_im2col = driver_function<decltype(cuTensorMapEncodeIm2col)>("cuTensorMapEncodeIm2col");
    int lower[3], upper[3];
    for (size_t d = 0; d < 3; ++d) {
      lower[d] = static_cast<int16_t>(box[2 + d] & 0xFFFF);
      upper[d] = static_cast<int16_t>(box[2 + d] >> 16);
    }
    return encode_im2col(&out, static_cast<CUtensorMapDataType>(map.type), rank,
                         reinterpret_cast<void*>(buffer + map.offset), extents, strides, lower, upper, box[0], box[1],
                         element_strides, static_cast<CUtensorMapInterleave>(map.interleave),
                         static_cast<CUtensorMapSwizzle>(map.swizzle),
                         static_cast<CUtensorMapL2promotion>(map.promotion),
                         static_cast<CUtensorMapFloatOOBfill>(map.fill)) == CUDA_SUCCESS;
  }
  return encode_tiled(&out, static_cast<CUtensorMapDataType>(map.type), rank,
                      reinterpret_cast<void*>(buffer + map.offset), extents, strides, box, element_strides,
                      static_cast<CUtensorMapInterleave>(map.interleave), static_cast<CUtensorMapSwizzle>(map.swizzle),
                      static_cast<CUtensorMapL2promotion>(map.promotion),
                      static_cast<CUtensorMapFloatOOBfill>(map.fill)) == CUDA_SUCCESS;
}

/// Allocations that go with their owner.
struct Buffers {
  ~Buffers() {
    const auto release = driver_function<decltype(cuMemFree)>("cuMemFree_v2");
    for (CUdeviceptr address : addresses) release(address);
  }
  std::vector<CUdeviceptr> addresses;
};

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
  std::vector<char> before = program.before;
  Buffers buffers;
  for (uint64_t size : program.sizes) {
    buffers.addresses.push_back(0);
    check(allocate(&buffers.addresses.back(), std::max<uint64_t>(size, 1)), "cuMemAlloc");
  }
  for (const TensorMapAt& map : program.maps) {
    CUtensorMap made;
    static_assert(sizeof(made) == kTensorMapBytes);
    if (!encode(map, buffers.addresses[map.buffer], made)) {
      out.refusal = "the driver does not make its tensor map";
      unload(module);
      return out;
    }
    std::memcpy(before.data() + map.at, &made, sizeof(made));
  }
  std::vector<void*> parameters;
  for (size_t i = 0; i < program.parameters; ++i) parameters.push_back(&buffers.addresses[i]);
  size_t offset = 0;
  for (size_t i = 0; i < program.sizes.size(); offset += program.sizes[i], ++i)
    if (program.sizes[i]) check(upload(buffers.addresses[i], before.data() + offset, program.sizes[i]), "cuMemcpyHtoD");
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
  for (size_t i = 0; i < program.sizes.size(); offset += program.sizes[i], ++i)
    if (program.sizes[i])
      check(download(out.after.data() + offset, buffers.addresses[i], program.sizes[i]), "cuMemcpyDtoH");
  // A map that is still what the driver made is still what the emulator made.
  for (const TensorMapAt& map : program.maps)
    if (std::memcmp(out.after.data() + map.at, before.data() + map.at, kTensorMapBytes) == 0)
      std::memcpy(out.after.data() + map.at, program.before.data() + map.at, kTensorMapBytes);
  unload(module);
  return out;
}

}  // namespace replay
