// Memory that graphs allocate: one address for all launches, bytes from a launch to their free.

#include <string>
#include <vector>

#include "check.h"

__global__ void count_up(int* value, int* result) {
  *result = ++*value;
}

struct Bench {
  cudaStream_t stream = nullptr;
  int* result = nullptr;
  Bench() {
    expect_success(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    expect_success(cudaMalloc(&result, sizeof(int)));
  }
  /// A graph that allocates, sets to `first` and counts up; it frees the memory or leaves it.
  cudaGraph_t capture(int** memory, unsigned char first, bool frees) {
    cudaGraph_t graph = nullptr;
    expect_success(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    expect_success(cudaMallocAsync(memory, sizeof(int), stream));
    expect_success(cudaMemsetAsync(*memory, first, sizeof(int), stream));
    count_up<<<1, 1, 0, stream>>>(*memory, result);
    if (frees) expect_success(cudaFreeAsync(*memory, stream));
    expect_success(cudaStreamEndCapture(stream, &graph));
    return graph;
  }
  void launch_expecting(cudaGraphExec_t exec, int wanted,
                        const std::source_location& at = std::source_location::current()) {
    int got = 0;
    expect_success(cudaMemset(result, 0, sizeof(int)), at);
    expect_success(cudaGraphLaunch(exec, stream), at);
    expect_success(cudaStreamSynchronize(stream), at);
    expect_success(cudaMemcpy(&got, result, sizeof got, cudaMemcpyDeviceToHost), at);
    expect_equal(got, wanted, at);
  }
  void expect_value(const int* memory, int wanted, const std::source_location& at = std::source_location::current()) {
    int got = 0;
    expect_success(cudaMemcpyAsync(&got, memory, sizeof got, cudaMemcpyDeviceToHost, stream), at);
    expect_success(cudaStreamSynchronize(stream), at);
    expect_equal(got, wanted, at);
  }
  /// Copies are refused as they are issued, and break nothing.
  void expect_nothing_at(const int* memory, const std::source_location& at = std::source_location::current()) {
    int got = 0;
    expect_error(cudaMemcpyAsync(&got, memory, sizeof got, cudaMemcpyDeviceToHost, stream), cudaErrorInvalidValue, at);
    expect_success(cudaStreamSynchronize(stream), at);
    cudaGetLastError();
  }
};

static void freed_between_launches() {
  Bench bench;
  int* memory = nullptr;
  const cudaGraph_t graph = bench.capture(&memory, 1, false);
  cudaGraphExec_t exec;
  expect_success(cudaGraphInstantiate(&exec, graph, 0));
  bench.expect_nothing_at(memory);
  expect_error(cudaFreeAsync(memory, bench.stream), cudaErrorInvalidValue);  // not allocated yet
  for (int i = 0; i < 3; ++i) {
    bench.launch_expecting(exec, 0x01010102);
    bench.expect_value(memory, 0x01010102);
    expect_success(cudaFreeAsync(memory, bench.stream));
    bench.expect_nothing_at(memory);
  }
  expect_error(cudaFreeAsync(memory, bench.stream), cudaErrorInvalidValue);

  // All of it issued ahead of what runs: a copy is issued before its memory is there.
  int values[3] = {};
  for (int& value : values) {
    expect_success(cudaGraphLaunch(exec, bench.stream));
    expect_success(cudaMemcpyAsync(&value, memory, sizeof value, cudaMemcpyDefault, bench.stream));
    expect_success(cudaFreeAsync(memory, bench.stream));
  }
  expect_success(cudaStreamSynchronize(bench.stream));
  for (const int value : values) expect_equal(value, 0x01010102);

  // Not freed: refused, and nothing is broken by it. cudaFree will do, too.
  bench.launch_expecting(exec, 0x01010102);
  expect_error(cudaGraphLaunch(exec, bench.stream), cudaErrorInvalidValue);
  bench.expect_value(memory, 0x01010102);
  expect_success(cudaFree(memory));
  bench.expect_nothing_at(memory);
  expect_error(cudaFree(memory), cudaErrorInvalidValue);
  bench.launch_expecting(exec, 0x01010102);
  expect_success(cudaFree(memory));
  expect_success(cudaGraphExecDestroy(exec));
  expect_success(cudaGraphDestroy(graph));
  cudaGetLastError();
}

static void freed_by_the_next_launch() {
  Bench bench;
  int* memory = nullptr;
  const cudaGraph_t graph = bench.capture(&memory, 2, false);
  cudaGraphExec_t exec;
  expect_success(cudaGraphInstantiate(&exec, graph, cudaGraphInstantiateFlagAutoFreeOnLaunch));
  for (int i = 0; i < 3; ++i) bench.launch_expecting(exec, 0x02020203);
  expect_success(cudaFree(memory));
  for (int i = 0; i < 2; ++i) bench.launch_expecting(exec, 0x02020203);
  expect_success(cudaFreeAsync(memory, bench.stream));
  bench.launch_expecting(exec, 0x02020203);
  expect_success(cudaFree(memory));
  expect_success(cudaGraphExecDestroy(exec));
  expect_success(cudaGraphDestroy(graph));
}

static void freed_by_the_graph() {
  Bench bench;
  int* memory = nullptr;
  const cudaGraph_t graph = bench.capture(&memory, 3, true);
  cudaGraphExec_t exec;
  expect_success(cudaGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < 3; ++i) expect_success(cudaGraphLaunch(exec, bench.stream));  // whether the last one ran or not
  bench.launch_expecting(exec, 0x03030304);
  expect_error(cudaFree(memory), cudaErrorInvalidValue);
  expect_success(cudaGraphExecDestroy(exec));
  expect_success(cudaGraphDestroy(graph));
  cudaGetLastError();
}

static cudaMemAllocNodeParams wanted_memory(size_t bytes) {
  cudaMemAllocNodeParams what{};
  what.poolProps.allocType = cudaMemAllocationTypePinned;
  what.poolProps.location.type = cudaMemLocationTypeDevice;
  what.bytesize = bytes;
  return what;
}

// A launch that the stream refuses allocates nothing.
static void refused_by_the_stream() {
  Bench bench;
  int* memory = nullptr;
  cudaStream_t blocking;
  cudaGraph_t broken;
  cudaGraphExec_t exec;
  expect_success(cudaGraphInstantiate(&exec, bench.capture(&memory, 8, false), 0));
  expect_success(cudaStreamCreate(&blocking));
  expect_success(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeRelaxed));
  expect_error(cudaGraphLaunch(exec, cudaStreamLegacy), cudaErrorStreamCaptureImplicit);
  expect_error(cudaStreamEndCapture(blocking, &broken), cudaErrorStreamCaptureInvalidated);
  cudaGetLastError();
  bench.launch_expecting(exec, 0x08080809);
}

// One graph allocates, another one uses and frees.
static void two_graphs() {
  Bench bench;
  cudaPointerAttributes place{};
  cudaGraph_t first, second;
  cudaGraphNode_t allocated, filled, freed;
  cudaGraphExec_t make, use;
  expect_success(cudaGraphCreate(&first, 0));
  expect_success(cudaGraphCreate(&second, 0));
  cudaMemAllocNodeParams what = wanted_memory(256);
  expect_success(cudaGraphAddMemAllocNode(&allocated, first, nullptr, 0, &what));
  expect(what.dptr != nullptr, "the address is known at once");
  expect_success(cudaPointerGetAttributes(&place, what.dptr));
  expect_equal(static_cast<int>(place.type), static_cast<int>(cudaMemoryTypeUnregistered));
  cudaMemAllocNodeParams wrong = wanted_memory(0);
  expect_error(cudaGraphAddMemAllocNode(&freed, first, nullptr, 0, &wrong), cudaErrorInvalidValue);
  wrong = {};
  wrong.bytesize = 256;
  expect_error(cudaGraphAddMemAllocNode(&freed, first, nullptr, 0, &wrong), cudaErrorInvalidValue);
  cudaMemAllocNodeParams asked{};
  expect_success(cudaGraphMemAllocNodeGetParams(allocated, &asked));
  expect(asked.dptr == what.dptr && asked.bytesize == 256, "the node tells what it allocates");
  cudaMemsetParams fill{};
  fill.dst = what.dptr;
  fill.value = 9;
  fill.elementSize = 4;
  fill.width = 64;
  fill.height = 1;
  expect_success(cudaGraphAddMemsetNode(&filled, second, nullptr, 0, &fill));
  expect_success(cudaGraphAddMemFreeNode(&freed, second, &filled, 1, what.dptr));
  expect_error(cudaGraphAddMemFreeNode(&freed, second, &filled, 1, what.dptr), cudaErrorInvalidValue);  // twice
  expect_error(cudaGraphAddMemFreeNode(&freed, second, &filled, 1, bench.result), cudaErrorInvalidValue);
  expect_error(cudaGraphAddMemFreeNode(&freed, first, &allocated, 1, what.dptr),
               cudaErrorInvalidValue);  // another does
  cudaGetLastError();
  void* named = nullptr;
  expect_success(cudaGraphInstantiate(&make, first, 0));
  expect_success(cudaGraphInstantiate(&use, second, 0));
  for (int i = 0; i < 2; ++i) {
    expect_error(cudaGraphLaunch(use, bench.stream), cudaErrorInvalidValue);  // it frees what is not there
    expect_success(cudaGraphLaunch(make, bench.stream));
    expect_success(cudaPointerGetAttributes(&place, what.dptr));
    expect_equal(static_cast<int>(place.type), static_cast<int>(cudaMemoryTypeDevice));
    expect_success(cudaGraphLaunch(use, bench.stream));
  }
  expect_success(cudaStreamSynchronize(bench.stream));
  for (size_t count = 2, i = 0; i < count; ++i) {
    cudaGraphNode_t nodes[2];
    expect_success(cudaGraphGetNodes(second, nodes, &count));
    cudaGraphNodeType type;
    expect_success(cudaGraphNodeGetType(nodes[i], &type));
    if (type == cudaGraphNodeTypeMemFree) expect_success(cudaGraphMemFreeNodeGetParams(nodes[i], &named));
  }
  expect(named == what.dptr, "the node tells what it frees");
  cudaGetLastError();
}

// CUDA runtime API, cudaGraphAddMemAllocNode: what a graph with such nodes cannot do.
static void restrictions() {
  Bench bench;
  int* memory = nullptr;
  const cudaGraph_t graph = bench.capture(&memory, 10, false);
  cudaGraph_t around;
  cudaGraphExec_t exec, second;
  cudaGraphNode_t nodes[3], needs[2], needed[2];
  size_t count = 3, edges = 2;
  expect_success(cudaGraphGetNodes(graph, nodes, &count));
  expect_success(cudaGraphGetEdges(graph, needs, needed, nullptr, &edges));
  expect_equal(count, size_t{3});
  expect_equal(edges, size_t{2});
  expect_error(cudaGraphRemoveDependencies(graph, needs, needed, nullptr, 1), cudaErrorNotSupported);
  for (const cudaGraphNode_t node : nodes) expect_error(cudaGraphDestroyNode(node), cudaErrorNotSupported);

  expect_success(cudaGraphInstantiate(&exec, graph, 0));
  expect_error(cudaGraphInstantiate(&second, graph, 0), cudaErrorNotSupported);
  cudaGraphExecUpdateResultInfo info{};
  expect_success(cudaGraphExecUpdate(exec, graph, &info));
  expect_success(cudaStreamBeginCapture(bench.stream, cudaStreamCaptureModeRelaxed));
  expect_error(cudaGraphLaunch(exec, bench.stream), cudaErrorStreamCaptureUnsupported);
  expect_error(cudaStreamEndCapture(bench.stream, &around), cudaErrorStreamCaptureInvalidated);
  cudaGetLastError();

  // The executable graph goes, and the memory stays; the next one must not allocate it either.
  bench.launch_expecting(exec, 0x0A0A0A0B);
  expect_success(cudaGraphExecDestroy(exec));
  expect_success(cudaGraphInstantiate(&second, graph, 0));
  expect_error(cudaGraphLaunch(second, bench.stream), cudaErrorInvalidValue);
  bench.expect_value(memory, 0x0A0A0A0B);
  expect_success(cudaFreeAsync(memory, bench.stream));
  bench.launch_expecting(second, 0x0A0A0A0B);
  expect_success(cudaFree(memory));
  cudaGetLastError();
}

// The memory is one graph's: that one can be given to a parent, and not be copied.
static void no_copies() {
  Bench bench;
  int* memory = nullptr;
  const cudaGraph_t graph = bench.capture(&memory, 7, true);
  cudaGraph_t copy, parent;
  cudaGraphNode_t child, freed;
  cudaGraphExec_t exec;
  expect_success(cudaGraphCreate(&parent, 0));
  expect_error(cudaGraphClone(&copy, graph), cudaErrorNotSupported);
  expect_error(cudaGraphAddChildGraphNode(&child, parent, nullptr, 0, graph), cudaErrorNotSupported);
  expect_error(cudaGraphAddMemFreeNode(&freed, parent, nullptr, 0, memory), cudaErrorInvalidValue);  // its graph does
  cudaGraphNodeParams what{};
  what.type = cudaGraphNodeTypeGraph;
  what.graph.graph = graph;
  what.graph.ownership = cudaGraphChildGraphOwnershipMove;
  if (emulated()) {  // an H200 makes such a graph, which it cannot instantiate
    cudaGraphNodeParams itself = what;
    expect_error(cudaGraphAddNode(&child, graph, nullptr, nullptr, 0, &itself), cudaErrorInvalidValue);
  }
  cudaGraphNodeParams in_use = what;
  expect_success(cudaGraphInstantiate(&exec, graph, 0));
  expect_error(cudaGraphAddNode(&child, parent, nullptr, nullptr, 0, &in_use), cudaErrorNotSupported);
  expect_success(cudaGraphExecDestroy(exec));
  expect_success(cudaGraphAddNode(&child, parent, nullptr, nullptr, 0, &what));
  cudaGraphNodeParams again = what;
  expect_error(cudaGraphAddNode(&freed, graph, nullptr, nullptr, 0, &again), cudaErrorNotSupported);  // twice
  again.graph.graph = parent;
  expect_error(cudaGraphAddNode(&freed, graph, nullptr, nullptr, 0, &again), cudaErrorNotSupported);  // into its child
  expect_error(cudaGraphInstantiate(&exec, graph, 0), cudaErrorNotSupported);
  cudaGraph_t asked = nullptr;
  expect_success(cudaGraphChildGraphNodeGetGraph(child, &asked));
  expect(asked == graph, "the graph itself");
  expect_error(cudaGraphDestroy(graph), cudaErrorInvalidValue);
  expect_success(cudaGraphInstantiate(&exec, parent, 0));
  for (int i = 0; i < 2; ++i) bench.launch_expecting(exec, 0x07070708);

  // CUDA runtime API, cudaGraphChildGraphOwnershipMove: what the child cannot do any more.
  cudaMemAllocNodeParams more = wanted_memory(256);
  expect_error(cudaGraphAddMemAllocNode(&freed, graph, nullptr, 0, &more), cudaErrorNotSupported);
  cudaGraphExecUpdateResultInfo info{};
  expect_error(cudaGraphExecUpdate(exec, graph, &info), cudaErrorInvalidValue);
  cudaGetLastError();
}

// What has been instantiated without a free is not freed by its own graph any more, whatever became of it.
static void no_free_after_instantiating() {
  Bench bench;
  cudaGraph_t graph;
  cudaGraphNode_t allocated, other, freed;
  cudaGraphExec_t exec;
  expect_success(cudaGraphCreate(&graph, 0));
  cudaMemAllocNodeParams what = wanted_memory(256), more = wanted_memory(256);
  expect_success(cudaGraphAddMemAllocNode(&allocated, graph, nullptr, 0, &what));
  expect_success(cudaGraphInstantiate(&exec, graph, 0));
  expect_error(cudaGraphAddMemFreeNode(&freed, graph, &allocated, 1, what.dptr), cudaErrorInvalidValue);
  expect_success(cudaGraphLaunch(exec, bench.stream));
  expect_success(cudaFreeAsync(what.dptr, bench.stream));
  expect_success(cudaStreamSynchronize(bench.stream));
  expect_success(cudaGraphExecDestroy(exec));
  expect_error(cudaGraphAddMemFreeNode(&freed, graph, &allocated, 1, what.dptr), cudaErrorInvalidValue);
  expect_success(cudaGraphAddMemAllocNode(&other, graph, nullptr, 0, &more));
  expect_success(cudaGraphAddEmptyNode(&other, graph, nullptr, 0));
  cudaGetLastError();
}

// Destroying graphs frees nothing, and gives the address away only with the memory.
static void after_the_graph() {
  Bench bench;
  int* memory = nullptr;
  const cudaGraph_t graph = bench.capture(&memory, 4, false);
  cudaGraphExec_t exec;
  expect_success(cudaGraphInstantiate(&exec, graph, 0));
  bench.launch_expecting(exec, 0x04040405);
  expect_success(cudaGraphExecDestroy(exec));
  expect_success(cudaGraphDestroy(graph));
  bench.expect_value(memory, 0x04040405);
  expect_success(cudaFreeAsync(memory, bench.stream));
  expect_success(cudaStreamSynchronize(bench.stream));
  expect_error(cudaFree(memory), cudaErrorInvalidValue);
  cudaGetLastError();
}

// Nobody else is given the address while it is not in use.
static void the_address_is_kept() {
  Bench bench;
  int* memory = nullptr;
  const cudaGraph_t graph = bench.capture(&memory, 5, true);
  for (int i = 0; i < 1000; ++i) {
    void* other = nullptr;
    expect_success(cudaMallocAsync(&other, sizeof(int), bench.stream));
    expect(other != memory, "an address that a graph has");
    expect_success(cudaFreeAsync(other, bench.stream));
  }
  expect_success(cudaGraphDestroy(graph));
}

// A GPU may let a kernel pass: its pools keep the memory for a while.
static void used_after_it_was_freed() {
  if (!emulated()) return;
  Bench bench;
  int* memory = nullptr;
  const cudaGraph_t graph = bench.capture(&memory, 6, false);
  cudaGraphExec_t exec;
  expect_success(cudaGraphInstantiate(&exec, graph, 0));
  bench.launch_expecting(exec, 0x06060607);
  expect_success(cudaFreeAsync(memory, bench.stream));
  count_up<<<1, 1, 0, bench.stream>>>(memory, bench.result);
  expect_error(cudaStreamSynchronize(bench.stream), cudaErrorIllegalAddress);
}

int main() {
  const std::string report = in_child(used_after_it_was_freed);
  expect(!emulated() || report.find("use after free, 0 bytes into memory of a graph") != std::string::npos,
         report.c_str());
  freed_between_launches();
  freed_by_the_next_launch();
  freed_by_the_graph();
  refused_by_the_stream();
  two_graphs();
  restrictions();
  no_copies();
  no_free_after_instantiating();
  after_the_graph();
  the_address_is_kept();
  return result();
}
