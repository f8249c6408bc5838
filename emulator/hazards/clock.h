#pragma once
// Vector clocks: how much of what everybody did is known to be done.
//
// An agent is a source of operations that are numbered in order: a warp (its lanes do generic accesses), or a channel
// on which asynchronous operations complete (the bytes of an mbarrier, a thread's MMAs, its bulk groups, a warp's
// tcgen05.ld). Times start at 1.

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "emulator/hazards/foreign.h"

namespace emu::hazards {

using Agent = uint32_t;

class Clock {
 public:
  /// Is what `lane` of `agent` had done by `time` known? Channels without lanes: any lane.
  bool covers(Agent agent, uint32_t lane, uint32_t time) const {
    if (agent < whole_.size() && time <= whole_[agent]) return true;
    return !partial_.empty() && partly_covers(agent, lane, time);
  }
  bool covers_lanes(Agent agent, uint32_t lanes, uint32_t time) const;

  void raise(Agent agent, uint32_t time);
  void raise_lanes(Agent agent, uint32_t lanes, uint32_t time);
  void join(const Clock& other) { join_from(other, 0); }
  /// Only what both know.
  void meet(const Clock& other);
  /// Agents from `first` on only.
  void join_from(const Clock& other, Agent first);

  bool empty() const { return whole_.empty() && partial_.empty(); }
  /// Whether joining `other` would change nothing.
  bool includes(const Clock& other) const;

  bool operator==(const Clock&) const = default;

 private:
  using Times = std::array<uint32_t, 32>;
  bool partly_covers(Agent agent, uint32_t lane, uint32_t time) const;
  Times& times_of(Agent agent);
  void settle(Agent agent);

  std::vector<uint32_t> whole_;                   ///< of all lanes
  std::vector<std::pair<Agent, Times>> partial_;  ///< where lanes differ; by agent
};

/// What a thread knows, or what was known when a barrier was signalled.
struct View {
  Clock done;    ///< operations that are complete, and seen to be by an order that the PTX memory model gives
  Clock seen;    ///< the same by any order at all: relaxed operations, too narrow a scope, lanes that ran together
  Clock fenced;  ///< generic accesses with a proxy fence behind them, for shared memory
  Clock fenced_global;  ///< ... for global memory
  Clock handed;         ///< tcgen05 operations with a tcgen05.fence::before_thread_sync behind them ...
  Clock taken;          ///< ... and behind that, in this thread, a tcgen05.fence::after_thread_sync
  Clock handed_async;   ///< generic accesses with a fence.proxy.async::generic.release behind them ...
  Clock taken_async;    ///< ... and behind that, in this thread, an .acquire: done, if only for its async accesses
  // PTX ISA, "Release and Acquire Patterns": a fence and then something relaxed release, something relaxed and then a
  // fence acquire. Whether the same thread does both, or two with a barrier between them, makes no difference.
  Clock released;       ///< operations with a memory fence behind them: a relaxed signal hands them over
  Clock released_wide;  ///< ... to other clusters, where the fence's scope holds them
  Clock noticed;        ///< what relaxed operations have told of: done once a memory fence follows
  // The same of other clusters' agents.
  Foreign foreign;           ///< done
  Foreign foreign_seen;      ///< by any order at all
  Foreign foreign_fenced;    ///< with a proxy fence for global memory behind it
  Foreign foreign_released;  ///< with a memory fence behind it, of a scope that holds other clusters
  Foreign foreign_noticed;   ///< ... or not yet

  bool operator==(const View&) const = default;

  /// Synchronises with whoever released `other`.
  void acquire(const View& other) {
    done.join(other.done);
    foreign.join(other.foreign);
    join_rest(other);
  }
  /// From a signal that is relaxed, or of too narrow a scope: it hands over what a memory fence came behind, and the
  /// completions of asynchronous operations (agents from `first_channel` on), which were visible to whoever signalled.
  void acquire_from_weak(const View& other, Agent first_channel) {
    done.join_from(other.done, first_channel);
    done.join(other.released);
    foreign.join(other.foreign_released);
    join_rest(other);
  }
  /// By a wait that is relaxed, or of too narrow a scope.
  void acquire_weakly(const View& other, Agent first_channel) {
    done.join_from(other.done, first_channel);
    notice(other);
  }
  /// What a relaxed operation has told.
  void notice(const View& other) {
    noticed.join(other.done);
    foreign_noticed.join(other.foreign);
    join_rest(other);
  }
  /// A memory fence, but for what its own thread has done. `wide`: its scope holds other clusters.
  void fence(bool wide) {
    done.join(noticed);
    released.join(done);
    if (!wide) return;
    released_wide.join(done);
    foreign.join(foreign_noticed);
    foreign_released.join(foreign);
  }

 private:
  void join_rest(const View& other) {
    for (const auto clock : {&View::seen, &View::fenced, &View::fenced_global, &View::handed, &View::handed_async,
                             &View::released, &View::released_wide, &View::noticed})
      (this->*clock).join(other.*clock);
    for (const auto part :
         {&View::foreign_seen, &View::foreign_fenced, &View::foreign_released, &View::foreign_noticed})
      (this->*part).join(other.*part);
  }
};

}  // namespace emu::hazards
