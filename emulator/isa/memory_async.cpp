// cp.async, the copies of 4, 8 or 16 bytes from global to shared memory, their groups and their arrival on mbarriers.
// PTX ISA, "Data Movement and Conversion Instructions: Non-bulk copy".
//
// A copy reads its source and shows its result when the schedule says (machine/events.cpp), as the bulk copies do;
// under `earliest` at issue. The lanes of an instruction are one copy; each thread has groups of its own.

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "emulator/hazards/hazards.h"
#include "emulator/isa/families.h"
#include "emulator/isa/lanes.h"
#include "emulator/isa/memory_access.h"
#include "emulator/machine/cluster.h"
#include "emulator/machine/mbarrier.h"

namespace emu::isa {
namespace {

void arrive_now(Cluster& cluster, uint32_t barrier, const Origin& who) {
  mbarrier::Outcome outcome = mbarrier::arrive(cluster.mbarrier_word(barrier, Access::atomic), 1);
  cluster.mbarrier_signal(barrier, who, "cp.async.mbarrier.arrive");
  cluster.mbarrier_store(barrier, outcome.word, outcome.completed);
}

/// A copy is done: who waited for it goes on, arrivals behind it come.
void tell_waiters(Warp& warp) {
  Cluster& cluster = warp.cta.cluster;
  for (size_t i = 0; i < warp.groups.size(); ++i) {
    Group& group = *warp.groups[i];
    if (group.state == Group::State::parked && group.wait.kind == WaitKind::copy_group &&
        std::none_of(warp.copies.begin(), warp.copies.end(),
                     [&](const PendingCopy& copy) { return warp.copy_holds(copy, group.mask, group.wait.address); }))
      cluster.wake(group);
  }
  auto waits = [&](const PendingArrival& arrival) {
    return std::any_of(warp.copies.begin(), warp.copies.end(), [&](const PendingCopy& copy) {
      return (copy.lanes >> arrival.lane & 1) && copy.id <= arrival.after;
    });
  };
  for (size_t i = 0; i < warp.arrivals.size();) {
    if (waits(warp.arrivals[i])) {
      ++i;
      continue;
    }
    const PendingArrival arrival = warp.arrivals[i];
    warp.arrivals.erase(warp.arrivals.begin() + static_cast<std::ptrdiff_t>(i));
    arrive_now(cluster, arrival.barrier, {warp.cta.rank, warp.index, arrival.source, static_cast<int>(arrival.lane)});
  }
}

/// What one lane copies: `read` bytes, and zeros behind them up to `bytes`.
struct Piece {
  std::byte* to;
  uint32_t address;  ///< of it, shared::cluster
  const std::byte* from;
  uint32_t read, bytes;
};

void read(std::span<const Piece> pieces, std::byte* staging) {
  for (const Piece& piece : pieces) {
    if (piece.read) std::memcpy(staging, piece.from, piece.read);
    std::memset(staging + piece.read, 0, piece.bytes - piece.read);
    staging += piece.bytes;
  }
}

void show(std::span<const Piece> pieces, const std::byte* staging) {
  for (const Piece& piece : pieces) {
    std::memcpy(piece.to, staging, piece.bytes);
    staging += piece.bytes;
  }
}

void tell_hazards(Warp& warp, std::span<const Piece> pieces, hazards::Issued* operation) {
  if (!operation) return;
  std::vector<hazards::Hazards::Bytes> ranges;
  for (const Piece& piece : pieces) ranges.push_back({shared_offset(piece.address), piece.bytes});
  warp.cta.cluster.hazards->copied(*operation, warp.cta, ranges);
}

/// The bytes of the lanes in `lanes`, at times that the schedule chooses.
void issue(Warp& warp, uint32_t lanes, std::span<const Piece> pieces) {
  Cluster& cluster = warp.cta.cluster;
  hazards::IssuedPointer operation;
  if (cluster.hazards) {
    operation = cluster.hazards->issue(warp, -1);
    cluster.hazards->completes_in_copy_group(*operation, warp, lanes);
  }
  if (cluster.schedule() == Schedule::earliest) {
    std::byte staging[kLanes * 16];
    read(pieces, staging);
    show(pieces, staging);
    tell_hazards(warp, pieces, operation.get());
    cluster.note_effect();
    return;
  }
  struct State {
    std::vector<Piece> pieces;
    std::byte staging[kLanes * 16];
  };
  auto state = std::make_shared<State>();
  state->pieces.assign(pieces.begin(), pieces.end());
  const uint64_t id = cluster.new_chain();
  warp.copies.push_back({.id = id, .lanes = lanes, .group = warp.copy_groups});
  const Origin who = cluster.origin(warp);
  const Cluster::Times times = cluster.draw_times();
  const Cluster::Order order{.chain = id, .copy = {.warp = &warp, .id = id}};
  cluster.at(times.read, warp.cta, who, order, [state] { read(state->pieces, state->staging); });
  cluster.at(times.show, warp.cta, who, order, [state, &warp, id, operation] {
    show(state->pieces, state->staging);
    tell_hazards(warp, state->pieces, operation.get());
    warp.cta.cluster.note_effect();
    std::erase_if(warp.copies, [&](const PendingCopy& copy) { return copy.id == id; });
    tell_waiters(warp);
  });
}

/// Address: destination. Operands: 0 base of the source, 1 bytes read of it (absent: all), 2 predicate to read none.
/// `immediate`: offset of the source; modifiers: bytes written.
Flow copy(Warp& warp, const Instruction& instruction) {
  const uint32_t bytes = static_cast<uint32_t>(instruction.modifiers);
  std::byte* to[kLanes];
  resolve(warp, MemorySpace::shared, instruction.address, bytes, bytes, Access::write, to);
  const AddressOperand source{.base = instruction.operand[0], .offset = instruction.immediate};
  const Slot& count = instruction.operand[1];
  const uint32_t ignored = instruction.operand[2].present() ? warp.predicate(instruction.operand[2]) : 0;
  // What is not read may lie anywhere, so such lanes ask no door.
  uint32_t length[kLanes] = {}, whole = 0, partial = 0;
  for_lanes(warp.active, [&](int lane) {
    uint64_t read = count.present() ? warp.scalar(count, lane) : bytes;
    if (read > bytes)
      throw Trap(FaultCode::misaligned_address,  // 716 on an H200
                 fmt::format("cp.async with src-size {}: it must be at most cp-size, {}", read, bytes),
                 "PTX ISA, cp.async: behaviour is undefined when src-size is greater than cp-size");
    if (ignored >> lane & 1) read = 0;
    length[lane] = static_cast<uint32_t>(read);
    if (read) (read == bytes ? whole : partial) |= 1u << lane;
  });
  const uint32_t active = warp.active;
  std::byte* from[kLanes] = {};
  warp.active = whole;
  resolve(warp, MemorySpace::global, source, bytes, bytes, Access::read, from);
  for_lanes(partial, [&](int lane) {
    warp.active = 1u << lane;
    resolve(warp, MemorySpace::global, source, length[lane], bytes, Access::read, from);
  });
  warp.active = active;
  Piece pieces[kLanes];
  size_t n = 0;
  for_lanes(active, [&](int lane) {
    pieces[n++] = {to[lane], static_cast<uint32_t>(warp.address(instruction.address, lane)), from[lane], length[lane],
                   bytes};
  });
  issue(warp, active, {pieces, n});
  warp.counters.bytes_into_shared += n * bytes;
  return Flow::next;
}

void bind_copy(Binder& binder) {
  bool all_levels = binder.take("ca");
  if (!all_levels && !binder.take("cg")) binder.refuse(".ca or .cg is wanted");
  if (!binder.take("shared") && !binder.take("shared::cta")) binder.refuse("the destination must be shared memory");
  if (!binder.take("global")) binder.refuse("the source must be global memory");
  bool has_policy = binder.take("L2::cache_hint");
  binder.take_any({"L2::64B", "L2::128B", "L2::256B"});
  int64_t bytes = binder.immediate(2);
  if (bytes != 16 && (!all_levels || (bytes != 4 && bytes != 8)))
    binder.refuse("cp-size must be 16, or with .ca also 4 or 8");
  Instruction& out = binder.out;
  out.address = bind_address(binder, 0, MemorySpace::shared);
  AddressOperand source = bind_address(binder, 1, MemorySpace::global);
  out.operand[0] = source.base;
  out.immediate = source.offset;
  out.modifiers = static_cast<uint64_t>(bytes);
  out.order |= Instruction::kCopy;
  // Behind cp-size: src-size or a predicate, then a policy.
  if (binder.count() > 3 + (has_policy ? 1u : 0u)) {
    Slot slot = binder.input(3, 4);
    out.operand[slot.bytes == 0 ? 2 : 1] = slot;
  }
  out.execute = copy;
}

Flow commit(Warp& warp, const Instruction&) {
  if (auto* const hazards = warp.cta.cluster.hazards.get()) hazards->copies_committed(warp, warp.active);
  for_lanes(warp.active, [&](int lane) { ++warp.copy_groups[static_cast<size_t>(lane)]; });
  return Flow::next;
}

/// `immediate`: groups that may be under way; kAllCopies: everything must be done.
Flow wait(Warp& warp, const Instruction& instruction) {
  const uint32_t allowed = static_cast<uint32_t>(instruction.immediate);
  if (auto* const hazards = warp.cta.cluster.hazards.get()) hazards->copies_waited(warp, warp.active, allowed);
  uint32_t waiting = 0;
  for_lanes(warp.active, [&](int lane) {
    for (const PendingCopy& copy : warp.copies)
      if (warp.copy_holds(copy, 1u << lane, allowed)) waiting |= 1u << lane;
  });
  if (!waiting) return Flow::next;
  const bool all = waiting == warp.group->mask;
  warp.cta.cluster.park(warp, waiting, {.kind = WaitKind::copy_group, .address = allowed}, warp.group->pc + 1);
  return all ? Flow::parked : Flow::next;
}

/// Each lane arrives when its copies up to now are done: at once where it has none under way.
/// .noinc: one of the arrivals that the barrier counts. Without, the phase waits for one more until it comes.
Flow arrive(Warp& warp, const Instruction& instruction) {
  Cluster& cluster = warp.cta.cluster;
  for_lanes(warp.active, [&](int lane) {
    uint32_t address = static_cast<uint32_t>(warp.address(instruction.address, lane));
    uint64_t word = cluster.mbarrier_word(address, Access::atomic);
    mbarrier::need_plausible(word);
    const bool counted = instruction.modifiers;
    uint64_t after = 0;
    for (const PendingCopy& copy : warp.copies)
      if (copy.lanes >> lane & 1) after = copy.id;
    // What the arrival tells may be known to whoever waits from now on; that it comes later is seen to by the phase.
    if (cluster.hazards) {
      cluster.hazards->used(warp, 1u << lane, address);
      cluster.hazards->signalled(address, cluster.hazards->release_copies(warp, lane));
    }
    if (!counted && !after) return;  // one more, and there it is
    if (!counted) cluster.mbarrier_store(address, mbarrier::expect_arrival(word), false);
    const Origin who = cluster.origin(warp, lane);
    if (after)
      warp.arrivals.push_back(
          {.barrier = address, .lane = static_cast<uint32_t>(lane), .after = after, .source = who.source});
    else
      arrive_now(cluster, address, who);
  });
  return Flow::next;
}

void bind_arrive(Binder& binder) {
  if (!binder.take("arrive")) binder.refuse(".arrive is wanted");
  binder.out.modifiers = binder.take("noinc");
  if (!binder.take("shared") && !binder.take("shared::cta")) binder.refuse("the barrier must be in shared memory");
  if (!binder.take("b64")) binder.refuse(".b64 is wanted");
  binder.out.address = bind_address(binder, 0, MemorySpace::shared);
  binder.out.execute = arrive;
}

}  // namespace

void bind_copy_async(Binder& binder) {
  if (binder.take("commit_group")) {
    binder.out.execute = commit;
  } else if (binder.take("wait_group") || binder.take("wait_all")) {
    binder.out.immediate = binder.count() ? binder.immediate(0) : int64_t{Warp::kAllCopies};
    binder.out.execute = wait;
  } else if (binder.take("mbarrier")) {
    bind_arrive(binder);
  } else {
    bind_copy(binder);
  }
}

}  // namespace emu::isa
