// step04's study as a program: runs every configuration that the options leave, checks each exactly, and prints a table
// of what it did. The kernel is in study.cu.

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/harness/canary.h"
#include "common/harness/counters.h"
#include "common/harness/cuda_error.h"
#include "common/harness/device_matrix.h"
#include "common/harness/inputs.h"
#include "common/harness/loader.h"
#include "common/harness/memory_limits.h"
#include "common/harness/shapes.h"
#include "common/harness/start.h"
#include "common/harness/timing.h"
#include "common/harness/user_error.h"
#include "step04_swizzle/study.h"
#include "step04_swizzle/study_check.h"

using namespace ladder;

namespace {

struct Wishes {
  std::string arrangement, part, roles = "apart", cluster = "1x1", shape = "256x512x512", out_dtype = "f16",
                                 on = "auto";
  std::optional<int> tile_k, stages;  // nothing: all
  uint64_t seed = 1;
  bool bench = false, json = false;
};

struct Run {
  Configuration configuration;
  Part part;
};

void declare(CLI::App& app, Wishes& wishes) {
  app.add_option("--arrangement", wishes.arrangement, "columns, boxes, rows, 32B, 64B or 128B (default: all)");
  app.add_option("--tile-k", wishes.tile_k, "K of a stage: 16, 32 or 64 (default: all)");
  app.add_option("--stages", wishes.stages, "of the ring, 1 to 16 (default: 4, and as many as make 192 KB)");
  app.add_option("--part", wishes.part, "full, load, mma or epilogue (default: all)");
  app.add_option("--roles", wishes.roles, "apart (default): a warp only loads; together: one that multiplies does");
  app.add_option("--cluster", wishes.cluster, "of CTAs that load for each other: 1x1 (default), 2x1, 1x2 or 2x2");
  app.add_option("--shape", wishes.shape, "MxNxK or a name (default 256x512x512)");
  app.add_option("--out-dtype", wishes.out_dtype, "type of D: f16 (default) or f32");
  app.add_option("--seed", wishes.seed, "of A and B (default 1)");
  app.add_option("--on", wishes.on, "auto (default), gpu, b200 or h200 (emulated)");
  app.add_flag("--bench", wishes.bench, "on a GPU: time repeated launches of each");
  app.add_flag("--json", wishes.json, "print one JSON array instead of a table");
}

/// The value of that name. Throws UserError.
template <class Value, size_t kCount>
std::vector<Value> chosen(const char* option, const std::string& name, const std::array<Value, kCount>& values) {
  if (name.empty()) return {values.begin(), values.end()};
  std::string names;
  for (const Value value : values) {
    if (name == name_of(value)) return {value};
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name_of(value));
  }
  throw UserError(fmt::format("{} {}: must be one of {}", option, name, names));
}

/// What the options leave; combinations that cannot run are left out, unless there is nothing else. Throws UserError.
std::vector<Run> runs_of(const Wishes& wishes, Family family) {
  const auto parts = chosen("--part", wishes.part, kParts);
  const std::vector<int> tile_ks = wishes.tile_k ? std::vector{*wishes.tile_k} : std::vector{16, 32, 64};
  for (const int tile_k : tile_ks) {
    if (const auto why_not = obstacle({Arrangement::rows, tile_k, 1}, Part::load, family)) throw UserError(*why_not);
  }
  const Roles roles = chosen("--roles", wishes.roles, std::array{Roles::apart, Roles::together}).front();
  const ClusterShape cluster = cluster_of(wishes.cluster);
  std::vector<Run> runs;
  std::string first_obstacle;
  for (const Arrangement arrangement : chosen("--arrangement", wishes.arrangement, kArrangements)) {
    for (const int tile_k : tile_ks) {
      for (const int stages : wishes.stages ? std::vector{*wishes.stages} : stage_counts(tile_k)) {
        for (const Part part : parts) {
          const Configuration configuration{arrangement, tile_k, stages, roles, cluster};
          const auto why_not = obstacle(configuration, part, family);
          if (!why_not) runs.push_back({configuration, part});
          if (why_not && first_obstacle.empty()) first_obstacle = *why_not;
        }
      }
    }
  }
  if (runs.empty()) throw UserError(first_obstacle);
  return runs;
}

