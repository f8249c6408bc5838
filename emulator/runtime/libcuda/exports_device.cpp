// The driver API: device, contexts, memory.
// Parameters are named as cuda.h names them, whose macros also give each function the suffix of its version.

#include <string_view>

#include "emulator/runtime/libcuda/forward.h"

using emu::libcuda::forward;

// ------------------------------------------------------------------------------------------------- looking functions
// up

CUresult cuGetProcAddress(const char* symbol, void** pfn, int cudaVersion, cuuint64_t flags,
                          CUdriverProcAddressQueryResult* symbolStatus) {
  // Two that only this library has, so that whoever asks by name meets them as well.
  const std::string_view name = symbol ? symbol : "";
  const bool lookup = name == "cuGetProcAddress" && cudaVersion >= 12000, tables = name == "cuGetExportTable";
  if (pfn && (lookup || tables)) {
    *pfn = lookup ? reinterpret_cast<void*>(&cuGetProcAddress) : reinterpret_cast<void*>(&cuGetExportTable);
    if (symbolStatus) *symbolStatus = CU_GET_PROC_ADDRESS_SUCCESS;
    return CUDA_SUCCESS;
  }
  return forward("cuGetProcAddress", &cuGetProcAddress, symbol, pfn, cudaVersion, flags, symbolStatus);
}

// Tables of undocumented functions. A CUDA runtime asks for them before it does anything else with the device, and ours
// never does: so the caller is another runtime, linked into the program, which would go on to ask for much that is not
// there.
CUresult cuGetExportTable(const void**, const CUuuid*) {
  return emu::libcuda::refuse_own_runtime(__builtin_return_address(0));
}

// ----------------------------------------------------------------------- initialisation, device, contexts, tensor maps

