#pragma once
// Errors of the CUDA runtime: how they travel inside this library, what a thread remembers of them, and their names.

#include <string>

#include "emulator/runtime/cuda_api.h"

namespace emu::runtime {

/// Thrown by the inside of the library; the exported function returns `code`, and prints `line` unless it is empty.
struct ApiError {
  cudaError_t code;
  std::string line = {};
};

/// Keeps `code` for cudaGetLastError of this thread, unless it is success or cudaErrorNotReady (which is an answer, not
/// an error: an H200's runtime does not remember it either). Returns `code`.
cudaError_t remember(cudaError_t code);

cudaError_t last_error();  ///< of this thread
cudaError_t take_last_error();

/// The driver API has no such memory: what it calls here must leave none.
class ForgetErrors {
 public:
  ForgetErrors();
  ~ForgetErrors();
  ForgetErrors(const ForgetErrors&) = delete;
  ForgetErrors& operator=(const ForgetErrors&) = delete;

 private:
  cudaError_t before_;
};

/// "cudaErrorInvalidValue" and "invalid argument"; nullptr for a number that is no error code.
const char* error_name(int code);
const char* error_text(int code);

}  // namespace emu::runtime
