#include "common/harness/device_choice.h"

#include <fmt/format.h>

#include "common/harness/user_error.h"

namespace ladder {
namespace {

constexpr const char* kDefaultChip = "b200";

/// sm_100f code runs on every chip of major version 10; sm_90a code on 9.0 alone.
bool is_blackwell(const Gpu& gpu) {
  return gpu.major == 10;
}
bool is_hopper(const Gpu& gpu) {
  return gpu.major == 9 && gpu.minor == 0;
}

std::string describe(const Gpu& gpu) {
  return fmt::format("{} (compute capability {}.{})", gpu.name, gpu.major, gpu.minor);
}

/// Empty when the GPU can run the rung, else a clause that says why not.
std::string obstacle(const Rung& rung, const GpuProbe& found) {
  if (!found.gpu) return found.why_not;
  const Gpu& gpu = *found.gpu;
  constexpr int kNeededDriver = CUDART_VERSION / 1000 * 1000;  // minor versions are compatible with each other
  if (!is_blackwell(gpu) && !is_hopper(gpu)) {
    return fmt::format("{} has neither tcgen05 nor wgmma", describe(gpu));
  }
  if (is_hopper(gpu) && rung.hopper.empty()) {
    return fmt::format("{} has wgmma and {} has code for tcgen05 only", describe(gpu), rung.name);
  }
  if (gpu.driver_version < kNeededDriver) {
    return fmt::format("the driver of {} knows CUDA {} and this program needs {} (driver 580 or newer for 13.0)",
                       gpu.name, cuda_version_text(gpu.driver_version), cuda_version_text(kNeededDriver));
  }
  return {};
}

DeviceChoice emulate(const Rung& rung, const std::string& chip, std::string note) {
  if (chip != "b200" && chip != "h200") {
    throw UserError(fmt::format("LADDER_CHIP={}: no such chip; b200 and h200 can be emulated", chip));
  }
  const Family family = chip == "h200" ? Family::hopper : Family::blackwell;
  if (variants_of(rung, family).empty()) {
    throw UserError(
        fmt::format("--on {}: {} has no code for that chip (wgmma) yet; --on b200 emulates one that it has "
                    "code for",
                    chip, rung.name));
  }
  return {.emulated = true, .chip = chip, .gpu = {}, .family = family, .note = std::move(note)};
}

}  // namespace

const std::vector<Variant>& variants_of(const Rung& rung, Family family) {
  return family == Family::blackwell ? rung.blackwell : rung.hopper;
}

const VariantsBySetting& settings_of(const Rung& rung, Family family) {
  return family == Family::blackwell ? rung.blackwell_settings : rung.hopper_settings;
}

Variant choose_variant(const Rung& rung, Family family, const std::string& name) {
  const std::vector<Variant>& variants = variants_of(rung, family);
  if (name.empty()) return variants.front();
  std::string names;
  for (const Variant& variant : variants) {
    if (name == variant.name) return variant;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", variant.name);
  }
  const VariantsBySetting& by_setting = settings_of(rung, family);
  if (by_setting.variant && name.find('=') != name.npos) return by_setting.variant(name);
  throw UserError(fmt::format("--variant {}: not on this chip, where {} has {}", name, rung.name, names));
}

DeviceChoice choose_device(const Rung& rung, const Options& options, const std::string& wished_chip,
                           const std::function<GpuProbe()>& probe) {
  if (options.on != "auto" && options.on != "gpu") return emulate(rung, options.on, {});
  if (options.on == "auto" && !wished_chip.empty()) return emulate(rung, wished_chip, {});
  const GpuProbe found = probe();
  const std::string reason = obstacle(rung, found);
  if (reason.empty()) {
    return {.emulated = false,
            .chip = {},
            .gpu = found.gpu,
            .family = is_blackwell(*found.gpu) ? Family::blackwell : Family::hopper,
            .note = {}};
  }
  if (options.on == "gpu") throw UserError(fmt::format("--on gpu: {}; --on b200 emulates a B200", reason));
  return emulate(rung, kDefaultChip, fmt::format("{}: emulating a B200", reason));
}

nlohmann::ordered_json to_json(const Rung& rung, const DeviceChoice& choice) {
  nlohmann::ordered_json device = {{"emulated", choice.emulated}};
  if (choice.gpu) {
    device["name"] = choice.gpu->name;
    device["compute_capability"] = fmt::format("{}.{}", choice.gpu->major, choice.gpu->minor);
    device["cuda_driver"] = cuda_version_text(choice.gpu->driver_version);
  } else {
    device["chip"] = choice.chip;
  }
  nlohmann::ordered_json variants = nlohmann::ordered_json::array();
  for (const Variant& variant : variants_of(rung, choice.family)) variants.push_back(variant.name);
  nlohmann::ordered_json settings = nlohmann::ordered_json::object();
  for (const Setting& setting : settings_of(rung, choice.family).settings) settings[setting.name] = setting.values;
  return {{"rung", rung.name},
          {"device", device},
          {"note", choice.note},
          {"fixed_k", rung.fixed_k != 0 ? nlohmann::ordered_json(rung.fixed_k) : nlohmann::ordered_json()},
          {"variants", variants},
          {"settings", settings}};
}

}  // namespace ladder
