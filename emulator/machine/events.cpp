// Asynchronous operations of a cluster: when they happen, and in what order.

#include <algorithm>
#include <utility>

#include "emulator/machine/cluster.h"
#include "emulator/machine/grid.h"
#include "emulator/machine/mix.h"

namespace emu {
namespace {

// Schedule::latest: an operation is done after so long even if somebody still runs.
constexpr uint64_t kLatestCycles = 20'000;

}  // namespace

void Cluster::push(Heap& heap, Event event) {
  next_event_ = std::min(next_event_, event.time);
  heap.push_back(std::move(event));
  std::push_heap(heap.begin(), heap.end(), std::greater<>{});
}

void Cluster::update_next_event() {
  next_event_ = ~uint64_t{0};
  for (const Heap* heap : {&events_, &limits_, &polls_})
    if (!heap->empty()) next_event_ = std::min(next_event_, heap->front().time);
}

void Cluster::fire_first(Heap& heap) {
  std::pop_heap(heap.begin(), heap.end(), std::greater<>{});
  Event event = std::move(heap.back());
  heap.pop_back();
  carry_out(std::move(event));
}

bool Cluster::may_fire(const Event& event) {
  asks_for_event_ = event.order.visible && !event_admitted_;
  return !asks_for_event_;
}

void Cluster::carry_out(Event event) {
  update_next_event();
  if (event.stale()) return;
  if (event.order.visible) event_admitted_ = false;
  current_ = event.origin;
  event.action();
  if (event.owner) --event.owner->pending_async;
}

/// Somebody waits for it: on the barrier that it signals, or for the group of copies that it is counted in.
bool Cluster::awaited(const Event& event) {
  auto waited_on = [this](uint32_t barrier) {
    const auto& waiters = cta_of(barrier).mbarrier_waiters;
    return std::any_of(waiters.begin(), waiters.end(), [&](const Group* g) { return g->wait.address == barrier; });
  };
  if (const Order::Copy& copy = event.order.copy; copy.warp) {
    const Warp& warp = *copy.warp;
    auto it =
        std::find_if(warp.copies.begin(), warp.copies.end(), [&](const PendingCopy& c) { return c.id == copy.id; });
    return it != warp.copies.end() &&
           (std::any_of(warp.groups.begin(), warp.groups.end(),
                        [&](const auto& group) {
                          return group->state == Group::State::parked && group->wait.kind == WaitKind::copy_group &&
                                 warp.copy_holds(*it, group->mask, group->wait.address);
                        }) ||
            std::any_of(warp.arrivals.begin(), warp.arrivals.end(), [&](const PendingArrival& arrival) {
              return (it->lanes >> arrival.lane & 1) && it->id <= arrival.after && waited_on(arrival.barrier);
            }));
  }
  if (const Order::Bulk& bulk = event.order.bulk; bulk.warp)
    return std::any_of(bulk.warp->groups.begin(), bulk.warp->groups.end(), [&](const auto& group) {
      if (group->state != Group::State::parked || group->wait.kind != WaitKind::bulk_group) return false;
      const BulkGroups& groups = bulk.warp->bulk.at(bulk.lane);
      const uint64_t committed = groups.oldest + groups.groups.size() - 1, allowed = group->wait.address;
      const bool reading = group->wait.parity;
      return (group->mask >> bulk.lane & 1) && bulk.group + allowed < committed && (bulk.reads || !reading);
    });
  return event.order.signal && waited_on(event.order.signal);
}

/// Everybody waits: the schedule `latest` lets happen only what somebody waits for, and what must come before it. So a
/// result that nobody asked for stays out until the very end, and a source that nobody guards is read after it was
/// overwritten.
bool Cluster::fire_needed() {
  const Event* needed = nullptr;
  for (const Event& event : events_)
    if (awaited(event) && (!needed || *needed > event)) needed = &event;
  if (!needed) {
    // Nobody asks for anything under way: who only sleeps, or waits with a limit, goes on first.
    while (!limits_.empty() && limits_.front().stale()) fire_first(limits_);
    if (!limits_.empty()) {
      clock = std::max(clock, limits_.front().time);
      return fire_due();
    }
    if (!may_fire(events_.front())) return false;
    fire_first(events_);
    return true;
  }
  return carry_out_chain(needed->order, needed->sequence);
}

/// The event whose sequence number is `last`, behind all that must come before it.
bool Cluster::carry_out_chain(Order order, uint64_t last) {
  auto due = [&](const Event& event) {
    if (event.sequence == last) return true;
    return (order.chain && event.order.chain == order.chain && event.sequence < last) ||
           (order.after_chain && event.order.chain == order.after_chain && event.sequence <= order.after);
  };
  // Each globally visible one must be admitted: the first that is not ends what can happen now.
  uint64_t first_barred = ~uint64_t{0}, first_visible = ~uint64_t{0};
  for (const Event& event : events_)
    if (event.order.visible && due(event)) first_visible = std::min(first_visible, event.sequence);
  for (const Event& event : events_)
    if (event.order.visible && due(event) && !(event_admitted_ && event.sequence == first_visible))
      first_barred = std::min(first_barred, event.sequence);
  Heap now;
  std::erase_if(events_, [&](Event& event) {
    if (!due(event) || event.sequence >= first_barred) return false;
    now.push_back(std::move(event));
    return true;
  });
  asks_for_event_ = now.empty();
  if (now.empty()) return false;
  std::make_heap(events_.begin(), events_.end(), std::greater<>{});
  std::sort(now.begin(), now.end(), [](const Event& a, const Event& b) { return a.sequence < b.sequence; });
  for (Event& event : now) carry_out(std::move(event));
  return true;
}

bool Cluster::fire_due() {
  while (next_event_ <= clock) {
    // Operations before limits before polls at the same time: a wait that can succeed does.
    Heap* first = nullptr;
    for (Heap* heap : {&events_, &limits_, &polls_})
      if (!heap->empty() && (!first || heap->front().time < first->front().time)) first = heap;
    if (!may_fire(first->front())) return false;
    fire_first(*first);
  }
  return true;
}

uint64_t Cluster::draw() {
  return mix(grid.device.options().seed ^ mix(id ^ mix(draws_++)));
}

Schedule Cluster::schedule() const {
  return grid.device.options().schedule;
}

/// Log-uniform up to 4096 cycles: operations overtake each other at every scale. One in 32 is very late.
uint64_t Cluster::random_delay() {
  const uint64_t r = draw();
  const uint64_t scale = uint64_t{1} << (r % 13);
  const uint64_t delay = (r >> 8) % scale;
  return (r >> 40) % 32 == 0 ? delay + 4 * 4096 : delay;
}

Cluster::Times Cluster::draw_times(uint64_t not_before) {
  uint64_t read = clock, show = clock;
  switch (schedule()) {
    case Schedule::earliest:
      break;
    case Schedule::latest:
      read = show = clock + kLatestCycles;
      break;
    case Schedule::random:
      read = clock + random_delay();
      show = read + random_delay();
      break;
  }
  read = std::max(read, not_before);
  return {read, std::max(read, show)};
}

uint64_t Cluster::at(uint64_t time, Cta& owner, const Origin& origin, Order order, std::function<void()> action) {
  if (time <= clock && schedule() == Schedule::earliest) {
    Origin outer = std::exchange(current_, origin);
    action();
    current_ = outer;
    return sequence_++;
  }
  ++owner.pending_async;
  push(events_, {time, sequence_, &owner, origin, std::move(action), order});
  return sequence_++;
}

}  // namespace emu
