// The other CTAs of a cluster: used before they run, and when they may have ended.

#include <fmt/format.h>

#include "emulator/hazards/hazards.h"
#include "emulator/machine/grid.h"

namespace emu::hazards {

void Hazards::remote_use(const Record& record, Ref ref, Cta& cta, const View& view) {
  memories_[cta.rank]->remote_uses[record.channel] = ref;
  check_started(record, cta, view);
}

void Hazards::use_of_peer(const Record& use, Cta& cta) {
  for (const Lanes& part : threads_[use.issuer].classes)
    if (part.lanes & use.lanes) return check_started(use, cta, *part.view);
}

void Hazards::check_started(const Record& record, Cta& cta, const View& view) {
  Memory& memory = *memories_[cta.rank];
  if (view.seen.covers(memory.start, 0, 1)) return;
  report(Rule::peer_not_started, Rank::error, fmt::format("CTA {} of the cluster", cta.rank),
         {side(record, record.lanes)}, "Nothing that this thread has waited for came from that CTA.");
  // Once is enough.
  const Agent start = memory.start;
  for (Threads& threads : threads_)
    for (Lanes& part : threads.classes) change(part).seen.raise(start, 1);
}

void Hazards::pair_allocates(Warp& warp, const Cta& peer) {
  Memory& own = *memories_[warp.cta.rank];
  own.pair_allocator = agent(warp);
  own.pair_allocated = threads_of(warp).now;
  const Agent start = memories_[peer.rank]->start;
  for (const Lanes& part : threads_of(warp).classes)
    if (part.view->seen.covers(start, 0, 1)) return;
  pair_finding(
      warp, peer, Rule::peer_not_started, "tcgen05.alloc",
      "Both CTAs of the pair make the call together. Nothing that this warp has waited for came from that CTA.");
}

void Hazards::pair_frees(Warp& warp, const Cta& peer) {
  const Memory& other = *memories_[peer.rank];
  if (!other.pair_allocated) return;
  // One that has ended has its columns, and a cluster barrier counts it as arrived.
  if (!peer.warps[other.pair_allocator % warps_per_cta_]->live) return;
  for (const Lanes& part : threads_of(warp).classes)
    if (part.view->seen.covers(other.pair_allocator, 0, other.pair_allocated)) return;
  pair_finding(warp, peer, Rule::pair_dealloc, "tcgen05.dealloc",
               "Nothing that this warp has waited for came from that CTA after its tcgen05.alloc.");
}

void Hazards::pair_finding(Warp& warp, const Cta& peer, Rule rule, const char* what, std::string explanation) {
  const Record now = here(warp, warp.active);
  if (told(rule, now.source, 0)) return;
  Side call = side(now, now.lanes);
  call.what = what;
  told_[{rule, now.source, 0}] =
      report(rule, Rank::rule, fmt::format("CTA {} of the cluster, the other one of the pair", peer.rank), {call},
             std::move(explanation));
}

void Hazards::outlives(const Record& copy) {
  const Rule rule = copy.kind == Kind::bulk_read ? Rule::bulk_store_wait : Rule::bulk_load_wait;
  if (told(rule, copy.source, 0)) return;
  told_[{rule, copy.source, 0}] =
      report(rule, Rank::rule, "", {side(copy, copy.lanes)},
             how_it_completes(copy) + " Nothing that a thread of the CTA waited for before its end says so.",
             copy.kind == Kind::bulk_read
                 ? "let the receiver say that the copy has come, by a cluster barrier or an arrive, and "
                   "wait for that before the CTA ends"
                 : "");
}

void Hazards::cta_exits(Cta& cta) {
  Memory& memory = *memories_[cta.rank];
  for (const auto& [channel, ref] : memory.copies) {
    const Record& copy = records_[ref];
    if (!copy.done_in(memory.end.seen, copy.lanes)) outlives(copy);
  }
  if (cluster_.ctas.size() < 2) return;
  for (const auto& [channel, ref] : memory.remote_uses) {
    const Record& use = records_[ref];
    // A thread's arrive is over once something that the thread released after it is known.
    if (use.kind == Kind::barrier_use && memory.end.seen.covers_lanes(use.issuer, use.lanes, use.issued)) continue;
    if (use.done_in(memory.end.seen, use.lanes)) continue;
    report(Rule::peer_gone, use.kind == Kind::barrier_use ? Rank::rule : Rank::error,
           fmt::format("CTA {} of the cluster ends", cta.rank), {side(use, use.lanes)},
           use.asynchronous() ? how_it_completes(use) + " Nothing that the CTA waited for before its end says so."
                              : "Nothing that the CTA waited for before its end came after that.");
  }
}

}  // namespace emu::hazards
