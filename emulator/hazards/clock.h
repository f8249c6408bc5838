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
  /// Agents from `first` on only.
  void join_from(const Clock& other, Agent first);

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
  Clock fenced_global;     ///< ... for global memory
  Clock handed;            ///< tcgen05 operations with a tcgen05.fence::before_thread_sync behind them ...
  Foreign foreign;         ///< what is known of other clusters' agents
  Foreign foreign_fenced;  ///< ... with a proxy fence for global memory behind it
  Foreign foreign_seen;    ///< by any order at all: of their views `seen`
  Clock taken;             ///< ... and behind that, in this thread, a tcgen05.fence::after_thread_sync

  /// Synchronises with whoever released `other`.
  void acquire(const View& other) {
    done.join(other.done);
    seen.join(other.seen);
    fenced.join(other.fenced);
    fenced_global.join(other.fenced_global);
    handed.join(other.handed);
    foreign.join(other.foreign);
    foreign_fenced.join(other.foreign_fenced);
    foreign_seen.join(other.foreign_seen);
  }
  /// The same where the scope is too narrow or the operation relaxed. Completions of asynchronous operations (agents
  /// from `first_channel` on) are known all the same: they were visible to whoever signalled.
  void acquire_weakly(const View& other, Agent first_channel) {
    done.join_from(other.done, first_channel);
    seen.join(other.seen);
    handed.join(other.handed);
  }
};

}  // namespace emu::hazards
