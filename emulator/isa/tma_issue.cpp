#include "emulator/isa/tma_issue.h"

#include <fmt/format.h>

#include "emulator/machine/grid.h"
#include "emulator/machine/mbarrier.h"

namespace emu::isa {

AddressOperand second_address(const Warp& warp, const Instruction& instruction, uint32_t which) {
  return {.base = warp.listed(instruction.list2, 2 * which),
          .offset = static_cast<int64_t>(*warp.read<uint64_t>(warp.listed(instruction.list2, 2 * which + 1)))};
}

uint32_t shared_address(const Warp& warp, const AddressOperand& operand, int lane) {
  return static_cast<uint32_t>(warp.address(operand, lane));
}

tma::Window window_of(Cta& cta) {
  if (cta.window.empty())
    throw Trap(FaultCode::illegal_address,
               fmt::format("bulk copy to or from CTA {} of the cluster, which has exited", cta.rank),
               "PTX ISA, shared::cluster: the CTA must be running");
  return {cta.window.data(), cta.window_bytes, cta.cluster.grid.device.chip().shared_reserved_bytes};
}

TensorMap read_map(Warp& warp, uint64_t address) {
  return decode_tensor_map(warp.cta.cluster.generic(warp, 0, address, kTensorMapBytes, Access::read), address);
}

std::vector<int32_t> read_coordinates(const Warp& warp, const Instruction& instruction, int lane) {
  std::vector<int32_t> coordinates;
  for (uint32_t i = 0; i < instruction.list_count; ++i)
    coordinates.push_back(static_cast<int32_t>(warp.read<uint32_t>(warp.listed(instruction.list, i))[lane]));
  return coordinates;
}

std::vector<Cta*> destinations(Warp& warp, const Instruction& instruction, int lane, uint32_t address) {
  Cluster& cluster = warp.cta.cluster;
  if (!(instruction.modifiers & kMulticast)) return {&cluster.cta_of(address)};
  uint32_t mask = static_cast<uint32_t>(warp.scalar(instruction.operand[2], lane)) & 0xFFFF;
  if (mask == 0 || mask >> cluster.ctas.size())
    throw Trap(FaultCode::illegal_instruction,
               fmt::format("multicast to CTAs {:#06x} of a cluster of {}", mask, cluster.ctas.size()),
               "PTX ISA, cp.async.bulk: .multicast::cluster");
  std::vector<Cta*> ctas;
  for_lanes(mask, [&](int rank) { ctas.push_back(cluster.ctas[static_cast<size_t>(rank)].get()); });
  return ctas;
}

void complete_bytes(Cluster& cluster, Cta& cta, uint32_t barrier, uint64_t bytes, const Origin& who) {
  uint32_t address = cta.rank << 24 | shared_offset(barrier);
  mbarrier::Outcome outcome =
      mbarrier::complete_tx(cluster.mbarrier_word(address, Access::atomic), static_cast<uint32_t>(bytes));
  cluster.mbarrier_signal(address, who, "bytes of a copy");
  cluster.mbarrier_store(address, outcome.word, outcome.completed);
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
