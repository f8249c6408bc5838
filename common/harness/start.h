#pragma once
// A program's first start: decides where the kernels run, and starts the program again there (loader.h says why).

#include <functional>
#include <string>
#include <string_view>

#include "common/harness/device_choice.h"
#include "common/harness/options.h"
#include "common/harness/rung.h"

namespace ladder {

/// Exit statuses.
constexpr int kGood = 0, kFailed = 1, kBadInput = 2;

/// One line on stderr. Returns `status`.
int complain(std::string_view program, const std::string& what, int status);

/// Where `options` and this machine send the rung. Throws UserError.
DeviceChoice choose_here(const Rung& rung, const Options& options);

/// Of `options`, what says where and for how long: on, guard, json, time_limit_s. `before` is called with the choice
/// before anything starts, and may throw. On the emulator this process is replaced, unless there is a time limit;
/// otherwise a child runs, and its exit status is returned. Throws UserError.
int start_on_device(const Rung& rung, const Options& options, char** argv,
                    const std::function<void(const DeviceChoice&)>& before);

}  // namespace ladder
