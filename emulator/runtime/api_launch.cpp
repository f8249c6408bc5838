// Launching kernels, and asking about them.

#include <algorithm>
#include <vector>

#include "emulator/runtime/api.h"
#include "emulator/runtime/launch.h"

using namespace emu::runtime;

namespace {

// <<<...>>> is a push of the configuration, the host stub, and in it a pop.
struct CallConfiguration {
  dim3 grid, block;
  size_t shared_bytes;
  cudaStream_t stream;
};
thread_local std::vector<CallConfiguration> call_configurations;

cudaError_t launch_simple(const void* what, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
                          cudaStream_t stream, bool cooperative = false) {
  return answer([&](Runtime& runtime) {
    LaunchRequest request;
    request.function = &find_function(runtime, what);
    request.grid = grid;
    request.block = block;
    request.dynamic_shared_bytes = shared_bytes;
    request.cooperative = cooperative;
    launch(runtime, request, arguments, *runtime.streams.find(stream));
  });
}

}  // namespace

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, CUstream_st* stream) {
  call_configurations.push_back({grid, block, shared_bytes, stream});
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes, void* stream) {
  if (call_configurations.empty()) return remember(cudaErrorMissingConfiguration);
  const CallConfiguration configuration = call_configurations.back();
  call_configurations.pop_back();
  *grid = configuration.grid;
  *block = configuration.block;
  *shared_bytes = configuration.shared_bytes;
  *static_cast<cudaStream_t*>(stream) = configuration.stream;
  return cudaSuccess;
}

// The stub keeps the handle in a static, so it must stay good for ever: also across cudaDeviceReset.
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host_function) {
  return cudaGetKernel(kernel, host_function);
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
                               cudaStream_t stream) {
  return launch_simple(kernel, grid, block, arguments, shared_bytes, stream);
}

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
                             cudaStream_t stream) {
  return launch_simple(function, grid, block, arguments, shared_bytes, stream);
}

cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                                        size_t shared_bytes, cudaStream_t stream) {
  return launch_simple(function, grid, block, arguments, shared_bytes, stream, true);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function, void** arguments) {
  return answer([&](Runtime& runtime) {
    require(config != nullptr);
    LaunchRequest request;
    request.function = &find_function(runtime, function);
    request.grid = config->gridDim;
    request.block = config->blockDim;
    request.dynamic_shared_bytes = config->dynamicSmemBytes;
    const auto stream = runtime.streams.find(config->stream);
    std::vector<cudaEvent_t> events_at_end;
    require(config->attrs || config->numAttrs == 0);
    for (unsigned i = 0; i < config->numAttrs; ++i) {
      const cudaLaunchAttributeValue& value = config->attrs[i].val;
      switch (config->attrs[i].id) {
        case cudaLaunchAttributeClusterDimension:
          request.cluster = {value.clusterDim.x, value.clusterDim.y, value.clusterDim.z};
          request.cluster_given = true;
          break;
        case cudaLaunchAttributeCooperative:
          request.cooperative = value.cooperative != 0;
          break;
        // Permission to start before the kernel ahead of it ends (programmatic dependent launch). The queue never takes
        // it.
        case cudaLaunchAttributeProgrammaticStreamSerialization:
          break;
        // Events that may come as early as the kernel's trigger or its last start, and here come at its end.
        case cudaLaunchAttributeProgrammaticEvent:
          events_at_end.push_back(value.programmaticEvent.event);
          break;
        case cudaLaunchAttributeLaunchCompletionEvent:
          events_at_end.push_back(value.launchCompletionEvent.event);
          break;
        // Hints on speed and placement.
        case cudaLaunchAttributeIgnore:
        case cudaLaunchAttributeAccessPolicyWindow:
        case cudaLaunchAttributeClusterSchedulingPolicyPreference:
        case cudaLaunchAttributePriority:
        case cudaLaunchAttributeMemSyncDomainMap:
        case cudaLaunchAttributeMemSyncDomain:
        case cudaLaunchAttributePreferredClusterDimension:
        case cudaLaunchAttributePreferredSharedMemoryCarveout:
          break;
        default:
          throw ApiError{cudaErrorInvalidValue, "launch attribute " + std::to_string(config->attrs[i].id) +
                                                    " is none that a launch takes, or the emulator does not know it"};
      }
    }
    launch(runtime, request, arguments, *stream);
    for (cudaEvent_t event : events_at_end) runtime.events.record(event, *stream);
  });
}

cudaError_t cudaGetKernel(cudaKernel_t* kernel, const void* host_function) {
  return answer(Needs::nothing, [&](Runtime& runtime) {
    require(kernel != nullptr);
    Function* function = runtime.registry.function(host_function);
    if (!function) throw ApiError{cudaErrorInvalidDeviceFunction};
    *kernel = reinterpret_cast<cudaKernel_t>(function);
  });
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t* handle, const void* host_function) {
  return answer([&](Runtime& runtime) {
    require(handle != nullptr);
    *handle = reinterpret_cast<cudaFunction_t>(&find_function(runtime, host_function));
  });
}

