#include "emulator/runtime/error.h"

namespace emu::runtime {
namespace {
thread_local cudaError_t last = cudaSuccess;
}

cudaError_t remember(cudaError_t code) {
  if (code != cudaSuccess && code != cudaErrorNotReady) last = code;
  return code;
}

cudaError_t last_error() {
  return last;
}

cudaError_t take_last_error() {
  const cudaError_t code = last;
  last = cudaSuccess;
  return code;
}

ForgetErrors::ForgetErrors() : before_(last) {}
ForgetErrors::~ForgetErrors() {
  last = before_;
}

}  // namespace emu::runtime
