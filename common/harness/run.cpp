// run_rung: all of a rung's main. See loader.h for why a run starts its own program again.

#include <fmt/format.h>

#include <cstdio>
#include <exception>

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
#include "common/harness/start.h"
#include "common/harness/user_error.h"

namespace ladder {
namespace {

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
    return complain(rung.name, error.what(), kFailed);
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
    if (options.where) {
      fmt::print("{}\n", to_json(rung, choose_here(rung, options)).dump(2));
      return std::fflush(stdout) == 0 ? kGood : complain(rung.name, "the output could not be written", kFailed);
    }
    const int status = stage == Stage::first ? start_on_device(rung, options, argv,
                                                               [&](const DeviceChoice& choice) {
                                                                 choose_variant(rung, choice.family, options.variant);
                                                                 check_host_memory(options, choice.emulated);
                                                               })
                                             : run_here(rung, options, stage);
    if (std::fflush(stdout) != 0) return complain(rung.name, "the output could not be written", kFailed);
    return status;
  } catch (const UserError& error) {
    return complain(rung.name, error.what(), kBadInput);
  } catch (const std::exception& error) {
    return complain(rung.name, error.what(), kFailed);
  }
}

}  // namespace ladder
