// Driver API: modules, kernels, launches.

#include "emulator/runtime/driver_table.h"
#include "emulator/runtime/launch.h"

namespace emu::runtime {
namespace {

CUresult module_load_data(CUmodule* module, const void* image) {
  return driver([&] {
    return answer([&](Runtime& runtime) {
      require(module && image);
      *module = reinterpret_cast<CUmodule>(runtime.libraries.load(runtime, image));
    });
  });
}

// The options steer NVIDIA's compiler, which is not there.
CUresult module_load_data_ex(CUmodule* module, const void* image, unsigned, CUjit_option*, void**) {
  return module_load_data(module, image);
}

CUresult module_load(CUmodule* module, const char* path) {
  return driver([&] {
    return answer([&](Runtime& runtime) {
      require(module && path);
      *module = reinterpret_cast<CUmodule>(runtime.libraries.load_file(runtime, path));
    });
  });
}

CUresult module_unload(CUmodule module) {
  return driver([&] { return answer([&](Runtime& runtime) { runtime.libraries.unload(runtime, module); }); });
}

CUresult module_function(CUfunction* function, CUmodule module, const char* name) {
  return driver([&] {
    return answer([&](Runtime& runtime) {
      require(function && name);
      *function = reinterpret_cast<CUfunction>(runtime.libraries.function(runtime, module, name));
    });
  });
}

CUresult module_global(CUdeviceptr* address, size_t* bytes, CUmodule module, const char* name) {
  return driver([&] {
    return cudaLibraryGetGlobal(reinterpret_cast<void**>(address), bytes, reinterpret_cast<cudaLibrary_t>(module),
                                name);
  });
}

CUresult library_load_data(CUlibrary* library, const void* code, CUjit_option*, void**, unsigned, CUlibraryOption*,
                           void**, unsigned) {
  return driver([&] {
    return cudaLibraryLoadData(reinterpret_cast<cudaLibrary_t*>(library), code, nullptr, nullptr, 0, nullptr, nullptr,
                               0);
  });
}
CUresult library_load_file(CUlibrary* library, const char* path, CUjit_option*, void**, unsigned, CUlibraryOption*,
                           void**, unsigned) {
  return driver([&] {
    return cudaLibraryLoadFromFile(reinterpret_cast<cudaLibrary_t*>(library), path, nullptr, nullptr, 0, nullptr,
                                   nullptr, 0);
  });
}
CUresult library_unload(CUlibrary library) {
  return driver([&] { return cudaLibraryUnload(reinterpret_cast<cudaLibrary_t>(library)); });
}
CUresult library_kernel(CUkernel* kernel, CUlibrary library, const char* name) {
  return driver([&] {
    return cudaLibraryGetKernel(reinterpret_cast<cudaKernel_t*>(kernel), reinterpret_cast<cudaLibrary_t>(library),
                                name);
  });
}
CUresult library_global(CUdeviceptr* address, size_t* bytes, CUlibrary library, const char* name) {
  return driver([&] {
    return cudaLibraryGetGlobal(reinterpret_cast<void**>(address), bytes, reinterpret_cast<cudaLibrary_t>(library),
                                name);
  });
}
CUresult kernel_function(CUfunction* function, CUkernel kernel) {
  return driver([&] { return cudaGetFuncBySymbol(reinterpret_cast<cudaFunction_t*>(function), kernel); });
}

CUresult function_attribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  return driver([&]() -> cudaError_t {
    cudaFuncAttributes found;
    if (!value) return cudaErrorInvalidValue;
    if (const cudaError_t error = cudaFuncGetAttributes(&found, function)) return error;
    switch (attribute) {
      case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = found.maxThreadsPerBlock;
        break;
      case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        *value = static_cast<int>(found.sharedSizeBytes);
        break;
      case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
        *value = static_cast<int>(found.constSizeBytes);
        break;
      case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
        *value = static_cast<int>(found.localSizeBytes);
        break;
      case CU_FUNC_ATTRIBUTE_NUM_REGS:
        *value = found.numRegs;
        break;
      case CU_FUNC_ATTRIBUTE_PTX_VERSION:
        *value = found.ptxVersion;
        break;
      case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
        *value = found.binaryVersion;
        break;
      case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
        *value = found.cacheModeCA;
        break;
      case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = found.maxDynamicSharedSizeBytes;
        break;
      case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        *value = found.preferredShmemCarveout;
        break;
      case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
        *value = found.clusterDimMustBeSet;
        break;
      case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
        *value = found.requiredClusterWidth;
        break;
      case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
        *value = found.requiredClusterHeight;
        break;
      case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
        *value = found.requiredClusterDepth;
        break;
      case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        *value = found.nonPortableClusterSizeAllowed;
        break;
      case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        *value = found.clusterSchedulingPolicyPreference;
        break;
      default:
        return cudaErrorInvalidValue;
    }
    return cudaSuccess;
  });
}

CUresult set_function_attribute(CUfunction function, CUfunction_attribute attribute, int value) {
  return driver([&] { return cudaFuncSetAttribute(function, static_cast<cudaFuncAttribute>(attribute), value); });
}

CUresult set_function_cache(CUfunction function, CUfunc_cache) {
  return driver([&] { return cudaFuncSetCacheConfig(function, cudaFuncCachePreferNone); });
}

CUresult function_name(const char** name, CUfunction function) {
  return driver([&] { return cudaFuncGetName(name, function); });
}

// `extra` holds pairs of a key and a value, and says where packed parameters lie.
std::span<const std::byte> packed_parameters(void** extra) {
  const std::byte* start = nullptr;
  size_t bytes = 0;
  for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      start = static_cast<const std::byte*>(extra[1]);
    } else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE) {
      bytes = *static_cast<const size_t*>(extra[1]);
    } else {
      throw ApiError{cudaErrorInvalidValue};
    }
  }
  return {start, bytes};
}

