#pragma once
// Vector clocks: how much of what everybody did is known to be done.
//
// An agent is a source of operations that are numbered in order: a warp (its lanes do generic accesses), or a channel
// on which asynchronous operations complete (the bytes of an mbarrier, a thread's MMAs, its bulk groups, a warp's
// tcgen05.ld). Times start at 1.

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

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

  bool empty() const { return whole_.empty() && partial_.empty(); }
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
  // PTX ISA, "Release and Acquire Patterns": a fence and then something relaxed release, something relaxed and then a
  // fence acquire. Whether the same thread does both, or two with a barrier between them, makes no difference.
  Clock released;  ///< operations with a memory fence behind them: a relaxed signal hands them over
  Clock noticed;   ///< what relaxed operations have told of: done once a memory fence follows
  std::map<uint64_t, std::shared_ptr<const View>> foreign;  ///< what is known of other clusters' agents, by cluster

  bool operator==(const View&) const = default;

  /// Synchronises with whoever released `other`.
  void acquire(const View& other) {
    done.join(other.done);
    join_rest(other, [](View& ours, const View& theirs) { ours.acquire(theirs); });
  }
  /// From a signal that is relaxed, or of too narrow a scope: it hands over what a memory fence came behind, and the
  /// completions of asynchronous operations (agents from `first_channel` on), which were visible to whoever signalled.
  void acquire_from_weak(const View& other, Agent first_channel) {
    done.join_from(other.done, first_channel);
    done.join(other.released);
    join_rest(other, [&](View& ours, const View& theirs) { ours.acquire_from_weak(theirs, first_channel); });
  }
  /// By a wait that is relaxed, or of too narrow a scope.
  void acquire_weakly(const View& other, Agent first_channel) {
    done.join_from(other.done, first_channel);
    noticed.join(other.done);
    join_rest(other, [&](View& ours, const View& theirs) { ours.acquire_weakly(theirs, first_channel); });
  }
  /// A memory fence, but for what its own thread has done.
  void fence() {
    done.join(noticed);
    released.join(done);
    for_foreign([](View& theirs) { theirs.fence(); });
  }
  template <class F>
  void for_foreign(F&& f) {
    for (auto& [cluster, known] : foreign) {
      auto changed = std::make_shared<View>(*known);
      f(*changed);
      known = std::move(changed);
    }
  }

 private:
  template <class F>
  void join_rest(const View& other, F&& join) {
    seen.join(other.seen);
    fenced.join(other.fenced);
    fenced_global.join(other.fenced_global);
    handed.join(other.handed);
    released.join(other.released);
    noticed.join(other.noticed);
    for (const auto& [cluster, theirs] : other.foreign) {
      std::shared_ptr<const View>& ours = foreign[cluster];
      if (ours == theirs) continue;
      auto joined = ours ? std::make_shared<View>(*ours) : std::make_shared<View>();
      join(*joined, *theirs);
      ours = std::move(joined);
    }
  }
};

}  // namespace emu::hazards