CUresult cuInit(unsigned Flags) {
  return forward("cuInit", &cuInit, Flags);
}
CUresult cuDriverGetVersion(int* driverVersion) {
  return forward("cuDriverGetVersion", &cuDriverGetVersion, driverVersion);
}
CUresult cuGetErrorName(CUresult error, const char** pStr) {
  return forward("cuGetErrorName", &cuGetErrorName, error, pStr);
}
CUresult cuGetErrorString(CUresult error, const char** pStr) {
  return forward("cuGetErrorString", &cuGetErrorString, error, pStr);
}
CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  return forward("cuDeviceGet", &cuDeviceGet, device, ordinal);
}
CUresult cuDeviceGetCount(int* count) {
  return forward("cuDeviceGetCount", &cuDeviceGetCount, count);
}
CUresult cuDeviceGetName(char* name, int len, CUdevice dev) {
  return forward("cuDeviceGetName", &cuDeviceGetName, name, len, dev);
}
CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice dev) {
  return forward("cuDeviceGetUuid", &cuDeviceGetUuid, uuid, dev);
}
CUresult cuDeviceTotalMem(size_t* bytes, CUdevice dev) {
  return forward("cuDeviceTotalMem", &cuDeviceTotalMem, bytes, dev);
}
CUresult cuDeviceGetAttribute(int* pi, CUdevice_attribute attrib, CUdevice dev) {
  return forward("cuDeviceGetAttribute", &cuDeviceGetAttribute, pi, attrib, dev);
}
CUresult cuDeviceGetPCIBusId(char* pciBusId, int len, CUdevice dev) {
  return forward("cuDeviceGetPCIBusId", &cuDeviceGetPCIBusId, pciBusId, len, dev);
}
CUresult cuDeviceCanAccessPeer(int* canAccessPeer, CUdevice dev, CUdevice peerDev) {
  return forward("cuDeviceCanAccessPeer", &cuDeviceCanAccessPeer, canAccessPeer, dev, peerDev);
}
CUresult cuDevicePrimaryCtxRetain(CUcontext* pctx, CUdevice dev) {
  return forward("cuDevicePrimaryCtxRetain", &cuDevicePrimaryCtxRetain, pctx, dev);
}
CUresult cuDevicePrimaryCtxRelease(CUdevice dev) {
  return forward("cuDevicePrimaryCtxRelease", &cuDevicePrimaryCtxRelease, dev);
}
CUresult cuDevicePrimaryCtxReset(CUdevice dev) {
  return forward("cuDevicePrimaryCtxReset", &cuDevicePrimaryCtxReset, dev);
}
CUresult cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned flags) {
  return forward("cuDevicePrimaryCtxSetFlags", &cuDevicePrimaryCtxSetFlags, dev, flags);
}
CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned* flags, int* active) {
  return forward("cuDevicePrimaryCtxGetState", &cuDevicePrimaryCtxGetState, dev, flags, active);
}
CUresult cuCtxCreate(CUcontext* pctx, CUctxCreateParams* ctxCreateParams, unsigned flags, CUdevice dev) {
  return forward("cuCtxCreate", &cuCtxCreate, pctx, ctxCreateParams, flags, dev);
}
CUresult cuCtxDestroy(CUcontext ctx) {
  return forward("cuCtxDestroy", &cuCtxDestroy, ctx);
}
CUresult cuCtxPushCurrent(CUcontext ctx) {
  return forward("cuCtxPushCurrent", &cuCtxPushCurrent, ctx);
}
CUresult cuCtxPopCurrent(CUcontext* pctx) {
  return forward("cuCtxPopCurrent", &cuCtxPopCurrent, pctx);
}
CUresult cuCtxSetCurrent(CUcontext ctx) {
  return forward("cuCtxSetCurrent", &cuCtxSetCurrent, ctx);
}
CUresult cuCtxGetCurrent(CUcontext* pctx) {
  return forward("cuCtxGetCurrent", &cuCtxGetCurrent, pctx);
}
CUresult cuCtxGetDevice(CUdevice* device) {
  return forward("cuCtxGetDevice", &cuCtxGetDevice, device);
}
CUresult cuCtxGetFlags(unsigned* flags) {
  return forward("cuCtxGetFlags", &cuCtxGetFlags, flags);
}
CUresult cuCtxSynchronize() {
  return forward("cuCtxSynchronize", &cuCtxSynchronize);
}
CUresult cuCtxGetLimit(size_t* pvalue, CUlimit limit) {
  return forward("cuCtxGetLimit", &cuCtxGetLimit, pvalue, limit);
}
CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  return forward("cuCtxSetLimit", &cuCtxSetLimit, limit, value);
}
CUresult cuCtxGetStreamPriorityRange(int* leastPriority, int* greatestPriority) {
  return forward("cuCtxGetStreamPriorityRange", &cuCtxGetStreamPriorityRange, leastPriority, greatestPriority);
}
CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned* version) {
  return forward("cuCtxGetApiVersion", &cuCtxGetApiVersion, ctx, version);
}
CUresult cuTensorMapEncodeTiled(CUtensorMap* tensorMap, CUtensorMapDataType tensorDataType, cuuint32_t tensorRank,
                                void* globalAddress, const cuuint64_t* globalDim, const cuuint64_t* globalStrides,
                                const cuuint32_t* boxDim, const cuuint32_t* elementStrides,
                                CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion l2Promotion, CUtensorMapFloatOOBfill oobFill) {
  return forward("cuTensorMapEncodeTiled", &cuTensorMapEncodeTiled, tensorMap, tensorDataType, tensorRank,
                 globalAddress, globalDim, globalStrides, boxDim, elementStrides, interleave, swizzle, l2Promotion,
                 oobFill);
}
CUresult cuTensorMapEncodeIm2col(CUtensorMap* tensorMap, CUtensorMapDataType tensorDataType, cuuint32_t tensorRank,
                                 void* globalAddress, const cuuint64_t* globalDim, const cuuint64_t* globalStrides,
                                 const int* pixelBoxLowerCorner, const int* pixelBoxUpperCorner,
                                 cuuint32_t channelsPerPixel, cuuint32_t pixelsPerColumn,
                                 const cuuint32_t* elementStrides, CUtensorMapInterleave interleave,
                                 CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2Promotion,
                                 CUtensorMapFloatOOBfill oobFill) {
  return forward("cuTensorMapEncodeIm2col", &cuTensorMapEncodeIm2col, tensorMap, tensorDataType, tensorRank,
                 globalAddress, globalDim, globalStrides, pixelBoxLowerCorner, pixelBoxUpperCorner, channelsPerPixel,
                 pixelsPerColumn, elementStrides, interleave, swizzle, l2Promotion, oobFill);
}
CUresult cuTensorMapReplaceAddress(CUtensorMap* tensorMap, void* globalAddress) {
  return forward("cuTensorMapReplaceAddress", &cuTensorMapReplaceAddress, tensorMap, globalAddress);
}
CUresult cuCtxGetCacheConfig(CUfunc_cache* pconfig) {
  return forward("cuCtxGetCacheConfig", &cuCtxGetCacheConfig, pconfig);
}
CUresult cuCtxGetId(CUcontext ctx, unsigned long long* ctxId) {
  return forward("cuCtxGetId", &cuCtxGetId, ctx, ctxId);
}
CUresult cuCtxResetPersistingL2Cache() {
  return forward("cuCtxResetPersistingL2Cache", &cuCtxResetPersistingL2Cache);
}
CUresult cuCtxSetCacheConfig(CUfunc_cache config) {
  return forward("cuCtxSetCacheConfig", &cuCtxSetCacheConfig, config);
}
CUresult cuCtxSetFlags(unsigned flags) {
  return forward("cuCtxSetFlags", &cuCtxSetFlags, flags);
}
CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice dev) {
  // Not by its name, which is deprecated.
  return forward("cuDeviceComputeCapability", static_cast<CUresult (*)(int*, int*, CUdevice)>(nullptr), major, minor,
                 dev);
}
CUresult cuDeviceGetByPCIBusId(CUdevice* dev, const char* pciBusId) {
  return forward("cuDeviceGetByPCIBusId", &cuDeviceGetByPCIBusId, dev, pciBusId);
}
CUresult cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attrib, CUdevice srcDevice, CUdevice dstDevice) {
  return forward("cuDeviceGetP2PAttribute", &cuDeviceGetP2PAttribute, value, attrib, srcDevice, dstDevice);
}
CUresult cuProfilerStart() {
  return forward("cuProfilerStart", &cuProfilerStart);
}
CUresult cuProfilerStop() {
  return forward("cuProfilerStop", &cuProfilerStop);
}

