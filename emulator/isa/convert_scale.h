#pragma once

#include <string_view>

#include "emulator/isa/binder.h"

namespace emu::isa {

/// Binds a cvt that has .ue8m0x2 on either side; false where it has not. Types and rounding have been taken.
bool bind_scale(Binder& binder, std::string_view to, std::string_view from, std::string_view rounding);

}  // namespace emu::isa
