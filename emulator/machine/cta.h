#pragma once
// A CTA: its shared-memory window, its named barriers, its warps.

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "emulator/machine/device.h"
#include "emulator/machine/tensor_memory.h"
#include "emulator/machine/warp.h"

namespace emu {

class Cluster;

/// barrier.cta / bar: 16 per CTA. PTX ISA, "barrier".
struct NamedBarrier {
  struct Waiter {
    Group* group;
    Slot result = Slot::none();  ///< of .red: predicate or 32-bit register
    bool all = false;            ///< .red.and: true when every thread's predicate was
  };
  uint64_t completed = 0;  ///< times
  uint32_t wanted = 0;     ///< threads; 0 with `everyone`: all that have not exited
  bool everyone = false;
  uint32_t arrived = 0;                     ///< threads
  uint32_t votes = 0, trues = 0;            ///< .red: threads that gave a predicate, and those whose predicate was true
  std::map<uint32_t, uint32_t> incomplete;  ///< with a count: lanes that are here, of warps (by index) not all here
  std::vector<Waiter> waiting;
  bool in_use() const { return arrived != 0 || !incomplete.empty(); }
};

/// Where a warp is with the cluster barrier. Its lanes arrive as one: a lane that arrives waits for the others.
struct ClusterArrival {
  uint32_t present = kAllLanes;   ///< lanes that had not exited when last looked at
  uint32_t arrived = 0;           ///< lanes that have arrived in the running phase
  uint32_t unpaired = 0;          ///< lanes that have arrived and not yet waited
  std::vector<Group*> gathering;  ///< lanes that wait for the others of the warp to arrive
};

/// A warp that waits in tcgen05.alloc or dealloc of .cta_group::2 for a warp of the pair's other CTA.
struct PairCall {
  Group* group = nullptr;
  uint32_t columns = 0, address = 0;  ///< alloc: where the result goes; dealloc: what is freed
  const Warp* partner = nullptr;      ///< who has joined it, and waits for columns now
};

/// What happened to an mbarrier so far, for reports.
struct BarrierHistory {
  /// What one instruction of one warp did to the barrier in one phase.
  struct InPhase {
    uint64_t phase = 0, times = 0;
    uint32_t lanes = 0;  ///< whose; 0 where it was the warp's as a whole
    int64_t bytes = 0;   ///< expected and not delivered: what it expected, or minus what it brought
  };
  struct Signal {
    uint32_t source = 0, cta_rank = 0, warp = 0;  ///< instruction that caused it, warp that issued it
    const char* what = "";
    uint64_t times = 0, last_clock = 0;
    InPhase last = {}, before = {};  ///< the phase in which it came last, and the one before that (times 0: none)
  };
  struct Passed {
    uint32_t cta_rank = 0, warp = 0, lanes = 0;  ///< who has waited
    int64_t ended = 0;                           ///< the phase whose end they saw last; -1: they passed a fresh barrier
  };
  /// Lanes of a warp of its CTA that asked in vain, and have not passed since.
  struct Asked {
    uint32_t source = 0, warp = 0, lanes = 0, parity = 0;
    uint64_t since = 0, last = 0, times = 0;  ///< since, last: clock
  };
  uint32_t initialised_by = 0;  ///< the mbarrier.init
  uint64_t phases = 0;          ///< that ended since
  bool invalidated = false;     ///< by mbarrier.inval: the word stays, as on an H200, but is no barrier
  std::vector<Signal> signals = {};
  std::vector<Passed> passed = {};
  std::vector<Asked> asked = {};
};

/// Registers that warps of the CTA have given back (setmaxnreg), and who waits for some.
struct RegisterPool {
  uint32_t free = 0;
  std::vector<Group*> waiting;
};

class Cta {
 public:
  Cta(Cluster& cluster, uint32_t rank, Dim3 index, TensorMemory& tensor_memory, TensorMemory::Owner owner, int sm);
  ~Cta();

  Cluster& cluster;
  const uint32_t rank;  ///< in the cluster
  const Dim3 index;     ///< %ctaid
  const int sm;
  TensorMemory& tensor_memory;
  const TensorMemory::Owner owner;

  /// The whole window; the chip's reserved bytes come first. Allocated by start().
  std::vector<std::byte> window;
  uint32_t window_bytes = 0;
  std::vector<std::unique_ptr<Warp>> warps;
  uint32_t live_warps = 0;
  std::array<NamedBarrier, 16> barriers;
  RegisterPool registers;
  std::vector<ClusterArrival> cluster_arrivals;  ///< by warp
  std::vector<Group*> mbarrier_waiters;
  std::map<uint32_t, BarrierHistory> barrier_history;  ///< by offset in the window
  bool alloc_permit = true;                            ///< until tcgen05.relinquish_alloc_permit
  uint32_t last_alloc_columns = 512;                   ///< no later tcgen05.alloc may ask for more
  std::vector<PairCall> pair_allocs, pair_deallocs;
  uint64_t stands_until = 0;          ///< clock; no thread executes anything before (`random`)
  uint64_t tensor_core_time = 0;      ///< when the last MMA issued so far shows its result
  bool saw_no_more_clusters = false;  ///< a clusterlaunchcontrol response said so
  uint64_t remote_chain = 0;          ///< of the mbarrier operations that its threads do in other CTAs; 0: none so far
  uint64_t remote_time = 0;           ///< when the last of them shows
  uint32_t remote_pending = 0;        ///< that are under way
  int pending_async = 0;              ///< operations that still read or write this CTA's memory

  /// Creates the warps and the window.
  void start();
  bool started() const { return !warps.empty(); }
  /// All its threads have ended: its shared memory is another CTA's from now on.
  bool exited() const { return started() && live_warps == 0; }

  uint32_t live_threads() const;
};

}  // namespace emu
