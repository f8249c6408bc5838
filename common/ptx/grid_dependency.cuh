// Programmatic dependent launch: a kernel whose CTAs may come while the kernel before it in the stream still runs, if
// its launch allows that (LaunchShape::early) and all CTAs of the one before have let it. A kernel that was launched in
// the ordinary way does not wait, and may still let the next one come.
#pragma once

namespace ladder {

/// Waits until the kernels that this one depends on have ended; what they wrote to memory is then visible. Nothing that
/// they may read or write is to be touched before. PTX ISA: griddepcontrol.wait.
__device__ __forceinline__ void griddepcontrol_wait() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}

/// Lets the CTAs of the next kernel come, once all CTAs of this one have executed it or ended: as soon as there is room
/// for them. PTX ISA: griddepcontrol.launch_dependents.
__device__ __forceinline__ void griddepcontrol_launch_dependents() {
  asm volatile("griddepcontrol.launch_dependents;");
}

}  // namespace ladder
