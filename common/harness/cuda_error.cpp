#include "common/harness/cuda_error.h"

#include <fmt/format.h>

#include <string_view>

namespace ladder {

void check(cudaError_t code, const char* what, const char* file, int line) {
  if (code == cudaSuccess) return;
  std::string_view name = file;
  if (const size_t slash = name.rfind('/'); slash != name.npos) name.remove_prefix(slash + 1);
  throw CudaError(
      code, fmt::format("{}: {}: {} ({}:{})", what, cudaGetErrorName(code), cudaGetErrorString(code), name, line));
}

}  // namespace ladder
