#pragma once
// A cluster of CTAs (one CTA where none was asked for) and the discrete-event loop that runs it.
//
// A cluster has a virtual clock: one tick per warp instruction, plus jumps to the next event when every group waits.
// Asynchronous operations are events: each reads its sources at one time and shows its result at a later one, as the
// schedule says. Clusters know of each other only through operations that are globally visible; before such an
// instruction `run` returns, and the grid lets it pass in (clock, cluster) order. So a run depends on the seed and not
// on the number of host threads.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "emulator/machine/address.h"
#include "emulator/machine/cta.h"
#include "emulator/machine/mbarrier.h"
#include "emulator/machine/options.h"

namespace emu {

class Grid;
namespace hazards {
class Hazards;
}

/// Who issued something, for reports.
struct Origin {
  uint32_t cta_rank = 0, warp = 0, source = 0;
  int lane = -1;  ///< -1: the warp
};

class Cluster {
 public:
  Cluster(Grid& grid, uint64_t id);
  ~Cluster();
  Cluster(const Cluster&) = delete;

  enum class Stop : uint8_t {
    needs_admission,  ///< the next instruction is globally visible
    finished,         ///< all CTAs have exited and nothing is under way
  };
  /// Runs until it must stop. `admitted`: the globally visible instruction it stopped at may pass. Throws Fault reports
  /// as ClusterFault.
  Stop run(bool admitted);

  Grid& grid;
  const uint64_t id;
  uint64_t clock = 0;
  /// The clock as others may see it while this cluster runs: it will do nothing visible before.
  std::atomic<uint64_t> published_clock{0};
  std::vector<std::unique_ptr<Cta>> ctas;

  /// The rules that the cluster's accesses are held to; nullptr: nobody asked (LADDER_CHECK).
  std::unique_ptr<hazards::Hazards> hazards;

  // ---- memory doors -------------------------------------------------------------------------------------------------
  /// The bytes behind a shared::cluster address (own shared::cta addresses are such). Throws Trap.
  std::byte* shared(uint32_t address, uint64_t bytes, Access access);
  Cta& cta_of(uint32_t shared_address);
  /// A CTA of several that has ended. (What a lone CTA leaves under way in its own shared memory harms no other here.)
  bool gone(const Cta& cta) const { return ctas.size() > 1 && cta.exited(); }
  /// Something that the chip lets pass, and that is probably a mistake: see Device::remark().
  void remark(const Origin& who, const std::string& what);
  /// True when the CTA is gone, and a store or an arrive by `who` that comes this late reaches nobody: an H200 drops
  /// it, and so does the emulator, with a remark; with LADDER_STRICT it throws Trap. `what`: "a remote arrive".
  bool drops(const Cta& cta, const Origin& who, const char* what);
  /// Bytes behind a generic address, for one lane of `warp`.
  std::byte* generic(Warp& warp, int lane, uint64_t address, uint64_t bytes, Access access);
  std::byte* local(Warp& warp, int lane, uint64_t offset, uint64_t bytes);
  GlobalMemory& global();

  // ---- asynchronous operations --------------------------------------------------------------------------------------
  struct Times {
    uint64_t read, show;
  };
  /// When an operation issued now reads and shows; neither before `not_before`.
  Times draw_times(uint64_t not_before = 0);
  /// How an operation depends on others, and who can tell that it is done.
  struct Order {
    uint64_t chain = 0;    ///< operations of one chain happen in the order of issue; 0: in no chain
    uint32_t signal = 0;   ///< the mbarrier (shared::cluster address) that it signals; 0: none
    bool visible = false;  ///< it combines with what others left in global memory: admitted like such an instruction
    /// An operation of another chain that it comes after, with all that precede that one in its chain.
    uint64_t after_chain = 0, after = 0;
    /// The bulk group of a thread that it is counted in: as a read of its source, or as the write of its result.
    struct Bulk {
      const Warp* warp = nullptr;  ///< nullptr: none
      uint32_t lane = 0;
      uint64_t group = 0;
      bool reads = false;
    } bulk = {};
    /// The cp.async of a warp that it carries out.
    struct Copy {
      const Warp* warp = nullptr;  ///< nullptr: none
      uint64_t id = 0;
    } copy = {};
  };
  uint64_t new_chain() { return ++chains_; }
  /// Runs `action` when the clock reaches `time`: at once when it has. `owner`: the CTA whose memory it uses. Returns
  /// the operation's number, for Order::after.
  uint64_t at(uint64_t time, Cta& owner, const Origin& origin, Order order, std::function<void()> action);
  /// A random number keyed by (seed, cluster, number of the draw).
  uint64_t draw();
  Schedule schedule() const;

