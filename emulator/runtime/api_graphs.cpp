// Graphs as a program builds, asks, changes and launches them. A node is made by issuing its operation in a stream of
// our own that captures into the graph, so that it is checked as the operation itself would be.

#include <cuda.h>

#include <algorithm>
#include <cstdio>
#include <span>

#include "emulator/runtime/api.h"
#include "emulator/runtime/api_copy.h"
#include "emulator/runtime/copy.h"
#include "emulator/runtime/launch.h"

using namespace emu::runtime;

namespace {

/// The one node that `issue`, given a stream, adds to `graph`.
template <class Issue>
GraphNode& captured(const std::shared_ptr<Graph>& graph, std::vector<GraphNode*> needs, Issue&& issue) {
  Stream stream;
  stream.flags = cudaStreamNonBlocking;
  stream.capture = std::make_shared<Capture>();
  stream.capture->graph = graph;
  stream.tail = std::move(needs);
  const size_t before = graph->nodes.size();
  issue(stream);
  // A copy of nothing is no operation, and a node all the same.
  return graph->nodes.size() > before ? *graph->nodes.back() : *graph->add({}, {}, stream.tail);
}

void issue_kernel(Runtime& runtime, const LaunchRequest& request, void** arguments, void** extra, Stream& stream) {
  if (!extra || arguments) return launch(runtime, request, arguments, stream);
  const void* buffer = nullptr;
  size_t bytes = 0;
  for (void** at = extra; *at != CU_LAUNCH_PARAM_END; at += 2) {
    if (*at == CU_LAUNCH_PARAM_BUFFER_POINTER) buffer = at[1];
    if (*at == CU_LAUNCH_PARAM_BUFFER_SIZE) bytes = *static_cast<const size_t*>(at[1]);
  }
  launch_packed(runtime, request, {static_cast<const std::byte*>(buffer), buffer ? bytes : 0}, stream);
}

auto issuing(Runtime& runtime, const cudaKernelNodeParams& what, LaunchRequest request = {}) {
  request.function = &find_function(runtime, what.func);
  request.grid = what.gridDim;
  request.block = what.blockDim;
  request.dynamic_shared_bytes = what.sharedMemBytes;
  return [&runtime, request, what](Stream& stream) {
    issue_kernel(runtime, request, what.kernelParams, what.extra, stream);
  };
}
auto issuing(Runtime& runtime, const cudaMemcpy3DParms& what) {
  return [&runtime, what](Stream& stream) { copy_3d(runtime, what, stream, Wait::as_the_async_call); };
}
auto issuing(Runtime& runtime, const cudaMemsetParams& what) {
  require(what.elementSize == 1 || what.elementSize == 2 || what.elementSize == 4);
  return [&runtime, what](Stream& stream) {
    const size_t bytes = what.width * what.elementSize;
    fill(runtime, {what.dst, what.height > 1 ? what.pitch : bytes, 0}, what.value, what.elementSize,
         {bytes, what.height}, stream, Wait::as_the_async_call);
  };
}
auto issuing(Runtime& runtime, const cudaHostNodeParams& what) {
  require(what.fn != nullptr);
  return [&runtime, what](Stream& stream) {
    const auto run = [&runtime, what] {
      if (runtime.sticky_error() == cudaSuccess) what.fn(what.userData);
    };
    runtime.streams.submit(stream, run, {.type = cudaGraphNodeTypeHost, .host = what});
  };
}
cudaMemcpy3DParms line(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  cudaMemcpy3DParms out{};
  out.dstPtr = {to, bytes, bytes, 1};
  out.srcPtr = {const_cast<void*>(from), bytes, bytes, 1};
  out.extent = {bytes, 1, 1};
  out.kind = kind;
  return out;
}
void* inside(Runtime& runtime, const void* symbol, size_t bytes, size_t offset) {
  const Symbol::Place place = place_of(runtime, symbol);
  require(offset <= place.bytes && bytes <= place.bytes - offset);
  return reinterpret_cast<void*>(place.address + offset);
}

/// Adds what `make(runtime)` issues.
template <class Make>
cudaError_t add(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* needs, size_t count, Make&& make) {
  return answer([&](Runtime& runtime) {
    require(node != nullptr);
    runtime.device();
    const auto in = runtime.graphs.find(graph);
    *node = handle_of(captured(in, runtime.graphs.nodes(needs, count), make(runtime)));
  });
}
/// A node that does nothing by itself.
cudaError_t add_plain(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* needs, size_t count,
                      NodeDescription what) {
  return add(node, graph, needs, count, [&](Runtime& runtime) {
    return [&](Stream& stream) { runtime.streams.submit(stream, {}, std::move(what)); };
  });
}

GraphNode& typed(Runtime& runtime, cudaGraphNode_t handle, cudaGraphNodeType type) {
  GraphNode& node = runtime.graphs.node(handle);
  require(node.what.type == type);
  return node;
}

/// The same node with what `make(runtime, node)` issues; in an instantiated graph or, without one, in its own.
template <class Make>
cudaError_t change(cudaGraphExec_t exec, cudaGraphNode_t handle, cudaGraphNodeType type, Make&& make) {
  return answer([&](Runtime& runtime) {
    GraphNode& node = typed(runtime, handle, type);
    const auto aside = std::make_shared<Graph>();
    GraphNode& fresh = captured(aside, {}, make(runtime, node));
    if (!exec) {
      node.what = std::move(fresh.what);
      node.work = fresh.work;
      return;
    }
    auto& steps = runtime.graphs.find(exec).steps;
    const auto step = std::ranges::find(steps, &node, &GraphExec::Step::node);
    require(step != steps.end());
    step->work = fresh.work;
  });
}
template <class Params>
cudaError_t change_to(cudaGraphExec_t exec, cudaGraphNode_t handle, cudaGraphNodeType type, const Params* what) {
  return change(exec, handle, type, [&](Runtime& runtime, GraphNode& node) {
    require(what != nullptr);
    if constexpr (std::is_same_v<Params, cudaKernelNodeParams>) {
      return issuing(runtime, *what, node.what.launch);
    } else {
      return issuing(runtime, *what);
    }
  });
}

/// The same of an executable graph, which must be one.
template <class Params>
cudaError_t change_in(cudaGraphExec_t exec, cudaGraphNode_t node, cudaGraphNodeType type, const Params* what) {
  return exec ? change_to(exec, node, type, what) : remember(cudaErrorInvalidValue);
}

/// A node that does what its parameters say.
template <class Params>
cudaError_t add_with(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* needs, size_t count,
                     const Params* what) {
  return add(node, graph, needs, count, [&](Runtime& runtime) {
    require(what != nullptr);
    return issuing(runtime, *what);
  });
}

/// For a graph that uses memory.
void require_no_exec(Runtime& runtime, const Graph& graph) {
  if (runtime.graphs.is_instantiated(graph))
    throw ApiError{cudaErrorNotSupported,
                   "a graph with nodes that allocate or free memory has one executable graph at a time, and none when "
                   "it is given to a parent: destroy it (cudaGraphExecDestroy), or update it (cudaGraphExecUpdate)"};
}

/// A node that does what another graph does: a copy of it or, given away, that graph itself.
cudaError_t add_child(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* needs, size_t count,
                      const cudaChildGraphNodeParams& child) {
  return add(node, graph, needs, count, [&](Runtime& runtime) {
    const bool given = child.ownership == cudaGraphChildGraphOwnershipMove;
    require(given || child.ownership == cudaGraphChildGraphOwnershipClone);
    NodeDescription what;
    what.type = cudaGraphNodeTypeGraph;
    what.child = runtime.graphs.find(child.graph);
    what.child->require_not_given();
    if (given) {
      if (what.child->uses_memory()) {
        runtime.graphs.find(graph)->require_not_given();
        require_no_exec(runtime, *what.child);
      }
      require(runtime.graphs.has(child.graph));
      if (what.child->holds(*runtime.graphs.find(graph)))
        throw ApiError{cudaErrorInvalidValue, "a graph cannot be given to itself, nor to a child graph in it"};
    } else {
      what.child = what.child->clone();
    }
    return [&runtime, what, given](Stream& stream) {
      runtime.streams.submit(stream, {}, what);
      if (!given) return;
      what.child->given = true;
      runtime.graphs.destroy(handle_of(*what.child));
    };
  });
}

/// A list that is asked for twice: how long it is, and into an array of `*count`.
template <class T>
void give(const std::vector<T>& all, T* out, size_t* count) {
  require(count != nullptr);
  if (out) {
    for (size_t i = 0; i < *count; ++i) out[i] = i < all.size() ? all[i] : nullptr;
    *count = std::min(*count, all.size());
  } else {
    *count = all.size();
  }
}
void give_edges(cudaGraphEdgeData* data, const size_t* count) {
  if (data && count) std::fill_n(data, *count, cudaGraphEdgeData{});
}

template <class Value>
cudaError_t ask(cudaGraphNode_t handle, cudaGraphNodeType type, Value* value, Value NodeDescription::*member) {
  return answer([&](Runtime& runtime) {
    require(value != nullptr);
    *value = typed(runtime, handle, type).what.*member;
  });
}

/// The operations that a launch issues, as the graph of one node: of what they are, it keeps the events.
std::shared_ptr<Graph> as_graph(const GraphExec& exec) {
  auto out = std::make_shared<Graph>();
  std::vector<GraphNode*> last;
  for (const auto& step : exec.steps) {
    if (!step.enabled) continue;
    NodeDescription what;
    if (step.event) what.type = step.type;
    what.event = step.event;
    GraphNode* node = out->add(std::move(what), {}, last);
    node->work = step.work;
    last = {node};
  }
  return out;
}

void launch_graph(Runtime& runtime, const GraphExec& exec, Stream& stream) {
  if (runtime.streams.captures(stream)) {
    if (exec.uses_memory()) runtime.streams.refuse_while_capturing(stream);  // it would be copied
    NodeDescription what;
    what.type = cudaGraphNodeTypeGraph;
    what.child = as_graph(exec);
    runtime.streams.submit(stream, {}, std::move(what));
    return;
  }
  runtime.streams.submit(stream, [] {});  // where the stream cannot be used now, nothing has been noted yet
  const bool free_before = exec.flags & cudaGraphInstantiateFlagAutoFreeOnLaunch;
  for (const auto& memory : runtime.graph_memory.begin_launch(exec.steps, free_before))
    runtime.streams.submit(stream, [&runtime, memory] { runtime.graph_memory.release(*memory); });
  for (const auto& step : exec.steps) {
    if (!step.enabled) continue;
    if (step.type == cudaGraphNodeTypeEventRecord) runtime.events.record(step.event, stream);
    if (step.type == cudaGraphNodeTypeWaitEvent) runtime.events.make_wait(stream, step.event);
    if (step.work) runtime.streams.submit(stream, [work = step.work] { (*work)(); });
  }
}

/// What the steps of another graph, as many and of the same types, do.
void take_over(std::span<GraphExec::Step> steps, const std::vector<GraphExec::Step>& fresh) {
  for (size_t i = 0; i < steps.size(); ++i) {
    steps[i].work = fresh[i].work;
    steps[i].event = fresh[i].event;
    steps[i].memory = fresh[i].memory;
  }
}

cudaError_t instantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  return answer(Needs::no_capture, [&](Runtime& runtime) {
    require(exec != nullptr);
    if (flags & cudaGraphInstantiateFlagDeviceLaunch)
      throw ApiError{cudaErrorNotSupported, "graphs that kernels launch are not emulated"};
    auto made = std::make_unique<GraphExec>();
    const auto of = runtime.graphs.find(graph);
    of->require_not_given();
    made->steps = steps_of(*of);
    made->flags = flags;
    made->made_of = of;
    if (made->uses_memory()) require_no_exec(runtime, *of);
    runtime.graph_memory.instantiated(made->steps);
    *exec = runtime.graphs.adopt(std::move(made));
  });
}

}  // namespace

