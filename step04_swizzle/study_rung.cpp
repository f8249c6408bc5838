// The study as one more rung, for the benchmark: a configuration is a variant, and its part one that is only timed.

#include <fmt/format.h>

#include "common/harness/settings.h"
#include "common/harness/user_error.h"
#include "step04_swizzle/study.h"

using namespace ladder;

namespace {

std::vector<Setting> known_settings() {
  return {{"arrangement", {"128B", "64B", "32B", "columns", "boxes", "rows"}, "how a K tile lies in shared memory"},
          {"tile-k", {"64", "32", "16"}, "K of a stage"},
          {"stages", {"4", "1..16"}, "of the ring"},
          {"part", {"full", "load", "mma", "epilogue"}, "of the kernel"},
          {"roles", {"apart", "together"}, "is there a warp that only loads"},
          {"cluster", {kClusters.begin(), kClusters.end()}, "of CTAs that load for each other"}};
}

template <class Value, class Values>
Value named(const Values& values, std::string_view name) {
  for (const Value value : values) {
    if (name == name_of(value)) return value;
  }
  throw UserError(fmt::format("'{}' is no such value", name));  // parse_settings knows the names
}

Variant variant_of(Family family, const std::string& name) {
  Configuration configuration{Arrangement::swizzle_128b, kMostTileK, 4};
  Part part = Part::full;
  for (const auto& [setting, value, number] : parse_settings(name, known_settings())) {
    if (setting == "arrangement") configuration.arrangement = named<Arrangement>(kArrangements, value);
    if (setting == "tile-k") configuration.tile_k = number;
    if (setting == "stages") configuration.stages = number;
    if (setting == "part") part = named<Part>(kParts, value);
    if (setting == "roles") configuration.roles = value == "together" ? Roles::together : Roles::apart;
    if (setting == "cluster") configuration.cluster = cluster_of(std::string(value));
  }
  if (const auto why_not = obstacle(configuration, part, family)) throw UserError(*why_not);
  const auto launch = family == Family::hopper ? launch_study_hopper : launch_study;
  return {name, [=](const Gemm& gemm) { launch(configuration, part, gemm, nullptr, false); }, ""};
}

VariantsBySetting settings(Family family) {
  return {.variant = [=](const std::string& name) { return variant_of(family, name); }, .settings = known_settings()};
}

}  // namespace

Rung swizzle_study() {
  const std::string all = "arrangement=128B";
  return {.name = "swizzle_study",
          .title = "step04's study",
          .blackwell = {variant_of(Family::blackwell, all)},
          .hopper = {variant_of(Family::hopper, all)},
          .tile_m = kStudyTileM,
          .tile_n = kStudyTileN,
          .tile_k = kMostTileK,
          .blackwell_settings = settings(Family::blackwell),
          .hopper_settings = settings(Family::hopper)};
}
