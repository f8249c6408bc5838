#include "emulator/isa/tma_issue.h"

#include <array>
#include <memory>

#include <fmt/format.h>

#include "emulator/machine/grid.h"
#include "emulator/machine/mbarrier.h"

namespace emu::isa {

uint32_t shared_address(const Warp& warp, const AddressOperand& operand, int lane) {
  return static_cast<uint32_t>(warp.address(operand, lane));
}

tma::Window window_of(Cta& cta) {
  if (cta.cluster.gone(cta)) refuse_gone(cta, "shared memory is written by a bulk copy");
  return source_window_of(cta);
}

tma::Window source_window_of(Cta& cta) {
  return {cta.window.data(), cta.window_bytes, cta.cluster.grid.device.chip().shared_reserved_bytes};
}

TensorMap read_map(Warp& warp, uint64_t address) {
  TensorMap map = decode_tensor_map(warp.cta.cluster.generic(warp, 0, address, kTensorMapBytes, Access::read), address);
  if (map.replaced) {
    std::array<uint8_t, kTensorMapBytes> place{};
    TensorMapArguments arguments{.map = &place,
                                 .type = static_cast<uint32_t>(map.type),
                                 .rank = map.rank,
                                 .global_address = map.address,
                                 .global_dim = map.dims.data(),
                                 .global_strides = map.strides_bytes.data() + 1,
                                 .box_dim = map.box.data(),
                                 .element_strides = map.element_strides.data(),
                                 .interleave = static_cast<uint32_t>(map.interleave),
                                 .swizzle = static_cast<uint32_t>(map.swizzle),
                                 .l2_promotion = static_cast<uint32_t>(map.promotion),
                                 .oob_fill = static_cast<uint32_t>(map.fill),
                                 .im2col = map.im2col,
                                 .lower_corner = map.lower.data(),
                                 .upper_corner = map.upper.data()};
    if (auto refusal = tensor_map_refusal(arguments, warp.cta.cluster.grid.device.chip()))
      throw Trap(FaultKind::tensor_map,
                 fmt::format("the tensor map at {:#x}, as tensormap.replace left it: {}", address, *refusal),
                 "CUDA Driver API, cuTensorMapEncodeTiled");
  }
  return map;
}

std::vector<int32_t> read_coordinates(const Warp& warp, const Instruction& instruction, int lane) {
  std::vector<int32_t> coordinates;
  for (uint32_t i = 0; i < instruction.list_count; ++i)
    coordinates.push_back(static_cast<int32_t>(warp.scalar(warp.listed(instruction.list, i), lane)));
  return coordinates;
}

std::vector<Destination> destinations(Warp& warp, const Instruction& instruction, int lane, uint32_t address,
                                      uint32_t barrier) {
  constexpr const char* kPairSource = "PTX ISA, cp.async.bulk.tensor: .cta_group";
  Cluster& cluster = warp.cta.cluster;
  const bool pair = instruction.modifiers & kPair;
  if (pair && cluster.ctas.size() % 2)
    throw Trap(FaultKind::cta_group,
               fmt::format(".cta_group::2 in a cluster of {}: CTA pairs need an even number", cluster.ctas.size()),
               kPairSource);
  auto told = [&](uint32_t rank) {
    uint32_t at = pair ? (rank & ~1u) | (shared_rank(barrier) & 1) : rank;
    return at << 24 | shared_offset(barrier);
  };
  std::vector<Destination> out;
  if (instruction.modifiers & kMulticast) {
    uint32_t mask = static_cast<uint32_t>(warp.scalar(instruction.operand[2], lane)) & 0xFFFF;
    if (mask >> cluster.ctas.size())
      throw Trap(FaultKind::no_such_cta,
                 fmt::format("multicast to CTAs {:#06x} of a cluster of {}", mask, cluster.ctas.size()),
                 "PTX ISA, cp.async.bulk: .multicast::cluster; an H200 faults with 719");
    for_lanes(mask, [&](int rank) {
      out.push_back({cluster.ctas[static_cast<size_t>(rank)].get(), told(static_cast<uint32_t>(rank))});
    });
  } else {
    Cta& cta = cluster.cta_of(address);
    if (pair && cluster.cta_of(barrier).rank / 2 != cta.rank / 2)
      throw Trap(
          FaultKind::cta_group,
          fmt::format("the data go to CTA {} of the cluster and the mbarrier is in CTA {}: with .cta_group::2 it "
                      "must be in the same CTA or its peer",
                      cta.rank, shared_rank(barrier)),
          kPairSource);
    out.push_back({&cta, told(cta.rank)});
  }
  // A barrier that is none yet is a mistake now, however late the bytes come.
  for (const Destination& to : out) mbarrier::need_plausible(cluster.mbarrier_word(to.barrier, Access::atomic));
  return out;
}

namespace {

/// Which tensor map: the offset of the kernel's parameter that it is.
uint64_t traced_map(const Cluster& cluster, const TracedSource& map) {
  return map.map_address - reinterpret_cast<uint64_t>(cluster.grid_parameters());
}

}  // namespace

uint64_t trace_load(Cluster& cluster, const Origin& who, const std::vector<Destination>& to, uint32_t offset,
                    uint64_t bytes, const TracedSource& from) {
  const uint64_t operation = cluster.new_operation();
  for (const Destination& each : to)
    if (from.map_address)
      cluster.trace(who, "tma_load",
                    {operation, each.cta->rank, offset, bytes, each.barrier, traced_map(cluster, from)},
                    from.coordinates);
    else
      cluster.trace(who, "tma_load", {operation, each.cta->rank, offset, bytes, each.barrier});
  return operation;
}

void trace_shown(Cluster& cluster, const Origin& who, const Destination& to, uint64_t operation) {
  cluster.trace(who, "tma_load_shown", {operation, to.cta->rank, to.barrier});
}

uint64_t trace_store(Cluster& cluster, const Origin& who, uint32_t offset, uint64_t bytes, const TracedSource& to) {
  const uint64_t operation = cluster.new_operation();
  if (to.map_address)
    cluster.trace(who, "tma_store", {operation, offset, bytes, traced_map(cluster, to)}, to.coordinates);
  else
    cluster.trace(who, "tma_store", {operation, offset, bytes});
  return operation;
}

void issue_load(Warp& warp, int lane, const std::vector<Destination>& to, Load load) {
  Cluster& cluster = warp.cta.cluster;
  if (to.empty()) return;
  Origin who = cluster.origin(warp, lane);
  const uint64_t bytes_in_flight = load.bytes * to.size();
  cluster.load_started(bytes_in_flight);
  Cluster::Times times = cluster.draw_times();
  struct State {
    Load load;
    std::vector<std::byte> staging;
    size_t missing;  // destinations
    bool alone = missing == 1, read = false;
    hazards::IssuedPointer announced = nullptr;
    void read_once(Cluster& in, const Origin& issuer) {
      if (std::exchange(read, true)) return;
      if (announced) {
        Ranges global;
        load.sources([&](uint64_t address, uint64_t bytes) { global.push_back({address, bytes}); });
        in.hazards->global_read(*announced, hazards::Kind::tma_load, global, alone);
      }
      load.read(staging);
      in.trace(issuer, "tma_load_read", {load.operation});
    }
  };
  std::vector<hazards::IssuedPointer> operations;
  for (const Destination& each : to) operations.push_back(announce_bytes(warp, lane, each.barrier));
  auto state = std::make_shared<State>(std::move(load), std::vector<std::byte>(load.bytes), to.size());
  state->announced = operations[0];
  cluster.at(times.read, warp.cta, who, {}, [&cluster, state, who] { state->read_once(cluster, who); });
  for (size_t i = 0; i < to.size(); ++i) {
    uint64_t show = i == 0 ? times.show : cluster.draw_times(times.read).show;
    cluster.at(show, *to[i].cta, who, {.signal = to[i].barrier},
               [&cluster, state, who, bytes_in_flight, to = to[i], announced = operations[i]] {
                 state->read_once(cluster, who);
                 if (--state->missing == 0) cluster.load_ended(bytes_in_flight);
                 state->load.place(state->staging, *to.cta);
                 if (announced) {
                   Ranges ranges;
                   state->load.ranges([&](uint32_t address, uint32_t bytes) { ranges.push_back({address, bytes}); });
                   bytes_shown(cluster, announced, hazards::Kind::tma_load, *to.cta, to.barrier, ranges);
                 }
                 cluster.note_effect();
                 trace_shown(cluster, who, to, state->load.operation);
                 complete_bytes(cluster, to.barrier, state->load.bytes, who);
               });
  }
}

Ranges box_ranges(const tma::Box& box, uint32_t offset) {
  Ranges ranges;
  box.visit_shared(offset, [&](uint32_t address, uint32_t bytes) { ranges.push_back({address, bytes}); });
  return ranges;
}

hazards::IssuedPointer announce_bytes(Warp& warp, int lane, uint32_t barrier) {
  hazards::Hazards* const hazards = warp.cta.cluster.hazards.get();
  if (!hazards) return nullptr;
  hazards->used(warp, 1u << lane, barrier);
  auto operation = hazards->issue(warp, lane);
  operation->record.kind = hazards::Kind::tma_load;
  hazards->completes_on_barrier(*operation, barrier);
  return operation;
}

void bytes_shown(Cluster& cluster, const hazards::IssuedPointer& operation, hazards::Kind kind, Cta& cta,
                 uint32_t barrier, const Ranges& ranges) {
  if (!operation) return;
  cluster.hazards->bytes_arrived(barrier, *operation);
  cluster.hazards->shared(*operation, kind, cta, ranges);
}

void complete_bytes(Cluster& cluster, uint32_t barrier, uint64_t bytes, const Origin& who) {
  mbarrier::Outcome outcome =
      mbarrier::complete_tx(cluster.mbarrier_word(barrier, Access::atomic), static_cast<uint32_t>(bytes));
  cluster.mbarrier_signal(barrier, who, mbarrier::kBytesOfACopy);
  cluster.mbarrier_store(barrier, outcome.word, outcome.completed);
}

bool groups_done(const Warp& warp, int lane, uint64_t allowed, bool reading) {
  auto it = warp.bulk.find(static_cast<uint32_t>(lane));
  if (it == warp.bulk.end()) return true;
  const auto& groups = it->second.groups;
  size_t committed = groups.size() - 1;
  for (size_t i = 0; i + allowed < committed; ++i)
    if (groups[i].reading || (!reading && groups[i].writing)) return false;
  return true;
}

static void check_group_waiters(Cluster& cluster, Warp& warp) {
  for (size_t i = 0; i < warp.groups.size(); ++i) {
    Group& group = *warp.groups[i];
    if (group.state != Group::State::parked || group.wait.kind != WaitKind::bulk_group) continue;
    bool done = true;
    for_lanes(group.mask,
              [&](int lane) { done = done && groups_done(warp, lane, group.wait.address, group.wait.parity); });
    if (done) cluster.wake(group);
  }
}

GroupTicket GroupTicket::issue(Warp& warp, int lane) {
  BulkGroups& bulk = warp.bulk[static_cast<uint32_t>(lane)];
  bulk.groups.back().reading++;
  bulk.groups.back().writing++;
  return {&warp, static_cast<uint32_t>(lane), bulk.oldest + bulk.groups.size() - 1};
}

static hazards::IssuedPointer announce_bulk(const GroupTicket& ticket, bool reads) {
  hazards::Hazards* const hazards = ticket.warp->cta.cluster.hazards.get();
  if (!hazards) return nullptr;
  auto operation = hazards->issue(*ticket.warp, static_cast<int>(ticket.lane));
  hazards->completes_in_bulk_group(*operation, *ticket.warp, static_cast<int>(ticket.lane), ticket.group, reads);
  return operation;
}

hazards::IssuedPointer GroupTicket::reads_source() const {
  return announce_bulk(*this, true);
}
hazards::IssuedPointer GroupTicket::writes_result() const {
  return announce_bulk(*this, false);
}

BulkGroups::Counts& GroupTicket::counts() const {
  BulkGroups& bulk = warp->bulk[lane];
  return bulk.groups[group - bulk.oldest];
}

void GroupTicket::read_done() const {
  counts().reading--;
  check_group_waiters(warp->cta.cluster, *warp);
}

void GroupTicket::written() const {
  counts().writing--;
  BulkGroups& bulk = warp->bulk[lane];
  while (bulk.groups.size() > 1 && !bulk.groups.front().reading && !bulk.groups.front().writing) {
    bulk.groups.erase(bulk.groups.begin());
    ++bulk.oldest;
  }
  check_group_waiters(warp->cta.cluster, *warp);
}

}  // namespace emu::isa
