#pragma once
// The hazard checker of one cluster: is every use of shared and tensor memory ordered after what it depends on, by
// more than luck?
//
// It is told of every access, every barrier and every fence, and keeps vector clocks (clock.h) of what each thread
// knows to be done, and for each cell of memory who wrote it and who has read it since (shadow.h). Two accesses to a
// cell, one of them a write, must be ordered by what the later one's thread knew when it issued it. So a missing wait
// is found under whatever schedule the program ran, as long as both accesses were made.
//
// Asynchronous operations are known to be done through their channel: the phase of the mbarrier that their bytes
// complete on, the commit of a thread's MMAs, a bulk group, tcgen05.wait. Everything here runs on the host thread that
// runs the cluster.

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "emulator/hazards/findings.h"
#include "emulator/hazards/global_shadow.h"
#include "emulator/hazards/record.h"
#include "emulator/hazards/shadow.h"
#include "emulator/machine/cluster.h"

namespace emu::hazards {

/// How two accesses are ordered.
enum class Order : uint8_t {
  known,
  unfenced,    ///< but for a proxy fence
  untaken,     ///< but for the tcgen05 fences
  warp_only,   ///< by lanes of a warp running together
  unacquired,  ///< but for a memory fence behind a relaxed read
  stale,       ///< the same, and the reader's L1 cache may hold what it read before
  weak,        ///< by relaxed operations, or at too narrow a scope
  none,
  constant,  ///< well ordered, but loaded as a constant
};

/// An asynchronous operation from its issue on.
struct Issued {
  Record record;               ///< but for the kind
  std::shared_ptr<View> view;  ///< what its issuer knew
  struct Bytes {
    uint64_t offset = 0, bytes = 0;  ///< in a CTA's window, or an address
  };
  std::vector<Bytes> read_from;  ///< global memory that it will be known to have read
};
using IssuedPointer = std::shared_ptr<Issued>;

class Hazards {
 public:
  explicit Hazards(Cluster& cluster);
  ~Hazards();
  Hazards(const Hazards&) = delete;

  // ---- accesses -----------------------------------------------------------------------------------------------------
  /// Lanes of the running instruction access `bytes` bytes each at `address` (shared::cluster). `order`:
  /// Instruction::order.
  void threads(Warp& warp, uint32_t lanes, const uint64_t (&address)[kLanes], uint32_t bytes, emu::Access access,
               uint8_t order);
  /// The running warp as one: tcgen05.alloc's address.
  void warp_writes(Warp& warp, uint32_t address, uint32_t bytes, Kind kind);

  /// `lane`: -1 for an operation of the whole warp. The channel is set by one of the next.
  IssuedPointer issue(Warp& warp, int lane);
  void completes_on_barrier(Issued& operation, uint32_t barrier);  ///< its bytes are under way there
  void completes_with_commit(Issued& operation, Warp& warp, int lane);
  void completes_in_bulk_group(Issued& operation, Warp& warp, int lane, uint64_t group, bool reads);
  void completes_with_tensor_wait(Issued& operation, Warp& warp, bool load);
  void completes_in_wgmma_group(Issued& operation, uint32_t cta_rank, uint32_t first_warp, uint64_t number);
  void completes_in_copy_group(Issued& operation, Warp& warp, uint32_t lanes);

