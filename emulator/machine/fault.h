#pragma once
// How a launch ended badly.

#include <string>
#include <vector>

#include "emulator/machine/fault_kind.h"

namespace emu {

/// A place that a report names.
struct Side {
  std::string what;   ///< "TMA load"
  std::string where;  ///< source lines: the kernel's, and the wrapper's
  std::string who;    ///< "block (0,0,0), warp 0, lane 0"
  std::string instruction;
  std::vector<std::string> also = {};  ///< other lines of which the same holds
};

struct Fault {
  int error = 0;            ///< the CUDA error that sticks
  std::string report = {};  ///< for a person
  // The same for `./ladder check`, in parts.
  FaultKind kind = FaultKind::illegal_instruction;
  std::string title = {}, message = {}, source = {};
  std::vector<Side> sides = {};  ///< who stopped it; of a hang, who waits for what nobody will bring
};

/// A cluster ended in a trap or a hang.
struct ClusterFault {
  Fault fault;
  bool at_once = false;  ///< whatever others do that would come before it
};

}  // namespace emu
