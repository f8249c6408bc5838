#include "emulator/machine/warp.h"

#include <sys/mman.h>

#include <cstdlib>
#include <new>

#include "emulator/machine/address.h"
#include "emulator/machine/cluster.h"
#include "emulator/machine/grid.h"

namespace emu {

void WarpCounters::add(const WarpCounters& other) {
  instructions += other.instructions;
  parked_waits += other.parked_waits;
  parked_cycles += other.parked_cycles;
  tma_loads += other.tma_loads;
  tma_stores += other.tma_stores;
  tma_box_rows += other.tma_box_rows;
  bytes_from_global += other.bytes_from_global;
  bytes_to_global += other.bytes_to_global;
  bytes_into_shared += other.bytes_into_shared;
  mmas += other.mmas;
  commits += other.commits;
  tmem_loads += other.tmem_loads;
  tmem_stores += other.tmem_stores;
}

void Warp::Free::operator()(std::byte* p) const {
  std::free(p);
}

namespace {

/// Value of a special register for one lane.
uint64_t warp_value(const Warp& warp, const WarpValue& value, uint32_t lane) {
  using What = WarpValue::What;
  const Cta& cta = warp.cta;
  const Cluster& cluster = cta.cluster;
  const Grid& grid = cluster.grid;
  const Dim3& block = grid.config.block;
  uint32_t thread = warp.index * kLanes + lane;
  Dim3 cluster_index = grid.cluster_index(cluster.id);
  const Dim3& shape = grid.cluster_dim;
  uint32_t shared_base = cta.rank << 24;
  switch (value.what) {
    case What::tid_x:
      return thread % block.x;
    case What::tid_y:
      return thread / block.x % block.y;
    case What::tid_z:
      return thread / block.x / block.y;
    case What::ntid_x:
      return block.x;
    case What::ntid_y:
      return block.y;
    case What::ntid_z:
      return block.z;
    case What::ctaid_x:
      return cta.index.x;
    case What::ctaid_y:
      return cta.index.y;
    case What::ctaid_z:
      return cta.index.z;
    case What::nctaid_x:
      return grid.config.grid.x;
    case What::nctaid_y:
      return grid.config.grid.y;
    case What::nctaid_z:
      return grid.config.grid.z;
    case What::laneid:
      return lane;
    case What::warpid:
      return warp.index;
    case What::nwarpid:
      return grid.device.chip().threads_per_sm / kLanes;
    case What::smid:
      return static_cast<uint64_t>(cta.sm);
    case What::nsmid:
      return static_cast<uint64_t>(grid.device.chip().sm_count);
    case What::gridid:
      return 1;
    case What::lanemask_eq:
      return 1u << lane;
    case What::lanemask_lt:
      return (1u << lane) - 1;
    case What::lanemask_le:
      return (2u << lane) - 1;
    case What::lanemask_gt:
      return ~((2u << lane) - 1);
    case What::lanemask_ge:
      return ~((1u << lane) - 1);
    case What::clusterid_x:
      return cluster_index.x;
    case What::clusterid_y:
      return cluster_index.y;
    case What::clusterid_z:
      return cluster_index.z;
    case What::nclusterid_x:
      return grid.config.grid.x / shape.x;
    case What::nclusterid_y:
      return grid.config.grid.y / shape.y;
    case What::nclusterid_z:
      return grid.config.grid.z / shape.z;
    case What::cluster_ctaid_x:
      return cta.rank % shape.x;
    case What::cluster_ctaid_y:
      return cta.rank / shape.x % shape.y;
    case What::cluster_ctaid_z:
      return cta.rank / shape.x / shape.y;
    case What::cluster_nctaid_x:
      return shape.x;
    case What::cluster_nctaid_y:
      return shape.y;
    case What::cluster_nctaid_z:
      return shape.z;
    case What::cluster_ctarank:
      return cta.rank;
    case What::cluster_nctarank:
      return shape.count();
    case What::is_explicit_cluster:
      return grid.explicit_cluster;
    case What::dynamic_smem_size:
      return grid.config.dynamic_shared_bytes;
    case What::total_smem_size:
      return cta.window_bytes - grid.device.chip().shared_reserved_bytes;
    case What::aggr_smem_size:
      return cta.window_bytes;
    case What::zero:
      return 0;
    case What::shared_address:
      return shared_base + static_cast<uint64_t>(value.value);
    case What::dynamic_shared:
      return shared_base + grid.dynamic_shared_offset() + static_cast<uint64_t>(value.value);
    case What::parameter_address:
      return reinterpret_cast<uint64_t>(grid.parameters()) + static_cast<uint64_t>(value.value);
    case What::local_address:
      return static_cast<uint64_t>(value.value);
  }
  return 0;
}

}  // namespace

Warp::Warp(Cta& cta_, const Program& program_, uint32_t index_, uint32_t threads)
    : cta(cta_),
      program(program_),
      index(index_),
      lanes_at_start(threads >= 32 ? kAllLanes : (1u << threads) - 1),
      live(lanes_at_start) {
  size_t bytes = (size_t{program.warp_file_bytes} + 63) / 64 * 64 + 64;
  file_.reset(static_cast<std::byte*>(std::aligned_alloc(64, bytes)));
  if (!file_) throw std::bad_alloc();
  // Uninitialised registers hold a pattern that is no plausible value: 0xA5A5A5A5 is a huge address and a tiny negative
  // float.
  std::memset(file_.get(), 0xA5, bytes);
  for (const WarpValue& value : program.warp_values) {
    if (value.bytes == 0) {  // a predicate
      uint32_t bits = warp_value(*this, value, 0) ? kAllLanes : 0;
      std::memcpy(file_.get() + value.offset, &bits, 4);
      continue;
    }
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      uint64_t v = warp_value(*this, value, lane);
      std::memcpy(file_.get() + value.offset + lane * value.bytes, &v, value.bytes);
    }
  }
}

bool Warp::strict() const {
  return cta.cluster.grid.device.options().strict;
}

Group* Warp::new_group(uint32_t pc, uint32_t mask, const std::vector<uint32_t>& with_joins) {
  for (auto& candidate : groups)
    if (candidate->state == Group::State::free) {
      Group* g = candidate.get();
      g->pc = pc, g->mask = mask, g->joins = with_joins, g->admitted = false, g->wait = {};
      return g;
    }
  groups.push_back(std::make_unique<Group>());
  Group* g = groups.back().get();
  g->warp = this, g->pc = pc, g->mask = mask, g->joins = with_joins;
  return g;
}

uint32_t Warp::new_join(uint32_t pc, uint32_t expected) {
  uint32_t id;
  if (!free_joins.empty()) {
    id = free_joins.back();
    free_joins.pop_back();
  } else {
    id = static_cast<uint32_t>(joins.size());
    joins.emplace_back();
  }
  joins[id] = {.pc = pc, .expected = expected, .arrived = 0};
  return id;
}

}  // namespace emu
