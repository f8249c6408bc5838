// Groups that wait, and what wakes them: mbarriers, CTA barriers, time limits.

#include <fmt/format.h>

#include "emulator/machine/cluster.h"
#include "emulator/machine/grid.h"
#include "emulator/machine/mbarrier.h"

namespace emu {
namespace {

constexpr uint64_t kPollCycles = 1'000;  // how often a blocked tcgen05.alloc looks again

}  // namespace

Group& Cluster::park(Warp& warp, uint32_t lanes, const Wait& wait, uint32_t resume_pc) {
  Group* group = warp.group;
  uint32_t waiting_pc = group->pc;
  if (lanes != group->mask) {
    group = &split(warp, lanes, resume_pc, warp.program.code[waiting_pc].reconverge);
    std::erase(ready_, group);
  }
  group->pc = resume_pc;
  group->state = Group::State::parked;
  group->ticket = ++tickets_;
  group->wait = wait;
  group->wait.pc = waiting_pc;
  group->wait.since = clock;
  ++warp.counters.parked_waits;
  return *group;
}

void Cluster::wake(Group& group) {
  if (group.state != Group::State::parked) return;
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
  uint64_t ticket = group.ticket;
  push(limits_, {clock + cycles, sequence_++, nullptr, origin(*group.warp), [this, &group, ticket] {
                   if (group.ticket != ticket || group.state != Group::State::parked) return;
                   if (group.wait.kind == WaitKind::mbarrier) {
                     std::erase(ctas[group.wait.cta_rank]->mbarrier_waiters, &group);
                     group.warp->set_predicate(group.wait.result, 0, group.mask);
                   }
                   wake(group);
                 }});
}

void Cluster::poll_later(Group& group) {
  if (only_polls_ && grid.note_stuck(id, effects_)) hang();
  uint64_t ticket = group.ticket;
  push(polls_, {clock + kPollCycles, sequence_++, nullptr, origin(*group.warp), [this, &group, ticket] {
                  if (group.ticket == ticket) wake(group);
                }});
}

uint64_t Cluster::mbarrier_word(uint32_t address, Access access) {
  last_mbarrier = address;
  if (address % 8)
    throw Trap(FaultCode::misaligned_address,
               fmt::format("mbarrier at shared address {:#x}: it must be 8-byte aligned", address),
               "PTX ISA, mbarrier object: size and alignment; an H200 faults with 716");
  uint64_t word;
  std::memcpy(&word, shared(address, 8, access), 8);
  return word;
}

void Cluster::mbarrier_store(uint32_t address, uint64_t word, bool phase_completed) {
  std::memcpy(shared(address, 8, Access::write), &word, 8);
  note_effect();
  if (!phase_completed) return;
  Cta& cta = cta_of(address);
  ++cta.barrier_history[shared_offset(address)].phases;
  trace(current_, "phase", address, word >> 63);
  // The list changes while groups wake.
  std::vector<Group*> woken;
  std::erase_if(cta.mbarrier_waiters, [&](Group* group) {
    if (group->wait.address != address || !mbarrier::phase_done(word, group->wait.parity)) return false;
    woken.push_back(group);
    return true;
  });
  for (Group* group : woken) {
    group->warp->set_predicate(group->wait.result, kAllLanes, group->mask);
    wake(*group);
  }
}

void Cluster::mbarrier_signal(uint32_t address, const Origin& who, const char* what) {
  auto& signals = cta_of(address).barrier_history[shared_offset(address)].signals;
  for (auto& signal : signals)
    if (signal.source == who.source && signal.warp == who.warp && signal.what == what) {
      ++signal.times;
      signal.last_clock = clock;
      return;
    }
  signals.push_back({who.source, who.warp, what, 1, clock});
}

void Cluster::barrier_arrive(Warp& warp, uint32_t number, uint32_t threads) {
  NamedBarrier& barrier = warp.cta.barriers[number];
  barrier.arrived += threads;
  ++barrier.arrived_warps;
  note_effect();
}

void Cluster::barrier_check(Cta& cta, uint32_t number) {
  NamedBarrier& barrier = cta.barriers[number];
  if (!barrier.in_use()) return;
  uint32_t wanted = barrier.everyone ? cta.live_threads() : barrier.wanted;
  if (barrier.arrived < wanted) return;
  if (barrier.arrived > wanted && !barrier.everyone)
    throw Trap(FaultCode::launch_failure,
               fmt::format("barrier {}: {} threads arrived, {} are wanted: a warp arrived that is not counted", number,
                           barrier.arrived, wanted),
               "PTX ISA, barrier: thread count");
  auto waiting = std::move(barrier.waiting);
  uint32_t trues = barrier.predicate_count;
  barrier = {};
  note_effect();
  trace(current_, "barrier", number, wanted);
  for (auto& waiter : waiting) {
    if (waiter.result.present()) {
      Warp& warp = *waiter.group->warp;
      if (waiter.result.bytes == 0) {
        bool value = waiter.all ? trues == wanted : trues != 0;
        warp.set_predicate(waiter.result, value ? kAllLanes : 0, waiter.group->mask);
      } else {
        uint32_t* out = warp.write<uint32_t>(waiter.result);
        for_lanes(waiter.group->mask, [&](int lane) { out[lane] = trues; });
      }
    }
    wake(*waiter.group);
  }
}

}  // namespace emu
