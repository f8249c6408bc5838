// What went wrong, as a program asks for it.

#include "emulator/runtime/cuda_api.h"
#include "emulator/runtime/error.h"
#include "emulator/runtime/runtime.h"

using namespace emu::runtime;

// After a fault on the device, this returns the error once (per thread); but every later call fails with it again.
cudaError_t cudaGetLastError() {
  Runtime::get().initialise_driver();
  return take_last_error();
}
cudaError_t cudaPeekAtLastError() {
  Runtime::get().initialise_driver();
  return last_error();
}

const char* cudaGetErrorName(cudaError_t error) {
  const char* name = error_name(error);
  return name ? name : "unrecognized error code";
}

const char* cudaGetErrorString(cudaError_t error) {
  const char* text = error_text(error);
  return text ? text : "unrecognized error code";
}
