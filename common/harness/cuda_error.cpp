#include "common/harness/cuda_error.h"

#include <fmt/format.h>

#include <string_view>

namespace ladder {

void check(cudaError_t code, const char* what, std::source_location where) {
  if (code == cudaSuccess) return;
  std::string_view file = where.file_name();
  if (const size_t slash = file.rfind('/'); slash != file.npos) file.remove_prefix(slash + 1);
  throw CudaError(code, fmt::format("{}: {}: {} ({}:{})", what, cudaGetErrorName(code), cudaGetErrorString(code), file,
                                    where.line()));
}

}  // namespace ladder
