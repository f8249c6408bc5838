// The driver API's functions, as a program gets them without linking against libcuda: modules of PTX text, launches,
// tensor maps.

#include <cuda.h>
#include <cudaTypedefs.h>

#include "check.h"

template <class F>
static F entry(const char* name, unsigned version = 12000) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult status;
  expect_success(cudaGetDriverEntryPointByVersion(name, &function, version, cudaEnableDefault, &status));
  if (!function) {
    std::printf("no %s\n", name);
    std::exit(1);
  }
  return reinterpret_cast<F>(function);
}

static void expect_result(CUresult got, CUresult wanted,
                          const std::source_location& at = std::source_location::current()) {
  if (got != wanted) fail(("got CUresult " + std::to_string(got) + ", wanted " + std::to_string(wanted)).c_str(), at);
}

// Doubles element i of a buffer and adds a module's variable.
constexpr const char* kPtx = R"(
.version 8.0
.target sm_90
.address_size 64
.global .align 4 .u32 offset = 7;
.visible .entry twice(.param .u64 buffer, .param .u32 count) {
  .reg .pred %p; .reg .b32 %r<8>; .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [buffer];
  ld.param.u32 %r1, [count];
  mov.u32 %r2, %tid.x;
  setp.ge.u32 %p, %r2, %r1;
  @%p bra DONE;
  cvta.to.global.u64 %rd2, %rd1;
  mul.wide.u32 %rd3, %r2, 4;
  add.s64 %rd4, %rd2, %rd3;
  ld.global.u32 %r3, [%rd4];
  ld.global.u32 %r4, [offset];
  add.u32 %r5, %r3, %r3;
  add.u32 %r6, %r5, %r4;
  st.global.u32 [%rd4], %r6;
DONE:
  ret;
}
)";

static void modules() {
  const auto init = entry<PFN_cuInit_v2000>("cuInit");
  const auto load = entry<PFN_cuModuleLoadData_v2000>("cuModuleLoadData");
  const auto unload = entry<PFN_cuModuleUnload_v2000>("cuModuleUnload");
  const auto get = entry<PFN_cuModuleGetFunction_v2000>("cuModuleGetFunction");
  const auto global = entry<PFN_cuModuleGetGlobal_v3020>("cuModuleGetGlobal");
  const auto launch = entry<PFN_cuLaunchKernel_v4000>("cuLaunchKernel");
  const auto alloc = entry<PFN_cuMemAlloc_v3020>("cuMemAlloc");
  const auto release = entry<PFN_cuMemFree_v3020>("cuMemFree");
  const auto to_device = entry<PFN_cuMemcpyHtoD_v3020>("cuMemcpyHtoD");
  const auto to_host = entry<PFN_cuMemcpyDtoH_v3020>("cuMemcpyDtoH");
  const auto fill = entry<PFN_cuMemsetD32_v3020>("cuMemsetD32");
  const auto synchronize = entry<PFN_cuCtxSynchronize_v2000>("cuCtxSynchronize");
  const auto current = entry<PFN_cuCtxGetCurrent_v4000>("cuCtxGetCurrent");

  expect_result(init(0), CUDA_SUCCESS);
  expect_success(cudaFree(nullptr));
  CUcontext context = nullptr;
  expect_result(current(&context), CUDA_SUCCESS);
  expect(context != nullptr, "the runtime's context is current");

  CUmodule module;
  CUfunction function;
  expect_result(load(&module, kPtx), CUDA_SUCCESS);
  expect_result(get(&function, module, "thrice"), CUDA_ERROR_NOT_FOUND);
  expect_result(get(&function, module, "twice"), CUDA_SUCCESS);
  CUdeviceptr offset = 0, buffer = 0;
  size_t bytes = 0;
  expect_result(global(&offset, &bytes, module, "offset"), CUDA_SUCCESS);
  expect_equal(bytes, size_t{4});
  expect_result(global(&offset, &bytes, module, "nothing"), CUDA_ERROR_NOT_FOUND);

  unsigned values[32], count = 20;
  for (unsigned i = 0; i < 32; ++i) values[i] = i;
  expect_result(alloc(&buffer, sizeof values), CUDA_SUCCESS);
  expect_result(to_device(buffer, values, sizeof values), CUDA_SUCCESS);
  void* parameters[] = {&buffer, &count};
  expect_result(launch(function, 1, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr), CUDA_SUCCESS);
  expect_result(launch(function, 1, 1, 1, 2048, 1, 1, 0, nullptr, parameters, nullptr), CUDA_ERROR_INVALID_VALUE);
  struct {
    CUdeviceptr buffer;
    unsigned count;
  } packed{buffer, 10};
  size_t packed_bytes = 12;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &packed_bytes,
                   CU_LAUNCH_PARAM_END};
  expect_result(launch(function, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, extra), CUDA_SUCCESS);
  expect_result(synchronize(), CUDA_SUCCESS);
  expect_result(to_host(values, buffer, sizeof values), CUDA_SUCCESS);
  for (unsigned i = 0; i < 32; ++i) expect_equal(values[i], i < 10 ? 4 * i + 21 : i < 20 ? 2 * i + 7 : i);
  expect_result(fill(buffer, 0x01020304, 8), CUDA_SUCCESS);
  expect_result(to_host(values, buffer, sizeof values), CUDA_SUCCESS);
  expect_equal(values[7], 0x01020304u);
  expect_equal(values[9], 57u);

  expect_result(release(buffer), CUDA_SUCCESS);
  expect_result(release(123), CUDA_ERROR_INVALID_VALUE);
  expect_result(to_host(values, 1234, 8), CUDA_ERROR_INVALID_VALUE);
  expect_result(unload(module), CUDA_SUCCESS);
  expect_result(load(&module, "junk"), CUDA_ERROR_INVALID_IMAGE);
  expect_result(
      load(&module, ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() { add.u32 %r1 %r2; }\n"),
      CUDA_ERROR_INVALID_PTX);
  expect_success(cudaGetLastError());  // the driver leaves the runtime's memory of errors alone
}

