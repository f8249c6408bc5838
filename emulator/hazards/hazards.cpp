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
    auto memory = std::make_unique<Memory>(cta->window.size() / 4 + 1, has_tensor_memory ? kTensorCells : 0,
                                           cta->rank * warps_per_cta_, warps_per_cta_);
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
      if (classes[i].view != classes[j].view && *classes[i].view != *classes[j].view) continue;
      classes[i].lanes |= classes[j].lanes;
      classes.erase(classes.begin() + static_cast<std::ptrdiff_t>(j));
    }
}

/// What these lanes know together now, with what they have done themselves.
std::shared_ptr<View> Hazards::snapshot(Warp& warp, uint32_t lanes) {
  Threads& threads = threads_of(warp);
  std::shared_ptr<View> view;
  lanes = with_absent(warp, lanes);
  for (Lanes& part : threads.classes) {
    if (!(part.lanes & lanes)) continue;
    if (!view) {
      view = std::make_shared<View>(*part.view);
    } else {
      view->acquire(*part.view);
      view->taken.join(part.view->taken);
      view->taken_async.join(part.view->taken_async);
    }
  }
  raise_own(warp, lanes, threads.now, view->done);
  view->seen.raise(agent(warp), threads.now);
  raise_own_copies(warp, lanes, view->seen);
  return view;
}

/// What these lanes have done themselves until `now`.
void Hazards::raise_own(const Warp& warp, uint32_t lanes, uint32_t now, Clock& clock) const {
  clock.raise_lanes(agent(warp), lanes, now);
  raise_own_copies(warp, lanes, clock);
}

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

/// What comes now is later than what has been handed over.
void Hazards::tick(Warp& warp) {
  ++threads_of(warp).now;
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
    view.done.raise_lanes(channel, part.lanes, time);
    view.seen.raise_lanes(channel, part.lanes, time);
  });
}

// ---- barriers of a CTA, a cluster, a warp ---------------------------------------------------------------------------

void Hazards::arrives_at(uint32_t number, Warp& warp, uint32_t lanes) {
  named_barriers_[{warp.cta.rank, number}].gathering.acquire(*snapshot(warp, lanes));
  tick_after_release(warp, lanes);
}

void Hazards::named_barrier_ended(Cta& cta, uint32_t number) {
  NamedBarrierView& barrier = named_barriers_[{cta.rank, number}];
  barrier.ended = std::make_shared<const View>(barrier.gathering);
}

void Hazards::leaves(uint32_t number, Warp& warp, uint32_t lanes) {
  const NamedBarrierView& barrier = named_barriers_[{warp.cta.rank, number}];
  each_class(warp, lanes, [&](Lanes& part) { change(part).acquire(*barrier.ended); });
  merge(warp);
}

void Hazards::arrives_at_cluster_barrier(Warp& warp, uint32_t lanes, bool relaxed) {
  const auto view = snapshot(warp, lanes);
  if (relaxed)
    cluster_gathering_.acquire_from_weak(*view, first_channel_);
  else
    cluster_gathering_.acquire(*view);
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
    const auto fence = [&](Clock& fenced) {
      fenced.join(view.done);
      raise_own(warp, part.lanes, now, fenced);
    };
    if (of_shared) fence(view.fenced);
    if (!of_global) return;
    fence(view.fenced_global);
    // Of other clusters' writes what is known is fenced, too.
    view.foreign_fenced.join(view.foreign);
  });
  tick(warp);
}

void Hazards::release_to_async(Warp& warp, uint32_t lanes) {
  const uint32_t now = threads_of(warp).now;
  each_class(warp, lanes, [&](Lanes& part) {
    View& view = change(part);
    view.handed_async.join(view.done);
    raise_own(warp, part.lanes, now, view.handed_async);
  });
  proxy_fence(warp, lanes, true, false);
}

void Hazards::acquire_for_async(Warp& warp, uint32_t lanes) {
  each_class(warp, lanes, [&](Lanes& part) {
    View& view = change(part);
    view.taken_async.join(view.handed_async);
  });
  proxy_fence(warp, lanes, true, false);
}

void Hazards::before_thread_sync(Warp& warp, uint32_t lanes) {
  const uint32_t now = threads_of(warp).now;
  each_class(warp, lanes, [&](Lanes& part) {
    View& view = change(part);
    view.handed.join(view.done);
    view.handed.raise_lanes(agent(warp), part.lanes, now);
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
    ++channels_[inits].count;
    each_class(warp, 1u << lane, [&](Lanes& part) {
      View& view = change(part);
      view.released.raise(inits, channels_[inits].count);
      view.seen.raise(inits, channels_[inits].count);
    });
  });
}

/// A fence or an acquire whose scope holds other SMs: what these lanes know to have been loaded before is loaded anew.
void Hazards::empty_cache(const Warp& warp, uint32_t lanes) {
  Clock& emptied = memories_[warp.cta.rank]->cache_emptied;
  for (const Lanes& part : threads_of(warp).classes) {
    if (!(part.lanes & lanes)) continue;
    emptied.join(part.view->done);
    raise_own(warp, with_absent(warp, part.lanes & lanes), threads_of(warp).now, emptied);
  }
}

void Hazards::memory_fence(Warp& warp, uint32_t lanes, bool narrow) {
  const uint32_t now = threads_of(warp).now;
  each_class(warp, lanes, [&](Lanes& part) {
    View& view = change(part);
    view.fence(!narrow);
    raise_own(warp, part.lanes, now, view.released);
    if (!narrow) raise_own(warp, part.lanes, now, view.released_wide);
  });
  if (!narrow) empty_cache(warp, lanes);
  tick_after_release(warp, lanes);
  merge(warp);
}

