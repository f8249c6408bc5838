// The driver API: code, launches, streams, events.
// Parameters are named as cuda.h names them, whose macros also give each function the suffix of its version.

#include "emulator/runtime/libcuda/forward.h"

using emu::libcuda::forward;

// ------------------------------------------------------------------------------------------ modules, kernels, launches

CUresult cuModuleLoad(CUmodule* module, const char* fname) {
  return forward("cuModuleLoad", &cuModuleLoad, module, fname);
}
CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return forward("cuModuleLoadData", &cuModuleLoadData, module, image);
}
CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned numOptions, CUjit_option* options,
                            void** optionValues) {
  return forward("cuModuleLoadDataEx", &cuModuleLoadDataEx, module, image, numOptions, options, optionValues);
}
CUresult cuModuleLoadFatBinary(CUmodule* module, const void* fatCubin) {
  return forward("cuModuleLoadFatBinary", &cuModuleLoadFatBinary, module, fatCubin);
}
CUresult cuModuleUnload(CUmodule hmod) {
  return forward("cuModuleUnload", &cuModuleUnload, hmod);
}
CUresult cuModuleGetFunction(CUfunction* hfunc, CUmodule hmod, const char* name) {
  return forward("cuModuleGetFunction", &cuModuleGetFunction, hfunc, hmod, name);
}
CUresult cuModuleGetGlobal(CUdeviceptr* dptr, size_t* bytes, CUmodule hmod, const char* name) {
  return forward("cuModuleGetGlobal", &cuModuleGetGlobal, dptr, bytes, hmod, name);
}
CUresult cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option* jitOptions, void** jitOptionsValues,
                           unsigned numJitOptions, CUlibraryOption* libraryOptions, void** libraryOptionValues,
                           unsigned numLibraryOptions) {
  return forward("cuLibraryLoadData", &cuLibraryLoadData, library, code, jitOptions, jitOptionsValues, numJitOptions,
                 libraryOptions, libraryOptionValues, numLibraryOptions);
}
CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* fileName, CUjit_option* jitOptions,
                               void** jitOptionsValues, unsigned numJitOptions, CUlibraryOption* libraryOptions,
                               void** libraryOptionValues, unsigned numLibraryOptions) {
  return forward("cuLibraryLoadFromFile", &cuLibraryLoadFromFile, library, fileName, jitOptions, jitOptionsValues,
                 numJitOptions, libraryOptions, libraryOptionValues, numLibraryOptions);
}
CUresult cuLibraryUnload(CUlibrary library) {
  return forward("cuLibraryUnload", &cuLibraryUnload, library);
}
CUresult cuLibraryGetKernel(CUkernel* pKernel, CUlibrary library, const char* name) {
  return forward("cuLibraryGetKernel", &cuLibraryGetKernel, pKernel, library, name);
}
CUresult cuLibraryGetGlobal(CUdeviceptr* dptr, size_t* bytes, CUlibrary library, const char* name) {
  return forward("cuLibraryGetGlobal", &cuLibraryGetGlobal, dptr, bytes, library, name);
}
CUresult cuKernelGetFunction(CUfunction* pFunc, CUkernel kernel) {
  return forward("cuKernelGetFunction", &cuKernelGetFunction, pFunc, kernel);
}
CUresult cuFuncGetAttribute(int* pi, CUfunction_attribute attrib, CUfunction hfunc) {
  return forward("cuFuncGetAttribute", &cuFuncGetAttribute, pi, attrib, hfunc);
}
CUresult cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value) {
  return forward("cuFuncSetAttribute", &cuFuncSetAttribute, hfunc, attrib, value);
}
CUresult cuFuncSetCacheConfig(CUfunction hfunc, CUfunc_cache config) {
  return forward("cuFuncSetCacheConfig", &cuFuncSetCacheConfig, hfunc, config);
}
CUresult cuFuncGetName(const char** name, CUfunction hfunc) {
  return forward("cuFuncGetName", &cuFuncGetName, name, hfunc);
}
CUresult cuLaunchKernel(CUfunction f, unsigned gridDimX, unsigned gridDimY, unsigned gridDimZ, unsigned blockDimX,
                        unsigned blockDimY, unsigned blockDimZ, unsigned sharedMemBytes, CUstream hStream,
                        void** kernelParams, void** extra) {
  return forward("cuLaunchKernel", &cuLaunchKernel, f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ,
                 sharedMemBytes, hStream, kernelParams, extra);
}
CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction f, void** kernelParams, void** extra) {
  return forward("cuLaunchKernelEx", &cuLaunchKernelEx, config, f, kernelParams, extra);
}
CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned gridDimX, unsigned gridDimY, unsigned gridDimZ,
                                   unsigned blockDimX, unsigned blockDimY, unsigned blockDimZ, unsigned sharedMemBytes,
                                   CUstream hStream, void** kernelParams) {
  return forward("cuLaunchCooperativeKernel", &cuLaunchCooperativeKernel, f, gridDimX, gridDimY, gridDimZ, blockDimX,
                 blockDimY, blockDimZ, sharedMemBytes, hStream, kernelParams);
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* numBlocks, CUfunction func, int blockSize,
                                                     size_t dynamicSMemSize) {
  return forward("cuOccupancyMaxActiveBlocksPerMultiprocessor", &cuOccupancyMaxActiveBlocksPerMultiprocessor, numBlocks,
                 func, blockSize, dynamicSMemSize);
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* numBlocks, CUfunction func, int blockSize,
                                                              size_t dynamicSMemSize, unsigned flags) {
  return forward("cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags",
                 &cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, numBlocks, func, blockSize, dynamicSMemSize,
                 flags);
}

