// gemm_bench: rungs against cuBLAS and each other, in one process on one GPU. See docs/benchmarks.md.
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <ctime>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "common/bench/cublas.h"
#include "common/bench/gpu_clock.h"
#include "common/bench/measure.h"
#include "common/bench/power.h"
#include "common/harness/canary.h"
#include "common/harness/cuda_error.h"
#include "common/harness/device_choice.h"
#include "common/harness/device_matrix.h"
#include "common/harness/gpu_probe.h"
#include "common/harness/inputs.h"
#include "common/harness/memory_limits.h"
#include "common/harness/reference.h"
#include "common/harness/rung.h"
#include "common/harness/shapes.h"
#include "common/harness/user_error.h"

ladder::Rung step00_single_mma();
ladder::Rung step01_kloop();
ladder::Rung step02_pipeline();
ladder::Rung step03_warpspec();
ladder::Rung step04_swizzle();
ladder::Rung step05_epilogue();
ladder::Rung step06_multicast();
ladder::Rung step07_persistent();

using namespace ladder;
using Json = nlohmann::ordered_json;

namespace {

struct BenchOptions {
  std::vector<std::string> shapes, sides, protocols = {"burst"};
  std::string in = "f16", out, json;
  int rounds = 20, sustained_rounds = 2, proposals = 64;
  double idle_s = .05, sample_s = 3e-3, seconds = 5;
  uint64_t seed = 1;
  bool warm = false;
};

std::vector<Rung> all_rungs() {
  return {step01_kloop(),    step02_pipeline(),  step03_warpspec(),   step04_swizzle(),
          step05_epilogue(), step06_multicast(), step07_persistent(), step00_single_mma()};
}

struct Contender {
  std::string name, rung;
  Variant variant;
};

/// "step04" (its default), "step07:walk=4" or "step07:*" (all).
std::vector<Contender> contenders(const std::vector<std::string>& wanted, Family family) {
  std::vector<Contender> found;
  const std::vector<Rung> rungs = all_rungs();
  for (const std::string& want : wanted) {
    const std::string rung_name = want.substr(0, want.find(':'));
    const std::string variant = want.find(':') == want.npos ? "" : want.substr(want.find(':') + 1);
    bool known = false;
    for (const Rung& rung : rungs) {
      if (!std::string(rung.name).starts_with(rung_name)) continue;
      known = true;
      const auto& variants = family == Family::hopper ? rung.hopper : rung.blackwell;
      if (variant == "*") {
        for (const Variant& each : variants)
          found.push_back({fmt::format("{}:{}", rung.name, each.name), rung.name, each});
      } else {
        const Variant one = choose_variant(rung, family, variant);
        found.push_back({fmt::format("{}:{}", rung.name, one.name), rung.name, one});
      }
    }
    if (!known) throw UserError(fmt::format("--side {}: there is no such rung", want));
  }
  return found;
}

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

int run(const BenchOptions& options) {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
    throw UserError("no GPU here: times are a real GPU's or nobody's; `./ladder run` emulates one");
  }
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  const Family family = properties.major == 9 ? Family::hopper : Family::blackwell;
  int driver = 0, runtime = 0;
  check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  const Cublas cublas;
  const PowerMeter power;
  GpuClock clock;
  cudaStream_t stream = nullptr;
  check(cudaStreamCreate(&stream), "cudaStreamCreate");

  const DType in = options.in == "bf16" ? DType::bf16 : DType::f16;
  const DType out = options.out == "f32" ? DType::f32 : in;
  char date[32];
  const std::time_t now = std::time(nullptr);
  std::strftime(date, sizeof date, "%Y-%m-%d %H:%M", std::gmtime(&now));
  Json report = {{"date", date},
                 {"gpu", properties.name},
                 {"sms", properties.multiProcessorCount},
                 {"l2_bytes", properties.l2CacheSize},
                 {"driver", cuda_version_text(driver)},
                 {"runtime", cuda_version_text(runtime)},
                 {"cublas", cublas.version()},
                 {"in", name_of(in)},
                 {"out", name_of(out)},
                 {"inputs", fmt::format("normal, seed {} on", options.seed)},
                 {"results", Json::array()}};
  if (const auto limit = power.limit_watts()) report["power_limit_watts"] = *limit;

