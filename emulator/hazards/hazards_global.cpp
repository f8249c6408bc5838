// Global memory: the order of what the threads and the asynchronous operations of a launch do to it, whichever cluster
// they are of.

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "emulator/hazards/global_shadow.h"
#include "emulator/hazards/hazards.h"
#include "emulator/machine/grid.h"
#include "emulator/report/fault_report.h"

namespace emu::hazards {
namespace {

bool writes_global(Kind kind) {
  return kind == Kind::store || kind == Kind::atomic || kind == Kind::tma_store;
}

/// Calls f(GlobalPiece) for the addresses of lanes: neighbours joined to rows, and all lanes where all go to one place.
template <class F>
void for_pieces(uint32_t lanes, uint32_t live, const uint64_t (&address)[kLanes], uint32_t bytes, F&& f) {
  const int first = std::countr_zero(lanes);
  if (!std::has_single_bit(lanes)) {
    bool one_place = true;
    for_lanes(lanes, [&](int lane) { one_place = one_place && address[lane] == address[first]; });
    if (one_place) {
      // Of some lanes one is remembered.
      const bool all = (lanes & live) == live;
      f(GlobalPiece{address[first], bytes, lanes, first, all ? Stamp::kWhole : GlobalPiece::kOneLane});
      return;
    }
  }
  const bool joins = std::has_single_bit(bytes) && bytes <= GlobalShadow::kSectorBytes;
  GlobalPiece row;
  int last = -2;
  for_lanes(lanes, [&](int lane) {
    if (joins && lane == last + 1 && address[lane] == row.address + row.bytes) {
      row.bytes += bytes;
      row.lanes |= 1u << lane;
      row.shift = static_cast<uint8_t>(std::countr_zero(bytes));
    } else {
      if (row.lanes) f(std::as_const(row));
      row = {address[lane], bytes, 1u << lane, lane, GlobalPiece::kOneLane};
    }
    last = lane;
  });
  f(std::as_const(row));
}

/// The part of it in a sector.
Stamp stamp_of(Stamp stamp, const GlobalPiece& piece, uint64_t sector_address, uint32_t bytes) {
  stamp.bytes = bytes;
  stamp.shift = piece.shift;
  int64_t lane = piece.shift == Stamp::kWhole ? 0 : piece.lane;
  if (piece.shift < GlobalPiece::kOneLane) lane += static_cast<int64_t>(sector_address - piece.address) >> piece.shift;
  stamp.lane = static_cast<int8_t>(lane);
  return stamp;
}

}  // namespace

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

  GlobalSweep(Hazards& hazards, const Stamp& now) : hazards_(hazards), now_(now) {}
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
    // Every lane where it was before.
    if (before.agent == now.agent && before.cluster == now.cluster && before.lane == now.lane &&
        before.shift == now.shift && now.shift < GlobalPiece::kOneLane)
      return;
    if (known_already(before)) return;
    if (order(before, kAllLanes, lanes) == Order::known) {
      known_ = before;
      return;
    }
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

  bool judge_lanes(const Stamp& before, uint32_t before_lanes, uint64_t address, uint32_t lanes, uint32_t bytes) {
    const Order between = order(before, before_lanes, lanes);
    if (between == Order::known) return true;
    const auto first = static_cast<uint64_t>(std::countr_zero(bytes));
    found.push_back({before, before_lanes, lanes, address + first, bytes >> first, between});
    return false;
  }

  Hazards& hazards_;
  const Stamp now_;
  std::array<Part, kLanes> parts_;
  size_t part_count_ = 0;
  Stamp known_;  // all of its warp's lanes are known to have been there by then
  uint64_t number_ = ~uint64_t{0};
  GlobalShadow::Page* held_ = nullptr;
};

GlobalShadow::Page* Hazards::global_page(uint64_t number, bool create) {
  auto& [known, page] = pages_[number % pages_.size()];
  if (known == number && page) return page;
  GlobalShadow::Page* const found = cluster_.grid.global_shadow->page(number, create);
  if (found) {
    known = number;
    page = found;
  }
  return found;
}

Stamp Hazards::stamp(const Record& record) const {
  return {.cluster = static_cast<uint32_t>(cluster_.id),
          .when = record.asynchronous() ? record.complete : record.issued,
          .source = record.source,
          .agent = static_cast<uint16_t>(record.channel),
          .issuer = static_cast<uint16_t>(record.issuer),
          .kind = record.kind,
          .strong = record.strong};
}

