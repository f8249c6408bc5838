// Runs the programs that the probe tests dumped (LADDER_PROBE_DUMP) on this machine's GPU and compares their buffers
// with what the emulator left in them.
//
// probe_replay FOLDER [DIFFERENCES SHOWN PER PROGRAM]. Talks to the driver alone, which it loads when it starts; PTX is
// compiled by the driver. On a chip other than the B200 the target is rewritten; what the driver then refuses is
// counted and left out. Exit status 0 when every program that ran agreed.

#include <cuda.h>
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

template <class F>
F* driver(const char* name) {
  static void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) throw std::runtime_error("there is no libcuda.so.1: a GPU and its driver are wanted");
  void* symbol = dlsym(library, name);
  if (!symbol) throw std::runtime_error(std::string("the driver has no ") + name);
  return reinterpret_cast<F*>(symbol);
}

struct Program {
  std::string name, ptx;
  uint64_t shape[9] = {}, shared_bytes = 0;
  std::vector<uint64_t> sizes;
  std::vector<char> before, after;
};

Program read_program(const std::filesystem::path& path) {
  Program program;
  program.name = path.stem().string();
  std::ifstream text(std::filesystem::path(path).replace_extension(".ptx"));
  std::stringstream all;
  all << text.rdbuf();
  program.ptx = all.str();
  std::ifstream in(path, std::ios::binary);
  auto number = [&] {
    uint64_t value = 0;
    in.read(reinterpret_cast<char*>(&value), 8);
    return value;
  };
  for (uint64_t& extent : program.shape) extent = number();
  program.shared_bytes = number();
  program.sizes.resize(number());
  uint64_t total = 0;
  for (uint64_t& size : program.sizes) total += size = number();
  program.before.resize(total);
  program.after.resize(total);
  in.read(program.before.data(), static_cast<std::streamsize>(total));
  in.read(program.after.data(), static_cast<std::streamsize>(total));
  if (!in) throw std::runtime_error(path.string() + " ends early");
  return program;
}

/// The lines between the loads and the stores say what is probed.
std::string instruction(const std::string& ptx) {
  std::istringstream lines(ptx);
  std::string line, last, out;
  while (std::getline(lines, line)) {
    if (line.find("mov.b") != std::string::npos && line.find("%d, 0x5A5A") != std::string::npos) {
      std::getline(lines, out);
      return out;
    }
    if (line.size() > last.size() && line.find(".reg") == std::string::npos && line.find(".entry") == std::string::npos)
      last = line;
  }
  return last;
}

struct Counts {
  std::atomic<int> agreed{0}, refused{0}, failed{0}, differed{0};
  std::mutex mutex;
  std::map<std::string, std::string> report;  // by instruction
};

class Runner {
 public:
  explicit Runner(size_t shown) : shown_(shown) {
    const auto init = driver<decltype(cuInit)>("cuInit");
    if (init(0) != CUDA_SUCCESS) throw std::runtime_error("cuInit failed: no GPU");
    const auto get = driver<decltype(cuDeviceGet)>("cuDeviceGet");
    const auto attribute = driver<decltype(cuDeviceGetAttribute)>("cuDeviceGetAttribute");
    get(&device_, 0);
    attribute(&major_, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device_);
    attribute(&minor_, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device_);
  }

  std::string target() const { return "sm_" + std::to_string(major_ * 10 + minor_) + (major_ >= 9 ? "a" : ""); }

  /// In a context of its own, so that a program that faults takes no other with it.
  void run(const std::vector<Program>& programs, std::atomic<size_t>& next, Counts& counts) const {
    // The signature that cuda.h had before CUDA 13 gave it another by the same name.
    const auto create = driver<CUresult(CUcontext*, unsigned, CUdevice)>("cuCtxCreate_v2");
    const auto destroy = driver<decltype(cuCtxDestroy)>("cuCtxDestroy_v2");
    CUcontext context = nullptr;
    create(&context, 0, device_);
    while (true) {
      size_t i = next++;
      if (i >= programs.size()) break;
      if (!one(programs[i], counts)) {
        destroy(context);
        create(&context, 0, device_);
      }
    }
    destroy(context);
  }

