// Streams whose work becomes a graph: see graph.h.

#include "emulator/runtime/api.h"

using namespace emu::runtime;

namespace {

cudaError_t begin(cudaStream_t stream, cudaStreamCaptureMode mode, const cudaGraph_t* into,
                  const cudaGraphNode_t* needs, size_t count) {
  return answer([&](Runtime& runtime) {
    require(mode >= cudaStreamCaptureModeGlobal && mode <= cudaStreamCaptureModeRelaxed);
    runtime.device();
    const auto in = runtime.streams.find(stream);
    if (into) {
      runtime.streams.begin_capture(*in, mode, runtime.graphs.find(*into), runtime.graphs.nodes(needs, count));
      return;
    }
    const auto graph = std::make_shared<Graph>();
    runtime.streams.begin_capture(*in, mode, graph, {});
    runtime.graphs.adopt(graph);
  });
}

}  // namespace

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return begin(stream, mode, nullptr, nullptr, 0);
}

cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t* needs,
                                          const cudaGraphEdgeData*, size_t count, cudaStreamCaptureMode mode) {
  return begin(stream, mode, &graph, needs, count);
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return answer([&](Runtime& runtime) {
    require(graph != nullptr);
    *graph = nullptr;
    const auto in = runtime.streams.find(stream);
    std::shared_ptr<Graph> captured;
    try {
      runtime.streams.end_capture(*in, captured);
    } catch (const ApiError&) {
      if (captured && runtime.graphs.has(handle_of(*captured))) runtime.graphs.destroy(handle_of(*captured));
      throw;
    }
    *graph = handle_of(*captured);
  });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return cudaStreamGetCaptureInfo(stream, status, nullptr, nullptr, nullptr, nullptr, nullptr);
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                                     cudaGraph_t* graph, const cudaGraphNode_t** nodes, const cudaGraphEdgeData** edges,
                                     size_t* count) {
  // Both lists are good until the next call for the stream.
  thread_local std::vector<cudaGraphNode_t> handles;
  thread_local std::vector<cudaGraphEdgeData> data;
  return answer([&](Runtime& runtime) {
    require(status != nullptr);
    runtime.device();
    const auto in = runtime.streams.find(stream);
    require(!runtime.streams.beside_blocking_capture(*in), cudaErrorStreamCaptureImplicit);
    const Streams::State state = runtime.streams.capture_of(*in);
    *status = !state.capture         ? cudaStreamCaptureStatusNone
              : state.capture->valid ? cudaStreamCaptureStatusActive
                                     : cudaStreamCaptureStatusInvalidated;
    if (*status != cudaStreamCaptureStatusActive) return;
    handles.clear();
    for (const GraphNode* node : state.tail) handles.push_back(handle_of(*node));
    data.assign(handles.size(), {});
    if (id) *id = state.capture->id;
    if (graph) *graph = handle_of(*state.capture->graph);
    if (nodes) *nodes = handles.data();
    if (edges) *edges = data.data();
    if (count) *count = handles.size();
  });
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return answer([&](Runtime& runtime) {
    require(mode != nullptr);  // an H200 takes any value
    runtime.device();
    *mode = Streams::exchange_capture_mode(*mode);
  });
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* nodes, const cudaGraphEdgeData*,
                                                size_t count, unsigned flags) {
  return answer([&](Runtime& runtime) {
    require(flags == cudaStreamAddCaptureDependencies || flags == cudaStreamSetCaptureDependencies);
    runtime.streams.set_tail(*runtime.streams.find(stream), runtime.graphs.nodes(nodes, count),
                             flags == cudaStreamAddCaptureDependencies);
  });
}
