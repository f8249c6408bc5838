#pragma once
// An access to global memory on its way over the shadow.

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "emulator/hazards/global_shadow.h"
#include "emulator/hazards/hazards.h"
#include "emulator/machine/grid.h"

namespace emu::hazards {

/// The part of it in a sector.
inline Stamp stamp_of(Stamp stamp, const GlobalPiece& piece, uint64_t sector_address, uint32_t bytes) {
  stamp.bytes = bytes;
  stamp.shift = piece.shift;
  int64_t lane = piece.shift == Stamp::kWhole ? 0 : piece.lane;
  if (piece.shift < GlobalPiece::kOneLane) lane += static_cast<int64_t>(sector_address - piece.address) >> piece.shift;
  stamp.lane = static_cast<int8_t>(lane);
  return stamp;
}

/// One instruction, or an asynchronous operation, on its way over global memory: gathers what it conflicts with.
class Hazards::GlobalSweep {
 public:
  struct Found {
    Stamp before;
    uint32_t before_lanes, lanes;
    uint64_t address;
    uint32_t bytes;  ///< bit i: the one at address + i
    Order order;
  };

  GlobalSweep(Hazards& hazards, const Stamp& now, bool constant = false)
      : hazards_(hazards), now_(now), constant_(constant) {}
  ~GlobalSweep() { let_go(); }
  GlobalSweep(const GlobalSweep&) = delete;

  void as(uint32_t lanes, const View& view) { parts_[part_count_++] = {lanes, &view}; }

  /// Calls f(page, sector, its address, bytes of it) where there is a page, or one is made.
  template <class F>
  void each_sector(uint64_t address, uint64_t bytes, bool create, F&& f) {
    for (uint64_t at = address, end = address + bytes; at < end;) {
      const uint64_t number = at / GlobalShadow::kPageBytes;
      const uint64_t stop = std::min(end, (number + 1) * GlobalShadow::kPageBytes);
      GlobalShadow::Page* const page = hold(number, create);
      if (!page) {
        at = stop;
        continue;
      }
      while (at < stop) {
        const uint64_t begin = at % GlobalShadow::kSectorBytes, next = std::min(stop, at - begin + 32);
        f(*page, at % GlobalShadow::kPageBytes / GlobalShadow::kSectorBytes, at - begin,
          static_cast<uint32_t>(((uint64_t{1} << (next - at)) - 1) << begin));
        at = next;
      }
    }
  }

  void read(const GlobalPiece& piece, bool remember) {
    each_sector(piece.address, piece.bytes, remember,
                [&](GlobalShadow::Page& page, size_t sector, uint64_t address, uint32_t bytes) {
                  const Stamp now = stamp_of(now_, piece, address, bytes);
                  const size_t before = found.size();
                  if (page.written) against_writers(page, sector, address, now, piece.lanes);
                  if (found.size() > before && page.read) look_for_old_copies((*page.read)[sector], before);
                  if (remember) page.add_reader(sector, now);
                });
  }

  /// Before a write: `read_too`: what it would have found as a reader is known.
  void write(const GlobalPiece& piece, bool read_too) {
    each_sector(piece.address, piece.bytes, false,
                [&](GlobalShadow::Page& page, size_t sector, uint64_t address, uint32_t bytes) {
                  const Stamp now = stamp_of(now_, piece, address, bytes);
                  if (page.written && !read_too) against_writers(page, sector, address, now, piece.lanes);
                  if (!page.read) return;
                  for (const Stamp& reader : (*page.read)[sector])
                    if (reader.bytes & bytes) judge(reader, address, now, piece.lanes);
                });
  }

  void remember(const GlobalPiece& piece) {
    each_sector(piece.address, piece.bytes, true,
                [&](GlobalShadow::Page& page, size_t sector, uint64_t address, uint32_t bytes) {
                  page.add_reader(sector, stamp_of(now_, piece, address, bytes));
                });
  }

  const Stamp& now() const { return now_; }

  void let_go() {
    if (held_) held_->unlock();
    held_ = nullptr;
    number_ = ~uint64_t{0};
  }

  std::vector<Found> found;

 private:
  struct Part {
    uint32_t lanes;
    const View* view;
  };

  GlobalShadow::Page* hold(uint64_t number, bool create) {
    if (number == number_ && (held_ || !create)) return held_;
    let_go();
    number_ = number;
    held_ = hazards_.global_page(number, create);
    if (held_) held_->lock();
    return held_;
  }

  void against_writers(GlobalShadow::Page& page, size_t sector, uint64_t address, const Stamp& now, uint32_t lanes) {
    GlobalShadow::Written& written = (*page.written)[sector];
    if (!(written.bytes & now.bytes)) return;
    if (written.last.bytes & now.bytes) judge(written.last, address, now, lanes);
    if (!written.crowd) return;
    const GlobalShadow::Crowd& crowd = page.crowd(written);
    for (const Stamp& other : crowd.plain)
      if (other.bytes & now.bytes) judge(other, address, now, lanes);
    if (now.strong || !crowd.strong) return;
    for (uint32_t word = 0; word < crowd.strong->size(); ++word) {
      const uint32_t bytes = now.bytes & 15u << 4 * word;
      if (!bytes) continue;
      // One is as good as all: the latest, as a rule.
      const std::vector<StrongWrite>& all = (*crowd.strong)[word];
      for (size_t i = all.size(); i-- > 0;) {
        const StrongWrite& write = all[i];
        const Stamp before{.cluster = write.cluster,
                           .when = write.when,
                           .bytes = bytes,
                           .source = write.source,
                           .agent = write.agent,
                           .issuer = write.issuer,
                           .shift = Stamp::kWhole,
                           .kind = write.kind,
                           .strong = true};
        if (known_already(before)) continue;
        const uint32_t first = static_cast<uint32_t>(std::countr_zero(bytes));
        if (!judge_lanes(before, write.lanes, address, lanes_at(now, first, lanes), bytes)) break;
      }
    }
  }

