#include "emulator/runtime/host_memory.h"

#include <sys/mman.h>

#include <iterator>
#include <string>

#include "emulator/runtime/error.h"

namespace emu::runtime {
namespace {

const char* what(HostKind kind) {
  switch (kind) {
    case HostKind::managed:
      return "cudaMallocManaged";
    case HostKind::registered:
      return "cudaHostRegister";
    case HostKind::pinned:
      break;
  }
  return "cudaMallocHost";
}

}  // namespace

void* HostMemory::allocate(Device& device, size_t bytes, HostKind kind, unsigned flags) {
  void* pointer = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pointer == MAP_FAILED) throw ApiError{cudaErrorMemoryAllocation};
  device.memory().map_host(pointer, bytes, what(kind));
  const std::lock_guard lock(mutex_);
  blocks_[reinterpret_cast<uintptr_t>(pointer)] = {pointer, bytes, kind, flags};
  return pointer;
}

void HostMemory::enter(Device& device, void* pointer, size_t bytes, unsigned flags) {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  const std::lock_guard lock(mutex_);
  const auto after = blocks_.lower_bound(address + bytes);
  if (after != blocks_.begin()) {
    const Block& before = std::prev(after)->second;
    if (reinterpret_cast<uintptr_t>(before.pointer) + before.bytes > address)
      throw ApiError{cudaErrorHostMemoryAlreadyRegistered};
  }
  device.memory().map_host(pointer, bytes, what(HostKind::registered));
  blocks_[address] = {pointer, bytes, HostKind::registered, flags};
}

bool HostMemory::release(Device& device, void* pointer, HostKind kind) {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(reinterpret_cast<uintptr_t>(pointer));
  if (found == blocks_.end() || found->second.kind != kind) return false;
  free(&device, found->second);
  blocks_.erase(found);
  return true;
}

void HostMemory::free(Device* device, const Block& block) {
  if (device) device->memory().unmap_host(block.pointer);
  if (block.kind != HostKind::registered) munmap(block.pointer, block.bytes);
}

std::optional<HostMemory::Block> HostMemory::find(const void* pointer) const {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  const std::lock_guard lock(mutex_);
  const auto after = blocks_.upper_bound(address);
  if (after == blocks_.begin()) return std::nullopt;
  const Block& block = std::prev(after)->second;
  if (address - reinterpret_cast<uintptr_t>(block.pointer) >= block.bytes) return std::nullopt;
  return block;
}

void HostMemory::release_all(Device* device) {
  const std::lock_guard lock(mutex_);
  for (const auto& [address, block] : blocks_) free(device, block);
  blocks_.clear();
}

}  // namespace emu::runtime
