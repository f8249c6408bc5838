// Accesses: what each finds in the shadow, and whether it is ordered after that.

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "emulator/hazards/hazards.h"
#include "emulator/hazards/sweep.h"
#include "emulator/machine/grid.h"

namespace emu::hazards {

bool Hazards::live_barrier(const Cta& cta, size_t cell) const {
  const auto known = barriers_.find(cta.rank << 24 | static_cast<uint32_t>(cell * 4 & ~size_t{7}));
  return known != barriers_.end() && known->second.live;
}

Order Hazards::order(const Record& before, uint32_t before_lanes, const Record& now, uint32_t now_lanes,
                     const View& view, uint32_t together) const {
  if (before.strong && now.strong) return Order::known;
  const KindTraits &b = traits(before.kind), &n = traits(now.kind);
  const bool own = before.issuer == now.issuer;
  // Each lane of the warp has executed tcgen05.alloc; other instructions' lanes have each written their own.
  const bool same_thread =
      own && !now.asynchronous() &&
      (before.kind == Kind::alloc_slot ? (now_lanes & ~before_lanes) == 0
                                       : before_lanes == now_lanes && std::has_single_bit(now_lanes));
  bool known;
  if (!before.asynchronous())
    known = same_thread || view.done.covers_lanes(before.issuer, before_lanes, before.issued) ||
            (b.proxy == Proxy::generic && n.proxy == Proxy::async &&
             view.taken_async.covers_lanes(before.issuer, before_lanes, before.issued));
  else if (b.pipelined && n.pipelined)
    known = before.channel == now.channel || view.done.covers_lanes(before.issuer, before_lanes, before.issued);
  else
    known = view.done.covers_lanes(before.channel, before_lanes, before.complete) ||
            (own && before_lanes == now_lanes && !now.asynchronous() && own_copies_done(before, before_lanes));
  if (!known) {
    if (own && before.asynchronous() && now.kind != Kind::wgmma_operands && own_copies_done(before, before_lanes))
      return Order::warp_only;
    // What the warp does after an asynchronous operation's issue may come before the operation, whatever ran together.
    const bool ran_before = !now.asynchronous() || before.issued <= now.issued;
    if (!before.asynchronous() && own && ran_before && (before_lanes & ~together) == 0) return Order::warp_only;
    if (!before.done_in(view.seen, before_lanes)) return Order::none;
    const auto& fellows = threads_[now.issuer].classes;
    const bool by_fellow = std::any_of(fellows.begin(), fellows.end(), [&](const Lanes& part) {
      // What its own lanes have learnt since it was issued does not help it.
      return !(part.lanes & now_lanes) && before.done_in(part.view->done, before_lanes);
    });
    // Of the two that a wgmma may lack this is the graver one.
    if (now.kind == Kind::wgmma_operands && b.proxy == Proxy::generic && b.writes &&
        !before.done_in(view.fenced, before_lanes))
      return Order::unfenced;
    return own || by_fellow ? Order::warp_only : Order::weak;
  }
  // Reads need a fence before an answer of cluster launch control, and before nothing else that is known.
  if (b.proxy == Proxy::generic && n.proxy == Proxy::async && (b.writes || now.kind == Kind::launch_control) &&
      !before.done_in(view.fenced, before_lanes))
    return Order::unfenced;
  const auto moves_data = [](Kind kind) { return kind != Kind::tensor_alloc && kind != Kind::tensor_dealloc; };
  if (b.proxy == Proxy::tensor && n.proxy == Proxy::tensor && !own && moves_data(before.kind) && moves_data(now.kind) &&
      !view.taken.covers_lanes(before.issuer, before_lanes, before.issued))
    return Order::untaken;
  return Order::known;
}

/// Takes it for ordered, with all that its issuer knew.
void Hazards::repair(View& view, const Record& before, uint32_t before_lanes) const {
  if (before.view) {
    view.acquire(*before.view);
    view.taken.join(before.view->taken);
    view.taken_async.join(before.view->taken_async);
  }
  for (Clock* clock : {&view.done, &view.seen, &view.fenced, &view.taken}) {
    clock->raise_lanes(before.channel, before_lanes, before.asynchronous() ? before.complete : before.issued);
    clock->raise_lanes(before.issuer, before_lanes, before.issued);
  }
}

uint32_t Hazards::line_of(uint32_t source) {
  const auto [known, fresh] = lines_.try_emplace(source, source);
  if (fresh)
    if (const ptx::Location* at = cluster_.grid.code().module().lines(source))
      known->second =
          first_of_line_
              .try_emplace({at->innermost.file, at->innermost.line, at->outermost.file, at->outermost.line}, source)
              .first->second;
  return known->second;
}

Ref Hazards::remember(Record record) {
  if (records_.crowded())
    records_.free_unused([&](auto&& used) {
      for (const auto& memory : memories_) {
        memory->shared.for_each_ref(used);
        memory->tensor.for_each_ref(used);
        for (const auto* last : {&memory->remote_uses, &memory->copies})
          for (const auto& [channel, ref] : *last) used(ref);
      }
      for (const auto& [word, ref] : weak_under_) used(ref);
      for (const auto& [address, barrier] : barriers_) used(barrier.init);
      for (const Doubtful& doubt : doubtful_) used(doubt.conflict.before);
      for (Threads& threads : threads_) threads.records = {};
    });
  return records_.add(std::move(record));
}

/// The record of the running instruction in these lanes; add a lane where they go lane by lane.
Ref Hazards::thread_record(Warp& warp, uint32_t lanes, Kind kind, bool lane_by_lane, bool strong, uint32_t bytes) {
  Threads& threads = threads_of(warp);
  const uint32_t source = cluster_.origin(warp).source;
  const auto made = [&](uint32_t instruction, bool line) -> Threads::Made& {
    const uint64_t what = uint64_t{instruction} << 16 | (uint64_t{bytes} & 0xFF) << 8 |
                          static_cast<uint64_t>(kind) << 3 | uint64_t{strong} << 2 | uint64_t{lane_by_lane} << 1 |
                          uint64_t{line};
    Threads::Made& place = threads.records[what * 0x9E3779B97F4A7C15 >> 58];
    if (place.what != what || place.time != threads.now || (!lane_by_lane && records_[place.ref].lanes != lanes))
      place = {what, threads.now, kNobody};
    return place;
  };
  if (const Ref ref = made(source, false).ref) return ref;
  // Copies of a line in an unrolled loop share a record.
  Ref ref = made(line_of(source), true).ref;
  if (ref) return made(source, false).ref = ref;
  Record record;
  record.kind = kind;
  record.lane_by_lane = lane_by_lane;
  record.strong = strong;
  record.issuer = record.channel = agent(warp);
  record.issued = threads.now;
  record.lanes = lanes;
  record.cta_rank = warp.cta.rank;
  record.warp = warp.index;
  record.source = source;
  record.released = last_release(threads, lanes);
  ref = remember(std::move(record));
  return made(source, false).ref = made(line_of(source), true).ref = ref;
}

void Hazards::threads(Warp& warp, uint32_t lanes, const uint64_t (&address)[kLanes], uint32_t bytes, emu::Access access,
                      uint8_t order) {
  if (order & Instruction::kCopy) return;
  // Below the kernel's own memory lie the words of cooperative groups, which their library uses in its own ways.
  const uint32_t reserved = cluster_.grid.device.chip().shared_reserved_bytes;
  const uint64_t first_address = address[std::countr_zero(lanes)];
  const uint32_t first_rank = shared_rank(static_cast<uint32_t>(first_address));
  bool same_place = true;
  uint32_t of_first_cta = 0;
  for (uint32_t left = lanes; left; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const auto place = static_cast<uint32_t>(address[lane]);
    if (shared_offset(place) < reserved) {
      lanes &= ~(1u << lane);
      continue;
    }
    same_place &= address[lane] == first_address;
    of_first_cta |= uint32_t{shared_rank(place) == first_rank} << lane;
  }
  if (!lanes) return;
  const bool strong = order & Instruction::kStrong, writes = access != emu::Access::read;
  ThreadAccess now{warp, address, bytes, writes, strong, same_place && !writes, kNobody};
  // Lanes that read one place read it together.
  now.base = thread_record(warp, lanes, kind_of(access), !now.together, strong, bytes);
  if (strong && access != emu::Access::write) acquire_locations(warp, lanes, address, order);
  if (of_first_cta) threads(now, of_first_cta, first_rank);
  for (uint32_t left = lanes & ~of_first_cta; left;) {
    const uint32_t rank = shared_rank(static_cast<uint32_t>(address[std::countr_zero(left)]));
    uint32_t of_cta = 0;
    for_lanes(left, [&](int lane) {
      if (shared_rank(static_cast<uint32_t>(address[lane])) == rank) of_cta |= 1u << lane;
    });
    threads(now, of_cta, rank);
    left &= ~of_cta;
  }
  if (strong && writes) release_locations(warp, lanes, address, order, access != emu::Access::write);
}

/// Those of its lanes that access one CTA's memory.
void Hazards::threads(const ThreadAccess& access, uint32_t lanes, uint32_t rank) {
  const auto& [warp, address, bytes, writes, strong, together, base] = access;
  Cta& cta = *cluster_.ctas[rank];
  Shadow& shadow = memories_[rank]->shared;
  const Record now = records_[base];
  if (strong && writes)
    for_lanes(lanes, [&](int lane) {
      const size_t cell = shared_offset(static_cast<uint32_t>(address[lane])) / 4;
      shadow.writers(cell, [&](Ref writer) {
        if (!records_[writer].strong) weak_under_[uint64_t{rank} << 32 | cell] = writer;
      });
    });
  Sweep sweep(*this, cta, false, now, warp.group->mask);
  if (writes) sweep.lanes_write(address, lanes, bytes, base);
  for (const Lanes& part : threads_of(warp).classes) {
    const uint32_t here = part.lanes & lanes;
    if (!here) continue;
    if (together) {
      sweep.as(here, part.view);
      touch(sweep, shadow, writes, shared_offset(static_cast<uint32_t>(address[std::countr_zero(here)])), bytes, base);
      continue;
    }
    sweep.as(here & -here, part.view);
    for (uint32_t left = here; left; left &= left - 1) {
      const auto lane = static_cast<uint32_t>(std::countr_zero(left));
      const uint32_t begin = shared_offset(static_cast<uint32_t>(address[lane]));
      const Ref by = base | lane;
      if (bytes == 4 && begin % 4 == 0 &&
          (writes ? shadow.write_known(begin / 4, by, sweep) : shadow.read_known(begin / 4, by, sweep)))
        continue;
      sweep.as(1u << lane, part.view);
      touch(sweep, shadow, writes, begin, bytes, by);
    }
  }
  if (strong) look_under(sweep, warp, lanes, address, rank);
  if (sweep.of_nothing()) {
    records_.at(base).of_nothing = true;
    read_of_nothing(now, lanes, cta, sweep.first_unwritten());
  }
  if (rank != warp.cta.rank) remote_use(now, base, cta, *snapshot(warp, lanes));
  sweep.finish(warp);
}

/// Of bytes that may be parts of words.
void Hazards::touch(Sweep& sweep, Shadow& shadow, bool writes, uint32_t begin, uint32_t bytes, Ref by) {
  if ((begin | bytes) % 4 == 0) {
    if (writes)
      shadow.write(begin / 4, bytes / 4, by, sweep);
    else
      shadow.read(begin / 4, bytes / 4, by, sweep);
    return;
  }
  for (const uint32_t end = begin + bytes; begin < end;) {
    const uint32_t word = begin / 4, stop = std::min(end, (word + 1) * 4);
    const uint32_t mask = ((1u << (stop - word * 4)) - 1) & ~((1u << (begin - word * 4)) - 1);
    if (writes)
      shadow.write_part(word, mask, by, sweep);
    else
      shadow.read_part(word, mask, by, sweep);
    begin = stop;
  }
}

/// Strong operations do not race with each other, but with plain writes: also with those that another strong operation
/// has written over.
void Hazards::look_under(Sweep& sweep, Warp& warp, uint32_t lanes, const uint64_t (&address)[kLanes], uint32_t rank) {
  for (const Lanes& part : threads_of(warp).classes)
    for_lanes(part.lanes & lanes, [&](int lane) {
      const size_t cell = shared_offset(static_cast<uint32_t>(address[lane])) / 4;
      const auto under = weak_under_.find(uint64_t{rank} << 32 | cell);
      if (under == weak_under_.end()) return;
      sweep.as(1u << lane, part.view);
      sweep.before(under->second, cell);
    });
}

void Hazards::settle_doubtful_stores() {
  for (const Doubtful& doubt : std::exchange(doubtful_, {})) {
    const std::byte* now = doubt.cta->window.data() + doubt.conflict.where.first_column * 4;
    if (std::memcmp(now, doubt.before.data(), doubt.before.size()) != 0)
      report(doubt.conflict, doubt.now, doubt.lanes, *doubt.view, *doubt.cta, false);
  }
}

void Hazards::warp_writes(Warp& warp, uint32_t address, uint32_t bytes, Kind kind) {
  const Ref ref = thread_record(warp, warp.live, kind, false, false);
  const Record now = records_[ref];
  Sweep sweep(*this, warp.cta, false, now, warp.live);
  for (const Lanes& part : threads_of(warp).classes) {
    sweep.as(part.lanes & warp.live, part.view);
    memories_[warp.cta.rank]->shared.write(shared_offset(address) / 4, bytes / 4, ref, sweep);
  }
  sweep.finish(warp);
}

void Hazards::lane_writes(Warp& warp, int lane, uint32_t address, uint32_t bytes, Ref ref) {
  const Record now = records_[ref];
  Sweep sweep(*this, cluster_.cta_of(address), false, now, 1u << lane);
  for (const Lanes& part : threads_of(warp).classes) {
    if (!(part.lanes >> lane & 1)) continue;
    sweep.as(1u << lane, part.view);
    memories_[shared_rank(address)]->shared.write(shared_offset(address) / 4, bytes / 4, ref, sweep);
    break;
  }
  sweep.finish(warp);
}

void Hazards::shared(Issued& operation, Kind kind, Cta& cta, std::span<const Bytes> ranges) {
  operation.record.kind = kind;
  const Ref ref = remember(operation.record);
  const Record now = operation.record;
  Sweep sweep(*this, cta, false, now, now.lanes);
  sweep.as(now.lanes, operation.view);
  Shadow& shadow = memories_[cta.rank]->shared;
  for (const Bytes& range : ranges) {
    const size_t first = range.offset / 4, count = (range.offset + range.bytes + 3) / 4 - first;
    if (traits(kind).writes)
      shadow.write(first, count, ref, sweep);
    else
      shadow.read(first, count, ref, sweep);
  }
  if (sweep.of_nothing()) {
    records_.at(ref).of_nothing = true;
    if (traits(kind).proxy == Proxy::async) read_of_nothing(now, now.lanes, cta, sweep.first_unwritten());
  }
  if (cta.rank != now.cta_rank)
    remote_use(now, ref, cta, *operation.view);
  else if (kind == Kind::tma_load && cta.exited())
    outlives(now);
  else if (kind == Kind::tma_load || kind == Kind::bulk_read)
    memories_[cta.rank]->copies[now.channel] = ref;
  sweep.finish(operation);
}

void Hazards::copied(Issued& operation, Cta& cta, std::span<const Bytes> by_lane) {
  operation.record.kind = Kind::copy;
  operation.record.lane_by_lane = true;
  const Ref base = remember(operation.record);
  const Record now = operation.record;
  Sweep sweep(*this, cta, false, now, now.lanes);
  Shadow& shadow = memories_[cta.rank]->shared;
  auto range = by_lane.begin();
  for_lanes(now.lanes, [&](int lane) {
    sweep.as(1u << lane, operation.view);
    shadow.write(range->offset / 4, range->bytes / 4, base | static_cast<Ref>(lane), sweep);
    ++range;
  });
  sweep.finish(operation);
}

/// Its issuer has been told: what the thread does next is not reported for the same reason again.
void Hazards::repaired(Issued& operation, const Record& before, uint32_t before_lanes) {
  repair(*operation.view, before, before_lanes);
  Warp& warp = *cluster_.ctas[operation.record.cta_rank]->warps[operation.record.warp];
  each_class(warp, operation.record.lanes, [&](Lanes& part) { repair(change(part), before, before_lanes); });
}

void Hazards::tensor(Issued& operation, Kind kind, Cta& cta, std::span<const Cells> ranges) {
  operation.record.kind = kind;
  const Ref ref = remember(operation.record);
  const Record now = operation.record;
  Sweep sweep(*this, cta, true, now, now.lanes);
  sweep.as(now.lanes, operation.view);
  Shadow& shadow = memories_[cta.rank]->tensor;
  for (const Cells& range : ranges)
    for (uint32_t block = range.lane / 16; block * 16 < range.lane + range.lanes; ++block) {
      const size_t first = size_t{block} * TensorMemory::kColumns + range.column;
      if (traits(kind).writes)
        shadow.write(first, range.columns, ref, sweep);
      else
        shadow.read(first, range.columns, ref, sweep);
    }
  if (sweep.of_nothing()) {
    records_.at(ref).of_nothing = true;
    if (traits(kind).proxy == Proxy::async) read_of_nothing(now, now.lanes, cta, sweep.first_unwritten());
  }
  if (cta.rank != now.cta_rank) remote_use(now, ref, cta, *operation.view);
  sweep.finish(operation);
}

/// The allocation has a channel of its own: it is done when the instruction is, for the whole warp, and of a pair,
/// whose warps perform it collectively (PTX ISA, tcgen05: Issue Granularity), for both. What else the two did is not
/// known by it.
void Hazards::tensor_allocated(Warp& warp, uint32_t column, uint32_t columns, Warp* peer) {
  Shadow& shadow = memories_[warp.cta.rank]->tensor;
  // What was there before belonged to another allocation: nobody's any more.
  for (uint32_t block = 0; block < TensorMemory::kTmemLanes / 16; ++block)
    shadow.forget(size_t{block} * TensorMemory::kColumns + column, columns);
  Issued operation = *issue(warp, -1);
  Record& record = operation.record;
  record.channel = channel(ChannelKind::alloc, warp.cta.rank, warp.index);
  record.complete = ++channels_[record.channel].count;
  const Cells all{0, TensorMemory::kTmemLanes, column, columns};
  tensor(operation, Kind::tensor_alloc, warp.cta, {&all, 1});
  for (Warp* user : {&warp, peer})
    if (user) learn(*user, kAllLanes, record.channel, record.complete);
}

void Hazards::tensor_freed(Warp& warp, uint32_t column, uint32_t columns) {
  Issued operation = *issue(warp, -1);
  const Cells all{0, TensorMemory::kTmemLanes, column, columns};
  tensor(operation, Kind::tensor_dealloc, warp.cta, {&all, 1});
}

}  // namespace emu::hazards
