// Driver API: memory. Device addresses are numbers here and pointers in the runtime API; otherwise the two are the
// same.

#include "emulator/runtime/api_copy.h"
#include "emulator/runtime/driver_table.h"

namespace emu::runtime {
namespace {

void* to_pointer(CUdeviceptr address) {
  return reinterpret_cast<void*>(address);
}
void** to_pointer(CUdeviceptr* address) {
  return reinterpret_cast<void**>(address);
}

CUresult alloc(CUdeviceptr* address, size_t bytes) {
  return driver([&] { return bytes ? cudaMalloc(to_pointer(address), bytes) : cudaErrorInvalidValue; });
}
CUresult alloc_pitch(CUdeviceptr* address, size_t* pitch, size_t width, size_t height, unsigned) {
  return driver([&] { return cudaMallocPitch(to_pointer(address), pitch, width, height); });
}
CUresult free_device(CUdeviceptr address) {
  return driver([&] { return cudaFree(to_pointer(address)); });
}
CUresult alloc_managed(CUdeviceptr* address, size_t bytes, unsigned flags) {
  return driver([&] { return cudaMallocManaged(to_pointer(address), bytes, flags); });
}
CUresult alloc_async(CUdeviceptr* address, size_t bytes, CUstream stream) {
  return driver([&] { return cudaMallocAsync(to_pointer(address), bytes, stream); });
}
CUresult free_async(CUdeviceptr address, CUstream stream) {
  return driver([&] { return cudaFreeAsync(to_pointer(address), stream); });
}
CUresult alloc_host(void** pointer, size_t bytes) {
  return driver([&] { return cudaMallocHost(pointer, bytes); });
}
CUresult host_alloc(void** pointer, size_t bytes, unsigned flags) {
  return driver([&] { return cudaHostAlloc(pointer, bytes, flags); });
}
CUresult free_host(void* pointer) {
  return driver([&] { return cudaFreeHost(pointer); });
}
CUresult host_register(void* pointer, size_t bytes, unsigned flags) {
  return driver([&] { return cudaHostRegister(pointer, bytes, flags); });
}
CUresult host_unregister(void* pointer) {
  return driver([&] { return cudaHostUnregister(pointer); });
}
CUresult host_device_pointer(CUdeviceptr* address, void* pointer, unsigned flags) {
  return driver([&] { return cudaHostGetDevicePointer(to_pointer(address), pointer, flags); });
}
CUresult host_flags(unsigned* flags, void* pointer) {
  return driver([&] { return cudaHostGetFlags(flags, pointer); });
}
CUresult memory_info(size_t* free, size_t* total) {
  return driver([&] { return cudaMemGetInfo(free, total); });
}

CUresult address_range(CUdeviceptr* base, size_t* bytes, CUdeviceptr address) {
  return driver([&] {
    return answer([&](Runtime& runtime) {
      const auto* allocation = runtime.device().memory().find(address);
      require(allocation != nullptr, cudaErrorSymbolNotFound);  // CUDA_ERROR_NOT_FOUND, as the driver
      if (base) *base = allocation->address;
      if (bytes) *bytes = allocation->bytes;
    });
  });
}

CUresult pointer_attribute(void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  return driver([&]() -> cudaError_t {
    cudaPointerAttributes found;
    if (!value) return cudaErrorInvalidValue;
    if (const cudaError_t error = cudaPointerGetAttributes(&found, to_pointer(address))) return error;
    if (found.type == cudaMemoryTypeUnregistered) return cudaErrorInvalidValue;
    switch (attribute) {
      case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *static_cast<CUmemorytype*>(value) =
            found.type == cudaMemoryTypeHost ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        return cudaSuccess;
      case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *static_cast<CUdeviceptr*>(value) = address;
        return cudaSuccess;
      case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        if (!found.hostPointer) return cudaErrorInvalidValue;
        *static_cast<void**>(value) = found.hostPointer;
        return cudaSuccess;
      case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *static_cast<unsigned*>(value) = found.type == cudaMemoryTypeManaged;
        return cudaSuccess;
      case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *static_cast<int*>(value) = 0;
        return cudaSuccess;
      default:
        say("cuPointerGetAttribute: attribute " + std::to_string(static_cast<int>(attribute)) + " is not emulated");
        return cudaErrorNotSupported;
    }
  });
}

// -------------------------------------------------------------------------------------------------------------------
// copies

CUresult copy_plain(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return driver([&] { return cudaMemcpy(to, from, bytes, kind); });
}
CUresult copy_async(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, CUstream stream) {
  return driver([&] { return cudaMemcpyAsync(to, from, bytes, kind, stream); });
}

CUresult copy_any(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return copy_plain(to_pointer(to), to_pointer(from), bytes, cudaMemcpyDefault);
}
CUresult copy_any_async(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy_async(to_pointer(to), to_pointer(from), bytes, cudaMemcpyDefault, stream);
}
CUresult copy_to_device(CUdeviceptr to, const void* from, size_t bytes) {
  return copy_plain(to_pointer(to), from, bytes, cudaMemcpyHostToDevice);
}
CUresult copy_to_device_async(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  return copy_async(to_pointer(to), from, bytes, cudaMemcpyHostToDevice, stream);
}
CUresult copy_to_host(void* to, CUdeviceptr from, size_t bytes) {
  return copy_plain(to, to_pointer(from), bytes, cudaMemcpyDeviceToHost);
}
CUresult copy_to_host_async(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy_async(to, to_pointer(from), bytes, cudaMemcpyDeviceToHost, stream);
}
CUresult copy_in_device(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return copy_plain(to_pointer(to), to_pointer(from), bytes, cudaMemcpyDeviceToDevice);
}
CUresult copy_in_device_async(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy_async(to_pointer(to), to_pointer(from), bytes, cudaMemcpyDeviceToDevice, stream);
}

// --------------------------------------------------------------------------------------------------------------------
// fills

CUresult fill_elements(CUdeviceptr to, uint32_t value, size_t value_bytes, size_t count, CUstream stream, Wait wait) {
  return driver([&] {
    return answer([&](Runtime& runtime) {
      require(to % value_bytes == 0);
      const size_t bytes = count * value_bytes;
      fill(runtime, {to_pointer(to), bytes, bytes}, value, value_bytes, {bytes}, *runtime.streams.find(stream), wait);
    });
  });
}

CUresult fill_8(CUdeviceptr to, unsigned char value, size_t count) {
  return fill_elements(to, value, 1, count, CU_STREAM_LEGACY, Wait::as_the_plain_call);
}
CUresult fill_16(CUdeviceptr to, unsigned short value, size_t count) {
  return fill_elements(to, value, 2, count, CU_STREAM_LEGACY, Wait::as_the_plain_call);
}
CUresult fill_32(CUdeviceptr to, unsigned value, size_t count) {
  return fill_elements(to, value, 4, count, CU_STREAM_LEGACY, Wait::as_the_plain_call);
}
CUresult fill_8_async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
  return fill_elements(to, value, 1, count, stream, Wait::as_the_async_call);
}
CUresult fill_16_async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream) {
  return fill_elements(to, value, 2, count, stream, Wait::as_the_async_call);
}
CUresult fill_32_async(CUdeviceptr to, unsigned value, size_t count, CUstream stream) {
  return fill_elements(to, value, 4, count, stream, Wait::as_the_async_call);
}

}  // namespace

