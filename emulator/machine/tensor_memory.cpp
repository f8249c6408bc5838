#include "emulator/machine/tensor_memory.h"

#include <algorithm>

namespace emu {

std::optional<uint32_t> TensorMemory::allocate(Owner owner, uint32_t columns) {
  uint32_t granules = columns / kGranule, count = static_cast<uint32_t>(granule_owner_.size());
  for (uint32_t first = 0; first + granules <= count; ++first) {
    uint32_t free = 0;
    while (free < granules && granule_owner_[first + free].load(std::memory_order_relaxed) == 0) ++free;
    if (free < granules) continue;
    if (!cells_) cells_ = std::make_unique_for_overwrite<uint32_t[]>(size_t{kTmemLanes} * kColumns);
    // Fresh contents are undefined: a recognisable NaN, so that a kernel that relies on zeros is wrong here too.
    for (uint32_t lane = 0; lane < kTmemLanes; ++lane) {
      std::fill_n(row(lane) + first * kGranule, columns, 0xFFFFA5A5u);
      for (uint32_t i = 0; i < granules; ++i) written_[lane][first + i] = 0;
    }
    for (uint32_t i = 0; i < granules; ++i) granule_owner_[first + i].store(owner, std::memory_order_relaxed);
    allocation_columns_[first] = columns;
    return first * kGranule;
  }
  return std::nullopt;
}

bool TensorMemory::release(Owner owner, uint32_t first, uint32_t columns) {
  if (first % kGranule || first + columns > kColumns) return false;
  uint32_t granule = first / kGranule;
  if (granule_owner_[granule].load(std::memory_order_relaxed) != owner || allocation_columns_[granule] != columns)
    return false;
  allocation_columns_[granule] = 0;
  for (uint32_t i = 0; i < columns / kGranule; ++i) granule_owner_[granule + i].store(0, std::memory_order_relaxed);
  return true;
}

void TensorMemory::mark_written(uint32_t lane, uint32_t column, uint32_t count) {
  while (count) {
    uint32_t bit = column % kGranule, bits = std::min(count, kGranule - bit);
    written_[lane][column / kGranule] |= static_cast<uint32_t>(((uint64_t{1} << bits) - 1) << bit);
    column += bits;
    count -= bits;
  }
}

bool TensorMemory::any_written(uint32_t lane, uint32_t column, uint32_t count) const {
  while (count) {
    uint32_t bit = column % kGranule, bits = std::min(count, kGranule - bit);
    if (written_[lane][column / kGranule] & static_cast<uint32_t>(((uint64_t{1} << bits) - 1) << bit)) return true;
    column += bits;
    count -= bits;
  }
  return false;
}

uint32_t TensorMemory::held_by(Owner owner) const {
  uint32_t columns = 0;
  for (const auto& granule : granule_owner_)
    if (granule.load(std::memory_order_relaxed) == owner) columns += kGranule;
  return columns;
}

}  // namespace emu