  using Bytes = Issued::Bytes;
  /// Another warp has issued its part of the operation.
  void joins(Issued& operation, const Issued& part);
  void shared(Issued& operation, Kind kind, Cta& cta, std::span<const Bytes> ranges);
  void copied(Issued& operation, Cta& cta, std::span<const Bytes> by_lane);  ///< cp.async: of each lane that copies
  struct Cells {
    uint32_t lane = 0, lanes = 0, column = 0, columns = 0;
  };
  void tensor(Issued& operation, Kind kind, Cta& cta, std::span<const Cells> ranges);
  /// Lanes of the running instruction access global memory.
  void global_threads(Warp& warp, uint32_t lanes, const uint64_t (&address)[kLanes], uint32_t bytes, emu::Access access,
                      uint8_t order);
  /// Ranges of addresses in global memory. `alone`: its mbarrier, and no other, says that they have been read.
  /// `reduces`: atomically.
  void global_read(Issued& operation, Kind kind, std::span<const Bytes> ranges, bool alone);
  void global_written(Issued& operation, Kind kind, bool reduces, std::span<const Bytes> ranges);  ///< then settle()
  /// Memory is given out by malloc() in a kernel: what was done there before is over.
  void global_allocated(uint64_t address, uint64_t bytes);
  /// tcgen05.alloc or .dealloc of a pair begins, which both CTAs call.
  void pair_allocates(Warp& warp, const Cta& peer);
  void pair_frees(Warp& warp, const Cta& peer);
  /// `peer`: the warp of the pair's other CTA that allocated with this one.
  void tensor_allocated(Warp& warp, uint32_t column, uint32_t columns, Warp* peer = nullptr);
  void tensor_freed(Warp& warp, uint32_t column, uint32_t columns);

  // ---- mbarriers ----------------------------------------------------------------------------------------------------
  void barrier_initialised(Warp& warp, int lane, uint32_t address);
  void barrier_invalidated(Warp& warp, int lane, uint32_t address);
  /// What a thread hands over when it arrives, taken when it does; `order` as above.
  struct Handover {
    std::shared_ptr<const View> view;
    bool weak = false, remote = false;
    Record use = {};  ///< remote: who arrives
  };
  Handover release(Warp& warp, uint32_t lanes, uint32_t barrier, uint8_t order);
  Handover release_commit(Warp& warp, int lane, uint32_t barrier);
  Handover release_copies(Warp& warp, int lane);  ///< cp.async.mbarrier.arrive
  void signalled(uint32_t barrier, const Handover& handover);
  void bytes_arrived(uint32_t barrier, Issued& operation);
  void phase_ended(uint32_t barrier);
  void passed(uint32_t barrier, Warp& warp, uint32_t lanes, uint8_t order);
  void used(Warp& warp, uint32_t lanes, uint32_t barrier);  ///< an operation on it is issued
  /// Lanes wait for the running phase, `phase`; the last whose end they saw was `seen`.
  void waits_behind(Warp& warp, uint32_t lanes, uint32_t barrier, uint64_t phase, uint64_t seen);

  // ---- other synchronisation ----------------------------------------------------------------------------------------
  void arrives_at(uint32_t named_barrier, Warp& warp, uint32_t lanes);
  void named_barrier_ended(Cta& cta, uint32_t named_barrier);
  void leaves(uint32_t named_barrier, Warp& warp, uint32_t lanes);
  void arrives_at_cluster_barrier(Warp& warp, uint32_t lanes, bool relaxed);
  void cluster_barrier_ended();
  void leaves_cluster_barrier(Warp& warp, uint32_t lanes);
  void warp_synchronised(Warp& warp, uint32_t lanes);
  void warp_met(Warp& warp, uint32_t lanes);  ///< in a .sync instruction that orders no memory: shfl, vote, match, ...
  void proxy_fence(Warp& warp, uint32_t lanes, bool of_shared, bool of_global);
  void release_to_async(Warp& warp, uint32_t lanes);  ///< fence.proxy.async::generic.release
  void acquire_for_async(Warp& warp, uint32_t lanes);
  void init_fence(Warp& warp, uint32_t lanes);
  void memory_fence(Warp& warp, uint32_t lanes, bool narrow);  ///< narrow: of a scope within the cluster
  void before_thread_sync(Warp& warp, uint32_t lanes);
  void after_thread_sync(Warp& warp, uint32_t lanes);
  void bulk_groups_waited(Warp& warp, uint32_t lanes, uint64_t allowed, bool reading);
  void copies_committed(Warp& warp, uint32_t lanes);
  void copies_waited(Warp& warp, uint32_t lanes, uint32_t allowed);  ///< Warp::kAllCopies: not one group
  void tensor_waited(Warp& warp, bool loads, uint32_t lanes);
  /// The registers of the warp's tcgen05.ld up to this one are there, for these lanes.
  void tensor_consumed(Warp& warp, const Issued& operation, uint32_t lanes);
  /// The running instruction uses registers of `wgmma` before its wait.
  void wgmma_registers_used(Warp& warp, const Record& wgmma);
  /// `lane` issues a copy to or from a tile that begins in the middle of its swizzle's pattern.
  void misaligned_tile(Warp& warp, int lane, uint32_t address, uint32_t pattern_bytes);
  void wgmma_waited(Warp& warp, uint32_t first_warp, uint64_t number);