CUresult launch_with(CUfunction function, const cudaLaunchConfig_t& config, void** parameters, void** extra) {
  return driver([&] {
    if (!extra) return cudaLaunchKernelExC(&config, function, parameters);
    return answer([&](Runtime& runtime) {
      require(!parameters && config.numAttrs == 0);
      LaunchRequest request;
      request.function = &find_function(runtime, function);
      request.grid = config.gridDim;
      request.block = config.blockDim;
      request.dynamic_shared_bytes = config.dynamicSmemBytes;
      launch_packed(runtime, request, packed_parameters(extra), *runtime.streams.find(config.stream));
    });
  });
}

CUresult launch_kernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                       unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream, void** parameters,
                       void** extra) {
  cudaLaunchConfig_t config{};
  config.gridDim = {grid_x, grid_y, grid_z};
  config.blockDim = {block_x, block_y, block_z};
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  return launch_with(function, config, parameters, extra);
}

CUresult launch_kernel_ex(const CUlaunchConfig* wanted, CUfunction function, void** parameters, void** extra) {
  if (!wanted) return CUDA_ERROR_INVALID_VALUE;
  static_assert(sizeof(CUlaunchAttribute) == sizeof(cudaLaunchAttribute), "the two APIs share the attributes");
  cudaLaunchConfig_t config{};
  config.gridDim = {wanted->gridDimX, wanted->gridDimY, wanted->gridDimZ};
  config.blockDim = {wanted->blockDimX, wanted->blockDimY, wanted->blockDimZ};
  config.dynamicSmemBytes = wanted->sharedMemBytes;
  config.stream = wanted->hStream;
  config.attrs = reinterpret_cast<cudaLaunchAttribute*>(wanted->attrs);
  config.numAttrs = wanted->numAttrs;
  return launch_with(function, config, parameters, extra);
}

CUresult launch_cooperative(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                            unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream,
                            void** parameters) {
  return driver([&] {
    return cudaLaunchCooperativeKernel(function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, parameters,
                                       shared_bytes, stream);
  });
}

CUresult occupancy(int* blocks, CUfunction function, int block_size, size_t shared_bytes) {
  return driver(
      [&] { return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, block_size, shared_bytes); });
}

CUresult occupancy_with_flags(int* blocks, CUfunction function, int block_size, size_t shared_bytes, unsigned flags) {
  return driver([&] {
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block_size, shared_bytes, flags);
  });
}

}  // namespace

std::span<const DriverFunction> driver_functions_of_modules() {
  static const DriverFunction table[] = {
      entry<PFN_cuModuleLoad_v2000>("cuModuleLoad", 2000, module_load),
      entry<PFN_cuModuleLoadData_v2000>("cuModuleLoadData", 2000, module_load_data),
      entry<PFN_cuModuleLoadDataEx_v2010>("cuModuleLoadDataEx", 2010, module_load_data_ex),
      entry<PFN_cuModuleLoadFatBinary_v2000>("cuModuleLoadFatBinary", 2000, module_load_data),
      entry<PFN_cuModuleUnload_v2000>("cuModuleUnload", 2000, module_unload),
      entry<PFN_cuModuleGetFunction_v2000>("cuModuleGetFunction", 2000, module_function),
      entry<PFN_cuModuleGetGlobal_v3020>("cuModuleGetGlobal", 3020, module_global),
      entry<PFN_cuLibraryLoadData_v12000>("cuLibraryLoadData", 12000, library_load_data),
      entry<PFN_cuLibraryLoadFromFile_v12000>("cuLibraryLoadFromFile", 12000, library_load_file),
      entry<PFN_cuLibraryUnload_v12000>("cuLibraryUnload", 12000, library_unload),
      entry<PFN_cuLibraryGetKernel_v12000>("cuLibraryGetKernel", 12000, library_kernel),
      entry<PFN_cuLibraryGetGlobal_v12000>("cuLibraryGetGlobal", 12000, library_global),
      entry<PFN_cuKernelGetFunction_v12000>("cuKernelGetFunction", 12000, kernel_function),
      entry<PFN_cuFuncGetAttribute_v2020>("cuFuncGetAttribute", 2020, function_attribute),
      entry<PFN_cuFuncSetAttribute_v9000>("cuFuncSetAttribute", 9000, set_function_attribute),
      entry<PFN_cuFuncSetCacheConfig_v3000>("cuFuncSetCacheConfig", 3000, set_function_cache),
      entry<PFN_cuFuncGetName_v12030>("cuFuncGetName", 12030, function_name),
      entry<PFN_cuLaunchKernel_v4000>("cuLaunchKernel", 4000, launch_kernel),
      entry<PFN_cuLaunchKernelEx_v11060>("cuLaunchKernelEx", 11060, launch_kernel_ex),
      entry<PFN_cuLaunchCooperativeKernel_v9000>("cuLaunchCooperativeKernel", 9000, launch_cooperative),
      entry<PFN_cuOccupancyMaxActiveBlocksPerMultiprocessor_v6050>("cuOccupancyMaxActiveBlocksPerMultiprocessor", 6050,
                                                                   occupancy),
      entry<PFN_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags_v7000>(
          "cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", 7000, occupancy_with_flags),
  };
  return table;
}

}  // namespace emu::runtime
