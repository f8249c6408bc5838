#pragma once
// What the emulator counted.

#include <nlohmann/json.hpp>

namespace ladder {

/// Of the last launch: the line that it added to the file which LADDER_COUNTERS names. Null if there is none.
nlohmann::ordered_json last_counters();

}  // namespace ladder
