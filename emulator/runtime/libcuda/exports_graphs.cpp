// The driver API: graphs, their capture, words that streams write and wait for.
// Parameters are named as cuda.h names them, whose macros also give each function the suffix of its version.

#include "emulator/runtime/libcuda/forward.h"

using emu::libcuda::forward;

CUresult cuGraphCreate(CUgraph* phGraph, unsigned flags) {
  return forward("cuGraphCreate", &cuGraphCreate, phGraph, flags);
}
CUresult cuGraphDestroy(CUgraph hGraph) {
  return forward("cuGraphDestroy", &cuGraphDestroy, hGraph);
}
CUresult cuGraphClone(CUgraph* phGraphClone, CUgraph originalGraph) {
  return forward("cuGraphClone", &cuGraphClone, phGraphClone, originalGraph);
}
CUresult cuGraphNodeFindInClone(CUgraphNode* phNode, CUgraphNode hOriginalNode, CUgraph hClonedGraph) {
  return forward("cuGraphNodeFindInClone", &cuGraphNodeFindInClone, phNode, hOriginalNode, hClonedGraph);
}
CUresult cuGraphGetNodes(CUgraph hGraph, CUgraphNode* nodes, size_t* numNodes) {
  return forward("cuGraphGetNodes", &cuGraphGetNodes, hGraph, nodes, numNodes);
}
CUresult cuGraphGetRootNodes(CUgraph hGraph, CUgraphNode* rootNodes, size_t* numRootNodes) {
  return forward("cuGraphGetRootNodes", &cuGraphGetRootNodes, hGraph, rootNodes, numRootNodes);
}
CUresult cuGraphDestroyNode(CUgraphNode hNode) {
  return forward("cuGraphDestroyNode", &cuGraphDestroyNode, hNode);
}
CUresult cuGraphDebugDotPrint(CUgraph hGraph, const char* path, unsigned flags) {
  return forward("cuGraphDebugDotPrint", &cuGraphDebugDotPrint, hGraph, path, flags);
}
CUresult cuGraphNodeGetType(CUgraphNode hNode, CUgraphNodeType* type) {
  return forward("cuGraphNodeGetType", &cuGraphNodeGetType, hNode, type);
}
CUresult cuGraphGetEdges(CUgraph hGraph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* edgeData,
                         size_t* numEdges) {
  return forward("cuGraphGetEdges", &cuGraphGetEdges, hGraph, from, to, edgeData, numEdges);
}
CUresult cuGraphNodeGetDependencies(CUgraphNode hNode, CUgraphNode* dependencies, CUgraphEdgeData* edgeData,
                                    size_t* numDependencies) {
  return forward("cuGraphNodeGetDependencies", &cuGraphNodeGetDependencies, hNode, dependencies, edgeData,
                 numDependencies);
}
CUresult cuGraphNodeGetDependentNodes(CUgraphNode hNode, CUgraphNode* dependentNodes, CUgraphEdgeData* edgeData,
                                      size_t* numDependentNodes) {
  return forward("cuGraphNodeGetDependentNodes", &cuGraphNodeGetDependentNodes, hNode, dependentNodes, edgeData,
                 numDependentNodes);
}
CUresult cuGraphAddDependencies(CUgraph hGraph, const CUgraphNode* from, const CUgraphNode* to,
                                const CUgraphEdgeData* edgeData, size_t numDependencies) {
  return forward("cuGraphAddDependencies", &cuGraphAddDependencies, hGraph, from, to, edgeData, numDependencies);
}
CUresult cuGraphRemoveDependencies(CUgraph hGraph, const CUgraphNode* from, const CUgraphNode* to,
                                   const CUgraphEdgeData* edgeData, size_t numDependencies) {
  return forward("cuGraphRemoveDependencies", &cuGraphRemoveDependencies, hGraph, from, to, edgeData, numDependencies);
}
CUresult cuGraphAddKernelNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
                              size_t numDependencies, const CUDA_KERNEL_NODE_PARAMS* nodeParams) {
  return forward("cuGraphAddKernelNode", &cuGraphAddKernelNode, phGraphNode, hGraph, dependencies, numDependencies,
                 nodeParams);
}
CUresult cuGraphKernelNodeGetParams(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS* nodeParams) {
  return forward("cuGraphKernelNodeGetParams", &cuGraphKernelNodeGetParams, hNode, nodeParams);
}
CUresult cuGraphKernelNodeSetParams(CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS* nodeParams) {
  return forward("cuGraphKernelNodeSetParams", &cuGraphKernelNodeSetParams, hNode, nodeParams);
}
CUresult cuGraphExecKernelNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                        const CUDA_KERNEL_NODE_PARAMS* nodeParams) {
  return forward("cuGraphExecKernelNodeSetParams", &cuGraphExecKernelNodeSetParams, hGraphExec, hNode, nodeParams);
}
CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode dst, CUgraphNode src) {
  return forward("cuGraphKernelNodeCopyAttributes", &cuGraphKernelNodeCopyAttributes, dst, src);
}
CUresult cuGraphKernelNodeGetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr, CUkernelNodeAttrValue* value_out) {
  return forward("cuGraphKernelNodeGetAttribute", &cuGraphKernelNodeGetAttribute, hNode, attr, value_out);
}
CUresult cuGraphKernelNodeSetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr, const CUkernelNodeAttrValue* value) {
  return forward("cuGraphKernelNodeSetAttribute", &cuGraphKernelNodeSetAttribute, hNode, attr, value);
}
CUresult cuGraphAddMemcpyNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
                              size_t numDependencies, const CUDA_MEMCPY3D* copyParams, CUcontext ctx) {
  return forward("cuGraphAddMemcpyNode", &cuGraphAddMemcpyNode, phGraphNode, hGraph, dependencies, numDependencies,
                 copyParams, ctx);
}
CUresult cuGraphMemcpyNodeGetParams(CUgraphNode hNode, CUDA_MEMCPY3D* nodeParams) {
  return forward("cuGraphMemcpyNodeGetParams", &cuGraphMemcpyNodeGetParams, hNode, nodeParams);
}
CUresult cuGraphMemcpyNodeSetParams(CUgraphNode hNode, const CUDA_MEMCPY3D* nodeParams) {
  return forward("cuGraphMemcpyNodeSetParams", &cuGraphMemcpyNodeSetParams, hNode, nodeParams);
}
CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_MEMCPY3D* copyParams,
                                        CUcontext ctx) {
  return forward("cuGraphExecMemcpyNodeSetParams", &cuGraphExecMemcpyNodeSetParams, hGraphExec, hNode, copyParams, ctx);
}
CUresult cuGraphAddMemsetNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
                              size_t numDependencies, const CUDA_MEMSET_NODE_PARAMS* memsetParams, CUcontext ctx) {
  return forward("cuGraphAddMemsetNode", &cuGraphAddMemsetNode, phGraphNode, hGraph, dependencies, numDependencies,
                 memsetParams, ctx);
}
CUresult cuGraphMemsetNodeGetParams(CUgraphNode hNode, CUDA_MEMSET_NODE_PARAMS* nodeParams) {
  return forward("cuGraphMemsetNodeGetParams", &cuGraphMemsetNodeGetParams, hNode, nodeParams);
}
CUresult cuGraphMemsetNodeSetParams(CUgraphNode hNode, const CUDA_MEMSET_NODE_PARAMS* nodeParams) {
  return forward("cuGraphMemsetNodeSetParams", &cuGraphMemsetNodeSetParams, hNode, nodeParams);
}
CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                        const CUDA_MEMSET_NODE_PARAMS* memsetParams, CUcontext ctx) {
  return forward("cuGraphExecMemsetNodeSetParams", &cuGraphExecMemsetNodeSetParams, hGraphExec, hNode, memsetParams,
                 ctx);
}
CUresult cuGraphAddHostNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
                            size_t numDependencies, const CUDA_HOST_NODE_PARAMS* nodeParams) {
  return forward("cuGraphAddHostNode", &cuGraphAddHostNode, phGraphNode, hGraph, dependencies, numDependencies,
                 nodeParams);
}
CUresult cuGraphHostNodeGetParams(CUgraphNode hNode, CUDA_HOST_NODE_PARAMS* nodeParams) {
  return forward("cuGraphHostNodeGetParams", &cuGraphHostNodeGetParams, hNode, nodeParams);
}
CUresult cuGraphHostNodeSetParams(CUgraphNode hNode, const CUDA_HOST_NODE_PARAMS* nodeParams) {
  return forward("cuGraphHostNodeSetParams", &cuGraphHostNodeSetParams, hNode, nodeParams);
}
CUresult cuGraphExecHostNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                      const CUDA_HOST_NODE_PARAMS* nodeParams) {
  return forward("cuGraphExecHostNodeSetParams", &cuGraphExecHostNodeSetParams, hGraphExec, hNode, nodeParams);
}
CUresult cuGraphAddEmptyNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
                             size_t numDependencies) {
  return forward("cuGraphAddEmptyNode", &cuGraphAddEmptyNode, phGraphNode, hGraph, dependencies, numDependencies);
}
CUresult cuGraphAddChildGraphNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
                                  size_t numDependencies, CUgraph childGraph) {
  return forward("cuGraphAddChildGraphNode", &cuGraphAddChildGraphNode, phGraphNode, hGraph, dependencies,
                 numDependencies, childGraph);
}
CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode hNode, CUgraph* phGraph) {
  return forward("cuGraphChildGraphNodeGetGraph", &cuGraphChildGraphNodeGetGraph, hNode, phGraph);
}
CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, CUgraph childGraph) {
  return forward("cuGraphExecChildGraphNodeSetParams", &cuGraphExecChildGraphNodeSetParams, hGraphExec, hNode,
                 childGraph);
}
CUresult cuGraphAddEventRecordNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
                                   size_t numDependencies, CUevent event) {
  return forward("cuGraphAddEventRecordNode", &cuGraphAddEventRecordNode, phGraphNode, hGraph, dependencies,
                 numDependencies, event);
}
CUresult cuGraphAddEventWaitNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
                                 size_t numDependencies, CUevent event) {
  return forward("cuGraphAddEventWaitNode", &cuGraphAddEventWaitNode, phGraphNode, hGraph, dependencies,
                 numDependencies, event);
}
CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode hNode, CUevent* event_out) {
  return forward("cuGraphEventRecordNodeGetEvent", &cuGraphEventRecordNodeGetEvent, hNode, event_out);
}
CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode hNode, CUevent* event_out) {
  return forward("cuGraphEventWaitNodeGetEvent", &cuGraphEventWaitNodeGetEvent, hNode, event_out);
}
CUresult cuGraphAddMemAllocNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
                                size_t numDependencies, CUDA_MEM_ALLOC_NODE_PARAMS* nodeParams) {
  return forward("cuGraphAddMemAllocNode", &cuGraphAddMemAllocNode, phGraphNode, hGraph, dependencies, numDependencies,
                 nodeParams);
}
CUresult cuGraphMemAllocNodeGetParams(CUgraphNode hNode, CUDA_MEM_ALLOC_NODE_PARAMS* params_out) {
  return forward("cuGraphMemAllocNodeGetParams", &cuGraphMemAllocNodeGetParams, hNode, params_out);
}
CUresult cuGraphAddMemFreeNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
                               size_t numDependencies, CUdeviceptr dptr) {
  return forward("cuGraphAddMemFreeNode", &cuGraphAddMemFreeNode, phGraphNode, hGraph, dependencies, numDependencies,
                 dptr);
}
CUresult cuGraphMemFreeNodeGetParams(CUgraphNode hNode, CUdeviceptr* dptr_out) {
  return forward("cuGraphMemFreeNodeGetParams", &cuGraphMemFreeNodeGetParams, hNode, dptr_out);
}
CUresult cuGraphAddNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
                        const CUgraphEdgeData* dependencyData, size_t numDependencies, CUgraphNodeParams* nodeParams) {
  return forward("cuGraphAddNode", &cuGraphAddNode, phGraphNode, hGraph, dependencies, dependencyData, numDependencies,
                 nodeParams);
}
CUresult cuGraphInstantiate(CUgraphExec* phGraphExec, CUgraph hGraph, unsigned long long flags) {
  return forward("cuGraphInstantiate", &cuGraphInstantiate, phGraphExec, hGraph, flags);
}
CUresult cuGraphInstantiateWithParams(CUgraphExec* phGraphExec, CUgraph hGraph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS* instantiateParams) {
  return forward("cuGraphInstantiateWithParams", &cuGraphInstantiateWithParams, phGraphExec, hGraph, instantiateParams);
}
CUresult cuGraphExecGetFlags(CUgraphExec hGraphExec, cuuint64_t* flags) {
  return forward("cuGraphExecGetFlags", &cuGraphExecGetFlags, hGraphExec, flags);
}
CUresult cuGraphLaunch(CUgraphExec hGraphExec, CUstream hStream) {
  return forward("cuGraphLaunch", &cuGraphLaunch, hGraphExec, hStream);
}
CUresult cuGraphUpload(CUgraphExec hGraphExec, CUstream hStream) {
  return forward("cuGraphUpload", &cuGraphUpload, hGraphExec, hStream);
}
CUresult cuGraphExecDestroy(CUgraphExec hGraphExec) {
  return forward("cuGraphExecDestroy", &cuGraphExecDestroy, hGraphExec);
}
CUresult cuGraphExecUpdate(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphExecUpdateResultInfo* resultInfo) {
  return forward("cuGraphExecUpdate", &cuGraphExecUpdate, hGraphExec, hGraph, resultInfo);
}
CUresult cuGraphNodeSetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode, unsigned isEnabled) {
  return forward("cuGraphNodeSetEnabled", &cuGraphNodeSetEnabled, hGraphExec, hNode, isEnabled);
}
CUresult cuGraphNodeGetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode, unsigned* isEnabled) {
  return forward("cuGraphNodeGetEnabled", &cuGraphNodeGetEnabled, hGraphExec, hNode, isEnabled);
}
CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void* value) {
  return forward("cuDeviceGetGraphMemAttribute", &cuDeviceGetGraphMemAttribute, device, attr, value);
}
CUresult cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void* value) {
  return forward("cuDeviceSetGraphMemAttribute", &cuDeviceSetGraphMemAttribute, device, attr, value);
}
CUresult cuDeviceGraphMemTrim(CUdevice device) {
  return forward("cuDeviceGraphMemTrim", &cuDeviceGraphMemTrim, device);
}
CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned flags) {
  return forward("cuStreamWriteValue32", &cuStreamWriteValue32, stream, addr, value, flags);
}
CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned flags) {
  return forward("cuStreamWaitValue32", &cuStreamWaitValue32, stream, addr, value, flags);
}
CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned flags) {
  return forward("cuStreamWriteValue64", &cuStreamWriteValue64, stream, addr, value, flags);
}
CUresult cuStreamWaitValue64(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned flags) {
  return forward("cuStreamWaitValue64", &cuStreamWaitValue64, stream, addr, value, flags);
}
CUresult cuStreamBeginCapture(CUstream hStream, CUstreamCaptureMode mode) {
  return forward("cuStreamBeginCapture", &cuStreamBeginCapture, hStream, mode);
}
CUresult cuStreamBeginCaptureToGraph(CUstream hStream, CUgraph hGraph, const CUgraphNode* dependencies,
                                     const CUgraphEdgeData* dependencyData, size_t numDependencies,
                                     CUstreamCaptureMode mode) {
  return forward("cuStreamBeginCaptureToGraph", &cuStreamBeginCaptureToGraph, hStream, hGraph, dependencies,
                 dependencyData, numDependencies, mode);
}
CUresult cuStreamEndCapture(CUstream hStream, CUgraph* phGraph) {
  return forward("cuStreamEndCapture", &cuStreamEndCapture, hStream, phGraph);
}
CUresult cuStreamUpdateCaptureDependencies(CUstream hStream, CUgraphNode* dependencies,
                                           const CUgraphEdgeData* dependencyData, size_t numDependencies,
                                           unsigned flags) {
  return forward("cuStreamUpdateCaptureDependencies", &cuStreamUpdateCaptureDependencies, hStream, dependencies,
                 dependencyData, numDependencies, flags);
}