  const std::vector<Contender> rungs = contenders(options.sides, family);
  for (const std::string& shape_text : options.shapes) {
    const Shape shape = parse_shape(shape_text);
    const uint64_t bytes = matrices_bytes(shape, in, out);
    const auto l2 = static_cast<uint64_t>(properties.l2CacheSize);
    const int set_count = options.warm ? 1 : static_cast<int>((3 * l2 + bytes - 1) / bytes) + 1;
    fmt::print(stderr, "{}: {} set{} of matrices, {:.0f} MB each\n", to_string(shape), set_count,
               set_count == 1 ? "" : "s", static_cast<double>(bytes) / 1e6);
    const Sets sets = make_sets(shape, in, out, set_count, options.seed);
    const auto gemm = [&](int set) {
      return Gemm{.m = shape.m,
                  .n = shape.n,
                  .k = shape.k,
                  .in = in,
                  .out = out,
                  .a = sets.a[set]->data(),
                  .b = sets.b[set]->data(),
                  .d = sets.d[set]->data(),
                  .stream = stream};
    };
    const Bench bench{stream, set_count, clock, power};

    std::vector<Side> sides;
    std::vector<std::string> plans;
    const auto add = [&](const std::string& name, const Launch& launch, const std::string& plan) {
      sides.push_back({name, [=](int set) { launch(gemm(set)); }});
      plans.push_back(plan);
    };
    add(
        "cublas:default", [&](const Gemm& one) { cublas.gemm_ex(one); }, "");
    const std::vector<Launch> proposals = cublas.proposals(gemm(0), options.proposals);
    std::vector<Side> candidates;
    for (const Launch& launch : proposals) candidates.push_back({"", [&, launch](int set) { launch(gemm(set)); }});
    for (const Contender& each : rungs) {
      if (each.rung == "step00_single_mma" && shape.k != 16) continue;
      const Planned planned = each.variant.planned(gemm(0));
      add(each.name, planned.launch, planned.text);
    }

    const auto timed = [&](const std::string& protocol, const std::vector<Side>& which, bool to_choose) {
      constexpr int kRoundsToChoose = 10;
      constexpr double kSecondsToChoose = .5;
      const Progress progress = [&](int done, int all) {
        if (isatty(STDERR_FILENO)) fmt::print(stderr, "\r  {}: {} of {} samples ", protocol, done, all);
      };
      std::vector<Timing> timings = protocol == "sustained"
                                        ? time_sustained(bench, which, to_choose ? 1 : options.sustained_rounds,
                                                         to_choose ? kSecondsToChoose : options.seconds, progress)
                                        : time_bursts(bench, which, to_choose ? kRoundsToChoose : options.rounds,
                                                      options.idle_s, options.sample_s, progress);
      if (isatty(STDERR_FILENO)) fmt::print(stderr, "\r{:60}\r", "");
      return timings;
    };
    const std::vector<Side> without_best = sides;
    const std::vector<std::string> plans_without_best = plans;
    for (const std::string& protocol : options.protocols) {
      const bool sustained = protocol == "sustained";
      sides = without_best;
      plans = plans_without_best;
      if (!candidates.empty()) {  // by the same protocol, in a pass of its own
        const size_t best = fastest(timed(protocol, candidates, true));
        sides.insert(sides.begin() + 1, Side{"cublas:best", candidates[best].launch});
        plans.insert(plans.begin() + 1, fmt::format("number {} of the {} that cublasLt's heuristics proposed", best + 1,
                                                    proposals.size()));
      }

      // Right first: every side writes all of D, and with the rungs' bits.
      std::vector<std::string> hashes;
      for (const Side& side : sides) {
        sets.d[0]->fill(kPoisonByte);
        side.launch(0);
        check(cudaStreamSynchronize(stream), side.name.c_str());
        HostMatrix d(shape.m, shape.n, out);
        sets.d[0]->download(d);
        hashes.push_back(fmt::format("{:016x}", hash_of(d)));
      }

      const std::vector<Timing> timings = timed(protocol, sides, false);
      Json result = {{"shape", shape_text}, {"m", shape.m},         {"n", shape.n},
                     {"k", shape.k},        {"protocol", protocol}, {"sets", set_count}};
      if (sustained) {
        result["seconds"] = options.seconds;
      } else {
        result["idle_s"] = options.idle_s;
      }
      result["rounds"] = sustained ? options.sustained_rounds : options.rounds;
      double best_cublas = timings[0].median_s();
      if (sides.size() > 1 && sides[1].name == "cublas:best")
        best_cublas = std::min(best_cublas, timings[1].median_s());
      for (size_t i = 0; i < sides.size(); ++i) {
        Json row = {{"side", sides[i].name}};
        row.update(seconds_json(timings[i], shape));
        row["of_cublas"] = std::round(best_cublas / timings[i].median_s() * 1e4) / 1e4;
        row["d_hash"] = hashes[i];
        if (!plans[i].empty()) row["plan"] = plans[i];
        fmt::print(stderr,
                   "  {:9} {:44} {:9.2f} us ({:.2f}..{:.2f})  {:6.1f} TFLOP/s  {:.3f}  {:4.0f} MHz {:4.0f} W  {}\n",
                   protocol, sides[i].name, timings[i].median_s() * 1e6, timings[i].quantile_s(.1) * 1e6,
                   timings[i].quantile_s(.9) * 1e6, row["tflops"].get<double>(), row["of_cublas"].get<double>(),
                   timings[i].median_megahertz(), timings[i].median_watts().value_or(0), hashes[i]);
        result["sides"].push_back(row);
      }
      report["results"].push_back(result);
    }
  }
  if (options.json.empty()) {
    fmt::print("{}\n", report.dump(1));
  } else {
    std::ofstream(options.json) << report.dump(1) << '\n';
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  BenchOptions options;
  CLI::App app("Times rungs against cuBLAS.", "gemm_bench");
  app.add_option("--shape", options.shapes, "MxNxK or a name; several")->required();
  app.add_option("--side", options.sides, "step04, step07:walk=4, step07:* for all variants; several");
  app.add_option("--protocol", options.protocols, "burst, sustained or both")
      ->check(CLI::IsMember({"burst", "sustained"}));
  app.add_option("--dtype", options.in)->check(CLI::IsMember({"f16", "bf16"}));
  app.add_option("--out-dtype", options.out, "f32, or as the inputs");
  app.add_option("--rounds", options.rounds);
  app.add_option("--sustained-rounds", options.sustained_rounds);
  app.add_option("--seconds", options.seconds);
  app.add_option("--idle", options.idle_s);
  app.add_option("--sample", options.sample_s);
  app.add_option("--proposals", options.proposals);
  app.add_option("--seed", options.seed);
  app.add_flag("--warm", options.warm, "one set of matrices: small ones stay in L2");
  app.add_option("--json", options.json, "where to write the results");
  CLI11_PARSE(app, argc, argv);
  try {
    return run(options);
  } catch (const UserError& error) {
    fmt::print(stderr, "gemm_bench: {}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "gemm_bench: {}\n", error.what());
    return 1;
  }
}
