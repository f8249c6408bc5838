// What the harness finds out about the machine: memory, GPUs, the environment of the second start, children in time.

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "common/harness/child.h"
#include "common/harness/device_choice.h"
#include "common/harness/loader.h"
#include "common/harness/memory_limits.h"
#include "common/harness/user_error.h"
#include "tests/catch.h"

using namespace ladder;
using test::contains;

namespace {

namespace fs = std::filesystem;

/// A machine's /proc and /sys, as far as memory goes.
class FakeRoot {
 public:
  FakeRoot() : path_(fs::temp_directory_path() / ("ladder-root-" + std::to_string(getpid()))) {}
  ~FakeRoot() { fs::remove_all(path_); }
  FakeRoot& file(const std::string& name, const std::string& content) {
    fs::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name) << content;
    return *this;
  }
  uint64_t available() const { return available_host_memory(path_); }

 private:
  fs::path path_;
};

const std::string kMeminfo =
    "MemTotal:       32000 kB\nMemFree:         1000 kB\nMemAvailable:   20000 kB\nBuffers: 1 kB\n";

Rung rung(bool hopper = false) {
  Rung made{.name = "step99_test",
            .title = "",
            .blackwell = {{"plain", nullptr, ""}, {"wide", nullptr, ""}},
            .hopper = {},
            .tile_m = 128,
            .tile_n = 256,
            .tile_k = 16};
  if (hopper) made.hopper = {{"plain", nullptr, ""}};
  return made;
}

GpuProbe gpu(const char* name, int major, int minor, int driver = 13000) {
  return {Gpu{name, major, minor, driver}, {}};
}

DeviceChoice choose(const Rung& of, const std::string& on, const GpuProbe& found, const std::string& chip = {}) {
  Options options;
  options.on = on;
  return choose_device(of, options, chip, [&] { return found; });
}

const GpuProbe kNone{std::nullopt, "no NVIDIA driver is installed"};

ChildEnd shell(const std::string& script, double seconds) {
  std::string name = "sh", flag = "-c", text = script;
  char* arguments[] = {name.data(), flag.data(), text.data(), nullptr};
  return run_with_time_limit("/bin/sh", arguments, {"PATH=/usr/bin:/bin"}, seconds);
}

}  // namespace

TEST_CASE("memory is what the system has, or less where a container may use less") {
  const uint64_t kb = 1024;
  CHECK(FakeRoot().file("proc/meminfo", kMeminfo).available() == 20000 * kb);
  CHECK(FakeRoot().available() == UINT64_MAX);
  SECTION("control groups, version 2") {
    FakeRoot root;
    root.file("proc/meminfo", kMeminfo).file("proc/self/cgroup", "0::/a/b\n");
    root.file("sys/fs/cgroup/a/b/memory.max", "max\n").file("sys/fs/cgroup/a/b/memory.current", "4096\n");
    CHECK(root.available() == 20000 * kb);
    root.file("sys/fs/cgroup/a/memory.max", "10240000\n").file("sys/fs/cgroup/a/memory.current", "5120000\n");
    CHECK(root.available() == 5000 * kb);
    root.file("sys/fs/cgroup/a/memory.stat", "anon 1\ninactive_file 1024000\nactive_file 1024000\n");
    CHECK(root.available() == 7000 * kb);  // the file cache can be given up
  }
  SECTION("inside a container the root is the group") {
    FakeRoot root;
    root.file("proc/meminfo", kMeminfo).file("proc/self/cgroup", "0::/\n");
    root.file("sys/fs/cgroup/memory.max", "1024000\n").file("sys/fs/cgroup/memory.current", "1023000\n");
    CHECK(root.available() == 1000);
  }
  SECTION("control groups, version 1") {
    FakeRoot root;
    root.file("proc/meminfo", kMeminfo).file("proc/self/cgroup", "3:cpu:/x\n5:memory:/y\n");
    root.file("sys/fs/cgroup/memory/y/memory.limit_in_bytes", "3072000\n");
    root.file("sys/fs/cgroup/memory/y/memory.usage_in_bytes", "1024000\n");
    CHECK(root.available() == 2000 * kb);
  }
}

