// Uses the driver API alone, linked against libcuda.
#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstring>

static const char* kPtx = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .entry store(.param .u64 where, .param .u32 value) {
  .reg .b32 %r<2>; .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [where];
  ld.param.u32 %r1, [value];
  cvta.to.global.u64 %rd2, %rd1;
  st.global.u32 [%rd2], %r1;
  ret;
}
)";

static void check(const char* what, CUresult result) {
  const char* name = nullptr;
  cuGetErrorName(result, &name);
  if (result != CUDA_SUCCESS) std::printf("%s: %s\n", what, name ? name : "?");
}

int main() {
  CUdevice device;
  CUcontext context;
  CUmodule module;
  CUfunction function;
  CUdeviceptr memory;
  unsigned value = 42, back = 0;
  std::printf("before: %d\n", cuDeviceGet(&device, 0));  // CUDA_ERROR_NOT_INITIALIZED
  check("init", cuInit(0));
  check("device", cuDeviceGet(&device, 0));
  std::printf("no context: %d\n", cuMemAlloc(&memory, 4));  // CUDA_ERROR_INVALID_CONTEXT
  check("retain", cuDevicePrimaryCtxRetain(&context, device));
  check("current", cuCtxSetCurrent(context));
  check("module", cuModuleLoadData(&module, kPtx));
  check("function", cuModuleGetFunction(&function, module, "store"));
  check("alloc", cuMemAlloc(&memory, 4));
  void* parameters[] = {&memory, &value};
  check("launch", cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
  check("copy", cuMemcpyDtoH(&back, memory, 4));
  // The name without a version has the signature of CUDA 11.3. cuda.h gives that name to the later one.
  using Find = CUresult (*)(const char*, void**, int, cuuint64_t);
  void* found = nullptr;
  const auto find = reinterpret_cast<Find>(dlsym(RTLD_DEFAULT, "cuGetProcAddress"));
  check("find", find("cuMemAlloc", &found, 12000, 0));
  CUdeviceptr other = 0;
  check("found", found ? reinterpret_cast<CUresult (*)(CUdeviceptr*, size_t)>(found)(&other, 4) : CUDA_ERROR_NOT_FOUND);
  std::printf("find nothing: %d\n", find("cuFrobnicate", &found, 12000, 0));  // CUDA_ERROR_NOT_FOUND
  CUarray array;
  std::printf("value %u\n", back);
  std::printf("array: %d\n", cuArrayCreate(&array, nullptr));  // CUDA_ERROR_NOT_SUPPORTED
  return 0;
}
