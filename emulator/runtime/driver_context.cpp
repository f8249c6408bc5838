// Driver API: initialisation, the device, contexts, tensor maps. There is one context, the primary one of device 0,
// which is also what cuCtxCreate returns.

#include <atomic>
#include <cstring>
#include <vector>

#include "emulator/runtime/driver_errors.h"
#include "emulator/runtime/driver_table.h"
#include "emulator/runtime/properties.h"
#include "emulator/units/tensor_map.h"

namespace emu::runtime {

CUcontext primary_context() {
  static char place;
  return reinterpret_cast<CUcontext>(&place);
}

namespace {

std::atomic<int> retained = 0;
std::atomic<unsigned> context_flags = 0;
thread_local std::vector<CUcontext> context_stack;

CUcontext current() {
  if (!context_stack.empty()) return context_stack.back();
  // A thread that used the runtime API has the primary context.
  return Runtime::get().has_context() ? primary_context() : nullptr;
}

CUresult init(unsigned flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  Runtime::get().initialise_driver();
  return CUDA_SUCCESS;
}

CUresult driver_version(int* version) {
  if (!version) return CUDA_ERROR_INVALID_VALUE;
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}

/// For what needs the device but no context.
template <class Body>
CUresult device_call(CUdevice device, Body&& body) {
  if (const CUresult state = driver_state(false); state != CUDA_SUCCESS) return state;
  if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
  const ForgetErrors keep;
  return to_result(body());
}

CUresult device_get(CUdevice* device, int ordinal) {
  return device_call(ordinal, [&] {
    if (!device) return cudaErrorInvalidValue;
    *device = 0;
    return cudaSuccess;
  });
}

CUresult device_count(int* count) {
  return device_call(0, [&] { return cudaGetDeviceCount(count); });
}

CUresult device_name(char* name, int length, CUdevice device) {
  return device_call(device, [&] {
    if (!name || length <= 0) return cudaErrorInvalidValue;
    const std::string_view full = Runtime::get().chip().device_name;
    const size_t kept = std::min(full.size(), static_cast<size_t>(length) - 1);
    std::memcpy(name, full.data(), kept);
    name[kept] = '\0';
    return cudaSuccess;
  });
}

CUresult device_uuid(CUuuid* uuid, CUdevice device) {
  return device_call(device, [&] {
    if (!uuid) return cudaErrorInvalidValue;
    *uuid = device_properties(Runtime::get().chip()).uuid;
    return cudaSuccess;
  });
}

CUresult device_total_memory(size_t* bytes, CUdevice device) {
  return device_call(device, [&] {
    if (!bytes) return cudaErrorInvalidValue;
    *bytes = Runtime::get().chip().global_memory_bytes;
    return cudaSuccess;
  });
}

CUresult get_device_attribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  return device_call(device,
                     [&] { return cudaDeviceGetAttribute(value, static_cast<cudaDeviceAttr>(attribute), device); });
}

CUresult device_pci_bus_id(char* text, int length, CUdevice device) {
  return device_call(device, [&] { return cudaDeviceGetPCIBusId(text, length, device); });
}

CUresult can_access_peer(int* can, CUdevice device, CUdevice peer) {
  return device_call(device, [&] { return cudaDeviceCanAccessPeer(can, device, peer); });
}

CUresult device_by_pci_bus_id(CUdevice* device, const char* text) {
  return device_call(0, [&] { return cudaDeviceGetByPCIBusId(device, text); });
}

CUresult peer_attribute(int* value, CUdevice_P2PAttribute attribute, CUdevice device, CUdevice peer) {
  return device_call(device, [&] {
    return cudaDeviceGetP2PAttribute(value, static_cast<cudaDeviceP2PAttr>(attribute), device, peer);
  });
}

CUresult compute_capability(int* major, int* minor, CUdevice device) {
  return device_call(device, [&] {
    if (!major || !minor) return cudaErrorInvalidValue;
    *major = Runtime::get().chip().major;
    *minor = Runtime::get().chip().minor;
    return cudaSuccess;
  });
}

CUresult primary_retain(CUcontext* context, CUdevice device) {
  return device_call(device, [&] {
    if (!context) return cudaErrorInvalidValue;
    ++retained;
    *context = primary_context();
    return cudaSetDevice(device);
  });
}

CUresult primary_release(CUdevice device) {
  return device_call(device, [&] {
    if (retained > 0) --retained;
    return cudaSuccess;
  });
}

CUresult primary_reset(CUdevice device) {
  return device_call(device, [&] { return cudaDeviceReset(); });
}

CUresult primary_set_flags(CUdevice device, unsigned flags) {
  return device_call(device, [&] { return cudaSetDeviceFlags(flags); });
}

CUresult primary_state(CUdevice device, unsigned* flags, int* active) {
  return device_call(device, [&] {
    if (!flags || !active) return cudaErrorInvalidValue;
    *flags = Runtime::get().settings.device_flags;
    *active = Runtime::get().has_context();
    return cudaSuccess;
  });
}

// A context of some SMs only, or one that shares its work with a graphics API, is refused as an H200 without MPS does.
CUresult context_create(CUcontext* context, CUctxCreateParams* parameters, unsigned flags, CUdevice device) {
  return device_call(device, [&] {
    if (!context) return cudaErrorInvalidValue;
    const CUctxCreateParams wanted = parameters ? *parameters : CUctxCreateParams{};
    if (wanted.cigParams) return wanted.execAffinityParams ? cudaErrorNotSupported : cudaErrorInvalidValue;
    if (wanted.numExecAffinityParams != 0)
      return wanted.execAffinityParams ? cudaErrorUnsupportedExecAffinity : cudaErrorInvalidValue;
    context_flags = flags;
    *context = primary_context();
    context_stack.push_back(primary_context());
    return cudaSetDevice(device);
  });
}

CUresult context_create_old(CUcontext* context, unsigned flags, CUdevice device) {
  return context_create(context, nullptr, flags, device);
}

CUresult context_create_with_affinity(CUcontext* context, CUexecAffinityParam* affinity, int count, unsigned flags,
                                      CUdevice device) {
  CUctxCreateParams parameters{.execAffinityParams = affinity, .numExecAffinityParams = count, .cigParams = nullptr};
  return context_create(context, &parameters, flags, device);
}

CUresult context_destroy(CUcontext context) {
  if (context != primary_context()) return CUDA_ERROR_INVALID_CONTEXT;
  std::erase(context_stack, context);
  return CUDA_SUCCESS;
}

CUresult context_push(CUcontext context) {
  if (context != primary_context()) return CUDA_ERROR_INVALID_CONTEXT;
  context_stack.push_back(context);
  return CUDA_SUCCESS;
}

CUresult context_pop(CUcontext* context) {
  if (context_stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (context) *context = context_stack.back();
  context_stack.pop_back();
  return CUDA_SUCCESS;
}

CUresult context_set(CUcontext context) {
  if (context && context != primary_context()) return CUDA_ERROR_INVALID_CONTEXT;
  if (!context_stack.empty()) context_stack.pop_back();
  if (context) context_stack.push_back(context);
  return CUDA_SUCCESS;
}

CUresult context_get(CUcontext* context) {
  if (!Runtime::get().driver_initialised()) return CUDA_ERROR_NOT_INITIALIZED;
  if (!context) return CUDA_ERROR_INVALID_VALUE;
  *context = current();
  return CUDA_SUCCESS;
}

CUresult context_device(CUdevice* device) {
  return driver([&] { return cudaGetDevice(device); });
}

CUresult context_flags_get(unsigned* flags) {
  return driver([&] {
    if (!flags) return cudaErrorInvalidValue;
    *flags = context_flags;
    return cudaSuccess;
  });
}

CUresult context_synchronize() {
  return driver([] { return cudaDeviceSynchronize(); });
}

CUresult context_get_limit(size_t* value, CUlimit limit) {
  return driver([&] { return cudaDeviceGetLimit(value, static_cast<cudaLimit>(limit)); });
}

CUresult context_set_limit(CUlimit limit, size_t value) {
  return driver([&] { return cudaDeviceSetLimit(static_cast<cudaLimit>(limit), value); });
}

CUresult context_priorities(int* lowest, int* highest) {
  return driver([&] { return cudaDeviceGetStreamPriorityRange(lowest, highest); });
}

CUresult context_api_version(CUcontext, unsigned* version) {
  if (!version) return CUDA_ERROR_INVALID_VALUE;
  *version = 3020;  // what every context of this API has answered since CUDA 3.2
  return CUDA_SUCCESS;
}

CUresult context_id(CUcontext context, unsigned long long* id) {
  if (!id || (context && context != primary_context())) return CUDA_ERROR_INVALID_VALUE;
  *id = 1;
  return CUDA_SUCCESS;
}

CUresult context_set_flags(unsigned flags) {
  return driver([&] {
    context_flags = flags;
    return cudaSuccess;
  });
}

CUresult context_get_cache(CUfunc_cache* config) {
  return driver([&] { return cudaDeviceGetCacheConfig(reinterpret_cast<cudaFuncCache*>(config)); });
}
CUresult context_set_cache(CUfunc_cache config) {
  return driver([&] { return cudaDeviceSetCacheConfig(static_cast<cudaFuncCache>(config)); });
}
CUresult reset_persisting_cache() {
  return driver([] { return cudaCtxResetPersistingL2Cache(); });
}

// Profilers are not there; turning one on and off is not an error without one.
CUresult profiler() {
  return driver([] { return cudaSuccess; });
}

CUresult proc_address(const char* symbol, void** function, int version, cuuint64_t flags,
                      CUdriverProcAddressQueryResult* status) {
  const ForgetErrors keep;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion(symbol, function, static_cast<unsigned>(version), flags, &result);
  if (status) *status = static_cast<CUdriverProcAddressQueryResult>(result);
  if (error == cudaSuccess && !status && result != cudaDriverEntryPointSuccess) return CUDA_ERROR_NOT_FOUND;
  return to_result(error);
}

CUresult proc_address_old(const char* symbol, void** function, int version, cuuint64_t flags) {
  return proc_address(symbol, function, version, flags, nullptr);
}

// Making a map needs neither a context nor cuInit: it only computes.
CUresult encode(CUtensorMap* map, const TensorMapArguments& arguments) {
  static_assert(sizeof(CUtensorMap) == kTensorMapBytes && sizeof(cuuint64_t) == sizeof(uint64_t));
  const ForgetErrors keep;
  return to_result(answer(Needs::nothing, [&](Runtime& runtime) {
    if (const auto refusal = tensor_map_refusal(arguments, runtime.chip()))
      throw ApiError{cudaErrorInvalidValue, *refusal};
    const TensorMapObject object = encode_tensor_map(make_tensor_map(arguments));
    std::memcpy(map, object.data(), object.size());
  }));
}

TensorMapArguments map_arguments(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                                 const cuuint64_t* dims, const cuuint64_t* strides, const cuuint32_t* box,
                                 const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
                                 CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                 CUtensorMapFloatOOBfill fill) {
  TensorMapArguments arguments;
  arguments.map = map;
  arguments.type = static_cast<uint32_t>(type);
  arguments.rank = rank;
  arguments.global_address = reinterpret_cast<uint64_t>(address);
  // cuuint64_t is unsigned long long or unsigned long, by platform.
  arguments.global_dim = reinterpret_cast<const uint64_t*>(dims);
  arguments.global_strides = reinterpret_cast<const uint64_t*>(strides);
  arguments.box_dim = box;
  arguments.element_strides = element_strides;
  arguments.interleave = static_cast<uint32_t>(interleave);
  arguments.swizzle = static_cast<uint32_t>(swizzle);
  arguments.l2_promotion = static_cast<uint32_t>(promotion);
  arguments.oob_fill = static_cast<uint32_t>(fill);
  return arguments;
}

CUresult encode_tiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                      const cuuint64_t* dims, const cuuint64_t* strides, const cuuint32_t* box,
                      const cuuint32_t* element_strides, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                      CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  return encode(map, map_arguments(map, type, rank, address, dims, strides, box, element_strides, interleave, swizzle,
                                   promotion, fill));
}

CUresult encode_im2col(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                       const cuuint64_t* dims, const cuuint64_t* strides, const int* lower, const int* upper,
                       cuuint32_t channels, cuuint32_t pixels, const cuuint32_t* element_strides,
                       CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                       CUtensorMapFloatOOBfill fill) {
  const cuuint32_t box[] = {channels, pixels};
  TensorMapArguments arguments = map_arguments(map, type, rank, address, dims, strides, box, element_strides,
                                               interleave, swizzle, promotion, fill);
  arguments.im2col = true;
  arguments.lower_corner = lower;
  arguments.upper_corner = upper;
  return encode(map, arguments);
}

CUresult replace_address(CUtensorMap* map, void* address) {
  const ForgetErrors keep;
  return to_result(answer(Needs::nothing, [&](Runtime&) {
    require(map != nullptr && reinterpret_cast<uint64_t>(address) % 16 == 0);
    try {
      TensorMap decoded = decode_tensor_map(reinterpret_cast<const std::byte*>(map), reinterpret_cast<uint64_t>(map));
      decoded.address = reinterpret_cast<uint64_t>(address);
      const TensorMapObject object = encode_tensor_map(decoded);
      std::memcpy(map, object.data(), object.size());
    } catch (const Trap& trap) {
      throw ApiError{cudaErrorInvalidValue, std::string("cuTensorMapReplaceAddress: ") + trap.what()};
    }
  }));
}

}  // namespace

