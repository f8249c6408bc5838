// Telling a cluster that will go on from one that never will.

#include <algorithm>
#include <bit>

#include "emulator/machine/cluster.h"
#include "emulator/machine/grid.h"
#include "emulator/machine/mix.h"
#include "emulator/report/fault_report.h"

namespace emu {
namespace {

constexpr uint64_t kQuietCycles = 1'000'000;  // how long nothing must have happened before a loop is suspected
constexpr uint64_t kLongestCycle = 4'096;     // turns of groups after which a suspicion is given up for a while
constexpr uint64_t kLongestLapse = uint64_t{1} << 43;  // more than an hour; with those before it up to three
constexpr double kHostPatienceSeconds = 2;             // how long the host may take to write what a kernel polls for,
constexpr double kMostPatienceSeconds = 5;             // and when the kernel looks at a clock, so may give up
constexpr uint64_t kJoinCycles = 100'000;  // how long lanes wait where they meet, while others of the cluster run

}  // namespace

bool Cluster::idle() {
  only_polls_ = false;
  if (!events_.empty()) {
    // Nobody can tell how much time passes now. The random schedule keeps its times, so that time limits run out.
    if (schedule() == Schedule::random) {
      clock = std::max(clock, next_event_);
      return fire_due();
    }
    return fire_needed();
  }
  while (!limits_.empty() && limits_.front().stale()) fire_first(limits_);
  if (!limits_.empty()) {
    // Only time limits are left. When all of them ran out and nothing changed, nothing ever will; unless lanes that
    // wait to meet others have something to say, or another cluster, or the host, changes what is read from global
    // memory.
    uint64_t now = fingerprint();
    if (now != idle_fingerprint_ || effects_ != idle_effects_) {
      idle_fingerprint_ = now;
      idle_effects_ = effects_;
      idle_deadline_ = last_limit();
      idle_since_ = clock;
    }
    bool stuck = clock > idle_deadline_;
    if (stuck && release_joins(clock)) return true;
    const uint64_t until = stuck ? nothing_comes_until(idle_since_) : 0;
    const bool passed = let_time_pass(idle_since_, idle_fingerprint_, until);
    if (passed) idle_effects_ = ~uint64_t{0};  // what is known holds for the old time
    if (passed || until < Grid::kNever) {
      clock = std::max(clock, limits_.front().time);
      return fire_due();
    }
  }
  if (release_joins(clock)) return true;
  if (!polls_.empty()) {
    only_polls_ = true;
    clock = std::max(clock, polls_.front().time);
    fire_first(polls_);
    return true;
  }
  hang();
}

uint64_t Cluster::fingerprint() const {
  uint64_t hash = 0;  // without registers that hold the time, see let_time_pass
  for (const auto& cta : ctas)
    for (const auto& warp : cta->warps) {
      std::vector<const Frame*> seen;
      auto add_registers = [&](const Frame& frame) {
        if (std::find(seen.begin(), seen.end(), &frame) != seen.end()) return;
        seen.push_back(&frame);
        auto add = [&](uint32_t begin, uint32_t end) {
          for (uint32_t i = begin; i + 8 <= end; i += 8) {
            uint64_t word;
            std::memcpy(&word, frame.file() + i, 8);
            hash = (std::rotl(hash, 5) ^ word) * kGoldenRatio;
          }
        };
        add(0, frame.program->clock_values.begin);
        add(frame.program->clock_values.end, frame.program->warp_file_bytes);
      };
      for (const auto& group : warp->groups) {
        if (group->state == Group::State::free) continue;
        hash = mix(hash ^ group->pc ^ (uint64_t{group->mask} << 32));
        // What callers hold cannot change before their callee returns, which is a change of its own.
        add_registers(*group->frame);
        hash = mix(hash ^ group->frame->depth);
      }
    }
  return hash;
}

/// Lanes that run and change nothing but their own registers may be asking for something that never comes. The machine
/// is deterministic: when nothing is under way and its state comes back, it will come back for ever. The state is
/// looked at only after a long quiet time, and then ever more rarely, since a long computation is quiet too.
void Cluster::watch_for_cycle() {
  if (clock >= next_look_at_joins_) {
    if (clock > kJoinCycles) release_joins(clock - kJoinCycles);
    next_look_at_joins_ = clock + kJoinCycles / 2;
  }
  if (effects_ != quiet_effects_ || !events_.empty()) {
    quiet_effects_ = effects_;
    quiet_since_ = clock;
    next_watch_ = clock + kQuietCycles;
    cycle_.watching = false;
    return;
  }
  if (clock < next_watch_) return;
  if (!cycle_.watching) {
    cycle_ = {.watching = true, .fingerprint = 0, .steps = 0, .limit = 2, .deadline = 0};
    set_cycle_reference();
    return;
  }
  // A state that comes back while a time limit still runs says nothing: what happens when it runs out?
  if (clock > cycle_.deadline && cycle_fingerprint() == cycle_.fingerprint) {
    cycle_.watching = false;
    next_watch_ = clock + (lapse() ? kJoinCycles : kQuietCycles);
    if (release_joins(clock)) return;
    const uint64_t until = nothing_comes_until(cycle_.since);
    if (!let_time_pass(cycle_.since, cycle_.fingerprint, until)) {
      if (until == Grid::kNever) hang();
      return;
    }
    // The same state again, at the new time, is what would say that nothing has changed.
    cycle_.watching = true;
    cycle_.steps = 0;
    set_cycle_reference();
    next_watch_ = clock;
    return;
  }
  // Brent's cycle detection: the reference state moves on at powers of two.
  if (++cycle_.steps == cycle_.limit) {
    if (cycle_.limit >= kLongestCycle && clock > cycle_.deadline) {
      cycle_.watching = false;
      next_watch_ = clock + 2 * (clock - quiet_since_);
      return;
    }
    cycle_.limit *= 2;
    cycle_.steps = 0;
    if (clock > cycle_.deadline) set_cycle_reference();
  }
}

uint64_t Cluster::cycle_fingerprint() const {
  uint64_t now = fingerprint();
  for (const Group* group : ready_) now = mix(now ^ group->pc ^ group->warp->index);
  return now;
}

void Cluster::set_cycle_reference() {
  cycle_.fingerprint = cycle_fingerprint();
  cycle_.since = clock;
  cycle_.deadline = std::max(clock, last_limit());  // at the same clock nothing has been executed
}

/// When every time limit that runs now will have run out.
uint64_t Cluster::last_limit() const {
  uint64_t last = 0;
  for (const Event& limit : limits_)
    if (!limit.stale()) last = std::max(last, limit.time);
  return last;
}

/// The clock until which nothing comes from outside to a cluster that has been waiting since then. What it reads from
/// global memory, another cluster may change, or the host: the host is given time. Where the kernel looks at a clock,
/// as much as has passed for the kernel, so that a loop which gives up after a second waits a second for the host.
uint64_t Cluster::nothing_comes_until(uint64_t since) {
  if (last_outside_read_ <= since) return Grid::kNever;
  if (last_clock_read_ <= since) return grid.note_stuck(id, effects_, kHostPatienceSeconds);
  const uint64_t passed = lapse() ? clock - lapse_.began : 0;
  const double passed_s = static_cast<double>(passed) / (grid.device.chip().clock_khz * 1e3);
  return grid.note_stuck(id, effects_, std::min(passed_s, kMostPatienceSeconds));
}

/// When only the time can still change something, for a loop that reads a clock, it passes: lapses that double, so that
/// a loop which gives up after a while does so no later than after twice as long; or to `until`, where another cluster
/// has had its lapse. Nothing else could happen meanwhile, so this is what would have come anyway. False: none of it
/// may pass, or it has passed for so long that time changes nothing either.
bool Cluster::let_time_pass(uint64_t since, uint64_t state, uint64_t until) {
  if (until <= clock || last_clock_read_ <= since) return false;
  if (!lapse() || lapse_.seen.size() > kLongestCycle)
    lapse_ = {.effects = effects_, .began = clock, .since = clock, .seen = {}};
  // A state that has not been seen is progress, in registers (one wait after the other); it starts with short lapses.
  if (lapse_.seen.insert(state).second) lapse_.since = clock;
  const uint64_t passes = std::max(kQuietCycles, clock - lapse_.since);
  if (until == Grid::kNever && passes > kLongestLapse) return false;
  clock = until == Grid::kNever ? clock + passes : until;
  if (until == Grid::kNever) grid.note_time_passed(clock);
  return true;
}

void Cluster::hang() {
  throw ClusterFault{report_hang(*this)};
}

void Cluster::end_overdue() {
  throw ClusterFault{report_hang(*this, grid.device.options().time_limit_s), true};
}

}  // namespace emu