std::span<const DriverFunction> driver_functions_of_memory() {
  static const DriverFunction table[] = {
      entry<PFN_cuMemAlloc_v3020>("cuMemAlloc", 2000, alloc),
      entry<PFN_cuMemAllocPitch_v3020>("cuMemAllocPitch", 3020, alloc_pitch),
      entry<PFN_cuMemFree_v3020>("cuMemFree", 3020, free_device),
      entry<PFN_cuMemAllocManaged_v6000>("cuMemAllocManaged", 6000, alloc_managed),
      entry<PFN_cuMemAllocAsync_v11020>("cuMemAllocAsync", 11020, alloc_async),
      entry<PFN_cuMemFreeAsync_v11020>("cuMemFreeAsync", 11020, free_async),
      entry<PFN_cuMemAllocHost_v3020>("cuMemAllocHost", 3020, alloc_host),
      entry<PFN_cuMemHostAlloc_v2020>("cuMemHostAlloc", 2020, host_alloc),
      entry<PFN_cuMemFreeHost_v2000>("cuMemFreeHost", 2000, free_host),
      entry<PFN_cuMemHostRegister_v6050>("cuMemHostRegister", 4000, host_register),
      entry<PFN_cuMemHostUnregister_v4000>("cuMemHostUnregister", 4000, host_unregister),
      entry<PFN_cuMemHostGetDevicePointer_v3020>("cuMemHostGetDevicePointer", 3020, host_device_pointer),
      entry<PFN_cuMemHostGetFlags_v2030>("cuMemHostGetFlags", 2030, host_flags),
      entry<PFN_cuMemGetInfo_v3020>("cuMemGetInfo", 3020, memory_info),
      entry<PFN_cuMemGetAddressRange_v3020>("cuMemGetAddressRange", 3020, address_range),
      entry<PFN_cuPointerGetAttribute_v4000>("cuPointerGetAttribute", 4000, pointer_attribute),
      entry<PFN_cuMemcpy_v4000>("cuMemcpy", 4000, copy_any),
      entry<PFN_cuMemcpyAsync_v4000>("cuMemcpyAsync", 4000, copy_any_async),
      entry<PFN_cuMemcpyHtoD_v3020>("cuMemcpyHtoD", 3020, copy_to_device),
      entry<PFN_cuMemcpyHtoDAsync_v3020>("cuMemcpyHtoDAsync", 3020, copy_to_device_async),
      entry<PFN_cuMemcpyDtoH_v3020>("cuMemcpyDtoH", 3020, copy_to_host),
      entry<PFN_cuMemcpyDtoHAsync_v3020>("cuMemcpyDtoHAsync", 3020, copy_to_host_async),
      entry<PFN_cuMemcpyDtoD_v3020>("cuMemcpyDtoD", 3020, copy_in_device),
      entry<PFN_cuMemcpyDtoDAsync_v3020>("cuMemcpyDtoDAsync", 3020, copy_in_device_async),
      entry<PFN_cuMemsetD8_v3020>("cuMemsetD8", 3020, fill_8),
      entry<PFN_cuMemsetD16_v3020>("cuMemsetD16", 3020, fill_16),
      entry<PFN_cuMemsetD32_v3020>("cuMemsetD32", 3020, fill_32),
      entry<PFN_cuMemsetD8Async_v3020>("cuMemsetD8Async", 3020, fill_8_async),
      entry<PFN_cuMemsetD16Async_v3020>("cuMemsetD16Async", 3020, fill_16_async),
      entry<PFN_cuMemsetD32Async_v3020>("cuMemsetD32Async", 3020, fill_32_async),
  };
  return table;
}

}  // namespace emu::runtime
