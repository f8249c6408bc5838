#pragma once
// atom and red.

#include "emulator/isa/binder.h"

namespace emu::isa {

void bind_atom(Binder& binder);
void bind_red(Binder& binder);

}  // namespace emu::isa
