// mbarrier operations. PTX ISA, "mbarrier". The object and its arithmetic: machine/mbarrier.h.

#include "emulator/machine/mbarrier.h"

#include <bit>

#include <fmt/format.h>

#include "emulator/hazards/hazards.h"
#include "emulator/isa/families.h"
#include "emulator/machine/cluster.h"
#include "emulator/machine/device.h"
#include "emulator/machine/grid.h"

namespace emu::isa {
namespace {

// Instruction::modifiers of arrives.
constexpr uint64_t kDrop = 1, kExpectTx = 2, kNoComplete = 4;

// How long try_wait suspends at most, in ticks of the virtual clock: about 7,800 cycles on an H200, whatever the hint.
constexpr uint64_t kTryWaitCycles = 7'800;

/// The barrier's shared::cluster address for one lane: from a shared or, without a space, a generic address.
uint32_t barrier_address(Warp& warp, const Instruction& instruction, int lane) {
  uint64_t address = warp.address(instruction.address, lane);
  if (instruction.immediate) {  // generic
    if (!is_shared(address))
      throw Trap(FaultKind::address_space, FaultCode::illegal_instruction,
                 fmt::format("mbarrier at generic address {:#x}, which is not shared memory", address),
                 "PTX ISA, mbarrier: the object must be in shared memory; an H200 faults with 715");
    address -= kSharedWindow;
  }
  return static_cast<uint32_t>(address);
}

/// Takes the state space of the barrier's address.
void bind_space(Binder& binder) {
  bool shared = binder.take("shared::cta") || binder.take("shared::cluster") || binder.take("shared");
  binder.out.immediate = shared ? 0 : 1;
}

void take_semantics(Binder& binder) {
  if (binder.take_any({"release", "acquire", "relaxed"}) == "relaxed") binder.out.order |= Instruction::kRelaxed;
  if (binder.take_any({"cta", "cluster"}) == "cluster") binder.out.order |= Instruction::kWide;
  binder.take("b64");
}

Flow execute_init(Warp& warp, const Instruction& instruction) {
  Cluster& cluster = warp.cta.cluster;
  for_lanes(warp.active, [&](int lane) {
    uint32_t address = barrier_address(warp, instruction, lane);
    uint32_t count = static_cast<uint32_t>(warp.scalar(instruction.operand[0], lane));
    cluster.mbarrier_word(address, Access::write);
    cluster.mbarrier_store(address, mbarrier::init(count), false);
    cluster.cta_of(address).barrier_history[shared_offset(address)] = {.initialised_by = cluster.origin(warp).source};
    if (cluster.hazards) cluster.hazards->barrier_initialised(warp, lane, address);
    cluster.trace(cluster.origin(warp, lane), "mbarrier_init", {address, count});
  });
  return Flow::next;
}

Flow execute_inval(Warp& warp, const Instruction& instruction) {
  Cluster& cluster = warp.cta.cluster;
  for_lanes(warp.active, [&](int lane) {
    uint32_t address = barrier_address(warp, instruction, lane);
    auto& histories = cluster.cta_of(address).barrier_history;
    const auto known = histories.find(shared_offset(address));
    if (known != histories.end() && known->second.invalidated && !cluster.grid.device.options().strict)
      return cluster.remark(cluster.origin(warp, lane),
                            "mbarrier.inval of what another mbarrier.inval has ended, which an H200 lets pass");
    uint64_t word = cluster.mbarrier_word(address, Access::read);
    if (!mbarrier::plausible(word))
      throw Trap(FaultKind::barrier_invalid, fmt::format("mbarrier.inval of {:#018x}, which is no mbarrier", word),
                 "PTX ISA, mbarrier.inval");
    // The word stays: an H200 keeps the state of a live barrier apart and writes it down only now.
    cluster.cta_of(address).barrier_history[shared_offset(address)].invalidated = true;
    if (cluster.hazards) cluster.hazards->barrier_invalidated(warp, lane, address);
    cluster.note_effect();
  });
  return Flow::next;
}

/// For the hazard rules: what the lanes that arrive on barriers of their own CTA release, barrier by barrier.
void hand_over(Warp& warp, const Instruction& instruction) {
  hazards::Hazards& hazards = *warp.cta.cluster.hazards;
  for (uint32_t left = warp.active; left != 0;) {
    const uint32_t address = barrier_address(warp, instruction, std::countr_zero(left));
    uint32_t lanes = 0;
    for_lanes(left, [&](int lane) { lanes |= uint32_t{barrier_address(warp, instruction, lane) == address} << lane; });
    left &= ~lanes;
    if (shared_rank(address) != warp.cta.rank) continue;
    hazards.used(warp, lanes, address);
    hazards.signalled(address, hazards.release(warp, lanes, address, instruction.order));
  }
}

/// operand 0: state token (or none), 1: count or bytes (absent: 1).
Flow execute_arrive(Warp& warp, const Instruction& instruction) {
  Cluster& cluster = warp.cta.cluster;
  bool drop = instruction.modifiers & kDrop;
  // Lanes that arrive on one barrier together arrive as one (H200): their counts are added up, so that no phase ends
  // in the middle of the instruction, and all are given the state from before it. With .noComplete they go in turn.
  struct Together {
    uint32_t address;
    uint64_t before;
    bool completed = false;
  };
  std::vector<Together> barriers;
  auto together = [&](uint32_t address, uint64_t word) -> Together& {
    for (Together& barrier : barriers)
      if (barrier.address == address) return barrier;
    return barriers.emplace_back(Together{address, word});
  };
  if (cluster.hazards) hand_over(warp, instruction);
  for_lanes(warp.active, [&](int lane) {
    cluster.act_as(cluster.origin(warp, lane));
    uint32_t address = barrier_address(warp, instruction, lane);
    const bool remote = shared_rank(address) != warp.cta.rank;
    uint64_t word = remote ? 0 : cluster.mbarrier_word(address, Access::atomic);
    uint32_t value =
        instruction.operand[1].present() ? static_cast<uint32_t>(warp.scalar(instruction.operand[1], lane)) : 1;
    bool expects = instruction.modifiers & kExpectTx;
    if (!expects && (value < 1 || value > mbarrier::kMaxCount))
      throw Trap(FaultCode::launch_failure,
                 fmt::format("mbarrier.arrive with count {}: it must be 1..{}", value, mbarrier::kMaxCount),
                 "PTX ISA, mbarrier.arrive");
    if (remote) {
      if (instruction.operand[0].present() || (instruction.modifiers & kNoComplete))
        throw Trap(FaultCode::illegal_instruction,
                   fmt::format("the mbarrier at {:#x} is another CTA's: a remote arrive returns no state", address),
                   "PTX ISA, mbarrier.arrive: shared::cluster needs the sink symbol as destination");
      cluster.mbarrier_remotely(
          warp, lane, address, expects ? "arrive.expect_tx" : "arrive", [value, drop, expects](uint64_t now) {
            return expects ? mbarrier::arrive_expect_tx(now, value, drop) : mbarrier::arrive(now, value, drop);
          });
      return;
    }
    Together& barrier = together(address, word);
    if (barrier.completed)
      throw mbarrier::Fault(FaultKind::barrier_overflow,
                            fmt::format("lanes of one warp arrive together, more than the {} arrivals that the phase "
                                        "still waits for",
                                        mbarrier::State::decode(barrier.before).pending),
                            "an H200 adds up the arrivals of an instruction, and the sum must not exceed the count "
                            "that mbarrier.init gave");
    mbarrier::Outcome outcome;
    if (expects) {
      outcome = mbarrier::arrive_expect_tx(word, value, drop);
    } else {
      outcome = mbarrier::arrive(word, value, drop);
      if (outcome.completed && (instruction.modifiers & kNoComplete))
        throw Trap(FaultCode::launch_failure, "mbarrier.arrive.noComplete completed the phase",
                   "PTX ISA, mbarrier.arrive: .noComplete");
    }
    barrier.completed = outcome.completed;
    if (instruction.operand[0].present())
      warp.write<uint64_t>(instruction.operand[0])[lane] = instruction.modifiers & kNoComplete ? word : barrier.before;
    cluster.mbarrier_signal(address, cluster.origin(warp, lane), expects ? "arrive.expect_tx" : "arrive");
    cluster.mbarrier_store(address, outcome.word, outcome.completed);
  });
  return Flow::next;
}

Flow execute_tx(Warp& warp, const Instruction& instruction) {
  Cluster& cluster = warp.cta.cluster;
  bool expect = instruction.modifiers & kExpectTx;
  for_lanes(warp.active, [&](int lane) {
    cluster.act_as(cluster.origin(warp, lane));
    uint32_t address = barrier_address(warp, instruction, lane);
    const bool remote = shared_rank(address) != warp.cta.rank;
    uint64_t word = remote ? 0 : cluster.mbarrier_word(address, Access::atomic);
    uint32_t bytes = static_cast<uint32_t>(warp.scalar(instruction.operand[1], lane));
    if (remote) {
      cluster.mbarrier_remotely(warp, lane, address, expect ? "expect_tx" : "complete_tx",
                                [bytes, expect](uint64_t now) {
                                  return expect ? mbarrier::expect_tx(now, bytes) : mbarrier::complete_tx(now, bytes);
                                });
      return;
    }
    mbarrier::Outcome outcome = expect ? mbarrier::expect_tx(word, bytes) : mbarrier::complete_tx(word, bytes);
    cluster.mbarrier_signal(address, cluster.origin(warp, lane), expect ? "expect_tx" : "complete_tx");
    cluster.mbarrier_store(address, outcome.word, outcome.completed);
  });
  return Flow::next;
}

// Instruction::modifiers of waits.
constexpr uint64_t kTry = 1, kParity = 2;

/// For the hazard rules: lanes that wait for a phase whose parity came round again while they did not look.
void look_for_lag(Warp& warp, uint32_t address, uint32_t lanes, uint32_t parity) {
  const BarrierHistory& history = warp.cta.barrier_history[shared_offset(address)];
  for (const auto& passed : history.passed) {
    if (passed.cta_rank != warp.cta.rank || passed.warp != warp.index || passed.lanes != lanes || passed.ended < 0)
      continue;
    const auto seen = static_cast<uint64_t>(passed.ended);
    if (history.phases >= seen + 3 && (seen + 1) % 2 == parity)
      warp.cta.cluster.hazards->waits_behind(warp, lanes, address, history.phases, seen);
  }
}

/// operand 0: result predicate, 1: parity or state token. PTX ISA, "mbarrier.test_wait / mbarrier.try_wait".
Flow execute_wait(Warp& warp, const Instruction& instruction) {
  Cluster& cluster = warp.cta.cluster;
  struct Waiting {
    uint32_t address, parity, lanes;
  };
  std::vector<Waiting> waiting, passed;  // lanes that ask the same, together
  uint32_t done = 0;
  const auto add = [](std::vector<Waiting>& to, uint32_t address, uint32_t parity, int lane) {
    for (Waiting& other : to)
      if (other.address == address && other.parity == parity) {
        other.lanes |= 1u << lane;
        return;
      }
    to.push_back({address, parity, 1u << lane});
  };
  for_lanes(warp.active, [&](int lane) {
    uint32_t address = barrier_address(warp, instruction, lane);
    if (shared_rank(address) != warp.cta.rank)
      throw Trap(FaultCode::illegal_instruction,
                 fmt::format("wait on the mbarrier at {:#x} of another CTA: only arrives may be remote", address),
                 "PTX ISA, mbarrier.test_wait: shared::cta only");
    uint64_t word = cluster.mbarrier_word(address, Access::read);
    mbarrier::need_plausible(word);
    uint64_t value = warp.scalar(instruction.operand[1], lane);
    // An H200 looks at the lowest bit of a parity, so a counter of phases does as well.
    uint32_t parity = static_cast<uint32_t>(instruction.modifiers & kParity ? value & 1 : value >> 63);
    const bool over = mbarrier::phase_done(word, parity);
    if (over) done |= 1u << lane;
    add(over ? passed : waiting, address, parity, lane);
  });
  if (cluster.hazards) {
    for (const auto* list : {&passed, &waiting})
      for (const Waiting& wait : *list) cluster.hazards->used(warp, wait.lanes, wait.address);
    for (const Waiting& wait : waiting) look_for_lag(warp, wait.address, wait.lanes, wait.parity);
  }
  for (const Waiting& wait : passed) {
    cluster.mbarrier_passed(wait.address, warp, wait.lanes);
    if (cluster.hazards) cluster.hazards->passed(wait.address, warp, wait.lanes, instruction.order);
  }
  for (const Waiting& wait : waiting) cluster.mbarrier_asked(wait.address, warp, wait.lanes, wait.parity);
  // try_wait may give up for no reason (PTX ISA): the random schedule does, now and then.
  bool gives_up = (instruction.modifiers & kTry) && !waiting.empty() && cluster.schedule() == Schedule::random &&
                  cluster.draw() % 16 == 0;
  if (!(instruction.modifiers & kTry) || gives_up || waiting.empty()) {
    warp.set_predicate(instruction.operand[0], done);
    return Flow::next;
  }
  warp.set_predicate(instruction.operand[0], kAllLanes, done);
  // Each barrier's waiters wait as a group of their own; what is left of the running group goes on.
  uint32_t pc = warp.group->pc;
  bool parked_all = false;
  for (const Waiting& wait : waiting) {
    parked_all = wait.lanes == warp.group->mask;
    Group& group = cluster.park(warp, wait.lanes,
                                {.kind = WaitKind::mbarrier,
                                 .cta_rank = shared_rank(wait.address),
                                 .address = wait.address,
                                 .parity = wait.parity,
                                 .result = instruction.operand[0],
                                 .bounded = true},
                                pc + 1);
    warp.cta.mbarrier_waiters.push_back(&group);
    cluster.wake_later(group, kTryWaitCycles);
  }
  return parked_all ? Flow::parked : Flow::next;
}

Flow execute_pending_count(Warp& warp, const Instruction& instruction) {
  uint32_t* out = warp.write<uint32_t>(instruction.operand[0]);
  const uint64_t* state = warp.read<uint64_t>(instruction.operand[1]);
  for_lanes(warp.active,
            [&](int lane) { out[lane] = static_cast<uint32_t>(mbarrier::State::decode(state[lane]).pending); });
  return Flow::next;
}

void bind_arrive(Binder& binder, bool drop) {
  Instruction& out = binder.out;
  out.modifiers = drop ? kDrop : 0;
  if (binder.take("expect_tx")) out.modifiers |= kExpectTx;
  if (binder.take("noComplete")) out.modifiers |= kNoComplete;
  take_semantics(binder);
  bind_space(binder);
  // arrive [a]; arrive state, [a]{, count}; the remote form has the sink in place of the state.
  size_t address = binder.is_address(0) ? 0 : 1;
  if (address == 1) out.operand[0] = binder.output(0);
  out.address = binder.address(address);
  if (binder.count() > address + 1) out.operand[1] = binder.input(address + 1, 4);
  out.execute = execute_arrive;
}

void bind_mbarrier(Binder& binder) {
  Instruction& out = binder.out;
  if (binder.take("init")) {
    take_semantics(binder);
    bind_space(binder);
    out.address = binder.address(0);
    out.operand[0] = binder.input(1, 4);
    out.execute = execute_init;
  } else if (binder.take("inval")) {
    take_semantics(binder);
    bind_space(binder);
    out.address = binder.address(0);
    out.execute = execute_inval;
  } else if (binder.take("arrive")) {
    bind_arrive(binder, false);
  } else if (binder.take("arrive_drop")) {
    bind_arrive(binder, true);
  } else if (binder.take("expect_tx") || binder.source.has("complete_tx")) {
    out.modifiers = binder.take("complete_tx") ? 0 : kExpectTx;
    take_semantics(binder);
    bind_space(binder);
    out.address = binder.address(0);
    out.operand[1] = binder.input(1, 4);
    out.execute = execute_tx;
  } else if (binder.source.has("test_wait") || binder.source.has("try_wait")) {
    out.modifiers = binder.take("try_wait") ? kTry : 0;
    binder.take("test_wait");
    if (binder.take("parity")) out.modifiers |= kParity;
    take_semantics(binder);
    bind_space(binder);
    out.operand[0] = binder.output(0);
    out.address = binder.address(1);
    out.operand[1] = binder.input(2, out.modifiers & kParity ? 4 : 8);
    if (binder.count() > 3) binder.input(3, 4);  // the hint: an H200 gives up after the same time with any
    out.execute = execute_wait;
  } else if (binder.take("pending_count")) {
    binder.take("b64");
    out.operand[0] = binder.output(0);
    out.operand[1] = binder.input(1, 8);
    out.execute = execute_pending_count;
  } else {
    binder.refuse("the emulator does not know this operation");
  }
}

constexpr Entry kEntries[] = {{"mbarrier", bind_mbarrier}};

}  // namespace

std::span<const Entry> mbarrier_entries() {
  return kEntries;
}

}  // namespace emu::isa
