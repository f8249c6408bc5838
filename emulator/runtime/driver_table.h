#pragma once
// The part of the CUDA driver API that the emulator has, as a table of names. cudaGetDriverEntryPoint, cuGetProcAddress
// and our libcuda.so.1 all hand out what is in it, so a program sees one device however it asks.

#include <cuda.h>
#include <cudaProfilerTypedefs.h>
#include <cudaTypedefs.h>

#include <span>
#include <string_view>
#include <type_traits>

#include "emulator/runtime/api.h"
#include "emulator/runtime/error.h"

namespace emu::runtime {

struct DriverFunction {
  std::string_view name;  ///< without the suffix that cuda.h adds for its version ("cuMemAlloc")
  unsigned since;         ///< the CUDA version that brought this signature
  void* address;
};

/// The newest signature that `version` (13000 for CUDA 13.0) knows. `too_new` is set when there are only newer ones.
const DriverFunction* find_driver_function(std::string_view name, unsigned version, bool& too_new);

/// The groups of the table.
std::span<const DriverFunction> driver_functions_of_context();
std::span<const DriverFunction> driver_functions_of_copies();
std::span<const DriverFunction> driver_functions_of_graphs();
std::span<const DriverFunction> driver_functions_of_kernels();
std::span<const DriverFunction> driver_functions_of_linking();
std::span<const DriverFunction> driver_functions_of_memory();
std::span<const DriverFunction> driver_functions_of_modules();
std::span<const DriverFunction> driver_functions_of_stream_values();
std::span<const DriverFunction> driver_functions_of_streams();

/// An entry. F is the type that cudaTypedefs.h gives this version of the function: another one does not compile.
template <class F>
DriverFunction entry(std::string_view name, unsigned since, std::type_identity_t<F> function) {
  return {name, since, reinterpret_cast<void*>(function)};
}

/// Runtime and driver share their numbers, but for those that only the runtime has.
CUresult to_result(cudaError_t error);

/// The driver's description of a launch as the runtime's. The attributes stay where they are.
cudaLaunchConfig_t to_runtime(const CUlaunchConfig& wanted);

/// Copies of rows and slices likewise. Throws ApiError.
cudaMemcpy3DParms to_runtime(const CUDA_MEMCPY3D& what);
CUDA_MEMCPY3D to_driver(const cudaMemcpy3DParms& what);

/// The one context there is.
CUcontext primary_context();

/// CUDA_ERROR_NOT_INITIALIZED before cuInit, CUDA_ERROR_INVALID_CONTEXT without a current context.
CUresult driver_state(bool needs_context);

/// Runs `body`, which returns a cudaError_t, as the body of a driver function.
template <class Body>
CUresult driver(Body&& body, bool needs_context = true) {
  if (const CUresult state = driver_state(needs_context); state != CUDA_SUCCESS) return state;
  const ForgetErrors keep;
  return to_result(body());
}

template <auto function>
inline constexpr auto as_driver = nullptr;
/// A function of the runtime whose parameters are the driver's as they are.
template <class... Parameters, cudaError_t (*function)(Parameters...)>
inline constexpr auto as_driver<function> = +[](Parameters... parameters) {
  return driver([&] { return function(parameters...); });
};

}  // namespace emu::runtime