  void lanes_exit(Warp& warp, uint32_t lanes);
  void cta_exits(Cta& cta);

  /// Something has been written: an instruction's stores, a bulk store's bytes. A store that nothing orders behind
  /// another thread's access to the same bytes is no race of consequence where it has stored what was there.
  void settle() {
    if (!doubtful_.empty()) settle_doubtful_stores();
    if (!global_writes_.empty()) settle_global_writes();
  }

 private:
  class Sweep;
  class GlobalSweep;
  struct Lanes {
    uint32_t lanes;
    std::shared_ptr<View> view;
  };
  struct Threads {
    uint32_t now = 1;
    std::array<uint32_t, kLanes> released{};  ///< when each lane last released something
    std::vector<Lanes> classes;               ///< lanes that know the same
    // Records made since `now` changed, by instruction and by line: loops between two synchronisations share them. One
    // that has lost its place is made once more.
    struct Made {
      uint64_t what = 0;
      uint32_t time = 0;
      Ref ref = kNobody;
    };
    std::array<Made, 64> records;
    std::unordered_map<uint64_t, uint32_t> global_heard;    ///< by number of what was told, and how: lanes that know it
    std::array<std::vector<uint32_t>, kLanes> copy_groups;  ///< by lane: the last cp.async of each committed group
    std::array<uint32_t, kLanes> copies_done{};             ///< by lane: the last of its own that it has waited for
    Agent copies = 0;                                       ///< their channel; 0: none yet
  };
  enum class ChannelKind : uint8_t {
    warp,
    barrier,
    commit,
    bulk_read,
    bulk_write,
    tensor_load,
    tensor_store,
    wgmma,
    copy,
    alloc,
    init,
    start
  };
  struct Channel {
    ChannelKind kind = ChannelKind::warp;
    uint32_t barrier = 0, cta_rank = 0, warp = 0, lane = 0;
    uint32_t count = 0;   ///< operations issued on it; of bulk groups the number of the last
    uint32_t source = 0;  ///< bulk groups: the last operation
  };
  struct Gathered {
    View own, remote;  ///< released by threads of the barrier's CTA; by others at cluster scope
  };
  struct Barrier {
    Agent channel = 0;
    uint32_t phases = 0;               ///< that have ended
    uint32_t under_way = 0;            ///< copies issued whose bytes have not come
    bool live = false, shown = false;  ///< shown: an init fence came behind its mbarrier.init
    uint32_t fence = 0;                ///< that one, on its thread's channel
    Ref init = kNobody;
    Gathered gathering;
    std::shared_ptr<const Gathered> ended;
    Record last_copy;
    uint32_t times_initialised = 0;
    struct Pass {
      uint32_t phases = 0, moment = 0;
    };
    std::map<Agent, Record> users;  ///< by warp: the last operation on it
    std::map<Agent, Pass> passes;   ///< by warp: the last phase whose end it saw, and when
  };
  struct Memory {
    Memory(size_t words, size_t cells, Agent first_warp, uint32_t warps)
        : shared(words, first_warp, warps), tensor(cells, first_warp, warps) {}
    Shadow shared, tensor;
    View end;                          ///< what its threads knew when they exited
    std::map<Agent, Ref> remote_uses;  ///< by channel: the last by another CTA
    std::map<Agent, Ref> copies;       ///< by channel: the CTA's own last one into or out of it
    Agent start = 0;
    std::vector<uint32_t> locations;  ///< by word: its number in locations_, from 1
    Clock cache_emptied;              ///< global memory: loads that its SM's L1 cache holds nothing of any more
    Agent pair_allocator = 0;         ///< the warp that last called tcgen05.alloc for the pair,
    uint32_t pair_allocated = 0;      ///< and its time then; 0: none has
  };

