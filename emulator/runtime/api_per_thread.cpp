// What a program compiled with --default-stream per-thread calls: the same functions under names with the suffix _ptsz
// or _ptds, where stream 0 is the calling thread's own. (The toolkit's headers declare them only in that mode.)

#include "emulator/runtime/api.h"
#include "emulator/runtime/api_copy.h"

using namespace emu::runtime;

#pragma GCC visibility push(default)
extern "C" {

// -------------------------------------------------------------------------------- copies and fills in "the" default
// stream

cudaError_t cudaMemcpy_ptds(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return copy_1d(to, from, bytes, kind, cudaStreamPerThread, Wait::as_the_plain_call);
}
cudaError_t cudaMemcpy2D_ptds(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                              size_t height, cudaMemcpyKind kind) {
  return copy_2d(to, to_pitch, from, from_pitch, width, height, kind, cudaStreamPerThread, Wait::as_the_plain_call);
}
cudaError_t cudaMemcpy3D_ptds(const cudaMemcpy3DParms* what) {
  return copy_3d(what, cudaStreamPerThread, Wait::as_the_plain_call);
}
cudaError_t cudaMemcpyToSymbol_ptds(const void* symbol, const void* from, size_t bytes, size_t offset,
                                    cudaMemcpyKind kind) {
  return copy_to_symbol(symbol, from, bytes, offset, kind, cudaStreamPerThread, Wait::as_the_plain_call);
}
cudaError_t cudaMemcpyFromSymbol_ptds(void* to, const void* symbol, size_t bytes, size_t offset, cudaMemcpyKind kind) {
  return copy_from_symbol(to, symbol, bytes, offset, kind, cudaStreamPerThread, Wait::as_the_plain_call);
}
cudaError_t cudaMemset_ptds(void* to, int value, size_t bytes) {
  return fill_2d(to, bytes, value, bytes, 1, cudaStreamPerThread, Wait::as_the_plain_call);
}
cudaError_t cudaMemset2D_ptds(void* to, size_t pitch, int value, size_t width, size_t height) {
  return fill_2d(to, pitch, value, width, height, cudaStreamPerThread, Wait::as_the_plain_call);
}
cudaError_t cudaMemset3D_ptds(cudaPitchedPtr to, int value, cudaExtent extent) {
  return fill_3d(to, value, extent, cudaStreamPerThread, Wait::as_the_plain_call);
}

// ------------------------------------------------------------------------------------- functions that take a stream

cudaError_t cudaMemcpyAsync_ptsz(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return cudaMemcpyAsync(to, from, bytes, kind, per_thread(stream));
}
cudaError_t cudaMemcpy2DAsync_ptsz(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                                   size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  return cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width, height, kind, per_thread(stream));
}
cudaError_t cudaMemcpy3DAsync_ptsz(const cudaMemcpy3DParms* what, cudaStream_t stream) {
  return cudaMemcpy3DAsync(what, per_thread(stream));
}
cudaError_t cudaMemcpyToSymbolAsync_ptsz(const void* symbol, const void* from, size_t bytes, size_t offset,
                                         cudaMemcpyKind kind, cudaStream_t stream) {
  return cudaMemcpyToSymbolAsync(symbol, from, bytes, offset, kind, per_thread(stream));
}
cudaError_t cudaMemcpyFromSymbolAsync_ptsz(void* to, const void* symbol, size_t bytes, size_t offset,
                                           cudaMemcpyKind kind, cudaStream_t stream) {
  return cudaMemcpyFromSymbolAsync(to, symbol, bytes, offset, kind, per_thread(stream));
}
cudaError_t cudaMemsetAsync_ptsz(void* to, int value, size_t bytes, cudaStream_t stream) {
  return cudaMemsetAsync(to, value, bytes, per_thread(stream));
}
cudaError_t cudaMemset2DAsync_ptsz(void* to, size_t pitch, int value, size_t width, size_t height,
                                   cudaStream_t stream) {
  return cudaMemset2DAsync(to, pitch, value, width, height, per_thread(stream));
}
cudaError_t cudaMemset3DAsync_ptsz(cudaPitchedPtr to, int value, cudaExtent extent, cudaStream_t stream) {
  return cudaMemset3DAsync(to, value, extent, per_thread(stream));
}
cudaError_t cudaMallocAsync_ptsz(void** pointer, size_t bytes, cudaStream_t stream) {
  return cudaMallocAsync(pointer, bytes, per_thread(stream));
}
cudaError_t cudaMallocFromPoolAsync_ptsz(void** pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream) {
  return cudaMallocFromPoolAsync(pointer, bytes, pool, per_thread(stream));
}
cudaError_t cudaFreeAsync_ptsz(void* pointer, cudaStream_t stream) {
  return cudaFreeAsync(pointer, per_thread(stream));
}
cudaError_t cudaMemPrefetchAsync_ptsz(const void* pointer, size_t bytes, cudaMemLocation location, unsigned flags,
                                      cudaStream_t stream) {
  return cudaMemPrefetchAsync(pointer, bytes, location, flags, per_thread(stream));
}

