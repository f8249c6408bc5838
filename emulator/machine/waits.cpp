// Groups that wait, and what wakes them: mbarriers, CTA barriers, time limits.

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "emulator/hazards/hazards.h"
#include "emulator/machine/cluster.h"
#include "emulator/machine/grid.h"
#include "emulator/machine/mbarrier.h"

namespace emu {
namespace {

constexpr uint64_t kPollCycles = 1'000;  // how often a blocked tcgen05.alloc looks again

/// In the trace. Joins and gatherings are no waits of park()'s, but for the lanes that arrive at a cluster barrier.
const char* traced_wait(WaitKind kind) {
  switch (kind) {
    case WaitKind::mbarrier:
      return "wait_mbarrier";
    case WaitKind::cta_barrier:
      return "wait_barrier";
    case WaitKind::cluster_barrier:
      return "wait_cluster_barrier";
    case WaitKind::join:
    case WaitKind::aligned:
    case WaitKind::lanes:
      return "wait_lanes";
    case WaitKind::tensor_memory:
      return "wait_tmem_alloc";
    case WaitKind::tensor_free:
      return "wait_tmem_dealloc";
    case WaitKind::bulk_group:
      return "wait_bulk_group";
    case WaitKind::copy_group:
      return "wait_copy_group";
    case WaitKind::completion:
      return "wait_tmem_access";
    case WaitKind::wgmma:
      return "wait_wgmma";
    case WaitKind::registers:
      return "wait_registers";
    case WaitKind::time:
      return "wait_time";
    case WaitKind::none:
      break;
  }
  return "wait";
}

/// Of the instruction at which the group waits.
Origin waiting_origin(const Group& group) {
  const Warp& warp = *group.warp;
  return {warp.cta.rank, warp.index, group.frame->program->code[group.wait.pc].source, -1};
}

}  // namespace

Group& Cluster::park(Warp& warp, uint32_t lanes, const Wait& wait, uint32_t resume_pc) {
  Group* group = warp.group;
  uint32_t waiting_pc = group->pc;
  if (lanes != group->mask) {
    group = &split(warp, lanes, resume_pc, warp.program().code[waiting_pc].reconverge);
    std::erase(ready_, group);
  }
  group->pc = resume_pc;
  group->state = Group::State::parked;
  group->ticket = ++tickets_;
  const bool tries_again = wait.kind == WaitKind::tensor_memory && group->wait.pc == waiting_pc;
  const uint64_t began = tries_again ? group->wait.began : clock;
  group->wait = wait;
  group->wait.pc = waiting_pc;
  group->wait.since = clock;
  group->wait.began = began;
  ++warp.counters.parked_waits;
  trace(waiting_origin(*group), traced_wait(wait.kind), {group->mask, wait.address, wait.parity});
  return *group;
}

void Cluster::wake(Group& group, const char* how) {
  if (group.state != Group::State::parked) return;
  trace(waiting_origin(group), how, {group.mask});
  group.warp->counters.parked_cycles += clock - group.wait.since;
  group.state = Group::State::ready;
  group.ticket = ++tickets_;
  group.wait.kind = WaitKind::none;
  // A wait may have ended where lanes meet.
  Warp& warp = *group.warp;
  Group* running = &group;
  if (!group.joins.empty()) arrive_at_joins(warp, running);
  if (running) ready_.push_back(running);
}

void Cluster::wake_later(Group& group, uint64_t cycles) {
  push(limits_, {.time = clock + cycles,
                 .sequence = sequence_++,
                 .owner = nullptr,
                 .origin = origin(*group.warp),
                 .action =
                     [this, &group] {
                       if (group.state != Group::State::parked) return;
                       if (group.wait.kind == WaitKind::mbarrier) {
                         std::erase(ctas[group.wait.cta_rank]->mbarrier_waiters, &group);
                         const InFrame registers(*group.warp, *group.frame);
                         group.warp->set_predicate(group.wait.result, 0, group.mask);
                       }
                       wake(group, "gave_up");
                     },
                 .waiter = &group,
                 .ticket = group.ticket});
}

void Cluster::poll_later(Group& group) {
  if (only_polls_ && grid.note_stuck(id, effects_) == Grid::kNever) hang();
  push(polls_, {.time = clock + kPollCycles,
                .sequence = sequence_++,
                .owner = nullptr,
                .origin = origin(*group.warp),
                .action = [this, &group] { wake(group); },
                .waiter = &group,
                .ticket = group.ticket});
}

uint64_t Cluster::mbarrier_word(uint32_t address, Access access) {
  last_mbarrier = address;
  if (address % 8)
    throw Trap(FaultCode::misaligned_address,
               fmt::format("mbarrier at shared address {:#x}: it must be 8-byte aligned", address),
               "PTX ISA, mbarrier object: size and alignment; an H200 faults with 716");
  uint64_t word;
  std::memcpy(&word, shared(address, 8, access), 8);
  const auto& history = cta_of(address).barrier_history;
  if (auto known = history.find(shared_offset(address));
      access != Access::write && known != history.end() && known->second.invalidated)
    throw mbarrier::Fault(FaultKind::barrier_invalid,
                          "this is no mbarrier any more: mbarrier.inval has been seen, and no mbarrier.init since",
                          "PTX ISA, mbarrier.inval: other operations than mbarrier.init are undefined after it");
  return word;
}

void Cluster::mbarrier_store(uint32_t address, uint64_t word, bool phase_completed) {
  std::byte* const at = shared(address, 8, Access::write);
  if (signalling_) {
    uint64_t before;
    std::memcpy(&before, at, 8);
    std::exchange(signalling_, nullptr)->last.bytes += mbarrier::tx_change(before, word);
  }
  std::memcpy(at, &word, 8);
  note_effect();
  if (!phase_completed) return;
  Cta& cta = cta_of(address);
  if (hazards) hazards->phase_ended(address);
  trace(current_, "phase", {address, cta.barrier_history[shared_offset(address)].phases++});
  // The list changes while groups wake.
  std::vector<Group*> woken;
  std::erase_if(cta.mbarrier_waiters, [&](Group* group) {
    if (group->wait.address != address || !mbarrier::phase_done(word, group->wait.parity)) return false;
    woken.push_back(group);
    return true;
  });
  for (Group* group : woken) {
    mbarrier_passed(address, *group->warp, group->mask);
    if (hazards) hazards->passed(address, *group->warp, group->mask, group->frame->program->code[group->wait.pc].order);
    {
      const InFrame registers(*group->warp, *group->frame);
      group->warp->set_predicate(group->wait.result, kAllLanes, group->mask);
    }
    wake(*group);
  }
}

void Cluster::mbarrier_signal(uint32_t address, const Origin& who, const char* what) {
  BarrierHistory& history = cta_of(address).barrier_history[shared_offset(address)];
  auto known = std::find_if(history.signals.begin(), history.signals.end(), [&](const BarrierHistory::Signal& signal) {
    return signal.source == who.source && signal.cta_rank == who.cta_rank && signal.warp == who.warp &&
           signal.what == what;
  });
  if (known == history.signals.end())
    known = history.signals.insert(known, {.source = who.source,
                                           .cta_rank = who.cta_rank,
                                           .warp = who.warp,
                                           .what = what,
                                           .last = {.phase = history.phases}});
  if (known->last.phase != history.phases) {
    known->before = known->last;
    known->last = {.phase = history.phases};
  }
  ++known->times;
  ++known->last.times;
  if (who.lane >= 0) known->last.lanes |= 1u << who.lane;
  known->last_clock = clock;
  signalling_ = &*known;
}

void Cluster::mbarrier_asked(uint32_t address, const Warp& warp, uint32_t lanes, uint32_t parity) {
  std::vector<BarrierHistory::Asked>& asked = cta_of(address).barrier_history[shared_offset(address)].asked;
  const uint32_t source = origin(warp).source;
  auto known = std::find_if(asked.begin(), asked.end(), [&](const BarrierHistory::Asked& other) {
    return other.source == source && other.warp == warp.index && other.lanes == lanes && other.parity == parity;
  });
  if (known == asked.end())
    known =
        asked.insert(known, {.source = source, .warp = warp.index, .lanes = lanes, .parity = parity, .since = clock});
  known->last = clock;
  ++known->times;
}

void Cluster::mbarrier_passed(uint32_t address, const Warp& warp, uint32_t lanes) {
  BarrierHistory& history = cta_of(address).barrier_history[shared_offset(address)];
  std::erase_if(history.asked,
                [&](const BarrierHistory::Asked& asked) { return asked.warp == warp.index && (asked.lanes & lanes); });
  const int64_t ended = static_cast<int64_t>(history.phases) - 1;
  for (auto& passed : history.passed)
    if (passed.cta_rank == warp.cta.rank && passed.warp == warp.index && passed.lanes == lanes) {
      passed.ended = ended;
      return;
    }
  history.passed.push_back({warp.cta.rank, warp.index, lanes, ended});
}

void Cluster::mbarrier_remotely(Warp& warp, int lane, uint32_t address, const char* what,
                                std::function<mbarrier::Outcome(uint64_t)> operation) {
  if (drops(cta_of(address), origin(warp, lane), "a remote arrive")) return;
  // What is wrong already is so when it is issued, whatever the schedule.
  mbarrier::need_plausible(mbarrier_word(address, Access::atomic));
  Cta& from = warp.cta;
  if (!from.remote_chain) from.remote_chain = new_chain();
  from.remote_time = std::max(from.remote_time, draw_times().show);
  ++from.remote_pending;
  Origin who = origin(warp, lane);
  std::shared_ptr<hazards::Hazards::Handover> handover;
  if (hazards) {
    const uint8_t order = warp.program().code[warp.group->pc].order;
    hazards->used(warp, 1u << lane, address);
    handover = std::make_shared<hazards::Hazards::Handover>(hazards->release(warp, 1u << lane, address, order));
  }
  at(from.remote_time, cta_of(address), who, {from.remote_chain, address},
     [this, &from, address, who, what, handover, operation = std::move(operation)] {
       --from.remote_pending;
       if (drops(cta_of(address), who, "a remote arrive")) return;
       mbarrier::Outcome outcome = operation(mbarrier_word(address, Access::atomic));
       mbarrier_signal(address, who, what);
       if (hazards) hazards->signalled(address, *handover);
       mbarrier_store(address, outcome.word, outcome.completed);
     });
}

void Cluster::complete_remote(Cta& cta) {
  if (!cta.remote_pending) return;
  Origin outer = current_;
  uint64_t last = 0;
  for (const Event& event : events_)
    if (event.order.chain == cta.remote_chain) last = std::max(last, event.sequence);
  carry_out_chain({.chain = cta.remote_chain}, last);
  current_ = outer;
}

/// Without a count a barrier counts the threads that are here. With one it counts warps, as 32 threads each however
/// many of them exist, as soon as all that have not exited are here (so does an H200, .aligned or not).
void Cluster::barrier_arrive(Warp& warp, uint32_t number, uint32_t lanes) {
  NamedBarrier& barrier = warp.cta.barriers[number];
  note_effect();
  if (hazards && lanes) hazards->arrives_at(number, warp, lanes);
  if (barrier.everyone) {
    barrier.arrived += static_cast<uint32_t>(std::popcount(lanes));
    return;
  }
  uint32_t& here = barrier.incomplete[warp.index];
  here |= lanes;
  if (warp.live & ~here) return;
  barrier.incomplete.erase(warp.index);
  barrier.arrived += kLanes;
}

void Cluster::barrier_lanes_left(Warp& warp) {
  for (uint32_t number = 0; number < warp.cta.barriers.size(); ++number) {
    NamedBarrier& barrier = warp.cta.barriers[number];
    if (barrier.incomplete.contains(warp.index)) barrier_arrive(warp, number, 0);
    if (barrier.in_use()) barrier_check(warp.cta, number);
  }
}

void Cluster::barrier_check(Cta& cta, uint32_t number) {
  NamedBarrier& barrier = cta.barriers[number];
  if (!barrier.in_use()) return;
  uint32_t wanted = barrier.everyone ? cta.live_threads() : barrier.wanted;
  if (barrier.arrived < wanted) return;
  if (barrier.arrived > wanted && !barrier.everyone)
    throw Trap(FaultKind::barrier_misuse, FaultCode::launch_failure,
               fmt::format("barrier {}: {} threads arrived, {} are wanted: a warp arrived that is not counted", number,
                           barrier.arrived, wanted),
               "PTX ISA, barrier: thread count");
  auto waiting = std::move(barrier.waiting);
  uint32_t trues = barrier.trues, votes = barrier.votes;
  const uint64_t completed = barrier.completed + 1;
  barrier = {};
  barrier.completed = completed;
  note_effect();
  trace(current_, "barrier", {number, wanted});
  if (hazards) hazards->named_barrier_ended(cta, number);
  for (auto& waiter : waiting) {
    if (waiter.result.present()) {
      Warp& warp = *waiter.group->warp;
      const InFrame registers(warp, *waiter.group->frame);
      if (waiter.result.bytes == 0) {
        bool value = waiter.all ? trues == votes : trues != 0;
        warp.set_predicate(waiter.result, value ? kAllLanes : 0, waiter.group->mask);
      } else {
        uint32_t* out = warp.write<uint32_t>(waiter.result);
        for_lanes(waiter.group->mask, [&](int lane) { out[lane] = trues; });
      }
    }
    if (hazards) hazards->leaves(number, *waiter.group->warp, waiter.group->mask);
    wake(*waiter.group);
  }
}

}  // namespace emu
