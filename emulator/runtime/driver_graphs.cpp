// Driver API: graphs. Handles, node types, edges and most parameters are the runtime's under another name.

#include "emulator/runtime/api_copy.h"
#include "emulator/runtime/driver_table.h"
#include "emulator/runtime/launch.h"

namespace emu::runtime {
namespace {

static_assert(sizeof(CUgraphEdgeData) == sizeof(cudaGraphEdgeData) &&
                  sizeof(CUDA_MEM_ALLOC_NODE_PARAMS) == sizeof(cudaMemAllocNodeParams) &&
                  sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS) == sizeof(cudaGraphInstantiateParams) &&
                  sizeof(CUgraphExecUpdateResultInfo) == sizeof(cudaGraphExecUpdateResultInfo) &&
                  sizeof(CUkernelNodeAttrValue) == sizeof(cudaLaunchAttributeValue),
              "the two APIs share these");

using runtime::to_runtime;
cudaGraphEdgeData* to_runtime(CUgraphEdgeData* data) {
  return reinterpret_cast<cudaGraphEdgeData*>(data);
}
const cudaGraphEdgeData* to_runtime(const CUgraphEdgeData* data) {
  return reinterpret_cast<const cudaGraphEdgeData*>(data);
}

// The versions of the parameters differ in what they have beyond these: a context, of which there is one.
template <class Params>
cudaKernelNodeParams to_runtime_kernel(const Params& what, void* function) {
  return {function,
          {what.gridDimX, what.gridDimY, what.gridDimZ},
          {what.blockDimX, what.blockDimY, what.blockDimZ},
          what.sharedMemBytes,
          what.kernelParams,
          what.extra};
}
cudaKernelNodeParams to_runtime(const CUDA_KERNEL_NODE_PARAMS_v1& what) {
  return to_runtime_kernel(what, what.func);
}
template <class Params>
cudaKernelNodeParams to_runtime(const Params& what) requires requires {
  what.kern;
}
{ return to_runtime_kernel(what, what.func ? static_cast<void*>(what.func) : static_cast<void*>(what.kern)); }
template <class Params>
cudaMemsetParams to_runtime(const Params& what) requires requires {
  what.elementSize;
}
{ return {reinterpret_cast<void*>(what.dst), what.pitch, what.value, what.elementSize, what.width, what.height}; }
template <class Params>
cudaHostNodeParams to_runtime(const Params& what) requires requires {
  what.userData;
}
{ return {what.fn, what.userData}; }

/// A function of the runtime that takes parameters which the driver has in another form.
template <class Params, class Call>
CUresult with(const Params* what, Call&& call) {
  return driver([&] {
    if (!what) return remember(cudaErrorInvalidValue);
    try {
      const auto same = to_runtime(*what);
      return call(&same);
    } catch (const ApiError& error) {
      return remember(error.code);
    }
  });
}

// ------------------------------------------------------------------------------------------------------------ kernels

template <class Params>
CUresult add_kernel(CUgraphNode* node, CUgraph graph, const CUgraphNode* needs, size_t count, const Params* what) {
  return with(what, [&](const auto* same) { return cudaGraphAddKernelNode(node, graph, needs, count, same); });
}
template <class Params>
CUresult set_kernel(CUgraphNode node, const Params* what) {
  return with(what, [&](const auto* same) { return cudaGraphKernelNodeSetParams(node, same); });
}
template <class Params>
CUresult set_kernel_in(CUgraphExec exec, CUgraphNode node, const Params* what) {
  return with(what, [&](const auto* same) { return cudaGraphExecKernelNodeSetParams(exec, node, same); });
}
template <class Params>
CUresult get_kernel(CUgraphNode node, Params* what) {
  return driver([&] {
    return answer([&](Runtime& runtime) {
      require(what != nullptr);
      cudaKernelNodeParams same{};
      if (const cudaError_t error = cudaGraphKernelNodeGetParams(node, &same)) throw ApiError{error};
      *what = {};
      what->func = reinterpret_cast<CUfunction>(&find_function(runtime, same.func));
      if constexpr (requires { what->kern; }) {
        what->kern = reinterpret_cast<CUkernel>(what->func);  // the two handles are one here
        what->ctx = primary_context();
      }
      what->gridDimX = same.gridDim.x;
      what->gridDimY = same.gridDim.y;
      what->gridDimZ = same.gridDim.z;
      what->blockDimX = same.blockDim.x;
      what->blockDimY = same.blockDim.y;
      what->blockDimZ = same.blockDim.z;
      what->sharedMemBytes = same.sharedMemBytes;
      what->kernelParams = same.kernelParams;
    });
  });
}
CUresult kernel_attribute(CUgraphNode node, CUkernelNodeAttrID attribute, CUkernelNodeAttrValue* value) {
  return driver([&] {
    return cudaGraphKernelNodeGetAttribute(node, static_cast<cudaLaunchAttributeID>(attribute),
                                           reinterpret_cast<cudaLaunchAttributeValue*>(value));
  });
}
CUresult set_kernel_attribute(CUgraphNode node, CUkernelNodeAttrID attribute, const CUkernelNodeAttrValue* value) {
  return driver([&] {
    return cudaGraphKernelNodeSetAttribute(node, static_cast<cudaLaunchAttributeID>(attribute),
                                           reinterpret_cast<const cudaLaunchAttributeValue*>(value));
  });
}

// ---------------------------------------------------------------------------------------------------- copies and fills

CUresult add_copy(CUgraphNode* node, CUgraph graph, const CUgraphNode* needs, size_t count, const CUDA_MEMCPY3D* what,
                  CUcontext) {
  return with(what, [&](const auto* same) { return cudaGraphAddMemcpyNode(node, graph, needs, count, same); });
}
CUresult get_copy(CUgraphNode node, CUDA_MEMCPY3D* what) {
  return driver([&] {
    if (!what) return remember(cudaErrorInvalidValue);
    cudaMemcpy3DParms same{};
    const cudaError_t error = cudaGraphMemcpyNodeGetParams(node, &same);
    if (error == cudaSuccess) *what = to_driver(same);
    return error;
  });
}
CUresult set_copy(CUgraphNode node, const CUDA_MEMCPY3D* what) {
  return with(what, [&](const auto* same) { return cudaGraphMemcpyNodeSetParams(node, same); });
}
CUresult set_copy_in(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D* what, CUcontext) {
  return with(what, [&](const auto* same) { return cudaGraphExecMemcpyNodeSetParams(exec, node, same); });
}

CUresult add_fill(CUgraphNode* node, CUgraph graph, const CUgraphNode* needs, size_t count,
                  const CUDA_MEMSET_NODE_PARAMS* what, CUcontext) {
  return with(what, [&](const auto* same) { return cudaGraphAddMemsetNode(node, graph, needs, count, same); });
}
CUresult get_fill(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS* what) {
  return driver([&] {
    if (!what) return remember(cudaErrorInvalidValue);
    cudaMemsetParams same{};
    const cudaError_t error = cudaGraphMemsetNodeGetParams(node, &same);
    if (error == cudaSuccess)
      *what = {
          reinterpret_cast<CUdeviceptr>(same.dst), same.pitch, same.value, same.elementSize, same.width, same.height};
    return error;
  });
}
CUresult set_fill(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* what) {
  return with(what, [&](const auto* same) { return cudaGraphMemsetNodeSetParams(node, same); });
}
CUresult set_fill_in(CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* what, CUcontext) {
  return with(what, [&](const auto* same) { return cudaGraphExecMemsetNodeSetParams(exec, node, same); });
}

// ------------------------------------------------------------------------------------------------ other kinds of nodes

CUresult add_host(CUgraphNode* node, CUgraph graph, const CUgraphNode* needs, size_t count,
                  const CUDA_HOST_NODE_PARAMS* what) {
  return with(what, [&](const auto* same) { return cudaGraphAddHostNode(node, graph, needs, count, same); });
}
CUresult get_host(CUgraphNode node, CUDA_HOST_NODE_PARAMS* what) {
  return driver([&] {
    if (!what) return remember(cudaErrorInvalidValue);
    cudaHostNodeParams same{};
    const cudaError_t error = cudaGraphHostNodeGetParams(node, &same);
    if (error == cudaSuccess) *what = {same.fn, same.userData};
    return error;
  });
}
CUresult set_host(CUgraphNode node, const CUDA_HOST_NODE_PARAMS* what) {
  return with(what, [&](const auto* same) { return cudaGraphHostNodeSetParams(node, same); });
}
CUresult set_host_in(CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS* what) {
  return with(what, [&](const auto* same) { return cudaGraphExecHostNodeSetParams(exec, node, same); });
}

CUresult add_allocation(CUgraphNode* node, CUgraph graph, const CUgraphNode* needs, size_t count,
                        CUDA_MEM_ALLOC_NODE_PARAMS* what) {
  return driver([&] {
    return cudaGraphAddMemAllocNode(node, graph, needs, count, reinterpret_cast<cudaMemAllocNodeParams*>(what));
  });
}
CUresult get_allocation(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS* what) {
  return driver([&] { return cudaGraphMemAllocNodeGetParams(node, reinterpret_cast<cudaMemAllocNodeParams*>(what)); });
}
CUresult add_free(CUgraphNode* node, CUgraph graph, const CUgraphNode* needs, size_t count, CUdeviceptr address) {
  return driver([&] { return cudaGraphAddMemFreeNode(node, graph, needs, count, reinterpret_cast<void*>(address)); });
}
CUresult get_free(CUgraphNode node, CUdeviceptr* address) {
  return driver([&] { return cudaGraphMemFreeNodeGetParams(node, address); });
}

CUresult add_node(CUgraphNode* node, CUgraph graph, const CUgraphNode* needs, const CUgraphEdgeData*, size_t count,
                  CUgraphNodeParams* what) {
  if (!what) return CUDA_ERROR_INVALID_VALUE;
  switch (what->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return add_kernel(node, graph, needs, count, &what->kernel);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return add_copy(node, graph, needs, count, &what->memcpy.copyParams, nullptr);
    case CU_GRAPH_NODE_TYPE_MEMSET:
      return with(&what->memset,
                  [&](const auto* same) { return cudaGraphAddMemsetNode(node, graph, needs, count, same); });
    case CU_GRAPH_NODE_TYPE_HOST:
      return with(&what->host, [&](const auto* same) { return cudaGraphAddHostNode(node, graph, needs, count, same); });
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return driver([&] {
        cudaGraphNodeParams same{};
        same.type = cudaGraphNodeTypeGraph;
        same.graph.graph = what->graph.graph;
        same.graph.ownership = static_cast<cudaGraphChildGraphNodeOwnership>(what->graph.ownership);
        return cudaGraphAddNode(node, graph, needs, nullptr, count, &same);
      });
    case CU_GRAPH_NODE_TYPE_EMPTY:
      return driver([&] { return cudaGraphAddEmptyNode(node, graph, needs, count); });
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return driver([&] { return cudaGraphAddEventWaitNode(node, graph, needs, count, what->eventWait.event); });
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return driver([&] { return cudaGraphAddEventRecordNode(node, graph, needs, count, what->eventRecord.event); });
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: {
      CUDA_MEM_ALLOC_NODE_PARAMS allocation{what->alloc.poolProps, what->alloc.accessDescs, what->alloc.accessDescCount,
                                            what->alloc.bytesize, 0};
      const CUresult result = add_allocation(node, graph, needs, count, &allocation);
      what->alloc.dptr = allocation.dptr;
      return result;
    }
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      return add_free(node, graph, needs, count, what->free.dptr);
    default:
      return driver([&] {
        return answer([&](Runtime&) {
          throw ApiError{cudaErrorNotSupported,
                         "cuGraphAddNode: nodes of type " + std::to_string(what->type) + " are not emulated"};
        });
      });
  }
}
CUresult add_node_without_data(CUgraphNode* node, CUgraph graph, const CUgraphNode* needs, size_t count,
                               CUgraphNodeParams* what) {
  return add_node(node, graph, needs, nullptr, count, what);
}

CUresult node_type(CUgraphNode node, CUgraphNodeType* type) {
  return driver([&] {
    return answer([&](Runtime& runtime) {
      require(type != nullptr);
      *type = static_cast<CUgraphNodeType>(runtime.graphs.node(node).what.type);
    });
  });
}

// -------------------------------------------------------------------------------------------------------------- edges

CUresult edges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data, size_t* count) {
  return driver([&] { return cudaGraphGetEdges(graph, from, to, to_runtime(data), count); });
}
CUresult edges_without_data(CUgraph graph, CUgraphNode* from, CUgraphNode* to, size_t* count) {
  return edges(graph, from, to, nullptr, count);
}
CUresult dependencies(CUgraphNode node, CUgraphNode* needs, CUgraphEdgeData* data, size_t* count) {
  return driver([&] { return cudaGraphNodeGetDependencies(node, needs, to_runtime(data), count); });
}
CUresult dependencies_without_data(CUgraphNode node, CUgraphNode* needs, size_t* count) {
  return dependencies(node, needs, nullptr, count);
}
CUresult dependents(CUgraphNode node, CUgraphNode* nodes, CUgraphEdgeData* data, size_t* count) {
  return driver([&] { return cudaGraphNodeGetDependentNodes(node, nodes, to_runtime(data), count); });
}
CUresult dependents_without_data(CUgraphNode node, CUgraphNode* nodes, size_t* count) {
  return dependents(node, nodes, nullptr, count);
}
CUresult add_edges(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, const CUgraphEdgeData* data,
                   size_t count) {
  return driver([&] { return cudaGraphAddDependencies(graph, from, to, to_runtime(data), count); });
}
CUresult add_edges_without_data(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, size_t count) {
  return add_edges(graph, from, to, nullptr, count);
}
CUresult remove_edges(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, const CUgraphEdgeData* data,
                      size_t count) {
  return driver([&] { return cudaGraphRemoveDependencies(graph, from, to, to_runtime(data), count); });
}
CUresult remove_edges_without_data(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, size_t count) {
  return remove_edges(graph, from, to, nullptr, count);
}

