// The device: how many (one), what it can, and the context on it.

#include <fmt/format.h>

#include <cstring>

#include "emulator/runtime/api.h"
#include "emulator/runtime/properties.h"

using namespace emu::runtime;

// Version of the driver that the emulator stands in for: the toolkit's own.
cudaError_t cudaDriverGetVersion(int* version) {
  return answer(Needs::nothing, [&](Runtime&) {
    require(version != nullptr);
    *version = CUDART_VERSION;
  });
}

// Alone among the runtime's functions, this one leaves the driver as it is.
cudaError_t cudaRuntimeGetVersion(int* version) {
  if (!version) return remember(cudaErrorInvalidValue);
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  return answer(Needs::nothing, [&](Runtime& runtime) {
    require(count != nullptr);
    runtime.chip();
    *count = 1;
  });
}

cudaError_t cudaGetDevice(int* device) {
  return answer(Needs::nothing, [&](Runtime&) {
    require(device != nullptr);
    *device = 0;
  });
}

cudaError_t cudaSetDevice(int device) {
  return answer(Needs::nothing, [&](Runtime& runtime) {
    require_device(device);
    runtime.device();  // since CUDA 12, this makes the context
  });
}

cudaError_t cudaInitDevice(int device, unsigned, unsigned flags) {
  return answer([&](Runtime& runtime) {
    require_device(device);
    require(flags == 0 || flags == cudaInitDeviceFlagsAreValid);
    runtime.device();
  });
}

cudaError_t cudaSetValidDevices(int* devices, int count) {
  return answer(Needs::nothing, [&](Runtime&) {
    require(count >= 0 && (devices || count == 0));
    for (int i = 0; i < count; ++i) require_device(devices[i]);
  });
}

cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp* wanted) {
  return answer(Needs::nothing, [&](Runtime&) {
    require(device && wanted);
    *device = 0;
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return answer(Needs::nothing, [&](Runtime& runtime) {
    require(properties != nullptr);
    require_device(device);
    *properties = device_properties(runtime.chip());
  });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return answer(Needs::nothing, [&](Runtime& runtime) {
    require(value != nullptr);
    require_device(device);
    const auto found = device_attribute(runtime.chip(), attribute);
    require(found.has_value());
    *value = *found;
  });
}

cudaError_t cudaDeviceSynchronize() {
  return answer([&](Runtime& runtime) {
    runtime.device();
    runtime.streams.refuse_while_capturing();
    runtime.queue.wait_all();
  });
}

cudaError_t cudaDeviceReset() {
  return answer(Needs::nothing, [&](Runtime& runtime) { runtime.reset(); });
}

cudaError_t cudaSetDeviceFlags(unsigned flags) {
  return answer(Needs::nothing, [&](Runtime& runtime) {
    const unsigned schedule = flags & cudaDeviceScheduleMask;
    const bool one_schedule = (schedule & (schedule - 1)) == 0;
    require((flags & ~unsigned{cudaDeviceMask}) == 0 && one_schedule);
    runtime.device();
    runtime.settings.device_flags = flags;
  });
}

cudaError_t cudaGetDeviceFlags(unsigned* flags) {
  return answer(Needs::nothing, [&](Runtime& runtime) {
    require(flags != nullptr);
    *flags = runtime.settings.device_flags | cudaDeviceMapHost;
  });
}

cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
  return answer([&](Runtime& runtime) {
    runtime.device();
    require(value && static_cast<unsigned>(limit) < runtime.settings.limits.size());
    const auto& found = runtime.settings.limits[limit];
    require(found.has_value(), cudaErrorUnsupportedLimit);
    *value = *found;
  });
}

cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
  return answer(Needs::no_capture, [&](Runtime& runtime) {
    require(static_cast<unsigned>(limit) < runtime.settings.limits.size());
    auto& found = runtime.settings.limits[limit];
    require(found.has_value(), cudaErrorUnsupportedLimit);
    if (limit == cudaLimitMallocHeapSize && !runtime.device().heap().set_bytes(value))
      throw ApiError{cudaErrorInvalidValue,
                     "cudaLimitMallocHeapSize: a kernel has used malloc() already; set it before the first one does"};
    found = value;
  });
}

cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config) {
  return answer([&](Runtime& runtime) {
    require(config != nullptr);
    *config = runtime.settings.cache_config;
  });
}

cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache config) {
  return answer(Needs::no_capture, [&](Runtime& runtime) {
    require(config >= cudaFuncCachePreferNone && config <= cudaFuncCachePreferEqual);
    runtime.settings.cache_config = config;
  });
}

// The chips emulated have one bank size.
cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* config) {
  return answer([&](Runtime&) {
    require(config != nullptr);
    *config = cudaSharedMemBankSizeFourByte;
  });
}

cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig config) {
  return answer(
      [&](Runtime&) { require(config >= cudaSharedMemBankSizeDefault && config <= cudaSharedMemBankSizeEightByte); });
}

cudaError_t cudaCtxResetPersistingL2Cache() {
  return answer([](Runtime&) {});
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* lowest, int* highest) {
  return answer([&](Runtime& runtime) {
    runtime.device();
    if (lowest) *lowest = kLowestPriority;
    if (highest) *highest = kHighestPriority;
  });
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  return answer(Needs::nothing, [&](Runtime&) {
    constexpr std::string_view id = "0000:00:00.0";
    require_device(device);
    require(text && length > static_cast<int>(id.size()));
    std::memcpy(text, id.data(), id.size() + 1);
  });
}

cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* text) {
  return answer(Needs::nothing, [&](Runtime&) {
    require(device && text);
    require(std::strcmp(text, "0000:00:00.0") == 0 || std::strcmp(text, "00:00.0") == 0, cudaErrorInvalidDevice);
    *device = 0;
  });
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return answer(Needs::nothing, [&](Runtime&) {
    require(can != nullptr);
    require_device(device);
    require_device(peer);
    *can = 0;
  });
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
  return answer([&](Runtime&) {
    require_device(peer);
    throw ApiError{cudaErrorPeerAccessUnsupported};
  });
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  return answer([&](Runtime&) {
    require_device(peer);
    throw ApiError{cudaErrorPeerAccessNotEnabled};
  });
}

cudaError_t cudaDeviceGetP2PAttribute(int*, cudaDeviceP2PAttr, int device, int peer) {
  return answer(Needs::nothing, [&](Runtime&) {
    require_device(device);
    require_device(peer);
    throw ApiError{cudaErrorInvalidDevice};  // a device is not its own peer
  });
}

// Nothing to start or stop: counters and traces are asked for in the environment (emulator/machine/options.h).
cudaError_t cudaProfilerStart() {
  return answer([](Runtime&) {});
}
cudaError_t cudaProfilerStop() {
  return answer([](Runtime&) {});
}

cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind kind) {
  return {x, y, z, w, kind};
}
