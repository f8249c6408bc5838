#pragma once

#include <cstddef>

#include "emulator/machine/device.h"
#include "emulator/runtime/cuda_api.h"

namespace emu::runtime {

struct Function;

struct LaunchRequest {
  Function* function = nullptr;
  dim3 grid, block;
  size_t dynamic_shared_bytes = 0;
  Dim3 cluster{0, 0, 0};  ///< 0x0x0: the launch asked for none
  bool cluster_given = false;
  bool cooperative = false;
  int carveout = -1;
};

}  // namespace emu::runtime
