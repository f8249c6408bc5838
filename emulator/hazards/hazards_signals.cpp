// Hand-overs through words of global memory: flags, counters, atomics.

#include <algorithm>
#include <bit>

#include "emulator/hazards/global_shadow.h"
#include "emulator/hazards/hazards.h"
#include "emulator/machine/grid.h"

namespace emu::hazards {

/// What has been handed over at a place; `wide`: by other clusters, too.
void Hazards::take_over(View& view, const Handed& handed, bool wide) const {
  if (handed.close) view.acquire(*handed.close);
  if (!wide) return;
  if (const View* const ours = handed.wide.foreign.find(cluster_.id)) view.acquire(*ours);
  if (const View* const ours = handed.wide.foreign_fenced.find(cluster_.id)) view.fenced_global.join(ours->done);
  view.foreign.join(handed.wide.foreign);
  view.foreign_fenced.join(handed.wide.foreign_fenced);
}

void Hazards::acquire_global(Warp& warp, uint32_t lanes, const uint64_t (&address)[kLanes], uint8_t order) {
  GlobalShadow& shadow = *cluster_.grid.global_shadow;
  strongly_read_[strongly_read_count_++ % strongly_read_.size()] = address[std::countr_zero(lanes)];
  if (!shadow.anything_handed()) return;
  const bool wide = !(order & Instruction::kNarrow), acquires = order & Instruction::kAcquire;
  Threads& threads = threads_of(warp);
  Clock seen;
  Foreign foreign_seen;
  View noticed;
  uint64_t last = 0;
  uint32_t hearing = 0;
  bool notices = false;
  for_lanes(lanes, [&](int lane) {
    if (address[lane] == last) return;
    last = address[lane];
    Handed handed;
    if (!shadow.handed(last, cluster_.id, handed)) return;
    uint32_t by = 0;
    for_lanes(lanes, [&](int other) { by |= uint32_t{address[other] == last} << other; });
    // What a lane has heard, it knows for good.
    if (threads.global_heard.size() > 1024) threads.global_heard.clear();
    uint32_t& who = threads.global_heard[handed.number << 2 | uint64_t{wide} << 1 | uint64_t{acquires}];
    by &= ~who;
    who |= by;
    if (!by) return;
    hearing |= by;
    foreign_seen.join(handed.wide.foreign_seen);
    if (const View* const ours = handed.wide.foreign_seen.find(cluster_.id)) seen.join(ours->seen);
    if (!handed.close && !wide) return;
    if (acquires) {
      each_class(warp, by, [&](Lanes& part) { take_over(change(part), handed, wide); });
    } else if (handed.released) {
      take_over(noticed, handed, wide);
      notices = true;
    }
  });
  if (!hearing) return;
  if (acquires && wide) empty_cache(warp, lanes);
  // Lanes that ran together have seen the same.
  bool news = false;
  for (const Lanes& part : threads.classes) {
    if (!(part.lanes & lanes)) continue;
    news = news || !part.view->foreign_seen.includes(foreign_seen) || !part.view->seen.includes(seen);
  }
  if (news || notices)
    each_class(warp, lanes, [&](Lanes& part) {
      View& view = change(part);
      view.seen.join(seen);
      view.foreign_seen.join(foreign_seen);
      if (notices) view.notice(noticed);
    });
  if (threads.classes.size() > 1) merge(warp);
}

void Hazards::release_global(Warp& warp, uint32_t lanes, const uint64_t (&address)[kLanes], emu::Access access,
                             uint8_t order) {
  GlobalShadow& shadow = *cluster_.grid.global_shadow;
  const bool wide = !(order & Instruction::kNarrow);
  const int first = std::countr_zero(lanes);
  bool one_place = true;
  for_lanes(lanes, [&](int lane) { one_place = one_place && address[lane] == address[first]; });
  // Many lanes that count in many places tell nobody anything.
  const bool signals = one_place || access == emu::Access::write || (order & Instruction::kRelease);
  const auto& classes = threads_of(warp).classes;
  const bool fenced =
      !(order & Instruction::kRelease) && std::any_of(classes.begin(), classes.end(), [&](const Lanes& part) {
        return (part.lanes & lanes) && !part.view->released.empty();
      });
  if (!signals && !fenced) return;
  uint64_t last = 0;
  if (signals) {
    auto own = std::make_shared<View>();
    Foreign foreign;
    for (const Lanes& part : classes) {
      if (!(part.lanes & lanes)) continue;
      own->seen.join(part.view->seen);
      foreign.join(part.view->foreign_seen);
    }
    own->seen.raise(agent(warp), threads_of(warp).now);
    for_lanes(lanes, [&](int lane) {
      if (address[lane] != last) shadow.tell(address[lane], cluster_.id, own, foreign);
      last = address[lane];
    });
  }
  last = 0;
  if (order & Instruction::kRelease) {
    const std::shared_ptr<const View> view = snapshot(warp, lanes);
    for_lanes(lanes, [&](int lane) {
      if (address[lane] != last) shadow.release(address[lane], cluster_.id, *view, wide);
      last = address[lane];
    });
  } else if (fenced) {
    Clock own_fenced;
    for (const Lanes& part : classes) {
      if (!(part.lanes & lanes) || part.view->released.empty()) continue;
      View close, widely;
      close.done = part.view->released;
      widely.done = part.view->released_wide;
      widely.foreign = part.view->foreign_released;
      for (View* const view : {&close, &widely}) {
        view->fenced_global = part.view->fenced_global;
        view->foreign_fenced = part.view->foreign_fenced;
      }
      const bool to_others = wide && !widely.done.empty(), closer = !to_others || close.done != widely.done;
      last = 0;
      for_lanes(part.lanes & lanes, [&](int lane) {
        if (address[lane] == last) return;
        last = address[lane];
        if (to_others) shadow.release(last, cluster_.id, widely, true);
        if (closer) shadow.release(last, cluster_.id, close, false);
      });
      // An atomic operation's lanes come one after the other: the last has heard those before it.
      if (access == emu::Access::atomic) own_fenced.join(close.done);
    }
    if (!own_fenced.empty()) each_class(warp, lanes, [&](Lanes& part) { change(part).noticed.join(own_fenced); });
  }
  // What comes now is later than what has been told.
  if (signals) tick_after_release(warp, lanes);
}

/// Operations of a narrow scope come in no order among those of other clusters: what was told while the word was read
/// may have been missed.
bool Hazards::told_meanwhile(const Stamp& before, uint32_t lanes) const {
  for (const uint64_t address : strongly_read_) {
    Handed handed;
    if (!address || !cluster_.grid.global_shadow->handed(address, cluster_.id, handed)) continue;
    const View* const theirs = handed.wide.foreign_seen.find(before.cluster);
    if (theirs && theirs->seen.covers_lanes(before.agent, lanes, before.when)) return true;
  }
  return false;
}

}  // namespace emu::hazards
