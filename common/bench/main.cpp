// gemm_bench: rungs against cuBLAS and each other, in one process on one GPU. See docs/benchmarks.md.
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <ctime>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/bench/contenders.h"
#include "common/bench/cublas.h"
#include "common/bench/gpu_clock.h"
#include "common/bench/measure.h"
#include "common/bench/power.h"
#include "common/bench/relative_error.h"
#include "common/harness/canary.h"
#include "common/harness/child.h"
#include "common/harness/cuda_error.h"
#include "common/harness/device_matrix.h"
#include "common/harness/gpu_probe.h"
#include "common/harness/inputs.h"
#include "common/harness/loader.h"
#include "common/harness/memory_limits.h"
#include "common/harness/shapes.h"
#include "common/harness/user_error.h"

using namespace ladder;
using Json = nlohmann::ordered_json;

namespace {

constexpr char kChild[] = "LADDER_BENCH_CHILD";

struct BenchOptions {
  std::vector<std::string> shapes, sides, others, protocols = {"burst"};
  std::string in = "f16", out, json;
  int rounds = 20, sustained_rounds = 2, proposals = 64;
  double idle_s = .03, sample_s = 3e-3, seconds = 5;
  uint64_t seed = 1;
  bool warm = false;

  DType in_type() const { return in == "bf16" ? DType::bf16 : DType::f16; }
  DType out_type() const { return out == "f32" ? DType::f32 : in_type(); }
};

/// A, B and D, several times over.
struct Sets {
  std::vector<std::unique_ptr<DeviceMatrix>> a, b, d;
  int count() const { return static_cast<int>(a.size()); }
};

Sets make_sets(const Shape& shape, DType in, DType out, int count, uint64_t seed) {
  Sets sets;
  for (int i = 0; i < count; ++i) {
    HostMatrix a(shape.m, shape.k, in), b(shape.n, shape.k, in);
    fill_random(a, seed + static_cast<uint64_t>(i), Stream::matrix_a);
    fill_random(b, seed + static_cast<uint64_t>(i), Stream::matrix_b);
    sets.a.push_back(std::make_unique<DeviceMatrix>(a.size_bytes(), "A", 0));
    sets.b.push_back(std::make_unique<DeviceMatrix>(b.size_bytes(), "B", 1));
    sets.d.push_back(std::make_unique<DeviceMatrix>(static_cast<size_t>(shape.m * shape.n) * bytes_of(out), "D", 2));
    sets.a.back()->upload(a);
    sets.b.back()->upload(b);
  }
  return sets;
}

Json seconds_json(const Timing& timing, const Shape& shape) {
  const double flops = 2. * static_cast<double>(shape.m) * static_cast<double>(shape.n) * static_cast<double>(shape.k);
  const auto us = [](double seconds) { return std::round(seconds * 1e9) / 1e3; };
  Json json = {{"median_us", us(timing.median_s())},
               {"p10_us", us(timing.quantile_s(.1))},
               {"p90_us", us(timing.quantile_s(.9))},
               {"tflops", std::round(flops / timing.median_s() / 1e10) / 100},
               {"sm_mhz", std::round(timing.median_megahertz())},
               {"samples", timing.samples.size()},
               {"launches_per_sample", timing.launches_per_sample}};
  if (const auto watts = timing.median_watts()) json["watts"] = std::round(*watts);
  return json;
}

cudaDeviceProp properties_here() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
    throw UserError("no GPU here: times are a real GPU's or nobody's; `./ladder run` emulates one");
  }
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  return properties;
}

/// The GPU, and what times it.
class Machine {
 public:
  Machine() { check(cudaStreamCreate(&stream), "cudaStreamCreate"); }

  Json description() const {
    int driver = 0, runtime = 0;
    check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
    check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
    char date[32];
    const std::time_t now = std::time(nullptr);
    std::strftime(date, sizeof date, "%Y-%m-%d %H:%M", std::gmtime(&now));
    Json json = {{"label", "measured"},
                 {"date", date},
                 {"gpu", properties.name},
                 {"sms", properties.multiProcessorCount},
                 {"l2_bytes", properties.l2CacheSize},
                 {"driver", power.driver()},
                 {"driver_cuda", cuda_version_text(driver)},
                 {"runtime", cuda_version_text(runtime)},
                 {"cublas", cublas.version()}};
    if (const auto limit = power.limit_watts()) json["power_limit_watts"] = *limit;
    return json;
  }

  Family family() const { return properties.major == 9 ? Family::hopper : Family::blackwell; }
  uint64_t l2_bytes() const { return static_cast<uint64_t>(properties.l2CacheSize); }

  const cudaDeviceProp properties = properties_here();
  cudaStream_t stream = nullptr;
  const Cublas cublas;
  const PowerMeter power;
  const KernelClock kernel_clock;
  GpuClock clock;
};