  // ---- waiting and waking -------------------------------------------------------------------------------------------
  /// Parks the running group (or, when `lanes` is only a part of it, a new group of those lanes that will execute
  /// `resume_pc` next); fills wait.since and wait.pc.
  Group& park(Warp& warp, uint32_t lanes, const Wait& wait, uint32_t resume_pc);
  /// `how`, for the trace: "resumed", or "gave_up" where a time limit ended the wait.
  void wake(Group& group, const char* how = "resumed");
  /// The parked group asks again later: its instruction waits for another cluster (tcgen05.alloc).
  void poll_later(Group& group);
  /// try_wait with a time limit: wakes the group with result false after `cycles`, unless it was woken before.
  void wake_later(Group& group, uint64_t cycles);

  // mbarriers: `address` is a shared::cluster address of an 8-byte aligned word.
  uint64_t mbarrier_word(uint32_t address, Access access);
  uint32_t last_mbarrier = 0;  ///< whose word was asked for last: the one that a mbarrier::Fault is about
  /// Stores the word and, when a phase was completed, wakes who waits for it.
  void mbarrier_store(uint32_t address, uint64_t word, bool phase_completed);
  /// Remembers who signals the barrier, before mbarrier_store() has the new word; `what` is a literal ("arrive",
  /// "bytes", "commit").
  void mbarrier_signal(uint32_t address, const Origin& who, const char* what);
  /// Remembers that these lanes of a warp of its CTA have asked in vain whether the phase of `parity` is over.
  void mbarrier_asked(uint32_t address, const Warp& warp, uint32_t lanes, uint32_t parity);
  /// Remembers that these lanes' wait on the barrier has ended.
  void mbarrier_passed(uint32_t address, const Warp& warp, uint32_t lanes);

  /// An mbarrier operation on another CTA's barrier: asynchronous, in the order in which the CTA's threads issued them.
  void mbarrier_remotely(Warp& warp, int lane, uint32_t address, const char* what,
                         std::function<mbarrier::Outcome(uint64_t)> operation);
  /// Carries out what mbarrier_remotely() has under way for the CTA: its thread releases to others.
  void complete_remote(Cta& cta);

  void barrier_arrive(Warp& warp, uint32_t barrier, uint32_t lanes);
  void barrier_lanes_left(Warp& warp);  ///< lanes exited: perhaps those that a barrier with a count misses
  void barrier_check(Cta& cta, uint32_t barrier);

  // The cluster barrier (cluster_barrier.cpp). PTX ISA, "barrier.cluster".
  /// Both return those of the running group's `lanes` that are parked now: to wait for the other lanes of their warp,
  /// or for the other warps.
  uint32_t cluster_arrive(Warp& warp, uint32_t lanes, uint32_t resume_pc);
  uint32_t cluster_wait(Warp& warp, uint32_t lanes, uint32_t resume_pc);
  void cluster_lanes_left(Warp& warp);
  bool arrived_at_cluster_barrier(const Warp& warp) const {
    return (warp.live & ~warp.cta.cluster_arrivals[warp.index].arrived) == 0;
  }

  /// The group has no lanes any more.
  void discard(Group& group) { free_group(group); }
  /// Called by exit: these lanes of the warp are gone.
  void retire_lanes(Warp& warp, uint32_t lanes);

