// Driver API: streams and events.

#include "emulator/runtime/driver_table.h"

namespace emu::runtime {
namespace {

CUresult stream_create(CUstream* stream, unsigned flags) {
  return driver([&] { return cudaStreamCreateWithFlags(stream, flags); });
}
CUresult stream_create_with_priority(CUstream* stream, unsigned flags, int priority) {
  return driver([&] { return cudaStreamCreateWithPriority(stream, flags, priority); });
}
CUresult stream_destroy(CUstream stream) {
  return driver([&] { return cudaStreamDestroy(stream); });
}
CUresult stream_synchronize(CUstream stream) {
  return driver([&] { return cudaStreamSynchronize(stream); });
}
CUresult stream_query(CUstream stream) {
  return driver([&] { return cudaStreamQuery(stream); });
}
CUresult stream_wait_event(CUstream stream, CUevent event, unsigned flags) {
  return driver([&] { return cudaStreamWaitEvent(stream, event, flags); });
}
CUresult stream_flags(CUstream stream, unsigned* flags) {
  return driver([&] { return cudaStreamGetFlags(stream, flags); });
}
CUresult stream_priority(CUstream stream, int* priority) {
  return driver([&] { return cudaStreamGetPriority(stream, priority); });
}
CUresult launch_host_function(CUstream stream, CUhostFn function, void* data) {
  return driver([&] { return cudaLaunchHostFunc(stream, function, data); });
}
CUresult add_callback(CUstream stream, CUstreamCallback callback, void* data, unsigned flags) {
  // The error that it is told of has one number in both APIs (to_result: the exceptions are none that a device leaves).
  return driver(
      [&] { return cudaStreamAddCallback(stream, reinterpret_cast<cudaStreamCallback_t>(callback), data, flags); });
}
CUresult stream_context(CUstream stream, CUcontext* context) {
  return driver([&] {
    return answer([&](Runtime& runtime) {
      require(context != nullptr);
      runtime.streams.find(stream);
      *context = primary_context();
    });
  });
}
CUresult stream_contexts(CUstream stream, CUcontext* context, CUgreenCtx* green) {
  if (green) *green = nullptr;
  return stream_context(stream, context);
}
CUresult stream_id(CUstream stream, unsigned long long* id) {
  return driver([&] { return cudaStreamGetId(stream, id); });
}
CUresult stream_device(CUstream stream, CUdevice* device) {
  return driver([&] { return cudaStreamGetDevice(stream, device); });
}
CUresult begin_capture(CUstream stream, CUstreamCaptureMode mode) {
  return driver([&] { return cudaStreamBeginCapture(stream, static_cast<cudaStreamCaptureMode>(mode)); });
}
CUresult begin_capture_to_graph(CUstream stream, CUgraph graph, const CUgraphNode* needs, const CUgraphEdgeData* data,
                                size_t count, CUstreamCaptureMode mode) {
  return driver([&] {
    return cudaStreamBeginCaptureToGraph(stream, graph, needs, reinterpret_cast<const cudaGraphEdgeData*>(data), count,
                                         static_cast<cudaStreamCaptureMode>(mode));
  });
}
CUresult update_dependencies(CUstream stream, CUgraphNode* nodes, const CUgraphEdgeData* data, size_t count,
                             unsigned flags) {
  return driver([&] {
    return cudaStreamUpdateCaptureDependencies(stream, nodes, reinterpret_cast<const cudaGraphEdgeData*>(data), count,
                                               flags);
  });
}
CUresult update_dependencies_11(CUstream stream, CUgraphNode* nodes, size_t count, unsigned flags) {
  return update_dependencies(stream, nodes, nullptr, count, flags);
}
CUresult stream_is_capturing(CUstream stream, CUstreamCaptureStatus* status) {
  return driver([&] { return cudaStreamIsCapturing(stream, reinterpret_cast<cudaStreamCaptureStatus*>(status)); });
}
CUresult capture_info(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                      const CUgraphNode** nodes, const CUgraphEdgeData** edges, size_t* count) {
  return driver([&] {
    return cudaStreamGetCaptureInfo(stream, reinterpret_cast<cudaStreamCaptureStatus*>(status),
                                    reinterpret_cast<unsigned long long*>(id), graph, nodes,
                                    reinterpret_cast<const cudaGraphEdgeData**>(edges), count);
  });
}
CUresult capture_info_11(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                         const CUgraphNode** nodes, size_t* count) {
  return capture_info(stream, status, id, graph, nodes, nullptr, count);
}
CUresult capture_info_10(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id) {
  return capture_info_11(stream, status, id, nullptr, nullptr, nullptr);
}
CUresult exchange_capture_mode(CUstreamCaptureMode* mode) {
  return driver([&] { return cudaThreadExchangeStreamCaptureMode(reinterpret_cast<cudaStreamCaptureMode*>(mode)); });
}
static_assert(sizeof(CUstreamAttrValue) == sizeof(cudaLaunchAttributeValue), "the two APIs share the attributes");
CUresult stream_attribute(CUstream stream, CUstreamAttrID attribute, CUstreamAttrValue* value) {
  return driver([&] {
    return cudaStreamGetAttribute(stream, static_cast<cudaLaunchAttributeID>(attribute),
                                  reinterpret_cast<cudaLaunchAttributeValue*>(value));
  });
}
CUresult set_stream_attribute(CUstream stream, CUstreamAttrID attribute, const CUstreamAttrValue* value) {
  return driver([&] {
    return cudaStreamSetAttribute(stream, static_cast<cudaLaunchAttributeID>(attribute),
                                  reinterpret_cast<const cudaLaunchAttributeValue*>(value));
  });
}
CUresult copy_stream_attributes(CUstream to, CUstream from) {
  return driver([&] { return cudaStreamCopyAttributes(to, from); });
}
CUresult attach_memory(CUstream stream, CUdeviceptr address, size_t bytes, unsigned flags) {
  return driver([&] { return cudaStreamAttachMemAsync(stream, reinterpret_cast<void*>(address), bytes, flags); });
}
CUresult event_record_with_flags(CUevent event, CUstream stream, unsigned flags) {
  return driver([&] { return cudaEventRecordWithFlags(event, stream, flags); });
}
CUresult event_create(CUevent* event, unsigned flags) {
  return driver([&] { return cudaEventCreateWithFlags(event, flags); });
}
CUresult event_destroy(CUevent event) {
  return driver([&] { return cudaEventDestroy(event); });
}
CUresult event_record(CUevent event, CUstream stream) {
  return driver([&] { return cudaEventRecord(event, stream); });
}
CUresult event_synchronize(CUevent event) {
  return driver([&] { return cudaEventSynchronize(event); });
}
CUresult event_query(CUevent event) {
  return driver([&] { return cudaEventQuery(event); });
}
CUresult event_elapsed(float* milliseconds, CUevent start, CUevent end) {
  return driver([&] { return cudaEventElapsedTime(milliseconds, start, end); });
}

}  // namespace

std::span<const DriverFunction> driver_functions_of_streams() {
  static const DriverFunction table[] = {
      entry<PFN_cuStreamCreate_v2000>("cuStreamCreate", 2000, stream_create),
      entry<PFN_cuStreamCreateWithPriority_v5050>("cuStreamCreateWithPriority", 5050, stream_create_with_priority),
      entry<PFN_cuStreamDestroy_v4000>("cuStreamDestroy", 4000, stream_destroy),
      entry<PFN_cuStreamSynchronize_v2000>("cuStreamSynchronize", 2000, stream_synchronize),
      entry<PFN_cuStreamQuery_v2000>("cuStreamQuery", 2000, stream_query),
      entry<PFN_cuStreamWaitEvent_v3020>("cuStreamWaitEvent", 3020, stream_wait_event),
      entry<PFN_cuStreamGetFlags_v5050>("cuStreamGetFlags", 5050, stream_flags),
      entry<PFN_cuStreamGetPriority_v5050>("cuStreamGetPriority", 5050, stream_priority),
      entry<PFN_cuLaunchHostFunc_v10000>("cuLaunchHostFunc", 10000, launch_host_function),
      entry<PFN_cuStreamAddCallback_v5000>("cuStreamAddCallback", 5000, add_callback),
      entry<PFN_cuStreamGetCtx_v9020>("cuStreamGetCtx", 9020, stream_context),
      entry<PFN_cuStreamGetCtx_v12050>("cuStreamGetCtx", 12050, stream_contexts),
      entry<PFN_cuStreamGetId_v12000>("cuStreamGetId", 12000, stream_id),
      entry<PFN_cuStreamGetDevice_v12080>("cuStreamGetDevice", 12080, stream_device),
      entry<PFN_cuStreamBeginCapture_v10010>("cuStreamBeginCapture", 10010, begin_capture),
      entry<PFN_cuStreamBeginCaptureToGraph_v12030>("cuStreamBeginCaptureToGraph", 12030, begin_capture_to_graph),
      entry<PFN_cuStreamEndCapture_v10000>("cuStreamEndCapture", 10000, as_driver<cudaStreamEndCapture>),
      entry<PFN_cuStreamUpdateCaptureDependencies_v11030>("cuStreamUpdateCaptureDependencies", 11030,
                                                          update_dependencies_11),
      entry<PFN_cuStreamUpdateCaptureDependencies_v12030>("cuStreamUpdateCaptureDependencies", 12030,
                                                          update_dependencies),
      entry<PFN_cuStreamIsCapturing_v10000>("cuStreamIsCapturing", 10000, stream_is_capturing),
      entry<PFN_cuStreamGetCaptureInfo_v10010>("cuStreamGetCaptureInfo", 10010, capture_info_10),
      entry<PFN_cuStreamGetCaptureInfo_v11030>("cuStreamGetCaptureInfo", 11030, capture_info_11),
      entry<PFN_cuStreamGetCaptureInfo_v12030>("cuStreamGetCaptureInfo", 12030, capture_info),
      entry<PFN_cuThreadExchangeStreamCaptureMode_v10010>("cuThreadExchangeStreamCaptureMode", 10010,
                                                          exchange_capture_mode),
      entry<PFN_cuStreamGetAttribute_v11000>("cuStreamGetAttribute", 11000, stream_attribute),
      entry<PFN_cuStreamSetAttribute_v11000>("cuStreamSetAttribute", 11000, set_stream_attribute),
      entry<PFN_cuStreamCopyAttributes_v11000>("cuStreamCopyAttributes", 11000, copy_stream_attributes),
      entry<PFN_cuStreamAttachMemAsync_v6000>("cuStreamAttachMemAsync", 6000, attach_memory),
      entry<PFN_cuEventRecordWithFlags_v11010>("cuEventRecordWithFlags", 11010, event_record_with_flags),
      entry<PFN_cuEventCreate_v2000>("cuEventCreate", 2000, event_create),
      entry<PFN_cuEventDestroy_v4000>("cuEventDestroy", 4000, event_destroy),
      entry<PFN_cuEventRecord_v2000>("cuEventRecord", 2000, event_record),
      entry<PFN_cuEventSynchronize_v2000>("cuEventSynchronize", 2000, event_synchronize),
      entry<PFN_cuEventQuery_v2000>("cuEventQuery", 2000, event_query),
      entry<PFN_cuEventElapsedTime_v2000>("cuEventElapsedTime", 2000, event_elapsed),
      entry<PFN_cuEventElapsedTime_v12080>("cuEventElapsedTime", 12080, event_elapsed),
  };
  return table;
}

}  // namespace emu::runtime
