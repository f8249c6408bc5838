#pragma once
// Memory that graphs allocate. Its address is good as long as a graph or an executable graph has the allocation's node;
// bytes are there from that node's turn in a launch until somebody frees them: a node, cudaFreeAsync, cudaFree, or the
// next launch of a graph that was instantiated with cudaGraphInstantiateFlagAutoFreeOnLaunch. Destroying the graph
// frees nothing. CUDA programming guide, "Graph Memory Nodes".

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "emulator/machine/global_memory.h"
#include "emulator/runtime/cuda_api.h"
#include "emulator/runtime/graph.h"

namespace emu::runtime {

class Runtime;

/// An allocation node's address.
struct GraphAllocation {
  GraphAllocation(GlobalMemory& in, uint64_t wanted_bytes);  ///< throws cudaErrorMemoryAllocation
  ~GraphAllocation();
  GraphAllocation(const GraphAllocation&) = delete;
  GraphAllocation& operator=(const GraphAllocation&) = delete;

  GlobalMemory& memory;
  uint64_t bytes, address;
};

class GraphMemory {
 public:
  using Allocation = std::shared_ptr<const GraphAllocation>;

  Allocation reserve(GlobalMemory& memory, uint64_t bytes, const Graph& graph);
  /// For a node of `graph` that frees. Throws cudaErrorInvalidValue unless the address is that of an allocation node,
  /// and only its own graph, or only others free it; its own not once it was instantiated without.
  Allocation for_free_node(uint64_t address, const Graph& graph);
  /// Takes note that a graph with these steps was instantiated.
  void instantiated(std::span<const GraphExec::Step> steps);

  // ---- when something is issued: what the operations before it leave allocated

  /// Takes note of a launch. Throws cudaErrorInvalidValue, and does nothing, when it allocates what is allocated or
  /// frees what is not. `free_before`: returns what has to be freed before the launch instead of refusing it.
  std::vector<Allocation> begin_launch(std::span<const GraphExec::Step> steps, bool free_before);
  /// Takes note of a free; null when nothing is allocated there.
  Allocation begin_free(uint64_t address);

  /// Whether this is an allocation node's address, and nothing is allocated there.
  bool missing(uint64_t address);

  // ---- when it runs

  bool allocate(const GraphAllocation& allocation);  ///< false: the device's memory is full
  void release(const GraphAllocation& allocation);

  /// Throws cudaErrorInvalidValue for no such attribute, and for setting others than the high-water marks, or to a
  /// value other than zero. Nothing is kept back, so what is reserved is what is used.
  uint64_t attribute(cudaGraphMemAttributeType attribute);
  void set_attribute(cudaGraphMemAttributeType attribute, uint64_t value);

  void forget_all();  ///< cudaDeviceReset

 private:
  struct Known {
    std::weak_ptr<const GraphAllocation> allocation;
    const Graph* owner = nullptr;  // a name, never followed
    bool instantiated = false, freed_by_owner = false, freed_by_others = false;
  };
  std::mutex mutex_;
  std::map<uint64_t, Known> known_;
  std::map<uint64_t, Allocation> allocated_;
  uint64_t used_ = 0, used_high_ = 0, reserved_high_ = 0;
};

/// Nodes in a stream that captures. Both throw cudaErrorNotSupported when the graph has been given to a parent.
void* add_allocation_node(Runtime& runtime, Stream& stream, cudaMemAllocNodeParams what);
/// Throws cudaErrorInvalidValue unless an allocation node made the pointer and nothing in the graph frees it yet.
void add_free_node(Runtime& runtime, Stream& stream, void* pointer);

}  // namespace emu::runtime
