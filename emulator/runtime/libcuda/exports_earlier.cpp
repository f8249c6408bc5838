// Functions whose names in the library are those of earlier versions: cuda.h gives the plain names to later ones.

#include "emulator/runtime/libcuda/forward.h"

#undef cuGetProcAddress

// The signatures of CUDA 3.2 to 12, and of 11.4.
extern "C" __attribute__((visibility("default"))) CUresult cuCtxCreate_v2(CUcontext* pctx, unsigned flags,
                                                                          CUdevice dev) {
  using Create = CUresult (*)(CUcontext*, unsigned, CUdevice);
  const auto function = reinterpret_cast<Create>(emu::libcuda::find("cuCtxCreate", 3020));
  return function ? function(pctx, flags, dev) : CUDA_ERROR_NOT_SUPPORTED;
}
extern "C" __attribute__((visibility("default"))) CUresult cuCtxCreate_v3(CUcontext* pctx, CUexecAffinityParam* params,
                                                                          int count, unsigned flags, CUdevice dev) {
  using Create = CUresult (*)(CUcontext*, CUexecAffinityParam*, int, unsigned, CUdevice);
  const auto function = reinterpret_cast<Create>(emu::libcuda::find("cuCtxCreate", 11040));
  return function ? function(pctx, params, count, flags, dev) : CUDA_ERROR_NOT_SUPPORTED;
}

// Of CUDA 11.3 to 11.8, without a status. Warp's library looks its functions up with it.
extern "C" __attribute__((visibility("default"))) CUresult cuGetProcAddress(const char* symbol, void** pfn,
                                                                            int cudaVersion, cuuint64_t flags) {
  return cuGetProcAddress_v2(symbol, pfn, cudaVersion, flags, nullptr);
}
