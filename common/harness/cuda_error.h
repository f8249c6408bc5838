#pragma once
// CUDA errors as exceptions.

#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

namespace ladder {

class CudaError : public std::runtime_error {
 public:
  CudaError(cudaError_t code, const std::string& message) : std::runtime_error(message), code_(code) {}
  cudaError_t code() const { return code_; }

 private:
  cudaError_t code_;
};

/// Throws CudaError "<what>: cudaErrorName: description (file:line)" unless `code` is cudaSuccess. `what` is the call
/// as a person would name it: check(cudaMalloc(&p, bytes), "cudaMalloc of A").
/// The place is the caller's, by built-ins that GCC and Clang share (std::source_location is younger in Clang).
void check(cudaError_t code, const char* what, const char* file = __builtin_FILE(), int line = __builtin_LINE());

}  // namespace ladder
