// Graphs, built by hand and captured. The error codes here are those that the runtime's documentation gives; unlike the
// other programs' they have not been seen on a GPU yet.

#include <algorithm>
#include <vector>

#include "check.h"

__global__ void append(int* list, int value) {
  const int count = list[0];
  list[1 + count] = value;
  list[0] = count + 1;
}

__global__ void scale(int* data, int factor, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) data[i] *= factor;
}

static __constant__ int table[4];

__global__ void read_table(int* to) {
  to[threadIdx.x] = table[threadIdx.x];
}

struct Bench {
  int* list = nullptr;
  cudaStream_t stream = nullptr;
  Bench() {
    expect_success(cudaMalloc(&list, 64 * sizeof(int)));
    expect_success(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    clear();
  }
  void clear() { expect_success(cudaMemset(list, 0, 64 * sizeof(int))); }
  std::vector<int> values() {
    expect_success(cudaDeviceSynchronize());
    int all[64];
    expect_success(cudaMemcpy(all, list, sizeof all, cudaMemcpyDeviceToHost));
    return {all + 1, all + 1 + all[0]};
  }
  void expect_values(const std::vector<int>& wanted, const std::source_location& at = std::source_location::current()) {
    expect(values() == wanted, "the kernels ran in another order, or not at all", at);
  }
};

static size_t count_nodes(cudaGraph_t graph) {
  size_t count = 0;
  expect_success(cudaGraphGetNodes(graph, nullptr, &count));
  return count;
}

static void capture_and_replay() {
  Bench bench;
  cudaStream_t side;
  cudaEvent_t fork, joined;
  expect_success(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
  expect_success(cudaEventCreate(&fork));
  expect_success(cudaEventCreate(&joined));
  int host_source = 3, host_result[3] = {};
  int* device_value = nullptr;
  expect_success(cudaMalloc(&device_value, sizeof(int)));

  expect_success(cudaStreamBeginCapture(bench.stream, cudaStreamCaptureModeGlobal));
  append<<<1, 1, 0, bench.stream>>>(bench.list, 1);
  expect_success(cudaEventRecord(fork, bench.stream));
  expect_success(cudaStreamWaitEvent(side, fork));
  cudaStreamCaptureStatus status;
  expect_success(cudaStreamIsCapturing(side, &status));
  expect_equal(static_cast<int>(status), static_cast<int>(cudaStreamCaptureStatusActive));
  append<<<1, 1, 0, side>>>(bench.list, 2);
  expect_success(cudaMemcpyAsync(device_value, &host_source, sizeof(int), cudaMemcpyHostToDevice, side));
  scale<<<1, 32, 0, side>>>(device_value, 10, 1);
  expect_success(cudaEventRecord(joined, side));
  expect_success(cudaStreamWaitEvent(bench.stream, joined));
  expect_success(cudaMemcpyAsync(host_result, device_value, sizeof(int), cudaMemcpyDeviceToHost, bench.stream));
  expect_success(cudaMemsetAsync(device_value, 0, sizeof(int), bench.stream));
  expect_success(cudaLaunchHostFunc(
      bench.stream, [](void* result) { static_cast<int*>(result)[1] += static_cast<int*>(result)[0]; }, host_result));
  unsigned long long id = 0;
  cudaGraph_t during = nullptr, graph = nullptr;
  const cudaGraphNode_t* needs = nullptr;
  size_t count = 0;
  expect_success(cudaStreamGetCaptureInfo(bench.stream, &status, &id, &during, &needs, nullptr, &count));
  expect(id != 0 && count == 1, "the capture has an id, and the next node needs the last one");
  expect_success(cudaStreamEndCapture(bench.stream, &graph));
  expect(graph == during, "one graph, during the capture and after it");
  expect_success(cudaStreamIsCapturing(side, &status));
  expect_equal(static_cast<int>(status), static_cast<int>(cudaStreamCaptureStatusNone));
  expect_equal(count_nodes(graph), size_t{7});
  bench.expect_values({});  // nothing has run

  size_t roots = 0, edges = 0;
  expect_success(cudaGraphGetRootNodes(graph, nullptr, &roots));
  expect_success(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges));
  expect_equal(roots, size_t{1});
  expect(edges >= 6, "every later node needs one at least");

  cudaGraphExec_t exec;
  expect_success(cudaGraphInstantiate(&exec, graph, 0));
  expect_success(cudaGraphDestroy(graph));  // the other is independent of it
  expect_success(cudaGraphLaunch(exec, bench.stream));
  expect_success(cudaStreamSynchronize(bench.stream));
  expect_equal(host_result[1], 30);
  host_source = 4;  // copies read when they run
  expect_success(cudaGraphLaunch(exec, bench.stream));
  expect_success(cudaStreamSynchronize(bench.stream));
  expect_equal(host_result[1], 70);
  bench.expect_values({1, 2, 1, 2});
  expect_success(cudaGraphExecDestroy(exec));
  expect_error(cudaGraphLaunch(exec, bench.stream), cudaErrorInvalidValue);
  cudaGetLastError();
}

static cudaGraphNode_t add_append(cudaGraph_t graph, int* list, int value, std::vector<cudaGraphNode_t> needs = {}) {
  void* arguments[] = {&list, &value};
  cudaKernelNodeParams what{};
  what.func = reinterpret_cast<void*>(append);
  what.gridDim = what.blockDim = dim3(1);
  what.kernelParams = arguments;
  cudaGraphNode_t node = nullptr;
  expect_success(cudaGraphAddKernelNode(&node, graph, needs.data(), needs.size(), &what));
  return node;
}

static void built_by_hand() {
  Bench bench;
  cudaGraph_t graph, inner;
  expect_success(cudaGraphCreate(&graph, 0));
  expect_success(cudaGraphCreate(&inner, 0));
  add_append(inner, bench.list, 8, {add_append(inner, bench.list, 7)});

  // Edges, not the order in which nodes are added, say what comes first.
  const cudaGraphNode_t last = add_append(graph, bench.list, 3);
  const cudaGraphNode_t first = add_append(graph, bench.list, 1);
  cudaGraphNode_t child, empty;
  expect_success(cudaGraphAddChildGraphNode(&child, graph, &first, 1, inner));
  expect_success(cudaGraphAddEmptyNode(&empty, graph, &child, 1));
  expect_success(cudaGraphAddDependencies(graph, &empty, &last, nullptr, 1));
  expect_success(cudaGraphDestroy(inner));  // the node has a copy
  cudaGraphNodeType type;
  expect_success(cudaGraphNodeGetType(child, &type));
  expect_equal(static_cast<int>(type), static_cast<int>(cudaGraphNodeTypeGraph));

  cudaGraphExec_t exec;
  expect_success(cudaGraphInstantiate(&exec, graph, 0));
  expect_success(cudaGraphLaunch(exec, bench.stream));
  bench.expect_values({1, 7, 8, 3});

  // Other parameters: of the executable graph alone, then of the graph itself.
  bench.clear();
  cudaKernelNodeParams what{};
  expect_success(cudaGraphKernelNodeGetParams(last, &what));
  expect(what.func == reinterpret_cast<void*>(append), "a node names its kernel as the program does (an H200)");
  expect_equal(*static_cast<int*>(what.kernelParams[1]), 3);
  int value = 33;
  void* arguments[] = {what.kernelParams[0], &value};
  what.kernelParams = arguments;
  expect_success(cudaGraphExecKernelNodeSetParams(exec, last, &what));
  expect_success(cudaGraphNodeSetEnabled(exec, first, 0));
  expect_success(cudaGraphLaunch(exec, bench.stream));
  bench.expect_values({7, 8, 33});
  bench.clear();
  value = 44;
  expect_success(cudaGraphKernelNodeSetParams(last, &what));
  expect_success(cudaGraphNodeSetEnabled(exec, first, 1));
  cudaGraphExecUpdateResultInfo result;
  expect_success(cudaGraphExecUpdate(exec, graph, &result));
  expect_success(cudaGraphLaunch(exec, bench.stream));
  bench.expect_values({1, 7, 8, 44});

  // A clone is another graph, whose nodes can be found.
  cudaGraph_t clone;
  cudaGraphNode_t found;
  expect_success(cudaGraphClone(&clone, graph));
  expect_success(cudaGraphNodeFindInClone(&found, last, clone));
  expect(found != last, "a node of its own");
  expect_success(cudaGraphDestroyNode(found));
  expect_equal(count_nodes(clone), size_t{3});
  expect_equal(count_nodes(graph), size_t{4});
  expect_error(cudaGraphExecUpdate(exec, clone, &result), cudaErrorGraphExecUpdateFailure);
  cudaGetLastError();

  // Nodes that wait for each other.
  expect_success(cudaGraphAddDependencies(graph, &last, &first, nullptr, 1));
  expect_error(cudaGraphInstantiate(&exec, graph, 0), cudaErrorInvalidValue);
  cudaGetLastError();
}

static void memory_nodes() {
  Bench bench;
  cudaGraph_t graph;
  expect_success(cudaGraphCreate(&graph, 0));
  int* values = nullptr;
  expect_success(cudaMalloc(&values, 8 * sizeof(int)));
  cudaMemsetParams fill{};
  fill.dst = values;
  fill.value = 5;
  fill.elementSize = 4;
  fill.width = 8;
  fill.height = 1;
  cudaGraphNode_t filled, copied, to_symbol;
  expect_success(cudaGraphAddMemsetNode(&filled, graph, nullptr, 0, &fill));
  int result[8] = {}, constants[4] = {1, 2, 3, 4};
  expect_success(
      cudaGraphAddMemcpyNode1D(&copied, graph, &filled, 1, result, values, sizeof result, cudaMemcpyDeviceToHost));
  expect_success(cudaGraphAddMemcpyNodeToSymbol(&to_symbol, graph, nullptr, 0, table, constants, sizeof constants, 0,
                                                cudaMemcpyHostToDevice));
  cudaEvent_t event;
  cudaGraphNode_t recorded;
  expect_success(cudaEventCreate(&event));
  expect_success(cudaGraphAddEventRecordNode(&recorded, graph, &copied, 1, event));
  cudaGraphExec_t exec;
  expect_success(cudaGraphInstantiateWithFlags(&exec, graph, 0));
  expect_success(cudaGraphLaunch(exec, bench.stream));
  expect_success(cudaEventSynchronize(event));
  expect(std::ranges::count(result, 5) == 8, "filled, then copied");
  read_table<<<1, 4, 0, bench.stream>>>(values);
  expect_success(cudaMemcpy(result, values, sizeof constants, cudaMemcpyDeviceToHost));
  expect(std::ranges::equal(constants, constants + 4, result, result + 4), "the __constant__ variable was written");
  fill.value = 6;
  expect_success(cudaGraphExecMemsetNodeSetParams(exec, filled, &fill));
  expect_success(cudaGraphLaunch(exec, bench.stream));
  expect_success(cudaStreamSynchronize(bench.stream));
  expect(std::ranges::count(result, 6) == 8, "filled with the new value");

  // Memory that is allocated in a capture has one address for all launches.
  expect_success(cudaStreamBeginCapture(bench.stream, cudaStreamCaptureModeRelaxed));
  int* own = nullptr;
  expect_success(cudaMallocAsync(&own, 4 * sizeof(int), bench.stream));
  expect_success(cudaMemsetAsync(own, 1, 4 * sizeof(int), bench.stream));
  scale<<<1, 4, 0, bench.stream>>>(own, 2, 4);
  expect_success(cudaMemcpyAsync(result, own, 4 * sizeof(int), cudaMemcpyDeviceToHost, bench.stream));
  expect_success(cudaFreeAsync(own, bench.stream));
  cudaGraph_t with_memory;
  expect_success(cudaStreamEndCapture(bench.stream, &with_memory));
  expect_equal(count_nodes(with_memory), size_t{5});
  expect_success(cudaGraphInstantiate(&exec, with_memory, 0));
  for (int i = 0; i < 2; ++i) {
    result[3] = 0;
    expect_success(cudaGraphLaunch(exec, bench.stream));
    expect_success(cudaStreamSynchronize(bench.stream));
    expect_equal(result[3], 0x02020202);
  }
}

static void what_breaks_a_capture() {
  Bench bench;
  cudaGraph_t graph = nullptr;
  expect_error(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal), cudaErrorStreamCaptureUnsupported);
  expect_error(cudaStreamEndCapture(bench.stream, &graph), cudaErrorIllegalState);

