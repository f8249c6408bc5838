// Driver API: memory and what is known of it. Device addresses are numbers here and pointers in the runtime API;
// otherwise the two are the same.

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
  return driver([&] {
    if (bytes) return cudaMalloc(to_pointer(address), bytes);
    return answer(Needs::no_capture, [](Runtime&) { throw ApiError{cudaErrorInvalidValue}; });
  });
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
      const auto allocation = runtime.memory_at(address);
      require(allocation.has_value(), cudaErrorSymbolNotFound);  // CUDA_ERROR_NOT_FOUND, as the driver
      if (base) *base = allocation->address;
      if (bytes) *bytes = allocation->bytes;
    });
  });
}

// Writes what `attribute` is of a place that CUDA knows; false for an attribute that is not emulated.
bool write_attribute(void* value, CUpointer_attribute attribute, const cudaPointerAttributes& found, uint64_t address,
                     const std::optional<GlobalMemory::Allocation>& allocation) {
  const bool host = found.type == cudaMemoryTypeHost;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      *static_cast<CUcontext*>(value) = primary_context();
      return true;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *static_cast<CUmemorytype*>(value) = host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
      return true;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      *static_cast<CUdeviceptr*>(value) = address;
      return true;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      require(found.hostPointer != nullptr);
      *static_cast<void**>(value) = found.hostPointer;
      return true;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      *static_cast<unsigned*>(value) = 0;
      return true;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      *static_cast<unsigned*>(value) = found.type == cudaMemoryTypeManaged;
      return true;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      *static_cast<int*>(value) = 0;
      return true;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      require(allocation.has_value());
      *static_cast<CUdeviceptr*>(value) = allocation->address;
      return true;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      require(allocation.has_value());
      *static_cast<size_t*>(value) = allocation->bytes;
      return true;
    case CU_POINTER_ATTRIBUTE_MAPPED:
      *static_cast<unsigned*>(value) = 1;
      return true;
    // No memory is shared with other processes or devices.
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      *static_cast<unsigned*>(value) = 0;
      return true;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      *static_cast<uint64_t*>(value) = 0;
      return true;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      *static_cast<unsigned*>(value) = CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
      return true;
    default:
      return false;
  }
}

void pointer_attribute_of(Runtime& runtime, void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  require(value != nullptr);
  cudaPointerAttributes found;
  if (const cudaError_t error = cudaPointerGetAttributes(&found, to_pointer(address))) throw ApiError{error};
  require(found.type != cudaMemoryTypeUnregistered);
  if (!write_attribute(value, attribute, found, address, runtime.memory_at(address)))
    throw ApiError{cudaErrorNotSupported, "pointer attribute " + std::to_string(static_cast<int>(attribute)) +
                                              " of the driver API is not emulated"};
}

CUresult pointer_attribute(void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  return driver(
      [&] { return answer([&](Runtime& runtime) { pointer_attribute_of(runtime, value, attribute, address); }); });
}

// Of a place that CUDA does not know, most attributes are zero.
CUresult pointer_attributes(unsigned count, CUpointer_attribute* attributes, void** values, CUdeviceptr address) {
  return driver([&] {
    return answer([&](Runtime& runtime) {
      require(count && attributes && values);
      cudaPointerAttributes found;
      if (const cudaError_t error = cudaPointerGetAttributes(&found, to_pointer(address))) throw ApiError{error};
      for (unsigned i = 0; i < count; ++i) {
        if (found.type != cudaMemoryTypeUnregistered) {
          if (attributes[i] == CU_POINTER_ATTRIBUTE_HOST_POINTER && !found.hostPointer)
            *static_cast<void**>(values[i]) = nullptr;
          else
            pointer_attribute_of(runtime, values[i], attributes[i], address);
          continue;
        }
        switch (attributes[i]) {
          case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
            *static_cast<int*>(values[i]) = CU_DEVICE_INVALID;
            break;
          case CU_POINTER_ATTRIBUTE_HOST_POINTER:
            *static_cast<void**>(values[i]) = found.hostPointer;
            break;
          case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
          case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
            break;  // left as they were
          case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
          case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
          case CU_POINTER_ATTRIBUTE_IS_MANAGED:
          case CU_POINTER_ATTRIBUTE_MAPPED:
          case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
          case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
          case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
            *static_cast<unsigned*>(values[i]) = 0;
            break;
          default:
            *static_cast<uint64_t*>(values[i]) = 0;
        }
      }
    });
  });
}

// Copies of memory that asks for it would wait; here each copy waits for all that it must anyway.
CUresult set_pointer_attribute(const void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  return driver([&] {
    return answer([&](Runtime& runtime) {
      require(value && attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS && runtime.device().memory().find(address));
    });
  });
}

// -------------------------------------------------------------------------------------------------------------------
// pools

static_assert(sizeof(CUmemPoolProps) == sizeof(cudaMemPoolProps) && sizeof(CUmemLocation) == sizeof(cudaMemLocation) &&
                  sizeof(CUmemAccessDesc) == sizeof(cudaMemAccessDesc),
              "the two APIs share these");

