#include "emulator/machine/device_heap.h"

#include <algorithm>
#include <iterator>

#include "emulator/machine/global_memory.h"

namespace emu {

bool DeviceHeap::set_bytes(uint64_t bytes) {
  std::lock_guard lock(mutex_);
  if (start_) return false;
  bytes_ = bytes;
  return true;
}

uint64_t DeviceHeap::allocate(uint64_t bytes, uint64_t align) {
  std::lock_guard lock(mutex_);
  if (!start_) {
    start_ = memory_.allocate(bytes_, "heap of malloc() in kernels");
    if (!start_) return 0;
    free_[start_] = bytes_;
  }
  if (bytes > bytes_) return 0;
  align = std::max(align, kAlign);
  bytes = (std::max<uint64_t>(bytes, 1) + kAlign - 1) / kAlign * kAlign;
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    auto [start, length] = *it;
    uint64_t at = (start + align - 1) / align * align, end = at + bytes;
    if (end > start + length) continue;
    free_.erase(it);
    if (at > start) free_[start] = at - start;
    if (end < start + length) free_[end] = start + length - end;
    live_[at] = bytes;
    return at;
  }
  return 0;
}

bool DeviceHeap::release(uint64_t address) {
  std::lock_guard lock(mutex_);
  auto found = live_.find(address);
  if (found == live_.end()) return false;
  auto [start, length] = *found;
  live_.erase(found);
  auto next = free_.lower_bound(start);
  if (next != free_.end() && next->first == start + length) {
    length += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin())
    if (auto before = std::prev(next); before->first + before->second == start) {
      before->second += length;
      return true;
    }
  free_[start] = length;
  return true;
}

}  // namespace emu
