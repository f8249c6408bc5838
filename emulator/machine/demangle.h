#pragma once

#include <string>

namespace emu {

/// A C++ symbol as its source spells it; any other name as it is.
std::string demangled(const std::string& name);

}  // namespace emu