TEST_CASE("sizes that do not fit are refused, also those that overflow") {
  CHECK(matrices_bytes({2, 3, 8}, DType::f16, DType::f32) == (2 * 8 + 3 * 8) * 2 + 2 * 3 * 4);
  const Shape huge{INT64_C(2147483647), INT64_C(2147483640), INT64_C(2147483640)};
  CHECK(matrices_bytes(huge, DType::f16, DType::f32) == UINT64_MAX);
  CHECK_NOTHROW(check_memory(100, 100, "of memory", "why"));
  CHECK_THROWS_AS(check_memory(101, 100, "of memory", "why"), UserError);
  CHECK_THROWS_WITH(
      check_memory(uint64_t{3} << 30, uint64_t{5} << 20, "of host memory", "A, B and D"),
      contains("3.0 GiB of host memory (A, B and D)") && contains("5 MiB are available") && contains("smaller shape"));
}

TEST_CASE("auto takes a GPU that can run the rung and else emulates a B200, saying why") {
  const DeviceChoice b200 = choose(rung(), "auto", gpu("NVIDIA B200", 10, 0));
  CHECK_FALSE(b200.emulated);
  CHECK(b200.family == Family::blackwell);
  CHECK_FALSE(choose(rung(), "auto", gpu("NVIDIA B300", 10, 3)).emulated);
  CHECK(choose(rung(true), "auto", gpu("NVIDIA H200", 9, 0)).family == Family::hopper);
  CHECK_FALSE(choose(rung(true), "auto", gpu("NVIDIA H200", 9, 0)).emulated);

  for (const auto& [found, part] : std::vector<std::pair<GpuProbe, std::string>>{
           {kNone, "no NVIDIA driver is installed"},
           {gpu("NVIDIA H200", 9, 0), "NVIDIA H200 (compute capability 9.0) has wgmma"},
           {gpu("NVIDIA GeForce RTX 5090", 12, 0), "neither tcgen05 nor wgmma"},
           {gpu("NVIDIA A100", 8, 0), "neither tcgen05 nor wgmma"},
           {gpu("NVIDIA B200", 10, 0, 12080), "CUDA 12.8"}}) {
    const DeviceChoice choice = choose(rung(), "auto", found);
    CHECK(choice.emulated);
    CHECK(choice.chip == "b200");
    CHECK_THAT(choice.note, contains(part) && contains("emulating a B200"));
    CHECK_THROWS_WITH(choose(rung(), "gpu", found), contains(part) && contains("--on b200"));
  }
}

TEST_CASE("chips that are asked for are emulated without looking for a GPU") {
  Options options;
  options.on = "b200";
  const auto never = []() -> GpuProbe { throw std::logic_error("probed"); };
  const DeviceChoice choice = choose_device(rung(), options, "", never);
  CHECK(choice.emulated);
  CHECK(choice.note.empty());
  options.on = "auto";
  CHECK(choose_device(rung(true), options, "h200", never).chip == "h200");
  CHECK_THROWS_WITH(choose_device(rung(), options, "b300", never), contains("LADDER_CHIP=b300"));
  CHECK_THROWS_WITH(choose(rung(), "h200", kNone), contains("--on h200") && contains("wgmma"));
  CHECK(choose(rung(true), "h200", kNone).family == Family::hopper);
}

TEST_CASE("where a run would go, as other programs read it") {
  Rung both = rung(true);
  both.fixed_k = 16;
  const auto of = [&](const GpuProbe& found) { return to_json(both, choose(both, "auto", found)); };
  CHECK(of(gpu("NVIDIA B200", 10, 0)).dump() ==
        R"({"rung":"step99_test","device":{"emulated":false,"name":"NVIDIA B200","compute_capability":"10.0",)"
        R"("cuda_driver":"13.0"},"note":"","fixed_k":16,"variants":["plain","wide"],"settings":{}})");
  CHECK(of(gpu("NVIDIA H200", 9, 0, 13010))["device"]["cuda_driver"] == "13.1");
  CHECK(of(gpu("NVIDIA H200", 9, 0))["variants"] == std::vector<std::string>{"plain"});  // the twin's
  const auto emulated = to_json(rung(), choose(rung(), "auto", kNone));
  CHECK(emulated["device"].dump() == R"({"emulated":true,"chip":"b200"})");
  CHECK(emulated["note"] == "no NVIDIA driver is installed: emulating a B200");
  CHECK(emulated["fixed_k"].is_null());
  both.blackwell_settings.settings = {{"speed", {"auto", "1..3"}, "how fast"}};
  CHECK(of(gpu("NVIDIA B200", 10, 0))["settings"].dump() == R"({"speed":["auto","1..3"]})");
  CHECK(of(gpu("NVIDIA H200", 9, 0))["settings"].empty());  // the twin has none
}

