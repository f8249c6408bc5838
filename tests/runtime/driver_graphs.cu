// Graphs and captures of the driver API, and words that streams write and wait for.

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "driver.h"

static void expect_done(CUresult got, const std::source_location& at = std::source_location::current()) {
  expect_result(got, CUDA_SUCCESS, at);
}

__global__ void append(int* list, int value) {
  const int count = list[0];
  list[1 + count] = value;
  list[0] = count + 1;
}

struct Bench {
  int* list = nullptr;
  CUstream stream = nullptr;
  Bench() {
    expect_success(cudaMalloc(&list, 64 * sizeof(int)));
    expect_success(cudaMemset(list, 0, 64 * sizeof(int)));
    expect_success(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  }
  void expect_values(const std::vector<int>& wanted, const std::source_location& at = std::source_location::current()) {
    int all[64];
    expect_success(cudaDeviceSynchronize(), at);
    expect_success(cudaMemcpy(all, list, sizeof all, cudaMemcpyDeviceToHost), at);
    expect(std::vector<int>(all + 1, all + 1 + all[0]) == wanted, "the kernels ran in another order, or not at all",
           at);
    expect_success(cudaMemset(list, 0, 64 * sizeof(int)), at);
  }
};

static void capture() {
  Bench bench;
  const auto status_of = entry<PFN_cuStreamIsCapturing_v10000>("cuStreamIsCapturing", 13000);
  const auto end = entry<PFN_cuStreamEndCapture_v10000>("cuStreamEndCapture", 13000);
  CUgraph graph = nullptr, during = nullptr;
  CUgraphExec exec;
  CUstreamCaptureStatus status;
  const CUgraphNode* needs = nullptr;
  size_t count = 0;
  expect_result(end(bench.stream, &graph), CUDA_ERROR_ILLEGAL_STATE);
  expect_done(entry<PFN_cuStreamBeginCapture_v10010>("cuStreamBeginCapture", 13000)(
      bench.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  append<<<1, 1, 0, bench.stream>>>(bench.list, 1);
  append<<<1, 1, 0, bench.stream>>>(bench.list, 2);
  expect_done(status_of(bench.stream, &status));
  expect_equal(static_cast<int>(status), static_cast<int>(CU_STREAM_CAPTURE_STATUS_ACTIVE));
  expect_done(entry<PFN_cuStreamGetCaptureInfo_v11030>("cuStreamGetCaptureInfo", 12000)(bench.stream, &status, nullptr,
                                                                                        &during, &needs, &count));
  expect_equal(count, size_t{1});
  // What comes next does not need the last kernel any more.
  expect_done(entry<PFN_cuStreamUpdateCaptureDependencies_v11030>("cuStreamUpdateCaptureDependencies", 12000)(
      bench.stream, nullptr, 0, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
  expect_done(entry<PFN_cuStreamGetCaptureInfo_v12030>("cuStreamGetCaptureInfo", 13000)(
      bench.stream, &status, nullptr, &during, &needs, nullptr, &count));
  expect_equal(count, size_t{0});
  CUgraphNode nodes[2];
  size_t two = 2;
  expect_done(entry<PFN_cuGraphGetNodes_v10000>("cuGraphGetNodes", 13000)(during, nodes, &two));
  expect_done(entry<PFN_cuStreamUpdateCaptureDependencies_v12030>("cuStreamUpdateCaptureDependencies", 13000)(
      bench.stream, nodes, nullptr, 2, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
  expect_done(end(bench.stream, &graph));
  expect(graph == during, "the graph that was captured into");
  const auto edges = entry<PFN_cuGraphGetEdges_v10000>("cuGraphGetEdges", 12000);
  expect_done(edges(graph, nullptr, nullptr, &count));
  expect_equal(count, size_t{1});
  expect_done(entry<PFN_cuGraphInstantiateWithFlags_v11040>("cuGraphInstantiateWithFlags", 13000)(&exec, graph, 0));
  const auto launch = entry<PFN_cuGraphLaunch_v10000>("cuGraphLaunch", 13000);
  expect_done(launch(exec, bench.stream));
  bench.expect_values({1, 2});
  expect_done(entry<PFN_cuGraphDestroy_v10000>("cuGraphDestroy", 13000)(graph));
  expect_done(entry<PFN_cuGraphExecDestroy_v10000>("cuGraphExecDestroy", 13000)(exec));
  expect_result(launch(exec, bench.stream), CUDA_ERROR_INVALID_VALUE);

  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  CUdeviceptr memory = 0;
  const auto begin = entry<PFN_cuStreamBeginCapture_v10010>("cuStreamBeginCapture", 13000);
  expect_done(begin(bench.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  const auto exchange = entry<PFN_cuThreadExchangeStreamCaptureMode_v10010>("cuThreadExchangeStreamCaptureMode", 13000);
  const auto allocate = entry<PFN_cuMemAlloc_v3020>("cuMemAlloc", 13000);
  expect_done(exchange(&mode));
  expect_done(allocate(&memory, 256));
  expect_done(exchange(&mode));
  for (const size_t bytes : {256, 0}) {
    expect_result(allocate(&memory, bytes), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    expect_result(end(bench.stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    if (bytes) expect_done(begin(bench.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  }
  expect_result(allocate(&memory, 0), CUDA_ERROR_INVALID_VALUE);
}

static void built_by_hand() {
  Bench bench;
  CUgraph graph, inner;
  CUfunction function;
  const auto create = entry<PFN_cuGraphCreate_v10000>("cuGraphCreate", 13000);
  const auto add_kernel = entry<PFN_cuGraphAddKernelNode_v12000>("cuGraphAddKernelNode", 13000);
  expect_success(cudaGetFuncBySymbol(&function, reinterpret_cast<const void*>(append)));
  expect_done(create(&graph, 0));
  expect_done(create(&inner, 0));
  int value = 0;
  void* arguments[] = {&bench.list, &value};
  CUDA_KERNEL_NODE_PARAMS kernel{};
  kernel.func = function;
  kernel.gridDimX = kernel.gridDimY = kernel.gridDimZ = 1;
  kernel.blockDimX = kernel.blockDimY = kernel.blockDimZ = 1;
  kernel.kernelParams = arguments;
  const auto add = [&](CUgraph in, int number) {
    CUgraphNode node = nullptr;
    value = number;
    expect_done(add_kernel(&node, in, nullptr, 0, &kernel));
    return node;
  };
  const CUgraphNode last = add(graph, 3), first = add(graph, 1);
  add(inner, 2);

  // A fill, a copy of one value out of two rows, and a function of the host.
  int host[2] = {}, called = 0;
  CUDA_MEMSET_NODE_PARAMS fill{reinterpret_cast<CUdeviceptr>(bench.list + 32), 0, 9, 4, 16, 1};
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = reinterpret_cast<CUdeviceptr>(bench.list + 32);
  copy.srcPitch = 32;
  copy.srcHeight = 2;
  copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy.dstHost = host;
  copy.dstPitch = 4;
  copy.dstHeight = 2;
  copy.WidthInBytes = 4;
  copy.Height = 2;
  copy.Depth = 1;
  CUDA_HOST_NODE_PARAMS call{[](void* data) { ++*static_cast<int*>(data); }, &called};
  CUgraphNode filled, copied, told, child, empty;
  expect_done(entry<PFN_cuGraphAddMemsetNode_v10000>("cuGraphAddMemsetNode", 13000)(&filled, graph, nullptr, 0, &fill,
                                                                                    nullptr));
  expect_done(entry<PFN_cuGraphAddMemcpyNode_v10000>("cuGraphAddMemcpyNode", 13000)(&copied, graph, &filled, 1, &copy,
                                                                                    nullptr));
  expect_done(entry<PFN_cuGraphAddHostNode_v10000>("cuGraphAddHostNode", 13000)(&told, graph, &copied, 1, &call));
  expect_done(
      entry<PFN_cuGraphAddChildGraphNode_v10000>("cuGraphAddChildGraphNode", 13000)(&child, graph, &first, 1, inner));
  CUgraphNodeParams plain{};
  plain.type = CU_GRAPH_NODE_TYPE_EMPTY;
  expect_done(entry<PFN_cuGraphAddNode_v12030>("cuGraphAddNode", 13000)(&empty, graph, &child, nullptr, 1, &plain));
  expect_done(entry<PFN_cuGraphAddDependencies_v10000>("cuGraphAddDependencies", 12000)(graph, &empty, &last, 1));
  CUgraphNodeType type;
  expect_done(entry<PFN_cuGraphNodeGetType_v10000>("cuGraphNodeGetType", 13000)(child, &type));
  expect_equal(static_cast<int>(type), static_cast<int>(CU_GRAPH_NODE_TYPE_GRAPH));

  CUgraphExec exec;
  CUDA_GRAPH_INSTANTIATE_PARAMS how{};
  expect_done(
      entry<PFN_cuGraphInstantiateWithParams_v12000>("cuGraphInstantiateWithParams", 13000)(&exec, graph, &how));
  expect_equal(static_cast<int>(how.result_out), static_cast<int>(CUDA_GRAPH_INSTANTIATE_SUCCESS));
  const auto launch = entry<PFN_cuGraphLaunch_v10000>("cuGraphLaunch", 13000);
  expect_done(launch(exec, bench.stream));
  bench.expect_values({1, 2, 3});
  expect(host[0] == 9 && host[1] == 9 && called == 1, "the fill, the copy and the call");

  // What nodes say of themselves can be given back to them.
  CUDA_MEMCPY3D copy_asked{};
  CUDA_MEMSET_NODE_PARAMS fill_asked{};
  CUDA_HOST_NODE_PARAMS call_asked{};
  CUDA_KERNEL_NODE_PARAMS kernel_asked{};
  expect_done(entry<PFN_cuGraphMemcpyNodeGetParams_v10000>("cuGraphMemcpyNodeGetParams", 13000)(copied, &copy_asked));
  expect(copy_asked.srcDevice == copy.srcDevice && copy_asked.dstHost == host && copy_asked.srcPitch == 32 &&
             copy_asked.srcMemoryType == CU_MEMORYTYPE_DEVICE && copy_asked.dstMemoryType == CU_MEMORYTYPE_HOST &&
             copy_asked.WidthInBytes == 4 && copy_asked.Height == 2 && copy_asked.Depth == 1,
         "the copy");
  expect_done(entry<PFN_cuGraphMemcpyNodeSetParams_v10000>("cuGraphMemcpyNodeSetParams", 13000)(copied, &copy_asked));
  expect_done(entry<PFN_cuGraphMemsetNodeGetParams_v10000>("cuGraphMemsetNodeGetParams", 13000)(filled, &fill_asked));
  expect(fill_asked.dst == fill.dst && fill_asked.value == 9 && fill_asked.width == 16, "the fill");
  fill_asked.value = 8;
  expect_done(entry<PFN_cuGraphExecMemsetNodeSetParams_v10020>("cuGraphExecMemsetNodeSetParams", 13000)(
      exec, filled, &fill_asked, nullptr));
  expect_done(entry<PFN_cuGraphHostNodeGetParams_v10000>("cuGraphHostNodeGetParams", 13000)(told, &call_asked));
  expect(call_asked.userData == &called, "the call");
  expect_done(entry<PFN_cuGraphKernelNodeGetParams_v12000>("cuGraphKernelNodeGetParams", 13000)(last, &kernel_asked));
  expect(kernel_asked.func == function && *static_cast<int*>(kernel_asked.kernelParams[1]) == 3, "the kernel");
  expect(kernel_asked.kern && kernel_asked.ctx, "the kernel's other handle, and its context");
  value = 33;
  kernel_asked.kernelParams = arguments;
  expect_done(entry<PFN_cuGraphExecKernelNodeSetParams_v12000>("cuGraphExecKernelNodeSetParams", 13000)(exec, last,
                                                                                                        &kernel_asked));
  CUgraph other_inner;
  expect_done(create(&other_inner, 0));
  add(other_inner, 22);
  const auto set_child =
      entry<PFN_cuGraphExecChildGraphNodeSetParams_v11010>("cuGraphExecChildGraphNodeSetParams", 13000);
  expect_done(set_child(exec, child, other_inner));
  add(other_inner, 23);
  expect_result(set_child(exec, child, other_inner), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);  // another form
  expect_done(launch(exec, bench.stream));
  bench.expect_values({1, 22, 33});
  expect(host[0] == 8 && called == 2, "the changed fill");

  // The graph itself is as it was.
  CUgraphExecUpdateResultInfo info;
  expect_done(entry<PFN_cuGraphExecUpdate_v12000>("cuGraphExecUpdate", 13000)(exec, graph, &info));
  expect_done(launch(exec, bench.stream));
  bench.expect_values({1, 2, 3});
  CUgraph clone;
  CUgraphNode found;
  expect_done(entry<PFN_cuGraphClone_v10000>("cuGraphClone", 13000)(&clone, graph));
  expect_done(entry<PFN_cuGraphNodeFindInClone_v10000>("cuGraphNodeFindInClone", 13000)(&found, last, clone));
  expect(found && found != last, "a node of its own");
}

static void attributes_of_kernels() {
  Bench bench;
  cudaGraph_t graph;
  cudaGraphNode_t one, other;
  int value = 1;
  void* arguments[] = {&bench.list, &value};
  cudaKernelNodeParams what{};
  what.func = reinterpret_cast<void*>(append);
  what.gridDim = what.blockDim = dim3(1);
  what.kernelParams = arguments;
  expect_success(cudaGraphCreate(&graph, 0));
  expect_success(cudaGraphAddKernelNode(&one, graph, nullptr, 0, &what));
  expect_success(cudaGraphAddKernelNode(&other, graph, &one, 1, &what));
  CUkernelNodeAttrValue attribute{};
  attribute.cooperative = 1;
  expect_done(entry<PFN_cuGraphKernelNodeSetAttribute_v11000>("cuGraphKernelNodeSetAttribute", 13000)(
      one, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &attribute));
  const auto get = entry<PFN_cuGraphKernelNodeGetAttribute_v11000>("cuGraphKernelNodeGetAttribute", 13000);
  expect_done(get(other, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &attribute));
  expect_equal(attribute.cooperative, 0);
  expect_success(cudaGraphKernelNodeCopyAttributes(other, one));
  expect_done(get(other, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &attribute));
  expect_equal(attribute.cooperative, 1);
  cudaKernelNodeParams asked{};
  expect_success(cudaGraphKernelNodeGetParams(other, &asked));
  expect(*static_cast<int*>(asked.kernelParams[1]) == 1, "the arguments stay");
}

static void memory() {
  Bench bench;
  CUgraph graph;
  CUgraphNode allocated, freed;
  CUDA_MEM_ALLOC_NODE_PARAMS what{};
  what.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  what.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  what.bytesize = 1000;
  expect_done(entry<PFN_cuGraphCreate_v10000>("cuGraphCreate", 13000)(&graph, 0));
  expect_done(
      entry<PFN_cuGraphAddMemAllocNode_v11040>("cuGraphAddMemAllocNode", 13000)(&allocated, graph, nullptr, 0, &what));
  CUgraphExec exec;
  expect_done(entry<PFN_cuGraphInstantiateWithFlags_v11040>("cuGraphInstantiate", 13000)(&exec, graph, 0));
  const auto get = entry<PFN_cuDeviceGetGraphMemAttribute_v11040>("cuDeviceGetGraphMemAttribute", 13000);
  const auto set = entry<PFN_cuDeviceSetGraphMemAttribute_v11040>("cuDeviceSetGraphMemAttribute", 13000);
  const auto used = [&](CUgraphMem_attribute attribute) {
    cuuint64_t bytes = 77;
    expect_done(get(0, attribute, &bytes));
    return bytes;
  };
  cuuint64_t value = 0;
  expect_done(set(0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &value));
  expect_result(set(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &value), CUDA_ERROR_INVALID_VALUE);
  value = 1;
  expect_result(set(0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &value), CUDA_ERROR_INVALID_VALUE);
  expect_done(entry<PFN_cuGraphLaunch_v10000>("cuGraphLaunch", 13000)(exec, bench.stream));
  expect_done(entry<PFN_cuStreamSynchronize_v2000>("cuStreamSynchronize", 13000)(bench.stream));
  expect(used(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) >= 1000, "while it is allocated");
  expect_done(entry<PFN_cuMemFreeAsync_v11020>("cuMemFreeAsync", 13000)(what.dptr, bench.stream));
  expect_done(entry<PFN_cuStreamSynchronize_v2000>("cuStreamSynchronize", 13000)(bench.stream));
  expect_done(entry<PFN_cuDeviceGraphMemTrim_v11040>("cuDeviceGraphMemTrim", 13000)(0));
  expect(used(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH) >= 1000, "the most there was");
  expect_equal(used(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), cuuint64_t{0});

  // Another graph, which frees its memory itself.
  expect_done(entry<PFN_cuGraphCreate_v10000>("cuGraphCreate", 13000)(&graph, 0));
  expect_done(
      entry<PFN_cuGraphAddMemAllocNode_v11040>("cuGraphAddMemAllocNode", 13000)(&allocated, graph, nullptr, 0, &what));
  const auto add_free = entry<PFN_cuGraphAddMemFreeNode_v11040>("cuGraphAddMemFreeNode", 13000);
  expect_done(add_free(&freed, graph, &allocated, 1, what.dptr));
  CUdeviceptr asked = 0;
  expect_done(entry<PFN_cuGraphMemFreeNodeGetParams_v11040>("cuGraphMemFreeNodeGetParams", 13000)(freed, &asked));
  expect(asked == what.dptr, "what it frees");
}

// A wait that nothing ends lasts as long as the process: that one is ended.
static void words_in_streams() {
  constexpr unsigned kSeconds = 60;
  alarm(kSeconds);
  Bench bench;
  const auto write = entry<PFN_cuStreamWriteValue32_v11070>("cuStreamWriteValue32", 13000);
  const auto wait = entry<PFN_cuStreamWaitValue32_v11070>("cuStreamWaitValue32", 13000);
  const auto write_64 = entry<PFN_cuStreamWriteValue64_v11070>("cuStreamWriteValue64", 13000);
  const auto wait_64 = entry<PFN_cuStreamWaitValue64_v11070>("cuStreamWaitValue64", 13000);
  const auto word = reinterpret_cast<CUdeviceptr>(bench.list);
  const bool written = write(bench.stream, word, 5, CU_STREAM_WRITE_VALUE_DEFAULT) == CUDA_SUCCESS,
             written_64 = write_64(bench.stream, word + 8, 0x100000007, CU_STREAM_WRITE_VALUE_DEFAULT) == CUDA_SUCCESS;
  expect(written, "32 bits are written");
  expect(written_64, "64 bits are written");
  if (!written || !written_64) return;
  expect_done(wait(bench.stream, word, 5, CU_STREAM_WAIT_VALUE_EQ));
  expect_done(wait(bench.stream, word, 4, CU_STREAM_WAIT_VALUE_GEQ));
  expect_done(wait(bench.stream, word, 0xFFFFFFFF, CU_STREAM_WAIT_VALUE_GEQ));  // goes round
  expect_done(wait(bench.stream, word, 6, CU_STREAM_WAIT_VALUE_AND));
  expect_done(wait_64(bench.stream, word + 8, 0x100000000, CU_STREAM_WAIT_VALUE_AND));
  expect_done(wait_64(bench.stream, word + 8, 7, CU_STREAM_WAIT_VALUE_NOR));
  int values[4] = {};
  expect_success(cudaMemcpyAsync(values, bench.list, sizeof values, cudaMemcpyDeviceToHost, bench.stream));
  expect_success(cudaStreamSynchronize(bench.stream));
  expect(values[0] == 5 && values[2] == 7 && values[3] == 1, "what was written");
  expect_result(write(bench.stream, word + 2, 5, 0), CUDA_ERROR_INVALID_VALUE);
  expect_result(write(bench.stream, 0, 5, 0), CUDA_ERROR_INVALID_VALUE);
  expect_result(write_64(bench.stream, word + 4, 5, 0), CUDA_ERROR_INVALID_VALUE);
  // "This flag is not supported in the v2 API", says cuda.h.
  const unsigned unordered = CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER;
  expect_result(write(bench.stream, word, 5, unordered), CUDA_ERROR_INVALID_VALUE);
  expect_result(write_64(bench.stream, word + 8, 5, unordered), CUDA_ERROR_INVALID_VALUE);
  expect_result(wait(bench.stream, word, 5, 17), CUDA_ERROR_INVALID_VALUE);
  // Those of before CUDA 11.7 are there, and have to be enabled when the driver is loaded.
  const auto old = entry<PFN_cuStreamWriteValue32_v8000>("cuStreamWriteValue32", 8000);
  expect_result(old(bench.stream, word, 5, CU_STREAM_WRITE_VALUE_DEFAULT), CUDA_ERROR_NOT_SUPPORTED);

  for (const auto attribute :
       {CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR}) {
    int can = 0;
    expect_done(entry<PFN_cuDeviceGetAttribute_v2000>("cuDeviceGetAttribute", 13000)(&can, attribute, 0));
    expect_equal(can, 1);
  }

  int can_flush = 1;
  expect_done(entry<PFN_cuDeviceGetAttribute_v2000>("cuDeviceGetAttribute", 13000)(
      &can_flush, CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES, 0));
  expect_equal(can_flush, 0);
  expect_result(wait(bench.stream, word, 5, CU_STREAM_WAIT_VALUE_EQ | CU_STREAM_WAIT_VALUE_FLUSH),
                CUDA_ERROR_NOT_SUPPORTED);

  // In a capture, a node for which only the driver API has a name.
  CUgraph graph;
  CUgraphNode node;
  CUgraphNodeType type;
  size_t count = 1;
  expect_success(cudaStreamBeginCapture(bench.stream, cudaStreamCaptureModeRelaxed));
  expect_done(write(bench.stream, word, 1, 0));
  expect_success(cudaStreamEndCapture(bench.stream, &graph));
  expect_success(cudaGraphGetNodes(graph, &node, &count));
  expect_done(entry<PFN_cuGraphNodeGetType_v10000>("cuGraphNodeGetType", 13000)(node, &type));
  expect_equal(static_cast<int>(type), static_cast<int>(CU_GRAPH_NODE_TYPE_BATCH_MEM_OP));
  cudaGraphNodeType no_type;
  expect_error(cudaGraphNodeGetType(node, &no_type), cudaErrorUnknown);
  cudaGetLastError();

  // The host may answer as late as it likes.
  unsigned* flag = nullptr;
  expect_success(cudaMallocHost(&flag, sizeof *flag));
  *flag = 0;
  expect_done(wait(bench.stream, reinterpret_cast<CUdeviceptr>(flag), 3, CU_STREAM_WAIT_VALUE_EQ));
  expect_done(write(bench.stream, reinterpret_cast<CUdeviceptr>(flag), 4, 0));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  expect_error(cudaStreamQuery(bench.stream), cudaErrorNotReady);
  std::atomic_ref<unsigned>(*flag).store(3);
  expect_success(cudaStreamSynchronize(bench.stream));
  expect_equal(*flag, 4u);
  alarm(0);
}

// What waits for a word of the device that only what is issued later could write, waits for ever here.
static void a_word_that_nobody_writes() {
  if (!emulated()) return;
  Bench bench;
  const auto word = reinterpret_cast<CUdeviceptr>(bench.list);
  expect_done(entry<PFN_cuStreamWaitValue32_v11070>("cuStreamWaitValue32", 13000)(bench.stream, word, 5,
                                                                                  CU_STREAM_WAIT_VALUE_EQ));
  expect_error(cudaStreamSynchronize(bench.stream), cudaErrorLaunchTimeout);
}

int main() {
  const std::string report = in_child(a_word_that_nobody_writes);
  expect(!emulated() || report.find("cuStreamWaitValue32 waits for a word == 0x5") != std::string::npos,
         report.c_str());
  capture();
  built_by_hand();
  attributes_of_kernels();
  memory();
  words_in_streams();
  return result();
}