  /// A load of this CTA behind which no memory fence has emptied the L1 cache: an H200 reads from there what it was.
  void look_for_old_copies(const GlobalShadow::Readers& readers, size_t first) {
    const auto cta = [&](const Stamp& stamp) { return stamp.issuer / hazards_.warps_per_cta_; };
    for (const GlobalShadow::Reader& reader : readers) {
      const uint32_t bytes = reader.bytes | reader.overwritten;
      if (!bytes || reader.kind != Kind::load || reader.strong || reader.cluster != now_.cluster ||
          cta(reader) != cta(now_))
        continue;
      const Clock& emptied = hazards_.memories_[cta(now_)]->cache_emptied;
      for (size_t i = first; i < found.size(); ++i) {
        const auto byte = static_cast<uint32_t>(found[i].address % GlobalShadow::kSectorBytes);
        if (found[i].order == Order::unacquired && (bytes >> byte & 1) &&
            !emptied.covers_lanes(reader.agent, reader.lanes(byte), reader.when))
          found[i].order = Order::stale;
      }
    }
  }

  static uint32_t lanes_at(const Stamp& now, uint32_t byte, uint32_t lanes) {
    return now.shift >= GlobalPiece::kOneLane ? lanes : now.lanes(byte);
  }

  bool known_already(const Stamp& before) const {
    return before.cluster == known_.cluster && before.agent == known_.agent && before.when <= known_.when &&
           known_.bytes && (!needs_fence(before) || needs_fence(known_));
  }
  bool needs_fence(const Stamp& before) const {
    return traits(now_.kind).proxy == Proxy::async && (before.kind == Kind::store || before.kind == Kind::atomic);
  }

  Order order(const Stamp& before, uint32_t before_lanes, uint32_t lanes) const {
    const bool ours = before.cluster == hazards_.cluster_.id;
    const bool own = ours && before.issuer == now_.issuer && !before.asynchronous() && !now_.asynchronous();
    if (own && before_lanes == lanes) return Order::known;
    Order worst = Order::known;
    for (size_t i = 0; i < part_count_; ++i) {
      if (!(parts_[i].lanes & lanes)) continue;
      const View& view = *parts_[i].view;
      const View* const known = ours ? &view : view.foreign.find(before.cluster);
      const auto covers = [&](const Clock& clock) {
        return clock.covers_lanes(before.agent, before_lanes, before.when);
      };
      if (!known || !covers(known->done)) {
        if (own) {
          worst = std::max(worst, Order::warp_only);
          continue;
        }
        const View* const noticed = ours ? nullptr : view.foreign_noticed.find(before.cluster);
        if ((ours && covers(view.noticed)) || (noticed && covers(noticed->done))) {
          worst = std::max(worst, Order::unacquired);
          continue;
        }
        const View* const seen = ours ? &view : view.foreign_seen.find(before.cluster);
        if ((seen && covers(seen->seen)) || (known && covers(known->seen))) {
          worst = std::max(worst, Order::weak);
          continue;
        }
        return Order::none;
      }
      if (!needs_fence(before) || covers(known->fenced_global)) continue;
      const View* const fenced = ours ? nullptr : view.foreign_fenced.find(before.cluster);
      if (!fenced || !covers(fenced->done)) worst = std::max(worst, Order::unfenced);
    }
    return worst;
  }

  void judge(const Stamp& before, uint64_t address, const Stamp& now, uint32_t lanes) {
    if (before.strong && now.strong) return;
    if (!constant_ && surely_before(before, now, lanes)) return;
    uint32_t then = 0, here = 0, bytes = 0;
    const auto ask = [&] {
      if (bytes) judge_lanes(before, then, address, here, bytes);
      bytes = 0;
    };
    for (uint32_t left = before.bytes & now.bytes; left; left &= left - 1) {
      const auto byte = static_cast<uint32_t>(std::countr_zero(left));
      const uint32_t before_lanes = before.lanes(byte), now_lanes = lanes_at(now, byte, lanes);
      if (before_lanes != then || now_lanes != here) ask();
      then = before_lanes;
      here = now_lanes;
      bytes |= 1u << byte;
    }
    ask();
  }

  bool surely_before(const Stamp& before, const Stamp& now, uint32_t lanes) {
    // Every lane where it was before.
    if (before.agent == now.agent && before.cluster == now.cluster && before.lane == now.lane &&
        before.shift == now.shift && now.shift < GlobalPiece::kOneLane)
      return true;
    if (known_already(before)) return true;
    if (order(before, kAllLanes, lanes) != Order::known) return false;
    known_ = before;
    return true;
  }

  bool judge_lanes(const Stamp& before, uint32_t before_lanes, uint64_t address, uint32_t lanes, uint32_t bytes) {
    Order between = order(before, before_lanes, lanes);
    if (between == Order::known) {
      if (!constant_) return true;
      between = Order::constant;
    }
    const auto first = static_cast<uint64_t>(std::countr_zero(bytes));
    found.push_back({before, before_lanes, lanes, address + first, bytes >> first, between});
    return false;
  }

  Hazards& hazards_;
  const Stamp now_;
  const bool constant_;  // a load by which nothing may be written in this launch
  std::array<Part, kLanes> parts_;
  size_t part_count_ = 0;
  Stamp known_;  // all of its warp's lanes are known to have been there by then
  uint64_t number_ = ~uint64_t{0};
  GlobalShadow::Page* held_ = nullptr;
};

}  // namespace emu::hazards