TEST_CASE("variants belong to a family of chips") {
  const Rung both = rung(true);
  CHECK(std::string(choose_variant(both, Family::blackwell, "").name) == "plain");
  CHECK(std::string(choose_variant(both, Family::blackwell, "wide").name) == "wide");
  CHECK_THROWS_WITH(choose_variant(both, Family::hopper, "wide"), contains("--variant wide") && contains("has plain"));
  Rung set = both;
  set.blackwell_settings.variant = [](const std::string& name) { return Variant{name, nullptr, "as asked"}; };
  CHECK(choose_variant(set, Family::blackwell, "speed=2").what == "as asked");
  CHECK(choose_variant(set, Family::blackwell, "wide").what != "as asked");  // names go first
  CHECK_THROWS_WITH(choose_variant(set, Family::hopper, "speed=2"), contains("--variant speed=2: not on this chip"));
}

TEST_CASE("the second start has the emulator's or the toolkit's folder first") {
  const char* before = std::getenv("LD_LIBRARY_PATH");
  const std::string saved = before == nullptr ? "" : before;
  setenv("LD_LIBRARY_PATH", "/some/where:/tmp:/usr", 1);
  const Changes emulated = changes_for_emulator("/tmp", "b200");
  CHECK(emulated.at("LD_LIBRARY_PATH") == "/tmp:/some/where:/usr");
  CHECK(emulated.at("LADDER_CHIP") == "b200");
  const Changes real = changes_for_gpu("/usr", "/tmp");
  CHECK(real.at("LD_LIBRARY_PATH") == "/usr:/some/where");
  setenv("LADDER_CHIP", "b200", 1);
  int chips = 0, paths = 0;
  for (const std::string& entry : changed_environment(real)) {
    chips += entry.starts_with("LADDER_CHIP=");
    paths += entry == "LD_LIBRARY_PATH=/usr:/some/where";
  }
  CHECK(chips == 0);
  CHECK(paths == 1);
  unsetenv("LADDER_CHIP");
  saved.empty() ? unsetenv("LD_LIBRARY_PATH") : setenv("LD_LIBRARY_PATH", saved.c_str(), 1);
}

TEST_CASE("the stage is read once and only where it is known") {
  unsetenv("LADDER_STAGE");
  CHECK(take_stage() == Stage::first);
  setenv("LADDER_STAGE", "emulator", 1);
  CHECK(take_stage() == Stage::emulator);
  CHECK(take_stage() == Stage::first);
  setenv("LADDER_STAGE", "elsewhere", 1);
  CHECK_THROWS_WITH(take_stage(), contains("LADDER_STAGE=elsewhere"));
}

TEST_CASE("a child ends by itself, by a signal, or when its kernel is over its time") {
  using Clock = std::chrono::steady_clock;
  const auto seconds_since = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  CHECK(shell("exit 7", 5).status == 7);
  CHECK(shell("kill -TERM $$", 5).signal == SIGTERM);

  const auto begin = Clock::now();
  const ChildEnd hung = shell("printf B > /proc/self/fd/$LADDER_CLOCK_FD; exec sleep 60", 0.2);
  CHECK(hung.timed_out);
  CHECK(seconds_since(begin) < 30);

  // Time between kernels does not count.
  const ChildEnd slow = shell("printf BE > /proc/self/fd/$LADDER_CLOCK_FD; sleep 0.6; exit 3", 0.2);
  CHECK_FALSE(slow.timed_out);
  CHECK(slow.status == 3);
}

TEST_CASE("a child that cannot be started says why") {
  std::string name = "nothing";
  char* arguments[] = {name.data(), nullptr};
  CHECK_THROWS_WITH(run_with_time_limit("/nowhere/nothing", arguments, {}, 1),
                    contains("starting /nowhere/nothing") && contains("No such file"));
}
