#include "common/harness/gpu_probe.h"

#include <cuda.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <system_error>
#include <vector>

namespace ladder {
namespace {

/// A library that was opened, or nothing. Never closed: drivers do not like it.
void* open_driver(const std::filesystem::path& emulator_folder) {
  std::vector<std::string> names = {"libcuda.so.1"};
  // By name, the loader may find the emulator's; then these are the usual places of the driver's.
  for (const char* folder : {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib",
                             "/usr/local/nvidia/lib64", "/usr/lib/wsl/lib", "/run/opengl-driver/lib"}) {
    names.push_back(std::string(folder) + "/libcuda.so.1");
  }
  for (const std::string& name : names) {
    void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) continue;
    link_map* map = nullptr;
    std::error_code ignored;
    if (dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 &&
        std::filesystem::equivalent(std::filesystem::path(map->l_name).parent_path(), emulator_folder, ignored)) {
      continue;
    }
    return library;
  }
  return nullptr;
}

template <class Function>
Function* find(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

}  // namespace

std::string cuda_version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

GpuProbe probe_gpu(const std::filesystem::path& emulator_folder) {
  void* library = open_driver(emulator_folder);
  if (library == nullptr) return {std::nullopt, "no NVIDIA driver is installed"};
  const auto init = find<decltype(cuInit)>(library, "cuInit");
  const auto version = find<decltype(cuDriverGetVersion)>(library, "cuDriverGetVersion");
  const auto count = find<decltype(cuDeviceGetCount)>(library, "cuDeviceGetCount");
  const auto get = find<decltype(cuDeviceGet)>(library, "cuDeviceGet");
  const auto get_name = find<decltype(cuDeviceGetName)>(library, "cuDeviceGetName");
  const auto attribute = find<decltype(cuDeviceGetAttribute)>(library, "cuDeviceGetAttribute");
  if (!init || !version || !count || !get || !get_name || !attribute) {
    return {std::nullopt, "the NVIDIA driver lacks functions that every driver has"};
  }
  if (const CUresult result = init(0); result != CUDA_SUCCESS) {
    return {std::nullopt, result == CUDA_ERROR_NO_DEVICE ? std::string("the NVIDIA driver finds no GPU")
                                                         : fmt::format("the NVIDIA driver does not start (CUresult {})",
                                                                       static_cast<int>(result))};
  }
  int devices = 0;
  CUdevice device = 0;
  if (count(&devices) != CUDA_SUCCESS || devices == 0 || get(&device, 0) != CUDA_SUCCESS) {
    return {std::nullopt, "the NVIDIA driver finds no GPU"};
  }
  Gpu gpu;
  char name[128] = "";
  get_name(name, sizeof name, device);
  gpu.name = name;
  attribute(&gpu.major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  attribute(&gpu.minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  version(&gpu.driver_version);
  return {gpu, {}};
}

}  // namespace ladder