/// What has been handed over at a place; `wide`: by other clusters, too.
void Hazards::take_over(View& view, const Handed& handed, bool wide) const {
  if (handed.close) view.acquire(*handed.close);
  if (!wide) return;
  if (const View* const ours = handed.wide.foreign.find(cluster_.id)) view.acquire(*ours);
  if (const View* const ours = handed.wide.foreign_fenced.find(cluster_.id)) view.fenced_global.join(ours->done);
  view.foreign.join(handed.wide.foreign);
  view.foreign_fenced.join(handed.wide.foreign_fenced);
}

void Hazards::acquire_global(Warp& warp, uint32_t lanes, const uint64_t (&address)[kLanes], uint8_t order) {
  GlobalShadow& shadow = *cluster_.grid.global_shadow;
  strongly_read_[strongly_read_count_++ % strongly_read_.size()] = address[std::countr_zero(lanes)];
  if (!shadow.anything_handed()) return;
  const bool wide = !(order & Instruction::kNarrow), acquires = order & Instruction::kAcquire;
  Threads& threads = threads_of(warp);
  Clock seen;
  Foreign foreign_seen;
  View noticed;
  uint64_t last = 0;
  uint32_t hearing = 0;
  bool notices = false;
  for_lanes(lanes, [&](int lane) {
    if (address[lane] == last) return;
    last = address[lane];
    Handed handed;
    if (!shadow.handed(last, cluster_.id, handed)) return;
    uint32_t by = 0;
    for_lanes(lanes, [&](int other) { by |= uint32_t{address[other] == last} << other; });
    // What a lane has heard, it knows for good.
    if (threads.global_heard.size() > 1024) threads.global_heard.clear();
    uint32_t& who = threads.global_heard[handed.number << 2 | uint64_t{wide} << 1 | uint64_t{acquires}];
    by &= ~who;
    who |= by;
    if (!by) return;
    hearing |= by;
    foreign_seen.join(handed.wide.foreign_seen);
    if (const View* const ours = handed.wide.foreign_seen.find(cluster_.id)) seen.join(ours->seen);
    if (!handed.close && !wide) return;
    if (acquires) {
      each_class(warp, by, [&](Lanes& part) { take_over(change(part), handed, wide); });
    } else if (handed.released) {
      take_over(noticed, handed, wide);
      notices = true;
    }
  });
  if (!hearing) return;
  if (acquires && wide) empty_cache(warp, lanes);
  // Lanes that ran together have seen the same.
  bool news = false;
  for (const Lanes& part : threads.classes) {
    if (!(part.lanes & lanes)) continue;
    news = news || !part.view->foreign_seen.includes(foreign_seen) || !part.view->seen.includes(seen);
  }
  if (news || notices)
    each_class(warp, lanes, [&](Lanes& part) {
      View& view = change(part);
      view.seen.join(seen);
      view.foreign_seen.join(foreign_seen);
      if (notices) view.notice(noticed);
    });
  if (threads.classes.size() > 1) merge(warp);
}

