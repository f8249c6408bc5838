// Driver API: modules, libraries, launches.

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
  return driver([&] { return cudaLibraryUnload(reinterpret_cast<cudaLibrary_t>(module)); });
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
CUresult library_module(CUmodule* module, CUlibrary library) {
  return driver([&] {
    return answer([&](Runtime& runtime) {
      require(module != nullptr);
      runtime.libraries.find(library);
      *module = reinterpret_cast<CUmodule>(library);  // the two handles are one here
    });
  });
}
CUresult library_kernel_count(unsigned* count, CUlibrary library) {
  return driver([&] { return cudaLibraryGetKernelCount(count, reinterpret_cast<cudaLibrary_t>(library)); });
}
CUresult library_kernels(CUkernel* kernels, unsigned count, CUlibrary library) {
  return driver([&] {
    return cudaLibraryEnumerateKernels(reinterpret_cast<cudaKernel_t*>(kernels), count,
                                       reinterpret_cast<cudaLibrary_t>(library));
  });
}
CUresult module_function_count(unsigned* count, CUmodule module) {
  return library_kernel_count(count, reinterpret_cast<CUlibrary>(module));
}
CUresult module_functions(CUfunction* functions, unsigned count, CUmodule module) {
  return library_kernels(reinterpret_cast<CUkernel*>(functions), count, reinterpret_cast<CUlibrary>(module));
}
CUresult loading_mode(CUmoduleLoadingMode* mode) {
  if (!mode) return CUDA_ERROR_INVALID_VALUE;
  *mode = CU_MODULE_LAZY_LOADING;
  return CUDA_SUCCESS;
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
  return launch_with(function, to_runtime(*wanted), parameters, extra);
}

CUresult launch_cooperative(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                            unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream,
                            void** parameters) {
  return driver([&] {
    return cudaLaunchCooperativeKernel(function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, parameters,
                                       shared_bytes, stream);
  });
}

}  // namespace

cudaLaunchConfig_t to_runtime(const CUlaunchConfig& wanted) {
  static_assert(sizeof(CUlaunchAttribute) == sizeof(cudaLaunchAttribute), "the two APIs share the attributes");
  cudaLaunchConfig_t config{};
  config.gridDim = {wanted.gridDimX, wanted.gridDimY, wanted.gridDimZ};
  config.blockDim = {wanted.blockDimX, wanted.blockDimY, wanted.blockDimZ};
  config.dynamicSmemBytes = wanted.sharedMemBytes;
  config.stream = wanted.hStream;
  config.attrs = reinterpret_cast<cudaLaunchAttribute*>(wanted.attrs);
  config.numAttrs = wanted.numAttrs;
  return config;
}

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
      entry<PFN_cuLibraryGetModule_v12000>("cuLibraryGetModule", 12000, library_module),
      entry<PFN_cuLibraryGetKernelCount_v12040>("cuLibraryGetKernelCount", 12040, library_kernel_count),
      entry<PFN_cuLibraryEnumerateKernels_v12040>("cuLibraryEnumerateKernels", 12040, library_kernels),
      entry<PFN_cuModuleGetFunctionCount_v12040>("cuModuleGetFunctionCount", 12040, module_function_count),
      entry<PFN_cuModuleEnumerateFunctions_v12040>("cuModuleEnumerateFunctions", 12040, module_functions),
      entry<PFN_cuModuleGetLoadingMode_v11070>("cuModuleGetLoadingMode", 11070, loading_mode),
      entry<PFN_cuLaunchKernel_v4000>("cuLaunchKernel", 4000, launch_kernel),
      entry<PFN_cuLaunchKernelEx_v11060>("cuLaunchKernelEx", 11060, launch_kernel_ex),
      entry<PFN_cuLaunchCooperativeKernel_v9000>("cuLaunchCooperativeKernel", 9000, launch_cooperative),
  };
  return table;
}

}  // namespace emu::runtime