// ---------------------------------------------------------------------------------------------------------- the graph

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned flags) {
  return answer([&](Runtime& runtime) {
    require(graph && flags == 0);
    runtime.device();
    *graph = runtime.graphs.adopt(std::make_shared<Graph>());
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return answer([&](Runtime& runtime) { runtime.graphs.destroy(graph); });
}

cudaError_t cudaGraphClone(cudaGraph_t* clone, cudaGraph_t graph) {
  return answer([&](Runtime& runtime) {
    require(clone != nullptr);
    *clone = runtime.graphs.adopt(runtime.graphs.find(graph)->clone());
  });
}

cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t* node, cudaGraphNode_t original, cudaGraph_t clone) {
  return answer([&](Runtime& runtime) {
    require(node != nullptr);
    const auto graph = runtime.graphs.find(clone);
    const auto found = std::ranges::find_if(
        graph->nodes, [&](const auto& each) { return each->copy_of && handle_of(*each->copy_of) == original; });
    require(found != graph->nodes.end());
    *node = handle_of(**found);
  });
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return answer([&](Runtime& runtime) {
    std::vector<cudaGraphNode_t> all;
    for (const auto& node : runtime.graphs.find(graph)->nodes) all.push_back(handle_of(*node));
    give(all, nodes, count);
  });
}

cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return answer([&](Runtime& runtime) {
    std::vector<cudaGraphNode_t> all;
    for (const auto& node : runtime.graphs.find(graph)->nodes)
      if (node->needs.empty()) all.push_back(handle_of(*node));
    give(all, nodes, count);
  });
}

cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to, cudaGraphEdgeData* data,
                              size_t* count) {
  return answer([&](Runtime& runtime) {
    require(count && (from == nullptr) == (to == nullptr));
    std::vector<cudaGraphNode_t> first, second;
    for (const auto& node : runtime.graphs.find(graph)->nodes)
      for (const GraphNode* need : node->needs) {
        first.push_back(handle_of(*need));
        second.push_back(handle_of(*node));
      }
    size_t same = *count;
    give(first, from, &same);
    give(second, to, count);
    give_edges(data, count);
  });
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                     const cudaGraphEdgeData*, size_t count) {
  return answer([&](Runtime& runtime) {
    const auto in = runtime.graphs.find(graph);
    const auto first = runtime.graphs.nodes(from, count), second = runtime.graphs.nodes(to, count);
    for (size_t i = 0; i < count; ++i) {
      require(first[i]->graph == in.get() && second[i]->graph == in.get() && first[i] != second[i]);
      require(std::ranges::find(second[i]->needs, first[i]) == second[i]->needs.end());
      second[i]->needs.push_back(first[i]);
    }
  });
}

cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                        const cudaGraphEdgeData*, size_t count) {
  return answer([&](Runtime& runtime) {
    runtime.graphs.find(graph)->require_no_memory();
    const auto first = runtime.graphs.nodes(from, count), second = runtime.graphs.nodes(to, count);
    for (size_t i = 0; i < count; ++i) require(std::erase(second[i]->needs, first[i]) == 1);
  });
}

