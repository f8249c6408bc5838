// What threads know, and how they come to know it: barriers, fences and waits that are not about mbarriers.

#include "emulator/hazards/hazards.h"

#include <algorithm>
#include <bit>

#include "emulator/machine/grid.h"

namespace emu::hazards {

Hazards::Hazards(Cluster& cluster) : cluster_(cluster), findings_(cluster.grid.device.findings()) {
  warps_per_cta_ = static_cast<uint32_t>(cluster.ctas[0]->warps.size());
  const uint32_t warps = warps_per_cta_ * static_cast<uint32_t>(cluster.ctas.size());
  first_channel_ = warps;
  threads_.resize(warps);
  for (const auto& cta : cluster.ctas)
    for (const auto& warp : cta->warps)
      channels_.push_back({.kind = ChannelKind::warp, .cta_rank = cta->rank, .warp = warp->index});
  for (const auto& cta : cluster.ctas) {
    constexpr size_t kTensorCells = TensorMemory::kTmemLanes / 16 * TensorMemory::kColumns;
    const bool has_tensor_memory = cluster.grid.device.chip().has_tcgen05;
    auto memory = std::make_unique<Memory>(cta->window.size() / 4 + 1, has_tensor_memory ? kTensorCells : 0);
    memory->start = channel(ChannelKind::start, cta->rank, 0);
    memories_.push_back(std::move(memory));
  }
  for (const auto& cta : cluster.ctas) {
    auto view = std::make_shared<View>();
    view->done.raise(memories_[cta->rank]->start, 1);
    view->seen.raise(memories_[cta->rank]->start, 1);
    for (const auto& warp : cta->warps) threads_of(*warp).classes.push_back({kAllLanes, view});
  }
}

Hazards::~Hazards() = default;

Agent Hazards::channel(ChannelKind kind, uint32_t cta_rank, uint32_t warp, uint32_t lane, uint32_t barrier) {
  const std::array<uint32_t, 5> key{static_cast<uint32_t>(kind), cta_rank, warp, lane, barrier};
  const auto [place, fresh] = channel_numbers_.try_emplace(key, static_cast<Agent>(channels_.size()));
  if (fresh) channels_.push_back({.kind = kind, .barrier = barrier, .cta_rank = cta_rank, .warp = warp, .lane = lane});
  return place->second;
}

View& Hazards::change(Lanes& lanes) {
  if (lanes.view.use_count() > 1) lanes.view = std::make_shared<View>(*lanes.view);
  return *lanes.view;
}

void Hazards::merge(Warp& warp) {
  auto& classes = threads_of(warp).classes;
  for (size_t i = 0; i < classes.size(); ++i)
    for (size_t j = classes.size(); j-- > i + 1;) {
      const View &a = *classes[i].view, &b = *classes[j].view;
      if (classes[i].view != classes[j].view &&
          !(a.done == b.done && a.fenced == b.fenced && a.seen == b.seen && a.handed == b.handed &&
            a.taken == b.taken && a.fenced_global == b.fenced_global && a.foreign == b.foreign &&
            a.foreign_fenced == b.foreign_fenced && a.foreign_seen == b.foreign_seen))
        continue;
      classes[i].lanes |= classes[j].lanes;
      classes.erase(classes.begin() + static_cast<std::ptrdiff_t>(j));
    }
}

/// What these lanes know together now, with what they have done themselves.
std::shared_ptr<View> Hazards::snapshot(Warp& warp, uint32_t lanes) {
  Threads& threads = threads_of(warp);
  std::shared_ptr<View> view;
  const uint32_t all = (lanes & warp.live) == warp.live ? kAllLanes : lanes;
  for (Lanes& part : threads.classes) {
    if (!(part.lanes & all)) continue;
    if (!view) {
      view = std::make_shared<View>(*part.view);
    } else {
      view->acquire(*part.view);
      view->taken.join(part.view->taken);
    }
  }
  view->done.raise_lanes(agent(warp), all, threads.now);
  view->seen.raise(agent(warp), threads.now);
  if (threads.copies) {
    raise_own_copies(threads, all, warp.live, view->done);
    raise_own_copies(threads, all, warp.live, view->seen);
  }
  return view;
}

/// What comes now is later than what has been handed over.
void Hazards::tick_after_release(Warp& warp, uint32_t lanes) {
  ++moment_;
  for_lanes(lanes, [&](int lane) { threads_of(warp).released[static_cast<size_t>(lane)] = moment_; });
  tick(warp);
}

uint32_t Hazards::last_release(const Threads& threads, uint32_t lanes) const {
  uint32_t last = 0;
  for_lanes(lanes, [&](int lane) { last = std::max(last, threads.released[static_cast<size_t>(lane)]); });
  return last;
}

void Hazards::tick(Warp& warp) {
  Threads& threads = threads_of(warp);
  ++threads.now;
  threads.records.clear();
}

void Hazards::learn(Warp& warp, uint32_t lanes, Agent channel, uint32_t time) {
  each_class(warp, lanes, [&](Lanes& part) {
    View& view = change(part);
    view.done.raise(channel, time);
    view.seen.raise(channel, time);
  });
}

void Hazards::learn_lanes(Warp& warp, uint32_t lanes, Agent channel, uint32_t time) {
  each_class(warp, lanes, [&](Lanes& part) {
    View& view = change(part);
    // A thread knows of its own.
    view.done.raise_lanes(channel, part.lanes & lanes, time);
    view.seen.raise_lanes(channel, part.lanes & lanes, time);
  });
}

// ---- barriers of a CTA, a cluster, a warp ---------------------------------------------------------------------------

void Hazards::arrives_at(uint32_t number, Warp& warp, uint32_t lanes) {
  NamedBarrierView& barrier = named_barriers_[{warp.cta.rank, number}];
  const auto view = snapshot(warp, lanes);
  barrier.gathering.acquire(*view);
  if (!fences_.empty())
    for_lanes(lanes, [&](int lane) {
      const auto fences = fences_.find({agent(warp), static_cast<uint32_t>(lane)});
      if (fences == fences_.end()) return;
      if (!barrier.acquired) barrier.acquired = std::make_shared<View>();
      barrier.acquired->acquire(fences->second.acquired);
      if (!barrier.acquired_wide) barrier.acquired_wide = std::make_shared<View>();
      barrier.acquired_wide->acquire(fences->second.acquired_wide);
      if (const auto& widely = fences->second.released_wide; widely && widely != barrier.released_wide) {
        auto joined = barrier.released_wide ? std::make_shared<View>(*barrier.released_wide) : std::make_shared<View>();
        joined->acquire(*widely);
        barrier.released_wide = std::move(joined);
      }
      if (!fences->second.released || fences->second.released == barrier.released) return;
      auto released = barrier.released ? std::make_shared<View>(*barrier.released) : std::make_shared<View>();
      released->acquire(*fences->second.released);
      barrier.released = std::move(released);
    });
  tick_after_release(warp, lanes);
}

void Hazards::named_barrier_ended(Cta& cta, uint32_t number) {
  NamedBarrierView& barrier = named_barriers_[{cta.rank, number}];
  barrier.ended = std::make_shared<const View>(barrier.gathering);
}

void Hazards::leaves(uint32_t number, Warp& warp, uint32_t lanes) {
  const NamedBarrierView& barrier = named_barriers_[{warp.cta.rank, number}];
  each_class(warp, lanes, [&](Lanes& part) { change(part).acquire(*barrier.ended); });
  if (barrier.acquired)
    for_lanes(lanes, [&](int lane) {
      Fences& fences = fences_[{agent(warp), static_cast<uint32_t>(lane)}];
      fences.acquired.acquire(*barrier.acquired);
      fences.acquired_wide.acquire(*barrier.acquired_wide);
      if (barrier.released_wide) fences.released_wide = barrier.released_wide;
      if (barrier.released) fences.released = barrier.released;
    });
  merge(warp);
}

void Hazards::arrives_at_cluster_barrier(Warp& warp, uint32_t lanes, bool relaxed) {
  const auto view = snapshot(warp, lanes);
  if (relaxed) {
    cluster_gathering_.acquire_weakly(*view, first_channel_);
    hand_over_fenced(warp, lanes, cluster_gathering_);
  } else {
    cluster_gathering_.acquire(*view);
  }
  tick_after_release(warp, lanes);
}

void Hazards::cluster_barrier_ended() {
  cluster_ended_ = std::make_shared<const View>(cluster_gathering_);
}

void Hazards::leaves_cluster_barrier(Warp& warp, uint32_t lanes) {
  if (!cluster_ended_) return;
  each_class(warp, lanes, [&](Lanes& part) { change(part).acquire(*cluster_ended_); });
  merge(warp);
}

void Hazards::warp_synchronised(Warp& warp, uint32_t lanes) {
  const auto view = snapshot(warp, lanes);
  each_class(warp, lanes, [&](Lanes& part) {
    View& own = change(part);
    own.acquire(*view);
  });
  tick_after_release(warp, lanes);
  merge(warp);
}

/// What one lane has waited for comes before what the others do next, by no rule of memory.
void Hazards::warp_met(Warp& warp, uint32_t lanes) {
  const View* first = nullptr;
  bool alike = true;
  for (const Lanes& part : threads_of(warp).classes) {
    if (!(part.lanes & lanes)) continue;
    if (!first) first = part.view.get();
    alike = alike && (first == part.view.get() ||
                      (first->seen == part.view->seen && first->foreign_seen == part.view->foreign_seen));
  }
  if (alike) return;
  Clock seen;
  Foreign foreign;
  for (const Lanes& part : threads_of(warp).classes) {
    if (!(part.lanes & lanes)) continue;
    seen.join(part.view->seen);
    foreign.join(part.view->foreign_seen);
  }
  each_class(warp, lanes, [&](Lanes& part) {
    View& view = change(part);
    view.seen = seen;
    view.foreign_seen = foreign;
  });
}

// ---- fences ---------------------------------------------------------------------------------------------------------

void Hazards::proxy_fence(Warp& warp, uint32_t lanes, bool of_shared, bool of_global) {
  const uint32_t now = threads_of(warp).now;
  each_class(warp, lanes, [&](Lanes& part) {
    View& view = change(part);
    const bool all = part.lanes == kAllLanes && (lanes & warp.live) == warp.live;
    const Threads& threads = threads_of(warp);
    const auto fence = [&](Clock& fenced) {
      fenced.join(view.done);
      fenced.raise_lanes(agent(warp), all ? kAllLanes : part.lanes & lanes, now);
      if (threads.copies) raise_own_copies(threads, all ? kAllLanes : part.lanes & lanes, warp.live, fenced);
    };
    if (of_shared) fence(view.fenced);
    if (!of_global) return;
    fence(view.fenced_global);
    // Of other clusters' writes what is known is fenced, too.
    view.foreign_fenced.join(view.foreign);
  });
  tick(warp);
}

void Hazards::before_thread_sync(Warp& warp, uint32_t lanes) {
  const uint32_t now = threads_of(warp).now;
  each_class(warp, lanes, [&](Lanes& part) {
    View& view = change(part);
    view.handed.join(view.done);
    const bool all = part.lanes == kAllLanes && (lanes & warp.live) == warp.live;
    view.handed.raise_lanes(agent(warp), all ? kAllLanes : part.lanes & lanes, now);
  });
  tick(warp);
}

void Hazards::after_thread_sync(Warp& warp, uint32_t lanes) {
  each_class(warp, lanes, [&](Lanes& part) {
    View& view = change(part);
    view.taken.join(view.handed);
  });
}

/// PTX ISA, fence: with .mbarrier_init it releases prior mbarrier.init operations of its thread, and no more. They are
/// known through a channel of their own: a relaxed arrive at the cluster's barrier hands them over.
void Hazards::init_fence(Warp& warp, uint32_t lanes) {
  for_lanes(lanes, [&](int lane) {
    const Agent inits = channel(ChannelKind::init, warp.cta.rank, warp.index, static_cast<uint32_t>(lane));
    bool any = false;
    for (auto& [address, barrier] : barriers_) {
      if (!barrier.live || barrier.shown || barrier.init == kNobody) continue;
      const Record& init = records_[barrier.init];
      if (init.issuer != agent(warp) || !(records_.lanes(barrier.init) >> lane & 1)) continue;
      barrier.shown = any = true;
      barrier.fence = channels_[inits].count + 1;
    }
    if (!any) return;
    auto& released = fences_[{agent(warp), static_cast<uint32_t>(lane)}].released;
    auto view = released ? std::make_shared<View>(*released) : std::make_shared<View>();
    view->done.raise(inits, ++channels_[inits].count);
    view->seen.raise(inits, channels_[inits].count);
    released = view;
  });
}

void Hazards::hand_over_fenced(const Warp& warp, uint32_t lanes, View& to) const {
  for_lanes(lanes, [&](int lane) {
    const auto fences = fences_.find({agent(warp), static_cast<uint32_t>(lane)});
    if (fences != fences_.end() && fences->second.released) to.acquire(*fences->second.released);
  });
}

/// PTX ISA, "Release and Acquire Patterns": a fence before a strong write releases what came before the fence; one
/// behind a strong read acquires.
void Hazards::memory_fence(Warp& warp, uint32_t lanes, bool narrow) {
  for_lanes(lanes & warp.live, [&](int lane) {
    const auto fences = fences_.find({agent(warp), static_cast<uint32_t>(lane)});
    if (fences == fences_.end()) return;
    each_class(warp, 1u << lane, [&](Lanes& part) {
      change(part).acquire(fences->second.acquired);
      if (!narrow) change(part).acquire(fences->second.acquired_wide);
    });
  });
  const auto view = snapshot(warp, lanes);
  for_lanes(lanes & warp.live, [&](int lane) {
    // Each lane hands over what it knows itself.
    const auto own = std::popcount(lanes & warp.live) == 1 ? view : snapshot(warp, 1u << lane);
    Fences& fences = fences_[{agent(warp), static_cast<uint32_t>(lane)}];
    if (fences.released) own->acquire(*fences.released);
    fences.released = own;
    if (!narrow) fences.released_wide = own;
  });
  tick_after_release(warp, lanes);
  merge(warp);
}

void Hazards::Location::tell(const Told& told) {
  constexpr size_t kFew = 4;
  if (!heard) {
    const auto earlier = std::find_if(seen.begin(), seen.end(), [&](const Told& other) {
      return other.agent == told.agent && other.lane == told.lane;
    });
    if (earlier != seen.end()) {
      *earlier = told;
      return;
    }
    if (seen.size() < kFew) {
      seen.push_back(told);
      return;
    }
    heard = std::make_unique<Clock>();
    for (const Told& other : seen) {
      heard->join(other.view->seen);
      heard->raise(other.agent, other.time);
    }
    seen.clear();
  }
  if (number == told.number) return;  // other lanes of one instruction
  number = told.number;
  heard->join(told.view->seen);
  heard->raise(told.agent, told.time);
}

void Hazards::acquire_locations(Warp& warp, uint32_t lanes, const uint64_t (&address)[kLanes], uint8_t order) {
  if (locations_.empty()) return;
  auto& known = threads_of(warp).heard;
  if (known.size() > 1024) known.clear();
  Clock seen;
  std::vector<uint32_t> joined;
  uint32_t hearing = 0;
  // What a lane has heard, it knows for good. `told`: joins it to `seen`.
  const auto hear = [&](uint32_t number, int lane, auto&& told) {
    uint32_t& who = known[number];
    if (who >> lane & 1) return false;
    who |= 1u << lane;
    hearing |= 1u << lane;
    if (std::find(joined.begin(), joined.end(), number) == joined.end()) {
      joined.push_back(number);
      told();
    }
    return true;
  };
  for_lanes(lanes, [&](int lane) {
    const auto found = locations_.find(static_cast<uint32_t>(address[lane]) & ~3u);
    if (found == locations_.end()) return;
    const Location& location = found->second;
    for (const Told& told : location.seen)
      hear(told.number, lane, [&] {
        seen.join(told.view->seen);
        seen.raise(told.agent, told.time);
      });
    if (location.heard) hear(location.number, lane, [&] { seen.join(*location.heard); });
    if (!location.released) return;
    if (order & Instruction::kAcquire)
      each_class(warp, 1u << lane, [&](Lanes& part) { change(part).acquire(*location.released); });
    if (hear(location.release, lane, [&] { seen.join(location.released->seen); }))
      fences_[{agent(warp), static_cast<uint32_t>(lane)}].acquired.acquire(*location.released);
  });
  if (hearing) each_class(warp, hearing, [&](Lanes& part) { change(part).seen.join(seen); });
}

void Hazards::release_locations(Warp& warp, uint32_t lanes, const uint64_t (&address)[kLanes], uint8_t order) {
  const auto location = [&](int lane) -> Location& { return locations_[static_cast<uint32_t>(address[lane]) & ~3u]; };
  const auto release = [&](Location& to, const View& view) {
    if (!to.released) to.released = std::make_unique<View>();
    to.released->acquire(view);
    to.release = ++told_numbers_;
  };
  if (order & Instruction::kRelease) {
    const auto view = snapshot(warp, lanes);
    for_lanes(lanes, [&](int lane) { release(location(lane), *view); });
    tick_after_release(warp, lanes);
    return;
  }
  const Threads& threads = threads_of(warp);
  for (const Lanes& part : threads.classes) {
    const uint32_t number = ++told_numbers_;
    for_lanes(part.lanes & lanes, [&](int lane) {
      location(lane).tell({part.view, agent(warp), static_cast<uint32_t>(lane), threads.now, number});
    });
  }
  for_lanes(fences_.empty() ? 0 : lanes, [&](int lane) {
    const auto fences = fences_.find({agent(warp), static_cast<uint32_t>(lane)});
    if (fences != fences_.end() && fences->second.released) release(location(lane), *fences->second.released);
  });
  tick_after_release(warp, lanes);
}

// ---- completions ----------------------------------------------------------------------------------------------------

IssuedPointer Hazards::issue(Warp& warp, int lane) {
  auto operation = std::make_shared<Issued>();
  const uint32_t lanes = lane < 0 ? warp.live : 1u << lane;
  operation->view = snapshot(warp, lanes);
  Record& record = operation->record;
  record.issuer = agent(warp);
  record.issued = threads_of(warp).now;
  record.lanes = lanes;
  record.channel = record.issuer;
  record.cta_rank = warp.cta.rank;
  record.warp = warp.index;
  record.source = cluster_.origin(warp).source;
  record.view = operation->view;
  record.sequence = ++issued_;
  record.released = last_release(threads_of(warp), lanes);
  // What the thread does next comes behind the issue.
  tick(warp);
  return operation;
}

void Hazards::completes_with_commit(Issued& operation, Warp& warp, int lane) {
  operation.record.channel = channel(ChannelKind::commit, warp.cta.rank, warp.index, static_cast<uint32_t>(lane));
  operation.record.complete = ++channels_[operation.record.channel].count;
}

void Hazards::completes_in_bulk_group(Issued& operation, Warp& warp, int lane, uint64_t group, bool reads) {
  const ChannelKind kind = reads ? ChannelKind::bulk_read : ChannelKind::bulk_write;
  operation.record.channel = channel(kind, warp.cta.rank, warp.index, static_cast<uint32_t>(lane));
  operation.record.complete = static_cast<uint32_t>(group) + 1;
  channels_[operation.record.channel].count = operation.record.complete;
  channels_[operation.record.channel].source = operation.record.source;
}

void Hazards::bulk_groups_waited(Warp& warp, uint32_t lanes, uint64_t allowed, bool reading) {
  for_lanes(lanes, [&](int lane) {
    const auto bulk = warp.bulk.find(static_cast<uint32_t>(lane));
    if (bulk == warp.bulk.end()) return;
    const uint64_t committed = bulk->second.oldest + bulk->second.groups.size() - 1;
    if (committed <= allowed) return;
    const auto time = static_cast<uint32_t>(committed - allowed);
    const auto of = [&](ChannelKind kind) {
      return channel(kind, warp.cta.rank, warp.index, static_cast<uint32_t>(lane));
    };
    learn(warp, 1u << lane, of(ChannelKind::bulk_read), time);
    if (!reading) learn(warp, 1u << lane, of(ChannelKind::bulk_write), time);
  });
}

void Hazards::completes_with_tensor_wait(Issued& operation, Warp& warp, bool load) {
  operation.record.channel =
      channel(load ? ChannelKind::tensor_load : ChannelKind::tensor_store, warp.cta.rank, warp.index);
  operation.record.complete = ++channels_[operation.record.channel].count;
}

void Hazards::tensor_waited(Warp& warp, bool loads, uint32_t lanes) {
  const Agent number = channel(loads ? ChannelKind::tensor_load : ChannelKind::tensor_store, warp.cta.rank, warp.index);
  learn_lanes(warp, (lanes & warp.live) == warp.live ? kAllLanes : lanes, number, channels_[number].count);
}

void Hazards::tensor_consumed(Warp& warp, const Issued& operation, uint32_t lanes) {
  learn_lanes(warp, (lanes & warp.live) == warp.live ? kAllLanes : lanes, operation.record.channel,
              operation.record.complete);
}

void Hazards::completes_in_wgmma_group(Issued& operation, uint32_t cta_rank, uint32_t first_warp, uint64_t number) {
  operation.record.channel = channel(ChannelKind::wgmma, cta_rank, first_warp);
  operation.record.complete = static_cast<uint32_t>(number);
}

/// wgmma: any warp of the four may have been the one to wait for the operands.
void Hazards::joins(Issued& operation, const Issued& part) {
  operation.view->acquire(*part.view);
}

void Hazards::wgmma_waited(Warp& warp, uint32_t first_warp, uint64_t number) {
  learn(warp, kAllLanes, channel(ChannelKind::wgmma, warp.cta.rank, first_warp), static_cast<uint32_t>(number));
}

void Hazards::completes_in_copy_group(Issued& operation, Warp& warp, uint32_t lanes) {
  operation.record.channel = channel(ChannelKind::copy, warp.cta.rank, warp.index);
  operation.record.complete = ++channels_[operation.record.channel].count;
  operation.record.lanes = lanes;
  threads_of(warp).copies = operation.record.channel;
}

void Hazards::copies_committed(Warp& warp, uint32_t lanes) {
  const uint32_t last = channels_[channel(ChannelKind::copy, warp.cta.rank, warp.index)].count;
  for_lanes(lanes, [&](int lane) { threads_of(warp).copy_groups[static_cast<size_t>(lane)].push_back(last); });
}

/// A thread waits for its own copies; the others of its warp know of that when it has told them.
void Hazards::copies_waited(Warp& warp, uint32_t lanes, uint32_t allowed) {
  Threads& threads = threads_of(warp);
  if (!threads.copies) return;
  for_lanes(lanes, [&](int lane) {
    const auto& groups = threads.copy_groups[static_cast<size_t>(lane)];
    uint32_t last = channels_[threads.copies].count;
    if (allowed != Warp::kAllCopies) {
      if (groups.size() <= allowed) return;
      last = groups[groups.size() - 1 - allowed];
    }
    uint32_t& done = threads.copies_done[static_cast<size_t>(lane)];
    done = std::max(done, last);
  });
}

void Hazards::raise_own_copies(const Threads& threads, uint32_t lanes, uint32_t live, Clock& clock) const {
  const bool all = lanes == kAllLanes;
  for (uint32_t left = lanes & live; left;) {
    const uint32_t done = threads.copies_done[static_cast<size_t>(std::countr_zero(left))];
    uint32_t alike = 0;
    for_lanes(left,
              [&](int lane) { alike |= uint32_t{threads.copies_done[static_cast<size_t>(lane)] == done} << lane; });
    left &= ~alike;
    if (done) clock.raise_lanes(threads.copies, all && alike == live ? kAllLanes : alike, done);
  }
}

bool Hazards::own_copies_done(const Record& copy, uint32_t lanes) const {
  const auto& done = threads_[copy.issuer].copies_done;
  bool all = copy.kind == Kind::copy;
  for_lanes(lanes, [&](int lane) { all = all && copy.complete <= done[static_cast<size_t>(lane)]; });
  return all;
}

// ---- the end --------------------------------------------------------------------------------------------------------

void Hazards::lanes_exit(Warp& warp, uint32_t lanes) {
  for_lanes(lanes, [&](int lane) {
    if (!warp.bulk.contains(static_cast<uint32_t>(lane))) return;
    const Channel& stores =
        channels_[channel(ChannelKind::bulk_read, warp.cta.rank, warp.index, static_cast<uint32_t>(lane))];
    const auto number = static_cast<Agent>(&stores - channels_.data());
    const std::shared_ptr<View> view = snapshot(warp, 1u << lane);
    if (view->done.covers(number, static_cast<uint32_t>(lane), stores.count)) return;
    Record store;
    store.kind = Kind::tma_store;
    store.cta_rank = warp.cta.rank;
    store.warp = warp.index;
    store.lanes = warp.live;
    store.source = stores.source;
    report(Rule::bulk_store_wait, Rank::rule, "", {side(store, 1u << lane)},
           "Its thread ends without a cp.async.bulk.wait_group.");
  });
  // Asked before the lanes are gone.
  memories_[warp.cta.rank]->end.acquire(*snapshot(warp, lanes));
}

}  // namespace emu::hazards
