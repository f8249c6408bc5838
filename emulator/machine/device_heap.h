#pragma once
// The heap from which malloc(), new and free() in kernels are served: one range of global memory, whose size
// cudaDeviceSetLimit(cudaLimitMallocHeapSize) sets before its first use.

#include <cstdint>
#include <map>
#include <mutex>

namespace emu {

class GlobalMemory;

class DeviceHeap {
 public:
  explicit DeviceHeap(GlobalMemory& memory) : memory_(memory) {}

  /// False once something has been allocated: too late.
  bool set_bytes(uint64_t bytes);

  /// Address of fresh memory; 0 when there is no room. `align`: a power of two.
  uint64_t allocate(uint64_t bytes, uint64_t align = kAlign);
  /// False when `address` is no live allocation.
  bool release(uint64_t address);

  static constexpr uint64_t kAlign = 16;

 private:
  GlobalMemory& memory_;
  std::mutex mutex_;
  uint64_t bytes_ = 8 << 20, start_ = 0;
  std::map<uint64_t, uint64_t> free_, live_;  // start -> length
};

}  // namespace emu
