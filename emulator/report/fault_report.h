#pragma once
// What a person reads when a kernel ends badly: where, who, what, which rule.

#include <string>
#include <vector>

#include "emulator/machine/cluster.h"
#include "emulator/machine/fault.h"
#include "emulator/machine/trap.h"

namespace emu {

/// "step01_kloop/blackwell.cu:97 (in common/ptx/mbarrier.cuh:41)".
std::string describe_location(const Location& location);
/// The kernel's own line of it: "step01_kloop/blackwell.cu:97".
std::string describe_line(const Location& location);
/// ", CTA 1 of its cluster"; nothing where it is alone.
std::string describe_rank(const Cta& cta);
/// A shared address by the variable that holds it: "tile_full[2]", "a_tile + 0x40", or the bare address.
std::string describe_shared(const Cluster& cluster, uint32_t address);

/// The same for an offset in any CTA's shared memory.
std::string describe_shared(const Grid& grid, uint32_t offset);

/// "3 bytes", "1 time".
std::string plural(int64_t count, const char* one);

/// What an mbarrier is in the middle of, and who has initialised and signalled it, each on a line of its own.
std::string describe_mbarrier(const Cluster& cluster, uint32_t address, const std::string& new_line);

/// How a frame came to be, the innermost call first: "in inner, called at file.cu:12 of outer".
std::vector<std::string> describe_calls(const Cluster& cluster, const Frame& innermost);

/// Of a warp that ends the kernel by a decision of its own: the waits on mbarriers that it had given up, and what the
/// others do meanwhile. "" where it had given up none.
std::string report_given_up(Cluster& cluster, const Warp& warp);

/// The first line of a report: in the form of the findings where the hazard rules are on, with the kind's id.
std::string headline(const Grid& grid, const Fault& fault, const std::string& plainly);

Fault report_trap(Cluster& cluster, const Origin& who, const Trap& trap);
/// `time_limit_s`: the cluster could still go on, but has run for longer than LADDER_TIME_LIMIT allows; 0: it hangs.
Fault report_hang(Cluster& cluster, double time_limit_s = 0);

}  // namespace emu