  /// Something happened that another group could notice (used to tell a wait that will end from one that will not).
  void note_effect() { ++effects_, last_effect_ = clock; }
  uint64_t last_effect() const { return last_effect_; }  ///< clock
  /// The running group read what another cluster, or the host, could change.
  void note_outside_read() { last_outside_read_ = clock; }
  /// For the running group.
  uint64_t read_clock() { return last_clock_read_ = clock; }

  /// A line of LADDER_TRACE (report/trace_file.h says what the events are), when somebody asked for it.
  void trace(const Origin& origin, const char* event, std::initializer_list<uint64_t> values = {},
             std::span<const int32_t> coordinates = {});
  /// A number for an asynchronous operation, by which the trace knows it again.
  uint64_t new_operation() { return ++operations_; }
  Origin origin(const Warp& warp, int lane = -1) const;
  /// Faults from here on are this one's, until the next instruction. Returns whose they were.
  Origin act_as(const Origin& origin) { return std::exchange(current_, origin); }

  std::string trace_text;
  std::set<uint32_t> traced_sources;  ///< instructions that it names

  /// Operations in flight, for the counters.
  void load_started(uint64_t bytes) {
    most_loads_in_flight = std::max(most_loads_in_flight, ++loads_in_flight);
    most_bytes_in_flight = std::max(most_bytes_in_flight, bytes_in_flight += bytes);
  }
  void load_ended(uint64_t bytes) {
    --loads_in_flight;
    bytes_in_flight -= bytes;
  }
  void mma_started() { most_mmas_in_flight = std::max(most_mmas_in_flight, ++mmas_in_flight); }
  void mma_ended() { --mmas_in_flight; }
  uint64_t loads_in_flight = 0, most_loads_in_flight = 0, mmas_in_flight = 0, most_mmas_in_flight = 0;
  uint64_t bytes_in_flight = 0, most_bytes_in_flight = 0;  ///< on their way into shared memory

  /// Where the launch's parameters lie, so that traces can name a tensor map by its offset.
  const std::byte* grid_parameters() const;

  /// Time that has passed in vain: see let_time_pass. It counts while `effects` stays what it is.
  struct Lapse {
    uint64_t effects = ~uint64_t{0}, began = 0, since = 0;  ///< began, since: clock
    std::set<uint64_t> seen;                                ///< fingerprints
  };
  const Lapse* lapse() const { return lapse_.effects == effects_ ? &lapse_ : nullptr; }

  bool finished() const { return live_ctas_ == 0; }

  // ---- lanes parting and meeting (divergence.cpp) -------------------------------------------------------------------
  /// Parts the running group: `taken` lanes go to `target`, the others stay behind the branch.
  Flow diverge(Warp& warp, const Instruction& instruction, uint32_t taken, uint32_t target);
  /// Makes `lanes` of the running group a group of their own at `pc`; they meet the rest at `reconverge`.
  Group& split(Warp& warp, uint32_t lanes, uint32_t pc, uint32_t reconverge);
  /// split(), for lanes that may stand where they meet the rest already.
  void part(Warp& warp, uint32_t lanes, uint32_t pc, uint32_t reconverge);
  /// Lanes of the running group return from its frame's function.
  Flow return_lanes(Warp& warp, uint32_t lanes, uint32_t reconverge);
  /// Gathers `lanes` of the warp at the running group's pc. True: the running group has them all now. False: it waits.
  bool gather(Warp& warp, uint32_t lanes, WaitKind kind);
  /// Lanes of a warp wait at instructions that `execute` carries out, in different places, and all that any of them
  /// waits for are there: they go on behind those. Returns them, or 0.
  uint32_t meet_elsewhere(Warp& warp, Execute execute);

 private:
  struct Event {
    uint64_t time, sequence;
    Cta* owner;  // nullptr: nobody's memory
    Origin origin;
    std::function<void()> action;
    Order order = {};
    Group* waiter = nullptr;  // limits and polls: whom they wake, unless its ticket is another by then
    uint64_t ticket = 0;
    bool stale() const { return waiter && waiter->ticket != ticket; }
    bool operator>(const Event& other) const {
      return time != other.time ? time > other.time : sequence > other.sequence;
    }
  };

