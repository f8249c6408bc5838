#include "emulator/hazards/global_shadow.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "emulator/machine/mix.h"

namespace emu::hazards {

Ref GlobalShadow::add(Write write) {
  std::lock_guard lock(mutex_);
  writes_.push_back(std::move(write));
  return static_cast<Ref>((writes_.size() - 1) << kLaneBits);
}

void GlobalShadow::write(uint64_t address, uint64_t bytes, Ref by) {
  std::lock_guard lock(mutex_);
  const bool strong = writes_[by >> kLaneBits].record.strong;
  begin_ = std::min(begin_.load(std::memory_order_relaxed), address);
  end_ = std::max(end_.load(std::memory_order_relaxed), address + bytes);
  for (uint64_t at = address, stop = address + bytes; at < stop;) {
    std::unique_ptr<Page>& page = pages_[at / kPageBytes];
    if (!page) page = std::make_unique<Page>();
    for (const uint64_t last = std::min(stop, (at / kPageBytes + 1) * kPageBytes); at < last;) {
      const uint64_t next = std::min(last, at / 4 * 4 + 4);
      const size_t word = at % kPageBytes / 4;
      const uint8_t written = mask(at, next);
      // Of two that write parts of a word the later one is remembered.
      page->bytes[word] = page->writer[word] == by ? page->bytes[word] | written : written;
      page->writer[word] = by;
      if (!strong) page->plain[word] = by;
      at = next;
    }
  }
}

uint64_t GlobalShadow::fingerprint(const GlobalMemory& memory) const {
  std::lock_guard lock(mutex_);
  std::vector<uint64_t> numbers;
  for (const auto& [number, page] : pages_) numbers.push_back(number);
  std::sort(numbers.begin(), numbers.end());
  uint64_t hash = 0;
  for (uint64_t number : numbers) {
    const Page& page = *pages_.at(number);
    for (size_t word = 0; word < page.writer.size(); ++word) {
      if (page.writer[word] == kNobody) continue;
      const uint64_t address = number * kPageBytes + word * 4;
      const auto* place = memory.find(address);
      if (!place || address + 4 > place->address + place->bytes) continue;  // freed, or the end of an odd size
      uint32_t value;
      std::memcpy(&value, place->storage + (address - place->address), 4);
      for (uint32_t byte = 0; byte < 4; ++byte)
        if (!(page.bytes[word] >> byte & 1)) value &= ~(0xFFu << 8 * byte);
      hash = mix(hash ^ mix(address ^ uint64_t{value} << 32));
    }
  }
  return hash;
}

void GlobalShadow::release(uint64_t address, uint64_t cluster, const View& view) {
  std::lock_guard lock(mutex_);
  std::shared_ptr<const View>& place = handed_[address][cluster].strong;
  auto joined = place ? std::make_shared<View>(*place) : std::make_shared<View>();
  joined->acquire(view);
  place = std::move(joined);
}

void GlobalShadow::release_weakly(uint64_t address, uint64_t cluster, const std::shared_ptr<const View>& view) {
  std::lock_guard lock(mutex_);
  handed_[address][cluster].weak = view;
}

}  // namespace emu::hazards
