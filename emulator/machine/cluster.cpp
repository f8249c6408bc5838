#include "emulator/machine/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "emulator/isa/tensor_access.h"
#include "emulator/machine/grid.h"
#include "emulator/machine/mbarrier.h"
#include "emulator/report/fault_report.h"

namespace emu {
namespace {

constexpr uint32_t kQuantum = 64;  // warp instructions a group runs before the next one has its turn
constexpr uint64_t kLatestCycles =
    20'000;  // Schedule::latest: an operation is done after this long even if somebody still runs
constexpr uint64_t kPollCycles = 1'000;       // how often a blocked tcgen05.alloc looks again
constexpr uint64_t kQuietCycles = 1'000'000;  // how long nothing must have happened before a loop is suspected
constexpr uint64_t kLongestCycle = 4'096;     // turns of groups after which a suspicion is given up for a while
constexpr double kHostPatienceSeconds = 2;    // how long the host may take to write what a kernel polls for
constexpr uint64_t kFirstGolden = 0x9E3779B97F4A7C15ull;

// SplitMix64's finaliser (Steele, Lea, Flood 2014): every input bit moves every output bit.
uint64_t mix(uint64_t x) {
  x += kFirstGolden;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

}  // namespace

Cluster::Cluster(Grid& grid_, uint64_t id_) : grid(grid_), id(id_) {}
Cluster::~Cluster() = default;

// ---- events
// -----------------------------------------------------------------------------------------------------------

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

void Cluster::carry_out(Event event) {
  update_next_event();
  current_ = event.origin;
  event.action();
  if (event.owner) --event.owner->pending_async;
}

/// Everybody waits: the schedule `latest` lets happen only what somebody waits for, and what must come before it. So a
/// result that nobody asked for stays out until the very end, and a source that nobody guards is read after it was
/// overwritten.
void Cluster::fire_needed() {
  auto awaited = [this](uint32_t signal) {
    if (!signal) return false;
    const auto& waiters = cta_of(signal).mbarrier_waiters;
    return std::any_of(waiters.begin(), waiters.end(), [&](const Group* g) { return g->wait.address == signal; });
  };
  const Event* needed = nullptr;
  for (const Event& event : events_)
    if (awaited(event.order.signal) && (!needed || *needed > event)) needed = &event;
  if (!needed) {
    fire_first(events_);
    return;
  }
  uint64_t chain = needed->order.chain, last = needed->sequence;
  auto due = [&](const Event& event) {
    return event.sequence == last || (chain && event.order.chain == chain && event.sequence < last);
  };
  Heap now;
  std::erase_if(events_, [&](Event& event) {
    if (!due(event)) return false;
    now.push_back(std::move(event));
    return true;
  });
  std::make_heap(events_.begin(), events_.end(), std::greater<>{});
  std::sort(now.begin(), now.end(), [](const Event& a, const Event& b) { return a.sequence < b.sequence; });
  for (Event& event : now) carry_out(std::move(event));
}

void Cluster::fire_due() {
  while (next_event_ <= clock) {
    // Operations before limits before polls at the same time: a wait that can succeed does.
    Heap* first = nullptr;
    for (Heap* heap : {&events_, &limits_, &polls_})
      if (!heap->empty() && (!first || heap->front().time < first->front().time)) first = heap;
    fire_first(*first);
  }
}

uint64_t Cluster::draw() {
  return mix(grid.device.options().seed ^ mix(id ^ mix(draws_++)));
}

Schedule Cluster::schedule() const {
  return grid.device.options().schedule;
}

Cluster::Times Cluster::draw_times(uint64_t not_before) {
  uint64_t read = clock, show = clock;
  switch (schedule()) {
    case Schedule::earliest:
      break;
    case Schedule::latest:
      read = show = clock + kLatestCycles;
      break;
    case Schedule::random: {
      // Log-uniform up to 4096 cycles: operations overtake each other at every scale. One in 32 is very late.
      auto delay = [this] {
        uint64_t r = draw();
        uint64_t scale = uint64_t{1} << (r % 13);
        uint64_t d = (r >> 8) % scale;
        return (r >> 40) % 32 == 0 ? d + 4 * 4096 : d;
      };
      read = clock + delay();
      show = read + delay();
      break;
    }
  }
  read = std::max(read, not_before);
  return {read, std::max(read, show)};
}

void Cluster::at(uint64_t time, Cta& owner, const Origin& origin, Order order, std::function<void()> action) {
  if (time <= clock && schedule() == Schedule::earliest) {
    Origin outer = std::exchange(current_, origin);
    action();
    current_ = outer;
    return;
  }
  ++owner.pending_async;
  push(events_, {time, sequence_++, &owner, origin, std::move(action), order});
}

// ---- the loop
// ---------------------------------------------------------------------------------------------------------

void Cluster::start() {
  live_ctas_ = static_cast<uint32_t>(ctas.size());
  for (auto& cta : ctas) {
    cta->start();
    for (auto& warp : cta->warps) {
      Group* group = warp->new_group(0, warp->live, {});
      group->state = Group::State::ready;
      ready_.push_back(group);
    }
    trace({cta->rank, 0, 0, -1}, "cta_start", cta->index.x, cta->index.y);
  }
}

Group* Cluster::next_group() {
  size_t pick = 0;
  if (schedule() == Schedule::random && ready_.size() > 1) pick = draw() % ready_.size();
  std::swap(ready_[0], ready_[pick]);
  Group* group = ready_.front();
  ready_.pop_front();
  return group;
}

Cluster::Stop Cluster::run(bool admitted) {
  try {
    if (ctas.empty() || !ctas[0]->started()) start();
    if (admitted) ready_.front()->admitted = true;
    while (true) {
      if (next_event_ <= clock) fire_due();
      if (ready_.empty()) {
        if (live_ctas_ == 0 && events_.empty()) return Stop::finished;
        idle();
        continue;
      }
      Group* group = admitted ? ready_.front() : next_group();
      if (admitted) ready_.pop_front();
      admitted = false;
      uint32_t quantum = schedule() == Schedule::random ? 1 + draw() % kQuantum : kQuantum;
      if (!run_group(*group, quantum)) {
        ready_.push_front(group);
        return Stop::needs_admission;
      }
      if (grid.stopping()) return Stop::needs_admission;
      watch_for_cycle();
    }
  } catch (const Trap& trap) {
    throw ClusterFault{static_cast<int>(trap.code), report_trap(*this, current_, trap)};
  }
}

void Cluster::idle() {
  only_polls_ = false;
  if (!events_.empty()) {
    // Nobody can tell how much time passes now. The random schedule keeps its times, so that time limits run out.
    if (schedule() == Schedule::random) {
      clock = std::max(clock, next_event_);
      fire_due();
    } else {
      fire_needed();
    }
    return;
  }
  while (!limits_.empty() && limits_.front().stale()) fire_first(limits_);
  if (!limits_.empty()) {
    // Only time limits are left. When all of them ran out and nothing changed, nothing ever will.
    uint64_t now = fingerprint();
    if (now != idle_fingerprint_ || effects_ != idle_effects_) {
      idle_fingerprint_ = now;
      idle_effects_ = effects_;
      idle_deadline_ = 0;
      for (const Event& limit : limits_)
        if (!limit.stale()) idle_deadline_ = std::max(idle_deadline_, limit.time);
    }
    if (clock <= idle_deadline_) {
      clock = std::max(clock, limits_.front().time);
      fire_due();
      return;
    }
  }
  if (release_joins()) return;
  if (!polls_.empty()) {
    only_polls_ = true;
    clock = std::max(clock, polls_.front().time);
    fire_first(polls_);
    return;
  }
  hang();
}

uint64_t Cluster::fingerprint() const {
  uint64_t hash = 0;
  for (const auto& cta : ctas)
    for (const auto& warp : cta->warps) {
      for (const auto& group : warp->groups)
        if (group->state != Group::State::free) hash = mix(hash ^ group->pc ^ (uint64_t{group->mask} << 32));
      const std::byte* file = warp->file();
      for (uint32_t i = 0; i + 8 <= warp->file_bytes(); i += 8) {
        uint64_t word;
        std::memcpy(&word, file + i, 8);
        hash = (std::rotl(hash, 5) ^ word) * kFirstGolden;
      }
    }
  return hash;
}

/// Lanes that run and change nothing but their own registers may be asking for something that never comes. The machine
/// is deterministic: when nothing is under way and its state comes back, it will come back for ever. The state is
/// looked at only after a long quiet time, and then ever more rarely, since a long computation is quiet too.
void Cluster::watch_for_cycle() {
  if (effects_ != quiet_effects_ || !events_.empty()) {
    quiet_effects_ = effects_;
    quiet_since_ = clock;
    next_watch_ = clock + kQuietCycles;
    cycle_.watching = false;
    return;
  }
  if (clock < next_watch_) return;
  uint64_t now = fingerprint();
  for (const Group* group : ready_) now = mix(now ^ group->pc ^ group->warp->index);
  if (!cycle_.watching) {
    cycle_ = {.watching = true, .fingerprint = now, .steps = 0, .limit = 2};
    return;
  }
  if (now == cycle_.fingerprint) {
    cycle_.watching = false;
    next_watch_ = clock + kQuietCycles;
    // Another cluster, or the host, may still change what is read from global memory.
    if (!asks_outside_ || grid.note_stuck(id, effects_, kHostPatienceSeconds)) hang();
    return;
  }
  // Brent's cycle detection: the reference state moves on at powers of two.
  if (++cycle_.steps == cycle_.limit) {
    if (cycle_.limit >= kLongestCycle) {
      cycle_.watching = false;
      next_watch_ = clock + 2 * (clock - quiet_since_);
      return;
    }
    cycle_.fingerprint = now;
    cycle_.limit *= 2;
    cycle_.steps = 0;
  }
}

bool Cluster::run_group(Group& group, uint32_t quantum) {
  Warp& warp = *group.warp;
  const Program& program = warp.program;
  Group* running = &group;
  warp.group = running;
  while (true) {
    const Instruction& instruction = program.code[running->pc];
    if (instruction.aligned && running->mask != warp.live) {
      if (!gather(warp, warp.live, WaitKind::aligned)) return true;
      running = warp.group;
    }
    uint32_t active = running->mask;
    if (instruction.guard.present()) active &= warp.predicate(instruction.guard);
    current_ = {warp.cta.rank, warp.index, instruction.source, active ? std::countr_zero(active) : -1};
    if (active == 0) {
      ++running->pc;
    } else {
      if (instruction.visible && !running->admitted) return false;
      running->admitted = false;
      if (!warp.pending.empty() && !instruction.drains) resolve_tensor_dependencies(warp, instruction);
      if (instruction.aligned && active != warp.live)
        throw Trap(
            FaultCode::illegal_instruction,
            fmt::format("an .aligned instruction whose guard is true for some lanes only (lanes {:#010x} of {:#010x}): "
                        "all lanes of the warp must execute it together",
                        active, warp.live),
            "PTX ISA, .aligned: all threads in the warp must execute the same instruction");
      asks_outside_ = asks_outside_ || instruction.visible;
      warp.active = active;
      ++warp.counters.instructions;
      ++clock;
      Flow flow = instruction.execute(warp, instruction);
      if (flow == Flow::next) {
        ++running->pc;
      } else if (flow != Flow::jump) {
        return true;
      }
    }
    if (!running->joins.empty()) {
      arrive_at_joins(warp, running);
      if (!running) return true;
    }
    if (clock >= next_event_ || --quantum == 0) {
      running->state = Group::State::ready;
      ready_.push_back(running);
      return true;
    }
  }
}

// ---- waiting and waking ---------------------------------------------------------------------------------------------

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

void Cluster::retire_lanes(Warp& warp, uint32_t lanes) {
  warp.live &= ~lanes;
  note_effect();
  for (uint32_t join = 0; join < warp.joins.size(); ++join) {
    if (!(warp.joins[join].expected & lanes)) continue;
    warp.joins[join].expected &= ~lanes;
    warp.joins[join].arrived &= ~lanes;
    settle_join(warp, join);
  }
  Cta& cta = warp.cta;
  if (warp.live == 0) {
    --cta.live_warps;
    if (cta.live_warps == 0) {
      if (uint32_t columns = cta.tensor_memory.held_by(cta.owner))
        throw Trap(FaultCode::launch_failure,
                   fmt::format(
                       "the CTA ends with {} columns of tensor memory still allocated: tcgen05.dealloc them before the "
                       "kernel ends, or the next CTA on this SM blocks in tcgen05.alloc",
                       columns),
                   "PTX ISA, tcgen05.dealloc: all allocated tensor memory must be freed before the kernel exits");
      --live_ctas_;
      trace({cta.rank, 0, 0, -1}, "cta_exit");
    }
  } else {
    for (auto& group : warp.groups)
      if (group->state == Group::State::parked &&
          (group->wait.kind == WaitKind::aligned || group->wait.kind == WaitKind::lanes))
        gathered(warp, *group);
  }
  for (uint32_t number = 0; number < cta.barriers.size(); ++number)
    if (cta.barriers[number].everyone) barrier_check(cta, number);
}

// ---- memory doors
// -----------------------------------------------------------------------------------------------------

Cta& Cluster::cta_of(uint32_t address) {
  uint32_t rank = shared_rank(address);
  if (rank >= ctas.size())
    throw Trap(FaultCode::illegal_address,
               fmt::format("shared address {:#010x} names CTA {} of a cluster of {}", address, rank, ctas.size()),
               "shared::cluster addresses: CTA rank in bits 31-24");
  return *ctas[rank];
}

std::byte* Cluster::shared(uint32_t address, uint64_t bytes, Access access) {
  Cta& cta = cta_of(address);
  uint32_t offset = shared_offset(address);
  uint32_t reserved = grid.device.chip().shared_reserved_bytes;
  if (offset < reserved || offset + bytes > cta.window_bytes)
    throw Trap(
        FaultCode::illegal_address,
        fmt::format("{} of {} bytes at shared address {:#x}: the CTA's shared memory is {:#x} to {:#x} ({} bytes)",
                    access == Access::read ? "read" : "write", bytes, address, reserved, cta.window_bytes - 1,
                    cta.window_bytes - reserved),
        "PTX ISA, shared state space");
  if (cta.window.empty())
    throw Trap(FaultCode::illegal_address,
               fmt::format("shared memory of CTA {} of the cluster is used after that CTA exited", cta.rank),
               "PTX ISA, shared::cluster: the CTA must be running");
  if (access != Access::read) note_effect();
  return cta.window.data() + offset;
}

const std::byte* Cluster::grid_parameters() const {
  return grid.parameters();
}

GlobalMemory& Cluster::global() {
  return grid.device.memory();
}

std::byte* Cluster::local(Warp& warp, int lane, uint64_t offset, uint64_t bytes) {
  uint32_t size = warp.program.local_bytes;
  if (offset + bytes > size || offset + bytes < offset)
    throw Trap(FaultCode::illegal_address,
               fmt::format("access of {} bytes at local offset {:#x}: the thread has {} bytes of local memory", bytes,
                           offset, size),
               "PTX ISA, local state space");
  size_t thread = size_t{warp.index} * kLanes + static_cast<size_t>(lane);
  return warp.cta.local.data() + thread * size + offset;
}

std::byte* Cluster::generic(Warp& warp, int lane, uint64_t address, uint64_t bytes, Access access) {
  if (is_shared(address)) return shared(static_cast<uint32_t>(address - kSharedWindow), bytes, access);
  if (is_local(address)) return local(warp, lane, address - kLocalWindow, bytes);
  if (access != Access::read) note_effect();
  return global().door(address, bytes, access);
}

// ---- reports
// ----------------------------------------------------------------------------------------------------------

Origin Cluster::origin(const Warp& warp, int lane) const {
  uint32_t source =
      warp.group ? warp.program.code[std::min<size_t>(warp.group->pc, warp.program.code.size() - 1)].source : 0;
  return {warp.cta.rank, warp.index, source, lane};
}

void Cluster::trace(const Origin& origin, const char* event, uint64_t a, uint64_t b) {
  if (grid.device.options().trace_path.empty()) return;
  trace_text +=
      fmt::format("{} {} {} {} {} {} {:#x} {:#x}\n", clock, id, origin.cta_rank, origin.warp, origin.lane, event, a, b);
}

void Cluster::hang() {
  throw ClusterFault{static_cast<int>(FaultCode::launch_timeout), report_hang(*this)};
}

}  // namespace emu