 private:
  /// False when the context is broken.
  bool one(const Program& program, Counts& counts) const {
    const auto load = driver<decltype(cuModuleLoadData)>("cuModuleLoadData");
    const auto unload = driver<decltype(cuModuleUnload)>("cuModuleUnload");
    const auto find = driver<decltype(cuModuleGetFunction)>("cuModuleGetFunction");
    const auto allocate = driver<decltype(cuMemAlloc)>("cuMemAlloc_v2");
    const auto release = driver<decltype(cuMemFree)>("cuMemFree_v2");
    const auto upload = driver<decltype(cuMemcpyHtoD)>("cuMemcpyHtoD_v2");
    const auto download = driver<decltype(cuMemcpyDtoH)>("cuMemcpyDtoH_v2");
    const auto launch = driver<decltype(cuLaunchKernelEx)>("cuLaunchKernelEx");
    const auto synchronise = driver<decltype(cuCtxSynchronize)>("cuCtxSynchronize");
    std::string ptx = program.ptx;
    if (size_t at = ptx.find("sm_100a"); at != std::string::npos) ptx.replace(at, 7, target());
    CUmodule module;
    if (load(&module, ptx.c_str()) != CUDA_SUCCESS) {
      ++counts.refused;
      return true;
    }
    CUfunction function;
    find(&function, module, "probe");
    std::vector<CUdeviceptr> buffers(program.sizes.size());
    std::vector<void*> parameters;
    size_t offset = 0;
    for (size_t i = 0; i < buffers.size(); ++i) {
      allocate(&buffers[i], std::max<uint64_t>(program.sizes[i], 1));
      upload(buffers[i], program.before.data() + offset, program.sizes[i]);
      offset += program.sizes[i];
      parameters.push_back(&buffers[i]);
    }
    CUlaunchAttribute cluster = {};
    cluster.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    auto extent = [&](int i) { return static_cast<unsigned>(program.shape[i]); };
    cluster.value.clusterDim = {extent(6), extent(7), extent(8)};
    CUlaunchConfig config = {};
    config.gridDimX = extent(0), config.gridDimY = extent(1), config.gridDimZ = extent(2);
    config.blockDimX = extent(3), config.blockDimY = extent(4), config.blockDimZ = extent(5);
    config.sharedMemBytes = static_cast<unsigned>(program.shared_bytes);
    config.attrs = &cluster;
    config.numAttrs = extent(6) * extent(7) * extent(8) > 1 ? 1 : 0;
    CUresult result = launch(&config, function, parameters.data(), nullptr);
    if (result == CUDA_SUCCESS) result = synchronise();
    if (result != CUDA_SUCCESS) {
      ++counts.failed;
      note(program, counts, "failed with error " + std::to_string(result));
      return false;
    }
    std::vector<char> got(program.after.size());
    offset = 0;
    for (size_t i = 0; i < buffers.size(); ++i) {
      download(got.data() + offset, buffers[i], program.sizes[i]);
      release(buffers[i]);
      offset += program.sizes[i];
    }
    unload(module);
    if (got == program.after)
      ++counts.agreed;
    else
      compare(program, got, counts);
    return true;
  }

  void compare(const Program& program, const std::vector<char>& got, Counts& counts) const {
    ++counts.differed;
    // Buffer 0 is the result; the others are sources with as many elements.
    size_t size = program.sizes[0], elements = 0, wide = 4;
    std::string text;
    for (size_t bytes : {2, 4, 8})
      if (program.ptx.find(".reg .b" + std::to_string(bytes * 8) + " %d;") != std::string::npos) wide = bytes;
    auto hex = [&](const std::vector<char>& from, size_t at, size_t bytes) {
      uint64_t value = 0;
      std::memcpy(&value, from.data() + at, bytes);
      char out[32];
      std::snprintf(out, sizeof(out), "%0*llx", static_cast<int>(bytes * 2), static_cast<unsigned long long>(value));
      return std::string(out);
    };
    for (size_t at = 0; at + wide <= size; at += wide) {
      if (std::memcmp(got.data() + at, program.after.data() + at, wide) == 0) continue;
      if (elements++ < shown_) {
        text += "    [" + std::to_string(at / wide) + "] of";
        size_t offset = size, count = size / wide;
        for (size_t i = 1; i < program.sizes.size(); ++i) {
          size_t bytes = count ? program.sizes[i] / count : 0;
          if (bytes >= 1 && bytes <= 8) text += " " + hex(program.before, offset + at / wide * bytes, bytes);
          offset += program.sizes[i];
        }
        text += ": GPU " + hex(got, at, wide) + ", emulator " + hex(program.after, at, wide) + "\n";
      }
    }
    note(program, counts,
         "differs in " + std::to_string(elements) + " of " + std::to_string(size / wide) + " results\n" + text);
  }

  static void note(const Program& program, Counts& counts, const std::string& text) {
    std::lock_guard lock(counts.mutex);
    counts.report[instruction(program.ptx) + " (" + program.name + ")"] = text;
  }

  size_t shown_;  // differences of a program
  CUdevice device_ = 0;
  int major_ = 0, minor_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    std::fprintf(
        stderr,
        "usage: probe_replay FOLDER [DIFFERENCES SHOWN] (written by the probe tests with LADDER_PROBE_DUMP=FOLDER)\n");
    return 2;
  }
  try {
    std::vector<Program> programs;
    for (const auto& entry : std::filesystem::directory_iterator(argv[1]))
      if (entry.path().extension() == ".run") programs.push_back(read_program(entry.path()));
    Runner runner(argc == 3 ? std::stoul(argv[2]) : 6);
    Counts counts;
    std::atomic<size_t> next{0};
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < std::clamp(std::thread::hardware_concurrency(), 1u, 16u); ++i)
      threads.emplace_back([&] { runner.run(programs, next, counts); });
    for (std::thread& thread : threads) thread.join();
    for (const auto& [what, text] : counts.report) std::printf("%s\n  %s\n", what.c_str(), text.c_str());
    std::printf("%zu programs on %s: %d agree, %d differ, %d failed, %d are not for this chip\n", programs.size(),
                runner.target().c_str(), counts.agreed.load(), counts.differed.load(), counts.failed.load(),
                counts.refused.load());
    return counts.differed == 0 && counts.failed == 0 && counts.agreed > 0 ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
