#include "common/harness/start.h"

#include <fmt/format.h>
#include <string.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <system_error>

#include "common/harness/child.h"
#include "common/harness/gpu_probe.h"
#include "common/harness/loader.h"
#include "common/harness/user_error.h"

namespace ladder {
namespace {

/// A file that lives as long as the process and its successors, for the emulator's counters.
std::string anonymous_file() {
  const int descriptor = memfd_create("ladder-counters", 0);
  return descriptor < 0 ? std::string() : fmt::format("/proc/self/fd/{}", descriptor);
}

int report_end(const Rung& rung, const ChildEnd& end, double limit_s, bool emulated) {
  if (end.timed_out) {
    const char* hint = emulated ? "it still did something, or the emulator would have said what hangs; take a smaller "
                                  "shape, or allow more with --time-limit"
                                : "--on b200 runs it on the emulator, which says what hangs, --guard traps in the wait "
                                  "that lasts too long, --time-limit allows more";
    return complain(rung.name, fmt::format("a kernel did not end within {} s and was killed; {}", limit_s, hint),
                    kFailed);
  }
  if (end.signal != 0) {
    return complain(rung.name, fmt::format("ended by signal {} ({})", end.signal, strsignal(end.signal)), kFailed);
  }
  return end.status;
}

}  // namespace

int complain(std::string_view program, const std::string& what, int status) {
  try {
    fmt::print(stderr, "{}: {}\n", program, what);
  } catch (const std::system_error&) {
    // stderr is closed; the status says it
  }
  return status;
}

DeviceChoice choose_here(const Rung& rung, const Options& options) {
  const char* wished_chip = std::getenv("LADDER_CHIP");
  return choose_device(rung, options, wished_chip == nullptr ? "" : wished_chip,
                       [] { return probe_gpu(emulator_folder().value_or("")); });
}

int start_on_device(const Rung& rung, const Options& options, char** argv,
                    const std::function<void(const DeviceChoice&)>& before) {
  const auto emulator = emulator_folder();
  const DeviceChoice choice = choose_here(rung, options);
  before(choice);
  const std::filesystem::path program = executable_to_start(options.guard);
  const double limit_s = options.time_limit_s.value_or(kDefaultTimeLimitSeconds);
  if (!choice.emulated) {
    const auto toolkit = toolkit_folder();
    if (!toolkit) {
      throw UserError(
          "--on gpu: no CUDA runtime (libcudart) is found beside the emulator's; put the toolkit's library "
          "folder into LD_LIBRARY_PATH");
    }
    const auto environment = changed_environment(changes_for_gpu(*toolkit, emulator.value_or("")));
    return report_end(rung, run_with_time_limit(program, argv, environment, limit_s), limit_s, false);
  }
  if (!emulator) {
    throw UserError(
        fmt::format("--on {}: the emulator's libcudart is not in ../lib from {}; build it with ./ladder build",
                    options.on, executable_path().parent_path().string()));
  }
  if (!choice.note.empty()) fmt::print(options.json ? stderr : stdout, "{}: {}\n", rung.name, choice.note);
  std::fflush(nullptr);
  Changes changes = changes_for_emulator(*emulator, choice.chip);
  if (std::getenv("LADDER_COUNTERS") == nullptr) changes["LADDER_COUNTERS"] = anonymous_file();
  const auto environment = changed_environment(changes);
  if (options.time_limit_s)
    return report_end(rung, run_with_time_limit(program, argv, environment, limit_s), limit_s, true);
  start_again(program, argv, environment);
}

}  // namespace ladder