static void device() {
  const auto get = entry<PFN_cuDeviceGet_v2000>("cuDeviceGet");
  const auto attribute = entry<PFN_cuDeviceGetAttribute_v2000>("cuDeviceGetAttribute");
  const auto name = entry<PFN_cuGetErrorName_v6000>("cuGetErrorName");
  const auto text = entry<PFN_cuGetErrorString_v6000>("cuGetErrorString");
  CUdevice number = -1;
  int value = 0;
  expect_result(get(&number, 0), CUDA_SUCCESS);
  expect_equal(number, 0);
  expect_result(get(&number, 100), CUDA_ERROR_INVALID_DEVICE);
  expect_result(attribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0), CUDA_SUCCESS);
  expect_equal(value, 32);
  expect_result(attribute(&value, CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED, 0), CUDA_SUCCESS);
  expect_equal(value, 1);
  const char* string = nullptr;
  expect_result(name(CUDA_ERROR_ILLEGAL_ADDRESS, &string), CUDA_SUCCESS);
  expect(string && std::strcmp(string, "CUDA_ERROR_ILLEGAL_ADDRESS") == 0, "an error's name");
  expect_result(text(CUDA_ERROR_ILLEGAL_ADDRESS, &string), CUDA_SUCCESS);
  expect(string && std::strcmp(string, "an illegal memory access was encountered") == 0, "an error's text");
  expect_result(name(static_cast<CUresult>(12345), &string), CUDA_ERROR_INVALID_VALUE);
  expect(string == nullptr, "no name");

  const auto find = entry<PFN_cuGetProcAddress_v12000>("cuGetProcAddress");
  CUdriverProcAddressQueryResult status;
  void* function = nullptr;
  expect_result(find("cuMemAlloc", &function, 13000, CU_GET_PROC_ADDRESS_DEFAULT, &status), CUDA_SUCCESS);
  expect(function && status == CU_GET_PROC_ADDRESS_SUCCESS, "cuMemAlloc");
  expect_result(find("cuNoSuch", &function, 13000, CU_GET_PROC_ADDRESS_DEFAULT, &status), CUDA_SUCCESS);
  expect(status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND, "no such function");
}

static void tensor_maps() {
  const auto encode = entry<PFN_cuTensorMapEncodeTiled_v12000>("cuTensorMapEncodeTiled");
  CUtensorMap map;
  void* memory;
  expect_success(cudaMalloc(&memory, 1 << 20));
  const cuuint64_t dims[] = {256, 128}, strides[] = {512};
  const cuuint32_t box[] = {64, 32}, ones[] = {1, 1};
  const auto encode_with = [&](void* address, cuuint64_t stride, cuuint32_t width) {
    const cuuint64_t own_strides[] = {stride};
    const cuuint32_t own_box[] = {width, 32};
    return encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, address, dims, own_strides, own_box, ones,
                  CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  };
  expect_result(encode_with(memory, strides[0], box[0]), CUDA_SUCCESS);
  expect_result(encode_with(static_cast<char*>(memory) + 8, 512, 64), CUDA_ERROR_INVALID_VALUE);  // 16-byte alignment
  expect_result(encode_with(memory, 520, 64), CUDA_ERROR_INVALID_VALUE);                          // stride: 16 bytes
  expect_result(encode_with(memory, 512, 128), CUDA_ERROR_INVALID_VALUE);  // row beyond the swizzle span
  expect_success(cudaFree(memory));
}

int main() {
  modules();
  device();
  tensor_maps();
  return result();
}
