#pragma once
// What the clusters of a running grid write to global memory, and what they hand over there: shared by all of them.
//
// Global memory is checked for one thing: that who reads what another thread of the same launch has written comes after
// the write. Readers are not remembered, so an overwrite that comes too early is not seen.

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "emulator/hazards/record.h"
#include "emulator/machine/device.h"

namespace emu::hazards {

class GlobalShadow {
 public:
  /// A write, or those of an instruction's lanes.
  struct Write {
    Record record;
    uint64_t cluster = 0;
    Dim3 cta;
  };
  /// Index into the writes, and the lane, as in Ref.
  Ref add(Write write);

  void write(uint64_t address, uint64_t bytes, Ref by);
  /// Calls f(const Write&, lanes, address) for each run of bytes with one writer; nothing else may be asked meanwhile.
  template <class F>
  void writers(uint64_t address, uint64_t bytes, F&& f) {
    if (address >= end_.load(std::memory_order_relaxed) || address + bytes <= begin_.load(std::memory_order_relaxed))
      return;
    std::lock_guard lock(mutex_);
    Ref last = kNobody;
    for (uint64_t at = address, stop = address + bytes; at < stop;) {
      const auto page = pages_.find(at / kPageBytes);
      if (page == pages_.end()) {
        at = (at / kPageBytes + 1) * kPageBytes;
        continue;
      }
      const size_t word = at % kPageBytes / 4;
      const uint64_t next = std::min(stop, at / 4 * 4 + 4);
      for (const Ref ref : {page->second->writer[word], page->second->plain[word]})
        if (ref != kNobody && ref != last && (page->second->bytes[word] & mask(at, next))) {
          last = ref;
          const Write& found = writes_[ref >> kLaneBits];
          f(found, found.record.lane_by_lane ? 1u << (ref & 31) : found.record.lanes, at);
        }
      at = next;
    }
  }

  /// Of the bytes that have been written, as they are now.
  uint64_t fingerprint(const GlobalMemory& memory) const;

  /// What strong writes to a place hand over. `weak`: the last one's view, as evidence alone.
  struct Handed {
    std::shared_ptr<const View> strong, weak;
  };
  void release(uint64_t address, uint64_t cluster, const View& view);
  void release_weakly(uint64_t address, uint64_t cluster, const std::shared_ptr<const View>& view);
  /// Calls f(cluster, const Handed&) for what has been handed over at a place; nothing else may be asked meanwhile.
  template <class F>
  void handed(uint64_t address, F&& f) const {
    std::lock_guard lock(mutex_);
    const auto found = handed_.find(address);
    if (found == handed_.end()) return;
    for (const auto& [cluster, handed] : found->second) f(cluster, handed);
  }

 private:
  static constexpr uint64_t kPageBytes = 4096;
  struct Page {
    std::array<Ref, kPageBytes / 4> writer{};
    std::array<Ref, kPageBytes / 4> plain{};      ///< below strong ones
    std::array<uint8_t, kPageBytes / 4> bytes{};  ///< of each word: those that the writer wrote
  };
  static uint8_t mask(uint64_t begin, uint64_t end) {
    return static_cast<uint8_t>(((1u << (end - begin)) - 1) << begin % 4);
  }

  mutable std::mutex mutex_;
  std::atomic<uint64_t> begin_{~uint64_t{0}}, end_{0};  // what has been written lies between them
  std::unordered_map<uint64_t, std::unique_ptr<Page>> pages_;
  std::deque<Write> writes_{1};
  std::unordered_map<uint64_t, std::map<uint64_t, Handed>> handed_;
};

}  // namespace emu::hazards
