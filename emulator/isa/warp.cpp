// What lanes of a warp do together. PTX ISA, "Data Movement and Conversion Instructions": shfl.sync; "Parallel
// Synchronization and Communication Instructions": bar.warp.sync, vote.sync, match.sync, activemask, redux.sync,
// elect.sync.
//
// A .sync instruction waits for the lanes of its member mask. Lanes of one group may carry different masks (each half
// of a warp shuffles among itself); each set is served when its own lanes are there.

#include <bit>
#include <type_traits>

#include <fmt/format.h>

#include "emulator/hazards/hazards.h"
#include "emulator/isa/families.h"
#include "emulator/isa/float_format.h"
#include "emulator/isa/lanes.h"
#include "emulator/machine/cluster.h"
#include "emulator/machine/device.h"
#include "emulator/machine/grid.h"

namespace emu::isa {
namespace {

/// Calls f(mask, lanes) for each distinct member mask among the active lanes.
template <class F>
void for_masks(const Warp& warp, const Instruction& instruction, F&& f) {
  const uint32_t* masks = warp.read<uint32_t>(instruction.operand[kMembers]);
  uint32_t left = warp.active;
  while (left) {
    uint32_t mask = masks[std::countr_zero(left)], lanes = 0;
    for_lanes(left, [&](int lane) { lanes |= static_cast<uint32_t>(masks[lane] == mask) << lane; });
    f(mask, lanes);
    left &= ~lanes;
  }
}

/// The members where `lanes` execute with a mask that leaves some of them out. ptxas drops the check of a mask that it
/// knows where it sees that the warp has not parted, and an H200 then lets all lanes take part; anything else faults.
uint32_t taken_for_all(Warp& warp, uint32_t mask, uint32_t lanes) {
  Cluster& cluster = warp.cta.cluster;
  const std::string what = fmt::format("lane {} executes an instruction whose member mask {:#010x} does not contain it",
                                       std::countr_zero(lanes & ~mask), mask);
  if (lanes != warp.live || cluster.grid.device.options().strict)
    throw Trap(FaultKind::sync_mask, what,
               "PTX ISA, .sync instructions: behaviour is undefined if the executing thread is not in membermask");
  cluster.remark(cluster.origin(warp),
                 what + "; all lanes of the warp are taken for members, as on an H200 where ptxas knows the mask");
  return lanes;
}

/// Brings the lanes of the member masks together. True: warp.active holds lanes all of whose fellows are active too.
/// False: `flow` is what the instruction returns.
bool together(Warp& warp, const Instruction& instruction, Flow& flow) {
  Cluster& cluster = warp.cta.cluster;
  while (true) {
    uint32_t complete = 0, wanted = 0;
    for_masks(warp, instruction, [&](uint32_t mask, uint32_t lanes) {
      if (lanes & ~mask) mask = taken_for_all(warp, mask, lanes);
      mask &= warp.live;
      wanted |= mask;
      if (!(mask & ~lanes)) complete |= lanes;
    });
    if (complete == warp.active) return true;
    if (complete || warp.active != warp.group->mask) {
      // Those that must wait do so on their own; the others go on.
      uint32_t waiting = warp.active & ~complete;
      cluster.split(warp, waiting, warp.group->pc, instruction.reconverge);
      warp.active = complete;
      flow = Flow::next;
      return complete != 0;
    }
    if (!cluster.gather(warp, wanted, WaitKind::lanes)) {
      flow = Flow::parked;
      return false;
    }
    warp.active = warp.group->mask;
    if (instruction.guard.present()) warp.active &= warp.predicate(instruction.guard);
  }
}

Flow warp_barrier(Warp& warp, const Instruction& instruction);

template <Execute kExecute>
Flow synchronised(Warp& warp, const Instruction& instruction) {
  Flow flow = Flow::next;
  if (!together(warp, instruction, flow)) return flow;
  if (kExecute != warp_barrier && warp.cta.cluster.hazards)
    for_masks(warp, instruction, [&](uint32_t, uint32_t lanes) { warp.cta.cluster.hazards->warp_met(warp, lanes); });
  return kExecute(warp, instruction);
}

void bind_members(Binder& binder, size_t i) {
  binder.out.operand[kMembers] = source(binder, i, 4);
}

// ---- bar.warp.sync --------------------------------------------------------------------------------------------------

/// The lanes of a mask know what the others did before.
Flow warp_barrier_of_all(Warp& warp, const Instruction& instruction) {
  if (auto* const hazards = warp.cta.cluster.hazards.get())
    for_masks(warp, instruction, [&](uint32_t, uint32_t lanes) { hazards->warp_synchronised(warp, lanes); });
  return Flow::next;
}

/// Lanes may meet from different places of the code (an H200: two branches, each with a bar.warp.sync of all lanes).
Flow warp_barrier(Warp& warp, const Instruction& instruction) {
  Flow flow = Flow::next;
  if (together(warp, instruction, flow)) return warp_barrier_of_all(warp, instruction);
  if (const uint32_t met = warp.cta.cluster.meet_elsewhere(warp, instruction.execute))
    if (auto* const hazards = warp.cta.cluster.hazards.get()) hazards->warp_synchronised(warp, met);
  return flow;
}

// ---- shfl.sync ------------------------------------------------------------------------------------------------------

enum class Shuffle : uint64_t { up, down, butterfly, index };

/// Operands: 0 d, 1 a, 2 b, 3 c; `list`: the predicate. PTX ISA, shfl.sync, semantics.
template <Shuffle kMode>
Flow shuffle(Warp& warp, const Instruction& instruction) {
  uint32_t* d = warp.write<uint32_t>(instruction.operand[0]);
  const uint32_t* b = warp.read<uint32_t>(instruction.operand[2]);
  const uint32_t* c = warp.read<uint32_t>(instruction.operand[3]);
  uint32_t a[kLanes];
  std::memcpy(a, warp.read<uint32_t>(instruction.operand[1]), sizeof(a));
  uint32_t in_range = 0;
  active_lanes(warp, [&](int lane_) {
    uint32_t lane = static_cast<uint32_t>(lane_);
    uint32_t by = b[lane] & 31, clamp = c[lane] & 31, segment = c[lane] >> 8 & 31;
    uint32_t last = (lane & segment) | (clamp & ~segment), first = lane & segment;
    // Signed: up from lane 2 by 5 is lane -3.
    int from = static_cast<int>(lane);
    bool valid;
    if constexpr (kMode == Shuffle::up) {
      from -= static_cast<int>(by);
      valid = from >= static_cast<int>(last);
    } else {
      if constexpr (kMode == Shuffle::down) from += static_cast<int>(by);
      if constexpr (kMode == Shuffle::butterfly) from ^= static_cast<int>(by);
      if constexpr (kMode == Shuffle::index) from = static_cast<int>(first | (by & ~segment));
      valid = from <= static_cast<int>(last);
    }
    if (!valid) from = static_cast<int>(lane);
    in_range |= static_cast<uint32_t>(valid) << lane;
    d[lane] = a[from & 31];
  });
  if (instruction.list_count) warp.set_predicate(warp.listed(instruction.list, 0), in_range);
  return Flow::next;
}

void bind_shfl(Binder& binder) {
  if (!binder.take("sync")) binder.refuse("without .sync it does not exist on sm_70 and later");
  std::string_view mode = binder.take_any({"up", "down", "bfly", "idx"});
  binder.take("b32");
  Instruction& out = binder.out;
  const ptx::Operand& results = binder.operand(0);
  bool pair = results.kind == ptx::Operand::Kind::pair;
  out.operand[0] = result(binder, pair ? results.children[0] : results, 4);
  if (pair) {
    out.list_count = 1;
    out.list = binder.list({result(binder, results.children[1], 0)});
  }
  for (size_t i = 1; i <= 3; ++i) out.operand[i] = source(binder, i, 4);
  bind_members(binder, 4);
  if (mode == "up") out.execute = synchronised<shuffle<Shuffle::up>>;
  if (mode == "down") out.execute = synchronised<shuffle<Shuffle::down>>;
  if (mode == "bfly") out.execute = synchronised<shuffle<Shuffle::butterfly>>;
  if (mode == "idx") out.execute = synchronised<shuffle<Shuffle::index>>;
}

// ---- vote.sync, activemask ------------------------------------------------------------------------------------------

enum class Vote : uint64_t { all, any, uniform, ballot };

Flow vote(Warp& warp, const Instruction& instruction) {
  uint32_t p = warp.predicate(instruction.operand[1]);
  Vote kind = static_cast<Vote>(instruction.modifiers);
  for_masks(warp, instruction, [&](uint32_t, uint32_t lanes) {
    uint32_t yes = p & lanes;
    if (kind == Vote::ballot) {
      uint32_t* d = warp.write<uint32_t>(instruction.operand[0]);
      for_lanes(lanes, [&](int lane) { d[lane] = yes; });
    } else {
      bool value = kind == Vote::all ? yes == lanes : kind == Vote::any ? yes != 0 : yes == lanes || yes == 0;
      warp.set_predicate(instruction.operand[0], value ? kAllLanes : 0, lanes);
    }
  });
  return Flow::next;
}

void bind_vote(Binder& binder) {
  if (!binder.take("sync")) binder.refuse("without .sync it does not exist on sm_70 and later");
  std::string_view kind = binder.take_any({"all", "any", "uni", "ballot"});
  bool ballot = kind == "ballot";
  if (!binder.take(ballot ? "b32" : "pred")) binder.refuse("the type is .pred, of a ballot .b32");
  binder.out.modifiers = static_cast<uint64_t>(kind == "all"   ? Vote::all
                                               : kind == "any" ? Vote::any
                                               : kind == "uni" ? Vote::uniform
                                                               : Vote::ballot);
  binder.out.operand[0] = result(binder, 0, ballot ? 4 : 0);
  binder.out.operand[1] = source(binder, 1, 0);
  bind_members(binder, 2);
  binder.out.execute = synchronised<vote>;
}

Flow active_mask(Warp& warp, const Instruction& instruction) {
  uint32_t* d = warp.write<uint32_t>(instruction.operand[0]);
  for_lanes(warp.active, [&](int lane) { d[lane] = warp.active; });
  return Flow::next;
}

void bind_activemask(Binder& binder) {
  binder.take("b32");
  binder.out.operand[0] = result(binder, 0, 4);
  binder.out.execute = active_mask;
}

// ---- match.sync -----------------------------------------------------------------------------------------------------

/// Operands: 0 d, 1 a, 2 predicate of .all.
template <class T, bool kAll>
Flow match(Warp& warp, const Instruction& instruction) {
  T a[kLanes];
  std::memcpy(a, warp.read<T>(instruction.operand[1]), sizeof(a));
  uint32_t* d = warp.write<uint32_t>(instruction.operand[0]);
  for_masks(warp, instruction, [&](uint32_t, uint32_t lanes) {
    uint32_t same[kLanes] = {};
    for_lanes(lanes, [&](int lane) {
      for_lanes(lanes, [&](int other) { same[lane] |= static_cast<uint32_t>(a[other] == a[lane]) << other; });
    });
    for_lanes(lanes, [&](int lane) { d[lane] = kAll && same[lane] != lanes ? 0 : same[lane]; });
    if constexpr (kAll) {
      bool all = same[std::countr_zero(lanes)] == lanes;
      warp.set_predicate(instruction.operand[2], all ? kAllLanes : 0, lanes);
    }
  });
  return Flow::next;
}

void bind_match(Binder& binder) {
  std::string_view kind = binder.take_any({"any", "all"});
  if (!binder.take("sync") || kind.empty()) binder.refuse(".any.sync or .all.sync is wanted");
  std::string_view type = binder.take_next();
  Instruction& out = binder.out;
  const ptx::Operand& results = binder.operand(0);
  bool all = kind == "all", pair = results.kind == ptx::Operand::Kind::pair;
  if (pair && !all) binder.refuse("only .all has a predicate");
  out.operand[0] = result(binder, pair ? results.children[0] : results, 4);
  if (pair) out.operand[2] = result(binder, results.children[1], 0);
  if (type != "b32" && type != "b64") refuse_type(binder, type);
  out.operand[1] = source(binder, 1, type == "b64" ? 8 : 4);
  bind_members(binder, 2);
  if (type == "b32")
    out.execute = all ? synchronised<match<uint32_t, true>> : synchronised<match<uint32_t, false>>;
  else
    out.execute = all ? synchronised<match<uint64_t, true>> : synchronised<match<uint64_t, false>>;
}

// ---- redux.sync -----------------------------------------------------------------------------------------------------

template <class T>
T add(T a, T b) {
  return static_cast<T>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
}
template <class T>
T smaller(T a, T b) {
  return b < a ? b : a;
}
template <class T>
T larger(T a, T b) {
  return a < b ? b : a;
}
uint32_t both(uint32_t a, uint32_t b) {
  return a & b;
}
uint32_t either(uint32_t a, uint32_t b) {
  return a | b;
}
uint32_t differ(uint32_t a, uint32_t b) {
  return a ^ b;
}
/// NaN loses, or with kNan wins; -0 is less than +0.
template <bool kLeast, bool kAbsolute, bool kNan>
float extreme(float a, float b) {
  if constexpr (kAbsolute) {
    a = std::fabs(a);
    b = std::fabs(b);
  }
  if (a != a || b != b) {
    if (kNan || (a != a && b != b)) return std::bit_cast<float>(kCanonicalNan);
    return a != a ? b : a;
  }
  bool less = a < b || (a == b && std::signbit(a));
  return less == kLeast ? a : b;
}

template <class T, auto kCombine>
Flow reduce(Warp& warp, const Instruction& instruction) {
  T a[kLanes];
  std::memcpy(a, warp.read<T>(instruction.operand[1]), sizeof(a));
  T* d = warp.write<T>(instruction.operand[0]);
  for_masks(warp, instruction, [&](uint32_t, uint32_t lanes) {
    int first = std::countr_zero(lanes);
    T value = a[first];
    if constexpr (std::is_same_v<T, float>)
      value = kCombine(value, value);  // one lane's |a|, and its NaN made canonical
    for_lanes(lanes & ~(1u << first), [&](int lane) { value = kCombine(value, a[lane]); });
    for_lanes(lanes, [&](int lane) { d[lane] = value; });
  });
  return Flow::next;
}

template <bool kLeast>
Execute float_reduction(bool absolute, bool nan) {
  if (absolute)
    return nan ? synchronised<reduce<float, extreme<kLeast, true, true>>>
               : synchronised<reduce<float, extreme<kLeast, true, false>>>;
  return nan ? synchronised<reduce<float, extreme<kLeast, false, true>>>
             : synchronised<reduce<float, extreme<kLeast, false, false>>>;
}

void bind_redux(Binder& binder) {
  if (!binder.take("sync")) binder.refuse(".sync is wanted");
  std::string_view operation = binder.take_any({"add", "min", "max", "and", "or", "xor"});
  bool absolute = binder.take("abs"), nan = binder.take("NaN");
  std::string_view type = binder.take_next();
  Instruction& out = binder.out;
  if (type == "f32") {
    if (operation == "min") out.execute = float_reduction<true>(absolute, nan);
    if (operation == "max") out.execute = float_reduction<false>(absolute, nan);
  } else if (!absolute && !nan && type == "b32") {
    if (operation == "and") out.execute = synchronised<reduce<uint32_t, both>>;
    if (operation == "or") out.execute = synchronised<reduce<uint32_t, either>>;
    if (operation == "xor") out.execute = synchronised<reduce<uint32_t, differ>>;
  } else if (!absolute && !nan && type == "u32") {
    if (operation == "add") out.execute = synchronised<reduce<uint32_t, add<uint32_t>>>;
    if (operation == "min") out.execute = synchronised<reduce<uint32_t, smaller<uint32_t>>>;
    if (operation == "max") out.execute = synchronised<reduce<uint32_t, larger<uint32_t>>>;
  } else if (!absolute && !nan && type == "s32") {
    if (operation == "add") out.execute = synchronised<reduce<int32_t, add<int32_t>>>;
    if (operation == "min") out.execute = synchronised<reduce<int32_t, smaller<int32_t>>>;
    if (operation == "max") out.execute = synchronised<reduce<int32_t, larger<int32_t>>>;
  }
  if (!out.execute) refuse_type(binder, type);
  out.operand[0] = result(binder, 0, 4);
  out.operand[1] = source(binder, 1, 4);
  bind_members(binder, 2);
}

// ---- elect.sync -----------------------------------------------------------------------------------------------------

/// The lowest lane of the mask is the leader (read off an H200: isa-facts 8.2). Operands: 0 d, 1 p.
Flow elect(Warp& warp, const Instruction& instruction) {
  uint32_t* d = warp.write<uint32_t>(instruction.operand[0]);
  for_masks(warp, instruction, [&](uint32_t, uint32_t lanes) {
    uint32_t leader = static_cast<uint32_t>(std::countr_zero(lanes));
    for_lanes(lanes, [&](int lane) { d[lane] = leader; });
    warp.set_predicate(instruction.operand[1], 1u << leader, lanes);
  });
  return Flow::next;
}

void bind_elect(Binder& binder) {
  if (!binder.take("sync")) binder.refuse(".sync is wanted");
  const ptx::Operand& results = binder.operand(0);
  if (results.kind != ptx::Operand::Kind::pair) binder.refuse("d|p is wanted");
  binder.out.operand[0] = result(binder, results.children[0], 4);
  binder.out.operand[1] = result(binder, results.children[1], 0);
  bind_members(binder, 1);
  binder.out.execute = synchronised<elect>;
}

constexpr Entry kEntries[] = {
    {"shfl", bind_shfl},   {"vote", bind_vote},   {"activemask", bind_activemask},
    {"match", bind_match}, {"redux", bind_redux}, {"elect", bind_elect},
};

}  // namespace

void bind_warp_barrier(Binder& binder) {
  if (!binder.take("sync")) binder.refuse(".sync is wanted");
  bind_members(binder, 0);
  binder.out.execute = warp_barrier;
  binder.out.meets_elsewhere = true;
}

std::span<const Entry> warp_entries() {
  return kEntries;
}

}  // namespace emu::isa