  void start();
  bool run_group(Group& group);  // false: stopped for admission
  using Heap = std::vector<Event>;
  void push(Heap& heap, Event event);
  void fire_first(Heap& heap);
  // These four return false where the next operation must be admitted first; nothing has happened then.
  bool fire_needed();
  bool fire_due();
  bool carry_out_chain(Order order, uint64_t last);
  bool may_fire(const Event& event);
  bool awaited(const Event& event);
  void carry_out(Event event);
  void watch_for_cycle();
  uint64_t cycle_fingerprint() const;
  void set_cycle_reference();
  uint64_t last_limit() const;
  uint64_t nothing_comes_until(uint64_t since);
  bool let_time_pass(uint64_t since, uint64_t state, uint64_t until);
  void cluster_barrier_check();
  void update_next_event();
  Group* next_group();  // nullptr: none can go on yet, time has passed
  uint64_t random_delay();
  bool idle();                   // nothing is ready: finds what can go on, or throws; false as for fire_due
  uint64_t fingerprint() const;  // of everything a waiting lane could change, but for the time that it reads
  void arrive_at_joins(Warp& warp, Group*& group);
  void settle_join(Warp& warp, uint32_t join);
  bool release_joins(uint64_t before);
  void give_up_join(Warp& warp, uint32_t id);
  void gathered(Warp& warp, Group& group);
  void drop_from_joins(Warp& warp, const std::vector<uint32_t>& joins, size_t keep, uint32_t lanes);
  void free_group(Group& group);
  [[noreturn]] void hang();
  [[noreturn]] void end_overdue();

  std::deque<Group*> ready_;
  uint32_t quantum_ = 0;                // instructions that the running group has left before the next one has its turn
  Heap events_;                         // asynchronous operations
  Heap limits_;                         // time limits of waits
  Heap polls_;                          // when to ask another cluster again
  uint64_t next_event_ = ~uint64_t{0};  // earliest time in any heap
  uint64_t sequence_ = 1, chains_ = 0, draws_ = 0, effects_ = 0, tickets_ = 0, operations_ = 0;
  bool only_polls_ = false;  // nothing but polls can go on
  // What waiting lanes could change, when it was last seen to change; and until when every time limit then running has
  // run out.
  uint64_t idle_fingerprint_ = 0, idle_effects_ = ~uint64_t{0}, idle_deadline_ = 0, idle_since_ = 0;
  // A loop that asks without ever waiting (test_wait, a flag in memory): see watch_for_cycle.
  uint64_t quiet_effects_ = ~uint64_t{0}, quiet_since_ = 0, next_watch_ = 0;
  uint64_t next_look_at_joins_ = 0;
  struct Cycle {
    bool watching = false;
    uint64_t fingerprint = 0, steps = 0, limit = 0;
    uint64_t deadline = 0;  // until when a state that comes back proves nothing
    uint64_t since = 0;     // clock of the reference state
  } cycle_;
  uint64_t last_clock_read_ = 0;  // clock
  Lapse lapse_;
  bool asks_for_event_ = false, event_admitted_ = false;  // it stopped for an operation; the next one may pass
  uint64_t last_outside_read_ = 0;                        // clock
  uint64_t last_effect_ = 0;                              // clock
  BarrierHistory::Signal* signalling_ = nullptr;          // whose word mbarrier_store() is given next
  uint32_t live_ctas_ = 0;
  uint32_t missing_warps_ = 0;           // that have not arrived at the cluster barrier
  bool cluster_arrivals_ = false;        // somebody has
  std::vector<Group*> at_cluster_;       // groups that wait there
  Origin current_;                       // who is executing, for traps
  std::array<std::byte, 64> dropped_{};  // where stores go that nobody sees
  friend class Grid;
};

/// Throws Trap: `what` reads "shared memory is used".
[[noreturn]] void refuse_gone(const Cta& cta, const char* what);

}  // namespace emu
