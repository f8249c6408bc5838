#include "emulator/machine/cta.h"

#include <algorithm>
#include <bit>

#include "emulator/machine/align.h"
#include "emulator/machine/grid.h"
#include "emulator/machine/reserved_shared.h"

namespace emu {

Cta::Cta(Cluster& cluster_, uint32_t rank_, Dim3 index_, TensorMemory& tensor_memory_, TensorMemory::Owner owner_,
         int sm_)
    : cluster(cluster_), rank(rank_), index(index_), sm(sm_), tensor_memory(tensor_memory_), owner(owner_) {
  window_bytes = cluster.grid.window_bytes();
}

Cta::~Cta() = default;

void Cta::start() {
  const Grid& grid = cluster.grid;
  // Shared memory, and threads' stacks, start undefined: bytes that make a NaN of every 16-bit and 32-bit float.
  // With LADDER_FILL=1 others: what depends on them differs then.
  const std::byte fill{grid.device.options().other_fill ? uint8_t{0x3C} : uint8_t{0xFF}};
  window.assign(align_up(window_bytes, kSharedGranule), fill);
  std::fill_n(window.begin() + kGroupsOffset, kGroupsBytes, std::byte{0});
  uint32_t threads = static_cast<uint32_t>(grid.config.block.count());
  for (uint32_t first = 0; first < threads; first += kLanes)
    warps.push_back(std::make_unique<Warp>(*this, grid.program, first / kLanes, threads - first));
  live_warps = static_cast<uint32_t>(warps.size());
  for (const auto& warp : warps) cluster_arrivals.push_back({.present = warp->live, .gathering = {}});
}

uint32_t Cta::live_threads() const {
  uint32_t threads = 0;
  for (const auto& warp : warps) threads += static_cast<uint32_t>(std::popcount(warp->live));
  return threads;
}

}  // namespace emu