cudaError_t cudaGraphDestroyNode(cudaGraphNode_t handle) {
  return answer([&](Runtime& runtime) {
    GraphNode& node = runtime.graphs.node(handle);
    Graph& graph = *node.graph;
    graph.require_no_memory();
    for (const auto& other : graph.nodes) std::erase(other->needs, &node);
    std::erase_if(graph.nodes, [&](const auto& each) { return each.get() == &node; });
  });
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  return answer([&](Runtime& runtime) {
    require(type != nullptr);
    const auto found = runtime.graphs.node(node).what.type;
    require(static_cast<int>(found) != CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, cudaErrorUnknown);  // a name of the driver's
    *type = found;
  });
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* needs, cudaGraphEdgeData* data,
                                         size_t* count) {
  return answer([&](Runtime& runtime) {
    std::vector<cudaGraphNode_t> all;
    for (const GraphNode* need : runtime.graphs.node(node).needs) all.push_back(handle_of(*need));
    give(all, needs, count);
    give_edges(data, count);
  });
}

cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* nodes, cudaGraphEdgeData* data,
                                           size_t* count) {
  return answer([&](Runtime& runtime) {
    GraphNode& need = runtime.graphs.node(node);
    std::vector<cudaGraphNode_t> all;
    for (const auto& each : need.graph->nodes)
      if (std::ranges::find(each->needs, &need) != each->needs.end()) all.push_back(handle_of(*each));
    give(all, nodes, count);
    give_edges(data, count);
  });
}

