// The driver API's functions, as a program gets them without linking against libcuda: modules of PTX text, launches,
// tensor maps.

#include <dlfcn.h>

#include "driver.h"

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

// Libraries and kernels of the newer interface; a module and a library, a kernel and a function have much in common.
static void libraries() {
  const auto load = entry<PFN_cuLibraryLoadData_v12000>("cuLibraryLoadData");
  const auto unload = entry<PFN_cuLibraryUnload_v12000>("cuLibraryUnload");
  CUlibrary library;
  expect_result(load(&library, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0), CUDA_SUCCESS);

  unsigned count = 0;
  expect_result(entry<PFN_cuLibraryGetKernelCount_v12040>("cuLibraryGetKernelCount", 13000)(&count, library),
                CUDA_SUCCESS);
  expect_equal(count, 1u);
  CUkernel kernel, listed = nullptr;
  expect_result(entry<PFN_cuLibraryGetKernel_v12000>("cuLibraryGetKernel")(&kernel, library, "twice"), CUDA_SUCCESS);
  expect_result(entry<PFN_cuLibraryEnumerateKernels_v12040>("cuLibraryEnumerateKernels", 13000)(&listed, 1, library),
                CUDA_SUCCESS);
  expect(listed == kernel, "the one kernel");
  const char* name = nullptr;
  expect_result(entry<PFN_cuKernelGetName_v12030>("cuKernelGetName", 13000)(&name, kernel), CUDA_SUCCESS);
  expect(name && std::strcmp(name, "twice") == 0, "its name");
  CUlibrary owner = nullptr;
  expect_result(entry<PFN_cuKernelGetLibrary_v12050>("cuKernelGetLibrary", 13000)(&owner, kernel), CUDA_SUCCESS);
  expect(owner == library, "its library");

  const auto parameter = entry<PFN_cuKernelGetParamInfo_v12040>("cuKernelGetParamInfo", 13000);
  size_t offset = 0, bytes = 0;
  expect_result(parameter(kernel, 1, &offset, &bytes), CUDA_SUCCESS);
  expect_equal(offset, size_t{8});
  expect_equal(bytes, size_t{4});
  expect_result(parameter(kernel, 2, &offset, &bytes), CUDA_ERROR_INVALID_VALUE);

  const auto get = entry<PFN_cuKernelGetAttribute_v12000>("cuKernelGetAttribute");
  const auto set = entry<PFN_cuKernelSetAttribute_v12000>("cuKernelSetAttribute");
  int value = 0;
  expect_result(get(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel, 0), CUDA_SUCCESS);
  expect_equal(value, 1024);
  expect_result(set(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000, kernel, 0), CUDA_SUCCESS);
  expect_result(get(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kernel, 0), CUDA_SUCCESS);
  expect_equal(value, 100000);
  expect_result(get(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel, 1), CUDA_ERROR_INVALID_DEVICE);

  CUfunction function;
  expect_result(entry<PFN_cuKernelGetFunction_v12000>("cuKernelGetFunction")(&function, kernel), CUDA_SUCCESS);
  CUmodule module = nullptr, of_function = nullptr;
  expect_result(entry<PFN_cuLibraryGetModule_v12000>("cuLibraryGetModule")(&module, library), CUDA_SUCCESS);
  expect_result(entry<PFN_cuFuncGetModule_v11000>("cuFuncGetModule")(&of_function, function), CUDA_SUCCESS);
  expect(module && module == of_function, "the library's module");
  expect_result(entry<PFN_cuFuncLoad_v12040>("cuFuncLoad", 13000)(function), CUDA_SUCCESS);
  CUfunctionLoadingState state = CU_FUNCTION_LOADING_STATE_UNLOADED;
  expect_result(entry<PFN_cuFuncIsLoaded_v12040>("cuFuncIsLoaded", 13000)(&state, function), CUDA_SUCCESS);
  expect(state == CU_FUNCTION_LOADING_STATE_LOADED, "loaded");

  int grid = 0, block = 0;
  const auto potential = entry<PFN_cuOccupancyMaxPotentialBlockSize_v6050>("cuOccupancyMaxPotentialBlockSize");
  expect_result(potential(&grid, &block, function, nullptr, 0, 0), CUDA_SUCCESS);
  expect(block > 0 && block % 32 == 0 && grid > 0, "a block size");
  expect_result(potential(&grid, &block, function, nullptr, 0, 20), CUDA_SUCCESS);
  expect_equal(block, 20);
  expect_result(unload(library), CUDA_SUCCESS);
}