CUresult alloc_from_pool(CUdeviceptr* address, size_t bytes, CUmemoryPool pool, CUstream stream) {
  return driver([&] { return cudaMallocFromPoolAsync(to_pointer(address), bytes, pool, stream); });
}
// Pools belong to the device: asking for them, making and setting them needs no context (an H200).
CUresult without_context(auto&& body) {
  return driver(body, false);
}
CUresult default_pool(CUmemoryPool* pool, CUdevice device) {
  return without_context([&] { return cudaDeviceGetDefaultMemPool(pool, device); });
}
CUresult current_pool(CUmemoryPool* pool, CUdevice device) {
  return without_context([&] { return cudaDeviceGetMemPool(pool, device); });
}
CUresult set_current_pool(CUdevice device, CUmemoryPool pool) {
  return without_context([&] { return cudaDeviceSetMemPool(device, pool); });
}
CUresult pool_create(CUmemoryPool* pool, const CUmemPoolProps* properties) {
  return without_context(
      [&] { return cudaMemPoolCreate(pool, reinterpret_cast<const cudaMemPoolProps*>(properties)); });
}
CUresult pool_destroy(CUmemoryPool pool) {
  return without_context([&] { return cudaMemPoolDestroy(pool); });
}
CUresult pool_trim(CUmemoryPool pool, size_t bytes) {
  return without_context([&] { return cudaMemPoolTrimTo(pool, bytes); });
}
CUresult pool_attribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  return without_context([&] { return cudaMemPoolGetAttribute(pool, static_cast<cudaMemPoolAttr>(attribute), value); });
}
CUresult set_pool_attribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  return without_context([&] { return cudaMemPoolSetAttribute(pool, static_cast<cudaMemPoolAttr>(attribute), value); });
}
CUresult set_pool_access(CUmemoryPool pool, const CUmemAccessDesc* map, size_t count) {
  return without_context(
      [&] { return cudaMemPoolSetAccess(pool, reinterpret_cast<const cudaMemAccessDesc*>(map), count); });
}
CUresult pool_access(CUmemAccess_flags* flags, CUmemoryPool pool, CUmemLocation* location) {
  return without_context([&] {
    return cudaMemPoolGetAccess(reinterpret_cast<cudaMemAccessFlags*>(flags), pool,
                                reinterpret_cast<cudaMemLocation*>(location));
  });
}

// -------------------------------------------------------------------------------------------------------------------
// hints on managed memory

cudaMemLocation to_runtime(CUmemLocation location) {
  return {static_cast<cudaMemLocationType>(location.type), {location.id}};
}
CUmemLocation location_of(CUdevice device) {
  return {device == CU_DEVICE_CPU ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE, {device}};
}

CUresult advise(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUmemLocation location) {
  return driver([&] {
    return cudaMemAdvise(to_pointer(address), bytes, static_cast<cudaMemoryAdvise>(advice), to_runtime(location));
  });
}
CUresult advise_old(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUdevice device) {
  return advise(address, bytes, advice, location_of(device));
}
CUresult prefetch(CUdeviceptr address, size_t bytes, CUmemLocation location, unsigned flags, CUstream stream) {
  return driver([&] { return cudaMemPrefetchAsync(to_pointer(address), bytes, to_runtime(location), flags, stream); });
}
CUresult prefetch_old(CUdeviceptr address, size_t bytes, CUdevice device, CUstream stream) {
  return prefetch(address, bytes, location_of(device), 0, stream);
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
      entry<PFN_cuPointerGetAttributes_v7000>("cuPointerGetAttributes", 7000, pointer_attributes),
      entry<PFN_cuPointerSetAttribute_v6000>("cuPointerSetAttribute", 6000, set_pointer_attribute),
      entry<PFN_cuMemAllocFromPoolAsync_v11020>("cuMemAllocFromPoolAsync", 11020, alloc_from_pool),
      entry<PFN_cuDeviceGetDefaultMemPool_v11020>("cuDeviceGetDefaultMemPool", 11020, default_pool),
      entry<PFN_cuDeviceGetMemPool_v11020>("cuDeviceGetMemPool", 11020, current_pool),
      entry<PFN_cuDeviceSetMemPool_v11020>("cuDeviceSetMemPool", 11020, set_current_pool),
      entry<PFN_cuMemPoolCreate_v11020>("cuMemPoolCreate", 11020, pool_create),
      entry<PFN_cuMemPoolDestroy_v11020>("cuMemPoolDestroy", 11020, pool_destroy),
      entry<PFN_cuMemPoolTrimTo_v11020>("cuMemPoolTrimTo", 11020, pool_trim),
      entry<PFN_cuMemPoolGetAttribute_v11020>("cuMemPoolGetAttribute", 11020, pool_attribute),
      entry<PFN_cuMemPoolSetAttribute_v11020>("cuMemPoolSetAttribute", 11020, set_pool_attribute),
      entry<PFN_cuMemPoolSetAccess_v11020>("cuMemPoolSetAccess", 11020, set_pool_access),
      entry<PFN_cuMemPoolGetAccess_v11020>("cuMemPoolGetAccess", 11020, pool_access),
      entry<PFN_cuMemAdvise_v8000>("cuMemAdvise", 8000, advise_old),
      entry<PFN_cuMemAdvise_v12020>("cuMemAdvise", 12020, advise),
      entry<PFN_cuMemPrefetchAsync_v8000>("cuMemPrefetchAsync", 8000, prefetch_old),
      entry<PFN_cuMemPrefetchAsync_v12020>("cuMemPrefetchAsync", 12020, prefetch),
  };
  return table;
}

}  // namespace emu::runtime