CUresult driver_state(bool needs_context) {
  if (!Runtime::get().driver_initialised()) return CUDA_ERROR_NOT_INITIALIZED;
  if (needs_context && !current()) return CUDA_ERROR_INVALID_CONTEXT;
  return CUDA_SUCCESS;
}

std::span<const DriverFunction> driver_functions_of_context() {
  static const DriverFunction table[] = {
      entry<PFN_cuInit_v2000>("cuInit", 2000, init),
      entry<PFN_cuDriverGetVersion_v2020>("cuDriverGetVersion", 2020, driver_version),
      entry<PFN_cuGetErrorName_v6000>("cuGetErrorName", 6000, driver_error_name),
      entry<PFN_cuGetErrorString_v6000>("cuGetErrorString", 6000, driver_error_text),
      entry<PFN_cuGetProcAddress_v11030>("cuGetProcAddress", 11030, proc_address_old),
      entry<PFN_cuGetProcAddress_v12000>("cuGetProcAddress", 12000, proc_address),
      entry<PFN_cuDeviceGet_v2000>("cuDeviceGet", 2000, device_get),
      entry<PFN_cuDeviceGetCount_v2000>("cuDeviceGetCount", 2000, device_count),
      entry<PFN_cuDeviceGetName_v2000>("cuDeviceGetName", 2000, device_name),
      entry<PFN_cuDeviceGetUuid_v9020>("cuDeviceGetUuid", 9020, device_uuid),
      entry<PFN_cuDeviceTotalMem_v3020>("cuDeviceTotalMem", 3020, device_total_memory),
      entry<PFN_cuDeviceGetAttribute_v2000>("cuDeviceGetAttribute", 2000, get_device_attribute),
      entry<PFN_cuDeviceGetPCIBusId_v4010>("cuDeviceGetPCIBusId", 4010, device_pci_bus_id),
      entry<PFN_cuDeviceCanAccessPeer_v4000>("cuDeviceCanAccessPeer", 4000, can_access_peer),
      entry<PFN_cuDeviceGetByPCIBusId_v4010>("cuDeviceGetByPCIBusId", 4010, device_by_pci_bus_id),
      entry<PFN_cuDeviceGetP2PAttribute_v8000>("cuDeviceGetP2PAttribute", 8000, peer_attribute),
      entry<PFN_cuDeviceComputeCapability_v2000>("cuDeviceComputeCapability", 2000, compute_capability),
      entry<PFN_cuDevicePrimaryCtxRetain_v7000>("cuDevicePrimaryCtxRetain", 7000, primary_retain),
      entry<PFN_cuDevicePrimaryCtxRelease_v11000>("cuDevicePrimaryCtxRelease", 7000, primary_release),
      entry<PFN_cuDevicePrimaryCtxReset_v11000>("cuDevicePrimaryCtxReset", 7000, primary_reset),
      entry<PFN_cuDevicePrimaryCtxSetFlags_v11000>("cuDevicePrimaryCtxSetFlags", 7000, primary_set_flags),
      entry<PFN_cuDevicePrimaryCtxGetState_v7000>("cuDevicePrimaryCtxGetState", 7000, primary_state),
      entry<PFN_cuCtxCreate_v3020>("cuCtxCreate", 3020, context_create_old),
      entry<PFN_cuCtxCreate_v11040>("cuCtxCreate", 11040, context_create_with_affinity),
      entry<PFN_cuCtxCreate_v12050>("cuCtxCreate", 12050, context_create),
      entry<PFN_cuCtxDestroy_v4000>("cuCtxDestroy", 4000, context_destroy),
      entry<PFN_cuCtxPushCurrent_v4000>("cuCtxPushCurrent", 4000, context_push),
      entry<PFN_cuCtxPopCurrent_v4000>("cuCtxPopCurrent", 4000, context_pop),
      entry<PFN_cuCtxSetCurrent_v4000>("cuCtxSetCurrent", 4000, context_set),
      entry<PFN_cuCtxGetCurrent_v4000>("cuCtxGetCurrent", 4000, context_get),
      entry<PFN_cuCtxGetDevice_v2000>("cuCtxGetDevice", 2000, context_device),
      entry<PFN_cuCtxGetFlags_v7000>("cuCtxGetFlags", 7000, context_flags_get),
      entry<PFN_cuCtxSynchronize_v2000>("cuCtxSynchronize", 2000, context_synchronize),
      entry<PFN_cuCtxGetLimit_v3010>("cuCtxGetLimit", 3010, context_get_limit),
      entry<PFN_cuCtxSetLimit_v3010>("cuCtxSetLimit", 3010, context_set_limit),
      entry<PFN_cuCtxGetStreamPriorityRange_v5050>("cuCtxGetStreamPriorityRange", 5050, context_priorities),
      entry<PFN_cuCtxGetApiVersion_v3020>("cuCtxGetApiVersion", 3020, context_api_version),
      entry<PFN_cuCtxGetId_v12000>("cuCtxGetId", 12000, context_id),
      entry<PFN_cuCtxSetFlags_v12010>("cuCtxSetFlags", 12010, context_set_flags),
      entry<PFN_cuCtxGetCacheConfig_v3020>("cuCtxGetCacheConfig", 3020, context_get_cache),
      entry<PFN_cuCtxSetCacheConfig_v3020>("cuCtxSetCacheConfig", 3020, context_set_cache),
      entry<PFN_cuCtxResetPersistingL2Cache_v11000>("cuCtxResetPersistingL2Cache", 11000, reset_persisting_cache),
      entry<PFN_cuProfilerStart_v4000>("cuProfilerStart", 4000, profiler),
      entry<PFN_cuProfilerStop_v4000>("cuProfilerStop", 4000, profiler),
      entry<PFN_cuTensorMapEncodeTiled_v12000>("cuTensorMapEncodeTiled", 12000, encode_tiled),
      entry<PFN_cuTensorMapEncodeIm2col_v12000>("cuTensorMapEncodeIm2col", 12000, encode_im2col),
      entry<PFN_cuTensorMapReplaceAddress_v12000>("cuTensorMapReplaceAddress", 12000, replace_address),
  };
  return table;
}

}  // namespace emu::runtime