  Agent agent(const Warp& warp) const { return warp.cta.rank * warps_per_cta_ + warp.index; }
  Threads& threads_of(const Warp& warp) { return threads_[agent(warp)]; }
  View& change(Lanes& lanes);
  /// Lanes that have exited, or never were, follow whoever is here.
  static uint32_t with_absent(const Warp& warp, uint32_t lanes) {
    return (lanes & warp.live) == warp.live ? kAllLanes : lanes;
  }
  void raise_own(const Warp& warp, uint32_t lanes, uint32_t now, Clock& clock) const;
  /// Raises `clock` by the cp.async that these lanes have waited for.
  void raise_own_copies(const Warp& warp, uint32_t lanes, Clock& clock) const;
  bool own_copies_done(const Record& copy, uint32_t lanes) const;
  /// Calls f(Lanes&) for each set of lanes that know the same, parted so that they are all in `lanes`.
  template <class F>
  void each_class(Warp& warp, uint32_t lanes, F&& f);
  void merge(Warp& warp);
  std::shared_ptr<View> snapshot(Warp& warp, uint32_t lanes);
  void tick(Warp& warp);
  void tick_after_release(Warp& warp, uint32_t lanes);
  uint32_t last_release(const Threads& threads, uint32_t lanes) const;
  void empty_cache(const Warp& warp, uint32_t lanes);
  void check_unused(Warp& warp, int lane, uint32_t address, const Barrier& known);
  enum class First : uint8_t { before, now, unknown };
  First comes_first(const Record& before, uint32_t before_lanes, const Record& now, uint32_t now_lanes,
                    const View& view) const;
  Agent channel(ChannelKind kind, uint32_t cta_rank, uint32_t warp, uint32_t lane = 0, uint32_t barrier = 0);
  Barrier& barrier(uint32_t address);
  void learn(Warp& warp, uint32_t lanes, Agent channel, uint32_t time);
  void learn_lanes(Warp& warp, uint32_t lanes, Agent channel, uint32_t time);
  /// References to it are kept where this looks for them: in members, but in no variable beyond the next call.
  Ref remember(Record record);
  Ref thread_record(Warp& warp, uint32_t lanes, Kind kind, bool lane_by_lane, bool strong, uint32_t bytes = 0);
  uint32_t line_of(uint32_t source);  ///< the first instruction of its line
  Order order(const Record& before, uint32_t before_lanes, const Record& now, uint32_t now_lanes, const View& view,
              uint32_t together) const;
  void take_over(View& view, const Handed& handed, bool wide) const;
  void acquire_global(Warp& warp, uint32_t lanes, const uint64_t (&address)[kLanes], uint8_t order);
  void release_global(Warp& warp, uint32_t lanes, const uint64_t (&address)[kLanes], emu::Access access, uint8_t order);
  GlobalShadow::Page* global_page(uint64_t number, bool create);
  Stamp stamp(const Record& record) const;
  void add_strong(GlobalShadow::Page& page, size_t sector, const Stamp& stamp, uint32_t lanes);
  bool told_meanwhile(const Stamp& before, uint32_t lanes) const;
  void settle_global_writes();
  void settle_doubtful_stores();
  void global_read_done(Issued& operation);
  /// `repaired`(lanes, what was found): those take it for known from now on.
  template <class Repair>
  void report_global(const GlobalSweep& sweep, const Record& now, Repair&& repaired);
  void report_global(const GlobalSweep& sweep, const Issued& operation);
  void take_for_known(View& view, const Stamp& before, uint32_t lanes) const;
  void tell_global(const Stamp& before, uint32_t before_lanes, uint64_t address, const Record& now, uint32_t now_lanes,
                   Order order);
  void repair(View& view, const Record& before, uint32_t before_lanes) const;
  void repaired(Issued& operation, const Record& before, uint32_t before_lanes);
  void read_of_nothing(const Record& record, uint32_t lanes, const Cta& cta, size_t word);
  bool had_stage(const Record& write, const Record& reader, uint32_t lanes) const;
  /// Of the running instruction.
  struct ThreadAccess {
    Warp& warp;
    const uint64_t (&address)[kLanes];
    uint32_t bytes;
    bool writes, strong;
    bool together;  ///< its lanes read one place
    Ref base;
  };
  void threads(const ThreadAccess& access, uint32_t lanes, uint32_t rank);
  static void touch(Sweep& sweep, Shadow& shadow, bool writes, uint32_t begin, uint32_t bytes, Ref by);
  void look_under(Sweep& sweep, Warp& warp, uint32_t lanes, const uint64_t (&address)[kLanes], uint32_t rank);
  void lane_writes(Warp& warp, int lane, uint32_t address, uint32_t bytes, Ref ref);
  bool live_barrier(const Cta& cta, size_t cell) const;
  bool init_known(const Barrier& barrier, const View& view);
  void remote_use(const Record& record, Ref ref, Cta& cta, const View& view);
  void check_initialised(Warp& warp, uint32_t lanes, uint32_t address, const Barrier& known);
  void use_of_peer(const Record& use, Cta& cta);
  void check_started(const Record& record, Cta& cta, const View& view);
  void pair_finding(Warp& warp, const Cta& peer, Rule rule, const char* what, std::string explanation);
  /// Its CTA has ended, and did not know that the copy was done.
  void outlives(const Record& copy);
  void acquire_locations(Warp& warp, uint32_t lanes, const uint64_t (&address)[kLanes], uint8_t order);
  void release_locations(Warp& warp, uint32_t lanes, const uint64_t (&address)[kLanes], uint8_t order, bool reads);