/// The matrices of all runs, and what looks at the results.
class Bench {
 public:
  Bench(const Shape& shape, DType out, uint64_t seed, Family family)
      : launch_(family == Family::hopper ? launch_study_hopper : launch_study),
        a_(shape.m, shape.k, DType::f16),
        b_(shape.n, shape.k, DType::f16),
        d_(shape.m, shape.n, out),
        check_(a_, b_) {
    fill_random(a_, seed, Stream::matrix_a);
    fill_random(b_, seed, Stream::matrix_b);
    device_a_.upload(a_);
    device_b_.upload(b_);
  }

  /// Launches once and says what is wrong afterwards, if anything.
  std::string fault_of(const Run& run, const KernelClock& clock) {
    device_d_.fill(kPoisonByte);
    device_sums_.fill(kPoisonByte);
    check(cudaDeviceSynchronize(), "preparing the matrices");
    clock.begin();
    launch(run, true);
    check(cudaDeviceSynchronize(), "running the kernel");
    clock.end();
    for (const DeviceMatrix* matrix : {&device_a_, &device_b_, &device_d_, &device_sums_}) {
      if (const auto damage = matrix->damage()) return *damage;
    }
    if (run.part == Part::load) {
      device_sums_.download(sums_);
      return check_.fault_of(run.configuration, {sums_.row32(0), sums_.row32(0) + sums_.size()});
    }
    device_d_.download(d_);
    return check_.fault_of(run.configuration, run.part, d_);
  }

  void launch(const Run& run, bool verify) {
    const Gemm gemm{.m = a_.rows(),
                    .n = b_.rows(),
                    .k = a_.cols(),
                    .in = DType::f16,
                    .out = d_.type(),
                    .a = device_a_.data(),
                    .b = device_b_.data(),
                    .d = device_d_.data(),
                    .stream = nullptr};
    launch_(run.configuration, run.part, gemm, static_cast<uint32_t*>(device_sums_.data()), verify);
  }

 private:
  decltype(&launch_study) launch_;
  HostMatrix a_, b_, d_;
  HostMatrix sums_{(a_.rows() + kStudyTileM - 1) / kStudyTileM * ((b_.rows() + kStudyTileN - 1) / kStudyTileN),
                   kChecksumLanes, DType::f32};
  DeviceMatrix device_a_{a_.size_bytes(), "A", 0}, device_b_{b_.size_bytes(), "B", 1},
      device_d_{d_.size_bytes(), "D", 2}, device_sums_{sums_.size_bytes(), "the checksums", 3};
  StudyCheck check_;
};

nlohmann::ordered_json to_json(const Run& run, const std::string& fault, const nlohmann::ordered_json& counters,
                               const std::optional<Benchmark>& benchmark) {
  const Configuration& configuration = run.configuration;
  nlohmann::ordered_json record = {{"arrangement", name_of(configuration.arrangement)},
                                   {"tile_k", configuration.tile_k},
                                   {"stages", configuration.stages},
                                   {"part", name_of(run.part)},
                                   {"roles", name_of(configuration.roles)},
                                   {"cluster", fmt::format("{}x{}", configuration.cluster.m, configuration.cluster.n)},
                                   {"row_bytes", configuration.row_bytes()},
                                   {"ring_bytes", configuration.in_flight_bytes()},
                                   {"good", fault.empty()},
                                   {"fault", fault},
                                   {"median_s", nullptr},
                                   {"counters", counters}};
  if (benchmark) record["median_s"] = benchmark->median_s();
  return record;
}

void print_row(const nlohmann::ordered_json& record) {
  const nlohmann::ordered_json& counters = record["counters"];
  const auto total = [&](const char* name) {
    return counters.is_null() ? "-" : fmt::format("{}", counters["total"][name].get<uint64_t>());
  };
  fmt::print("{:<11} {:>6} {:>6} {:<8} {:>9} {:>10} {:>7} {:>9} {:>9} {:>7} {:>7} {:>9}  {}\n",
             record["arrangement"].get<std::string>(), record["tile_k"].get<int>(), record["stages"].get<int>(),
             record["part"].get<std::string>(), record["row_bytes"].get<int>(), record["ring_bytes"].get<int>(),
             total("tma_loads"), total("tma_box_rows"),
             counters.is_null() ? "-" : fmt::format("{}", counters["most_bytes_in_flight"].get<uint64_t>()),
             total("mmas"), total("parked_waits"),
             record["median_s"].is_null() ? "-" : fmt::format("{:.2f}", record["median_s"].get<double>() * 1e6),
             record["good"].get<bool>() ? "exact" : record["fault"].get<std::string>());
}

