#pragma once
// This library has no device of its own: every function it has is the one that libcudart.so.13 beside it hands out, so
// that a program which uses both APIs sees one device.

#pragma GCC visibility push(default)
#include <cuda.h>
#include <cudaProfiler.h>
#pragma GCC visibility pop

namespace emu::libcuda {

/// The function of that name and version, or null. Loads the emulator's runtime library at the first call.
void* find(const char* name, unsigned version);

/// Calls it.
template <class... Parameters, class... Arguments>
CUresult forward(const char* name, CUresult (*)(Parameters...), Arguments... arguments) {
  const auto function = reinterpret_cast<CUresult (*)(Parameters...)>(find(name, CUDA_VERSION));
  return function ? function(arguments...) : CUDA_ERROR_NOT_SUPPORTED;
}

/// Whoever called (`caller` is an address in it) brought its own CUDA runtime. Ends the process when that is the
/// program itself; of a library it may do without, it only says so, once for each.
CUresult refuse_own_runtime(const void* caller);

}  // namespace emu::libcuda
