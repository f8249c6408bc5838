// Global memory: who reads what another thread of the launch has written.

#include <fmt/format.h>

#include <bit>

#include "emulator/hazards/global_shadow.h"
#include "emulator/hazards/hazards.h"
#include "emulator/machine/grid.h"
#include "emulator/report/fault_report.h"

namespace emu::hazards {
namespace {

/// The addresses of lanes as runs: neighbours joined.
template <class F>
void for_runs(uint32_t lanes, const uint64_t (&address)[kLanes], uint32_t bytes, F&& f) {
  uint64_t begin = 0, end = 0;
  uint32_t of = 0;
  for_lanes(lanes, [&](int lane) {
    if (of && address[lane] == end) {
      end += bytes;
      of |= 1u << lane;
      return;
    }
    if (of) f(begin, end - begin, of);
    begin = address[lane];
    end = begin + bytes;
    of = 1u << lane;
  });
  if (of) f(begin, end - begin, of);
}

}  // namespace

/// What is known of another cluster, to be changed.
View& Hazards::foreign(View& view, uint64_t cluster) {
  std::shared_ptr<const View>& known = view.foreign[cluster];
  auto changed = known ? std::make_shared<View>(*known) : std::make_shared<View>();
  View& there = *changed;
  known = std::move(changed);
  return there;
}

/// What another cluster, or this one, has handed over.
void Hazards::take_over(View& view, uint64_t cluster, const View& released, bool acquires) {
  const auto take = [&](View& to, const View& theirs) {
    if (acquires)
      to.acquire(theirs);
    else
      to.acquire_weakly(theirs, first_channel_);
  };
  if (cluster == cluster_.id) return take(view, released);
  View& there = foreign(view, cluster);
  take(there, released);
  // What they know of others, us among them, is known here by itself.
  for (const auto& [other, theirs] : std::exchange(there.foreign, {}))
    take(other == cluster_.id ? view : foreign(view, other), *theirs);
}

Order Hazards::global_order(const GlobalShadow::Write& write, uint32_t lanes, const Record& now, uint32_t now_lanes,
                            const View& view) const {
  const Record& before = write.record;
  if (before.strong && now.strong) return Order::known;
  const bool ours = write.cluster == cluster_.id, asynchronous = traits(now.kind).proxy == Proxy::async;
  if (ours && !before.asynchronous() && before.issuer == now.issuer && lanes == now_lanes && !now.asynchronous())
    return Order::known;
  const View* known = &view;
  if (!ours) {
    const auto foreign = view.foreign.find(write.cluster);
    if (foreign == view.foreign.end()) return Order::none;
    known = foreign->second.get();
  }
  const auto covers = [&](const Clock& clock) {
    return before.done_in(clock, before.asynchronous() ? before.lanes : lanes);
  };
  if (!covers(known->done)) {
    if (ours && !before.asynchronous() && before.issuer == now.issuer && !now.asynchronous()) return Order::warp_only;
    return covers(known->seen) ? Order::weak : Order::none;
  }
  if (asynchronous && traits(before.kind).proxy == Proxy::generic && !covers(known->fenced_global))
    return Order::unfenced;
  return Order::known;
}

void Hazards::report_global(const GlobalShadow::Write& write, uint32_t lanes, uint64_t address, const Record& now,
                            uint32_t now_lanes, Order order) {
  Rule rule = Rule::read_too_early;
  Rank rank = Rank::error;
  const Record& before = write.record;
  std::string explanation = "Nothing between the two orders them: the launch's end would.";
  if (before.kind == Kind::tma_store)
    explanation =
        "A bulk store is done when its thread's cp.async.bulk.wait_group says so (not .read); the reader comes "
        "after no such wait.";
  switch (order) {
    case Order::known:
      return;
    case Order::unfenced:
      rule = Rule::proxy_fence;
      explanation =
          "The two are ordered, but no fence.proxy.async (all of it, or .global) lies between the threads' "
          "write and the copy.";
      break;
    case Order::warp_only:
      rule = Rule::warp_sync;
      rank = Rank::rule;
      explanation = "The two are ordered only by lanes of a warp running together.";
      break;
    case Order::weak:
      rule = Rule::weak_order;
      explanation = "What lies between them is relaxed, with no __threadfence() on one side or the other.";
      break;
    default:
      break;
  }
  if (told(rule, now.source, before.source)) return;
  Side writer{traits(before.kind).name, place(before.source),
              fmt::format("block ({},{},{}), warp {}{}", write.cta.x, write.cta.y, write.cta.z, before.warp,
                          std::has_single_bit(lanes) ? fmt::format(", lane {}", std::countr_zero(lanes)) : ""),
              cluster_.grid.text(before.source)};
  std::string object = fmt::format("global memory at {:#x}", address);
  if (const auto* allocation = cluster_.global().find(address))
    object += fmt::format(": byte {} of {} bytes from {}", address - allocation->address, allocation->bytes,
                          allocation->what);
  told_[{rule, now.source, before.source}] = report(rule, rank, object, {side(now, now_lanes), writer}, explanation);
}

void Hazards::global_threads(Warp& warp, uint32_t lanes, const uint64_t (&address)[kLanes], uint32_t bytes,
                             emu::Access access, uint8_t order) {
  GlobalShadow& shadow = *cluster_.grid.global_shadow;
  const bool strong = order & Instruction::kStrong, writes = access != emu::Access::read,
             reads = access != emu::Access::write;
  if (strong && reads) {
    // Once for each thing handed over, whatever the number of lanes that meet it.
    std::map<std::pair<uint64_t, std::shared_ptr<const View>>, uint32_t> strongly, weakly;
    for_lanes(lanes, [&](int lane) {
      shadow.handed(address[lane], [&](uint64_t cluster, const GlobalShadow::Handed& handed) {
        if (handed.strong) strongly[{cluster, handed.strong}] |= 1u << lane;
        if (handed.weak) weakly[{cluster, handed.weak}] |= 1u << lane;
      });
    });
    for (const auto& [from, by] : strongly) {
      const bool acquires = order & Instruction::kAcquire;
      each_class(warp, by, [&](Lanes& part) { take_over(change(part), from.first, *from.second, acquires); });
    }
    for (const auto& [from, by] : weakly)
      each_class(warp, lanes, [&](Lanes& part) {
        if (from.first == cluster_.id)
          change(part).seen.join(from.second->seen);
        else
          foreign(change(part), from.first).seen.join(from.second->seen);
      });
    if (!strongly.empty()) merge(warp);
  }
  const Kind kind = order & Instruction::kCopy     ? Kind::load
                    : access == emu::Access::read  ? Kind::load
                    : access == emu::Access::write ? Kind::store
                                                   : Kind::atomic;
  if (reads) {
    Record now = here(warp, lanes);
    now.kind = kind;
    now.strong = strong;
    for_runs(lanes, address, bytes, [&](uint64_t begin, uint64_t length, uint32_t of) {
      struct Found {
        GlobalShadow::Write write;
        uint32_t lanes, reader;
        uint64_t address;
        Order order;
      };
      std::vector<Found> found;
      shadow.writers(begin, length, [&](const GlobalShadow::Write& write, uint32_t writers, uint64_t at) {
        // Which of the lanes reads that byte.
        uint32_t reader = 0;
        for_lanes(of, [&](int lane) {
          if (at >= address[lane] && at < address[lane] + bytes) reader |= 1u << lane;
        });
        for (const Lanes& part : threads_of(warp).classes) {
          if (!(part.lanes & reader)) continue;
          const Order between = global_order(write, writers, now, reader, *part.view);
          if (between != Order::known) found.push_back({write, writers, reader, at, between});
        }
      });
      for (const Found& each : found) report_global(each.write, each.lanes, each.address, now, each.reader, each.order);
    });
  }
  if (!writes) return;
  Threads& threads = threads_of(warp);
  const uint32_t source = cluster_.origin(warp).source;
  const auto [place, fresh] = threads.global_writes.try_emplace(source, kNobody);
  if (fresh) {
    Record record = here(warp, kAllLanes);
    record.kind = kind;
    record.strong = strong;
    record.lane_by_lane = true;
    place->second = shadow.add({std::move(record), cluster_.id, warp.cta.index});
  }
  for_lanes(lanes, [&](int lane) { shadow.write(address[lane], bytes, place->second | static_cast<Ref>(lane)); });
  if (!strong) return;
  const std::shared_ptr<const View> view = snapshot(warp, lanes);
  for_lanes(lanes, [&](int lane) {
    shadow.release_weakly(address[lane], cluster_.id, view);
    if (order & Instruction::kRelease) shadow.release(address[lane], cluster_.id, *view);
  });
  if (!(order & Instruction::kRelease))
    for (const Lanes& part : threads_of(warp).classes) {
      if (!(part.lanes & lanes) || part.view->released.empty()) continue;
      View fenced;
      fenced.acquire_from_weak(*part.view, first_channel_);
      for_lanes(part.lanes & lanes, [&](int lane) { shadow.release(address[lane], cluster_.id, fenced); });
    }
  tick_after_release(warp, lanes);
}

void Hazards::global_read(Issued& operation, Kind kind, std::span<const Bytes> ranges) {
  operation.record.kind = kind;
  GlobalShadow& shadow = *cluster_.grid.global_shadow;
  for (const Bytes& range : ranges) {
    std::vector<std::tuple<GlobalShadow::Write, uint32_t, uint64_t, Order>> found;
    shadow.writers(range.offset, range.bytes, [&](const GlobalShadow::Write& write, uint32_t writers, uint64_t at) {
      const Order between = global_order(write, writers, operation.record, operation.record.lanes, *operation.view);
      if (between != Order::known) found.emplace_back(write, writers, at, between);
    });
    for (const auto& [write, writers, at, between] : found)
      report_global(write, writers, at, operation.record, operation.record.lanes, between);
  }
}

void Hazards::global_written(Issued& operation, Kind kind, bool reduces, std::span<const Bytes> ranges) {
  operation.record.kind = kind;
  operation.record.strong = reduces;
  GlobalShadow& shadow = *cluster_.grid.global_shadow;
  const Ref ref = shadow.add({operation.record, cluster_.id, cluster_.ctas[operation.record.cta_rank]->index});
  for (const Bytes& range : ranges) shadow.write(range.offset, range.bytes, ref);
}

}  // namespace emu::hazards