// Its nodes and edges in the language of Graphviz, without their parameters.
cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char* path, unsigned) {
  return answer([&](Runtime& runtime) {
    const auto in = runtime.graphs.find(graph);
    require(path != nullptr);
    std::FILE* file = std::fopen(path, "w");
    require(file != nullptr, cudaErrorOperatingSystem);
    std::fputs("digraph graph {\n", file);
    for (const auto& node : in->nodes) {
      std::fprintf(file, "  \"%p\" [label=\"type %d\"];\n", static_cast<void*>(node.get()), node->what.type);
      for (const GraphNode* need : node->needs)
        std::fprintf(file, "  \"%p\" -> \"%p\";\n", static_cast<const void*>(need), static_cast<void*>(node.get()));
    }
    std::fputs("}\n", file);
    std::fclose(file);
  });
}

// ------------------------------------------------------------------------------------------------------------ kernels

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* needs, size_t count,
                                   const cudaKernelNodeParams* what) {
  return add_with(node, graph, needs, count, what);
}

cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t handle, cudaKernelNodeParams* what) {
  return answer([&](Runtime& runtime) {
    require(what != nullptr);
    NodeDescription& node = typed(runtime, handle, cudaGraphNodeTypeKernel).what;
    const auto loaded = node.launch.function->load(runtime);
    node.arguments.clear();
    for (const auto& parameter : loaded.kernel->parameters)
      node.arguments.push_back(node.parameters.data() + parameter.offset);
    const Function& function = *node.launch.function;
    const void* known_as = function.host_address ? function.host_address : &function;
    *what = {const_cast<void*>(known_as), node.launch.grid,
             node.launch.block,           static_cast<unsigned>(node.launch.dynamic_shared_bytes),
             node.arguments.data(),       nullptr};
  });
}

cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams* what) {
  return change_to(nullptr, node, cudaGraphNodeTypeKernel, what);
}
cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaKernelNodeParams* what) {
  return change_in(exec, node, cudaGraphNodeTypeKernel, what);
}

cudaError_t cudaGraphKernelNodeSetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID id,
                                            const cudaLaunchAttributeValue* value) {
  return change(nullptr, node, cudaGraphNodeTypeKernel, [&](Runtime& runtime, GraphNode& old) {
    require(value != nullptr);
    LaunchRequest request = old.what.launch;
    if (id == cudaLaunchAttributeClusterDimension) {
      request.cluster = {value->clusterDim.x, value->clusterDim.y, value->clusterDim.z};
      request.cluster_given = true;
    } else if (id == cudaLaunchAttributeCooperative) {
      request.cooperative = value->cooperative != 0;
    }  // the others are hints
    return [&runtime, request, parameters = old.what.parameters](Stream& stream) {
      launch_packed(runtime, request, parameters, stream);
    };
  });
}

cudaError_t cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t to, cudaGraphNode_t from) {
  return change(nullptr, to, cudaGraphNodeTypeKernel, [&](Runtime& runtime, GraphNode& old) {
    const LaunchRequest& source = typed(runtime, from, cudaGraphNodeTypeKernel).what.launch;
    LaunchRequest request = old.what.launch;
    request.cluster = source.cluster;
    request.cluster_given = source.cluster_given;
    request.cooperative = source.cooperative;
    return [&runtime, request, parameters = old.what.parameters](Stream& stream) {
      launch_packed(runtime, request, parameters, stream);
    };
  });
}

cudaError_t cudaGraphKernelNodeGetAttribute(cudaGraphNode_t handle, cudaLaunchAttributeID id,
                                            cudaLaunchAttributeValue* value) {
  return answer([&](Runtime& runtime) {
    require(value != nullptr);
    const LaunchRequest& request = typed(runtime, handle, cudaGraphNodeTypeKernel).what.launch;
    *value = {};
    if (id == cudaLaunchAttributeCooperative) value->cooperative = request.cooperative;
    if (id == cudaLaunchAttributeClusterDimension) {
      value->clusterDim.x = request.cluster.x;
      value->clusterDim.y = request.cluster.y;
      value->clusterDim.z = request.cluster.z;
    }
  });
}

// ---------------------------------------------------------------------------------------------------- copies and fills

cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* needs, size_t count,
                                   const cudaMemcpy3DParms* what) {
  return add_with(node, graph, needs, count, what);
}
cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* needs,
                                     size_t count, void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return add(node, graph, needs, count,
             [&](Runtime& runtime) { return issuing(runtime, line(to, from, bytes, kind)); });
}
cudaError_t cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* needs,
                                           size_t count, const void* symbol, const void* from, size_t bytes,
                                           size_t offset, cudaMemcpyKind kind) {
  return add(node, graph, needs, count, [&](Runtime& runtime) {
    return issuing(runtime, line(inside(runtime, symbol, bytes, offset), from, bytes, kind));
  });
}
cudaError_t cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* needs,
                                             size_t count, void* to, const void* symbol, size_t bytes, size_t offset,
                                             cudaMemcpyKind kind) {
  return add(node, graph, needs, count, [&](Runtime& runtime) {
    return issuing(runtime, line(to, inside(runtime, symbol, bytes, offset), bytes, kind));
  });
}
cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, cudaMemcpy3DParms* what) {
  return ask(node, cudaGraphNodeTypeMemcpy, what, &NodeDescription::copy);
}
cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const cudaMemcpy3DParms* what) {
  return change_to(nullptr, node, cudaGraphNodeTypeMemcpy, what);
}
cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void* to, const void* from, size_t bytes,
                                           cudaMemcpyKind kind) {
  const cudaMemcpy3DParms what = line(to, from, bytes, kind);
  return change_to(nullptr, node, cudaGraphNodeTypeMemcpy, &what);
}
cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaMemcpy3DParms* what) {
  return change_in(exec, node, cudaGraphNodeTypeMemcpy, what);
}
cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node, void* to, const void* from,
                                               size_t bytes, cudaMemcpyKind kind) {
  const cudaMemcpy3DParms what = line(to, from, bytes, kind);
  return cudaGraphExecMemcpyNodeSetParams(exec, node, &what);
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* needs, size_t count,
                                   const cudaMemsetParams* what) {
  return add_with(node, graph, needs, count, what);
}
cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, cudaMemsetParams* what) {
  return ask(node, cudaGraphNodeTypeMemset, what, &NodeDescription::fill);
}
cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const cudaMemsetParams* what) {
  return change_to(nullptr, node, cudaGraphNodeTypeMemset, what);
}
cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, const cudaMemsetParams* what) {
  return change_in(exec, node, cudaGraphNodeTypeMemset, what);
}

// ------------------------------------------------------------------------------------------------ other kinds of nodes

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* needs, size_t count,
                                 const cudaHostNodeParams* what) {
  return add_with(node, graph, needs, count, what);
}
cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node, cudaHostNodeParams* what) {
  return ask(node, cudaGraphNodeTypeHost, what, &NodeDescription::host);
}
cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node, const cudaHostNodeParams* what) {
  return change_to(nullptr, node, cudaGraphNodeTypeHost, what);
}
cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, const cudaHostNodeParams* what) {
  return change_in(exec, node, cudaGraphNodeTypeHost, what);
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* needs,
                                  size_t count) {
  return add_plain(node, graph, needs, count, {});
}

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* needs,
                                       size_t count, cudaGraph_t child) {
  return add_child(node, graph, needs, count, {child, cudaGraphChildGraphOwnershipClone});
}
cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t* graph) {
  return answer([&](Runtime& runtime) {
    require(graph != nullptr);
    *graph = handle_of(*typed(runtime, node, cudaGraphNodeTypeGraph).what.child);
  });
}

cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, cudaGraph_t child) {
  return answer([&](Runtime& runtime) {
    const GraphNode& of = typed(runtime, node, cudaGraphNodeTypeGraph);
    const auto fresh = steps_of(*runtime.graphs.find(child));
    auto& steps = runtime.graphs.find(exec).steps;
    const auto step = std::ranges::find(steps, &of, &GraphExec::Step::node);
    require(step != steps.end());
    // What the node laid out follows it.
    const size_t count = steps_of(*of.what.child).size();
    require(count <= static_cast<size_t>(steps.end() - step - 1));
    const std::span<GraphExec::Step> inside(step + 1, count);
    require(std::ranges::equal(inside, fresh, {}, &GraphExec::Step::type, &GraphExec::Step::type),
            cudaErrorGraphExecUpdateFailure);
    take_over(inside, fresh);
  });
}

cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* needs,
                                        size_t count, cudaEvent_t event) {
  return add_plain(node, graph, needs, count, {.type = cudaGraphNodeTypeEventRecord, .event = event});
}
cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* needs,
                                      size_t count, cudaEvent_t event) {
  return add_plain(node, graph, needs, count, {.type = cudaGraphNodeTypeWaitEvent, .event = event});
}
cudaError_t cudaGraphEventRecordNodeGetEvent(cudaGraphNode_t node, cudaEvent_t* event) {
  return ask(node, cudaGraphNodeTypeEventRecord, event, &NodeDescription::event);
}
cudaError_t cudaGraphEventWaitNodeGetEvent(cudaGraphNode_t node, cudaEvent_t* event) {
  return ask(node, cudaGraphNodeTypeWaitEvent, event, &NodeDescription::event);
}

cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* needs,
                                     size_t count, cudaMemAllocNodeParams* what) {
  return add(node, graph, needs, count, [&](Runtime& runtime) {
    require(what && what->bytesize);
    require_of_device(what->poolProps);
    return [&](Stream& stream) { what->dptr = add_allocation_node(runtime, stream, *what); };
  });
}
cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* needs,
                                    size_t count, void* pointer) {
  return add(node, graph, needs, count, [&](Runtime& runtime) {
    return [&, pointer](Stream& stream) { add_free_node(runtime, stream, pointer); };
  });
}
cudaError_t cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node, cudaMemAllocNodeParams* what) {
  return ask(node, cudaGraphNodeTypeMemAlloc, what, &NodeDescription::allocation);
}
cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void* pointer) {
  return ask(node, cudaGraphNodeTypeMemFree, static_cast<void**>(pointer), &NodeDescription::freed);
}

// Nothing is kept back, so there is nothing to trim.
cudaError_t cudaDeviceGraphMemTrim(int device) {
  return answer([&](Runtime&) { require_device(device); });
}
cudaError_t cudaDeviceGetGraphMemAttribute(int device, cudaGraphMemAttributeType attribute, void* value) {
  return answer([&](Runtime& runtime) {
    require_device(device);
    require(value != nullptr);
    *static_cast<uint64_t*>(value) = runtime.graph_memory.attribute(attribute);
  });
}
cudaError_t cudaDeviceSetGraphMemAttribute(int device, cudaGraphMemAttributeType attribute, void* value) {
  return answer([&](Runtime& runtime) {
    require_device(device);
    require(value != nullptr);
    runtime.graph_memory.set_attribute(attribute, *static_cast<uint64_t*>(value));
  });
}

cudaError_t cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* needs,
                             const cudaGraphEdgeData*, size_t count, cudaGraphNodeParams* what) {
  if (!what) return remember(cudaErrorInvalidValue);
  switch (what->type) {
    case cudaGraphNodeTypeKernel: {
      const cudaKernelNodeParams kernel{what->kernel.func,           what->kernel.gridDim,      what->kernel.blockDim,
                                        what->kernel.sharedMemBytes, what->kernel.kernelParams, what->kernel.extra};
      return cudaGraphAddKernelNode(node, graph, needs, count, &kernel);
    }
    case cudaGraphNodeTypeMemcpy:
      return cudaGraphAddMemcpyNode(node, graph, needs, count, &what->memcpy.copyParams);
    case cudaGraphNodeTypeMemset: {
      const cudaMemsetParams fill{what->memset.dst,         what->memset.pitch, what->memset.value,
                                  what->memset.elementSize, what->memset.width, what->memset.height};
      return cudaGraphAddMemsetNode(node, graph, needs, count, &fill);
    }
    case cudaGraphNodeTypeHost: {
      const cudaHostNodeParams host{what->host.fn, what->host.userData};
      return cudaGraphAddHostNode(node, graph, needs, count, &host);
    }
    case cudaGraphNodeTypeGraph:
      return add_child(node, graph, needs, count, what->graph);
    case cudaGraphNodeTypeEmpty:
      return cudaGraphAddEmptyNode(node, graph, needs, count);
    case cudaGraphNodeTypeWaitEvent:
      return cudaGraphAddEventWaitNode(node, graph, needs, count, what->eventWait.event);
    case cudaGraphNodeTypeEventRecord:
      return cudaGraphAddEventRecordNode(node, graph, needs, count, what->eventRecord.event);
    case cudaGraphNodeTypeMemAlloc: {
      cudaMemAllocNodeParams allocation{what->alloc.poolProps, what->alloc.accessDescs, what->alloc.accessDescCount,
                                        what->alloc.bytesize, nullptr};
      const cudaError_t error = cudaGraphAddMemAllocNode(node, graph, needs, count, &allocation);
      what->alloc.dptr = allocation.dptr;
      return error;
    }
    case cudaGraphNodeTypeMemFree:
      return cudaGraphAddMemFreeNode(node, graph, needs, count, what->free.dptr);
    default:
      return answer([&](Runtime&) {
        throw ApiError{cudaErrorNotSupported,
                       "cudaGraphAddNode: nodes of type " + std::to_string(what->type) + " are not emulated"};
      });
  }
}

