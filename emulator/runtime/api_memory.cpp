// Allocating and freeing: device, pinned, managed, registered, pools.

#include <fmt/format.h>

#include <cstring>

#include "emulator/runtime/api.h"

using namespace emu::runtime;

namespace {

uint64_t address_of(const void* pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}

/// A capture does not forbid to allocate nothing.
Needs unless_empty(size_t bytes) {
  return bytes ? Needs::no_capture : Needs::context;
}

void* allocate(Runtime& runtime, size_t bytes, const char* what) {
  emu::GlobalMemory& memory = runtime.device().memory();
  uint64_t address = memory.allocate(bytes, what);
  if (address == 0) {
    // What cudaFreeAsync gave back may still be waiting for its turn.
    runtime.queue.wait_all();
    address = memory.allocate(bytes, what);
  }
  if (address == 0) throw ApiError{cudaErrorMemoryAllocation};
  return reinterpret_cast<void*>(address);
}

// The row length that cudaMallocPitch and cudaMalloc3D choose. 512 on an H200.
constexpr size_t kPitchAlignment = 512;
size_t pitch_for(size_t width_bytes) {
  return (width_bytes + kPitchAlignment - 1) / kPitchAlignment * kPitchAlignment;
}

void allocate_from(Runtime& runtime, void** pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream) {
  require(pointer != nullptr);
  *pointer = nullptr;
  const auto in = runtime.streams.find(stream);
  runtime.pools.attribute(pool, cudaMemPoolAttrUsedMemCurrent);  // throws when there is no such pool
  runtime.device();
  const bool as_node = runtime.streams.captures(*in);
  if (!as_node) runtime.streams.refuse_unsafe_call();
  if (bytes == 0) return;
  if (as_node) {
    cudaMemAllocNodeParams what{};
    what.poolProps.allocType = cudaMemAllocationTypePinned;
    what.poolProps.location = {cudaMemLocationTypeDevice, 0};
    what.bytesize = bytes;
    *pointer = add_allocation_node(runtime, *in, what);
    return;
  }
  *pointer = allocate(runtime, bytes, "cudaMallocAsync");
  runtime.pools.allocated(pool, address_of(*pointer), bytes);
}

}  // namespace

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  return answer(unless_empty(bytes), [&](Runtime& runtime) {
    require(pointer != nullptr);
    *pointer = nullptr;
    runtime.device();
    if (bytes) *pointer = allocate(runtime, bytes, "cudaMalloc");
  });
}

cudaError_t cudaFree(void* pointer) {
  return answer(Needs::no_capture, [&](Runtime& runtime) {
    emu::Device& device = runtime.device();  // cudaFree(0) is how programs make the context
    if (!pointer) return;
    runtime.queue.wait_all();
    if (runtime.sticky_error() != cudaSuccess) return;
    if (runtime.host_memory.release(device, pointer, HostKind::managed)) return;
    if (const auto memory = runtime.graph_memory.begin_free(address_of(pointer)))
      return runtime.graph_memory.release(*memory);
    const auto* allocation = device.memory().find(address_of(pointer));
    require(allocation && allocation->what.starts_with("cudaMalloc"));  // and not a module's variable
    require(device.memory().release(address_of(pointer)));
    runtime.pools.freed(address_of(pointer));
  });
}

cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width_bytes, size_t height) {
  return answer(Needs::no_capture, [&](Runtime& runtime) {
    require(pointer && pitch);
    *pointer = nullptr;
    *pitch = pitch_for(width_bytes);
    runtime.device();
    if (width_bytes && height) *pointer = allocate(runtime, *pitch * height, "cudaMallocPitch");
  });
}

cudaError_t cudaMalloc3D(cudaPitchedPtr* pitched, cudaExtent extent) {
  return answer(Needs::no_capture, [&](Runtime& runtime) {
    require(pitched != nullptr);
    *pitched = {nullptr, pitch_for(extent.width), extent.width, extent.height};
    runtime.device();
    if (extent.width && extent.height && extent.depth)
      pitched->ptr = allocate(runtime, pitched->pitch * extent.height * extent.depth, "cudaMalloc3D");
  });
}

cudaError_t cudaMallocHost(void** pointer, size_t bytes) {
  return cudaHostAlloc(pointer, bytes, cudaHostAllocDefault);
}

cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned flags) {
  return answer(unless_empty(bytes), [&](Runtime& runtime) {
    constexpr unsigned known = cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;
    require(pointer && (flags & ~known) == 0);
    *pointer = nullptr;
    emu::Device& device = runtime.device();
    if (bytes) *pointer = runtime.host_memory.allocate(device, bytes, HostKind::pinned, flags | cudaHostAllocMapped);
  });
}

cudaError_t cudaFreeHost(void* pointer) {
  return answer(Needs::no_capture, [&](Runtime& runtime) {
    emu::Device& device = runtime.device();
    if (!pointer) return;
    runtime.queue.wait_all();
    if (runtime.sticky_error() != cudaSuccess) return;
    require(runtime.host_memory.release(device, pointer, HostKind::pinned));
  });
}

cudaError_t cudaMallocManaged(void** pointer, size_t bytes, unsigned flags) {
  return answer(unless_empty(bytes), [&](Runtime& runtime) {
    require(pointer && (flags == cudaMemAttachGlobal || flags == cudaMemAttachHost));
    *pointer = nullptr;
    emu::Device& device = runtime.device();
    if (bytes) *pointer = runtime.host_memory.allocate(device, bytes, HostKind::managed, flags);
  });
}

cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned flags) {
  return answer(Needs::no_capture, [&](Runtime& runtime) {
    constexpr unsigned known =
        cudaHostRegisterPortable | cudaHostRegisterMapped | cudaHostRegisterIoMemory | cudaHostRegisterReadOnly;
    require(pointer && bytes && (flags & ~known) == 0);
    runtime.host_memory.enter(runtime.device(), pointer, bytes, flags | cudaHostRegisterMapped);
  });
}

cudaError_t cudaHostUnregister(void* pointer) {
  return answer(Needs::no_capture, [&](Runtime& runtime) {
    require(pointer != nullptr);
    runtime.queue.wait_all();
    if (runtime.host_memory.release(runtime.device(), pointer, HostKind::registered)) return;
    throw ApiError{runtime.host_memory.find(pointer) ? cudaErrorInvalidValue : cudaErrorHostMemoryNotRegistered};
  });
}

cudaError_t cudaHostGetDevicePointer(void** device_pointer, void* pointer, unsigned flags) {
  return answer([&](Runtime& runtime) {
    require(device_pointer && flags == 0 && runtime.host_memory.find(pointer));
    *device_pointer = pointer;
  });
}

cudaError_t cudaHostGetFlags(unsigned* flags, void* pointer) {
  return answer([&](Runtime& runtime) {
    const auto block = runtime.host_memory.find(pointer);
    require(flags && block && block->kind != HostKind::managed);
    *flags = block->flags;
  });
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  return answer([&](Runtime& runtime) {
    const emu::GlobalMemory& memory = runtime.device().memory();
    if (free) *free = memory.capacity_bytes() - memory.used_bytes();
    if (total) *total = memory.capacity_bytes();
  });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  return answer(Needs::nothing, [&](Runtime& runtime) {
    require(attributes != nullptr);
    std::memset(attributes, 0, sizeof *attributes);
    void* const same = const_cast<void*>(pointer);
    if (const auto block = runtime.host_memory.find(pointer)) {
      attributes->type = block->kind == HostKind::managed ? cudaMemoryTypeManaged : cudaMemoryTypeHost;
      attributes->devicePointer = attributes->hostPointer = same;
    } else if (runtime.has_context() && runtime.memory_at(address_of(pointer))) {
      attributes->type = cudaMemoryTypeDevice;
      attributes->devicePointer = same;
    } else {
      attributes->type = cudaMemoryTypeUnregistered;
      attributes->device = cudaInvalidDeviceId;
      attributes->hostPointer = same;
    }
  });
}

// ------------------------------------------------------------------------------------------------ stream-ordered
// allocation

cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t stream) {
  return answer([&](Runtime& runtime) { allocate_from(runtime, pointer, bytes, runtime.pools.current(), stream); });
}

