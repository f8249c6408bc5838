#pragma once
// Where a run goes: a GPU, or an emulated chip. Decided from the options, the probe and what the rung has code for.

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/harness/gpu_probe.h"
#include "common/harness/options.h"
#include "common/harness/rung.h"

namespace ladder {

enum class Family { blackwell, hopper };  ///< which of a rung's variants a device runs

struct DeviceChoice {
  bool emulated = true;
  std::string chip;        ///< "b200", when emulated
  std::optional<Gpu> gpu;  ///< when not
  Family family = Family::blackwell;
  std::string note;  ///< one line for a person: why this is emulated although nobody asked; else empty
};

/// `wished_chip`: LADDER_CHIP, which with --on auto asks for that chip; may be empty. `probe` is called only when a GPU
/// matters. Throws UserError where --on asks for what cannot be.
DeviceChoice choose_device(const Rung& rung, const Options& options, const std::string& wished_chip,
                           const std::function<GpuProbe()>& probe);

/// For --where:
///   rung, note, fixed_k (null: any K), variants (names, the default first)
///   settings {name: values, as Setting has them}: further variants
///   device   {emulated, chip} or {emulated, name, compute_capability, cuda_driver}
nlohmann::ordered_json to_json(const Rung& rung, const DeviceChoice& choice);

/// The variants for a family.
const std::vector<Variant>& variants_of(const Rung& rung, Family family);

/// What can be set in them.
const VariantsBySetting& settings_of(const Rung& rung, Family family);

/// The variant that --variant names, the first by default. Throws UserError when this family lacks it.
Variant choose_variant(const Rung& rung, Family family, const std::string& name);

}  // namespace ladder