cudaError_t cudaStreamSynchronize_ptsz(cudaStream_t stream) {
  return cudaStreamSynchronize(per_thread(stream));
}
cudaError_t cudaStreamQuery_ptsz(cudaStream_t stream) {
  return cudaStreamQuery(per_thread(stream));
}
cudaError_t cudaStreamWaitEvent_ptsz(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  return cudaStreamWaitEvent(per_thread(stream), event, flags);
}
cudaError_t cudaStreamGetFlags_ptsz(cudaStream_t stream, unsigned* flags) {
  return cudaStreamGetFlags(per_thread(stream), flags);
}
cudaError_t cudaStreamGetPriority_ptsz(cudaStream_t stream, int* priority) {
  return cudaStreamGetPriority(per_thread(stream), priority);
}
cudaError_t cudaStreamGetId_ptsz(cudaStream_t stream, unsigned long long* id) {
  return cudaStreamGetId(per_thread(stream), id);
}
cudaError_t cudaStreamGetDevice_ptsz(cudaStream_t stream, int* device) {
  return cudaStreamGetDevice(per_thread(stream), device);
}
cudaError_t cudaStreamBeginCapture_ptsz(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return cudaStreamBeginCapture(per_thread(stream), mode);
}
cudaError_t cudaStreamBeginCaptureToGraph_ptsz(cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t* needs,
                                               const cudaGraphEdgeData* edges, size_t count,
                                               cudaStreamCaptureMode mode) {
  return cudaStreamBeginCaptureToGraph(per_thread(stream), graph, needs, edges, count, mode);
}
cudaError_t cudaStreamEndCapture_ptsz(cudaStream_t stream, cudaGraph_t* graph) {
  return cudaStreamEndCapture(per_thread(stream), graph);
}
cudaError_t cudaStreamUpdateCaptureDependencies_ptsz(cudaStream_t stream, cudaGraphNode_t* nodes,
                                                     const cudaGraphEdgeData* edges, size_t count, unsigned flags) {
  return cudaStreamUpdateCaptureDependencies(per_thread(stream), nodes, edges, count, flags);
}
cudaError_t cudaGraphLaunch_ptsz(cudaGraphExec_t exec, cudaStream_t stream) {
  return cudaGraphLaunch(exec, per_thread(stream));
}
cudaError_t cudaGraphUpload_ptsz(cudaGraphExec_t exec, cudaStream_t stream) {
  return cudaGraphUpload(exec, per_thread(stream));
}
cudaError_t cudaGraphInstantiateWithParams_ptsz(cudaGraphExec_t* exec, cudaGraph_t graph,
                                                cudaGraphInstantiateParams* what) {
  return cudaGraphInstantiateWithParams(exec, graph, what);
}
cudaError_t cudaStreamIsCapturing_ptsz(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return cudaStreamIsCapturing(per_thread(stream), status);
}
cudaError_t cudaStreamGetCaptureInfo_ptsz(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                                          cudaGraph_t* graph, const cudaGraphNode_t** nodes,
                                          const cudaGraphEdgeData** edges, size_t* count) {
  return cudaStreamGetCaptureInfo(per_thread(stream), status, id, graph, nodes, edges, count);
}
cudaError_t cudaStreamAddCallback_ptsz(cudaStream_t stream, cudaStreamCallback_t callback, void* data, unsigned flags) {
  return cudaStreamAddCallback(per_thread(stream), callback, data, flags);
}
cudaError_t cudaStreamAttachMemAsync_ptsz(cudaStream_t stream, void* pointer, size_t bytes, unsigned flags) {
  return cudaStreamAttachMemAsync(per_thread(stream), pointer, bytes, flags);
}
cudaError_t cudaStreamCopyAttributes_ptsz(cudaStream_t to, cudaStream_t from) {
  return cudaStreamCopyAttributes(per_thread(to), per_thread(from));
}

cudaError_t cudaStreamGetAttribute_ptsz(cudaStream_t stream, cudaLaunchAttributeID id,
                                        cudaLaunchAttributeValue* value) {
  return cudaStreamGetAttribute(per_thread(stream), id, value);
}
cudaError_t cudaStreamSetAttribute_ptsz(cudaStream_t stream, cudaLaunchAttributeID id,
                                        const cudaLaunchAttributeValue* value) {
  return cudaStreamSetAttribute(per_thread(stream), id, value);
}

cudaError_t cudaEventRecord_ptsz(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecord(event, per_thread(stream));
}
cudaError_t cudaEventRecordWithFlags_ptsz(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  return cudaEventRecordWithFlags(event, per_thread(stream), flags);
}

cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
                                    cudaStream_t stream) {
  return __cudaLaunchKernel(kernel, grid, block, arguments, shared_bytes, per_thread(stream));
}
cudaError_t cudaLaunchKernel_ptsz(const void* function, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
                                  cudaStream_t stream) {
  return cudaLaunchKernel(function, grid, block, arguments, shared_bytes, per_thread(stream));
}
cudaError_t cudaLaunchCooperativeKernel_ptsz(const void* function, dim3 grid, dim3 block, void** arguments,
                                             size_t shared_bytes, cudaStream_t stream) {
  return cudaLaunchCooperativeKernel(function, grid, block, arguments, shared_bytes, per_thread(stream));
}
cudaError_t cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t* config, const void* function, void** arguments) {
  if (!config) return remember(cudaErrorInvalidValue);
  cudaLaunchConfig_t own = *config;
  own.stream = per_thread(own.stream);
  return cudaLaunchKernelExC(&own, function, arguments);
}
cudaError_t cudaLaunchHostFunc_ptsz(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return cudaLaunchHostFunc(per_thread(stream), function, data);
}

// The driver functions handed out take stream 0 to be the legacy one here too; on a device with one queue that only
// makes cuStreamSynchronize(0) wait for more.
cudaError_t cudaGetDriverEntryPoint_ptsz(const char* symbol, void** function, unsigned long long flags,
                                         cudaDriverEntryPointQueryResult* status) {
  return cudaGetDriverEntryPointByVersion(symbol, function, CUDART_VERSION, flags, status);
}
cudaError_t cudaGetDriverEntryPointByVersion_ptsz(const char* symbol, void** function, unsigned version,
                                                  unsigned long long flags, cudaDriverEntryPointQueryResult* status) {
  return cudaGetDriverEntryPointByVersion(symbol, function, version, flags, status);
}

}  // extern "C"
#pragma GCC visibility pop
