#pragma once
// What a person reads when a kernel ends badly: where, who, what, which rule.

#include <string>

#include "emulator/machine/cluster.h"
#include "emulator/machine/trap.h"

namespace emu {

/// "step01_kloop/blackwell.cu:97 (in common/ptx/mbarrier.cuh:41)".
std::string describe_location(const Location& location);
/// A shared address by the variable that holds it: "tile_full[2]", "a_tile + 0x40", or the bare address.
std::string describe_shared(const Cluster& cluster, uint32_t address);

std::string report_trap(const Cluster& cluster, const Origin& who, const Trap& trap);
std::string report_hang(const Cluster& cluster);

}  // namespace emu
