// Libraries of device code, loaded while the program runs.

#include <algorithm>

#include "emulator/runtime/api.h"

using namespace emu::runtime;

cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* code, cudaJitOption*, void**, unsigned,
                                cudaLibraryOption*, void**, unsigned) {
  return answer([&](Runtime& runtime) {
    require(library && code);
    *library = reinterpret_cast<cudaLibrary_t>(runtime.libraries.load(runtime, code));
  });
}

cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t* library, const char* path, cudaJitOption*, void**, unsigned,
                                    cudaLibraryOption*, void**, unsigned) {
  return answer([&](Runtime& runtime) {
    require(library && path);
    *library = reinterpret_cast<cudaLibrary_t>(runtime.libraries.load_file(runtime, path));
  });
}

cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
  return answer(Needs::no_capture, [&](Runtime& runtime) { runtime.libraries.unload(runtime, library); });
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char* name) {
  return answer([&](Runtime& runtime) {
    require(kernel && name);
    *kernel = reinterpret_cast<cudaKernel_t>(runtime.libraries.function(runtime, library, name));
  });
}

cudaError_t cudaLibraryGetGlobal(void** address, size_t* bytes, cudaLibrary_t library, const char* name) {
  return answer([&](Runtime& runtime) {
    require(name != nullptr);
    const emu::Variable variable = runtime.libraries.variable(runtime, library, name);
    if (address) *address = reinterpret_cast<void*>(variable.address);
    if (bytes) *bytes = variable.bytes;
  });
}

cudaError_t cudaLibraryGetKernelCount(unsigned* count, cudaLibrary_t library) {
  return answer([&](Runtime& runtime) {
    require(count != nullptr);
    *count = static_cast<unsigned>(runtime.libraries.find(library).image->module(runtime)->kernels.size());
  });
}

cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t* kernels, unsigned count, cudaLibrary_t library) {
  return answer([&](Runtime& runtime) {
    require(kernels != nullptr);
    const auto module = runtime.libraries.find(library).image->module(runtime);
    for (size_t i = 0; i < std::min<size_t>(count, module->kernels.size()); ++i)
      kernels[i] =
          reinterpret_cast<cudaKernel_t>(runtime.libraries.function(runtime, library, module->kernels[i].name.c_str()));
  });
}

cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, cudaFuncAttribute attribute, int value, int device) {
  if (device != 0) return remember(cudaErrorInvalidDevice);
  return cudaFuncSetAttribute(kernel, attribute, value);
}
