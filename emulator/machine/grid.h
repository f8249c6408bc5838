#pragma once
// A launch: which clusters are resident on which SM, and who may do what others can see.
//
// Host threads run clusters side by side. A globally visible operation of a cluster passes only when no other resident
// cluster could still do one earlier: operations are admitted in (clock, cluster) order. A cluster's end is such an
// operation, since its place on the SM goes to the next cluster in the grid.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "emulator/machine/cluster.h"
#include "emulator/machine/code.h"
#include "emulator/machine/device.h"

namespace emu {
namespace hazards {
class GlobalShadow;
}

/// What a launch did, summed over its CTAs.
struct Counters {
  std::vector<WarpCounters> warps;  ///< by warp index in the CTA
  uint64_t ctas = 0, clusters = 0, most_resident_ctas = 0;
  uint64_t last_clock = 0;  ///< virtual clock at which the last cluster ended
  uint64_t most_loads_in_flight = 0, most_bytes_in_flight = 0, most_mmas_in_flight = 0;  ///< of any one cluster
};

class Grid {
 public:
  Grid(Device& device, const Kernel& kernel, const LaunchConfig& config, std::span<const std::byte> parameters);
  ~Grid();

  std::optional<Fault> run();

  Device& device;
  const Kernel& kernel;
  const Program& program;  ///< the kernel's own code; code() has that of the functions it calls
  const LaunchConfig config;
  Dim3 cluster_dim;  ///< CTAs of a cluster; 1x1x1 where none
  bool explicit_cluster = false;
  uint64_t cluster_count = 0;

  KernelCode& code() const { return *kernel.code; }
  /// Where an instruction comes from, and what it is.
  Location location(uint32_t source) const { return code().module().location(source); }
  const std::string& text(uint32_t source) const { return code().module().text(source); }

  /// Where a cooperative launch keeps the barrier of its grid; 0 for another launch.
  uint64_t workspace() const { return workspace_; }

  /// Launch parameters, at an address that kernels may use.
  const std::byte* parameters() const { return parameters_; }
  /// Where a kernel's parameter lies, by an address in .param: a 64-bit one, or the lower half of it (mov.b32), which
  /// no address in local memory equals.
  uint64_t parameter_address(uint64_t address) const {
    const auto base = reinterpret_cast<uint64_t>(parameters_);
    const uint32_t offset = static_cast<uint32_t>(address) - static_cast<uint32_t>(base);
    return address >> 32 == 0 && offset < kernel.parameter_bytes ? base + offset : address;
  }

  /// Where dynamic shared memory starts in a CTA's window, and where the window ends.
  uint32_t dynamic_shared_offset() const;
  uint32_t window_bytes() const { return dynamic_shared_offset() + config.dynamic_shared_bytes; }

  Dim3 cta_index(uint64_t cluster, uint32_t rank) const;
  Dim3 cluster_index(uint64_t cluster) const;
  TensorMemory& tensor_memory(int sm) { return sms_[static_cast<size_t>(sm)].tensor_memory; }

  /// This cluster can do nothing unless another does something first; `effects` counts what it has done so far. Returns
  /// the clock before which nobody will: kNever when all resident clusters have said so twice with nothing done in
  /// between and, where the host could help, for `patience_s`; once for each of the others that is still as it was
  /// then, the clock to which time has passed; otherwise 0.
  uint64_t note_stuck(uint64_t cluster, uint64_t effects, double patience_s = 0);
  static constexpr uint64_t kNever = ~uint64_t{0};

  /// For a cluster that was told kNever, time passes to `clock`.
  void note_time_passed(uint64_t clock);

  /// A cluster that has not started, and now never will; none when all have. From an instruction that has been
  /// admitted. Nothing says which it is: the one that would start next (`earliest`), last (`latest`), or any
  /// (`random`).
  std::optional<uint64_t> cancel_one();

  /// From a running cluster, now and then: somebody may wait for its clock to pass.
  void note_clock(uint64_t clock) {
    if (clock > awaited_clock_.load(std::memory_order_relaxed)) wake_waiters();
  }

  /// The launch has run for longer than LADDER_TIME_LIMIT allows.
  bool overdue() const;

  bool stopping() const { return stop_.load(std::memory_order_relaxed); }

  uint64_t started_ns = 0;  ///< what %globaltimer said when it started

  const Counters& counters() const { return counters_; }
  /// What LADDER_TRACE is told of the clusters that have ended, and what it needs to explain it.
  struct Trace {
    std::map<uint64_t, std::string> events;  ///< by cluster
    std::set<uint32_t> sources;              ///< instructions that they name
    std::set<uint32_t> barriers;             ///< mbarriers, by offset in a CTA's shared memory
  };
  const Trace& trace() const { return trace_; }

  /// For the hazard rules: what the clusters write to global memory; nullptr where nobody asks.
  std::unique_ptr<hazards::GlobalShadow> global_shadow;

 private:
  using Key = std::pair<uint64_t, uint64_t>;  // (clock, cluster)

  struct Sm {
    TensorMemory tensor_memory;
    uint32_t free_slots = 0;
    uint32_t gpc = 0;
  };
  enum class State : uint8_t { runnable, running, wants_admission, ended, faulted };
  struct Resident {
    std::unique_ptr<Cluster> cluster;
    State state = State::runnable;
    std::optional<ClusterFault> fault;
    std::vector<int> sms;
  };
  void worker();
  void wake_waiters();
  bool admissible(Key key) const;
  std::optional<Key> choose();
  bool place_next(uint64_t clock);
  std::vector<int> choose_sms();
  std::vector<int> choose_sms_of_gpc(uint32_t gpc) const;
  void retire(Resident& resident);
  void forget_cancelled();

  std::vector<Sm> sms_;
  std::byte *parameter_block_ = nullptr, *parameters_ = nullptr;
  uint64_t workspace_ = 0;
  std::map<Key, Resident> residents_;
  std::set<Key> runnable_, waiting_;  // who can run; who has ended or waits for admission. The others are running_
  std::vector<Key> running_;
  // Of the clusters from next_cluster_ up to end_ those that are not cancelled_ wait for their start. The first and the
  // last of them are not.
  uint64_t next_cluster_ = 0, end_ = 0;
  std::set<uint64_t> cancelled_;
  uint64_t cancellations_ = 0, resident_ctas_ = 0;
  uint32_t next_sm_ = 0, next_gpc_ = 0;
  using Effects = std::map<uint64_t, uint64_t>;  // of each cluster
  Effects stuck_, stuck_before_, all_stuck_;     // in this round, the one before, and when all last were
  uint64_t passed_to_ = 0;                       // how far time has passed since
  std::chrono::steady_clock::time_point stuck_since_;
  std::chrono::steady_clock::time_point began_;  // run()
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> awaited_clock_{~uint64_t{0}};  // past this clock, a host thread that waits can go on
  std::optional<Fault> fault_;
  std::exception_ptr error_;
  Counters counters_;
  Trace trace_;
};

}  // namespace emu