// ------------------------------------------------------------------------------------------------- instantiated graphs

CUresult instantiate_with(CUgraphExec* exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* what) {
  return driver(
      [&] { return cudaGraphInstantiateWithParams(exec, graph, reinterpret_cast<cudaGraphInstantiateParams*>(what)); });
}
CUresult exec_flags(CUgraphExec exec, cuuint64_t* flags) {
  return driver([&] { return cudaGraphExecGetFlags(exec, reinterpret_cast<unsigned long long*>(flags)); });
}
CUresult update(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo* info) {
  return driver(
      [&] { return cudaGraphExecUpdate(exec, graph, reinterpret_cast<cudaGraphExecUpdateResultInfo*>(info)); });
}
CUresult update_10(CUgraphExec exec, CUgraph graph, CUgraphNode* error_node, CUgraphExecUpdateResult* result) {
  CUgraphExecUpdateResultInfo info{};
  const CUresult code = update(exec, graph, &info);
  if (error_node) *error_node = info.errorNode;
  if (result) *result = info.result;
  return code;
}

CUresult memory_attribute(CUdevice device, CUgraphMem_attribute attribute, void* value) {
  return driver(
      [&] { return cudaDeviceGetGraphMemAttribute(device, static_cast<cudaGraphMemAttributeType>(attribute), value); });
}
CUresult set_memory_attribute(CUdevice device, CUgraphMem_attribute attribute, void* value) {
  return driver(
      [&] { return cudaDeviceSetGraphMemAttribute(device, static_cast<cudaGraphMemAttributeType>(attribute), value); });
}

}  // namespace