Hazards::Location* Hazards::location(uint64_t address) {
  const auto& words = memories_[shared_rank(static_cast<uint32_t>(address))]->locations;
  const size_t word = shared_offset(static_cast<uint32_t>(address)) / 4;
  return word < words.size() && words[word] ? &locations_[words[word] - 1] : nullptr;
}

Hazards::Location& Hazards::make_location(uint64_t address) {
  if (Location* known = location(address)) return *known;
  Memory& memory = *memories_[shared_rank(static_cast<uint32_t>(address))];
  const size_t word = shared_offset(static_cast<uint32_t>(address)) / 4;
  if (memory.locations.size() <= word) memory.locations.resize(word + 1024);
  locations_.emplace_back();
  memory.locations[word] = static_cast<uint32_t>(locations_.size());
  return locations_.back();
}

void Hazards::acquire_locations(Warp& warp, uint32_t lanes, const uint64_t (&address)[kLanes], uint8_t order) {
  if (locations_.empty()) return;
  for (size_t i = 0; i < threads_of(warp).classes.size(); ++i) {
    const uint32_t here = threads_of(warp).classes[i].lanes & lanes;
    const View* view = threads_of(warp).classes[i].view.get();
    if (!here) continue;
    std::vector<const Clock*> heard;
    std::vector<std::pair<const Location*, uint32_t>> released;
    for_lanes(here, [&](int lane) {
      const Location* location = this->location(address[lane]);
      if (!location) return;
      // Who knows of the last that was told knows what came before.
      if (!view->seen.covers(location->agent, 0, location->time) &&
          std::find(heard.begin(), heard.end(), location->heard.get()) == heard.end())
        heard.push_back(location->heard.get());
      if (!location->released || location->released->done == view->done) return;
      auto group = std::find_if(released.begin(), released.end(), [&](auto& other) { return other.first == location; });
      if (group == released.end()) group = released.insert(group, {location, 0});
      group->second |= 1u << lane;
    });
    // What some have heard, all that run with them have seen.
    if (!heard.empty())
      each_class(warp, here, [&](Lanes& part) {
        View& own = change(part);
        for (const Clock* told : heard) own.seen.join(*told);
      });
    for (const auto& [location, by] : released)
      each_class(warp, by, [&](Lanes& part) {
        if (order & Instruction::kAcquire)
          change(part).acquire(*location->released);
        else
          change(part).acquire_weakly(*location->released, first_channel_);
      });
  }
}

void Hazards::release_locations(Warp& warp, uint32_t lanes, const uint64_t (&address)[kLanes], uint8_t order,
                                bool reads) {
  const auto release = [&](uint32_t by, const View& view) {
    for_lanes(by, [&](int lane) {
      Location& to = make_location(address[lane]);
      if (!to.released) to.released = std::make_unique<View>();
      to.released->acquire(view);
    });
  };
  const uint32_t now = threads_of(warp).now;
  for (const Lanes& part : threads_of(warp).classes) {
    if (!(part.lanes & lanes)) continue;
    auto seen = std::make_shared<Clock>(part.view->seen);
    seen->raise(agent(warp), now);
    for_lanes(part.lanes & lanes, [&](int lane) {
      Location& to = make_location(address[lane]);
      if (reads || !to.heard) {
        to.heard = seen;  // with all that was told there before
      } else if (to.agent != agent(warp) || to.time != now) {
        auto joined = std::make_shared<Clock>(*to.heard);
        joined->join(*seen);
        to.heard = std::move(joined);
      }
      to.agent = agent(warp);
      to.time = now;
    });
    if (order & Instruction::kRelease || part.view->released.empty()) continue;
    View fenced;
    fenced.acquire_from_weak(*part.view, first_channel_);
    release(part.lanes & lanes, fenced);
  }
  if (order & Instruction::kRelease) release(lanes, *snapshot(warp, lanes));
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
  learn_lanes(warp, lanes, number, channels_[number].count);
}

void Hazards::tensor_consumed(Warp& warp, const Issued& operation, uint32_t lanes) {
  learn_lanes(warp, lanes, operation.record.channel, operation.record.complete);
}

void Hazards::completes_in_wgmma_group(Issued& operation, uint32_t cta_rank, uint32_t first_warp, uint64_t number) {
  operation.record.channel = channel(ChannelKind::wgmma, cta_rank, first_warp);
  operation.record.complete = static_cast<uint32_t>(number);
}

/// wgmma: each warp of the four must know that the operands are there (PTX ISA: .sync.aligned brings a warp's lanes
/// together, not the warps). That another has waited is order of a kind.
void Hazards::joins(Issued& operation, const Issued& part) {
  View& view = *operation.view;
  view.done.meet(part.view->done);
  for (const auto clock : {&View::seen, &View::fenced}) (view.*clock).join((*part.view).*clock);
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

void Hazards::raise_own_copies(const Warp& warp, uint32_t lanes, Clock& clock) const {
  const Threads& threads = threads_[agent(warp)];
  if (!threads.copies) return;
  const bool all = lanes == kAllLanes;
  for (uint32_t left = lanes & warp.live; left;) {
    const uint32_t done = threads.copies_done[static_cast<size_t>(std::countr_zero(left))];
    uint32_t alike = 0;
    for_lanes(left,
              [&](int lane) { alike |= uint32_t{threads.copies_done[static_cast<size_t>(lane)] == done} << lane; });
    left &= ~alike;
    if (done) clock.raise_lanes(threads.copies, all && alike == warp.live ? kAllLanes : alike, done);
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
