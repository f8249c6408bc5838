#pragma once
// Registers that hold nothing but the time, or what follows from it.
//
// A loop that waits often reads a clock beside: to give up after a while, or to sleep the longer the longer it has
// waited (libcu++'s barriers and semaphores do). Whoever asks whether the machine's state comes back has to leave those
// registers out.

#include <vector>

#include "emulator/ptx/ast.h"

namespace emu::ptx {

/// By register: it is computed from a clock (%clock, %clock64, %globaltimer, ...), and not from its own last value,
/// directly or in a ring: such a register may count, or draw random numbers, and its value is progress. Neither is a
/// predicate such a register: it says what became of the time.
std::vector<bool> clock_values(const Function& function);

}  // namespace emu::ptx
