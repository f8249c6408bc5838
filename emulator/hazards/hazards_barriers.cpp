// mbarriers: who hands what over in which phase.

#include <fmt/format.h>

#include "emulator/hazards/hazards.h"

#include <bit>
#include "emulator/machine/grid.h"
#include "emulator/report/fault_report.h"

namespace emu::hazards {

Hazards::Barrier& Hazards::barrier(uint32_t address) {
  Barrier& barrier = barriers_[address];
  if (!barrier.channel) barrier.channel = channel(ChannelKind::barrier, shared_rank(address), 0, 0, address);
  return barrier;
}

void Hazards::barrier_initialised(Warp& warp, int lane, uint32_t address) {
  Barrier& known = barrier(address);
  if (known.live) {
    report(Rule::barrier_reuse, Rank::rule, describe_shared(cluster_, address),
           {side(here(warp, 1u << lane), 1u << lane), side(records_[known.init], records_.lanes(known.init))},
           "The barrier was initialised before and not invalidated since.");
    check_unused(warp, lane, address, known);
    known.users.clear();
  }
  known.live = true;
  ++known.times_initialised;
  known.shown = false;
  known.fence = 0;
  known.gathering = {};
  known.ended = nullptr;
  known.under_way = 0;
  // The write itself, with what it overwrites.
  known.init = thread_record(warp, 1u << lane, Kind::barrier_init, true, false) | static_cast<Ref>(lane);
  lane_writes(warp, lane, address, 8, known.init);
}

void Hazards::barrier_invalidated(Warp& warp, int lane, uint32_t address) {
  Barrier& known = barrier(address);
  check_unused(warp, lane, address, known);
  known.users.clear();
  known.live = false;
}

/// The barrier ends: all that was done with it must be known to be over.
void Hazards::check_unused(Warp& warp, int lane, uint32_t address, const Barrier& known) {
  for (const auto& [user, use] : known.users) {
    if (user == agent(warp) && (use.lanes & ~(1u << lane)) == 0) continue;
    const auto view = snapshot(warp, 1u << lane);
    if (view->done.covers_lanes(use.issuer, use.lanes, use.issued)) continue;
    // Lanes of one warp run together; those of another do not.
    const bool weakly = user == agent(warp) || view->seen.covers_lanes(use.issuer, use.lanes, use.issued);
    report(
        Rule::barrier_reuse, weakly ? Rank::rule : Rank::error, describe_shared(cluster_, address),
        {side(here(warp, 1u << lane), 1u << lane), side(use, use.lanes)},
        weakly
            ? "The barrier's end is ordered behind its use only by lanes of a warp running together, or by something "
              "relaxed."
            : "Nothing orders the barrier's end behind its use: another order of the two is possible.");
  }
}

/// The operation must come after the mbarrier.init.
void Hazards::used(Warp& warp, uint32_t lanes, uint32_t address) {
  Barrier& known = barrier(address);
  known.users[agent(warp)] = here(warp, lanes);
  if (known.init != kNobody) check_initialised(warp, lanes, address, known);
  if (const uint32_t rank = shared_rank(address); rank != warp.cta.rank)
    use_of_peer(here(warp, lanes), *cluster_.ctas[rank]);
}

/// By way of its fence.
bool Hazards::init_known(const Barrier& barrier, const View& view) {
  const Record& init = records_[barrier.init];
  return barrier.fence && view.done.covers(channel(ChannelKind::init, init.cta_rank, init.warp,
                                                   static_cast<uint32_t>(barrier.init & (kLanes - 1))),
                                           0, barrier.fence);
}

void Hazards::check_initialised(Warp& warp, uint32_t lanes, uint32_t address, const Barrier& known) {
  const Record& init = records_[known.init];
  const uint32_t init_lanes = records_.lanes(known.init);
  const bool remote = shared_rank(address) != warp.cta.rank, own = init.issuer == agent(warp);
  for (const Lanes& part : threads_of(warp).classes) {
    const uint32_t users = part.lanes & lanes;
    if (!users || (own && (users & ~init_lanes) == 0)) continue;
    if (part.view->done.covers_lanes(init.issuer, init_lanes, init.issued) || init_known(known, *part.view)) continue;
    // Lanes of the initialising warp go on together behind the branch.
    const bool weakly = own || part.view->seen.covers_lanes(init.issuer, init_lanes, init.issued);
    if (known.times_initialised > 1)
      report(Rule::barrier_reuse, weakly ? Rank::rule : Rank::error, describe_shared(cluster_, address),
             {side(here(warp, users), users), side(init, init_lanes)},
             "The barrier was initialised again, and nothing orders this use before that or behind it.");
    else
      report(Rule::barrier_init, weakly ? Rank::rule : Rank::error, describe_shared(cluster_, address),
             {side(here(warp, users), users), side(init, init_lanes)},
             remote ? "No cluster barrier lies between the two." : "No barrier lies between the two.");
    each_class(warp, users, [&](Lanes& told) { repair(change(told), init, init_lanes); });
    return;
  }
}

Hazards::Handover Hazards::release(Warp& warp, uint32_t lanes, uint32_t address, uint8_t order) {
  Handover handover;
  handover.remote = shared_rank(address) != warp.cta.rank;
  handover.weak = (order & Instruction::kRelaxed) || (handover.remote && !(order & Instruction::kWide));
  handover.view = snapshot(warp, lanes);
  if (handover.remote) handover.use = here(warp, lanes);
  tick_after_release(warp, lanes);
  return handover;
}

Hazards::Handover Hazards::release_commit(Warp& warp, int lane, uint32_t address) {
  const Agent work = channel(ChannelKind::commit, warp.cta.rank, warp.index, static_cast<uint32_t>(lane));
  auto view = snapshot(warp, 1u << lane);
  // A commit brings a tcgen05.fence::before_thread_sync along.
  view->handed.join(view->done);
  view->done.raise(work, channels_[work].count);
  view->seen.raise(work, channels_[work].count);
  view->handed.raise(work, channels_[work].count);
  if (channels_[work].count == 0) {
    empty_commit_ = place(cluster_.origin(warp).source);
    report(Rule::commit_thread, Rank::note, describe_shared(cluster_, address),
           {side(here(warp, 1u << lane), 1u << lane)}, "It arrives at once, whatever other threads' MMAs do.");
  }
  Handover handover{.view = view, .remote = shared_rank(address) != warp.cta.rank};
  if (handover.remote) {
    handover.use = here(warp, 1u << lane);
    handover.use.issued = ~0u;  // it comes when it comes, whatever its thread releases
  }
  tick_after_release(warp, 1u << lane);
  return handover;
}

Hazards::Handover Hazards::release_copies(Warp& warp, int lane) {
  const Agent copies = channel(ChannelKind::copy, warp.cta.rank, warp.index);
  auto view = snapshot(warp, 1u << lane);
  view->done.raise_lanes(copies, 1u << lane, channels_[copies].count);
  view->seen.raise_lanes(copies, 1u << lane, channels_[copies].count);
  Handover handover{.view = view};
  tick_after_release(warp, 1u << lane);
  return handover;
}

void Hazards::signalled(uint32_t address, const Handover& handover) {
  Barrier& known = barrier(address);
  if (handover.remote) {
    // Another CTA's arrive is done when the phase in which it came has ended.
    Record use = handover.use;
    use.kind = Kind::barrier_use;
    use.channel = known.channel;
    use.complete = known.phases + 1;
    use.signal = address;
    memories_[shared_rank(address)]->remote_uses[known.channel] = remember(std::move(use));
  }
  View& to = handover.remote ? known.gathering.remote : known.gathering.own;
  if (handover.weak)
    to.acquire_from_weak(*handover.view, first_channel_);
  else
    to.acquire(*handover.view);
}

void Hazards::completes_on_barrier(Issued& operation, uint32_t address) {
  Barrier& known = barrier(address);
  operation.record.channel = known.channel;
  operation.record.signal = address;
  ++known.under_way;
  known.last_copy = operation.record;
  // PTX ISA from version 9.3 on: a copy accesses its mbarrier through the generic proxy, so an init that is ordered
  // before the copy (used() asks for that) is enough.
  if (known.init != kNobody && !known.shown) {
    const Record& init = records_[known.init];
    if (operation.view->fenced.covers_lanes(init.issuer, records_.lanes(known.init), init.issued)) return;
    report(
        Rule::barrier_init_fence, Rank::note, describe_shared(cluster_, address),
        {side(operation.record, operation.record.lanes), side(init, records_.lanes(known.init))},
        "What lies between the two orders them. That is enough by the PTX ISA from version 9.3 on (a copy accesses its "
        "mbarrier through the generic proxy); versions before it do not say.");
    known.shown = true;
  }
}

void Hazards::bytes_arrived(uint32_t address, Issued& operation) {
  Barrier& known = barrier(address);
  if (known.under_way) --known.under_way;
  operation.record.complete = known.phases + 1;
  if (!operation.read_from.empty()) global_read_done(operation);
}

void Hazards::phase_ended(uint32_t address) {
  Barrier& known = barrier(address);
  ++known.phases;
  known.ended = std::make_shared<const Gathered>(known.gathering);
  if (!known.under_way) return;
  report(Rule::barrier_bytes, Rank::error, describe_shared(cluster_, address),
         {side(known.last_copy, known.last_copy.lanes)},
         fmt::format("{} under way when the phase ended: fewer bytes were expected than are copied, or a copy of the "
                     "next phase was started too early.",
                     known.under_way == 1 ? "One copy was" : fmt::format("{} copies were", known.under_way)));
}

void Hazards::passed(uint32_t address, Warp& warp, uint32_t lanes, uint8_t order) {
  Barrier& known = barrier(address);
  if (!known.ended) return;
  each_class(warp, lanes, [&](Lanes& part) {
    View& view = change(part);
    if (order & Instruction::kRelaxed)
      view.acquire_weakly(known.ended->own, first_channel_);
    else
      view.acquire(known.ended->own);
    if ((order & Instruction::kRelaxed) || !(order & Instruction::kWide))
      view.acquire_weakly(known.ended->remote, first_channel_);
    else
      view.acquire(known.ended->remote);
    view.done.raise(known.channel, known.phases);
    view.seen.raise(known.channel, known.phases);
  });
  // A wait that sees no other phase end than the one before gives no new right to what the barrier guards.
  if (Barrier::Pass& pass = known.passes[agent(warp)]; pass.phases != known.phases) pass = {known.phases, ++moment_};
  merge(warp);
}

void Hazards::waits_behind(Warp& warp, uint32_t lanes, uint32_t address, uint64_t phase, uint64_t seen) {
  // Who knows by other ways that those phases are over means the one to come.
  const Barrier& known = barrier(address);
  for (const Lanes& part : threads_of(warp).classes)
    if ((part.lanes & lanes) && part.view->done.covers(known.channel, 0, static_cast<uint32_t>(seen) + 3)) return;
  report(Rule::barrier_behind, Rank::rule, describe_shared(cluster_, address), {side(here(warp, lanes), lanes)},
         fmt::format("It saw phase {} end and waits for one of parity {} now: phase {} was the next, and had ended, as "
                     "had phase {}, before it asked. Now it waits for phase {}.",
                     seen, (seen + 1) % 2, seen + 1, seen + 2, phase));
}

}  // namespace emu::hazards
