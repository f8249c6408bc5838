#pragma once
// A warp: files of registers for its 32 lanes, and the groups its lanes run in.
//
// A group is a set of lanes with one program counter. A warp starts as one group; a branch that its lanes take
// differently, or a wait that only some of them pass, parts it, and each part runs on its own, fairly scheduled. Parts
// meet again at a join: the immediate post-dominator of the branch, where each waits for the others (or for their
// exit). Lanes that part inside a function and do not meet there meet where it returns to.
//
// A call makes a frame (frame.h): the function's own registers, and its part of the threads' stacks.

#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "emulator/machine/frame.h"
#include "emulator/machine/program.h"

namespace emu {

class Cta;
class Cluster;
class Warp;
namespace hazards {
struct Issued;
}
class Warpgroup;

/// Where the parts of a group meet again.
struct Join {
  const Frame* frame = nullptr;  ///< the same place in another call is another place
  uint32_t pc = 0;
  uint32_t expected = 0;  ///< lanes that will come, or have come
  uint32_t arrived = 0;
  bool is_at(const Frame* in, uint32_t at) const { return pc == at && frame == in; }
};

/// Why a group does not run.
enum class WaitKind : uint8_t {
  none,
  mbarrier,     ///< a phase of an mbarrier
  cta_barrier,  ///< barrier.cta / bar
  cluster_barrier,
  join,           ///< at a reconvergence point, for the other lanes
  aligned,        ///< at an .aligned instruction, for the other lanes of the warp
  lanes,          ///< at a .sync instruction, for the lanes of its mask
  tensor_memory,  ///< tcgen05.alloc, until columns are free
  tensor_free,    ///< tcgen05.dealloc of a pair, for the other CTA
  bulk_group,     ///< cp.async.bulk.wait_group
  copy_group,     ///< cp.async.wait_group, cp.async.wait_all
  completion,     ///< tcgen05.wait::ld / ::st
  wgmma,          ///< wgmma.wait_group, or a register of a wgmma under way
  registers,      ///< setmaxnreg.inc, until enough are free
  time,           ///< nanosleep
};

struct Wait {
  WaitKind kind = WaitKind::none;
  uint32_t pc = 0;             ///< the waiting instruction
  uint32_t cta_rank = 0;       ///< mbarrier: whose
  uint32_t address = 0;        ///< mbarrier: shared address; cta_barrier: its number
  uint32_t parity = 0;         ///< mbarrier: 0 or 1
  uint32_t lanes = 0;          ///< lanes, aligned: the mask that must gather
  uint64_t since = 0;          ///< virtual clock
  uint64_t began = 0;          ///< the same, but of the first of several tries (tcgen05.alloc)
  Slot result = Slot::none();  ///< predicate that says whether the wait succeeded (try_wait)
  bool bounded = false;        ///< returns false after the time limit (try_wait)
  bool for_peer = false;       ///< tensor_memory: for the pair's other CTA, which must call too
};

struct Group {
  Warp* warp = nullptr;
  FramePointer frame;
  uint32_t pc = 0;
  uint32_t mask = 0;
  std::vector<uint32_t> joins;  ///< indices into Warp::joins, innermost last
  enum class State : uint8_t { free, ready, parked } state = State::free;
  uint64_t ticket = 0;    ///< changes whenever the group parks or wakes, so that late timeouts know they are late
  bool admitted = false;  ///< its next globally visible instruction has been admitted
  Wait wait;
};

/// A tcgen05.ld whose tensor-memory read has not happened yet (or a tcgen05.st whose write has not): see
/// isa/tcgen05_ldst.cpp.
struct PendingTensorAccess {
  const Instruction* instruction = nullptr;
  FramePointer frame = {};  ///< whose registers it loads
  uint32_t mask = 0;
  uint64_t id = 0;
  bool is_load = false;
  uint64_t operation = 0;  ///< for the trace
  uint32_t source = 0;     ///< faults are this instruction's, not that of the wait that carries it out
  std::shared_ptr<hazards::Issued> announced = nullptr;  ///< for the hazard rules
  std::vector<std::byte> captured;  ///< address operands (and a store's data) as they were at issue
};

/// For the hazard rules: a tcgen05.ld whose registers nobody has used, nor waited for.
struct UnreadTensorLoad {
  const Instruction* instruction = nullptr;
  FramePointer frame = {};
  std::shared_ptr<hazards::Issued> announced = nullptr;
};

/// cp.async.bulk groups of one thread: how many operations of each committed group still read or write.
struct BulkGroups {
  struct Counts {
    int reading = 0, writing = 0;
  };
  uint64_t oldest = 0;            ///< number of the first group in `groups`
  std::vector<Counts> groups{1};  ///< the last is open: operations not yet committed
};

/// cp.async of a warp that is not done, and the arrivals on mbarriers that wait for it: see isa/memory_async.cpp.
struct PendingCopy {
  uint64_t id = 0;                   ///< in issue order
  uint32_t lanes = 0;                ///< that copy something
  std::array<uint32_t, 32> group{};  ///< of each lane: how many groups it had committed
};
struct PendingArrival {
  uint32_t barrier = 0;  ///< shared::cluster address
  uint32_t lane = 0;
  uint64_t after = 0;   ///< it comes when the lane's copies up to this one are done
  uint32_t source = 0;  ///< the instruction
};

/// Figures kept per warp of a CTA, summed over all CTAs of a launch.
struct WarpCounters {
  uint64_t instructions = 0, parked_waits = 0, parked_cycles = 0;
  uint64_t tma_loads = 0, tma_stores = 0, tma_box_rows = 0;
  uint64_t bytes_from_global = 0, bytes_to_global = 0, bytes_into_shared = 0;
  uint64_t mmas = 0, commits = 0, tmem_loads = 0, tmem_stores = 0;
  void add(const WarpCounters& other);
};

class Warp {
 public:
  Warp(Cta& cta, const Program& program, uint32_t index, uint32_t threads);
  ~Warp();
  Warp(const Warp&) = delete;
  Warp& operator=(const Warp&) = delete;