  /// Cells as rows of `columns`: of shared memory there is one row.
  struct Where {
    std::vector<size_t> cells;  // more than once where several lanes touched them
    size_t first_row = ~size_t{0}, last_row = 0, first_column = ~size_t{0}, last_column = 0;
    void add(size_t cell, size_t columns) {
      cells.push_back(cell);
      first_row = std::min(first_row, cell / columns);
      last_row = std::max(last_row, cell / columns);
      first_column = std::min(first_column, cell % columns);
      last_column = std::max(last_column, cell % columns);
    }
  };
  static size_t columns(bool tensor_memory) { return tensor_memory ? TensorMemory::kColumns : size_t{1} << 32; }
  struct Conflict {
    Ref before = kNobody;
    uint32_t before_lanes = 0;
    Order order = Order::none;
    Where where;
  };
  void report(const Conflict& conflict, const Record& now, uint32_t now_lanes, const View& view, Cta& cta,
              bool tensor_memory);
  /// A finding about one instruction, or two; sides: the later one first.
  size_t report(Rule rule, Rank rank, std::string object, std::vector<Side> sides, std::string explanation,
                std::string fix = "");
  std::string fix_between_threads(const Record& first, const Record& second) const;
  std::string place(uint32_t source) const;
  Side side(const Record& record, uint32_t lanes) const;
  Record here(const Warp& warp, uint32_t lanes) const;  ///< the running instruction uses an mbarrier
  std::string how_it_completes(const Record& record) const;
  std::string object_text(const Cta& cta, const Where& where, bool tensor_memory) const;

