#pragma once
// One program on this machine's GPU, through the driver alone, which is loaded when it is first asked for.

#include <string>
#include <vector>

#include "tests/probes/replay/program.h"

namespace replay {

class Gpu {
 public:
  /// Throws std::runtime_error when there is no driver or no GPU.
  Gpu();

  std::string name, target;  ///< "NVIDIA H200", "sm_90a"
  int driver = 0;            ///< CUDA version that the driver speaks, 13000 for 13.0

  struct Result {
    std::string refusal;  ///< not empty: the driver does not take the program for this chip, and why
    int error = 0;        ///< the CUDA error in which it ended; the context is unusable then
    std::vector<char> after;
  };
  Result run(const Program& program);
};

}  // namespace replay
