#include "emulator/machine/fault_kind.h"

#include <array>

namespace emu {

const FaultTraits& traits(FaultKind kind) {
  using enum FaultCode;
  static constexpr std::array<FaultTraits, kFaultKinds> kTraits = {{
      {"out-of-bounds", illegal_address, "memory accessed that nobody owns",
       "Accesses by threads and copies beyond an allocation of global memory, the CTA's shared memory, a thread's "
       "local "
       "memory or the kernel's parameters"},
      {"use-after-free", illegal_address, "global memory accessed after it was freed",
       "Global memory that has been freed, while nothing else lies there"},
      {"misaligned", misaligned_address, "misaligned access",
       "Addresses and sizes that are no multiple of what the access, the copy, the mbarrier or the tensor map needs"},
      {"address-space", invalid_address_space, "address of the wrong state space",
       "Addresses of one state space where an instruction wants another one's"},
      {"descriptor", illegal_instruction, "descriptor that is none, or names memory that the CTA does not have",
       "Descriptors of operands in shared memory and of instructions (`wgmma`, `tcgen05.mma`, `tcgen05.cp`): fields "
       "that "
       "no chip knows, or rows outside the CTA's shared memory"},
      {"tensor-map", illegal_instruction, "tensor map that is none, or does not fit the copy",
       "128 bytes that are no tensor map, or were changed; coordinates and modes that are not the map's"},
      {"tensor-memory-unallocated", illegal_address, "tensor memory used that is not allocated",
       "Columns used without, beyond or after their allocation, or another CTA's"},
      {"tensor-memory-unwritten", illegal_instruction, "tensor memory read that nothing has written",
       "An MMA that adds to columns that nothing has written; with `LADDER_STRICT` also a `tcgen05.ld` of them, else a "
       "note"},
      {"tensor-memory-leak", launch_failure, "CTA ends with tensor memory still allocated",
       "A CTA that ends before all its columns are freed"},
      {"tensor-memory-free", illegal_instruction, "tensor memory freed that is not allocated",
       "Columns freed twice, or otherwise than they were allocated"},
      {"tensor-memory-alloc", illegal_instruction, "tensor memory asked for against the rules",
       "`tcgen05.alloc` of a number of columns that there is not, of more than the time before, after the permit was "
       "given "
       "up, to memory that is not the CTA's, or of different numbers in a pair"},
      {"tensor-memory-quarter", illegal_address, "lanes of tensor memory that are not the warp's",
       "`tcgen05.ld` and `.st` of lanes outside the quarter that the warp reaches, or from a lane at which their shape "
       "does "
       "not begin"},
      {"cta-group", illegal_instruction, "CTA pair that is none, or mixed cta_groups",
       "`cta_group::1` and `::2` in one kernel, pairs in clusters of an odd size, signals that leave the pair"},
      {"aligned-divergence", illegal_instruction, ".aligned instruction executed by part of a warp",
       "`.aligned` instructions whose guard is true for some lanes only; where the other lanes never come, a `hang`"},
      {"sync-mask", illegal_instruction, ".sync instruction executed by a lane outside its mask",
       "With `LADDER_STRICT`; else a note"},
      {"barrier-invalid", launch_failure, "what is used as an mbarrier is none",
       "Memory used as an mbarrier that no `mbarrier.init` has made one, that was overwritten, or was given up by "
       "`mbarrier.inval`"},
      {"barrier-overflow", launch_failure, "more arrivals or bytes than an mbarrier can take",
       "More arrivals than the phase waits for; a count of bytes out of range"},
      {"barrier-misuse", illegal_instruction, "barrier of the CTA or of the cluster used against its rules",
       "`barrier.sync` and `.arrive` with counts that do not fit each other or the warp; `barrier.cluster` arrives and "
       "waits that do not pair"},
      {"no-such-cta", launch_failure, "CTA addressed that the cluster does not have",
       "Shared addresses and multicast masks with a rank beyond the cluster's size"},
      {"peer-gone", launch_failure, "another CTA of the cluster used after it has ended",
       "What the rule of this name tells beforehand: it has come to pass"},
      {"launch-control", launch_failure, "cluster launch control used against its rules",
       "`clusterlaunchcontrol.try_cancel` by a CTA that has seen that no cluster was left, or with a response or an "
       "mbarrier in another CTA's memory"},
      {"illegal-instruction", illegal_instruction, "instruction with operands that it does not allow",
       "Operands outside the range that the instruction allows, or different in lanes that must agree"},
      {"invalid-target", invalid_pc, "jump or call to where no code is",
       "`brx.idx` beyond its list; calls through pointers that name no function"},
      {"stack", hardware_stack, "stack of a thread used up, or restored wrongly",
       "Recursion and `alloca` beyond the stack; `stackrestore` of what no `stacksave` gave"},
      {"invalid-free", launch_failure, "free() in a kernel of what malloc() has not given",
       "`free()` in a kernel of other addresses, or twice"},
      {"assertion", assert_failed, "an assertion failed", "`assert()` in the kernel"},
      {"trap", launch_failure, "the kernel ended itself", "The instruction `trap`: a check of the kernel's own"},
      {"hang", launch_timeout, "hangs: nobody can go on",
       "Threads that all wait for what nothing under way can bring: an mbarrier, a barrier, tensor memory, copies"},
      {"livelock", launch_timeout, "hangs: everybody waits, or asks in a loop for what nobody changes",
       "Threads that wait, and others that ask again and again for what nobody will change"},
      {"time-limit", launch_timeout, "stopped: it has run for longer than is allowed",
       "Launches that `LADDER_TIME_LIMIT` ends"},
      {"not-emulated", illegal_instruction, "instruction that the emulator does not execute",
       "Instructions that the emulator knows of and does not have: no mistake of the kernel's, but no more was "
       "checked"},
  }};
  return kTraits[static_cast<size_t>(kind)];
}

FaultKind usual_kind(FaultCode code) {
  switch (code) {
    case FaultCode::illegal_address:
      return FaultKind::out_of_bounds;
    case FaultCode::launch_timeout:
      return FaultKind::hang;
    case FaultCode::assert_failed:
      return FaultKind::assertion;
    case FaultCode::hardware_stack:
      return FaultKind::stack;
    case FaultCode::misaligned_address:
      return FaultKind::misaligned;
    case FaultCode::invalid_address_space:
      return FaultKind::address_space;
    case FaultCode::invalid_pc:
      return FaultKind::invalid_target;
    case FaultCode::illegal_instruction:
    case FaultCode::launch_failure:
      break;
  }
  return FaultKind::illegal_instruction;
}

}  // namespace emu