struct Entry {
  Side side;
  std::string plan = "";    ///< in words; empty: none
  bool computes = true;     ///< D is the product
  Launch launch = nullptr;  ///< on any matrices; nullptr: on those of the sets only
};

/// That a D may be away from another's, of ||D||: two roundings to bf16, and sums in another order.
constexpr double kMostError = 2e-3;

/// One shape: its matrices, and every side on them.
class ShapeBench {
 public:
  ShapeBench(Machine& machine, const BenchOptions& options, const std::string& shape_text,
             const std::vector<Contender>& others)
      : machine_(machine), options_(options), shape_text_(shape_text), shape_(parse_shape(shape_text)) {
    const uint64_t bytes = matrices_bytes(shape_, options.in_type(), options.out_type());
    constexpr uint64_t kMostSets = 1000;  // of a few bytes each: there, what is timed is the launch
    set_count_ =
        options.warm ? 1 : static_cast<int>(std::min(kMostSets, (3 * machine.l2_bytes() + bytes - 1) / bytes + 1));
    fmt::print(stderr, "{}: {} set{} of matrices, {:.0f} MB each\n", to_string(shape_), set_count_,
               set_count_ == 1 ? "" : "s", static_cast<double>(bytes) / 1e6);
    sets_ = make_sets(shape_, options.in_type(), options.out_type(), set_count_, options.seed);
    add("cublas:default", [&](const Gemm& gemm) { machine_.cublas.gemm_ex(gemm); });
    for (const Launch& launch : machine.cublas.proposals(gemm(0), options.proposals)) {
      candidates_.push_back({"", [this, launch](int set) { launch(gemm(set)); }});
    }
    for (const Contender& other : others) {
      if (other.fixed_k != 0 && other.fixed_k != shape_.k) continue;
      const Planned planned = other.planned(gemm(0));
      add(other.name, planned.launch, planned.text, other.computes);
    }
  }

  Json measured(const std::string& protocol) {
    std::vector<Entry> entries = entries_;
    if (!candidates_.empty()) {  // by the same protocol, in a pass of its own
      const size_t best = fastest(timed(protocol, candidates_, true));
      entries.insert(entries.begin() + 1, Entry{{"cublas:best", candidates_[best].launch},
                                                fmt::format("number {} of the {} that cublasLt's heuristics proposed",
                                                            best + 1, candidates_.size())});
    }
    const std::vector<Json> results = compared(entries);
    std::vector<Side> sides;
    for (const Entry& entry : entries) sides.push_back(entry.side);
    const std::vector<Timing> timings = timed(protocol, sides, false);

    double best_cublas = timings[0].median_s();
    if (!candidates_.empty()) best_cublas = std::min(best_cublas, timings[1].median_s());
    const bool sustained = protocol == "sustained";
    Json result = {{"shape", shape_text_}, {"m", shape_.m},        {"n", shape_.n},
                   {"k", shape_.k},        {"protocol", protocol}, {"sets", set_count_}};
    if (sustained) {
      result["seconds"] = options_.seconds;
    } else {
      result["idle_s"] = options_.idle_s;
    }
    result["rounds"] = sustained ? options_.sustained_rounds : options_.rounds;
    for (size_t i = 0; i < sides.size(); ++i) {
      Json row = {{"side", sides[i].name}};
      row.update(seconds_json(timings[i], shape_));
      row["of_cublas"] = std::round(best_cublas / timings[i].median_s() * 1e4) / 1e4;
      row.update(results[i]);
      if (!entries[i].plan.empty()) row["plan"] = entries[i].plan;
      fmt::print(stderr, "  {:9} {:44} {:9.2f} us ({:.2f}..{:.2f})  {:6.1f} TFLOP/s  {:.3f}  {:4.0f} MHz {:4.0f} W\n",
                 protocol, sides[i].name, timings[i].median_s() * 1e6, timings[i].quantile_s(.1) * 1e6,
                 timings[i].quantile_s(.9) * 1e6, row["tflops"].get<double>(), row["of_cublas"].get<double>(),
                 timings[i].median_megahertz(), timings[i].median_watts().value_or(0));
      result["sides"].push_back(row);
    }
    return result;
  }

 private:
  Gemm gemm(int set) const {
    const auto at = static_cast<size_t>(set);
    return {.m = shape_.m,
            .n = shape_.n,
            .k = shape_.k,
            .in = options_.in_type(),
            .out = options_.out_type(),
            .a = sets_.a[at]->data(),
            .b = sets_.b[at]->data(),
            .d = sets_.d[at]->data(),
            .stream = machine_.stream};
  }