cudaError_t cudaFuncGetName(const char** name, const void* function) {
  return answer([&](Runtime& runtime) {
    require(name != nullptr);
    *name = find_function(runtime, function).name.c_str();
  });
}

cudaError_t cudaFuncGetParamInfo(const void* function, size_t index, size_t* offset, size_t* bytes) {
  return answer([&](Runtime& runtime) {
    const auto loaded = find_function(runtime, function).load(runtime);
    require(offset != nullptr && index < loaded.kernel->parameters.size());
    *offset = loaded.kernel->parameters[index].offset;
    if (bytes) *bytes = loaded.kernel->parameters[index].bytes;
  });
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* what) {
  return answer([&](Runtime& runtime) {
    require(attributes != nullptr);
    const Function& function = find_function(runtime, what);
    const auto loaded = function.load(runtime);
    const emu::Kernel& kernel = *loaded.kernel;
    *attributes = {};
    attributes->sharedSizeBytes = kernel.static_shared_bytes;
    attributes->localSizeBytes = kernel.local_bytes;
    attributes->maxThreadsPerBlock = static_cast<int>(std::min(kMaxThreadsPerBlock, kernel.max_threads_per_block));
    attributes->numRegs = static_cast<int>(kernel.registers_per_thread);
    attributes->ptxVersion = function.image->ptx_architecture();
    attributes->binaryVersion = runtime.chip().major * 10 + runtime.chip().minor;
    attributes->maxDynamicSharedSizeBytes = static_cast<int>(function.dynamic_shared_limit(kernel));
    attributes->preferredShmemCarveout = function.carveout;
    const bool compiled = kernel.required_cluster.count() > 1;
    const emu::Dim3 required = compiled ? kernel.required_cluster : function.required_cluster;
    attributes->clusterDimMustBeSet = compiled;
    attributes->requiredClusterWidth = static_cast<int>(required.x);
    attributes->requiredClusterHeight = static_cast<int>(required.y);
    attributes->requiredClusterDepth = static_cast<int>(required.z);
    attributes->clusterSchedulingPolicyPreference = function.cluster_policy;
    attributes->nonPortableClusterSizeAllowed = function.non_portable_cluster;
  });
}

cudaError_t cudaFuncSetAttribute(const void* what, cudaFuncAttribute attribute, int value) {
  return answer([&](Runtime& runtime) {
    Function& function = find_function(runtime, what);
    const auto loaded = function.load(runtime);
    const bool compiled_cluster = loaded.kernel->required_cluster.count() > 1;
    switch (attribute) {
      case cudaFuncAttributeMaxDynamicSharedMemorySize: {
        const int64_t most =
            int64_t{runtime.chip().shared_per_cta_optin_bytes} - int64_t{loaded.kernel->static_shared_bytes};
        if (value < 0 || value > most)
          throw ApiError{cudaErrorInvalidValue, function.readable_name() + ": " + std::to_string(value) +
                                                    " bytes of dynamic shared memory asked for; this chip has " +
                                                    std::to_string(most) + " beside the kernel's static " +
                                                    std::to_string(loaded.kernel->static_shared_bytes)};
        function.max_dynamic_shared_bytes = static_cast<uint32_t>(value);
        break;
      }
      case cudaFuncAttributePreferredSharedMemoryCarveout:
        require(value >= -1 && value <= 100);
        function.carveout = value;
        break;
      case cudaFuncAttributeRequiredClusterWidth:
        require(!compiled_cluster && value >= 0);
        function.required_cluster.x = static_cast<uint32_t>(value);
        break;
      case cudaFuncAttributeRequiredClusterHeight:
        require(!compiled_cluster && value >= 0);
        function.required_cluster.y = static_cast<uint32_t>(value);
        break;
      case cudaFuncAttributeRequiredClusterDepth:
        require(!compiled_cluster && value >= 0);
        function.required_cluster.z = static_cast<uint32_t>(value);
        break;
      case cudaFuncAttributeNonPortableClusterSizeAllowed:
        require(value == 0 || value == 1);
        function.non_portable_cluster = value == 1;
        break;
      case cudaFuncAttributeClusterSchedulingPolicyPreference:
        require(value >= 0 && value <= cudaClusterSchedulingPolicyLoadBalancing);
        function.cluster_policy = value;
        break;
      case cudaFuncAttributeClusterDimMustBeSet:  // read only
      default:
        throw ApiError{cudaErrorInvalidValue};
    }
  });
}

cudaError_t cudaFuncSetCacheConfig(const void* function, cudaFuncCache) {
  return answer([&](Runtime& runtime) { find_function(runtime, function); });
}

cudaError_t cudaFuncSetSharedMemConfig(const void* function, cudaSharedMemConfig) {
  return answer([&](Runtime& runtime) { find_function(runtime, function); });
}
