// Driver functions by name, without linking against libcuda: this is how a program gets cuTensorMapEncodeTiled.

#include "emulator/runtime/api.h"
#include "emulator/runtime/driver_table.h"

using namespace emu::runtime;

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned version,
                                             unsigned long long flags, cudaDriverEntryPointQueryResult* status) {
  return answer(Needs::nothing, [&](Runtime&) {
    require(symbol && function && flags <= cudaEnablePerThreadDefaultStream);
    *function = nullptr;
    bool too_new = false;
    const DriverFunction* found = find_driver_function(symbol, version, too_new);
    if (found) *function = found->address;
    const auto result = found     ? cudaDriverEntryPointSuccess
                        : too_new ? cudaDriverEntryPointVersionNotSufficent
                                  : cudaDriverEntryPointSymbolNotFound;
    if (status) *status = result;
  });
}

// The same for our libcuda.so.1: what a program asks that library for must not initialise the driver, as the runtime's
// functions do.
extern "C" __attribute__((visibility("default"))) void* __cudaDriverFunction(const char* name, unsigned version) {
  bool too_new = false;
  const DriverFunction* found = find_driver_function(name, version, too_new);
  return found ? found->address : nullptr;
}

cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long flags,
                                    cudaDriverEntryPointQueryResult* status) {
  return cudaGetDriverEntryPointByVersion(symbol, function, CUDART_VERSION, flags, status);
}

// Tables of undocumented functions, which belong to NVIDIA's own libraries.
cudaError_t cudaGetExportTable(const void** table, const cudaUUID_t* id) {
  return answer(Needs::nothing, [&](Runtime&) {
    require(table && id);
    *table = nullptr;
    throw ApiError{cudaErrorNotSupported, "cudaGetExportTable: the undocumented driver tables are not emulated"};
  });
}
