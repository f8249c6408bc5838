#pragma once
// Counters of every launch, appended to a JSON file: one object a line, so that a program with several launches needs
// no rewriting.

#include <string>

namespace emu {

class Grid;

void append_counters(const std::string& path, const Grid& grid);

}  // namespace emu
