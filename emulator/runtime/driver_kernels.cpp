// Driver API: kernels as objects (CUfunction, CUkernel: one handle here), and how many of their CTAs the chip holds.

#include <algorithm>

#include "emulator/runtime/driver_table.h"
#include "emulator/runtime/launch.h"

namespace emu::runtime {
namespace {

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

// Kernels belong to a library that a program loaded; those that nvcc's code registered belong to none that has a
// handle.
CUresult function_module(CUmodule* module, CUfunction function) {
  return driver([&] {
    return answer([&](Runtime& runtime) {
      require(module != nullptr);
      *module = reinterpret_cast<CUmodule>(runtime.libraries.owner(find_function(runtime, function).image.get()));
    });
  });
}

CUresult function_load(CUfunction function) {
  return driver([&] { return answer([&](Runtime& runtime) { find_function(runtime, function).load(runtime); }); });
}

CUresult function_is_loaded(CUfunctionLoadingState* state, CUfunction function) {
  return driver([&] {
    return answer([&](Runtime& runtime) {
      require(state != nullptr);
      find_function(runtime, function);
      *state = CU_FUNCTION_LOADING_STATE_LOADED;  // whoever has the handle has made its code be loaded
    });
  });
}

CUresult function_parameter(CUfunction function, size_t index, size_t* offset, size_t* bytes) {
  return driver([&] { return cudaFuncGetParamInfo(function, index, offset, bytes); });
}

CUfunction to_function(CUkernel kernel) {
  return reinterpret_cast<CUfunction>(kernel);
}

CUresult kernel_attribute(int* value, CUfunction_attribute attribute, CUkernel kernel, CUdevice device) {
  if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
  return function_attribute(value, attribute, to_function(kernel));
}
CUresult set_kernel_attribute(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice device) {
  if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
  return set_function_attribute(to_function(kernel), attribute, value);
}
CUresult set_kernel_cache(CUkernel kernel, CUfunc_cache cache, CUdevice device) {
  if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
  return set_function_cache(to_function(kernel), cache);
}
CUresult kernel_name(const char** name, CUkernel kernel) {
  return function_name(name, to_function(kernel));
}
CUresult kernel_library(CUlibrary* library, CUkernel kernel) {
  return function_module(reinterpret_cast<CUmodule*>(library), to_function(kernel));
}
CUresult kernel_parameter(CUkernel kernel, size_t index, size_t* offset, size_t* bytes) {
  return function_parameter(to_function(kernel), index, offset, bytes);
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

CUresult free_shared_memory(size_t* bytes, CUfunction function, int blocks, int block_size) {
  return driver([&] { return cudaOccupancyAvailableDynamicSMemPerBlock(bytes, function, blocks, block_size); });
}

CUresult active_clusters(int* clusters, CUfunction function, const CUlaunchConfig* wanted) {
  if (!wanted) return CUDA_ERROR_INVALID_VALUE;
  const cudaLaunchConfig_t config = to_runtime(*wanted);
  return driver([&] { return cudaOccupancyMaxActiveClusters(clusters, function, &config); });
}

CUresult cluster_size(int* size, CUfunction function, const CUlaunchConfig* wanted) {
  if (!wanted) return CUDA_ERROR_INVALID_VALUE;
  const cudaLaunchConfig_t config = to_runtime(*wanted);
  return driver([&] { return cudaOccupancyMaxPotentialClusterSize(size, function, &config); });
}

// The block size with the most threads on an SM, the largest of several; found as cuda_runtime.h's
// cudaOccupancyMaxPotentialBlockSize does.
CUresult block_size_with_flags(int* grid, int* block, CUfunction function, CUoccupancyB2DSize shared_for,
                               size_t shared_bytes, int limit, unsigned flags) {
  return driver([&] {
    return answer([&](Runtime& runtime) {
      require(grid && block && flags <= CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE);
      const Function& kernel = find_function(runtime, function);
      const Chip& chip = runtime.chip();
      const int most = static_cast<int>(kernel.load(runtime).kernel->max_threads_per_block);
      const int first = limit > 0 ? std::min(limit, most) : most;
      constexpr int kWarp = 32;
      int best_threads = 0;
      *grid = *block = 0;
      for (int size = first; size > 0; size = (size - 1) / kWarp * kWarp) {
        const int blocks = blocks_per_sm(runtime, kernel, size, shared_for ? shared_for(size) : shared_bytes);
        if (blocks * size <= best_threads) continue;
        best_threads = blocks * size;
        *block = size;
        *grid = blocks * chip.sm_count;
      }
    });
  });
}

CUresult block_size(int* grid, int* block, CUfunction function, CUoccupancyB2DSize shared_for, size_t shared_bytes,
                    int limit) {
  return block_size_with_flags(grid, block, function, shared_for, shared_bytes, limit, CU_OCCUPANCY_DEFAULT);
}

}  // namespace

std::span<const DriverFunction> driver_functions_of_kernels() {
  static const DriverFunction table[] = {
      entry<PFN_cuKernelGetFunction_v12000>("cuKernelGetFunction", 12000, kernel_function),
      entry<PFN_cuFuncGetAttribute_v2020>("cuFuncGetAttribute", 2020, function_attribute),
      entry<PFN_cuFuncSetAttribute_v9000>("cuFuncSetAttribute", 9000, set_function_attribute),
      entry<PFN_cuFuncSetCacheConfig_v3000>("cuFuncSetCacheConfig", 3000, set_function_cache),
      entry<PFN_cuFuncGetName_v12030>("cuFuncGetName", 12030, function_name),
      entry<PFN_cuOccupancyMaxActiveBlocksPerMultiprocessor_v6050>("cuOccupancyMaxActiveBlocksPerMultiprocessor", 6050,
                                                                   occupancy),
      entry<PFN_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags_v7000>(
          "cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", 7000, occupancy_with_flags),
      entry<PFN_cuFuncGetModule_v11000>("cuFuncGetModule", 11000, function_module),
      entry<PFN_cuFuncLoad_v12040>("cuFuncLoad", 12040, function_load),
      entry<PFN_cuFuncIsLoaded_v12040>("cuFuncIsLoaded", 12040, function_is_loaded),
      entry<PFN_cuFuncGetParamInfo_v12040>("cuFuncGetParamInfo", 12040, function_parameter),
      entry<PFN_cuKernelGetAttribute_v12000>("cuKernelGetAttribute", 12000, kernel_attribute),
      entry<PFN_cuKernelSetAttribute_v12000>("cuKernelSetAttribute", 12000, set_kernel_attribute),
      entry<PFN_cuKernelSetCacheConfig_v12000>("cuKernelSetCacheConfig", 12000, set_kernel_cache),
      entry<PFN_cuKernelGetName_v12030>("cuKernelGetName", 12030, kernel_name),
      entry<PFN_cuKernelGetLibrary_v12050>("cuKernelGetLibrary", 12050, kernel_library),
      entry<PFN_cuKernelGetParamInfo_v12040>("cuKernelGetParamInfo", 12040, kernel_parameter),
      entry<PFN_cuOccupancyAvailableDynamicSMemPerBlock_v10020>("cuOccupancyAvailableDynamicSMemPerBlock", 10020,
                                                                free_shared_memory),
      entry<PFN_cuOccupancyMaxActiveClusters_v11070>("cuOccupancyMaxActiveClusters", 11070, active_clusters),
      entry<PFN_cuOccupancyMaxPotentialClusterSize_v11070>("cuOccupancyMaxPotentialClusterSize", 11070, cluster_size),
      entry<PFN_cuOccupancyMaxPotentialBlockSize_v6050>("cuOccupancyMaxPotentialBlockSize", 6050, block_size),
      entry<PFN_cuOccupancyMaxPotentialBlockSizeWithFlags_v7000>("cuOccupancyMaxPotentialBlockSizeWithFlags", 7000,
                                                                 block_size_with_flags),
  };
  return table;
}

}  // namespace emu::runtime
