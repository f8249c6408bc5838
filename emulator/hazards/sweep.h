#pragma once
// An access to shared or tensor memory on its way over the shadow.

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <vector>

#include "emulator/hazards/hazards.h"

namespace emu::hazards {

/// One access on its way over the cells of one memory: gathers what it conflicts with, and reports that at the end.
class Hazards::Sweep {
 public:
  Sweep(Hazards& hazards, Cta& cta, bool tensor_memory, const Record& now, uint32_t together)
      : hazards_(hazards), cta_(cta), tensor_memory_(tensor_memory), now_(now), together_(together) {}

  /// Who of the access's lanes goes on, and what it knows.
  void as(uint32_t lanes, const std::shared_ptr<View>& view) {
    if (view.get() != view_) known_ = unknown_ = {};
    if (view.get() != view_ || now_lanes_ != lanes) last_ = kNobody;
    now_lanes_ = lanes;
    view_ = view.get();
  }

  /// The cell is read, and nothing had been written there.
  void unwritten(size_t cell) {
    if (!of_nothing_) unwritten_ = cell;
    of_nothing_ = true;
  }
  bool of_nothing() const { return of_nothing_; }
  size_t first_unwritten() const { return unwritten_; }

  bool known(Ref ref) const { return known_.contains(ref); }
  bool before(Ref ref, size_t cell) { return known_.contains(ref) || judge(ref, cell); }

  /// What was noted of the last cell judged holds of this one.
  void again(size_t cell) {
    for (size_t found : noted_) conflicts_[found].conflict.where.add(cell, hazards_.columns(tensor_memory_));
  }

  uint32_t lanes(Ref ref) const { return hazards_.records_.lanes(ref); }

  bool all_before(Ref ref, uint32_t lanes) {
    return surely_before(ref) ||
           hazards_.order(hazards_.records_[ref], lanes, now_, now_lanes_, *view_, together_) == Order::known;
  }

  Agent warp(Ref ref) const { return hazards_.records_[ref].issuer; }

  /// Loads by a warp's lanes between two of its releases, each lane at a place of its own, or all at one.
  uint64_t moment(Ref ref) const {
    const Record& record = hazards_.records_[ref];
    if (record.kind != Kind::load || !(record.lane_by_lane || record.lanes == kAllLanes)) return 0;
    return (uint64_t{record.issuer} << 3 | uint64_t{record.strong} << 2 | uint64_t{record.lane_by_lane} << 1 | 1)
               << 32 |
           record.issued;
  }

  bool surely_replaces(Ref earlier) {
    return surely_before(earlier) || own_earlier(hazards_.records_[earlier], lanes(earlier));
  }

  bool replaces(Ref earlier, uint32_t lanes) {
    const Record& record = hazards_.records_[earlier];
    if (surely_before(earlier) || own_earlier(record, lanes)) return true;
    // Other lanes of the warp, of which it has heard nothing since.
    if (record.issuer == now_.issuer && record.issued == now_.issued && !record.asynchronous() && !now_.asynchronous())
      return false;
    const Order order = hazards_.order(record, lanes, now_, now_lanes_, *view_, together_);
    return order == Order::known || order == Order::unfenced || order == Order::untaken;
  }

  /// The running instruction's lanes each write `bytes` at a place of their own.
  void lanes_write(const uint64_t (&address)[kLanes], uint32_t lanes, uint32_t bytes, Ref base) {
    address_ = &address;
    writing_ = lanes;
    bytes_ = bytes;
    base_ = base;
  }

  /// Reports, and takes what was reported for ordered from now on: one missing wait is one finding.
  void finish(Warp& warp) {
    finish_with([&](uint32_t lanes, const Record& before, uint32_t before_lanes) {
      hazards_.each_class(warp, lanes,
                          [&](Lanes& part) { hazards_.repair(hazards_.change(part), before, before_lanes); });
    });
  }
  void finish(Issued& operation) {
    finish_with([&](uint32_t, const Record& before, uint32_t before_lanes) {
      hazards_.repaired(operation, before, before_lanes);
    });
  }

 private:
  template <class Repair>
  void finish_with(Repair&& repaired) {
    for (const Found& found : conflicts_) {
      const Record& before = hazards_.records_[found.conflict.before];
      // Two plain stores, or two mbarrier.init: whether they differ is known when this one has been done.
      if ((now_.kind == Kind::store || now_.kind == Kind::barrier_init) && before.kind == now_.kind &&
          !tensor_memory_ && found.conflict.where.last_column - found.conflict.where.first_column < 1024) {
        const std::byte* bytes = cta_.window.data() + found.conflict.where.first_column * 4;
        const size_t count = (found.conflict.where.last_column - found.conflict.where.first_column + 1) * 4;
        hazards_.doubtful_.push_back({found.conflict, now_, found.lanes, found.view, &cta_, {bytes, bytes + count}});
      } else {
        hazards_.report(found.conflict, now_, found.lanes, *found.view, cta_, tensor_memory_);
      }
      repaired(found.lanes, before, found.conflict.before_lanes);
    }
    conflicts_.clear();
  }

