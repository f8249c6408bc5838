#include "emulator/machine/warp.h"

#include <bit>

#include "emulator/machine/address.h"
#include "emulator/machine/align.h"
#include "emulator/machine/cluster.h"
#include "emulator/machine/grid.h"
#include "emulator/machine/reserved_shared.h"

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

/// Value of a special register for one lane.
uint64_t Warp::value(const WarpValue& value, uint32_t lane) const {
  using What = WarpValue::What;
  const Cluster& cluster = cta.cluster;
  const Grid& grid = cluster.grid;
  const Dim3& block = grid.config.block;
  uint32_t thread = index * kLanes + lane;
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
      return index;
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
      // PTX ISA, %total_smem_size: in units of allocation.
      return align_up(cta.window_bytes - grid.device.chip().shared_reserved_bytes, kSharedGranule);
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
      return static_cast<uint64_t>(value.value);  // and where the frame lies: see new_frame
    case What::workspace_low:
      return grid.workspace() & 0xFFFFFFFFu;
    case What::workspace_high:
      return grid.workspace() >> 32;
  }
  return 0;
}

Warp::Warp(Cta& cta_, const Program& program, uint32_t index_, uint32_t threads)
    : cta(cta_), index(index_), lanes_at_start(threads >= 32 ? kAllLanes : (1u << threads) - 1), live(lanes_at_start) {
  group = new_group(new_frame(program, 0), 0, live, {});
  enter(*group);
}

Warp::~Warp() = default;

FramePointer Warp::new_frame(const Program& program, uint32_t base) {
  bool fresh;
  Frame& frame = *frames.take(program, fresh);
  FramePointer pointer(&frame);
  if (fresh)
    for (const WarpValue& known : program.warp_values) {
      std::byte* at = frame.file() + known.offset;
      if (known.bytes == 0) {  // a predicate
        uint32_t bits = value(known, 0) ? kAllLanes : 0;
        std::memcpy(at, &bits, 4);
        continue;
      }
      for (uint32_t lane = 0; lane < kLanes; ++lane) {
        uint64_t v = value(known, lane);
        std::memcpy(at + lane * known.bytes, &v, known.bytes);
      }
    }
  frame.base = base;
  frames.reserve(base + program.stack_bytes);
  if (program.allocates) frame.top.fill(base + program.stack_bytes);
  for (uint32_t i : program.frame_values) {
    const WarpValue& known = program.warp_values[i];
    uint64_t v = base + static_cast<uint64_t>(known.value);
    for (uint32_t lane = 0; lane < kLanes; ++lane)
      std::memcpy(frame.file() + known.offset + lane * known.bytes, &v, known.bytes);
  }
  return pointer;
}

bool Warp::strict() const {
  return cta.cluster.grid.device.options().strict;
}

bool Warp::copy_holds(const PendingCopy& copy, uint32_t lanes, uint32_t allowed) const {
  lanes &= copy.lanes;
  if (allowed == kAllCopies) return lanes != 0;
  for (; lanes; lanes &= lanes - 1) {
    const size_t lane = static_cast<size_t>(std::countr_zero(lanes));
    if (uint64_t{copy.group[lane]} + allowed < copy_groups[lane]) return true;
  }
  return false;
}

Group* Warp::new_group(const FramePointer& in, uint32_t pc, uint32_t mask, const std::vector<uint32_t>& with_joins) {
  for (auto& candidate : groups)
    if (candidate->state == Group::State::free) {
      Group* g = candidate.get();
      g->frame = in, g->pc = pc, g->mask = mask, g->joins = with_joins, g->admitted = false, g->wait = {};
      return g;
    }
  groups.push_back(std::make_unique<Group>());
  Group* g = groups.back().get();
  g->warp = this, g->frame = in, g->pc = pc, g->mask = mask, g->joins = with_joins;
  return g;
}

uint32_t Warp::new_join(const Frame* frame, uint32_t pc, uint32_t expected) {
  uint32_t id;
  if (!free_joins.empty()) {
    id = free_joins.back();
    free_joins.pop_back();
  } else {
    id = static_cast<uint32_t>(joins.size());
    joins.emplace_back();
  }
  joins[id] = {.frame = frame, .pc = pc, .expected = expected, .arrived = 0};
  return id;
}

}  // namespace emu
