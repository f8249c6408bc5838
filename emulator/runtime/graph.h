#pragma once
// Graphs: operations, and what each of them must wait for. A program adds them by hand, or captures them: while a
// stream captures, what is issued in it becomes a node instead (Streams::submit). Launching an instantiated graph
// issues its operations in one of the orders that the graph allows; nothing overlaps, as nothing does in the queue.

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "emulator/runtime/cuda_api.h"
#include "emulator/runtime/launch_request.h"

namespace emu::runtime {

struct Graph;
struct GraphAllocation;
struct Stream;

/// What a node does, as the functions that ask for its parameters tell it.
struct NodeDescription {
  cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
  LaunchRequest launch{};               ///< kernels
  std::vector<std::byte> parameters{};  ///< of the kernel, packed
  std::vector<void*> arguments{};       ///< into `parameters`
  cudaMemcpy3DParms copy{};
  cudaMemsetParams fill{};
  cudaHostNodeParams host{};
  cudaEvent_t event = nullptr;
  cudaMemAllocNodeParams allocation{};
  void* freed = nullptr;
  std::shared_ptr<const GraphAllocation> memory{};  ///< that it allocates or frees
  std::shared_ptr<Graph> child{};
};

struct GraphNode {
  Graph* graph = nullptr;
  NodeDescription what;
  std::shared_ptr<const std::function<void()>> work;  ///< null: nothing to do, or an event's or a graph's
  std::vector<GraphNode*> needs;
  const GraphNode* copy_of = nullptr;  ///< in the graph of which this one is a clone
};

struct Graph {
  std::vector<std::unique_ptr<GraphNode>> nodes;
  bool given = false;  ///< to a parent, as whose child it lives on (cudaGraphChildGraphOwnershipMove)

  GraphNode* add(NodeDescription what, std::function<void()> work, std::vector<GraphNode*> needs);
  std::shared_ptr<Graph> clone() const;
  /// Whether nodes of it, or of child graphs, allocate or free memory, which is then one graph's. Such a graph cannot
  /// be copied, nor lose nodes or edges: `require_no_memory` throws cudaErrorNotSupported.
  bool uses_memory() const;
  void require_no_memory() const;
  /// Throws cudaErrorNotSupported.
  void require_not_given() const;
  /// Whether `other` is this graph, or a child graph somewhere in it.
  bool holds(const Graph& other) const;
  /// The nodes, each after those that it needs. Throws cudaErrorInvalidValue when they need each other.
  std::vector<const GraphNode*> order() const;
};

/// A stream, and those that joined it by its events, whose work becomes nodes of `graph`.
struct Capture {
  std::shared_ptr<Graph> graph;
  Stream* origin = nullptr;
  std::vector<Stream*> streams;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread;
  uint64_t id = 0;
  bool valid = true;
};

/// What cudaGraphInstantiate makes: the operations in order, child graphs laid out in their place. It shares nothing
/// with the graph, whose nodes only name its steps.
struct GraphExec {
  struct Step {
    const GraphNode* node = nullptr;  ///< a name, never followed: it may be gone
    cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
    cudaEvent_t event = nullptr;
    std::shared_ptr<const GraphAllocation> memory;
    std::shared_ptr<const std::function<void()>> work;
    bool enabled = true;
  };
  std::vector<Step> steps;
  unsigned long long flags = 0;
  std::weak_ptr<const Graph> made_of;
  bool uses_memory() const;
};
std::vector<GraphExec::Step> steps_of(const Graph& graph);

/// Which handles are good. Throws cudaErrorInvalidValue for one that is not.
class Graphs {
 public:
  cudaGraph_t adopt(std::shared_ptr<Graph> graph);
  std::shared_ptr<Graph> find(cudaGraph_t handle);
  void destroy(cudaGraph_t handle);  ///< the handle stays good where the graph is the child of a node
  bool has(cudaGraph_t handle);

  /// A node of any graph that is alive, of child graphs in their nodes, or being captured.
  GraphNode& node(cudaGraphNode_t handle);
  /// Several of them. Throws ApiError unless there is an array or nothing to read from it.
  std::vector<GraphNode*> nodes(const cudaGraphNode_t* handles, size_t count);

  cudaGraphExec_t adopt(std::unique_ptr<GraphExec> exec);
  GraphExec& find(cudaGraphExec_t handle);
  bool is_instantiated(const Graph& graph);
  void destroy(cudaGraphExec_t handle);

  void forget_all();  ///< cudaDeviceReset

 private:
  std::mutex mutex_;
  std::map<cudaGraph_t, std::shared_ptr<Graph>> live_;
  std::map<cudaGraphExec_t, std::unique_ptr<GraphExec>> execs_;
};

inline cudaGraph_t handle_of(const Graph& graph) {
  return reinterpret_cast<cudaGraph_t>(const_cast<Graph*>(&graph));
}
inline cudaGraphNode_t handle_of(const GraphNode& node) {
  return reinterpret_cast<cudaGraphNode_t>(const_cast<GraphNode*>(&node));
}

}  // namespace emu::runtime