  struct Found {
    Conflict conflict;
    uint32_t lanes;
    std::shared_ptr<View> view;
  };
  /// A few records of those met last.
  struct Known {
    static constexpr size_t kPlaces = 16;
    std::array<Ref, kPlaces> bases{};
    Ref& place(Ref ref) { return bases[(ref >> kLaneBits) % kPlaces]; }
    bool contains(Ref ref) const { return bases[(ref >> kLaneBits) % kPlaces] == base_of(ref); }
  };

  /// Generic accesses are simple: those that are known to be done come first, by whatever lane.
  bool surely_before(Ref ref) {
    if (known_.contains(ref)) return true;
    if (unknown_.contains(ref)) return false;
    const Record& record = hazards_.records_[ref];
    const bool generic = traits(now_.kind).proxy == Proxy::generic && record.kind != Kind::barrier_init &&
                         (traits(record.kind).proxy == Proxy::generic || record.asynchronous());
    const bool known = generic && record.done_in(view_->done, kAllLanes);
    (known ? known_ : unknown_).place(ref) = base_of(ref);
    return known;
  }
  bool own_earlier(const Record& record, uint32_t lanes) const {
    return record.issuer == now_.issuer && record.channel == now_.channel && record.lane_by_lane == now_.lane_by_lane &&
           lanes == now_lanes_;
  }

  bool judge(Ref ref, size_t cell) {
    if (cell != cell_) noted_.clear();
    cell_ = cell;
    if (ref == last_) {
      if (last_order_ != Order::known) note(ref, cell);
      return last_order_ == Order::known;
    }
    if (surely_before(ref)) return true;
    const Record& record = hazards_.records_[ref];
    last_ = ref;
    if (record.kind == Kind::tensor_alloc && !traits(now_.kind).writes) of_nothing_ = true;
    last_order_ = hazards_.order(record, hazards_.records_.lanes(ref), now_, now_lanes_, *view_, together_);
    // A live barrier's word is no place for data, in whatever order.
    if (record.kind == Kind::barrier_init && traits(now_.kind).writes && now_.kind != Kind::barrier_init &&
        last_order_ == Order::known && hazards_.live_barrier(cta_, cell))
      last_order_ = Order::none;
    if (last_order_ == Order::warp_only && by_this_instruction(ref, cell)) {
      last_ = kNobody;
      return true;
    }
    if (last_order_ != Order::known) note(ref, cell);
    return last_order_ == Order::known;
  }

  /// CUDA C++ Programming Guide, SIMT Architecture: of lanes that write one place in one instruction, one does.
  bool by_this_instruction(Ref ref, size_t cell) const {
    const uint32_t lane = ref & (kLanes - 1);
    if (!address_ || base_of(ref) != base_ || !(writing_ >> lane & 1)) return false;
    const uint32_t offset = shared_offset(static_cast<uint32_t>((*address_)[lane]));
    return cell >= offset / 4 && cell <= (offset + bytes_ - 1) / 4;
  }

  void note(Ref ref, size_t cell) {
    const Record& record = hazards_.records_[ref];
    for (size_t i = 0; i < conflicts_.size(); ++i) {
      Found& found = conflicts_[i];
      const Record& other = hazards_.records_[found.conflict.before];
      if (found.conflict.order != last_order_ || other.source != record.source || other.kind != record.kind ||
          other.issuer != record.issuer)
        continue;
      found.conflict.where.add(cell, hazards_.columns(tensor_memory_));
      noted_.push_back(i);
      found.conflict.before_lanes |= hazards_.records_.lanes(ref);
      if (record.complete > other.complete) found.conflict.before = ref;
      found.lanes |= now_lanes_;
      return;
    }
    noted_.push_back(conflicts_.size());
    conflicts_.push_back(
        {{ref, hazards_.records_.lanes(ref), last_order_, {}}, now_lanes_, std::make_shared<View>(*view_)});
    conflicts_.back().conflict.where.add(cell, hazards_.columns(tensor_memory_));
  }

  Hazards& hazards_;
  Cta& cta_;
  const bool tensor_memory_;
  const Record& now_;
  const uint32_t together_;
  uint32_t now_lanes_ = 0;
  const View* view_ = nullptr;
  Known known_, unknown_;  // of this view
  Ref last_ = kNobody;
  Order last_order_ = Order::known;
  bool of_nothing_ = false;
  size_t unwritten_ = 0;
  const uint64_t (*address_)[kLanes] = nullptr;
  uint32_t writing_ = 0, bytes_ = 0;
  Ref base_ = kNobody;
  std::vector<Found> conflicts_;
  size_t cell_ = ~size_t{0};
  std::vector<size_t> noted_;  // of the last cell judged
};

}  // namespace emu::hazards
