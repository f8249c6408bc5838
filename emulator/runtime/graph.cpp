#include "emulator/runtime/graph.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "emulator/runtime/error.h"

namespace emu::runtime {
namespace {

/// `graph` itself or a child graph somewhere in it that has the node.
GraphNode* find_in(const Graph& graph, const GraphNode* wanted) {
  for (const auto& node : graph.nodes) {
    if (node.get() == wanted) return node.get();
    if (node->what.child)
      if (GraphNode* found = find_in(*node->what.child, wanted)) return found;
  }
  return nullptr;
}

Graph* find_child(const Graph& graph, cudaGraph_t wanted, std::shared_ptr<Graph>& found) {
  for (const auto& node : graph.nodes) {
    if (!node->what.child) continue;
    if (handle_of(*node->what.child) == wanted) found = node->what.child;
    if (!found) find_child(*node->what.child, wanted, found);
  }
  return found.get();
}

}  // namespace

GraphNode* Graph::add(NodeDescription what, std::function<void()> work, std::vector<GraphNode*> needs) {
  auto node = std::make_unique<GraphNode>();
  node->graph = this;
  node->what = std::move(what);
  if (work) node->work = std::make_shared<const std::function<void()>>(std::move(work));
  node->needs = std::move(needs);
  nodes.push_back(std::move(node));
  return nodes.back().get();
}

bool Graph::uses_memory() const {
  return std::ranges::any_of(nodes, [](const auto& node) {
    return node->what.memory || (node->what.child && node->what.child->uses_memory());
  });
}

void Graph::require_no_memory() const {
  if (uses_memory())
    throw ApiError{cudaErrorNotSupported,
                   "a graph with nodes that allocate or free memory cannot be copied, nor lose nodes or edges; as a "
                   "child graph, give it away (cudaGraphChildGraphOwnershipMove)"};
}

void Graph::require_not_given() const {
  if (given)
    throw ApiError{cudaErrorNotSupported,
                   "a graph that was given to a parent is instantiated as part of that alone; it is nobody else's "
                   "child, and gets no more nodes that allocate or free memory"};
}

std::shared_ptr<Graph> Graph::clone() const {
  require_no_memory();
  auto out = std::make_shared<Graph>();
  std::unordered_map<const GraphNode*, GraphNode*> of;
  for (const auto& node : nodes) {
    auto copy = std::make_unique<GraphNode>(*node);
    copy->graph = out.get();
    copy->copy_of = node.get();
    if (copy->what.child) copy->what.child = copy->what.child->clone();
    of[node.get()] = copy.get();
    out->nodes.push_back(std::move(copy));
  }
  for (const auto& node : out->nodes)
    for (GraphNode*& need : node->needs) need = of.at(need);
  return out;
}

bool Graph::holds(const Graph& other) const {
  return this == &other || std::ranges::any_of(nodes, [&](const auto& node) {
           return node->what.child && node->what.child->holds(other);
         });
}

std::vector<const GraphNode*> Graph::order() const {
  std::vector<const GraphNode*> out;
  std::unordered_set<const GraphNode*> placed;
  const auto ready = [&](const GraphNode* need) { return placed.contains(need); };
  // As they were added, wherever the graph leaves it open: one pass, unless edges were added later.
  while (out.size() < nodes.size()) {
    const size_t before = out.size();
    for (const auto& node : nodes)
      if (!placed.contains(node.get()) && std::ranges::all_of(node->needs, ready)) {
        placed.insert(node.get());
        out.push_back(node.get());
      }
    if (out.size() == before) throw ApiError{cudaErrorInvalidValue, "graph: nodes that wait for each other"};
  }
  return out;
}

std::vector<GraphExec::Step> steps_of(const Graph& graph) {
  std::vector<GraphExec::Step> out;
  for (const GraphNode* node : graph.order()) {
    out.push_back({node, node->what.type, node->what.event, node->what.memory, node->work, true});
    if (!node->what.child) continue;
    const auto inner = steps_of(*node->what.child);
    out.insert(out.end(), inner.begin(), inner.end());
  }
  return out;
}

bool GraphExec::uses_memory() const {
  return std::ranges::any_of(steps, [](const Step& step) { return step.memory != nullptr; });
}

cudaGraph_t Graphs::adopt(std::shared_ptr<Graph> graph) {
  const cudaGraph_t handle = handle_of(*graph);
  const std::lock_guard lock(mutex_);
  live_[handle] = std::move(graph);
  return handle;
}

std::shared_ptr<Graph> Graphs::find(cudaGraph_t handle) {
  const std::lock_guard lock(mutex_);
  if (const auto found = live_.find(handle); found != live_.end()) return found->second;
  std::shared_ptr<Graph> child;
  for (const auto& [_, graph] : live_)
    if (find_child(*graph, handle, child)) return child;
  throw ApiError{cudaErrorInvalidValue};
}

bool Graphs::has(cudaGraph_t handle) {
  const std::lock_guard lock(mutex_);
  return live_.contains(handle);
}

void Graphs::destroy(cudaGraph_t handle) {
  const std::lock_guard lock(mutex_);
  if (live_.erase(handle) == 0) throw ApiError{cudaErrorInvalidValue};
}

GraphNode& Graphs::node(cudaGraphNode_t handle) {
  const std::lock_guard lock(mutex_);
  for (const auto& [_, graph] : live_)
    if (GraphNode* found = find_in(*graph, reinterpret_cast<const GraphNode*>(handle))) return *found;
  throw ApiError{cudaErrorInvalidValue};
}

std::vector<GraphNode*> Graphs::nodes(const cudaGraphNode_t* handles, size_t count) {
  if (!handles && count != 0) throw ApiError{cudaErrorInvalidValue};
  std::vector<GraphNode*> out;
  for (size_t i = 0; i < count; ++i) out.push_back(&node(handles[i]));
  return out;
}

cudaGraphExec_t Graphs::adopt(std::unique_ptr<GraphExec> exec) {
  const auto handle = reinterpret_cast<cudaGraphExec_t>(exec.get());
  const std::lock_guard lock(mutex_);
  execs_[handle] = std::move(exec);
  return handle;
}

GraphExec& Graphs::find(cudaGraphExec_t handle) {
  const std::lock_guard lock(mutex_);
  const auto found = execs_.find(handle);
  if (found == execs_.end()) throw ApiError{cudaErrorInvalidValue};
  return *found->second;
}

bool Graphs::is_instantiated(const Graph& graph) {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(execs_, [&](const auto& exec) { return exec.second->made_of.lock().get() == &graph; });
}

void Graphs::destroy(cudaGraphExec_t handle) {
  const std::lock_guard lock(mutex_);
  if (execs_.erase(handle) == 0) throw ApiError{cudaErrorInvalidValue};
}

void Graphs::forget_all() {
  const std::lock_guard lock(mutex_);
  live_.clear();
  execs_.clear();
}

}  // namespace emu::runtime
