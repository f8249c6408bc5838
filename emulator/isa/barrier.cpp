// CTA barriers and fences. PTX ISA, "barrier{.cta}", "membar / fence".

#include <bit>

#include <fmt/format.h>

#include "emulator/hazards/hazards.h"
#include "emulator/isa/families.h"
#include "emulator/machine/cluster.h"

namespace emu::isa {
namespace {

enum class Kind : uint64_t { sync, arrive, red_popc, red_and, red_or };

constexpr const char* kSource = "PTX ISA, barrier{.cta}";

/// The value that all active lanes must agree on: an H200 faults with 715 where they do not.
uint32_t uniform(const Warp& warp, const Slot& slot, const char* what) {
  uint32_t value = static_cast<uint32_t>(warp.scalar(slot, std::countr_zero(warp.active)));
  for_lanes(warp.active, [&](int lane) {
    uint32_t other = static_cast<uint32_t>(warp.scalar(slot, lane));
    if (other != value)
      throw Trap(FaultKind::barrier_misuse,
                 fmt::format("the barrier's {} differs between the lanes of the warp ({} and {})", what, value, other),
                 kSource);
  });
  return value;
}

/// Operands: 0 barrier number, 1 thread count (absent: everyone), 2 predicate of .red, 3 its result.
Flow execute_barrier(Warp& warp, const Instruction& instruction) {
  Cta& cta = warp.cta;
  Cluster& cluster = cta.cluster;
  Kind kind = static_cast<Kind>(instruction.modifiers);
  uint64_t number = uniform(warp, instruction.operand[0], "number");
  if (number > 15)
    throw Trap(FaultKind::barrier_misuse, fmt::format("barrier {}: a CTA has barriers 0 to 15", number), kSource);
  NamedBarrier& barrier = cta.barriers[number];
  bool everyone = !instruction.operand[1].present();
  uint32_t wanted = everyone ? 0 : uniform(warp, instruction.operand[1], "thread count");
  if (!everyone && (wanted == 0 || wanted % 32))
    throw Trap(
        FaultKind::barrier_misuse,
        fmt::format("barrier {} for {} threads: the count must be a multiple of 32, at least 32", number, wanted),
        kSource);
  if (barrier.in_use() && (barrier.everyone != everyone || barrier.wanted != wanted))
    throw Trap(
        FaultKind::barrier_misuse,
        fmt::format("barrier {} is in use for {} threads and now asked for {}", number,
                    barrier.everyone ? cta.live_threads() : barrier.wanted, everyone ? cta.live_threads() : wanted),
        kSource);
  barrier.everyone = everyone;
  barrier.wanted = wanted;
  uint32_t lanes = warp.active;
  if (instruction.operand[2].present()) {
    barrier.votes += static_cast<uint32_t>(std::popcount(lanes));
    barrier.trues += static_cast<uint32_t>(std::popcount(warp.predicate(instruction.operand[2]) & lanes));
  }
  cluster.barrier_arrive(warp, static_cast<uint32_t>(number), lanes);
  if (kind == Kind::arrive) {
    cluster.barrier_check(cta, static_cast<uint32_t>(number));
    return Flow::next;
  }
  bool all = lanes == warp.group->mask;
  Group& group = cluster.park(warp, lanes, {.kind = WaitKind::cta_barrier, .address = static_cast<uint32_t>(number)},
                              warp.group->pc + 1);
  barrier.waiting.push_back({&group, instruction.operand[3], kind == Kind::red_and});
  cluster.barrier_check(cta, static_cast<uint32_t>(number));
  return all ? Flow::parked : Flow::next;
}

void bind_barrier(Binder& binder) {
  bool old_form = binder.source.name() == "bar";
  if (binder.take("warp")) {
    bind_warp_barrier(binder);
    return;
  }
  if (binder.take("cluster")) {
    bind_cluster_barrier(binder);
    return;
  }
  binder.take("cta");
  // bar is barrier.cta.aligned.
  binder.out.aligned = old_form || binder.take("aligned");
  Kind kind;
  if (binder.take("sync"))
    kind = Kind::sync;
  else if (binder.take("arrive"))
    kind = Kind::arrive;
  else if (binder.take("red")) {
    if (binder.take("popc")) {
      kind = Kind::red_popc;
      binder.take("u32");
    } else if (binder.take("and")) {
      kind = Kind::red_and;
      binder.take("pred");
    } else if (binder.take("or")) {
      kind = Kind::red_or;
      binder.take("pred");
    } else
      binder.refuse(".red needs .popc, .and or .or");
  } else
    binder.refuse("sync, arrive or red is wanted");
  Instruction& out = binder.out;
  out.modifiers = static_cast<uint64_t>(kind);
  size_t next = 0;
  bool reduces = kind == Kind::red_popc || kind == Kind::red_and || kind == Kind::red_or;
  if (reduces) out.operand[3] = binder.output(next++);
  out.operand[0] = binder.input(next++, 4);
  size_t left = binder.count() - next;
  if (left == (reduces ? 2u : 1u)) out.operand[1] = binder.input(next++, 4);
  if (reduces) out.operand[2] = binder.input(next++, 0);
  out.execute = execute_barrier;
}

// Instruction::modifiers of a fence.
constexpr uint64_t kProxyFence = 1, kInitFence = 2, kMemoryFence = 4, kOfShared = 8, kOfGlobal = 16, kNarrow = 32,
                   kAsyncRelease = 64, kAsyncAcquire = 128;

Flow execute_fence(Warp& warp, const Instruction& instruction) {
  auto* const hazards = warp.cta.cluster.hazards.get();
  if (!hazards) return Flow::next;
  if (instruction.modifiers & kProxyFence)
    hazards->proxy_fence(warp, warp.active, instruction.modifiers & kOfShared, instruction.modifiers & kOfGlobal);
  if (instruction.modifiers & kAsyncRelease) hazards->release_to_async(warp, warp.active);
  if (instruction.modifiers & kAsyncAcquire) hazards->acquire_for_async(warp, warp.active);
  if (instruction.modifiers & kInitFence) hazards->init_fence(warp, warp.active);
  if (instruction.modifiers & kMemoryFence) hazards->memory_fence(warp, warp.active, instruction.modifiers & kNarrow);
  return Flow::next;
}

/// What the CTA's threads did to other CTAs' mbarriers is done before what follows the fence.
Flow execute_release_fence(Warp& warp, const Instruction& instruction) {
  warp.cta.cluster.complete_remote(warp.cta);
  return execute_fence(warp, instruction);
}

/// Memory here is sequentially consistent within a cluster, and between clusters visible operations pass one at a time;
/// so a fence orders nothing that was not in order. One of gpu or sys scope is itself admitted in order.
void bind_fence(Binder& binder) {
  binder.out.modifiers = kMemoryFence;
  while (!binder.next().empty()) {
    std::string_view modifier = binder.take_next();
    if (modifier == "gpu" || modifier == "sys" || modifier == "gl") binder.out.visible = true;
    if (modifier == "async") binder.out.modifiers = kProxyFence;
    if (modifier == "async::generic")
      binder.out.modifiers = binder.source.has("release") ? kAsyncRelease : kAsyncAcquire;
    if (modifier == "mbarrier_init") binder.out.modifiers = kInitFence;
    if (modifier == "alias" || modifier.starts_with("tensormap")) binder.out.modifiers = 0;
  }
  if (binder.out.modifiers == kProxyFence) {
    const bool global = binder.source.has("global"),
               narrow = binder.source.has("shared::cta") || binder.source.has("shared::cluster");
    if (!global) binder.out.modifiers |= kOfShared;
    if (!narrow) binder.out.modifiers |= kOfGlobal;
  }
  if (binder.out.modifiers == kMemoryFence && (binder.source.has("cta") || binder.source.has("cluster")))
    binder.out.modifiers |= kNarrow;
  if (binder.source.has("mbarrier_init")) binder.out.visible = false;
  bool proxies = binder.source.has("proxy") || binder.source.has("mbarrier_init");
  binder.out.execute = proxies ? execute_fence : execute_release_fence;
}

constexpr Entry kEntries[] = {
    {"bar", bind_barrier}, {"barrier", bind_barrier}, {"fence", bind_fence}, {"membar", bind_fence}};

}  // namespace

std::span<const Entry> barrier_entries() {
  return kEntries;
}

}  // namespace emu::isa
