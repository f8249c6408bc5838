#include "common/bench/power.h"

#include <dlfcn.h>

namespace ladder {

PowerMeter::PowerMeter() {
  void* const library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return;
  const auto init = reinterpret_cast<int (*)()>(dlsym(library, "nvmlInit_v2"));
  const auto handle = reinterpret_cast<int (*)(unsigned, void**)>(dlsym(library, "nvmlDeviceGetHandleByIndex_v2"));
  if (init == nullptr || handle == nullptr || init() != 0 || handle(0, &device_) != 0) {
    device_ = nullptr;
    return;
  }
  char version[96] = "";
  const auto driver = reinterpret_cast<int (*)(char*, unsigned)>(dlsym(library, "nvmlSystemGetDriverVersion"));
  if (driver != nullptr && driver(version, sizeof version) == 0) driver_ = version;
  usage_ = reinterpret_cast<int (*)(void*, unsigned*)>(dlsym(library, "nvmlDeviceGetPowerUsage"));
  limit_ = reinterpret_cast<int (*)(void*, unsigned*)>(dlsym(library, "nvmlDeviceGetEnforcedPowerLimit"));
}

static std::optional<double> ask(int (*what)(void*, unsigned*), void* device) {
  unsigned milliwatts = 0;
  if (device == nullptr || what == nullptr || what(device, &milliwatts) != 0) return std::nullopt;
  return milliwatts / 1e3;
}

std::optional<double> PowerMeter::watts() const {
  return ask(usage_, device_);
}

std::optional<double> PowerMeter::limit_watts() const {
  return ask(limit_, device_);
}

}  // namespace ladder