int run_all(const Wishes& wishes, const Shape& shape, DType out, bool emulated) {
  cudaDeviceProp device{};
  check(cudaGetDeviceProperties(&device, 0), "cudaGetDeviceProperties");
  const Family family = device.major == 9 ? Family::hopper : Family::blackwell;
  const std::vector<Run> runs = runs_of(wishes, family);
  const KernelClock clock;
  Bench bench(shape, out, wishes.seed, family);
  nlohmann::ordered_json records = nlohmann::ordered_json::array();
  if (!wishes.json) {
    fmt::print(
        "{}, D in {}. Boxes, box rows, MMAs and waits are of all CTAs; in flight: the most bytes of one CTA's loads "
        "under "
        "way at once{}.\n",
        to_string(shape), name_of(out), emulated ? ", which LADDER_SCHEDULE=latest drives to the ring's size" : "");
    fmt::print("{:<11} {:>6} {:>6} {:<8} {:>9} {:>10} {:>7} {:>9} {:>9} {:>7} {:>7} {:>9}\n", "arrangement", "tile_k",
               "stages", "part", "row bytes", "ring bytes", "boxes", "box rows", "in flight", "MMAs", "waits", "us");
  }
  bool good = true;
  for (const Run& run : runs) {
    const std::string fault = bench.fault_of(run, clock);
    const nlohmann::ordered_json counters = emulated ? last_counters() : nlohmann::ordered_json();
    std::optional<Benchmark> benchmark;
    if (wishes.bench) benchmark = benchmark_gpu([&] { bench.launch(run, false); }, clock);
    const nlohmann::ordered_json record = to_json(run, fault, counters, benchmark);
    good &= fault.empty();
    if (!wishes.json) print_row(record);
    records.push_back(record);
  }
  if (wishes.json) fmt::print("{}\n", records.dump(1));
  return good ? kGood : kFailed;
}

int study(const Rung& program, int argc, char** argv) {
  const Stage stage = take_stage();
  Wishes wishes;
  CLI::App app("step04's study: layout, K tile, swizzle and ring, each on its own. D = A B^T with f16 inputs.");
  declare(app, wishes);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return kGood;
  } catch (const CLI::ParseError& error) {
    throw UserError(fmt::format("{}; --help lists the options", error.what()));
  }
  const Shape shape = parse_shape(wishes.shape);
  check_shape(shape, 0, program.name);
  if (wishes.out_dtype != "f16" && wishes.out_dtype != "f32") {
    throw UserError(fmt::format("--out-dtype {}: must be f16 or f32", wishes.out_dtype));
  }
  if (wishes.on != "auto" && wishes.on != "gpu" && wishes.on != "b200" && wishes.on != "h200") {
    throw UserError(fmt::format("--on {}: must be auto, gpu, b200 or h200", wishes.on));
  }
  const DType out = wishes.out_dtype == "f32" ? DType::f32 : DType::f16;
  if (stage != Stage::first) {
    verify_runtime(stage);
    return run_all(wishes, shape, out, stage == Stage::emulator);
  }
  Options options;
  options.on = wishes.on;
  options.json = wishes.json;
  return start_on_device(program, options, argv, [&](const DeviceChoice& choice) {
    runs_of(wishes, choice.family);  // refuses what cannot run, before anything starts
    if (wishes.bench && choice.emulated) {
      throw UserError("--bench: an emulated chip has no times; leave it out, or run on a GPU with --on gpu");
    }
    check_memory(2 * matrices_bytes(shape, DType::f16, out), available_host_memory(), "of host memory", "A, B and D");
  });
}

}  // namespace

int main(int argc, char** argv) {
  const Rung program = swizzle_study();
  try {
    const int status = study(program, argc, argv);
    if (std::fflush(stdout) != 0) return complain(program.name, "the output could not be written", kFailed);
    return status;
  } catch (const UserError& error) {
    return complain(program.name, error.what(), kBadInput);
  } catch (const std::exception& error) {
    return complain(program.name, error.what(), kFailed);
  }
}
