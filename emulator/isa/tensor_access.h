#pragma once
// Tensor-memory loads and stores that have been issued and not yet carried out.

#include "emulator/machine/warp.h"

namespace emu {

/// Carries out the pending loads and stores (all up to and including the last one concerned, in issue order) whose
/// registers `instruction` reads or writes: the scoreboard.
void resolve_tensor_dependencies(Warp& warp, const Instruction& instruction);

/// For the hazard rules: `instruction` uses registers of tcgen05.ld in `lanes`, which are there by then.
void note_tensor_consumption(Warp& warp, const Instruction& instruction, uint32_t lanes);

/// Waits for the wgmma whose D `instruction` touches. False: the running group has been parked. In warpgroup.cpp.
bool settle_wgmma(Warp& warp, const Instruction& instruction);

}  // namespace emu