// One PTX text needs no linking; what comes out can be loaded, whatever it is.
static void linking() {
  CUlinkState state;
  char messages[256] = "";
  CUjit_option options[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {messages, reinterpret_cast<void*>(sizeof messages)};
  expect_result(entry<PFN_cuLinkCreate_v6050>("cuLinkCreate")(2, options, values, &state), CUDA_SUCCESS);
  expect_result(
      entry<PFN_cuLinkAddData_v6050>("cuLinkAddData")(state, CU_JIT_INPUT_PTX, const_cast<char*>(kPtx),
                                                      std::strlen(kPtx) + 1, "twice.ptx", 0, nullptr, nullptr),
      CUDA_SUCCESS);
  void* code = nullptr;
  size_t bytes = 0;
  expect_result(entry<PFN_cuLinkComplete_v5050>("cuLinkComplete")(state, &code, &bytes), CUDA_SUCCESS);
  expect(code && bytes > 0, "linked code");
  CUmodule module;
  CUfunction function;
  expect_result(entry<PFN_cuModuleLoadData_v2000>("cuModuleLoadData")(&module, code), CUDA_SUCCESS);
  expect_result(entry<PFN_cuLinkDestroy_v5050>("cuLinkDestroy")(state), CUDA_SUCCESS);
  expect_result(entry<PFN_cuModuleGetFunction_v2000>("cuModuleGetFunction")(&function, module, "twice"), CUDA_SUCCESS);
  CUdeviceptr buffer;
  int numbers[4] = {1, 2, 3, 4}, count = 4;
  expect_result(entry<PFN_cuMemAlloc_v3020>("cuMemAlloc")(&buffer, sizeof numbers), CUDA_SUCCESS);
  expect_result(entry<PFN_cuMemcpyHtoD_v3020>("cuMemcpyHtoD")(buffer, numbers, sizeof numbers), CUDA_SUCCESS);
  void* arguments[] = {&buffer, &count};
  expect_result(
      entry<PFN_cuLaunchKernel_v4000>("cuLaunchKernel")(function, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr),
      CUDA_SUCCESS);
  expect_result(entry<PFN_cuMemcpyDtoH_v3020>("cuMemcpyDtoH")(numbers, buffer, sizeof numbers), CUDA_SUCCESS);
  for (int i = 0; i < 4; ++i) expect_equal(numbers[i], 2 * (i + 1) + 7);
  expect_result(entry<PFN_cuModuleUnload_v2000>("cuModuleUnload")(module), CUDA_SUCCESS);
  expect_result(entry<PFN_cuMemFree_v3020>("cuMemFree")(buffer), CUDA_SUCCESS);
}

// What is no code is left out, be it all there is; what only the emulator refuses is not.
static void linking_what_is_refused() {
  const auto create = entry<PFN_cuLinkCreate_v6050>("cuLinkCreate");
  const auto add = entry<PFN_cuLinkAddData_v6050>("cuLinkAddData");
  const auto complete = entry<PFN_cuLinkComplete_v5050>("cuLinkComplete");
  const auto destroy = entry<PFN_cuLinkDestroy_v5050>("cuLinkDestroy");
  const auto load = entry<PFN_cuModuleLoadData_v2000>("cuModuleLoadData");
  CUlinkState state;
  CUmodule module;
  CUfunction function;
  void* code = nullptr;
  const auto add_text = [&](const char* text) {
    return add(state, CU_JIT_INPUT_PTX, const_cast<char*>(text), std::strlen(text) + 1, "", 0, nullptr, nullptr);
  };
  expect_result(create(0, nullptr, nullptr, &state), CUDA_SUCCESS);
  expect_result(add_text("junk"), CUDA_ERROR_INVALID_IMAGE);
  expect_result(add_text(".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() { add.u32 %r1 %r2; }\n"),
                CUDA_ERROR_INVALID_PTX);
  expect_result(complete(state, &code, nullptr), CUDA_SUCCESS);
  if (emulated()) expect_result(load(&module, code), CUDA_SUCCESS);
  expect_result(destroy(state), CUDA_SUCCESS);

  expect_result(create(0, nullptr, nullptr, &state), CUDA_SUCCESS);
  expect_result(add_text(kPtx), CUDA_SUCCESS);
  expect_result(add_text("junk"), CUDA_ERROR_INVALID_IMAGE);
  expect_result(
      entry<PFN_cuLinkAddFile_v6050>("cuLinkAddFile")(state, CU_JIT_INPUT_PTX, "/no such file", 0, nullptr, nullptr),
      CUDA_ERROR_FILE_NOT_FOUND);
  code = nullptr;
  expect_result(complete(state, &code, nullptr), CUDA_SUCCESS);
  expect_result(load(&module, code), CUDA_SUCCESS);
  expect_result(entry<PFN_cuModuleGetFunction_v2000>("cuModuleGetFunction")(&function, module, "twice"), CUDA_SUCCESS);
  expect_result(destroy(state), CUDA_SUCCESS);

  if (!emulated()) return;
  expect_result(create(0, nullptr, nullptr, &state), CUDA_SUCCESS);
  expect_result(add_text(kPtx), CUDA_SUCCESS);
  expect_result(add_text(kPtx), CUDA_ERROR_NOT_SUPPORTED);
  expect_result(complete(state, &code, nullptr), CUDA_ERROR_NOT_SUPPORTED);
  expect_result(destroy(state), CUDA_SUCCESS);
}

static void rows_and_slices() {
  const auto alloc = entry<PFN_cuMemAlloc_v3020>("cuMemAlloc");
  const auto to_host = entry<PFN_cuMemcpyDtoH_v3020>("cuMemcpyDtoH");
  CUdeviceptr buffer;
  constexpr size_t kPitch = 16, kRows = 8;
  unsigned char bytes[kPitch * kRows];
  expect_result(alloc(&buffer, sizeof bytes), CUDA_SUCCESS);
  expect_result(entry<PFN_cuMemsetD8_v3020>("cuMemsetD8")(buffer, 1, sizeof bytes), CUDA_SUCCESS);
  const auto fill = entry<PFN_cuMemsetD2D16_v3020>("cuMemsetD2D16");
  expect_result(fill(buffer + 2, kPitch, 0x0302, 3, 4), CUDA_SUCCESS);
  expect_result(fill(buffer + 1, kPitch, 0x0302, 3, 4), CUDA_ERROR_INVALID_VALUE);  // misaligned
  expect_result(fill(buffer, 4, 0x0302, 3, 4), CUDA_ERROR_INVALID_VALUE);           // rows that overlap

  // A window of 2 x 3 at column 4, row 5, from a compact block on the host.
  const unsigned char block[] = {10, 11, 12, 13, 14, 15};
  CUDA_MEMCPY2D window{};
  window.srcMemoryType = CU_MEMORYTYPE_HOST;
  window.srcHost = block;
  window.srcPitch = 3;
  window.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  window.dstDevice = buffer;
  window.dstXInBytes = 4;
  window.dstY = 5;
  window.dstPitch = kPitch;
  window.WidthInBytes = 3;
  window.Height = 2;
  expect_result(entry<PFN_cuMemcpy2D_v3020>("cuMemcpy2D")(&window), CUDA_SUCCESS);
  expect_result(to_host(bytes, buffer, sizeof bytes), CUDA_SUCCESS);
  for (size_t row = 0; row < kRows; ++row)
    for (size_t column = 0; column < kPitch; ++column) {
      int wanted = 1;
      if (row < 4 && column >= 2 && column < 8) wanted = column % 2 == 0 ? 2 : 3;
      if (row >= 5 && row < 7 && column >= 4 && column < 7) wanted = static_cast<int>(10 + (row - 5) * 3 + column - 4);
      expect_equal(static_cast<int>(bytes[row * kPitch + column]), wanted);
    }

  // Back from two slices of four rows each: rows 1 and 2 of either, columns 2 to 5.
  CUDA_MEMCPY3D box{};
  unsigned char part[2 * 2 * 4] = {};
  box.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
  box.srcDevice = buffer;
  box.srcXInBytes = 2;
  box.srcY = 1;
  box.srcPitch = kPitch;
  box.srcHeight = 4;
  box.dstMemoryType = CU_MEMORYTYPE_HOST;
  box.dstHost = part;
  box.dstPitch = 4;
  box.dstHeight = 2;
  box.WidthInBytes = 4;
  box.Height = 2;
  box.Depth = 2;
  expect_result(entry<PFN_cuMemcpy3D_v3020>("cuMemcpy3D")(&box), CUDA_SUCCESS);
  for (size_t slice = 0; slice < 2; ++slice)
    for (size_t row = 0; row < 2; ++row)
      expect(std::memcmp(part + (slice * 2 + row) * 4, bytes + (slice * 4 + row + 1) * kPitch + 2, 4) == 0, "a row");
  expect_result(entry<PFN_cuMemFree_v3020>("cuMemFree")(buffer), CUDA_SUCCESS);
}

static void what_pointers_are() {
  CUdeviceptr buffer;
  expect_result(entry<PFN_cuMemAlloc_v3020>("cuMemAlloc")(&buffer, 4096), CUDA_SUCCESS);
  const auto get = entry<PFN_cuPointerGetAttribute_v4000>("cuPointerGetAttribute");
  const auto get_all = entry<PFN_cuPointerGetAttributes_v7000>("cuPointerGetAttributes");
  CUcontext context = nullptr, current = nullptr;
  expect_result(get(&context, CU_POINTER_ATTRIBUTE_CONTEXT, buffer), CUDA_SUCCESS);
  expect_result(entry<PFN_cuCtxGetCurrent_v4000>("cuCtxGetCurrent")(&current), CUDA_SUCCESS);
  expect(context && context == current, "the context");
  CUpointer_attribute wanted[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,      CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                  CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE,
                                  CU_POINTER_ATTRIBUTE_IS_MANAGED,       CU_POINTER_ATTRIBUTE_DEVICE_POINTER};
  unsigned type = 77, managed = 77;
  int device = 77;
  CUdeviceptr start = 77, on_device = 77;
  size_t bytes = 77;
  void* values[] = {&type, &device, &start, &bytes, &managed, &on_device};
  expect_result(get_all(6, wanted, values, buffer + 100), CUDA_SUCCESS);
  expect(type == CU_MEMORYTYPE_DEVICE && device == 0 && start == buffer && bytes == 4096 && managed == 0,
         "of a buffer");
  int local = 0;
  expect_result(get(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, reinterpret_cast<CUdeviceptr>(&local)),
                CUDA_ERROR_INVALID_VALUE);
  // Of nobody's memory. Where it begins and ends is left open.
  start = 78;
  bytes = 78;
  expect_result(get_all(6, wanted, values, reinterpret_cast<CUdeviceptr>(&local)), CUDA_SUCCESS);
  expect_equal(type, 0u);
  expect_equal(device, int{CU_DEVICE_INVALID});
  expect_equal(start, CUdeviceptr{78});
  expect_equal(bytes, size_t{78});
  expect_equal(managed, 0u);
  expect_equal(on_device, CUdeviceptr{0});
  void* on_host = nullptr;
  void* value_on_host = &on_host;
  CUpointer_attribute host_pointer = CU_POINTER_ATTRIBUTE_HOST_POINTER;
  expect_result(get_all(1, &host_pointer, &value_on_host, reinterpret_cast<CUdeviceptr>(&local)), CUDA_SUCCESS);
  expect(on_host == &local, "memory of the host's own");
  expect_result(entry<PFN_cuMemFree_v3020>("cuMemFree")(buffer), CUDA_SUCCESS);
}

static void pools_and_streams() {
  // Pools need no context.
  const auto make_current = entry<PFN_cuCtxSetCurrent_v4000>("cuCtxSetCurrent");
  CUcontext before = nullptr;
  expect_result(entry<PFN_cuCtxGetCurrent_v4000>("cuCtxGetCurrent")(&before), CUDA_SUCCESS);
  expect_result(make_current(nullptr), CUDA_SUCCESS);
  CUmemoryPool pool = nullptr;
  expect_result(entry<PFN_cuDeviceGetDefaultMemPool_v11020>("cuDeviceGetDefaultMemPool")(&pool, 0), CUDA_SUCCESS);
  expect_result(make_current(before), CUDA_SUCCESS);
  cuuint64_t keep = 1 << 20, kept = 0;
  expect_result(
      entry<PFN_cuMemPoolSetAttribute_v11020>("cuMemPoolSetAttribute")(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep),
      CUDA_SUCCESS);
  expect_result(
      entry<PFN_cuMemPoolGetAttribute_v11020>("cuMemPoolGetAttribute")(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &kept),
      CUDA_SUCCESS);
  expect_equal(kept, keep);
  CUstream stream;
  expect_result(entry<PFN_cuStreamCreate_v2000>("cuStreamCreate")(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  CUdeviceptr buffer;
  expect_result(entry<PFN_cuMemAllocFromPoolAsync_v11020>("cuMemAllocFromPoolAsync")(&buffer, 256, pool, stream),
                CUDA_SUCCESS);
  expect_result(entry<PFN_cuMemFreeAsync_v11020>("cuMemFreeAsync")(buffer, stream), CUDA_SUCCESS);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  expect_result(entry<PFN_cuStreamIsCapturing_v10000>("cuStreamIsCapturing")(stream, &status), CUDA_SUCCESS);
  expect(status == CU_STREAM_CAPTURE_STATUS_NONE, "no capture");
  CUcontext context = nullptr, current = nullptr;
  expect_result(entry<PFN_cuStreamGetCtx_v9020>("cuStreamGetCtx")(stream, &context), CUDA_SUCCESS);
  expect_result(entry<PFN_cuCtxGetCurrent_v4000>("cuCtxGetCurrent")(&current), CUDA_SUCCESS);
  expect(context && context == current, "the stream's context");
  bool called = false;
  expect_result(entry<PFN_cuStreamAddCallback_v5000>("cuStreamAddCallback")(
                    stream, [](CUstream, CUresult, void* data) { *static_cast<bool*>(data) = true; }, &called, 0),
                CUDA_SUCCESS);
  expect_result(entry<PFN_cuStreamSynchronize_v2000>("cuStreamSynchronize")(stream), CUDA_SUCCESS);
  expect(called, "the callback");
  expect_result(entry<PFN_cuStreamDestroy_v4000>("cuStreamDestroy")(stream), CUDA_SUCCESS);
}

// Which functions of the runtime initialise the driver, and which make the context.
static void what_the_runtime_starts() {
  const auto in_fresh_process = [](auto&& body) {
    in_child([&] {
      void* driver = dlopen("libcuda.so.1", RTLD_NOW);
      const auto get = reinterpret_cast<PFN_cuDeviceGet_v2000>(dlsym(driver, "cuDeviceGet"));
      const auto current = reinterpret_cast<PFN_cuCtxGetCurrent_v4000>(dlsym(driver, "cuCtxGetCurrent"));
      body(
          [get] {
            CUdevice device;
            return get(&device, 0);
          },
          [current] {
            CUcontext context = nullptr;
            current(&context);
            return context != nullptr;
          });
    });
  };
  int number = 0;
  in_fresh_process([&](auto use_driver, auto) {
    expect_success(cudaRuntimeGetVersion(&number));
    expect_result(use_driver(), CUDA_ERROR_NOT_INITIALIZED);
    expect_success(cudaDriverGetVersion(&number));
    expect_result(use_driver(), CUDA_SUCCESS);
  });
  in_fresh_process([&](auto use_driver, auto has_context) {
    expect_success(cudaGetDeviceCount(&number));
    expect_result(use_driver(), CUDA_SUCCESS);
    expect(!has_context(), "counting devices makes no context");
    expect_success(cudaDeviceSynchronize());
    expect(has_context(), "cudaDeviceSynchronize makes the context");
  });
  in_fresh_process([&](auto use_driver, auto) {
    expect_success(cudaPeekAtLastError());
    expect_result(use_driver(), CUDA_SUCCESS);
  });
  struct Call {
    const char* name;
    cudaError_t (*call)();
    bool makes_context;
  };
  static size_t bytes;
  static cudaGraph_t graph;
  static cudaStreamCaptureStatus status;
  static cudaStreamCaptureMode mode;
  static cudaPointerAttributes attributes;
  const Call calls[] = {
      {"cudaStreamQuery", [] { return cudaStreamQuery(nullptr); }, true},
      {"priorities", [] { return cudaDeviceGetStreamPriorityRange(nullptr, nullptr); }, true},
      {"cudaDeviceGetLimit", [] { return cudaDeviceGetLimit(&bytes, cudaLimitStackSize); }, true},
      {"cudaSetDeviceFlags", [] { return cudaSetDeviceFlags(cudaDeviceScheduleYield); }, true},
      {"cudaFreeHost", [] { return cudaFreeHost(nullptr); }, true},
      {"cudaGraphCreate", [] { return cudaGraphCreate(&graph, 0); }, true},
      {"cudaStreamIsCapturing", [] { return cudaStreamIsCapturing(nullptr, &status); }, true},
      {"capture mode", [] { return cudaThreadExchangeStreamCaptureMode(&mode); }, true},
      {"cudaPointerGetAttributes", [] { return cudaPointerGetAttributes(&attributes, &bytes); }, false},
      {"cudaGetLastError", [] { return cudaGetLastError(); }, false},
  };
  for (const Call& call : calls)
    in_fresh_process([&](auto, auto has_context) {
      expect_success(call.call());
      expect(has_context() == call.makes_context, call.name);
    });
}

static void contexts() {
  const auto create = entry<PFN_cuCtxCreate_v12050>("cuCtxCreate", 12050);
  const auto create_with_affinity = entry<PFN_cuCtxCreate_v11040>("cuCtxCreate", 11040);
  CUexecAffinityParam few{.type = CU_EXEC_AFFINITY_TYPE_SM_COUNT, .param = {.smCount = {8}}};
  CUctxCigParam graphics{};
  const auto expect_context = [&](CUctxCreateParams parameters, CUresult wanted) {
    CUcontext context;
    expect_result(create(&context, &parameters, 0, 0), wanted);
    if (!parameters.cigParams)
      expect_result(
          create_with_affinity(&context, parameters.execAffinityParams, parameters.numExecAffinityParams, 0, 0),
          wanted);
  };
  expect_context({}, CUDA_SUCCESS);
  expect_context({&few, 0, nullptr}, CUDA_SUCCESS);
  expect_context({&few, 1, nullptr}, CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY);
  expect_context({nullptr, 1, nullptr}, CUDA_ERROR_INVALID_VALUE);
  expect_context({nullptr, 0, &graphics}, CUDA_ERROR_INVALID_VALUE);
  expect_context({&few, 1, &graphics}, CUDA_ERROR_NOT_SUPPORTED);
}

int main() {
  what_the_runtime_starts();
  modules();
  device();
  tensor_maps();
  libraries();
  linking();
  linking_what_is_refused();
  rows_and_slices();
  what_pointers_are();
  pools_and_streams();
  contexts();
  return result();
}
