#pragma once
// Accesses to shared memory and tensor memory as the rules see them: who did what, and when it is known to be done.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "emulator/hazards/clock.h"
#include "emulator/machine/global_memory.h"

namespace emu::hazards {

/// By what an access reaches memory.
enum class Proxy : uint8_t {
  generic,  ///< threads' own loads and stores, non-bulk cp.async, st.async; every access to an mbarrier as such
  async,    ///< TMA, bulk copies, the tensor core's operands in shared memory
  tensor,   ///< tcgen05 operations on tensor memory
};

enum class Kind : uint8_t {
  load,
  store,
  atomic,
  barrier_init,
  barrier_use,  ///< an arrive or a wait
  alloc_slot,   ///< tcgen05.alloc leaves its address
  copy,         ///< cp.async
  tma_load,
  tma_store,
  bulk_read,  ///< the source of a bulk copy from shared to shared memory
  store_async,
  launch_control,  ///< the response of clusterlaunchcontrol
  mma_operands,
  wgmma_operands,
  copy_source,  ///< of tcgen05.cp
  mma_source,   ///< A or scale factors in tensor memory
  mma,
  tensor_copy,
  tensor_shift,
  tensor_load,
  tensor_store,
  tensor_alloc,
  tensor_dealloc,
};

/// Of a thread's own access.
constexpr Kind kind_of(emu::Access access) {
  return access == emu::Access::read ? Kind::load : access == emu::Access::write ? Kind::store : Kind::atomic;
}

struct KindTraits {
  const char* name;  ///< in reports
  Proxy proxy;
  bool writes;
  bool pipelined = false;  ///< one of tcgen05's that the tensor core carries out in the order of issue
};
inline constexpr std::array<KindTraits, 23> kKindTraits = {{
    {"load", Proxy::generic, false},
    {"store", Proxy::generic, true},
    {"atomic", Proxy::generic, true},
    {"mbarrier.init", Proxy::generic, true},
    {"operation on the mbarrier", Proxy::generic, false},
    {"tcgen05.alloc", Proxy::generic, true},
    {"cp.async", Proxy::generic, true},
    {"TMA load", Proxy::async, true},
    {"TMA store", Proxy::async, false},
    {"bulk copy", Proxy::async, false},
    {"asynchronous store", Proxy::generic, true},
    {"clusterlaunchcontrol.try_cancel", Proxy::async, true},
    {"tcgen05.mma", Proxy::async, false},
    {"wgmma", Proxy::async, false},
    {"tcgen05.cp", Proxy::async, false},
    {"tcgen05.mma", Proxy::tensor, false, true},
    {"tcgen05.mma", Proxy::tensor, true, true},
    {"tcgen05.cp", Proxy::tensor, true, true},
    {"tcgen05.shift", Proxy::tensor, true, true},
    {"tcgen05.ld", Proxy::tensor, false},
    {"tcgen05.st", Proxy::tensor, true},
    {"tcgen05.alloc", Proxy::tensor, true},
    {"tcgen05.dealloc", Proxy::tensor, true},
}};
constexpr const KindTraits& traits(Kind kind) {
  return kKindTraits[static_cast<size_t>(kind)];
}

/// One access; those of an instruction's lanes share one.
struct Record {
  Kind kind = Kind::load;
  bool lane_by_lane = false;  ///< its lanes did the same each to a place of its own: a Ref says which
  bool strong = false;        ///< relaxed, volatile or atomic: such do not race with each other
  Agent issuer = 0;           ///< the warp
  uint32_t issued = 0;        ///< its time then
  uint32_t lanes = 0;         ///< that did it, or issued it
  Agent channel = 0;  ///< where its completion is known from; the issuer itself where a thread waits for it anyway
  uint32_t complete = 0;
  uint32_t cta_rank = 0, warp = 0, source = 0;
  uint32_t sequence = 0;                       ///< of asynchronous ones: in the order of issue
  uint32_t released = 0;                       ///< when its lanes had last released something
  bool of_nothing = false;                     ///< a read where nothing had been written
  uint32_t signal = 0;                         ///< the mbarrier that it tells; 0: none
  std::shared_ptr<const View> view = nullptr;  ///< of asynchronous ones: what their issuer knew
  bool asynchronous() const { return channel != issuer; }
  /// Is it known to be done, by these of its lanes?
  bool done_in(const Clock& clock, uint32_t by) const {
    return asynchronous() ? clock.covers_lanes(channel, by, complete) : clock.covers_lanes(issuer, by, issued);
  }
};

/// An access by one lane (threads') or as a whole: index into the table, and the lane.
using Ref = uint32_t;
inline constexpr Ref kNobody = 0;
inline constexpr uint32_t kLaneBits = 5;
/// Of lane 0.
constexpr Ref base_of(Ref ref) {
  return ref & ~((Ref{1} << kLaneBits) - 1);
}
inline constexpr Ref kFlag = 1u << 31;  ///< in a State: an index into a table of its own

class Records {
 public:
  /// The reference of lane 0; add a lane.
  Ref add(Record record) {
    if (free_.empty()) {
      records_.push_back(std::move(record));
      return static_cast<Ref>((records_.size() - 1) << kLaneBits);
    }
    const uint32_t place = free_.back();
    free_.pop_back();
    records_[place] = std::move(record);
    return static_cast<Ref>(place << kLaneBits);
  }
  const Record& operator[](Ref ref) const { return records_[ref >> kLaneBits]; }
  Record& at(Ref ref) { return records_[ref >> kLaneBits]; }
  /// Lanes that `ref` stands for.
  uint32_t lanes(Ref ref) const {
    const Record& record = (*this)[ref];
    return record.lane_by_lane ? 1u << (ref & 31) : record.lanes;
  }

  /// Time to look for those that nobody refers to any more: they have doubled since the last time.
  bool crowded() const { return free_.empty() && records_.size() >= limit_; }
  /// Frees all but those that `for_each_used(f)` calls f(Ref) for.
  template <class F>
  void free_unused(F&& for_each_used) {
    std::vector<bool> used(records_.size());
    used[kNobody] = true;
    for_each_used([&](Ref ref) { used[ref >> kLaneBits] = true; });
    free_.clear();
    for (size_t i = used.size(); i-- > 0;) {
      if (used[i]) continue;
      records_[i] = {};
      free_.push_back(static_cast<uint32_t>(i));
    }
    limit_ = std::max(kLimit, 2 * (records_.size() - free_.size()));
  }

 private:
  static constexpr size_t kLimit = 4096;
  std::vector<Record> records_{1};
  std::vector<uint32_t> free_;
  size_t limit_ = kLimit;
};

}  // namespace emu::hazards
