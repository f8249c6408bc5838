// Global memory: the order of what the threads and the asynchronous operations of a launch do to it, whichever cluster
// they are of.

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "emulator/hazards/global_shadow.h"
#include "emulator/hazards/global_sweep.h"
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

}  // namespace

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

void Hazards::global_threads(Warp& warp, uint32_t lanes, const uint64_t (&address)[kLanes], uint32_t bytes,
                             emu::Access access, uint8_t order) {
  const bool strong = order & Instruction::kStrong, writes = access != emu::Access::read,
             reads = access != emu::Access::write;
  if (strong && reads) acquire_global(warp, lanes, address, order);
  Record now = here(warp, lanes);
  now.kind = kind_of(access);
  now.strong = strong;
  GlobalSweep sweep(*this, stamp(now), order & Instruction::kConstant);
  for (const Lanes& part : threads_of(warp).classes) sweep.as(part.lanes, *part.view);
  for_pieces(lanes, warp.live, address, bytes, [&](const GlobalPiece& piece) {
    if (reads) sweep.read(piece, !writes);
    if (!writes) return;
    sweep.write(piece, reads);
    global_writes_.emplace_back(piece, sweep.now());
  });
  sweep.let_go();
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

void Hazards::report_global(const GlobalSweep& sweep, const Issued& operation) {
  report_global(sweep, operation.record, [&](uint32_t, const GlobalSweep::Found& found) {
    take_for_known(*operation.view, found.before, found.before_lanes);
  });
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
    case Order::constant:
      rule = Rule::constant_load;
      rank = Rank::rule;
      explanation =
          "The load (.nc) goes by a path of its own to memory, for which no fence nor barrier of the launch counts.";
      break;
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
    case Order::stale:
      rule = Rule::weak_order;
      rank = order == Order::stale ? Rank::error : Rank::rule;
      explanation =
          "The writer has a fence before its signal, but none lies behind the relaxed read of the signal: "
          "__threadfence() there, or an acquire. ";
      explanation += order == Order::stale
                         ? "The reader's block has read the bytes before, and an H200 then gives it the old ones from "
                           "its L1 cache."
                         : "A chip does without as long as the reader's L1 cache holds no older copy of the bytes.";
      break;
    case Order::weak:
      rule = Rule::weak_order;
      explanation =
          "What lies between them is too weak: relaxed, with no __threadfence() on the writer's side, or of a scope "
          "that does not hold both. A fence and a signal speak for their own thread, and for those that had met it at "
          "a "
          "__syncthreads() or __syncwarp() before.";
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
  std::string fix;
  if (before.kind <= Kind::atomic && now.kind <= Kind::atomic && order == Order::none)
    fix = before.cluster == cluster_.id && rank_in_cluster == now.cta_rank
              ? "a barrier of both threads between the two (__syncthreads()); where both are to update one place, an "
                "atomic "
                "operation"
              : "a flag or counter between the two (__threadfence() and an atomic on the one side, an atomic and "
                "__threadfence() on the other), grid.sync(), or two launches; where both are to update one place, an "
                "atomic "
                "operation, and a look at it beforehand a volatile or relaxed load";
  told_[{rule, now.source, before.source}] =
      report(rule, rank, object, {side(now, now_lanes), earlier}, explanation, std::move(fix));
}

void Hazards::global_read(Issued& operation, Kind kind, std::span<const Bytes> ranges, bool alone) {
  operation.record.kind = kind;
  GlobalSweep sweep(*this, stamp(operation.record));
  sweep.as(kAllLanes, *operation.view);
  for (const Bytes& range : ranges)
    sweep.read({range.offset, range.bytes, operation.record.lanes, 0, Stamp::kWhole}, false);
  sweep.let_go();
  report_global(sweep, operation);
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
  report_global(sweep, operation);
}

void Hazards::global_allocated(uint64_t address, uint64_t bytes) {
  cluster_.grid.global_shadow->forget(address, bytes);
}

}  // namespace emu::hazards
