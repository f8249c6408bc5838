#include "emulator/machine/tensor_memory.h"

#include <algorithm>

namespace emu {

bool TensorMemory::is_free(uint32_t granule, uint32_t count) const {
  for (uint32_t i = 0; i < count; ++i)
    if (granule_owner_[granule + i].load(std::memory_order_relaxed) != 0) return false;
  return true;
}

void TensorMemory::take(Owner owner, uint32_t granule, uint32_t columns) {
  if (!cells_) cells_ = std::make_unique_for_overwrite<uint32_t[]>(size_t{kTmemLanes} * kColumns);
  const uint32_t count = columns / kGranule;
  for (uint32_t lane = 0; lane < kTmemLanes; ++lane) {
    std::fill_n(row(lane) + granule * kGranule, columns, fresh);
    for (uint32_t i = 0; i < count; ++i) written_[lane][granule + i] = 0;
  }
  for (uint32_t i = 0; i < count; ++i) granule_owner_[granule + i].store(owner, std::memory_order_relaxed);
  allocation_columns_[granule] = columns;
}

std::optional<uint32_t> TensorMemory::allocate(Owner owner, uint32_t columns) {
  const uint32_t count = columns / kGranule;
  for (uint32_t first = 0; first + count <= granule_owner_.size(); ++first) {
    if (!is_free(first, count)) continue;
    take(owner, first, columns);
    return first * kGranule;
  }
  return std::nullopt;
}

std::optional<uint32_t> TensorMemory::allocate_both(TensorMemory& a, Owner owner_a, TensorMemory& b, Owner owner_b,
                                                    uint32_t columns) {
  const uint32_t count = columns / kGranule;
  for (uint32_t first = 0; first + count <= a.granule_owner_.size(); ++first) {
    if (!a.is_free(first, count) || !b.is_free(first, count)) continue;
    a.take(owner_a, first, columns);
    b.take(owner_b, first, columns);
    return first * kGranule;
  }
  return std::nullopt;
}

bool TensorMemory::holds(Owner owner, uint32_t first, uint32_t columns) const {
  if (first % kGranule || first + columns > kColumns) return false;
  const uint32_t granule = first / kGranule;
  return granule_owner_[granule].load(std::memory_order_relaxed) == owner && allocation_columns_[granule] == columns;
}

bool TensorMemory::release(Owner owner, uint32_t first, uint32_t columns) {
  if (!holds(owner, first, columns)) return false;
  const uint32_t granule = first / kGranule;
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
