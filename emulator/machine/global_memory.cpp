#include "emulator/machine/global_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>
#include <stdexcept>

#include "emulator/machine/trap.h"

namespace emu {
namespace {

constexpr uint64_t kAlignment = 512;

// What is larger than 1 MiB begins at a multiple of 2 MiB, as on an H200. Taichi's runtime counts on pages of 4 KiB.
constexpr uint64_t kLargeFrom = (uint64_t{1} << 20) + 1, kLargeAlignment = uint64_t{2} << 20;
constexpr uint64_t kWord = 4;
constexpr std::byte kFreshByte{0xCD};

// Addresses between two allocations that belong to nobody: what runs over an end faults instead of landing in the
// neighbour.
constexpr uint64_t kGap = uint64_t{1} << 20;

// Below this, storage comes from the heap (a mapping per allocation would run into the kernel's limit on mappings).
constexpr uint64_t kMappedFrom = uint64_t{1} << 20;

// Up to this, fresh bytes are written at once. Beyond, pages show the pattern but are committed only when written.
constexpr uint64_t kFilledUpTo = uint64_t{256} << 20;

// The repeated part of a lazily committed pattern.
constexpr uint64_t kPatternBytes = uint64_t{16} << 20;

// Where device addresses begin if the host lets us choose: the same in every run, so that traces can be compared.
constexpr uint64_t kWantedBase = 0x2000'0000'0000;

constexpr size_t kFreedRemembered = 1024;

constexpr uint64_t round_up(uint64_t value, uint64_t to) {
  return (value + to - 1) / to * to;
}

uint64_t page_bytes() {
  static const auto size = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return size;
}

// Shows kPatternBytes of the fresh pattern again and again over [start, start + bytes), copy on write: untouched pages
// cost nothing.
bool show_pattern(std::byte* start, uint64_t bytes) {
  static const int file = [] {
    const int fd = memfd_create("fresh device memory", MFD_CLOEXEC);
    if (fd < 0) return -1;
    void* window = ftruncate(fd, kPatternBytes) == 0
                       ? mmap(nullptr, kPatternBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                       : MAP_FAILED;
    if (window == MAP_FAILED) {
      close(fd);
      return -1;
    }
    std::memset(window, std::to_integer<int>(kFreshByte), kPatternBytes);
    munmap(window, kPatternBytes);
    return fd;
  }();
  if (file < 0) return false;
  for (uint64_t at = 0; at < bytes; at += kPatternBytes) {
    const uint64_t part = std::min(kPatternBytes, bytes - at);
    if (mmap(start + at, part, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, file, 0) ==
        MAP_FAILED) {
      return false;
    }
  }
  return true;
}

std::byte* make_storage(uint64_t bytes) {
  if (bytes < kMappedFrom) {
    auto* storage = static_cast<std::byte*>(::operator new (bytes, std::align_val_t{kAlignment}, std::nothrow));
    if (storage) std::memset(storage, std::to_integer<int>(kFreshByte), bytes);
    return storage;
  }
  const uint64_t mapped = round_up(bytes, page_bytes());
  void* map = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) return nullptr;
  auto* storage = static_cast<std::byte*>(map);
  if (bytes <= kFilledUpTo) {
    // Boxes of narrow rows touch a page a row: fewer, larger pages. Only a hint, and no more is committed than is
    // filled anyway.
    madvise(map, mapped, MADV_HUGEPAGE);
    std::memset(storage, std::to_integer<int>(kFreshByte), bytes);
  } else if (!show_pattern(storage, mapped)) {
    munmap(map, mapped);
    return nullptr;
  }
  return storage;
}

void free_storage(std::byte* storage, uint64_t bytes) {
  if (bytes < kMappedFrom) {
    ::operator delete (storage, std::align_val_t{kAlignment});
  } else {
    munmap(storage, round_up(bytes, page_bytes()));
  }
}

// The last allocations that this thread went to. An entry holds as long as its epoch is the memory's.
struct CacheEntry {
  uint64_t epoch = 0, start = 0, bytes = 0;
  std::byte* storage = nullptr;
  const GlobalMemory::Allocation* allocation = nullptr;
};
constexpr uint32_t kCacheEntries = 4;
struct Cache {
  CacheEntry entries[kCacheEntries];
  uint32_t oldest = 0;
};
// Plain data in the static part of thread-local storage: one instruction away, in a shared library too.
__attribute__((tls_model("initial-exec"))) thread_local constinit Cache cache;

std::atomic<uint64_t> last_epoch = 0;

std::string_view verb(Access access) {
  switch (access) {
    case Access::read:
      return "read";
    case Access::write:
      return "write";
    case Access::atomic:
      return "atomic operation";
  }
  return "access";
}

std::string describe(uint64_t address, uint64_t bytes, std::string_view what) {
  return fmt::format("{} [{:#x}, {:#x}) of {} bytes", what, address, address + bytes, bytes);
}

}  // namespace

GlobalMemory::GlobalMemory(uint64_t capacity_bytes) : capacity_(capacity_bytes) {
  new_epoch();
  // Several times the capacity, so that gaps never run out and freed addresses stay unused for long; less where the
  // host limits address space.
  for (const uint64_t times : {4, 2, 1}) {
    reserved_bytes_ = round_up(capacity_bytes * times + (uint64_t{1} << 30), uint64_t{1} << 21);
    void* base = mmap(reinterpret_cast<void*>(kWantedBase), reserved_bytes_, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) continue;
    reserved_base_ = reinterpret_cast<uint64_t>(base);
    free_ranges_.emplace(reserved_base_, reserved_bytes_);
    cursor_ = reserved_base_;
    return;
  }
  throw std::runtime_error(fmt::format(
      "cannot reserve {} bytes of address space for the emulated device's memory: raise the limit (ulimit -v)",
      reserved_bytes_));
}

GlobalMemory::~GlobalMemory() {
  for (const auto& [address, allocation] : live_) {
    if (!allocation.host) free_storage(allocation.storage, round_up(allocation.bytes, kWord));
  }
  munmap(reinterpret_cast<void*>(reserved_base_), reserved_bytes_);
}

void GlobalMemory::new_epoch() {
  epoch_.store(last_epoch.fetch_add(1) + 1, std::memory_order_release);
}

uint64_t GlobalMemory::take_range(uint64_t owned) {
  // The first free range from the cursor on that is long enough, going round once. The range that holds the cursor
  // counts from there: what was freed just before it stays unused, though it has become one range with what follows.
  const uint64_t length = owned + kGap;
  if (auto holding = free_ranges_.upper_bound(cursor_); holding != free_ranges_.begin()) {
    holding = std::prev(holding);
    const uint64_t start = holding->first, end = holding->first + holding->second;
    if (start < cursor_ && cursor_ < end && end - cursor_ >= length) {
      holding->second = cursor_ - start;
      free_ranges_.emplace(cursor_, end - cursor_);
    }
  }
  const uint64_t alignment = owned >= kLargeFrom ? kLargeAlignment : kAlignment;
  const auto fits = [&](const auto& range) {
    return round_up(range.first, alignment) - range.first + length <= range.second;
  };
  auto range = std::find_if(free_ranges_.lower_bound(cursor_), free_ranges_.end(), fits);
  if (range == free_ranges_.end()) range = std::find_if(free_ranges_.begin(), free_ranges_.end(), fits);
  if (range == free_ranges_.end()) return 0;

  const uint64_t start = range->first, end = start + range->second, address = round_up(start, alignment);
  free_ranges_.erase(range);
  cursor_ = address + length;
  if (address > start) free_ranges_.emplace(start, address - start);
  if (end > cursor_) free_ranges_.emplace(cursor_, end - cursor_);
  return address;
}

void GlobalMemory::return_range(uint64_t address, uint64_t owned) {
  auto range = free_ranges_.emplace(address, owned + kGap).first;
  if (const auto next = std::next(range); next != free_ranges_.end() && range->first + range->second == next->first) {
    range->second += next->second;
    free_ranges_.erase(next);
  }
  if (range != free_ranges_.begin()) {
    if (const auto previous = std::prev(range); previous->first + previous->second == range->first) {
      previous->second += range->second;
      free_ranges_.erase(range);
    }
  }
}

bool GlobalMemory::put_bytes(const Allocation& place) {
  const uint64_t owned = round_up(place.bytes, kAlignment);
  if (owned > capacity_ - std::min(capacity_, used_.load())) return false;
  std::byte* storage = make_storage(round_up(place.bytes, kWord));
  if (storage == nullptr) return false;
  live_.emplace(place.address, Allocation{place.address, place.bytes, storage, false, place.what});
  used_ += owned;
  return true;
}

uint64_t GlobalMemory::allocate(uint64_t bytes, const std::string& what) {
  if (bytes == 0 || bytes > capacity_) return 0;
  const uint64_t owned = round_up(bytes, kAlignment);
  const std::unique_lock lock(mutex_);
  const uint64_t address = take_range(owned);
  if (address == 0 || put_bytes({address, bytes, nullptr, false, what})) return address;
  return_range(address, owned);
  return 0;
}

uint64_t GlobalMemory::reserve(uint64_t bytes, const std::string& what) {
  if (bytes == 0 || bytes > capacity_) return 0;
  const std::unique_lock lock(mutex_);
  const uint64_t address = take_range(round_up(bytes, kAlignment));
  if (address != 0) reserved_.emplace(address, Allocation{address, bytes, nullptr, false, what});
  return address;
}

bool GlobalMemory::allocate_reserved(uint64_t address) {
  const std::unique_lock lock(mutex_);
  const auto found = reserved_.find(address);
  return found != reserved_.end() && !live_.contains(address) && put_bytes(found->second);
}

void GlobalMemory::give_up(uint64_t address) {
  const std::unique_lock lock(mutex_);
  const auto found = reserved_.find(address);
  if (found == reserved_.end()) return;
  const uint64_t owned = round_up(found->second.bytes, kAlignment);
  reserved_.erase(found);
  if (!live_.contains(address)) return_range(address, owned);
}

bool GlobalMemory::release(uint64_t address) {
  const std::unique_lock lock(mutex_);
  const auto found = live_.find(address);
  if (found == live_.end() || found->second.host) return false;
  const Allocation gone = std::move(found->second);
  live_.erase(found);
  new_epoch();
  free_storage(gone.storage, round_up(gone.bytes, kWord));

  const uint64_t owned = round_up(gone.bytes, kAlignment);
  used_ -= owned;
  if (!reserved_.contains(address)) return_range(address, owned);
  freed_.push_back({gone.address, gone.bytes, gone.what});
  if (freed_.size() > kFreedRemembered) freed_.pop_front();
  return true;
}

void GlobalMemory::map_host(void* pointer, uint64_t bytes, const std::string& what) {
  const auto address = reinterpret_cast<uint64_t>(pointer);
  const std::unique_lock lock(mutex_);
  const auto next = live_.lower_bound(address);
  const bool overlaps = (next != live_.end() && next->first - address < bytes) || lookup(live_, address) != nullptr;
  if (bytes == 0 || overlaps) {
    throw std::invalid_argument(fmt::format("{} cannot be mapped for the device: {}", describe(address, bytes, what),
                                            bytes == 0 ? "it is empty" : "part of it is mapped already"));
  }
  live_.emplace(address, Allocation{address, bytes, static_cast<std::byte*>(pointer), true, what});
}

void GlobalMemory::unmap_host(void* pointer, bool remember) {
  const std::unique_lock lock(mutex_);
  const auto found = live_.find(reinterpret_cast<uint64_t>(pointer));
  if (found == live_.end() || !found->second.host) return;
  if (remember) {
    freed_.push_back({found->second.address, found->second.bytes, found->second.what});
    if (freed_.size() > kFreedRemembered) freed_.pop_front();
  }
  live_.erase(found);
  new_epoch();
}

const GlobalMemory::Allocation* GlobalMemory::lookup(const Places& places, uint64_t address) {
  auto after = places.upper_bound(address);
  if (after == places.begin()) return nullptr;
  const Allocation& candidate = std::prev(after)->second;
  return address - candidate.address < candidate.bytes ? &candidate : nullptr;
}

std::optional<GlobalMemory::Allocation> GlobalMemory::find_or_reserved(uint64_t address) const {
  const std::shared_lock lock(mutex_);
  const Allocation* found = lookup(live_, address);
  if (found == nullptr) found = lookup(reserved_, address);
  return found ? std::optional(*found) : std::nullopt;
}

const GlobalMemory::Allocation* GlobalMemory::find(uint64_t address) const {
  const uint64_t epoch = epoch_.load(std::memory_order_acquire);
  for (const CacheEntry& entry : cache.entries) {
    if (entry.epoch == epoch && address - entry.start < entry.bytes) return entry.allocation;
  }
  const std::shared_lock lock(mutex_);
  const Allocation* found = lookup(live_, address);
  if (found != nullptr) {
    // The lock keeps the epoch still.
    CacheEntry& entry = cache.entries[cache.oldest++ % kCacheEntries];
    entry = {epoch_.load(std::memory_order_relaxed), found->address, found->bytes, found->storage, found};
  }
  return found;
}

std::byte* GlobalMemory::door(uint64_t address, uint64_t bytes, Access access) const {
  const uint64_t epoch = epoch_.load(std::memory_order_acquire);
  for (const CacheEntry& entry : cache.entries) {
    const uint64_t offset = address - entry.start;
    if (entry.epoch == epoch && offset < entry.bytes && bytes <= entry.bytes - offset) return entry.storage + offset;
  }
  return door_missed(address, bytes, access);
}

// Apart, so that the way through the cache needs no stack.
[[gnu::noinline]] std::byte* GlobalMemory::door_missed(uint64_t address, uint64_t bytes, Access access) const {
  if (bytes == 0) return nullptr;
  const Allocation* found = find(address);
  if (found == nullptr) refuse(address, bytes, access);
  // A whole word of which the end is nobody's: libcu++ has atomics of 8 and 16 bits in the word around them.
  const bool word = bytes == kWord && address % kWord == 0 && !found->host;
  if (!word && bytes > found->bytes - (address - found->address)) refuse(address, bytes, access);
  return found->storage + (address - found->address);
}

void GlobalMemory::refuse(uint64_t address, uint64_t bytes, Access access) const {
  const std::shared_lock lock(mutex_);
  std::string message =
      fmt::format("{} of {} byte{} at global address {:#x}: ", verb(access), bytes, bytes == 1 ? "" : "s", address);

  const Allocation* before = nullptr;
  const Allocation* after = nullptr;
  const auto next = live_.upper_bound(address);
  if (next != live_.end()) after = &next->second;
  if (next != live_.begin()) before = &std::prev(next)->second;
  const auto freed = std::find_if(freed_.rbegin(), freed_.rend(),
                                  [&](const Freed& gone) { return address - gone.address < gone.bytes; });

  FaultKind kind = FaultKind::out_of_bounds;
  const auto name = [](const Allocation& a) { return describe(a.address, a.bytes, a.what); };
  if (before != nullptr && address - before->address < before->bytes) {
    const uint64_t inside = before->bytes - (address - before->address);
    message +=
        fmt::format("the first {} lie in {}, the other {} run past its end", inside, name(*before), bytes - inside);
  } else if (freed != freed_.rend()) {
    kind = FaultKind::use_after_free;
    message += fmt::format("use after free, {} bytes into {}, which has been released", address - freed->address,
                           describe(freed->address, freed->bytes, freed->what));
  } else if (const Allocation* reserved = lookup(reserved_, address)) {
    message += fmt::format("nothing is there now, {} bytes into {}", address - reserved->address, name(*reserved));
  } else if (address < 4096) {
    message += "a null pointer, or an offset from one";
  } else {
    const uint64_t past_end = before ? address - (before->address + before->bytes) : UINT64_MAX;
    const uint64_t to_start = after ? after->address - address : UINT64_MAX;
    message += "it belongs to no allocation";
    if (address - reserved_base_ >= reserved_bytes_) {
      message +=
          "; it is no device address: if it is host memory, it must be allocated with cudaMalloc, cudaMallocManaged or "
          "cudaMallocHost for a kernel to reach it";
    }
    if (before && past_end <= to_start) {
      message += fmt::format("; {} bytes past the end of the nearest, {}", past_end, name(*before));
    } else if (after) {
      message += fmt::format("; {} bytes before the nearest, {}", to_start, name(*after));
    } else {
      message += "; nothing is allocated";
    }
  }
  throw Trap(kind, message);
}

}  // namespace emu
