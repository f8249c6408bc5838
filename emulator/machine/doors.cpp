// The doors to a cluster's memories. Every access of an instruction goes through one of them.

#include <fmt/format.h>

#include "emulator/machine/align.h"
#include "emulator/machine/cluster.h"
#include "emulator/machine/grid.h"
#include "emulator/machine/reserved_shared.h"
#include "emulator/report/fault_report.h"

namespace emu {
Cta& Cluster::cta_of(uint32_t address) {
  uint32_t rank = shared_rank(address);
  if (rank >= ctas.size())
    throw Trap(
        FaultKind::no_such_cta, ctas.size() > 1 ? FaultCode::launch_failure : FaultCode::illegal_instruction,
        fmt::format("shared address {:#010x} names CTA {} of a cluster of {}", address, rank, ctas.size()),
        "shared::cluster addresses: CTA rank in bits 31-24; an H200 faults with 719, without a cluster with 715");
  return *ctas[rank];
}

void refuse_gone(const Cta& cta, const char* what) {
  throw Trap(FaultKind::peer_gone,
             fmt::format("{} after CTA {} of the cluster had ended, when it may be another CTA's: end no CTA while "
                         "others still use its shared memory or copies are under way there (wait for the copies; a "
                         "cluster barrier before the end)",
                         what, cta.rank),
             "CUDA C++ Programming Guide, Distributed Shared Memory: all operations must complete before a CTA exits");
}

void Cluster::remark(const Origin& who, const std::string& what) {
  grid.device.remark(
      fmt::format("{} at {}: {}", grid.program.pretty_name, describe_location(grid.location(who.source)), what));
}

bool Cluster::drops(const Cta& cta, const Origin& who, const char* what) {
  if (!gone(cta)) return false;
  if (grid.device.options().strict) refuse_gone(cta, "shared memory is used");
  remark(who,
         fmt::format("{} came after its CTA of the cluster had ended and is lost, as on an H200, where it is a matter "
                     "of time: let no CTA end while others still use its shared memory (a cluster barrier before "
                     "the end)",
                     what));
  return true;
}

std::byte* Cluster::shared(uint32_t address, uint64_t bytes, Access access) {
  Cta& cta = cta_of(address);
  uint32_t offset = shared_offset(address);
  uint32_t reserved = grid.device.chip().shared_reserved_bytes;
  const bool of_groups = offset >= kGroupsOffset && offset + bytes <= kGroupsOffset + kGroupsBytes;
  const uint64_t end = offset + bytes;
  // libcu++ has atomics of 8 and 16 bits in the 32-bit word around them, also at the end of a variable.
  const bool outside = (offset < reserved && !of_groups) || end > align_up(cta.window_bytes, 4);
  if (outside) {
    const std::string what = fmt::format(
        "{} of {} bytes at shared address {:#x}: {}", access == Access::read ? "read" : "write", bytes, address,
        cta.window_bytes == reserved ? "the CTA has no shared memory"
                                     : fmt::format("the CTA's shared memory is {:#x} to {:#x} ({} bytes)", reserved,
                                                   cta.window_bytes - 1, cta.window_bytes - reserved));
    if (offset < reserved || end > cta.window.size() || grid.device.options().strict)
      throw Trap(FaultCode::illegal_address, what, "PTX ISA, shared state space");
    remark(current_, what + fmt::format("; chips give it in pieces of {} bytes and let this pass", kSharedGranule));
  }
  if (gone(cta)) {
    if (access != Access::write || bytes > dropped_.size() || !drops(cta, current_, "a store"))
      refuse_gone(cta, "shared memory is used");
    return dropped_.data();
  }
  if (access == Access::write) note_effect();
  return cta.window.data() + offset;
}

const std::byte* Cluster::grid_parameters() const {
  return grid.parameters();
}

GlobalMemory& Cluster::global() {
  return grid.device.memory();
}

std::byte* Cluster::local(Warp& warp, int lane, uint64_t offset, uint64_t bytes) {
  uint32_t size = warp.frame().top_of(lane);
  if (offset + bytes > size || offset + bytes < offset)
    throw Trap(FaultCode::illegal_address,
               fmt::format("access of {} bytes at local offset {:#x}: the thread has {} bytes of local memory here",
                           bytes, offset, size),
               "PTX ISA, local state space");
  return warp.frames.stack(lane, static_cast<uint32_t>(offset));
}

std::byte* Cluster::generic(Warp& warp, int lane, uint64_t address, uint64_t bytes, Access access) {
  if (is_shared(address)) return shared(static_cast<uint32_t>(address - kSharedWindow), bytes, access);
  if (is_local(address)) return local(warp, lane, address - kLocalWindow, bytes);
  if (access == Access::write) note_effect();
  return global().door(address, bytes, access);
}

}  // namespace emu
