#include "common/harness/loader.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include "common/harness/user_error.h"

#ifndef LADDER_TOOLKIT_LIBRARY_DIR
#define LADDER_TOOLKIT_LIBRARY_DIR ""
#endif

extern char** environ;

namespace ladder {
namespace {

namespace fs = std::filesystem;

const std::string kRuntimeName = fmt::format("libcudart.so.{}", CUDART_VERSION / 1000);
constexpr const char* kStage = "LADDER_STAGE";
constexpr const char* kLibraryPath = "LD_LIBRARY_PATH";

bool same_folder(const fs::path& a, const fs::path& b) {
  std::error_code error;
  return fs::equivalent(a, b, error) && !error;
}

bool has_runtime(const fs::path& folder) {
  std::error_code error;
  return !folder.empty() && fs::exists(folder / kRuntimeName, error);
}

std::vector<fs::path> library_path() {
  std::vector<fs::path> folders;
  const char* text = std::getenv(kLibraryPath);
  std::stringstream stream(text == nullptr ? "" : text);
  for (std::string folder; std::getline(stream, folder, ':');) {
    if (!folder.empty()) folders.emplace_back(folder);
  }
  return folders;
}

/// `first`, then the present LD_LIBRARY_PATH without `first` and without `excluded`.
std::string library_path_with(const fs::path& first, const fs::path& excluded) {
  std::string text = first.string();
  for (const fs::path& folder : library_path()) {
    if (!same_folder(folder, first) && !same_folder(folder, excluded)) text.append(":").append(folder.string());
  }
  return text;
}

}  // namespace

Stage take_stage() {
  const char* text = std::getenv(kStage);
  if (text == nullptr) return Stage::first;
  const std::string value = text;
  unsetenv(kStage);
  if (value == "emulator") return Stage::emulator;
  if (value == "gpu") return Stage::gpu;
  throw std::runtime_error(fmt::format("{}={}: this variable is the program's own; unset it", kStage, value));
}

fs::path executable_path() {
  std::error_code error;
  fs::path path = fs::read_symlink("/proc/self/exe", error);
  if (error) throw std::runtime_error(fmt::format("cannot read /proc/self/exe: {}", error.message()));
  return path;
}

std::optional<fs::path> emulator_folder() {
  const fs::path here = executable_path().parent_path();
  for (const fs::path& folder : {here.parent_path() / "lib", here.parent_path().parent_path() / "lib"}) {
    if (has_runtime(folder)) return folder;
  }
  return std::nullopt;
}

std::optional<fs::path> toolkit_folder() {
  std::vector<fs::path> folders = {LADDER_TOOLKIT_LIBRARY_DIR};
  for (const fs::path& folder : library_path()) folders.push_back(folder);
  for (const char* usual : {"/usr/local/cuda/lib64", "/usr/local/cuda/lib", "/usr/lib/x86_64-linux-gnu",
                            "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"}) {
    folders.emplace_back(usual);
  }
  const std::optional<fs::path> emulator = emulator_folder();
  for (const fs::path& folder : folders) {
    if (has_runtime(folder) && !(emulator && same_folder(folder, *emulator))) return folder;
  }
  return std::nullopt;
}

fs::path executable_to_start(bool guard) {
  const fs::path self = executable_path();
  if (!guard || self.parent_path().filename() == "guard") return self;
  const fs::path guarded = self.parent_path() / "guard" / self.filename();
  std::error_code error;
  if (!fs::exists(guarded, error)) {
    throw UserError(
        fmt::format("--guard: there is no guard build at {}; build the target {}_guard, or run on the emulator, "
                    "which reports a hang at once (--on b200)",
                    guarded.string(), self.filename().string()));
  }
  return guarded;
}

Changes changes_for_emulator(const fs::path& emulator, const std::string& chip) {
  return {{kLibraryPath, library_path_with(emulator, {})}, {"LADDER_CHIP", chip}, {kStage, "emulator"}};
}

Changes changes_for_gpu(const fs::path& toolkit, const fs::path& emulator) {
  return {{kLibraryPath, library_path_with(toolkit, emulator)}, {"LADDER_CHIP", ""}, {kStage, "gpu"}};
}

std::vector<std::string> changed_environment(const Changes& changes) {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!changes.contains(text.substr(0, text.find('=')))) environment.push_back(text);
  }
  for (const auto& [name, value] : changes) {
    if (!value.empty()) environment.push_back(name + "=" + value);
  }
  return environment;
}

void start_again(const fs::path& program, char** argv, const std::vector<std::string>& environment) {
  std::vector<char*> pointers;
  for (const std::string& entry : environment) pointers.push_back(const_cast<char*>(entry.c_str()));
  pointers.push_back(nullptr);
  execve(program.c_str(), argv, pointers.data());
  throw std::system_error(errno, std::generic_category(), fmt::format("cannot start {}", program.string()));
}

void verify_runtime(Stage stage) {
  void* function = dlsym(RTLD_DEFAULT, "cudaGetDeviceCount");
  Dl_info info{};
  if (function == nullptr || dladdr(function, &info) == 0 || info.dli_fname == nullptr) {
    throw std::runtime_error("cannot tell which CUDA runtime this process has");
  }
  const std::optional<fs::path> emulator = emulator_folder();
  const bool emulated = emulator && same_folder(fs::path(info.dli_fname).parent_path(), *emulator);
  if (emulated == (stage == Stage::emulator)) return;
  throw std::runtime_error(fmt::format("the CUDA runtime is {}, which {} the emulator's; is LD_PRELOAD set?",
                                       info.dli_fname, emulated ? "is" : "is not"));
}

}  // namespace ladder
