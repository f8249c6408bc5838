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
CUresult cuFuncGetModule(CUmodule* hmod, CUfunction hfunc) {
  return forward("cuFuncGetModule", &cuFuncGetModule, hmod, hfunc);
}
CUresult cuFuncGetParamInfo(CUfunction func, size_t paramIndex, size_t* paramOffset, size_t* paramSize) {
  return forward("cuFuncGetParamInfo", &cuFuncGetParamInfo, func, paramIndex, paramOffset, paramSize);
}
CUresult cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction function) {
  return forward("cuFuncIsLoaded", &cuFuncIsLoaded, state, function);
}
CUresult cuFuncLoad(CUfunction function) {
  return forward("cuFuncLoad", &cuFuncLoad, function);
}
CUresult cuKernelGetAttribute(int* pi, CUfunction_attribute attrib, CUkernel kernel, CUdevice dev) {
  return forward("cuKernelGetAttribute", &cuKernelGetAttribute, pi, attrib, kernel, dev);
}
CUresult cuKernelGetLibrary(CUlibrary* pLib, CUkernel kernel) {
  return forward("cuKernelGetLibrary", &cuKernelGetLibrary, pLib, kernel);
}
CUresult cuKernelGetName(const char** name, CUkernel hfunc) {
  return forward("cuKernelGetName", &cuKernelGetName, name, hfunc);
}
CUresult cuKernelGetParamInfo(CUkernel kernel, size_t paramIndex, size_t* paramOffset, size_t* paramSize) {
  return forward("cuKernelGetParamInfo", &cuKernelGetParamInfo, kernel, paramIndex, paramOffset, paramSize);
}
CUresult cuKernelSetAttribute(CUfunction_attribute attrib, int val, CUkernel kernel, CUdevice dev) {
  return forward("cuKernelSetAttribute", &cuKernelSetAttribute, attrib, val, kernel, dev);
}
CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice dev) {
  return forward("cuKernelSetCacheConfig", &cuKernelSetCacheConfig, kernel, config, dev);
}
CUresult cuLibraryEnumerateKernels(CUkernel* kernels, unsigned numKernels, CUlibrary lib) {
  return forward("cuLibraryEnumerateKernels", &cuLibraryEnumerateKernels, kernels, numKernels, lib);
}
CUresult cuLibraryGetKernelCount(unsigned* count, CUlibrary lib) {
  return forward("cuLibraryGetKernelCount", &cuLibraryGetKernelCount, count, lib);
}
CUresult cuLibraryGetModule(CUmodule* pMod, CUlibrary library) {
  return forward("cuLibraryGetModule", &cuLibraryGetModule, pMod, library);
}
CUresult cuModuleEnumerateFunctions(CUfunction* functions, unsigned numFunctions, CUmodule mod) {
  return forward("cuModuleEnumerateFunctions", &cuModuleEnumerateFunctions, functions, numFunctions, mod);
}
CUresult cuModuleGetFunctionCount(unsigned* count, CUmodule mod) {
  return forward("cuModuleGetFunctionCount", &cuModuleGetFunctionCount, count, mod);
}
CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  return forward("cuModuleGetLoadingMode", &cuModuleGetLoadingMode, mode);
}
CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t* dynamicSmemSize, CUfunction func, int numBlocks,
                                                 int blockSize) {
  return forward("cuOccupancyAvailableDynamicSMemPerBlock", &cuOccupancyAvailableDynamicSMemPerBlock, dynamicSmemSize,
                 func, numBlocks, blockSize);
}
CUresult cuOccupancyMaxActiveClusters(int* numClusters, CUfunction func, const CUlaunchConfig* config) {
  return forward("cuOccupancyMaxActiveClusters", &cuOccupancyMaxActiveClusters, numClusters, func, config);
}
CUresult cuOccupancyMaxPotentialBlockSize(int* minGridSize, int* blockSize, CUfunction func,
                                          CUoccupancyB2DSize blockSizeToDynamicSMemSize, size_t dynamicSMemSize,
                                          int blockSizeLimit) {
  return forward("cuOccupancyMaxPotentialBlockSize", &cuOccupancyMaxPotentialBlockSize, minGridSize, blockSize, func,
                 blockSizeToDynamicSMemSize, dynamicSMemSize, blockSizeLimit);
}
CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int* minGridSize, int* blockSize, CUfunction func,
                                                   CUoccupancyB2DSize blockSizeToDynamicSMemSize,
                                                   size_t dynamicSMemSize, int blockSizeLimit, unsigned flags) {
  return forward("cuOccupancyMaxPotentialBlockSizeWithFlags", &cuOccupancyMaxPotentialBlockSizeWithFlags, minGridSize,
                 blockSize, func, blockSizeToDynamicSMemSize, dynamicSMemSize, blockSizeLimit, flags);
}
CUresult cuOccupancyMaxPotentialClusterSize(int* clusterSize, CUfunction func, const CUlaunchConfig* config) {
  return forward("cuOccupancyMaxPotentialClusterSize", &cuOccupancyMaxPotentialClusterSize, clusterSize, func, config);
}
CUresult cuLinkCreate(unsigned numOptions, CUjit_option* options, void** optionValues, CUlinkState* stateOut) {
  return forward("cuLinkCreate", &cuLinkCreate, numOptions, options, optionValues, stateOut);
}
CUresult cuLinkAddData(CUlinkState state, CUjitInputType type, void* data, size_t size, const char* name,
                       unsigned numOptions, CUjit_option* options, void** optionValues) {
  return forward("cuLinkAddData", &cuLinkAddData, state, type, data, size, name, numOptions, options, optionValues);
}
CUresult cuLinkAddFile(CUlinkState state, CUjitInputType type, const char* path, unsigned numOptions,
                       CUjit_option* options, void** optionValues) {
  return forward("cuLinkAddFile", &cuLinkAddFile, state, type, path, numOptions, options, optionValues);
}
CUresult cuLinkComplete(CUlinkState state, void** cubinOut, size_t* sizeOut) {
  return forward("cuLinkComplete", &cuLinkComplete, state, cubinOut, sizeOut);
}
CUresult cuLinkDestroy(CUlinkState state) {
  return forward("cuLinkDestroy", &cuLinkDestroy, state);
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
CUresult cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned flags) {
  return forward("cuEventRecordWithFlags", &cuEventRecordWithFlags, hEvent, hStream, flags);
}
CUresult cuStreamAddCallback(CUstream hStream, CUstreamCallback callback, void* userData, unsigned flags) {
  return forward("cuStreamAddCallback", &cuStreamAddCallback, hStream, callback, userData, flags);
}
CUresult cuStreamAttachMemAsync(CUstream hStream, CUdeviceptr dptr, size_t length, unsigned flags) {
  return forward("cuStreamAttachMemAsync", &cuStreamAttachMemAsync, hStream, dptr, length, flags);
}
CUresult cuStreamCopyAttributes(CUstream dst, CUstream src) {
  return forward("cuStreamCopyAttributes", &cuStreamCopyAttributes, dst, src);
}
CUresult cuStreamGetAttribute(CUstream hStream, CUstreamAttrID attr, CUstreamAttrValue* value_out) {
  return forward("cuStreamGetAttribute", &cuStreamGetAttribute, hStream, attr, value_out);
}
CUresult cuStreamGetCaptureInfo(CUstream hStream, CUstreamCaptureStatus* captureStatus_out, cuuint64_t* id_out,
                                CUgraph* graph_out, const CUgraphNode** dependencies_out,
                                const CUgraphEdgeData** edgeData_out, size_t* numDependencies_out) {
  return forward("cuStreamGetCaptureInfo", &cuStreamGetCaptureInfo, hStream, captureStatus_out, id_out, graph_out,
                 dependencies_out, edgeData_out, numDependencies_out);
}
CUresult cuStreamGetCtx(CUstream hStream, CUcontext* pctx) {
  return forward("cuStreamGetCtx", &cuStreamGetCtx, hStream, pctx);
}
CUresult cuStreamGetDevice(CUstream hStream, CUdevice* device) {
  return forward("cuStreamGetDevice", &cuStreamGetDevice, hStream, device);
}
CUresult cuStreamGetId(CUstream hStream, unsigned long long* streamId) {
  return forward("cuStreamGetId", &cuStreamGetId, hStream, streamId);
}
CUresult cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus* captureStatus) {
  return forward("cuStreamIsCapturing", &cuStreamIsCapturing, hStream, captureStatus);
}
CUresult cuStreamSetAttribute(CUstream hStream, CUstreamAttrID attr, const CUstreamAttrValue* value) {
  return forward("cuStreamSetAttribute", &cuStreamSetAttribute, hStream, attr, value);
}
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  return forward("cuThreadExchangeStreamCaptureMode", &cuThreadExchangeStreamCaptureMode, mode);
}