  void add(const std::string& name, const Launch& launch, const std::string& plan = "", bool computes = true) {
    entries_.push_back({{name, [this, launch](int set) { launch(gemm(set)); }}, plan, computes, launch});
  }

  std::vector<Timing> timed(const std::string& protocol, const std::vector<Side>& sides, bool to_choose) {
    constexpr int kRoundsToChoose = 10;
    constexpr double kSecondsToChoose = .5;
    const bool to_terminal = isatty(STDERR_FILENO) != 0;
    const Progress progress = [&](int done, int all) {
      if (to_terminal) fmt::print(stderr, "\r  {}: {} of {} samples ", protocol, done, all);
    };
    const Bench bench{machine_.stream, set_count_, machine_.clock, machine_.power, machine_.kernel_clock};
    std::vector<Timing> timings = protocol == "sustained"
                                      ? time_sustained(bench, sides, to_choose ? 1 : options_.sustained_rounds,
                                                       to_choose ? kSecondsToChoose : options_.seconds, progress)
                                      : time_bursts(bench, sides, to_choose ? kRoundsToChoose : options_.rounds,
                                                    options_.idle_s, options_.sample_s, progress);
    if (to_terminal) fmt::print(stderr, "\r{:60}\r", "");
    return timings;
  }

  /// Enqueues `work` and waits for it; what does not end is killed.
  void complete(const std::string& name, const std::function<void()>& work) {
    machine_.kernel_clock.begin();
    work();
    check(cudaStreamSynchronize(machine_.stream), name.c_str());
    machine_.kernel_clock.end();
  }

  /// A launch that may begin before the one ahead of it has ended (programmatic dependent launch) has to wait for what
  /// that one writes. Here it is the A of the next one: D must be the same with and without a wait of the host's in
  /// between. Only where D is large enough to be an A, and small enough not to take long.
  void refuse_unordered(const Entry& entry) {
    constexpr uint64_t kMostBytes = 64 << 20, kDelayNanoseconds = 200'000;
    const bool fits = shape_.n >= shape_.k && options_.in_type() == options_.out_type() && set_count_ > 1;
    if (!fits || entry.launch == nullptr || bytes_of_d() > kMostBytes) return;
    const auto second_d = [&](bool wait) {
      Gemm second = gemm(1);
      second.a = sets_.d[0]->data();
      for (int set : {0, 1}) sets_.d[static_cast<size_t>(set)]->fill(kPoisonByte);
      complete(entry.side.name, [&] {
        enqueue_delay(machine_.stream, kDelayNanoseconds);  // so that they follow each other
        entry.launch(gemm(0));
        if (wait) check(cudaStreamSynchronize(machine_.stream), entry.side.name.c_str());
        entry.launch(second);
      });
      HostMatrix d(shape_.m, shape_.n, options_.out_type());
      sets_.d[1]->download(d);
      return d;
    };
    // Sums may be in another order each time. Where A was not there yet, D is full of NaN.
    const HostMatrix d = second_d(false), expected = second_d(true);
    if (hash_of(d) == hash_of(expected) || relative_error(d, expected) <= kMostError) return;
    throw UserError(
        fmt::format("{} at {}: where one launch writes the next one's A, D depends on whether the host waits between "
                    "them. A kernel launched with programmatic stream serialization must execute griddepcontrol.wait "
                    "before it touches its matrices",
                    entry.side.name, to_string(shape_)));
  }

  uint64_t bytes_of_d() const { return static_cast<uint64_t>(shape_.m * shape_.n) * bytes_of(options_.out_type()); }

  /// Right before fast: each side's D, its hash, and where that is not cuBLAS's, how far D is from cuBLAS's. Throws
  /// UserError where a side does not compute the product.
  std::vector<Json> compared(const std::vector<Entry>& entries) {
    std::vector<Json> results;
    std::optional<HostMatrix> expected;
    std::string expected_hash;
    for (const Entry& entry : entries) {
      results.emplace_back(Json::object());
      if (!entry.computes) continue;
      sets_.d[0]->fill(kPoisonByte);
      complete(entry.side.name, [&] { entry.side.launch(0); });
      HostMatrix d(shape_.m, shape_.n, options_.out_type());
      sets_.d[0]->download(d);
      const std::string hash = fmt::format("{:016x}", hash_of(d));
      results.back()["d_hash"] = hash;
      if (!expected) {
        expected = std::move(d);
        expected_hash = hash;
      } else if (hash != expected_hash) {
        const double error = relative_error(d, *expected);
        if (!(error <= kMostError)) {
          throw UserError(
              fmt::format("{} at {}: its D is {:.2g} away from cuBLAS's, as a part of ||D||; at most {} is "
                          "rounding, so there is nothing to time",
                          entry.side.name, to_string(shape_), error, kMostError));
        }
        results.back()["d_error"] = error;
      }
      refuse_unordered(entry);
    }
    return results;
  }