// -------------------------------------------------------------------------------------------------------------- memory

CUresult cuMemAlloc(CUdeviceptr* dptr, size_t bytesize) {
  return forward("cuMemAlloc", &cuMemAlloc, dptr, bytesize);
}
CUresult cuMemAllocPitch(CUdeviceptr* dptr, size_t* pPitch, size_t WidthInBytes, size_t Height,
                         unsigned ElementSizeBytes) {
  return forward("cuMemAllocPitch", &cuMemAllocPitch, dptr, pPitch, WidthInBytes, Height, ElementSizeBytes);
}
CUresult cuMemFree(CUdeviceptr dptr) {
  return forward("cuMemFree", &cuMemFree, dptr);
}
CUresult cuMemAllocManaged(CUdeviceptr* dptr, size_t bytesize, unsigned flags) {
  return forward("cuMemAllocManaged", &cuMemAllocManaged, dptr, bytesize, flags);
}
CUresult cuMemAllocAsync(CUdeviceptr* dptr, size_t bytesize, CUstream hStream) {
  return forward("cuMemAllocAsync", &cuMemAllocAsync, dptr, bytesize, hStream);
}
CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream) {
  return forward("cuMemFreeAsync", &cuMemFreeAsync, dptr, hStream);
}
CUresult cuMemAllocHost(void** pp, size_t bytesize) {
  return forward("cuMemAllocHost", &cuMemAllocHost, pp, bytesize);
}
CUresult cuMemHostAlloc(void** pp, size_t bytesize, unsigned Flags) {
  return forward("cuMemHostAlloc", &cuMemHostAlloc, pp, bytesize, Flags);
}
CUresult cuMemFreeHost(void* p) {
  return forward("cuMemFreeHost", &cuMemFreeHost, p);
}
CUresult cuMemHostRegister(void* p, size_t bytesize, unsigned Flags) {
  return forward("cuMemHostRegister", &cuMemHostRegister, p, bytesize, Flags);
}
CUresult cuMemHostUnregister(void* p) {
  return forward("cuMemHostUnregister", &cuMemHostUnregister, p);
}
CUresult cuMemHostGetDevicePointer(CUdeviceptr* pdptr, void* p, unsigned Flags) {
  return forward("cuMemHostGetDevicePointer", &cuMemHostGetDevicePointer, pdptr, p, Flags);
}
CUresult cuMemHostGetFlags(unsigned* pFlags, void* p) {
  return forward("cuMemHostGetFlags", &cuMemHostGetFlags, pFlags, p);
}
CUresult cuMemGetInfo(size_t* free, size_t* total) {
  return forward("cuMemGetInfo", &cuMemGetInfo, free, total);
}
CUresult cuMemGetAddressRange(CUdeviceptr* pbase, size_t* psize, CUdeviceptr dptr) {
  return forward("cuMemGetAddressRange", &cuMemGetAddressRange, pbase, psize, dptr);
}
CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr ptr) {
  return forward("cuPointerGetAttribute", &cuPointerGetAttribute, data, attribute, ptr);
}
CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount) {
  return forward("cuMemcpy", &cuMemcpy, dst, src, ByteCount);
}
CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream) {
  return forward("cuMemcpyAsync", &cuMemcpyAsync, dst, src, ByteCount, hStream);
}
CUresult cuMemcpyHtoD(CUdeviceptr dstDevice, const void* srcHost, size_t ByteCount) {
  return forward("cuMemcpyHtoD", &cuMemcpyHtoD, dstDevice, srcHost, ByteCount);
}
CUresult cuMemcpyHtoDAsync(CUdeviceptr dstDevice, const void* srcHost, size_t ByteCount, CUstream hStream) {
  return forward("cuMemcpyHtoDAsync", &cuMemcpyHtoDAsync, dstDevice, srcHost, ByteCount, hStream);
}
CUresult cuMemcpyDtoH(void* dstHost, CUdeviceptr srcDevice, size_t ByteCount) {
  return forward("cuMemcpyDtoH", &cuMemcpyDtoH, dstHost, srcDevice, ByteCount);
}
CUresult cuMemcpyDtoHAsync(void* dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream) {
  return forward("cuMemcpyDtoHAsync", &cuMemcpyDtoHAsync, dstHost, srcDevice, ByteCount, hStream);
}
CUresult cuMemcpyDtoD(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount) {
  return forward("cuMemcpyDtoD", &cuMemcpyDtoD, dstDevice, srcDevice, ByteCount);
}
CUresult cuMemcpyDtoDAsync(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream) {
  return forward("cuMemcpyDtoDAsync", &cuMemcpyDtoDAsync, dstDevice, srcDevice, ByteCount, hStream);
}
CUresult cuMemsetD8(CUdeviceptr dstDevice, unsigned char uc, size_t N) {
  return forward("cuMemsetD8", &cuMemsetD8, dstDevice, uc, N);
}
CUresult cuMemsetD16(CUdeviceptr dstDevice, unsigned short us, size_t N) {
  return forward("cuMemsetD16", &cuMemsetD16, dstDevice, us, N);
}
CUresult cuMemsetD32(CUdeviceptr dstDevice, unsigned ui, size_t N) {
  return forward("cuMemsetD32", &cuMemsetD32, dstDevice, ui, N);
}
CUresult cuMemsetD8Async(CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream) {
  return forward("cuMemsetD8Async", &cuMemsetD8Async, dstDevice, uc, N, hStream);
}
CUresult cuMemsetD16Async(CUdeviceptr dstDevice, unsigned short us, size_t N, CUstream hStream) {
  return forward("cuMemsetD16Async", &cuMemsetD16Async, dstDevice, us, N, hStream);
}
CUresult cuMemsetD32Async(CUdeviceptr dstDevice, unsigned ui, size_t N, CUstream hStream) {
  return forward("cuMemsetD32Async", &cuMemsetD32Async, dstDevice, ui, N, hStream);
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool_out, CUdevice dev) {
  return forward("cuDeviceGetDefaultMemPool", &cuDeviceGetDefaultMemPool, pool_out, dev);
}
CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice dev) {
  return forward("cuDeviceGetMemPool", &cuDeviceGetMemPool, pool, dev);
}
CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool) {
  return forward("cuDeviceSetMemPool", &cuDeviceSetMemPool, dev, pool);
}
CUresult cuMemAdvise(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUmemLocation location) {
  return forward("cuMemAdvise", &cuMemAdvise, devPtr, count, advice, location);
}
CUresult cuMemAllocFromPoolAsync(CUdeviceptr* dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream) {
  return forward("cuMemAllocFromPoolAsync", &cuMemAllocFromPoolAsync, dptr, bytesize, pool, hStream);
}
CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* poolProps) {
  return forward("cuMemPoolCreate", &cuMemPoolCreate, pool, poolProps);
}
CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  return forward("cuMemPoolDestroy", &cuMemPoolDestroy, pool);
}
CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool memPool, CUmemLocation* location) {
  return forward("cuMemPoolGetAccess", &cuMemPoolGetAccess, flags, memPool, location);
}
CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void* value) {
  return forward("cuMemPoolGetAttribute", &cuMemPoolGetAttribute, pool, attr, value);
}
CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* map, size_t count) {
  return forward("cuMemPoolSetAccess", &cuMemPoolSetAccess, pool, map, count);
}
CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void* value) {
  return forward("cuMemPoolSetAttribute", &cuMemPoolSetAttribute, pool, attr, value);
}
CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep) {
  return forward("cuMemPoolTrimTo", &cuMemPoolTrimTo, pool, minBytesToKeep);
}
CUresult cuMemPrefetchAsync(CUdeviceptr devPtr, size_t count, CUmemLocation location, unsigned flags,
                            CUstream hStream) {
  return forward("cuMemPrefetchAsync", &cuMemPrefetchAsync, devPtr, count, location, flags, hStream);
}
CUresult cuMemcpy2D(const CUDA_MEMCPY2D* pCopy) {
  return forward("cuMemcpy2D", &cuMemcpy2D, pCopy);
}
CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D* pCopy, CUstream hStream) {
  return forward("cuMemcpy2DAsync", &cuMemcpy2DAsync, pCopy, hStream);
}
CUresult cuMemcpy2DUnaligned(const CUDA_MEMCPY2D* pCopy) {
  return forward("cuMemcpy2DUnaligned", &cuMemcpy2DUnaligned, pCopy);
}
CUresult cuMemcpy3D(const CUDA_MEMCPY3D* pCopy) {
  return forward("cuMemcpy3D", &cuMemcpy3D, pCopy);
}
CUresult cuMemcpy3DAsync(const CUDA_MEMCPY3D* pCopy, CUstream hStream) {
  return forward("cuMemcpy3DAsync", &cuMemcpy3DAsync, pCopy, hStream);
}
CUresult cuMemcpyPeer(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice, CUcontext srcContext,
                      size_t ByteCount) {
  return forward("cuMemcpyPeer", &cuMemcpyPeer, dstDevice, dstContext, srcDevice, srcContext, ByteCount);
}
CUresult cuMemcpyPeerAsync(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice, CUcontext srcContext,
                           size_t ByteCount, CUstream hStream) {
  return forward("cuMemcpyPeerAsync", &cuMemcpyPeerAsync, dstDevice, dstContext, srcDevice, srcContext, ByteCount,
                 hStream);
}
CUresult cuMemsetD2D16(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width, size_t Height) {
  return forward("cuMemsetD2D16", &cuMemsetD2D16, dstDevice, dstPitch, us, Width, Height);
}
CUresult cuMemsetD2D16Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width, size_t Height,
                            CUstream hStream) {
  return forward("cuMemsetD2D16Async", &cuMemsetD2D16Async, dstDevice, dstPitch, us, Width, Height, hStream);
}
CUresult cuMemsetD2D32(CUdeviceptr dstDevice, size_t dstPitch, unsigned ui, size_t Width, size_t Height) {
  return forward("cuMemsetD2D32", &cuMemsetD2D32, dstDevice, dstPitch, ui, Width, Height);
}
CUresult cuMemsetD2D32Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned ui, size_t Width, size_t Height,
                            CUstream hStream) {
  return forward("cuMemsetD2D32Async", &cuMemsetD2D32Async, dstDevice, dstPitch, ui, Width, Height, hStream);
}
CUresult cuMemsetD2D8(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width, size_t Height) {
  return forward("cuMemsetD2D8", &cuMemsetD2D8, dstDevice, dstPitch, uc, Width, Height);
}
CUresult cuMemsetD2D8Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width, size_t Height,
                           CUstream hStream) {
  return forward("cuMemsetD2D8Async", &cuMemsetD2D8Async, dstDevice, dstPitch, uc, Width, Height, hStream);
}
CUresult cuPointerGetAttributes(unsigned numAttributes, CUpointer_attribute* attributes, void** data, CUdeviceptr ptr) {
  return forward("cuPointerGetAttributes", &cuPointerGetAttributes, numAttributes, attributes, data, ptr);
}
CUresult cuPointerSetAttribute(const void* value, CUpointer_attribute attribute, CUdeviceptr ptr) {
  return forward("cuPointerSetAttribute", &cuPointerSetAttribute, value, attribute, ptr);
}