  const auto begin = [&](cudaStream_t stream) {
    cudaGetLastError();
    expect_success(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  };
  const auto expect_broken = [&](cudaStream_t stream) {
    cudaStreamCaptureStatus status;
    expect_success(cudaStreamIsCapturing(stream, &status));
    expect_equal(static_cast<int>(status), static_cast<int>(cudaStreamCaptureStatusInvalidated));
    expect_error(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
    expect(graph == nullptr, "no graph comes of it");
    expect_success(cudaStreamSynchronize(stream));  // and all is as before
  };
  begin(bench.stream);
  expect_error(cudaStreamBeginCapture(bench.stream, cudaStreamCaptureModeGlobal), cudaErrorIllegalState);
  expect_error(cudaStreamSynchronize(bench.stream), cudaErrorStreamCaptureUnsupported);
  expect_broken(bench.stream);

  begin(bench.stream);
  expect_error(cudaDeviceSynchronize(), cudaErrorStreamCaptureUnsupported);
  expect_broken(bench.stream);

  cudaStream_t blocking;
  cudaEvent_t event;
  expect_success(cudaStreamCreate(&blocking));
  expect_success(cudaEventCreate(&event));
  begin(blocking);
  append<<<1, 1>>>(bench.list, 1);  // the legacy stream would have to wait for it
  expect_error(cudaGetLastError(), cudaErrorStreamCaptureImplicit);
  expect_broken(blocking);

  expect_success(cudaEventRecord(event, blocking));
  begin(bench.stream);
  expect_error(cudaStreamWaitEvent(bench.stream, event), cudaErrorStreamCaptureIsolation);
  expect_broken(bench.stream);

  cudaGetLastError();
  expect_success(cudaStreamBeginCapture(bench.stream, cudaStreamCaptureModeRelaxed));
  expect_success(cudaEventRecord(event, bench.stream));
  expect_error(cudaEventSynchronize(event), cudaErrorCapturedEvent);
  expect_broken(bench.stream);

  begin(bench.stream);
  expect_success(cudaEventRecord(event, bench.stream));
  expect_success(cudaStreamWaitEvent(blocking, event));
  append<<<1, 1, 0, blocking>>>(bench.list, 1);
  expect_error(cudaStreamEndCapture(blocking, &graph), cudaErrorStreamCaptureUnmatched);
  expect_error(cudaStreamEndCapture(bench.stream, &graph), cudaErrorStreamCaptureInvalidated);

  begin(bench.stream);
  expect_success(cudaEventRecord(event, bench.stream));
  expect_success(cudaStreamWaitEvent(blocking, event));
  append<<<1, 1, 0, blocking>>>(bench.list, 1);
  expect_error(cudaStreamEndCapture(bench.stream, &graph), cudaErrorStreamCaptureUnjoined);
  cudaGetLastError();
  bench.expect_values({});
}

int main() {
  capture_and_replay();
  built_by_hand();
  memory_nodes();
  what_breaks_a_capture();
  return result();
}
