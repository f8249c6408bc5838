#include "emulator/runtime/pool.h"

#include <algorithm>

#include "emulator/runtime/error.h"

namespace emu::runtime {

void require_of_device(const cudaMemPoolProps& properties) {
  const bool fits = properties.allocType == cudaMemAllocationTypePinned &&
                    properties.location.type == cudaMemLocationTypeDevice && properties.location.id == 0;
  if (!fits) throw ApiError{cudaErrorInvalidValue};
}

std::shared_ptr<Pools::Pool> Pools::make() {
  auto pool = std::make_shared<Pool>();
  for (const auto enabled : {cudaMemPoolReuseFollowEventDependencies, cudaMemPoolReuseAllowOpportunistic,
                             cudaMemPoolReuseAllowInternalDependencies})
    pool->attributes[enabled] = 1;
  return pool;
}

Pools::Pools() : default_(make()), current_(default_) {}

std::shared_ptr<Pools::Pool> Pools::find(cudaMemPool_t handle) const {
  if (handle == default_pool()) return default_;
  const auto found = created_.find(handle);
  if (found == created_.end()) throw ApiError{cudaErrorInvalidValue};
  return found->second;
}

cudaMemPool_t Pools::current() const {
  const std::lock_guard lock(mutex_);
  return reinterpret_cast<cudaMemPool_t>(current_.get());
}

void Pools::set_current(cudaMemPool_t pool) {
  const std::lock_guard lock(mutex_);
  current_ = find(pool);
}

cudaMemPool_t Pools::create() {
  auto pool = make();
  const auto handle = reinterpret_cast<cudaMemPool_t>(pool.get());
  const std::lock_guard lock(mutex_);
  created_.emplace(handle, std::move(pool));
  return handle;
}

void Pools::destroy(cudaMemPool_t handle) {
  const std::lock_guard lock(mutex_);
  if (handle == default_pool()) throw ApiError{cudaErrorInvalidValue};
  if (find(handle) == current_) current_ = default_;
  created_.erase(handle);
}

uint64_t Pools::attribute(cudaMemPool_t pool, cudaMemPoolAttr attribute) const {
  const std::lock_guard lock(mutex_);
  const auto& values = find(pool)->attributes;
  const auto index = static_cast<size_t>(attribute);
  if (index == 0 || index >= values.size()) throw ApiError{cudaErrorInvalidValue};
  return values[index];
}

void Pools::set_attribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, uint64_t value) {
  const std::lock_guard lock(mutex_);
  auto& values = find(pool)->attributes;
  const auto index = static_cast<size_t>(attribute);
  const bool high_water = attribute == cudaMemPoolAttrReservedMemHigh || attribute == cudaMemPoolAttrUsedMemHigh;
  const bool settable = index >= 1 && index <= cudaMemPoolAttrReleaseThreshold;
  if (!settable && !(high_water && value == 0)) throw ApiError{cudaErrorInvalidValue};
  values[index] = value;
}

void Pools::allocated(cudaMemPool_t handle, uint64_t address, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  auto pool = find(handle);
  auto& values = pool->attributes;
  const auto count = [&](cudaMemPoolAttr current, cudaMemPoolAttr high) {
    values[current] += bytes;
    values[high] = std::max(values[high], values[current]);
  };
  count(cudaMemPoolAttrUsedMemCurrent, cudaMemPoolAttrUsedMemHigh);
  count(cudaMemPoolAttrReservedMemCurrent, cudaMemPoolAttrReservedMemHigh);
  blocks_[address] = {std::move(pool), bytes};
}

bool Pools::begin_free(uint64_t address) {
  const std::lock_guard lock(mutex_);
  return being_freed_.insert(address).second;
}

void Pools::freed(uint64_t address) {
  const std::lock_guard lock(mutex_);
  being_freed_.erase(address);
  const auto found = blocks_.find(address);
  if (found == blocks_.end()) return;
  auto& values = found->second.pool->attributes;
  values[cudaMemPoolAttrUsedMemCurrent] -= found->second.bytes;
  values[cudaMemPoolAttrReservedMemCurrent] -= found->second.bytes;
  blocks_.erase(found);
}

void Pools::forget_all() {
  const std::lock_guard lock(mutex_);
  created_.clear();
  blocks_.clear();
  being_freed_.clear();
  *default_ = *make();
  current_ = default_;
}

}  // namespace emu::runtime