  Machine& machine_;
  const BenchOptions& options_;
  const std::string shape_text_;
  const Shape shape_;
  int set_count_ = 1;
  Sets sets_;
  std::vector<Entry> entries_;
  std::vector<Side> candidates_;  ///< what cublasLt proposes
};

void write(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text << '\n';
  file.close();
  if (!file) throw UserError(fmt::format("--json {}: cannot be written ({})", path, std::strerror(errno)));
}

int run(const BenchOptions& options) {
  for (const std::string& shape : options.shapes) parse_shape(shape);  // refuses before anything runs
  Machine machine;
  Json report = machine.description();
  if (!options.json.empty()) write(options.json, report.dump(1));  // refused now, and not after the first shape
  report["in"] = name_of(options.in_type());
  report["out"] = name_of(options.out_type());
  report["inputs"] = fmt::format("normal, seed {} on{}", options.seed, options.warm ? "; L2 warm" : "");
  report["results"] = Json::array();
  std::vector<Contender> others = contenders(options.sides, machine.family());
  for (const std::string& library : options.others) others.push_back(beside(library));
  for (const std::string& shape : options.shapes) {
    ShapeBench bench(machine, options, shape, others);
    for (const std::string& protocol : options.protocols) {
      report["results"].push_back(bench.measured(protocol));
      // What is there stays, whatever becomes of the rest.
      if (!options.json.empty()) write(options.json, report.dump(1));
    }
  }
  if (options.json.empty()) fmt::print("{}\n", report.dump(1));
  return 0;
}

/// The same program as a child, which is killed where a kernel does not end.
int guarded(char** argv) {
  constexpr double kLimitSeconds = 60;
  const ChildEnd end =
      run_with_time_limit(executable_path(), argv, changed_environment({{kChild, "1"}}), kLimitSeconds);
  if (end.timed_out) {
    fmt::print(stderr,
               "\ngemm_bench: launches of a side did not end within {} s and were killed; what was measured "
               "before is in the JSON file. The side and shape are those behind the last line above; "
               "`./ladder check` explains hangs of a rung\n",
               kLimitSeconds);
    return 1;
  }
  if (end.signal != 0) {
    fmt::print(stderr, "gemm_bench: ended by signal {} ({})\n", end.signal, strsignal(end.signal));
    return 1;
  }
  return end.status;
}

}  // namespace

int main(int argc, char** argv) {
  BenchOptions options;
  CLI::App app("Times rungs against cuBLAS.", "gemm_bench");
  app.add_option("--shape", options.shapes, "MxNxK or a name; several")->required();
  app.add_option("--side", options.sides, "step04, step07:walk=4, step07:* for all variants; several");
  app.add_option("--beside", options.others, "somebody else's kernel: LIBRARY.so or LIBRARY.so:SYMBOL; several");
  app.add_option("--protocol", options.protocols, "burst, sustained or both")
      ->check(CLI::IsMember({"burst", "sustained"}));
  app.add_option("--dtype", options.in)->check(CLI::IsMember({"f16", "bf16"}));
  app.add_option("--out-dtype", options.out, "f32, or as the inputs")->check(CLI::IsMember({"f16", "bf16", "f32"}));
  app.add_option("--rounds", options.rounds, "of bursts")->check(CLI::Range(1, 100000));
  app.add_option("--sustained-rounds", options.sustained_rounds)->check(CLI::Range(1, 100000));
  app.add_option("--seconds", options.seconds, "that a side runs back to back")->check(CLI::Range(1e-9, 1e6));
  app.add_option("--idle", options.idle_s, "seconds before a burst")->check(CLI::Range(0., 1e6));
  app.add_option("--sample", options.sample_s, "seconds of a burst")->check(CLI::Range(1e-9, 1e6));
  app.add_option("--proposals", options.proposals, "to ask cublasLt's heuristics for")->check(CLI::Range(1, 1000));
  app.add_option("--seed", options.seed, "of the matrices");
  app.add_flag("--warm", options.warm, "one set of matrices: small ones stay in L2");
  app.add_option("--json", options.json, "where to write the results");
  try {
    app.parse(argc, argv);
    if (!options.out.empty() && options.out != "f32" && options.out != options.in) {
      throw UserError(fmt::format("--out-dtype {}: must be f32, or {} as the inputs", options.out, options.in));
    }
    return std::getenv(kChild) != nullptr ? run(options) : guarded(argv);
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return 0;
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "gemm_bench: {}; --help lists the options\n", error.what());
    return 2;
  } catch (const UserError& error) {
    fmt::print(stderr, "gemm_bench: {}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "gemm_bench: {}\n", error.what());
    return 1;
  }
}
