#include "emulator/runtime/graph_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "emulator/runtime/error.h"
#include "emulator/runtime/runtime.h"

namespace emu::runtime {

GraphAllocation::GraphAllocation(GlobalMemory& in, uint64_t wanted_bytes)
    : memory(in), bytes(wanted_bytes), address(in.reserve(wanted_bytes, "memory of a graph")) {
  if (address == 0) throw ApiError{cudaErrorMemoryAllocation};
}

GraphAllocation::~GraphAllocation() {
  memory.give_up(address);
}

GraphMemory::Allocation GraphMemory::reserve(GlobalMemory& memory, uint64_t bytes, const Graph& graph) {
  auto allocation = std::make_shared<const GraphAllocation>(memory, bytes);
  const std::lock_guard lock(mutex_);
  std::erase_if(known_, [](const auto& known) { return known.second.allocation.expired(); });
  known_[allocation->address] = {allocation, &graph};
  return allocation;
}

GraphMemory::Allocation GraphMemory::for_free_node(uint64_t address, const Graph& graph) {
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(address);
  auto allocation = found == known_.end() ? nullptr : found->second.allocation.lock();
  if (!allocation) throw ApiError{cudaErrorInvalidValue};
  Known& known = found->second;
  const bool owner = known.owner == &graph;
  // cudaGraphAddMemAllocNode: "not possible to free an allocation in both the owning graph and another graph".
  if (owner ? known.instantiated || known.freed_by_owner || known.freed_by_others : known.freed_by_owner)
    throw ApiError{cudaErrorInvalidValue};
  (owner ? known.freed_by_owner : known.freed_by_others) = true;
  return allocation;
}

void GraphMemory::instantiated(std::span<const GraphExec::Step> steps) {
  const std::lock_guard lock(mutex_);
  for (const auto& step : steps)
    if (step.type == cudaGraphNodeTypeMemAlloc) known_.at(step.memory->address).instantiated = true;
}

std::vector<GraphMemory::Allocation> GraphMemory::begin_launch(std::span<const GraphExec::Step> steps,
                                                               bool free_before) {
  const std::lock_guard lock(mutex_);
  std::map<uint64_t, Allocation> after = allocated_;
  std::vector<Allocation> to_free;
  for (const auto& step : steps) {
    if (!step.memory) continue;
    const uint64_t address = step.memory->address;
    if (step.type == cudaGraphNodeTypeMemFree) {
      if (after.erase(address) == 0)
        throw ApiError{cudaErrorInvalidValue, fmt::format("graph not launched: it frees {:#x}, which is not allocated: "
                                                          "launch the graph that allocates it first",
                                                          address)};
    } else if (!after.emplace(address, step.memory).second) {
      if (!free_before)
        throw ApiError{cudaErrorInvalidValue,
                       fmt::format("graph not launched: the {} bytes at {:#x} that it allocates are still allocated: "
                                   "free them (cudaFreeAsync), or instantiate the graph with "
                                   "cudaGraphInstantiateFlagAutoFreeOnLaunch",
                                   step.memory->bytes, address)};
      to_free.push_back(step.memory);
    }
  }
  allocated_ = std::move(after);
  return to_free;
}

GraphMemory::Allocation GraphMemory::begin_free(uint64_t address) {
  const std::lock_guard lock(mutex_);
  const auto node = allocated_.extract(address);
  return node ? node.mapped() : nullptr;
}

bool GraphMemory::missing(uint64_t address) {
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(address);
  return found != known_.end() && !found->second.allocation.expired() && !allocated_.contains(address);
}

bool GraphMemory::allocate(const GraphAllocation& allocation) {
  if (!allocation.memory.allocate_reserved(allocation.address)) return false;
  const std::lock_guard lock(mutex_);
  used_ += allocation.bytes;
  used_high_ = std::max(used_high_, used_);
  reserved_high_ = std::max(reserved_high_, used_);
  return true;
}

void GraphMemory::release(const GraphAllocation& allocation) {
  if (!allocation.memory.release(allocation.address)) return;
  const std::lock_guard lock(mutex_);
  used_ -= allocation.bytes;
}

uint64_t GraphMemory::attribute(cudaGraphMemAttributeType attribute) {
  const std::lock_guard lock(mutex_);
  switch (attribute) {
    case cudaGraphMemAttrUsedMemCurrent:
    case cudaGraphMemAttrReservedMemCurrent:
      return used_;
    case cudaGraphMemAttrUsedMemHigh:
      return used_high_;
    case cudaGraphMemAttrReservedMemHigh:
      return reserved_high_;
  }
  throw ApiError{cudaErrorInvalidValue};
}

void GraphMemory::set_attribute(cudaGraphMemAttributeType attribute, uint64_t value) {
  const bool used = attribute == cudaGraphMemAttrUsedMemHigh, reserved = attribute == cudaGraphMemAttrReservedMemHigh;
  if (!(used || reserved) || value != 0) throw ApiError{cudaErrorInvalidValue};
  const std::lock_guard lock(mutex_);
  (used ? used_high_ : reserved_high_) = used_;  // the mark counts anew from what there is
}

void GraphMemory::forget_all() {
  const std::lock_guard lock(mutex_);
  allocated_.clear();
  known_.clear();
  used_ = used_high_ = reserved_high_ = 0;
}

void* add_allocation_node(Runtime& runtime, Stream& stream, cudaMemAllocNodeParams what) {
  NodeDescription node;
  node.type = cudaGraphNodeTypeMemAlloc;
  const auto graph = runtime.streams.capture_of(stream).capture->graph;
  graph->require_not_given();
  node.memory = runtime.graph_memory.reserve(runtime.device().memory(), what.bytesize, *graph);
  what.dptr = reinterpret_cast<void*>(node.memory->address);
  node.allocation = what;
  const auto run = [&runtime, memory = node.memory] {
    if (runtime.sticky_error() != cudaSuccess || runtime.graph_memory.allocate(*memory)) return;
    runtime.poison({cudaErrorMemoryAllocation,
                    fmt::format("emulator: a graph allocates {} bytes, and the device has no more", memory->bytes)});
  };
  runtime.streams.submit(stream, run, std::move(node));
  return what.dptr;
}

void add_free_node(Runtime& runtime, Stream& stream, void* pointer) {
  NodeDescription node;
  node.type = cudaGraphNodeTypeMemFree;
  node.freed = pointer;
  const auto graph = runtime.streams.capture_of(stream).capture->graph;
  graph->require_not_given();
  const bool freed = std::ranges::any_of(graph->nodes, [&](const auto& other) {
    return other->what.type == cudaGraphNodeTypeMemFree && other->what.freed == pointer;
  });
  if (freed) throw ApiError{cudaErrorInvalidValue};
  node.memory = runtime.graph_memory.for_free_node(reinterpret_cast<uint64_t>(pointer), *graph);
  const auto run = [&runtime, memory = node.memory] {
    if (runtime.sticky_error() == cudaSuccess) runtime.graph_memory.release(*memory);
  };
  runtime.streams.submit(stream, run, std::move(node));
}

}  // namespace emu::runtime