std::span<const DriverFunction> driver_functions_of_graphs() {
  static const DriverFunction table[] = {
      entry<PFN_cuGraphCreate_v10000>("cuGraphCreate", 10000, as_driver<cudaGraphCreate>),
      entry<PFN_cuGraphDestroy_v10000>("cuGraphDestroy", 10000, as_driver<cudaGraphDestroy>),
      entry<PFN_cuGraphClone_v10000>("cuGraphClone", 10000, as_driver<cudaGraphClone>),
      entry<PFN_cuGraphNodeFindInClone_v10000>("cuGraphNodeFindInClone", 10000, as_driver<cudaGraphNodeFindInClone>),
      entry<PFN_cuGraphGetNodes_v10000>("cuGraphGetNodes", 10000, as_driver<cudaGraphGetNodes>),
      entry<PFN_cuGraphGetRootNodes_v10000>("cuGraphGetRootNodes", 10000, as_driver<cudaGraphGetRootNodes>),
      entry<PFN_cuGraphDestroyNode_v10000>("cuGraphDestroyNode", 10000, as_driver<cudaGraphDestroyNode>),
      entry<PFN_cuGraphDebugDotPrint_v11030>("cuGraphDebugDotPrint", 11030, as_driver<cudaGraphDebugDotPrint>),
      entry<PFN_cuGraphNodeGetType_v10000>("cuGraphNodeGetType", 10000, node_type),
      entry<PFN_cuGraphGetEdges_v10000>("cuGraphGetEdges", 10000, edges_without_data),
      entry<PFN_cuGraphGetEdges_v12030>("cuGraphGetEdges", 12030, edges),
      entry<PFN_cuGraphNodeGetDependencies_v10000>("cuGraphNodeGetDependencies", 10000, dependencies_without_data),
      entry<PFN_cuGraphNodeGetDependencies_v12030>("cuGraphNodeGetDependencies", 12030, dependencies),
      entry<PFN_cuGraphNodeGetDependentNodes_v10000>("cuGraphNodeGetDependentNodes", 10000, dependents_without_data),
      entry<PFN_cuGraphNodeGetDependentNodes_v12030>("cuGraphNodeGetDependentNodes", 12030, dependents),
      entry<PFN_cuGraphAddDependencies_v10000>("cuGraphAddDependencies", 10000, add_edges_without_data),
      entry<PFN_cuGraphAddDependencies_v12030>("cuGraphAddDependencies", 12030, add_edges),
      entry<PFN_cuGraphRemoveDependencies_v10000>("cuGraphRemoveDependencies", 10000, remove_edges_without_data),
      entry<PFN_cuGraphRemoveDependencies_v12030>("cuGraphRemoveDependencies", 12030, remove_edges),

      entry<PFN_cuGraphAddKernelNode_v10000>("cuGraphAddKernelNode", 10000, add_kernel),
      entry<PFN_cuGraphAddKernelNode_v12000>("cuGraphAddKernelNode", 12000, add_kernel),
      entry<PFN_cuGraphKernelNodeGetParams_v10000>("cuGraphKernelNodeGetParams", 10000, get_kernel),
      entry<PFN_cuGraphKernelNodeGetParams_v12000>("cuGraphKernelNodeGetParams", 12000, get_kernel),
      entry<PFN_cuGraphKernelNodeSetParams_v10000>("cuGraphKernelNodeSetParams", 10000, set_kernel),
      entry<PFN_cuGraphKernelNodeSetParams_v12000>("cuGraphKernelNodeSetParams", 12000, set_kernel),
      entry<PFN_cuGraphExecKernelNodeSetParams_v10010>("cuGraphExecKernelNodeSetParams", 10010, set_kernel_in),
      entry<PFN_cuGraphExecKernelNodeSetParams_v12000>("cuGraphExecKernelNodeSetParams", 12000, set_kernel_in),
      entry<PFN_cuGraphKernelNodeCopyAttributes_v11000>("cuGraphKernelNodeCopyAttributes", 11000,
                                                        as_driver<cudaGraphKernelNodeCopyAttributes>),
      entry<PFN_cuGraphKernelNodeGetAttribute_v11000>("cuGraphKernelNodeGetAttribute", 11000, kernel_attribute),
      entry<PFN_cuGraphKernelNodeSetAttribute_v11000>("cuGraphKernelNodeSetAttribute", 11000, set_kernel_attribute),

      entry<PFN_cuGraphAddMemcpyNode_v10000>("cuGraphAddMemcpyNode", 10000, add_copy),
      entry<PFN_cuGraphMemcpyNodeGetParams_v10000>("cuGraphMemcpyNodeGetParams", 10000, get_copy),
      entry<PFN_cuGraphMemcpyNodeSetParams_v10000>("cuGraphMemcpyNodeSetParams", 10000, set_copy),
      entry<PFN_cuGraphExecMemcpyNodeSetParams_v10020>("cuGraphExecMemcpyNodeSetParams", 10020, set_copy_in),
      entry<PFN_cuGraphAddMemsetNode_v10000>("cuGraphAddMemsetNode", 10000, add_fill),
      entry<PFN_cuGraphMemsetNodeGetParams_v10000>("cuGraphMemsetNodeGetParams", 10000, get_fill),
      entry<PFN_cuGraphMemsetNodeSetParams_v10000>("cuGraphMemsetNodeSetParams", 10000, set_fill),
      entry<PFN_cuGraphExecMemsetNodeSetParams_v10020>("cuGraphExecMemsetNodeSetParams", 10020, set_fill_in),

      entry<PFN_cuGraphAddHostNode_v10000>("cuGraphAddHostNode", 10000, add_host),
      entry<PFN_cuGraphHostNodeGetParams_v10000>("cuGraphHostNodeGetParams", 10000, get_host),
      entry<PFN_cuGraphHostNodeSetParams_v10000>("cuGraphHostNodeSetParams", 10000, set_host),
      entry<PFN_cuGraphExecHostNodeSetParams_v10020>("cuGraphExecHostNodeSetParams", 10020, set_host_in),
      entry<PFN_cuGraphAddEmptyNode_v10000>("cuGraphAddEmptyNode", 10000, as_driver<cudaGraphAddEmptyNode>),
      entry<PFN_cuGraphAddChildGraphNode_v10000>("cuGraphAddChildGraphNode", 10000,
                                                 as_driver<cudaGraphAddChildGraphNode>),
      entry<PFN_cuGraphChildGraphNodeGetGraph_v10000>("cuGraphChildGraphNodeGetGraph", 10000,
                                                      as_driver<cudaGraphChildGraphNodeGetGraph>),
      entry<PFN_cuGraphExecChildGraphNodeSetParams_v11010>("cuGraphExecChildGraphNodeSetParams", 11010,
                                                           as_driver<cudaGraphExecChildGraphNodeSetParams>),
      entry<PFN_cuGraphAddEventRecordNode_v11010>("cuGraphAddEventRecordNode", 11010,
                                                  as_driver<cudaGraphAddEventRecordNode>),
      entry<PFN_cuGraphAddEventWaitNode_v11010>("cuGraphAddEventWaitNode", 11010, as_driver<cudaGraphAddEventWaitNode>),
      entry<PFN_cuGraphEventRecordNodeGetEvent_v11010>("cuGraphEventRecordNodeGetEvent", 11010,
                                                       as_driver<cudaGraphEventRecordNodeGetEvent>),
      entry<PFN_cuGraphEventWaitNodeGetEvent_v11010>("cuGraphEventWaitNodeGetEvent", 11010,
                                                     as_driver<cudaGraphEventWaitNodeGetEvent>),
      entry<PFN_cuGraphAddMemAllocNode_v11040>("cuGraphAddMemAllocNode", 11040, add_allocation),
      entry<PFN_cuGraphMemAllocNodeGetParams_v11040>("cuGraphMemAllocNodeGetParams", 11040, get_allocation),
      entry<PFN_cuGraphAddMemFreeNode_v11040>("cuGraphAddMemFreeNode", 11040, add_free),
      entry<PFN_cuGraphMemFreeNodeGetParams_v11040>("cuGraphMemFreeNodeGetParams", 11040, get_free),
      entry<PFN_cuGraphAddNode_v12020>("cuGraphAddNode", 12020, add_node_without_data),
      entry<PFN_cuGraphAddNode_v12030>("cuGraphAddNode", 12030, add_node),

      entry<PFN_cuGraphInstantiateWithFlags_v11040>("cuGraphInstantiate", 12000,
                                                    as_driver<cudaGraphInstantiateWithFlags>),
      entry<PFN_cuGraphInstantiateWithFlags_v11040>("cuGraphInstantiateWithFlags", 11040,
                                                    as_driver<cudaGraphInstantiateWithFlags>),
      entry<PFN_cuGraphInstantiateWithParams_v12000>("cuGraphInstantiateWithParams", 12000, instantiate_with),
      entry<PFN_cuGraphExecGetFlags_v12000>("cuGraphExecGetFlags", 12000, exec_flags),
      entry<PFN_cuGraphLaunch_v10000>("cuGraphLaunch", 10000, as_driver<cudaGraphLaunch>),
      entry<PFN_cuGraphUpload_v11010>("cuGraphUpload", 11010, as_driver<cudaGraphUpload>),
      entry<PFN_cuGraphExecDestroy_v10000>("cuGraphExecDestroy", 10000, as_driver<cudaGraphExecDestroy>),
      entry<PFN_cuGraphExecUpdate_v10020>("cuGraphExecUpdate", 10020, update_10),
      entry<PFN_cuGraphExecUpdate_v12000>("cuGraphExecUpdate", 12000, update),
      entry<PFN_cuGraphNodeSetEnabled_v11060>("cuGraphNodeSetEnabled", 11060, as_driver<cudaGraphNodeSetEnabled>),
      entry<PFN_cuGraphNodeGetEnabled_v11060>("cuGraphNodeGetEnabled", 11060, as_driver<cudaGraphNodeGetEnabled>),

      entry<PFN_cuDeviceGetGraphMemAttribute_v11040>("cuDeviceGetGraphMemAttribute", 11040, memory_attribute),
      entry<PFN_cuDeviceSetGraphMemAttribute_v11040>("cuDeviceSetGraphMemAttribute", 11040, set_memory_attribute),
      entry<PFN_cuDeviceGraphMemTrim_v11040>("cuDeviceGraphMemTrim", 11040, as_driver<cudaDeviceGraphMemTrim>),
  };
  return table;
}

}  // namespace emu::runtime
