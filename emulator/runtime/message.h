#pragma once
// What the emulator says to a person, as opposed to what it returns to the program.

#include <string_view>

namespace emu::runtime {

/// One line on stderr, marked as the emulator's.
void say(std::string_view line);

/// The line, then the end of the process with exit status 2: bad input, found before anything ran.
[[noreturn]] void refuse(std::string_view line);

}  // namespace emu::runtime
