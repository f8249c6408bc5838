// Registers that warps hand to each other while a kernel runs (sm_90a, sm_100a). The kernel must be compiled for a
// known number of registers a thread: __launch_bounds__ with the blocks an SM holds.
#pragma once

namespace ladder {

/// From here on each thread of the warpgroup has kRegisters (24 to 256, a multiple of 8), fewer than before. Whole
/// warpgroups. PTX ISA: setmaxnreg.
template <int kRegisters>
__device__ __forceinline__ void setmaxnreg_dec() {
  static_assert(kRegisters >= 24 && kRegisters <= 256 && kRegisters % 8 == 0);
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

/// The same with more; waits until others have given up as many. PTX ISA: setmaxnreg.
template <int kRegisters>
__device__ __forceinline__ void setmaxnreg_inc() {
  static_assert(kRegisters >= 24 && kRegisters <= 256 && kRegisters % 8 == 0);
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

}  // namespace ladder
