#include "common/harness/record.h"

#include <fmt/format.h>

#include "common/harness/gpu_probe.h"

namespace ladder {
namespace {

double flop(const Options& options) {
  return 2.0 * static_cast<double>(options.shape.m) * static_cast<double>(options.shape.n) *
         static_cast<double>(options.shape.k);
}

std::string describe_inputs(const Options& options) {
  if (options.input == Input::file) return fmt::format("A from {}, B from {}", options.a_path, options.b_path);
  return fmt::format("{}, seed {}", name_of(options.input), options.seed);
}

std::string describe_device(const RunRecord& record) {
  if (!record.emulated) {
    return fmt::format("{} (compute capability {}.{})", record.device_name, record.major, record.minor);
  }
  std::string chip = record.chip;
  for (char& letter : chip) letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  return fmt::format("an emulated {}: results exact to the bit, times this computer's", chip);
}

std::string readable_time(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.1f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.1f} ms", seconds * 1e3);
  return fmt::format("{:.2f} s", seconds);
}

std::string readable_count(double count) {
  if (count < 1e4) return fmt::format("{:.0f}", count);
  if (count < 1e6) return fmt::format("{:.1f} thousand", count / 1e3);
  if (count < 1e9) return fmt::format("{:.1f} million", count / 1e6);
  return fmt::format("{:.2f} billion", count / 1e9);
}

std::string readable_bytes(double bytes) {
  if (bytes < 1 << 20) return fmt::format("{:.1f} KiB", bytes / 1024);
  if (bytes < 1 << 30) return fmt::format("{:.1f} MiB", bytes / (1 << 20));
  return fmt::format("{:.2f} GiB", bytes / (1 << 30));
}

/// What a launch did, from the counters that the emulator has; those it lacks are left out.
std::string describe_counters(const nlohmann::ordered_json& counters) {
  std::string text;
  const auto add = [&](const nlohmann::ordered_json& where, const char* key, const char* what, bool bytes = false) {
    if (!where.is_object() || !where.contains(key) || !where[key].is_number()) return;
    const double value = where[key].get<double>();
    text +=
        fmt::format("{}{} {}", text.empty() ? "" : ", ", bytes ? readable_bytes(value) : readable_count(value), what);
  };
  add(counters, "ctas", "CTAs");
  const nlohmann::ordered_json total =
      counters.is_object() ? counters.value("total", nlohmann::ordered_json()) : nlohmann::ordered_json();
  add(total, "instructions", "warp instructions");
  add(total, "tma_loads", "TMA loads");
  add(total, "bytes_from_global", "loaded by them", true);
  add(total, "mmas", "MMAs");
  add(total, "parked_waits", "waits that blocked");
  return text;
}

nlohmann::ordered_json check_json(const std::optional<CheckResult>& check) {
  if (!check) return {{"ran", false}, {"passed", nullptr}};
  return {{"ran", true},
          {"passed", check->passed},
          {"compared", check->compared},
          {"mismatches", check->wrong},
          {"projected", check->projected},
          {"rounding_only", check->rounding_only},
          {"summary", check->summary},
          {"pattern", check->pattern}};
}

}  // namespace

nlohmann::ordered_json to_json(const RunRecord& record) {
  const Options& options = record.options;
  const char* label =
      record.emulated ? "host time of the emulation, not a GPU's" : "host time around a launch on the GPU";
  nlohmann::ordered_json json = {
      {"rung", record.rung},
      {"variant", record.variant},
      {"plan", record.plan.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(record.plan)},
      {"m", options.shape.m},
      {"n", options.shape.n},
      {"k", options.shape.k},
      {"dtype", name_of(options.in)},
      {"out_dtype", name_of(options.out)},
      {"input", name_of(options.input)},
      {"seed", options.seed},
      {"device",
       {{"name", record.device_name},
        {"emulated", record.emulated},
        {"chip", record.emulated ? nlohmann::ordered_json(record.chip) : nlohmann::ordered_json()},
        {"compute_capability", fmt::format("{}.{}", record.major, record.minor)},
        {"sm_count", record.sm_count},
        {"cuda_driver", cuda_version_text(record.driver_version)},
        {"cuda_runtime", cuda_version_text(record.runtime_version)}}},
      {"d_hash", fmt::format("{:016x}", record.d_hash)},
      {"good", record.good()},
      {"faults", record.faults},
      {"check", check_json(record.check)},
      {"seconds",
       {{"label", label},
        {"inputs", record.inputs_s},
        {"kernel", record.kernel_s},
        {"check", record.check_s},
        {"total", record.total_s}}},
      {"benchmark", nullptr},
      {"counters", record.counters}};
  if (record.benchmark) {
    const Benchmark& benchmark = *record.benchmark;
    json["benchmark"] = {
        {"label", record.emulated ? "host time of the emulation, not a GPU's" : "CUDA events, same matrices, L2 warm"},
        {"rounds_s", benchmark.rounds_s},
        {"launches_per_round", benchmark.launches_per_round},
        {"median_s", benchmark.median_s()},
        {"spread_s", benchmark.spread_s()},
        {"tflops", record.emulated ? nlohmann::ordered_json()
                                   : nlohmann::ordered_json(flop(options) / benchmark.median_s() * 1e-12)}};
  }
  return json;
}

std::string to_text(const RunRecord& record) {
  const Options& options = record.options;
  std::string text;
  const auto line = [&](const char* label, const std::string& value) {
    text += fmt::format("  {:<9} {}\n", label, value);
  };
  text += fmt::format("{}: D = A Bᵀ, {} (M x N x K), {} in, {} out\n", record.rung, to_string(options.shape),
                      name_of(options.in), name_of(options.out));
  line("on", describe_device(record));
  line("variant", record.variant);
  if (!record.plan.empty()) line("plan", record.plan);
  line("inputs", describe_inputs(options));
  line("result", fmt::format("bits of D {:016x}{}{}", record.d_hash, options.out_path.empty() ? "" : ", written to ",
                             options.out_path));
  for (const std::string& fault : record.faults) line("FAULT", fault);
  if (!record.check) {
    line("check", "not asked for; add --check");
  } else if (record.check->passed) {
    line("check", "ok: " + record.check->summary);
  } else {
    line("check", "MISMATCH: " + record.check->summary);
    for (const std::string& pattern : record.check->pattern) line("", pattern);
  }
  line("time", record.emulated
                   ? fmt::format("{} of emulation (this computer's, not a GPU's)", readable_time(record.kernel_s))
                   : fmt::format("{} from launch to completion, the first launch", readable_time(record.kernel_s)));
  if (record.benchmark) {
    const Benchmark& benchmark = *record.benchmark;
    line("bench",
         fmt::format("median {} of {} rounds of {}, spread {}{}", readable_time(benchmark.median_s()),
                     benchmark.rounds_s.size(), benchmark.launches_per_round, readable_time(benchmark.spread_s()),
                     record.emulated ? " (emulation time, not a GPU's)"
                                     : fmt::format(", {:.1f} TFLOP/s", flop(options) / benchmark.median_s() * 1e-12)));
  }
  if (const std::string counters = describe_counters(record.counters); !counters.empty()) line("counted", counters);
  return text;
}

}  // namespace ladder
