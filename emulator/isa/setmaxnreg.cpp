// setmaxnreg: a warp gives registers back to its CTA, or waits until so many more are free. PTX ISA, "setmaxnreg".
//
// The CTA's pool is what it was launched with: entry count times threads. ptxas 13.0 knows the entry count of a kernel
// with .maxnreg, or with .maxntid or .reqntid and .minnctapersm; in any other it leaves setmaxnreg out (C7508), and so
// does the emulator. It gives no warp more at entry than the largest .inc in the kernel takes ("Used 232 registers" for
// 256 threads, of which half take 232, where 255 would fit). What an exited warp held does not return to the pool (no
// source says that it does).

#include <algorithm>

#include <fmt/format.h>

#include "emulator/isa/families.h"
#include "emulator/machine/cluster.h"
#include "emulator/machine/decoder.h"

namespace emu::isa {
namespace {

constexpr const char* kSource = "PTX ISA, setmaxnreg";

Flow ignored(Warp&, const Instruction&) {
  return Flow::next;
}

// Instruction: immediate is the count wanted, modifiers the entry count.

/// Registers that each thread of the warp holds.
uint32_t& held(Warp& warp, const Instruction& instruction) {
  if (warp.registers_per_thread == 0) warp.registers_per_thread = static_cast<uint32_t>(instruction.modifiers);
  return warp.registers_per_thread;
}

Flow give_back(Warp& warp, const Instruction& instruction) {
  RegisterPool& pool = warp.cta.registers;
  const auto wanted = static_cast<uint32_t>(instruction.immediate);
  uint32_t& count = held(warp, instruction);
  if (wanted > count)
    throw Trap(FaultCode::illegal_instruction,
               fmt::format("setmaxnreg.dec to {} registers a thread by a warp that has {}: .dec can only lower it, use "
                           ".inc or a smaller count",
                           wanted, count),
               kSource);
  pool.free += (count - wanted) * kLanes;
  count = wanted;
  Cluster& cluster = warp.cta.cluster;
  cluster.note_effect();
  for (Group* group : std::exchange(pool.waiting, {})) cluster.wake(*group);  // each looks again
  return Flow::next;
}

Flow take(Warp& warp, const Instruction& instruction) {
  RegisterPool& pool = warp.cta.registers;
  const auto wanted = static_cast<uint32_t>(instruction.immediate);
  uint32_t& count = held(warp, instruction);
  if (wanted < count)
    throw Trap(FaultCode::illegal_instruction,
               fmt::format("setmaxnreg.inc to {} registers a thread by a warp that has {}: .inc can only raise it, use "
                           ".dec or a larger count",
                           wanted, count),
               kSource);
  const uint32_t more = (wanted - count) * kLanes;
  if (more > pool.free) {
    Group& group =
        warp.cta.cluster.park(warp, warp.group->mask, {.kind = WaitKind::registers, .address = more}, warp.group->pc);
    pool.waiting.push_back(&group);
    return Flow::parked;
  }
  pool.free -= more;
  count = wanted;
  warp.cta.cluster.note_effect();
  return Flow::next;
}

/// What the launch bounds leave a thread; 0 when ptxas cannot know.
uint32_t bounded_count(const ptx::Tuning& tuning) {
  if (tuning.maxnreg) return (*tuning.maxnreg + 7) / 8 * 8;
  const auto extent = tuning.reqntid ? tuning.reqntid : tuning.maxntid;
  if (!extent || !tuning.minnctapersm) return 0;
  const uint32_t threads = (extent->x * extent->y * extent->z + 31) / 32 * 32;
  const uint32_t each = 65536 / std::max(1u, threads * *tuning.minnctapersm);
  return std::min(each / 8 * 8, 256u);
}

/// Registers of a thread when the kernel starts; 0 when ptxas cannot know.
uint32_t entry_count(const ptx::Function& function) {
  uint32_t most = 0;
  for (const ptx::Instruction& instruction : function.body)
    if (instruction.name() == "setmaxnreg" && instruction.has("inc") && !instruction.operands.empty())
      most = std::max(most, static_cast<uint32_t>(instruction.operands[0].value));
  const uint32_t bound = bounded_count(function.tuning);
  return most == 0 ? bound : std::min(bound, most);
}

void bind_setmaxnreg(Binder& binder) {
  Instruction& out = binder.out;
  const std::string_view direction = binder.take_any({"inc", "dec"});
  if (direction.empty() || !binder.take("sync") || !binder.source.has("aligned") || !binder.take("u32"))
    binder.refuse(".inc or .dec, .sync.aligned.u32 are wanted");
  out.immediate = binder.immediate(0);
  if (out.immediate < 24 || out.immediate > 256 || out.immediate % 8 != 0)
    binder.refuse(fmt::format("{} registers: 24 to 256 in steps of 8 are wanted", out.immediate));
  const uint32_t count = entry_count(binder.decoder().function());
  out.modifiers = count;
  out.execute = count == 0 ? ignored : direction == "inc" ? take : give_back;
}

constexpr Entry kEntries[] = {{"setmaxnreg", bind_setmaxnreg}};

}  // namespace

std::span<const Entry> register_entries() {
  return kEntries;
}

}  // namespace emu::isa