void Hazards::release_global(Warp& warp, uint32_t lanes, const uint64_t (&address)[kLanes], emu::Access access,
                             uint8_t order) {
  GlobalShadow& shadow = *cluster_.grid.global_shadow;
  const bool wide = !(order & Instruction::kNarrow);
  const int first = std::countr_zero(lanes);
  bool one_place = true;
  for_lanes(lanes, [&](int lane) { one_place = one_place && address[lane] == address[first]; });
  // Many lanes that count in many places tell nobody anything.
  const bool signals = one_place || access == emu::Access::write || (order & Instruction::kRelease);
  const auto& classes = threads_of(warp).classes;
  const bool fenced =
      !(order & Instruction::kRelease) && std::any_of(classes.begin(), classes.end(), [&](const Lanes& part) {
        return (part.lanes & lanes) && !part.view->released.empty();
      });
  if (!signals && !fenced) return;
  uint64_t last = 0;
  if (signals) {
    auto own = std::make_shared<View>();
    Foreign foreign;
    for (const Lanes& part : classes) {
      if (!(part.lanes & lanes)) continue;
      own->seen.join(part.view->seen);
      foreign.join(part.view->foreign_seen);
    }
    own->seen.raise(agent(warp), threads_of(warp).now);
    for_lanes(lanes, [&](int lane) {
      if (address[lane] != last) shadow.tell(address[lane], cluster_.id, own, foreign);
      last = address[lane];
    });
  }
  last = 0;
  if (order & Instruction::kRelease) {
    const std::shared_ptr<const View> view = snapshot(warp, lanes);
    for_lanes(lanes, [&](int lane) {
      if (address[lane] != last) shadow.release(address[lane], cluster_.id, *view, wide);
      last = address[lane];
    });
  } else if (fenced) {
    for (const Lanes& part : classes) {
      View close, widely;
      close.done = part.view->released;
      widely.done = part.view->released_wide;
      widely.foreign = part.view->foreign_released;
      for (View* const view : {&close, &widely}) {
        view->fenced_global = part.view->fenced_global;
        view->foreign_fenced = part.view->foreign_fenced;
      }
      const bool to_others = wide && !widely.done.empty(), closer = !to_others || close.done != widely.done;
      last = 0;
      for_lanes(close.done.empty() ? 0 : part.lanes & lanes, [&](int lane) {
        if (address[lane] == last) return;
        last = address[lane];
        if (to_others) shadow.release(last, cluster_.id, widely, true);
        if (closer) shadow.release(last, cluster_.id, close, false);
      });
    }
  }
  // What comes now is later than what has been told.
  if (signals) tick_after_release(warp, lanes);
}

void Hazards::global_threads(Warp& warp, uint32_t lanes, const uint64_t (&address)[kLanes], uint32_t bytes,
                             emu::Access access, uint8_t order) {
  const bool strong = order & Instruction::kStrong, writes = access != emu::Access::read,
             reads = access != emu::Access::write;
  if (strong && reads) acquire_global(warp, lanes, address, order);
  Record now = here(warp, lanes);
  now.kind = access == emu::Access::read ? Kind::load : access == emu::Access::write ? Kind::store : Kind::atomic;
  now.strong = strong;
  GlobalSweep sweep(*this, stamp(now));
  for (const Lanes& part : threads_of(warp).classes) sweep.as(part.lanes, *part.view);
  for_pieces(lanes, warp.live, address, bytes, [&](const GlobalPiece& piece) {
    if (reads) sweep.read(piece, !writes);
    if (!writes) return;
    sweep.write(piece, reads);
    global_writes_.emplace_back(piece, sweep.now());
  });
  sweep.let_go();
  if (!sweep.found.empty())
    report_global(sweep, now, [&](uint32_t of, const GlobalSweep::Found& found) {
      each_class(warp, of, [&](Lanes& part) { take_for_known(change(part), found.before, found.before_lanes); });
    });
  if (strong && writes) release_global(warp, lanes, address, access, order);
}

/// They have been carried out: so whoever finds their stamp finds what they wrote, too.
void Hazards::settle_global_writes() {
  for (const auto& [piece, stamp] : global_writes_) {
    GlobalSweep sweep(*this, stamp);
    sweep.each_sector(piece.address, piece.bytes, true,
                      [&, &piece = piece, &stamp = stamp](GlobalShadow::Page& page, size_t sector, uint64_t address,
                                                          uint32_t of_sector) {
                        const Stamp here = stamp_of(stamp, piece, address, of_sector);
                        if (here.strong)
                          add_strong(page, sector, here, here.asynchronous() ? kAllLanes : piece.lanes);
                        else
                          page.add_plain(sector, here);
                      });
  }
  global_writes_.clear();
  for (const GlobalDoubt& doubt : std::exchange(global_doubts_, {})) {
    const std::byte* const after = cluster_.global().reading(doubt.address, doubt.before.size());
    for (size_t i = 0; i < doubt.before.size(); ++i)
      if ((doubt.bytes >> i & 1) && after[i] != doubt.before[i]) {
        tell_global(doubt.earlier, doubt.earlier_lanes, doubt.address, doubt.now, doubt.lanes, doubt.order);
        break;
      }
  }
}