cudaError_t cudaMallocFromPoolAsync(void** pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream) {
  return answer([&](Runtime& runtime) { allocate_from(runtime, pointer, bytes, pool, stream); });
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  return answer([&](Runtime& runtime) {
    const auto in = runtime.streams.find(stream);
    emu::Device& device = runtime.device();
    const bool as_node = runtime.streams.captures(*in);
    if (!as_node) runtime.streams.refuse_unsafe_call();
    if (!pointer) return;
    if (as_node) return add_free_node(runtime, *in, pointer);
    const uint64_t address = address_of(pointer);
    if (const auto memory = runtime.graph_memory.begin_free(address)) {
      runtime.streams.submit(*in, [&runtime, memory] { runtime.graph_memory.release(*memory); });
      return;
    }
    const auto* allocation = device.memory().find(address);
    require(allocation && allocation->address == address && allocation->what.starts_with("cudaMalloc"));
    require(runtime.pools.begin_free(address));
    runtime.streams.submit(*in, [&runtime, &device, address] {
      device.memory().release(address);
      runtime.pools.freed(address);
    });
  });
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  return answer([&](Runtime& runtime) {
    require_device(device);
    require(pool != nullptr);
    *pool = runtime.pools.default_pool();
  });
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  return answer([&](Runtime& runtime) {
    require_device(device);
    require(pool != nullptr);
    *pool = runtime.pools.current();
  });
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
  return answer(Needs::no_capture, [&](Runtime& runtime) {
    require_device(device);
    runtime.pools.set_current(pool);
  });
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  return answer(Needs::no_capture, [&](Runtime& runtime) {
    require(pool && properties);
    require_of_device(*properties);
    *pool = runtime.pools.create();
  });
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  return answer(Needs::no_capture, [&](Runtime& runtime) { runtime.pools.destroy(pool); });
}

// Nothing is kept back, so there is nothing to trim.
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t) {
  return answer(Needs::no_capture,
                [&](Runtime& runtime) { runtime.pools.attribute(pool, cudaMemPoolAttrUsedMemCurrent); });
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return answer(Needs::no_capture, [&](Runtime& runtime) {
    require(value != nullptr);
    const uint64_t found = runtime.pools.attribute(pool, attribute);
    if (attribute <= cudaMemPoolReuseAllowInternalDependencies) {
      *static_cast<int*>(value) = static_cast<int>(found);
    } else {
      *static_cast<uint64_t*>(value) = found;
    }
  });
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return answer(Needs::no_capture, [&](Runtime& runtime) {
    require(value != nullptr);
    const bool is_int = attribute <= cudaMemPoolReuseAllowInternalDependencies;
    runtime.pools.set_attribute(
        pool, attribute, is_int ? static_cast<uint64_t>(*static_cast<int*>(value)) : *static_cast<uint64_t*>(value));
  });
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* descriptions, size_t count) {
  return answer(Needs::no_capture, [&](Runtime& runtime) {
    runtime.pools.attribute(pool, cudaMemPoolAttrUsedMemCurrent);
    require(descriptions || count == 0);
    for (size_t i = 0; i < count; ++i) {
      require(descriptions[i].location.type == cudaMemLocationTypeDevice && descriptions[i].location.id == 0);
      require(descriptions[i].flags == cudaMemAccessFlagsProtReadWrite);  // a device cannot lose access to its own pool
    }
  });
}

cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags* flags, cudaMemPool_t pool, cudaMemLocation* location) {
  return answer(Needs::no_capture, [&](Runtime& runtime) {
    runtime.pools.attribute(pool, cudaMemPoolAttrUsedMemCurrent);
    require(flags && location && location->type == cudaMemLocationTypeDevice && location->id == 0);
    *flags = cudaMemAccessFlagsProtReadWrite;
  });
}

// ---------------------------------------------------------------------------------------------------- hints on managed
// memory

cudaError_t cudaMemAdvise(const void* pointer, size_t bytes, cudaMemoryAdvise, cudaMemLocation) {
  return answer([&](Runtime& runtime) {
    const auto block = runtime.host_memory.find(pointer);
    require(bytes && block && block->kind == HostKind::managed);
  });
}

cudaError_t cudaMemPrefetchAsync(const void* pointer, size_t bytes, cudaMemLocation, unsigned flags,
                                 cudaStream_t stream) {
  return answer([&](Runtime& runtime) {
    const auto in = runtime.streams.find(stream);
    const auto block = runtime.host_memory.find(pointer);
    require(bytes && flags == 0 && block && block->kind == HostKind::managed);
    runtime.streams.submit(*in, [] {});
  });
}

cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void* pointer, size_t, unsigned flags) {
  return answer([&](Runtime& runtime) {
    const auto in = runtime.streams.find(stream);
    const auto block = runtime.host_memory.find(pointer);
    require(block && block->kind == HostKind::managed);
    require(flags == cudaMemAttachGlobal || flags == cudaMemAttachHost || flags == cudaMemAttachSingle);
    runtime.streams.submit(*in, [] {});
  });
}
