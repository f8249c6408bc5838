// The order in which a tensor core works, and tcgen05.commit. PTX ISA, "tcgen05.commit"; "Memory consistency model:
// pipelined instructions".

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "emulator/hazards/hazards.h"
#include "emulator/isa/tcgen05.h"
#include "emulator/machine/mbarrier.h"

namespace emu::isa {
namespace {

// Chains apart from those that Cluster::new_chain hands out: the work of a CTA's or pair's tensor core, and a thread's
// commits to the barriers of one CTA.
uint64_t tensor_core_chain(const CtaGroup& group) {
  return uint64_t{1} << 63 | group.leader().rank;
}
uint64_t commit_chain(const Warp& warp, int lane, uint32_t to) {
  return uint64_t{1} << 62 | uint64_t{to} << 40 | uint64_t{warp.cta.rank} << 32 | warp.index << 5 |
         static_cast<uint32_t>(lane);
}

constexpr uint64_t kGeneric = 1;

/// The barriers that a commit arrives at, as shared::cluster addresses.
std::vector<uint32_t> barriers_of(Warp& warp, const Instruction& instruction, int lane) {
  Cluster& cluster = warp.cta.cluster;
  uint64_t address = warp.address(instruction.address, lane);
  // Without a state space the address is generic, says the ISA; Triton's releases up to 3.5 give one in shared memory.
  const bool bare = address >> 32 == 0 && !warp.strict();
  if (instruction.modifiers & kGeneric && !bare) {
    if (!is_shared(address))
      throw Trap(FaultCode::invalid_address_space,
                 fmt::format("tcgen05.commit to generic address {:#x}, which is not shared memory", address),
                 "PTX ISA, tcgen05.commit: mbar must be in shared memory");
    address -= kSharedWindow;
  }
  if (!instruction.operand[0].present()) return {static_cast<uint32_t>(address)};
  uint32_t mask = static_cast<uint32_t>(warp.scalar(instruction.operand[0], lane)) & 0xFFFF;
  if (mask == 0 || mask >> cluster.ctas.size())
    throw Trap(FaultKind::no_such_cta, FaultCode::illegal_instruction,
               fmt::format("tcgen05.commit to CTAs {:#06x} of a cluster of {}", mask, cluster.ctas.size()),
               "PTX ISA, tcgen05.commit: .multicast::cluster");
  std::vector<uint32_t> barriers;
  for_lanes(mask, [&](int rank) {
    barriers.push_back(static_cast<uint32_t>(rank) << 24 | shared_offset(static_cast<uint32_t>(address)));
  });
  return barriers;
}

/// One arrive at each barrier when everything that this thread issued before is complete. Each is an event of its own,
/// so that none shows because somebody waits for another.
void issue_commit(Warp& warp, const Instruction& instruction, int lane) {
  Cta& cta = warp.cta;
  Cluster& cluster = cta.cluster;
  const CtaGroup group = cta_group(cta, instruction.modifiers & kPair, "tcgen05.commit");
  const std::vector<uint32_t> barriers = barriers_of(warp, instruction, lane);
  const Origin who = cluster.origin(warp, lane);
  for (uint32_t barrier : barriers)
    if (!cluster.drops(cluster.cta_of(barrier), who, "a commit"))
      cluster.mbarrier_word(barrier, Access::read);  // refuses a bad address at issue
  warp.counters.commits++;
  warp.uncommitted[static_cast<uint32_t>(lane)] = {};
  const uint64_t operation = cluster.new_operation();
  for (uint32_t barrier : barriers) cluster.trace(who, "commit", {operation, barrier});
  Warp::TensorCoreWork& work = warp.tensor_core_work[static_cast<uint32_t>(lane)];
  const uint64_t complete = work.shown;
  for (uint32_t barrier : barriers) {
    const uint64_t time = std::max(cluster.draw_times().show, complete);
    work.shown = std::max(work.shown, time);
    Cluster::Order order{.chain = commit_chain(warp, lane, shared_rank(barrier)), .signal = barrier};
    std::shared_ptr<hazards::Hazards::Handover> handover;
    if (cluster.hazards) {
      cluster.hazards->used(warp, 1u << lane, barrier);
      handover = std::make_shared<hazards::Hazards::Handover>(cluster.hazards->release_commit(warp, lane, barrier));
    }
    if (work.number) order.after_chain = tensor_core_chain(group), order.after = work.number;
    cluster.at(time, cta, who, order, [&cluster, barrier, who, operation, handover] {
      if (cluster.drops(cluster.cta_of(barrier), who, "a commit")) return;
      mbarrier::Outcome outcome = mbarrier::arrive(cluster.mbarrier_word(barrier, Access::atomic), 1);
      cluster.trace(who, "commit_shown", {operation, barrier});
      cluster.mbarrier_signal(barrier, who, "tcgen05.commit");
      if (handover) cluster.hazards->signalled(barrier, *handover);
      cluster.mbarrier_store(barrier, outcome.word, outcome.completed);
    });
  }
}

Flow execute_commit(Warp& warp, const Instruction& instruction) {
  for_lanes(warp.active, [&](int lane) { issue_commit(warp, instruction, lane); });
  return Flow::next;
}

}  // namespace

hazards::IssuedPointer announce_tensor_work(Warp& warp, int lane) {
  hazards::Hazards* const hazards = warp.cta.cluster.hazards.get();
  if (!hazards) return nullptr;
  auto operation = hazards->issue(warp, lane);
  hazards->completes_with_commit(*operation, warp, lane);
  return operation;
}

void tell_operand(Cta& cta, const hazards::IssuedPointer& operation, hazards::Kind kind,
                  const MatrixDescriptor& descriptor, const OperandShape& shape) {
  if (!operation) return;
  std::vector<hazards::Hazards::Bytes> ranges;
  for_each_piece(descriptor, shape, [&](uint64_t address, uint64_t bytes) { ranges.push_back({address, bytes}); });
  cta.cluster.hazards->shared(*operation, kind, cta, ranges);
}

void issue_to_tensor_core(Warp& warp, int lane, const CtaGroup& group, std::function<void()> read,
                          std::function<void()> show) {
  Cluster& cluster = warp.cta.cluster;
  Cluster::Times times = cluster.draw_times();
  uint64_t& last = group.leader().tensor_core_time;
  times.show = last = std::max(times.show, last);
  const Cluster::Order order{.chain = tensor_core_chain(group)};
  const Origin who = cluster.origin(warp, lane);
  if (read) cluster.at(times.read, warp.cta, who, order, std::move(read));
  const uint64_t number = cluster.at(times.show, warp.cta, who, order, std::move(show));
  Warp::TensorCoreWork& work = warp.tensor_core_work[static_cast<uint32_t>(lane)];
  work = {std::max(work.shown, times.show), number};
}

void bind_commit(Binder& binder) {
  Instruction& out = binder.out;
  take_cta_group(binder);
  if (!binder.take("mbarrier::arrive::one")) binder.refuse(".mbarrier::arrive::one is missing");
  if (!binder.take("shared::cluster")) out.modifiers |= kGeneric;
  bool multicast = binder.take("multicast::cluster");
  binder.take("b64");
  out.address = binder.address(0);
  if (multicast) out.operand[0] = binder.input(1, 2);
  out.execute = execute_commit;
}

}  // namespace emu::isa