void Hazards::add_strong(GlobalShadow::Page& page, size_t sector, const Stamp& stamp, uint32_t lanes) {
  StrongWrite write{.cluster = stamp.cluster,
                    .when = stamp.when,
                    .source = stamp.source,
                    .agent = stamp.agent,
                    .issuer = stamp.issuer,
                    .kind = stamp.kind};
  const auto known = [&](const StrongWrite& earlier) {
    const auto& classes = threads_[stamp.issuer].classes;
    return !stamp.asynchronous() && std::all_of(classes.begin(), classes.end(), [&](const Lanes& part) {
      return !(part.lanes & write.lanes) || part.view->done.covers_lanes(earlier.agent, earlier.lanes, earlier.when);
    });
  };
  for (uint32_t word = 0; word < 8; ++word) {
    const uint32_t bytes = stamp.bytes >> 4 * word & 15;
    if (!bytes) continue;
    if (stamp.shift >= GlobalPiece::kOneLane) {
      write.lanes = lanes;
    } else {
      write.lanes = 0;
      for (uint32_t byte = 0; byte < 4; ++byte)
        if (bytes >> byte & 1) write.lanes |= stamp.lanes(4 * word + byte);
    }
    page.add_strong(sector, word, write, stamp.bytes, known);
  }
}

/// Operations of a narrow scope come in no order among those of other clusters: what was told while the word was read
/// may have been missed.
bool Hazards::told_meanwhile(const Stamp& before, uint32_t lanes) const {
  for (const uint64_t address : strongly_read_) {
    Handed handed;
    if (!address || !cluster_.grid.global_shadow->handed(address, cluster_.id, handed)) continue;
    const View* const theirs = handed.wide.foreign_seen.find(before.cluster);
    if (theirs && theirs->seen.covers_lanes(before.agent, lanes, before.when)) return true;
  }
  return false;
}

template <class Repair>
void Hazards::report_global(const GlobalSweep& sweep, const Record& now, Repair&& repaired) {
  for (GlobalSweep::Found found : sweep.found) {
    if (found.order == Order::none && told_meanwhile(found.before, found.before_lanes)) found.order = Order::weak;
    // Any order will do where only the bytes themselves are at stake: a read has its value before its thread signals
    // whatever depends on that, and writes to one place have an order of their own.
    if (found.order >= Order::unacquired && found.order <= Order::weak && now.kind != Kind::load &&
        now.kind != Kind::tma_load &&
        (!writes_global(found.before.kind) || (found.before.strong && now.kind != Kind::atomic)))
      continue;
    // A store of what is there already does no harm: whether it is one is known when it has been done.
    if (now.kind == Kind::store || (now.kind == Kind::tma_store && !now.strong)) {
      const auto count = static_cast<size_t>(std::bit_width(found.bytes));
      const std::byte* const before = cluster_.global().reading(found.address, count);
      global_doubts_.push_back({found.before, found.before_lanes, found.address, found.bytes, now, found.lanes,
                                found.order, std::vector<std::byte>(before, before + count)});
      continue;
    }
    tell_global(found.before, found.before_lanes, found.address, now, found.lanes, found.order);
    repaired(found.lanes, found);
  }
}

/// One missing wait is one finding.
void Hazards::take_for_known(View& view, const Stamp& before, uint32_t lanes) const {
  const auto raise = [&](View& to) {
    for (const auto clock : {&View::done, &View::seen, &View::fenced_global})
      (to.*clock).raise_lanes(before.agent, lanes, before.when);
  };
  if (before.cluster == cluster_.id) return raise(view);
  auto theirs = std::make_shared<View>();
  raise(*theirs);
  view.foreign.join(before.cluster, theirs);
}