// -------------------------------------------------------------------------------------------------- instantiated
// graphs

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  return instantiate(exec, graph, flags);
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  return instantiate(exec, graph, flags);
}
cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t* exec, cudaGraph_t graph, cudaGraphInstantiateParams* what) {
  if (!what) return remember(cudaErrorInvalidValue);
  const cudaError_t result = instantiate(exec, graph, what->flags);
  what->result_out = result == cudaSuccess ? cudaGraphInstantiateSuccess : cudaGraphInstantiateError;
  what->errNode_out = nullptr;
  return result;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  return answer(Needs::no_capture, [&](Runtime& runtime) { runtime.graphs.destroy(exec); });
}
cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t exec, unsigned long long* flags) {
  return answer([&](Runtime& runtime) {
    require(flags != nullptr);
    *flags = runtime.graphs.find(exec).flags;
  });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  return answer([&](Runtime& runtime) {
    const auto in = runtime.streams.find(stream);
    launch_graph(runtime, runtime.graphs.find(exec), *in);
  });
}
cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream) {
  return answer([&](Runtime& runtime) {
    runtime.streams.find(stream);
    runtime.graphs.find(exec);
  });
}

cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned enabled) {
  return answer([&](Runtime& runtime) {
    const GraphNode& of = runtime.graphs.node(node);
    require(of.what.type <= cudaGraphNodeTypeMemset);
    auto& steps = runtime.graphs.find(exec).steps;
    const auto step = std::ranges::find(steps, &of, &GraphExec::Step::node);
    require(step != steps.end());
    step->enabled = enabled != 0;
  });
}
cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned* enabled) {
  return answer([&](Runtime& runtime) {
    require(enabled != nullptr);
    const GraphNode& of = runtime.graphs.node(node);
    const auto& steps = runtime.graphs.find(exec).steps;
    const auto step = std::ranges::find(steps, &of, &GraphExec::Step::node);
    require(step != steps.end());
    *enabled = step->enabled;
  });
}

// Nodes are paired in their order; edges may differ, as long as that order does not.
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo* info) {
  return answer([&](Runtime& runtime) {
    auto& steps = runtime.graphs.find(exec).steps;
    const auto from = runtime.graphs.find(graph);
    if (from->given)
      throw ApiError{cudaErrorInvalidValue,
                     "cudaGraphExecUpdate: from a graph that was given to a parent: update from the parent"};
    const auto fresh = steps_of(*from);
    cudaGraphExecUpdateResultInfo result{};
    const auto differs = std::ranges::mismatch(steps, fresh, {}, &GraphExec::Step::type, &GraphExec::Step::type);
    if (differs.in1 != steps.end() && differs.in2 != fresh.end()) {
      result.result = cudaGraphExecUpdateErrorNodeTypeChanged;
      result.errorNode = handle_of(*differs.in2->node);
    } else if (steps.size() != fresh.size()) {
      result.result = cudaGraphExecUpdateErrorTopologyChanged;
    }
    if (info) *info = result;
    require(result.result == cudaGraphExecUpdateSuccess, cudaErrorGraphExecUpdateFailure);
    take_over(steps, fresh);
  });
}
