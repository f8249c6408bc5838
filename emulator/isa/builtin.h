#pragma once
// Functions that every program may call and no program contains: printf, assert, malloc and free. CUDA programming
// guide, "Formatted Output", "Assertion", "Dynamic Global Memory Allocation and Operations".

#include <cstdint>
#include <string_view>

#include "emulator/machine/warp.h"

namespace emu::isa {

/// `call` is one of the running frame; `lanes` call together.
using Builtin = void (*)(Warp& warp, const CallSite& call, uint32_t lanes);

/// nullptr when there is no such function.
Builtin find_builtin(std::string_view name);

}  // namespace emu::isa