void Hazards::tell_global(const Stamp& before, uint32_t before_lanes, uint64_t address, const Record& now,
                          uint32_t now_lanes, Order order) {
  const bool overwrites = !writes_global(before.kind), reads = !writes_global(now.kind) || now.kind == Kind::atomic;
  Rule rule = overwrites ? Rule::overwrite_too_early : reads ? Rule::read_too_early : Rule::write_write;
  Rank rank = Rank::error;
  std::string explanation = "Nothing between the two orders them: the launch's end would.";
  if (before.kind == Kind::tma_store)
    explanation = fmt::format(
        "A bulk store is done when its thread's cp.async.bulk.wait_group says so (not .read); the {} comes after no "
        "such wait.",
        reads ? "reader" : "other write");
  if (before.kind == Kind::tma_load)
    explanation = "A TMA load has read its source when its mbarrier says so; the write comes after no such wait.";
  switch (order) {
    case Order::known:
      return;
    case Order::unfenced:
      rule = Rule::proxy_fence;
      explanation =
          "The two are ordered, but no fence.proxy.async (all of it, or .global) lies between the threads' "
          "write and the copy.";
      break;
    case Order::warp_only:
      rule = Rule::warp_sync;
      rank = Rank::rule;
      explanation = "The two are ordered only by lanes of a warp running together.";
      break;
    case Order::unacquired:
      rule = Rule::weak_order;
      rank = Rank::rule;
      explanation =
          "The writer has a fence before its signal, but none lies behind the relaxed read of the signal: "
          "__threadfence() "
          "there, or an acquire. A chip does without as long as the reader's L1 cache holds no older copy of the "
          "bytes.";
      break;
    case Order::stale:
      rule = Rule::weak_order;
      explanation =
          "The writer has a fence before its signal, but none lies behind the relaxed read of the signal: "
          "__threadfence() "
          "there, or an acquire. The reader's block has read the bytes before, and an H200 then gives it the old ones "
          "from its L1 cache.";
      break;
    case Order::weak:
      rule = Rule::weak_order;
      explanation =
          "What lies between them is too weak: relaxed, with no __threadfence() on the writer's side, or of a scope "
          "that does not hold both.";
      break;
    default:
      break;
  }
  if (told(rule, now.source, before.source)) return;
  const uint32_t rank_in_cluster = before.issuer / warps_per_cta_;
  const Dim3 cta = cluster_.grid.cta_index(before.cluster, rank_in_cluster);
  Side earlier{
      traits(before.kind).name, place(before.source),
      fmt::format("block ({},{},{}), warp {}{}", cta.x, cta.y, cta.z, before.issuer % warps_per_cta_,
                  std::has_single_bit(before_lanes) ? fmt::format(", lane {}", std::countr_zero(before_lanes)) : ""),
      cluster_.grid.text(before.source)};
  std::string object = fmt::format("global memory at {:#x}", address);
  if (const auto* allocation = cluster_.global().find(address))
    object += fmt::format(": byte {} of {} bytes from {}", address - allocation->address, allocation->bytes,
                          allocation->what);
  told_[{rule, now.source, before.source}] = report(rule, rank, object, {side(now, now_lanes), earlier}, explanation);
}

void Hazards::global_read(Issued& operation, Kind kind, std::span<const Bytes> ranges, bool alone) {
  operation.record.kind = kind;
  GlobalSweep sweep(*this, stamp(operation.record));
  sweep.as(kAllLanes, *operation.view);
  for (const Bytes& range : ranges)
    sweep.read({range.offset, range.bytes, operation.record.lanes, 0, Stamp::kWhole}, false);
  sweep.let_go();
  if (!sweep.found.empty())
    report_global(sweep, operation.record, [&](uint32_t, const GlobalSweep::Found& found) {
      take_for_known(*operation.view, found.before, found.before_lanes);
    });
  if (alone && operation.record.channel <= Stamp::kMostAgent) operation.read_from.assign(ranges.begin(), ranges.end());
}

/// Its mbarrier has been told.
void Hazards::global_read_done(Issued& operation) {
  GlobalSweep sweep(*this, stamp(operation.record));
  for (const Bytes& range : operation.read_from)
    sweep.remember({range.offset, range.bytes, operation.record.lanes, 0, Stamp::kWhole});
  operation.read_from.clear();
}

void Hazards::global_written(Issued& operation, Kind kind, bool reduces, std::span<const Bytes> ranges) {
  operation.record.kind = kind;
  operation.record.strong = reduces;
  GlobalSweep sweep(*this, stamp(operation.record));
  sweep.as(kAllLanes, *operation.view);
  for (const Bytes& range : ranges) {
    const GlobalPiece piece{range.offset, range.bytes, operation.record.lanes, 0, Stamp::kWhole};
    sweep.write(piece, false);
    if (operation.record.channel <= Stamp::kMostAgent) global_writes_.emplace_back(piece, sweep.now());
  }
  sweep.let_go();
  if (!sweep.found.empty())
    report_global(sweep, operation.record, [&](uint32_t, const GlobalSweep::Found& found) {
      take_for_known(*operation.view, found.before, found.before_lanes);
    });
}

void Hazards::global_allocated(uint64_t address, uint64_t bytes) {
  cluster_.grid.global_shadow->forget(address, bytes);
}

}  // namespace emu::hazards