// -------------------------------------------------------------------------------------------------- streams and events

CUresult cuStreamCreate(CUstream* phStream, unsigned Flags) {
  return forward("cuStreamCreate", &cuStreamCreate, phStream, Flags);
}
CUresult cuStreamCreateWithPriority(CUstream* phStream, unsigned flags, int priority) {
  return forward("cuStreamCreateWithPriority", &cuStreamCreateWithPriority, phStream, flags, priority);
}
CUresult cuStreamDestroy(CUstream hStream) {
  return forward("cuStreamDestroy", &cuStreamDestroy, hStream);
}
CUresult cuStreamSynchronize(CUstream hStream) {
  return forward("cuStreamSynchronize", &cuStreamSynchronize, hStream);
}
CUresult cuStreamQuery(CUstream hStream) {
  return forward("cuStreamQuery", &cuStreamQuery, hStream);
}
CUresult cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned Flags) {
  return forward("cuStreamWaitEvent", &cuStreamWaitEvent, hStream, hEvent, Flags);
}
CUresult cuStreamGetFlags(CUstream hStream, unsigned* flags) {
  return forward("cuStreamGetFlags", &cuStreamGetFlags, hStream, flags);
}
CUresult cuStreamGetPriority(CUstream hStream, int* priority) {
  return forward("cuStreamGetPriority", &cuStreamGetPriority, hStream, priority);
}
CUresult cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void* userData) {
  return forward("cuLaunchHostFunc", &cuLaunchHostFunc, hStream, fn, userData);
}
CUresult cuEventCreate(CUevent* phEvent, unsigned Flags) {
  return forward("cuEventCreate", &cuEventCreate, phEvent, Flags);
}
CUresult cuEventDestroy(CUevent hEvent) {
  return forward("cuEventDestroy", &cuEventDestroy, hEvent);
}
CUresult cuEventRecord(CUevent hEvent, CUstream hStream) {
  return forward("cuEventRecord", &cuEventRecord, hEvent, hStream);
}
CUresult cuEventSynchronize(CUevent hEvent) {
  return forward("cuEventSynchronize", &cuEventSynchronize, hEvent);
}
CUresult cuEventQuery(CUevent hEvent) {
  return forward("cuEventQuery", &cuEventQuery, hEvent);
}
CUresult cuEventElapsedTime(float* pMilliseconds, CUevent hStart, CUevent hEnd) {
  return forward("cuEventElapsedTime", &cuEventElapsedTime, pMilliseconds, hStart, hEnd);
}
