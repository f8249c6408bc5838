#pragma once
// What the emulated device says about itself, in the two forms in which programs ask.

#include <optional>

#include "emulator/machine/chip.h"
#include "emulator/runtime/cuda_api.h"
#include "emulator/runtime/settings.h"

namespace emu::runtime {

/// Nothing for a number that is no attribute. The driver API uses the same numbers.
std::optional<int> device_attribute(const Chip& chip, int attribute);

cudaDeviceProp device_properties(const Chip& chip);

}  // namespace emu::runtime
