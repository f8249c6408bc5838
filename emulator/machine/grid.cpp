#include "emulator/machine/grid.h"
#include "emulator/hazards/global_shadow.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>

#include "emulator/machine/frame.h"
#include "emulator/machine/mix.h"
#include "emulator/machine/program.h"

namespace emu {
namespace {

// cooperative_groups/details/info.h, grid_workspace: its size, and the word that counts arrivals.
constexpr uint64_t kWorkspaceBytes = 64;

}  // namespace

Grid::Grid(Device& device_, const Kernel& kernel_, const LaunchConfig& config_, std::span<const std::byte> parameters)
    : device(device_), kernel(kernel_), program(kernel_.code->entry()), config(config_), cluster_dim(config_.cluster) {
  explicit_cluster = config.explicit_cluster || cluster_dim.count() > 1;
  if (device.options().check) global_shadow = std::make_unique<hazards::GlobalShadow>();
  cluster_count = config.grid.count() / cluster_dim.count();
  end_ = cluster_count;
  int slots = device.occupancy(kernel, static_cast<uint32_t>(config.block.count()), config.dynamic_shared_bytes);
  sms_ = std::vector<Sm>(static_cast<size_t>(device.chip().sm_count));
  const std::vector<uint32_t> gpcs = gpc_of_sms(device.chip());
  for (size_t i = 0; i < sms_.size(); ++i) {
    sms_[i].free_slots = static_cast<uint32_t>(slots);
    sms_[i].gpc = gpcs[i];
    if (device.options().other_fill) sms_[i].tensor_memory.fresh = TensorMemory::kOtherFresh;
  }

  constexpr size_t kParameterAlign = 256;  // a CUtensorMap parameter asks for 128
  size_t bytes = (std::max<size_t>(parameters.size(), 1) + kParameterAlign - 1) / kParameterAlign * kParameterAlign;
  // The lower half of a parameter's address must be none in local memory (see parameter_address): behind as many bytes
  // as that has, in a block that starts at a multiple of a number which is larger still.
  constexpr size_t kBlockAlign = size_t{1} << 20;
  static_assert(kBlockAlign % kParameterAlign == 0 && Frames::kMostStack % kParameterAlign == 0 &&
                Frames::kMostStack <= kBlockAlign / 2);
  parameter_block_ = static_cast<std::byte*>(std::aligned_alloc(kBlockAlign, kBlockAlign));
  if (!parameter_block_) throw std::bad_alloc();
  parameters_ = parameter_block_ + Frames::kMostStack;
  std::copy(parameters.begin(), parameters.end(), parameters_);
  device.memory().map_host(parameters_, bytes, "kernel parameters");
  if (config.cooperative) {
    workspace_ = device.memory().allocate(kWorkspaceBytes, "workspace of a cooperative launch");
    if (!workspace_) throw std::bad_alloc();
    std::memset(device.memory().writing(workspace_, kWorkspaceBytes), 0, kWorkspaceBytes);
  }
  counters_.warps.resize((config.block.count() + kLanes - 1) / kLanes);
}

Grid::~Grid() {
  device.memory().unmap_host(parameters_, false);  // one a launch would crowd out what the program frees
  std::free(parameter_block_);
  if (workspace_) device.memory().release(workspace_);
}

uint32_t Grid::dynamic_shared_offset() const {
  uint32_t align = std::max(16u, program.dynamic_shared_align);
  return (program.static_shared_bytes + align - 1) / align * align;
}

Dim3 Grid::cluster_index(uint64_t cluster) const {
  uint64_t nx = config.grid.x / cluster_dim.x, ny = config.grid.y / cluster_dim.y;
  return {static_cast<uint32_t>(cluster % nx), static_cast<uint32_t>(cluster / nx % ny),
          static_cast<uint32_t>(cluster / nx / ny)};
}

Dim3 Grid::cta_index(uint64_t cluster, uint32_t rank) const {
  Dim3 c = cluster_index(cluster);
  return {c.x * cluster_dim.x + rank % cluster_dim.x, c.y * cluster_dim.y + rank / cluster_dim.x % cluster_dim.y,
          c.z * cluster_dim.z + rank / cluster_dim.x / cluster_dim.y};
}

/// SMs of the GPC for one cluster, each for one of its CTAs, the emptiest first; none when there is no room. (On an
/// H200 the CTAs of a cluster are on different SMs even where one would hold several.)
std::vector<int> Grid::choose_sms_of_gpc(uint32_t gpc) const {
  std::vector<int> chosen;
  for (size_t sm = 0; sm < sms_.size(); ++sm)
    if (sms_[sm].gpc == gpc && sms_[sm].free_slots) chosen.push_back(static_cast<int>(sm));
  if (chosen.size() < cluster_dim.count()) return {};
  std::stable_sort(chosen.begin(), chosen.end(), [&](int a, int b) {
    return sms_[static_cast<size_t>(a)].free_slots > sms_[static_cast<size_t>(b)].free_slots;
  });
  chosen.resize(cluster_dim.count());
  std::sort(chosen.begin(), chosen.end());  // neighbours in the cluster are neighbours on the chip
  return chosen;
}

/// Single CTAs take SMs round robin, clusters GPCs.
std::vector<int> Grid::choose_sms() {
  uint32_t count = static_cast<uint32_t>(sms_.size());
  if (cluster_dim.count() == 1) {
    for (uint32_t i = 0; i < count; ++i) {
      uint32_t sm = (next_sm_ + i) % count;
      if (!sms_[sm].free_slots) continue;
      next_sm_ = (sm + 1) % count;
      return {static_cast<int>(sm)};
    }
    return {};
  }
  uint32_t gpcs = static_cast<uint32_t>(device.chip().gpc_sms.size());
  for (uint32_t i = 0; i < gpcs; ++i) {
    uint32_t gpc = (next_gpc_ + i) % gpcs;
    std::vector<int> chosen = choose_sms_of_gpc(gpc);
    if (chosen.empty()) continue;
    next_gpc_ = (gpc + 1) % gpcs;
    return chosen;
  }
  return {};
}

/// The next cluster in order starts, where there is room.
bool Grid::place_next(uint64_t clock) {
  if (next_cluster_ == end_) return false;
  uint32_t size = static_cast<uint32_t>(cluster_dim.count());
  std::vector<int> chosen = choose_sms();
  if (chosen.empty()) return false;
  Resident resident;
  resident.sms = chosen;
  resident.cluster = std::make_unique<Cluster>(*this, next_cluster_);
  Cluster& cluster = *resident.cluster;
  cluster.clock = clock;
  cluster.published_clock = clock;
  for (uint32_t rank = 0; rank < size; ++rank) {
    int sm = chosen[rank];
    --sms_[static_cast<size_t>(sm)].free_slots;
    cluster.ctas.push_back(std::make_unique<Cta>(cluster, rank, cta_index(next_cluster_, rank), tensor_memory(sm),
                                                 next_cluster_ * size + rank + 1, sm));
  }
  resident_ctas_ += size;
  counters_.most_resident_ctas = std::max(counters_.most_resident_ctas, resident_ctas_);
  residents_.emplace(Key{clock, next_cluster_}, std::move(resident));
  runnable_.insert({clock, next_cluster_});
  ++next_cluster_;
  forget_cancelled();
  return true;
}

/// At either end of those that wait for their start.
void Grid::forget_cancelled() {
  while (cancelled_.erase(next_cluster_)) ++next_cluster_;
  while (end_ > next_cluster_ && cancelled_.erase(end_ - 1)) --end_;
}

/// An ended cluster leaves; the next ones take its place.
void Grid::retire(Resident& resident) {
  Cluster& cluster = *resident.cluster;
  for (auto& cta : cluster.ctas)
    for (size_t w = 0; w < cta->warps.size(); ++w) counters_.warps[w].add(cta->warps[w]->counters);
  counters_.ctas += cluster.ctas.size();
  ++counters_.clusters;
  counters_.last_clock = std::max(counters_.last_clock, cluster.clock);
  counters_.most_loads_in_flight = std::max(counters_.most_loads_in_flight, cluster.most_loads_in_flight);
  counters_.most_bytes_in_flight = std::max(counters_.most_bytes_in_flight, cluster.most_bytes_in_flight);
  counters_.most_mmas_in_flight = std::max(counters_.most_mmas_in_flight, cluster.most_mmas_in_flight);
  if (!cluster.trace_text.empty()) {
    trace_.events[cluster.id] = std::move(cluster.trace_text);
    trace_.sources.merge(cluster.traced_sources);
    for (auto& cta : cluster.ctas)
      for (const auto& [offset, history] : cta->barrier_history) trace_.barriers.insert(offset);
  }
  for (int sm : resident.sms) ++sms_[static_cast<size_t>(sm)].free_slots;
  resident_ctas_ -= cluster.ctas.size();
  stuck_.clear();
  all_stuck_.clear();
  uint64_t clock = cluster.clock;
  next_sm_ = static_cast<uint32_t>(resident.sms[0]);
  next_gpc_ = sms_[next_sm_].gpc;
  while (place_next(clock)) {
  }
}

std::optional<uint64_t> Grid::cancel_one() {
  std::lock_guard lock(mutex_);
  if (next_cluster_ == end_) return std::nullopt;
  uint64_t chosen = next_cluster_;
  if (device.options().schedule == Schedule::latest) chosen = end_ - 1;
  if (device.options().schedule == Schedule::random)
    chosen += mix(device.options().seed ^ mix(cancellations_++)) % (end_ - next_cluster_);
  while (cancelled_.contains(chosen)) ++chosen;  // the last is not
  cancelled_.insert(chosen);
  forget_cancelled();
  return chosen;
}

uint64_t Grid::note_stuck(uint64_t cluster, uint64_t effects, double patience_s) {
  std::lock_guard lock(mutex_);
  stuck_[cluster] = effects;
  if (stuck_.size() == residents_.size()) {
    auto now = std::chrono::steady_clock::now();
    bool same = stuck_ == stuck_before_;
    if (!same) stuck_since_ = now;
    stuck_before_ = std::move(stuck_);
    stuck_.clear();
    if (same && now - stuck_since_ >= std::chrono::duration<double>(patience_s)) {
      all_stuck_ = stuck_before_;
      all_stuck_.erase(cluster);
      passed_to_ = 0;
      return kNever;
    }
  }
  // When all were stuck, time has passed for one of them; the others follow.
  auto known = all_stuck_.find(cluster);
  if (known == all_stuck_.end() || known->second != effects) return 0;
  if (passed_to_ > 0) all_stuck_.erase(known);
  return passed_to_;
}

void Grid::note_time_passed(uint64_t clock) {
  std::lock_guard lock(mutex_);
  passed_to_ = std::max(passed_to_, clock);
}

/// Nobody that runs could still do something visible before `key`, the lowest of those that wait; nobody that can run
/// stands at a lower one.
bool Grid::admissible(Key key) const {
  if (!runnable_.empty() && *runnable_.begin() < key) return false;
  return std::none_of(running_.begin(), running_.end(), [&](const Key& other) {
    const Cluster& cluster = *residents_.at(other).cluster;
    return Key{cluster.published_clock.load(std::memory_order_acquire), other.second} < key;
  });
}

/// The lowest key first: a cluster that can simply run, or the one whose operation is next in order.
std::optional<Grid::Key> Grid::choose() {
  if (!waiting_.empty()) {
    if (admissible(*waiting_.begin())) return *waiting_.begin();
    if (runnable_.empty() || *waiting_.begin() < *runnable_.begin()) awaited_clock_ = waiting_.begin()->first;
  }
  if (!runnable_.empty()) return *runnable_.begin();
  return std::nullopt;
}

void Grid::wake_waiters() {
  awaited_clock_ = ~uint64_t{0};
  // Whoever is about to wait holds the mutex until it does.
  std::lock_guard lock(mutex_);
  changed_.notify_all();
}

void Grid::worker() {
  std::unique_lock lock(mutex_);
  while (!stop_ && !residents_.empty()) {
    const std::optional<Key> key = choose();
    if (!key) {
      changed_.wait(lock);
      continue;
    }
    auto chosen = residents_.find(*key);
    runnable_.erase(*key);
    waiting_.erase(*key);
    Resident& resident = chosen->second;
    if (resident.state == State::ended) {
      auto node = residents_.extract(chosen);
      retire(node.mapped());
      changed_.notify_all();
      continue;
    }
    if (resident.state == State::faulted) {
      fault_ = resident.fault->fault;
      stop_ = true;
      changed_.notify_all();
      break;
    }
    bool admitted = resident.state == State::wants_admission;
    resident.state = State::running;
    running_.push_back(*key);
    Cluster& cluster = *resident.cluster;
    lock.unlock();
    State state = State::wants_admission;
    std::optional<ClusterFault> fault;
    std::exception_ptr error;
    try {
      if (cluster.run(admitted) == Cluster::Stop::finished) {
        state = State::ended;
        for (auto& cta : cluster.ctas) cta->window = {};
      }
    } catch (ClusterFault& ended) {
      fault = std::move(ended);
      state = State::faulted;
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error || (fault && fault->at_once)) {
      if (error)
        error_ = error;
      else if (!fault_)
        fault_ = std::move(fault->fault);
      stop_ = true;
      changed_.notify_all();
      break;
    }
    std::erase(running_, *key);
    auto node = residents_.extract(*key);
    node.key() = {cluster.clock, cluster.id};
    node.mapped().state = state;
    node.mapped().fault = std::move(fault);
    waiting_.insert(node.key());
    residents_.insert(std::move(node));
    changed_.notify_all();
  }
  changed_.notify_all();
}

bool Grid::overdue() const {
  const double limit_s = device.options().time_limit_s;
  return limit_s > 0 && std::chrono::steady_clock::now() - began_ > std::chrono::duration<double>(limit_s);
}

std::optional<Fault> Grid::run() {
  began_ = std::chrono::steady_clock::now();
  while (place_next(0)) {
  }
  next_sm_ = next_gpc_ = 0;
  int threads = device.options().threads;
  if (threads <= 0) threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  threads = static_cast<int>(std::min<uint64_t>(static_cast<uint64_t>(threads), cluster_count));
  std::vector<std::jthread> helpers;
  auto work = [this] {
    try {
      worker();
    } catch (...) {  // no memory for the next clusters
      std::lock_guard lock(mutex_);
      error_ = std::current_exception();
      stop_ = true;
      changed_.notify_all();
    }
  };
  for (int i = 1; i < threads; ++i) helpers.emplace_back(work);
  work();
  helpers.clear();
  if (error_) std::rethrow_exception(error_);
  return fault_;
}

}  // namespace emu
