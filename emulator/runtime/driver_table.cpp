#include "emulator/runtime/driver_table.h"

namespace emu::runtime {

const DriverFunction* find_driver_function(std::string_view name, unsigned version, bool& too_new) {
  const DriverFunction* best = nullptr;
  too_new = false;
  for (const auto group :
       {driver_functions_of_context(), driver_functions_of_copies(), driver_functions_of_graphs(),
        driver_functions_of_kernels(), driver_functions_of_linking(), driver_functions_of_memory(),
        driver_functions_of_modules(), driver_functions_of_stream_values(), driver_functions_of_streams()}) {
    for (const DriverFunction& function : group) {
      if (function.name != name) continue;
      if (function.since > version) {
        too_new = true;
      } else if (!best || best->since < function.since) {
        best = &function;
      }
    }
  }
  if (best) too_new = false;
  return best;
}

CUresult to_result(cudaError_t error) {
  switch (error) {
    case cudaErrorInvalidConfiguration:
    case cudaErrorInvalidPitchValue:
    case cudaErrorInvalidMemcpyDirection:
      return CUDA_ERROR_INVALID_VALUE;
    case cudaErrorInvalidSymbol:
    case cudaErrorInvalidDeviceFunction:
      return CUDA_ERROR_NOT_FOUND;
    default:
      return static_cast<CUresult>(error);
  }
}

}  // namespace emu::runtime
