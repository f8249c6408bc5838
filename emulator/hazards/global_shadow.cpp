#include "emulator/hazards/global_shadow.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>
#include <vector>

#include "emulator/machine/mix.h"

namespace emu::hazards {
namespace {

// Beyond this many pages (128 MB) readers are not remembered.
constexpr size_t kMostPagesRead = size_t{1} << 15;

}  // namespace

GlobalShadow::Page* GlobalShadow::page(uint64_t number, bool create) {
  std::lock_guard lock(mutex_);
  if (!create) {
    const auto found = pages_.find(number);
    return found == pages_.end() ? nullptr : found->second.get();
  }
  std::unique_ptr<Page>& page = pages_[number];
  if (!page) {
    page = std::make_unique<Page>();
    page->remembers_readers = pages_.size() <= kMostPagesRead;
  }
  return page.get();
}

void GlobalShadow::Page::add_reader(size_t sector, const Stamp& reader) {
  if (!read) {
    if (!remembers_readers) return;
    read = std::make_unique<std::array<Readers, kSectors>>();
  }
  Readers& readers = (*read)[sector];
  if (readers[0].bytes && readers[0].same(reader)) {
    readers[0].bytes |= reader.bytes;
    return;
  }
  // The latest first; a warp has one.
  if (readers[0].bytes && (readers[0].cluster != reader.cluster || readers[0].agent != reader.agent))
    readers[1] = readers[0];
  readers[0] = {reader};
}

void GlobalShadow::Page::add_plain(size_t sector, const Stamp& writer) {
  if (!written) written = std::make_unique<std::array<Written, kSectors>>();
  Written& state = (*written)[sector];
  state.bytes |= writer.bytes;
  if (read)
    for (Reader& reader : (*read)[sector]) {
      reader.overwritten |= reader.bytes & writer.bytes;
      reader.bytes &= ~writer.bytes;
    }
  if (!state.crowd && (state.last.bytes & ~writer.bytes) == 0) {
    state.last = writer;
    return;
  }
  if (!state.crowd && state.last.same(writer)) {
    state.last.bytes |= writer.bytes;
    return;
  }
  Crowd& crowd = this->crowd(state);
  for (uint32_t word = 0; crowd.strong && word < crowd.strong->size(); ++word)
    if ((writer.bytes >> 4 * word & 15) == 15) (*crowd.strong)[word].clear();
  state.last.bytes &= ~writer.bytes;
  for (Stamp& other : crowd.plain) other.bytes &= ~writer.bytes;
  std::erase_if(crowd.plain, [](const Stamp& other) { return !other.bytes; });
  if (!state.last.bytes)
    state.last = writer;
  else if (state.last.same(writer))
    state.last.bytes |= writer.bytes;
  else
    crowd.plain.push_back(writer);
}

void GlobalShadow::forget(uint64_t address, uint64_t bytes) {
  for (uint64_t at = address, end = address + bytes; at < end;) {
    const uint64_t stop = std::min(end, (at / kPageBytes + 1) * kPageBytes);
    if (Page* const known = page(at / kPageBytes, false)) {
      std::lock_guard lock(*known);
      for (; at < stop; at = (at / kSectorBytes + 1) * kSectorBytes) {
        const size_t sector = at % kPageBytes / kSectorBytes;
        const uint64_t begin = at % kSectorBytes, rest = std::min(stop - at, kSectorBytes - begin);
        const auto gone = static_cast<uint32_t>(((uint64_t{1} << rest) - 1) << begin);
        if (known->read)
          for (Reader& reader : (*known->read)[sector]) {
            reader.bytes &= ~gone;
            reader.overwritten &= ~gone;
          }
        if (!known->written) continue;
        Written& state = (*known->written)[sector];
        state.last.bytes &= ~gone;
        if (!state.crowd) continue;
        Crowd& crowd = known->crowd(state);
        for (Stamp& other : crowd.plain) other.bytes &= ~gone;
        for (uint32_t word = 0; crowd.strong && word < crowd.strong->size(); ++word)
          if (gone >> 4 * word & 15) (*crowd.strong)[word].clear();
      }
    }
    at = stop;
  }
}

uint64_t GlobalShadow::fingerprint(const GlobalMemory& memory) const {
  std::lock_guard lock(mutex_);
  std::vector<uint64_t> numbers;
  for (const auto& [number, page] : pages_)
    if (page->written) numbers.push_back(number);
  std::sort(numbers.begin(), numbers.end());
  uint64_t hash = 0;
  for (uint64_t number : numbers) {
    const Page& page = *pages_.at(number);
    for (size_t word = 0; word < kPageBytes / 4; ++word) {
      const uint32_t bytes = (*page.written)[word / 8].bytes >> 4 * (word % 8) & 15;
      if (!bytes) continue;
      const uint64_t address = number * kPageBytes + word * 4;
      const auto* place = memory.find(address);
      if (!place || address + 4 > place->address + place->bytes) continue;  // freed, or the end of an odd size
      uint32_t value;
      std::memcpy(&value, place->storage + (address - place->address), 4);
      for (uint32_t byte = 0; byte < 4; ++byte)
        if (!(bytes >> byte & 1)) value &= ~(0xFFu << 8 * byte);
      hash = mix(hash ^ mix(address ^ uint64_t{value} << 32));
    }
  }
  return hash;
}

void GlobalShadow::tell(uint64_t address, uint64_t cluster, const std::shared_ptr<const View>& own,
                        const Foreign& foreign) {
  std::lock_guard lock(mutex_);
  Place& place = handed_[address];
  place.number = told_.fetch_add(1, std::memory_order_acq_rel) + 1;
  place.wide.foreign_seen.join(foreign);
  place.wide.foreign_seen.join(cluster, own);
}

void GlobalShadow::release(uint64_t address, uint64_t cluster, const View& view, bool wide) {
  std::lock_guard lock(mutex_);
  Place& place = handed_[address];
  place.number = told_.fetch_add(1, std::memory_order_acq_rel) + 1;
  std::shared_ptr<const View>& close = place.close[cluster];
  auto joined = close ? std::make_shared<View>(*close) : std::make_shared<View>();
  joined->acquire(view);
  close = std::move(joined);
  if (!wide) return;
  auto own = std::make_shared<View>();
  own->done = view.done;
  own->seen = view.seen;
  own->fenced_global = view.fenced_global;
  place.wide.foreign.join(view.foreign);
  place.wide.foreign_fenced.join(view.foreign_fenced);
  place.wide.foreign.join(cluster, own);
}

bool GlobalShadow::handed(uint64_t address, uint64_t cluster, Handed& to) const {
  std::lock_guard lock(mutex_);
  const auto found = handed_.find(address);
  if (found == handed_.end()) return false;
  to.number = found->second.number;
  to.wide.foreign = found->second.wide.foreign;
  to.wide.foreign_fenced = found->second.wide.foreign_fenced;
  to.wide.foreign_seen = found->second.wide.foreign_seen;
  to.released = !found->second.close.empty();
  const auto close = found->second.close.find(cluster);
  to.close = close == found->second.close.end() ? nullptr : close->second;
  return true;
}

}  // namespace emu::hazards
