#pragma once
// One run on the device that this process has: inputs, launch, result, checks.

#include "common/harness/child.h"
#include "common/harness/device_choice.h"
#include "common/harness/record.h"
#include "common/harness/rung.h"

namespace ladder {

/// Throws UserError (before anything runs) and CudaError.
RunRecord multiply(const Rung& rung, const Options& options, bool emulated, const KernelClock& clock);

}  // namespace ladder
