#pragma once
// Memory pools of cudaMallocAsync. An emulated pool keeps nothing back: it only counts, and remembers who owns what.

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "emulator/runtime/cuda_api.h"

namespace emu::runtime {

/// Throws cudaErrorInvalidValue unless it is memory of the device, as that of every pool here.
void require_of_device(const cudaMemPoolProps& properties);

class Pools {
 public:
  Pools();

  cudaMemPool_t default_pool() const { return reinterpret_cast<cudaMemPool_t>(default_.get()); }
  cudaMemPool_t current() const;
  void set_current(cudaMemPool_t pool);
  cudaMemPool_t create();
  void destroy(cudaMemPool_t pool);

  uint64_t attribute(cudaMemPool_t pool, cudaMemPoolAttr attribute) const;
  void set_attribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, uint64_t value);

  void allocated(cudaMemPool_t pool, uint64_t address, uint64_t bytes);
  /// False when cudaFreeAsync was called for it already.
  bool begin_free(uint64_t address);
  void freed(uint64_t address);

  void forget_all();

 private:
  struct Pool {
    std::array<uint64_t, 9> attributes{};  // by cudaMemPoolAttr
  };
  struct Block {
    std::shared_ptr<Pool> pool;
    uint64_t bytes = 0;
  };
  std::shared_ptr<Pool> find(cudaMemPool_t handle) const;  // needs mutex_; throws cudaErrorInvalidValue
  static std::shared_ptr<Pool> make();

  mutable std::mutex mutex_;
  std::shared_ptr<Pool> default_, current_;
  std::map<cudaMemPool_t, std::shared_ptr<Pool>> created_;
  std::map<uint64_t, Block> blocks_;
  std::set<uint64_t> being_freed_;
};

}  // namespace emu::runtime