  bool told(Rule rule, uint32_t source, uint32_t other);  ///< counts it where it is known

  struct Doubtful {
    Conflict conflict;
    Record now;
    uint32_t lanes;
    std::shared_ptr<View> view;
    Cta* cta;
    std::vector<std::byte> before;  ///< the bytes from the first to the last cell
  };
  std::vector<Doubtful> doubtful_;
  struct GlobalDoubt {
    Stamp earlier;
    uint32_t earlier_lanes = 0;
    uint64_t address = 0;
    uint32_t bytes = 0;  ///< bit i: the one at address + i
    Record now;
    uint32_t lanes = 0;
    Order order = Order::none;
    std::vector<std::byte> before;
  };
  std::vector<GlobalDoubt> global_doubts_;
  std::array<uint64_t, 16> strongly_read_{};  ///< words, the latest
  size_t strongly_read_count_ = 0;
  std::vector<std::pair<GlobalPiece, Stamp>> global_writes_;          ///< of the running instruction
  std::array<std::pair<uint64_t, GlobalShadow::Page*>, 64> pages_{};  ///< used lately, by the end of their number
  std::unordered_map<uint64_t, Ref> weak_under_;  ///< by CTA and word: the last plain write below strong ones

  Cluster& cluster_;
  Findings& findings_;
  std::map<std::tuple<Rule, uint32_t, uint32_t>, size_t> told_;  ///< numbers of findings, by rule and instructions
  std::unordered_map<uint32_t, uint32_t> lines_;                 ///< by instruction: the first of its line
  std::map<std::array<uint32_t, 4>, uint32_t> first_of_line_;    ///< by file and line, of the wrapper and the kernel
  uint32_t warps_per_cta_ = 0;
  Agent first_channel_ = 0;
  std::vector<Channel> channels_;  ///< by agent; the warps first
  std::map<std::array<uint32_t, 5>, Agent> channel_numbers_;
  uint32_t issued_ = 0;       ///< asynchronous operations
  std::string empty_commit_;  ///< where a thread committed that had issued nothing
  uint32_t moment_ = 0;       ///< releases and passed waits so far
  std::vector<Threads> threads_;
  std::vector<std::unique_ptr<Memory>> memories_;  ///< by CTA
  Records records_;
  std::unordered_map<uint32_t, Barrier> barriers_;
  struct NamedBarrierView {
    View gathering;
    std::shared_ptr<const View> ended;
  };
  std::map<std::pair<uint32_t, uint32_t>, NamedBarrierView> named_barriers_;
  View cluster_gathering_;
  std::shared_ptr<const View> cluster_ended_;
  /// What strong operations on a word have told: others see of a relaxed one that it was, and get to know what a
  /// release, or one behind a fence, has released.
  struct Location {
    std::shared_ptr<const Clock> heard;
    Agent agent = 0;    ///< of the last that was told,
    uint32_t time = 0;  ///< and when
    std::unique_ptr<View> released;
  };
  Location* location(uint64_t address);
  Location& make_location(uint64_t address);
  std::deque<Location> locations_;
};

template <class F>
void Hazards::each_class(Warp& warp, uint32_t lanes, F&& f) {
  auto& classes = threads_of(warp).classes;
  lanes = with_absent(warp, lanes);
  for (size_t i = 0, count = classes.size(); i < count; ++i) {
    const uint32_t inside = classes[i].lanes & lanes;
    if (!inside) continue;
    if (inside != classes[i].lanes) {
      classes.push_back({classes[i].lanes & ~inside, classes[i].view});
      classes[i].lanes = inside;
    }
    f(classes[i]);
  }
}

}  // namespace emu::hazards