  Cta& cta;
  Frames frames;                  ///< outlives the groups, which hold them
  const uint32_t index;           ///< in the CTA
  const uint32_t lanes_at_start;  ///< fewer than 32 in the last warp of an odd block
  uint32_t live;                  ///< lanes that have not exited
  uint32_t active = 0;            ///< lanes that execute the current instruction: group's mask and guard
  Group* group = nullptr;         ///< the running group
  std::vector<std::unique_ptr<Group>> groups;
  std::vector<Join> joins;
  std::vector<uint32_t> free_joins;
  /// Where lanes no longer wait for one another: it kept some from going on.
  std::vector<std::pair<const Program*, uint32_t>> unmet;
  std::vector<PendingTensorAccess> pending;  ///< in issue order
  std::vector<UnreadTensorLoad> unread;      ///< in issue order
  std::map<uint32_t, BulkGroups> bulk;       ///< by lane
  std::vector<PendingCopy> copies;           ///< in issue order
  std::vector<PendingArrival> arrivals;      ///< that wait for them
  std::array<uint32_t, 32> copy_groups{};    ///< by lane: groups of cp.async committed so far
  /// By lane: when its last tcgen05 asynchronous operation shows its result, and that operation's number.
  struct TensorCoreWork {
    uint64_t shown = 0, number = 0;
  };
  std::map<uint32_t, TensorCoreWork> tensor_core_work;
  /// By lane: MMAs that it has issued since its last tcgen05.commit, and the instruction of the last, for reports.
  struct Uncommitted {
    uint64_t mmas = 0;
    uint32_t source = 0;
  };
  std::array<Uncommitted, 32> uncommitted{};
  std::shared_ptr<Warpgroup> warpgroup;  ///< once it has executed a wgmma
  bool registers_held = false;           ///< the tensor core has some of its registers (wgmma)
  uint32_t registers_per_thread = 0;     ///< since its last setmaxnreg; 0: as at its start
  WarpCounters counters;

  /// Makes `g` the running group: registers are those of its frame from now on.
  void enter(Group& g) {
    group = &g;
    use(*g.frame);
  }
  /// Registers are those of `frame` from now on.
  void use(Frame& frame) {
    frame_ = &frame;
    file_ = frame.file();
    program_ = frame.program;
    constants_ = program_->constants.data();
  }
  Frame& frame() const { return *frame_; }
  std::byte* file() { return file_; }
  uint32_t file_bytes() const { return program_->warp_file_bytes; }
  const Program& program() const { return *program_; }

