#pragma once
// Everything that is known about a run, and how it is told: to a person and to a program.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/harness/check.h"
#include "common/harness/options.h"
#include "common/harness/timing.h"

namespace ladder {

struct RunRecord {
  std::string rung, variant;
  std::string plan;  ///< what the variant's host side chose; empty: nothing
  Options options;

  std::string device_name;
  bool emulated = true;
  std::string chip;  ///< the emulated chip
  int major = 0, minor = 0, sm_count = 0;
  int driver_version = 0, runtime_version = 0;  ///< of CUDA: 13000 for 13.0

  uint64_t d_hash = 0;
  Scan scan;
  std::vector<std::string> faults;  ///< bands or inputs that were written to, outputs that were not
  std::optional<CheckResult> check;
  std::optional<Benchmark> benchmark;
  nlohmann::ordered_json counters;  ///< of the emulator, for the checked launch; null on a GPU

  double inputs_s = 0, kernel_s = 0, check_s = 0, total_s = 0;  ///< host wall time; kernel_s spans launch to completion

  bool good() const { return faults.empty() && (!check || check->passed); }
};

/// One object:
///   rung, variant, plan (null where there is nothing to choose), m, n, k, dtype, out_dtype, input, seed
///   device      {name, emulated, chip (null on a GPU), compute_capability, sm_count, cuda_driver, cuda_runtime}
///   d_hash      16 hexadecimal digits (matrix.h: hash_of)
///   good        everything that was looked at is right
///   faults      sentences
///   check       {ran, passed, compared, mismatches, projected, rounding_only, summary, pattern};
///               passed is null when it did not run
///   seconds     {label, inputs, kernel, check, total}; label says whose time `kernel` is
///   benchmark   null, or {label, rounds_s, launches_per_round, median_s, spread_s, tflops (null when emulated)}
///   counters    the emulator's counters, or null
nlohmann::ordered_json to_json(const RunRecord& record);

/// A few lines for a person.
std::string to_text(const RunRecord& record);

}  // namespace ladder
