// cp.async, the copies of 4, 8 or 16 bytes from global to shared memory, their groups and their arrival on mbarriers.
// PTX ISA, "Data Movement and Conversion Instructions: Non-bulk copy".
//
// The bytes move when the instruction is issued, so groups are always complete. A kernel that forgets to wait for them
// is therefore not found out here; the bulk copies (tma_plain.cpp, tma_tensor.cpp) are truly asynchronous.

#include <cstring>

#include <fmt/format.h>

#include "emulator/isa/families.h"
#include "emulator/isa/lanes.h"
#include "emulator/isa/memory_access.h"
#include "emulator/machine/cluster.h"
#include "emulator/machine/mbarrier.h"

namespace emu::isa {
namespace {

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
  uint32_t readers = 0, partial = 0;
  for_lanes(warp.active, [&](int lane) {
    uint64_t read = count.present() ? warp.scalar(count, lane) : bytes;
    if (read > bytes)
      throw Trap(FaultCode::misaligned_address,  // 716 on an H200
                 fmt::format("cp.async with src-size {}: it must be at most cp-size, {}", read, bytes),
                 "PTX ISA, cp.async: behaviour is undefined when src-size is greater than cp-size");
    if (ignored >> lane & 1 || read == 0)
      std::memset(to[lane], 0, bytes);
    else
      (read == bytes ? readers : partial) |= 1u << lane;
  });
  const uint32_t active = warp.active;
  std::byte* from[kLanes];
  warp.active = readers;
  resolve(warp, MemorySpace::global, source, bytes, bytes, Access::read, from);
  for_lanes(readers, [&](int lane) { std::memcpy(to[lane], from[lane], bytes); });
  for_lanes(partial, [&](int lane) {
    uint32_t read = static_cast<uint32_t>(warp.scalar(count, lane));
    warp.active = 1u << lane;
    resolve(warp, MemorySpace::global, source, read, bytes, Access::read, from);
    std::memcpy(to[lane], from[lane], read);
    std::memset(to[lane] + read, 0, bytes - read);
  });
  warp.active = active;
  warp.counters.bytes_into_shared += static_cast<uint64_t>(__builtin_popcount(active)) * bytes;
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
  // Behind cp-size: src-size or a predicate, then a policy.
  if (binder.count() > 3 + (has_policy ? 1u : 0u)) {
    Slot slot = binder.input(3, 4);
    out.operand[slot.bytes == 0 ? 2 : 1] = slot;
  }
  out.execute = copy;
}

Flow nothing(Warp&, const Instruction&) {
  return Flow::next;
}

/// .noinc: one of the arrivals that the barrier counts. The copies before it are complete, so it comes at once. Without
/// .noinc it first raises the count by the arrival that it is, which changes nothing then.
Flow arrive(Warp& warp, const Instruction& instruction) {
  Cluster& cluster = warp.cta.cluster;
  for_lanes(warp.active, [&](int lane) {
    uint32_t address = static_cast<uint32_t>(warp.address(instruction.address, lane));
    uint64_t word = cluster.mbarrier_word(address, Access::atomic);
    mbarrier::need_plausible(word);
    if (!instruction.modifiers) return;
    mbarrier::Outcome outcome = mbarrier::arrive(word, 1);
    cluster.mbarrier_signal(address, cluster.origin(warp, lane), "cp.async.mbarrier.arrive");
    cluster.mbarrier_store(address, outcome.word, outcome.completed);
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
  if (binder.take("commit_group") || binder.take("wait_group") || binder.take("wait_all"))
    binder.out.execute = nothing;
  else if (binder.take("mbarrier"))
    bind_arrive(binder);
  else
    bind_copy(binder);
}

}  // namespace emu::isa
