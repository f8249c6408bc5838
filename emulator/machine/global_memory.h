#pragma once
// Global memory of the emulated device: who owns which bytes, and the one door through which they are reached.
//
// A device address is not a host pointer. Allocations live in a reserved range of addresses where the host may not read
// or write (a program that dereferences a device pointer on the CPU faults here as it does beside a real GPU); the
// bytes themselves lie elsewhere, and `reading`/`writing` translate. Pinned and managed memory is reached at its host
// address.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <shared_mutex>
#include <string>

namespace emu {

/// What an access through the door is, so that a fault can say it and counters and checks can tell them apart.
enum class Access : uint8_t { read, write, atomic };

class GlobalMemory {
 public:
  /// `capacity_bytes`: what cudaMalloc can hand out in all before it fails (the chip's memory).
  explicit GlobalMemory(uint64_t capacity_bytes);
  ~GlobalMemory();
  GlobalMemory(const GlobalMemory&) = delete;
  GlobalMemory& operator=(const GlobalMemory&) = delete;

  /// Device memory, aligned to 512 bytes (cudaMalloc guarantees at least 256), beyond 1 MiB to 2 MiB. Returns 0 when it
  /// does not fit.
  /// Fresh bytes hold a fixed pattern (0xCD..), as uninitialised memory may hold anything.
  uint64_t allocate(uint64_t bytes, const std::string& what = "cudaMalloc");

  /// An address for bytes that come and go: nobody else is given it until it is given up. Returns 0 when there is none.
  /// `allocate_reserved` puts fresh bytes there, false when they do not fit or are there; `release` takes them away.
  /// Bytes that are there when the address is given up stay until they are released.
  uint64_t reserve(uint64_t bytes, const std::string& what);
  bool allocate_reserved(uint64_t address);
  void give_up(uint64_t address);

  /// Makes host memory (pinned, managed, registered) reachable by kernels at its own address.
  void map_host(void* pointer, uint64_t bytes, const std::string& what);
  /// `remember`: later accesses are told that it was there.
  void unmap_host(void* pointer, bool remember = true);

  /// False when `address` is not the start of a live allocation.
  bool release(uint64_t address);

  struct Allocation {
    uint64_t address = 0, bytes = 0;
    std::byte* storage = nullptr;  ///< where the bytes lie in this process
    bool host = false;             ///< mapped host memory
    std::string what;              ///< which call made it
  };
  /// The allocation that holds `address`, or nullptr.
  const Allocation* find(uint64_t address) const;
  /// The same, or a reservation (then `storage` is null), bytes there or not. A copy, as either may be gone soon.
  std::optional<Allocation> find_or_reserved(uint64_t address) const;

  /// The bytes behind [address, address + bytes); throws Trap (illegal address, 700) naming the nearest allocation when
  /// a byte of them belongs to nobody. The pointer stays good until the allocation is released.
  const std::byte* reading(uint64_t address, uint64_t bytes) const { return door(address, bytes, Access::read); }
  std::byte* writing(uint64_t address, uint64_t bytes) { return door(address, bytes, Access::write); }
  std::byte* door(uint64_t address, uint64_t bytes, Access access) const;

  /// True for a device address, whether or not anything is allocated there: the host must not follow it.
  bool is_device_address(uint64_t address) const { return address - reserved_base_ < reserved_bytes_; }

  uint64_t capacity_bytes() const { return capacity_; }
  uint64_t used_bytes() const { return used_; }

 private:
  struct Freed {
    uint64_t address, bytes;
    std::string what;
  };

  using Places = std::map<uint64_t, Allocation>;  // by start address
  static const Allocation* lookup(const Places& places, uint64_t address);
  // These need mutex_.
  uint64_t take_range(uint64_t owned);
  void return_range(uint64_t address, uint64_t owned);
  bool put_bytes(const Allocation& place);
  std::byte* door_missed(uint64_t address, uint64_t bytes, Access access) const;
  [[noreturn]] void refuse(uint64_t address, uint64_t bytes, Access access) const;
  void new_epoch();

  uint64_t capacity_;
  std::atomic<uint64_t> used_ = 0;
  std::atomic<uint64_t> epoch_;  // unlike that of any other state of any GlobalMemory of this process
  uint64_t reserved_base_ = 0, reserved_bytes_ = 0;  // address range that the host may not touch
  std::map<uint64_t, uint64_t> free_ranges_;         // start -> length, inside the reserved range
  uint64_t cursor_ = 0;      // allocation goes on from here, so that freed addresses are reused late
  Places live_, reserved_;   // a reservation whose bytes are there is in both
  std::deque<Freed> freed_;  // the latest releases, for reports
  mutable std::shared_mutex mutex_;
};

}  // namespace emu