  // Slots. T is the lane type; 32 of them lie side by side.
  template <class T>
  const T* read(const Slot& slot) const {
    return reinterpret_cast<const T*>((slot.bank == Slot::warp ? file_ : constants_) + slot.offset);
  }
  template <class T>
  T* write(const Slot& slot) {
    return reinterpret_cast<T*>(file_ + slot.offset);
  }
  /// One bit per lane.
  uint32_t predicate(const Slot& slot) const {
    uint32_t bits;
    std::memcpy(&bits, (slot.bank == Slot::warp ? file_ : constants_) + slot.offset, 4);
    return slot.negated ? ~bits : bits;
  }
  /// Sets the predicate of the active lanes, leaves the others'.
  void set_predicate(const Slot& slot, uint32_t bits) { set_predicate(slot, bits, active); }
  void set_predicate(const Slot& slot, uint32_t bits, uint32_t lanes) {
    if (!slot.present()) return;
    uint32_t old;
    std::memcpy(&old, file_ + slot.offset, 4);
    old = (old & ~lanes) | (bits & lanes);
    std::memcpy(file_ + slot.offset, &old, 4);
  }
  /// A slot of 4 or 8 bytes per lane, as 64 bits.
  uint64_t scalar(const Slot& slot, int lane) const {
    return slot.bytes == 8   ? read<uint64_t>(slot)[lane]
           : slot.bytes == 4 ? read<uint32_t>(slot)[lane]
                             : read<uint16_t>(slot)[lane];
  }
  uint64_t address(const AddressOperand& operand, int lane) const {
    uint64_t base = operand.base.present() ? scalar(operand.base, lane) : 0;
    uint64_t sum = base + static_cast<uint64_t>(operand.offset);
    return operand.base.present() && operand.base.bytes == 4 ? static_cast<uint32_t>(sum) : sum;
  }
  const Slot& listed(uint32_t list, uint32_t i) const { return program_->slot_lists[list + i]; }
  /// Of an instruction whose further addresses Binder::second_addresses set.
  AddressOperand second_address(const Instruction& instruction, uint32_t which) const {
    return {.base = listed(instruction.list2, 2 * which),
            .offset = static_cast<int64_t>(*read<uint64_t>(listed(instruction.list2, 2 * which + 1)))};
  }

  /// True when the copy keeps one of `lanes` waiting that allow this many of their latest groups to be under way
  /// (kAllCopies: none at all, committed or not).
  bool copy_holds(const PendingCopy& copy, uint32_t lanes, uint32_t allowed) const;
  static constexpr uint32_t kAllCopies = ~0u;

  Group* new_group(const FramePointer& frame, uint32_t pc, uint32_t mask, const std::vector<uint32_t>& joins);
  uint32_t new_join(const Frame* frame, uint32_t pc, uint32_t expected);

  /// A frame for `program` whose part of the threads' stacks starts at `base`, with what a warp knows from its start.
  FramePointer new_frame(const Program& program, uint32_t base);

  /// LADDER_STRICT: what the ISA asks for and silicon supplies anyway is not supplied.
  bool strict() const;

  /// What a register that a warp knows from its start holds in one lane.
  uint64_t value(const WarpValue& value, uint32_t lane) const;

 private:
  Frame* frame_ = nullptr;
  std::byte* file_ = nullptr;  // of frame_
  const Program* program_ = nullptr;
  const std::byte* constants_ = nullptr;
};

/// For as long as it lives, a warp's registers are those of another frame: that of a group that waits, or of an
/// operation that was issued there.
class InFrame {
 public:
  InFrame(Warp& warp, Frame& frame) : warp_(warp), before_(&warp.frame()) { warp_.use(frame); }
  ~InFrame() { warp_.use(*before_); }
  InFrame(const InFrame&) = delete;

 private:
  Warp& warp_;
  Frame* before_;
};

/// Calls f(lane) for each set bit, lowest first.
template <class F>
inline void for_lanes(uint32_t mask, F&& f) {
  while (mask) {
    int lane = __builtin_ctz(mask);
    mask &= mask - 1;
    f(lane);
  }
}

}  // namespace emu
