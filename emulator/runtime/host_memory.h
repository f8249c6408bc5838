#pragma once
// Host memory that kernels can reach: pinned, managed and registered. It lies at the same address for both sides.

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "emulator/machine/device.h"

namespace emu::runtime {

enum class HostKind : uint8_t { pinned, managed, registered };

class HostMemory {
 public:
  struct Block {
    void* pointer = nullptr;
    size_t bytes = 0;
    HostKind kind = HostKind::pinned;
    unsigned flags = 0;  ///< those of cudaHostAlloc, cudaHostRegister or cudaMallocManaged
  };

  /// Fresh pages, zero as the host gives them. Throws cudaErrorMemoryAllocation.
  void* allocate(Device& device, size_t bytes, HostKind kind, unsigned flags);
  /// Throws cudaErrorHostMemoryAlreadyRegistered when any byte of the range is known already.
  void enter(Device& device, void* pointer, size_t bytes, unsigned flags);
  /// The block that starts at `pointer`, taken out. Nothing when there is none of that kind.
  bool release(Device& device, void* pointer, HostKind kind);

  /// The block that holds `pointer`.
  std::optional<Block> find(const void* pointer) const;

  void release_all(Device* device);

 private:
  void free(Device* device, const Block& block);

  mutable std::mutex mutex_;
  std::map<uintptr_t, Block> blocks_;
};

}  // namespace emu::runtime
