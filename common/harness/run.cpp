// run_rung: all of a rung's main. See loader.h for why a run starts its own program again.

#include <fmt/format.h>
#include <string.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <system_error>

#include "common/harness/child.h"
#include "common/harness/cuda_error.h"
#include "common/harness/device_choice.h"
#include "common/harness/loader.h"
#include "common/harness/memory_limits.h"
#include "common/harness/multiply.h"
#include "common/harness/npy.h"
#include "common/harness/options.h"
#include "common/harness/record.h"
#include "common/harness/rung.h"
#include "common/harness/user_error.h"

namespace ladder {
namespace {

constexpr int kGood = 0, kFailed = 1, kBadInput = 2;

int complain(const Rung& rung, const std::string& what, int status) {
  try {
    fmt::print(stderr, "{}: {}\n", rung.name, what);
  } catch (const std::system_error&) {
    // stderr is closed; the status says it
  }
  return status;
}

/// A's and B's copies and D on the host, and the emulated device's memory, which is the host's too.
void check_host_memory(const Options& options, bool emulated) {
  const uint64_t matrices = matrices_bytes(options.shape, options.in, options.out);
  uint64_t needed = emulated && matrices <= UINT64_MAX / 2 ? 2 * matrices : matrices;
  if (options.round) {
    // One file at a time is held as float32 beside its rounded form.
    const uint64_t rows = static_cast<uint64_t>(std::max(options.shape.m, options.shape.n));
    needed += std::min(UINT64_MAX - needed, rows * static_cast<uint64_t>(options.shape.k) * 4);
  }
  const std::string what = fmt::format("A, B and D of {}{}", to_string(options.shape),
                                       emulated ? ", on the host and on the emulated device" : "");
  check_memory(needed, available_host_memory(), "of host memory", what.c_str());
}

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
    return complain(rung, fmt::format("a kernel did not end within {} s and was killed; {}", limit_s, hint), kFailed);
  }
  if (end.signal != 0) {
    return complain(rung, fmt::format("ended by signal {} ({})", end.signal, strsignal(end.signal)), kFailed);
  }
  return end.status;
}

/// The first start: decides, then starts the program again.
int decide_and_start(const Rung& rung, const Options& options, char** argv) {
  const auto emulator = emulator_folder();
  const char* wished_chip = std::getenv("LADDER_CHIP");
  const DeviceChoice choice = choose_device(rung, options, wished_chip == nullptr ? "" : wished_chip,
                                            [&] { return probe_gpu(emulator.value_or("")); });
  choose_variant(rung, choice.family, options.variant);
  check_host_memory(options, choice.emulated);
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

/// The second start: runs.
int run_here(const Rung& rung, const Options& options, Stage stage) {
  const KernelClock clock;
  verify_runtime(stage);
  try {
    const RunRecord record = multiply(rung, options, stage == Stage::emulator, clock);
    fmt::print("{}", options.json ? to_json(record).dump(2) + "\n" : to_text(record));
    if (options.json && !record.good()) fmt::print(stderr, "{}", to_text(record));
    return record.good() ? kGood : kFailed;
  } catch (const CudaError& error) {
    // What the emulator had to say about a fault is on stderr already.
    return complain(rung, error.what(), kFailed);
  }
}

}  // namespace

int run_rung(const Rung& rung, int argc, char** argv) {
  try {
    const Stage stage = take_stage();
    const CommandLine line = parse_command_line(rung, argc, argv);
    if (!line.options) {
      fmt::print("{}", line.help);
      return kGood;
    }
    const Options& options = *line.options;
    const int status = stage == Stage::first ? decide_and_start(rung, options, argv) : run_here(rung, options, stage);
    if (std::fflush(stdout) != 0) return complain(rung, "the output could not be written", kFailed);
    return status;
  } catch (const UserError& error) {
    return complain(rung, error.what(), kBadInput);
  } catch (const std::exception& error) {
    return complain(rung, error.what(), kFailed);
  }
}

}  // namespace ladder
