// Which combinations of step04's study there are, and why not the others.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "common/harness/user_error.h"
#include "common/layout/swizzle.h"
#include "step04_swizzle/study.h"

using ladder::Family;
using ladder::Swizzle;
using ladder::UserError;

Swizzle Configuration::swizzle() const {
  switch (arrangement) {
    case Arrangement::swizzle_32b:
      return Swizzle::k32B;
    case Arrangement::swizzle_64b:
      return Swizzle::k64B;
    case Arrangement::swizzle_128b:
      return Swizzle::k128B;
    default:
      return Swizzle::kNone;
  }
}

int Configuration::row_bytes() const {
  if (arrangement == Arrangement::rows) return tile_k * 2;
  return static_cast<int>(ladder::swizzle_span_bytes(swizzle()));
}

ladder::OperandTile Configuration::tile(int rows) const {
  return {.major = ladder::Major::k,
          .swizzle = swizzle(),
          .order = ladder::AtomOrder::kRowsFirst,
          .element_bytes = 2,
          .rows = static_cast<uint32_t>(rows),
          .k = static_cast<uint32_t>(tile_k)};
}

uint32_t Configuration::offset(int rows, int row, int k) const {
  if (arrangement == Arrangement::rows) return static_cast<uint32_t>((row * tile_k + k) * 2);
  return tile(rows).offset(static_cast<uint32_t>(row), static_cast<uint32_t>(k));
}

std::optional<std::string> obstacle(const Configuration& configuration, Part part, Family family) {
  const auto& [arrangement, tile_k, stages, roles, cluster] = configuration;
  const bool alone = cluster.m * cluster.n == 1;
  if (family != Family::hopper && (roles != Roles::apart || !alone)) {
    return "--roles together and --cluster are for the kernel with wgmma; take --on h200, or leave them out";
  }
  if (tile_k != 16 && tile_k != 32 && tile_k != kMostTileK) {
    return fmt::format(
        "--tile-k {}: must be 16, 32 or 64: an MMA takes 16, and 64 are the 128 bytes of the widest swizzle", tile_k);
  }
  if (configuration.row_bytes() > tile_k * 2) {
    const int needed = configuration.row_bytes() / 2;
    return fmt::format(
        "--tile-k {} with {}: {} of K are {} bytes, and a row of this swizzle is {}; take --tile-k {}{}, or a narrower "
        "swizzle",
        tile_k, name_of(arrangement), tile_k, tile_k * 2, configuration.row_bytes(), needed,
        needed < kMostTileK ? " or more" : "");
  }
  if (arrangement == Arrangement::rows && part != Part::load) {
    return fmt::format(
        "rows with --part {}: no MMA reads un-swizzled rows of {} bytes (without swizzle it wants columns of 16 "
        "bytes); "
        "take --part load",
        name_of(part), configuration.row_bytes());
  }
  if (stages < 1 || stages > kMostStages) {
    return fmt::format("--stages {}: must be 1 to {}, for which there are barriers", stages, kMostStages);
  }
  if (configuration.in_flight_bytes() > kRingBytes) {
    return fmt::format("--stages {} of {} bytes are {}: the ring has {} bytes; take {} stages or fewer", stages,
                       configuration.stage_bytes(), configuration.in_flight_bytes(), kRingBytes,
                       kRingBytes / configuration.stage_bytes());
  }
  if (roles == Roles::together && (part != Part::full || !alone)) {
    return "--roles together: there is no --part but full and no --cluster for them; leave those out";
  }
  if (!alone && (arrangement == Arrangement::columns || (part != Part::full && part != Part::load))) {
    return fmt::format(
        "--cluster {}x{} with {} and --part {}: CTAs share the rows of two-dimensional boxes, to multiply them or only "
        "to load them; take boxes for the same bytes in the same places, and --part full or load",
        cluster.m, cluster.n, name_of(arrangement), name_of(part));
  }
  return {};
}

std::vector<int> stage_counts(int tile_k) {
  const int equal = kRingBytes / Configuration{Arrangement::rows, tile_k, 1}.stage_bytes();
  return equal == 4 ? std::vector{4} : std::vector{4, equal};
}

const char* name_of(Arrangement arrangement) {
  constexpr std::array kNames{"columns", "boxes", "rows", "32B", "64B", "128B"};
  return kNames[static_cast<size_t>(arrangement)];
}

const char* name_of(Part part) {
  constexpr std::array kNames{"full", "load", "mma", "epilogue"};
  return kNames[static_cast<size_t>(part)];
}

const char* name_of(Roles roles) {
  return roles == Roles::apart ? "apart" : "together";
}

ClusterShape cluster_of(const std::string& text) {
  for (const std::string name : kClusters) {
    if (text == name) return {.m = name[0] - '0', .n = name[2] - '0', .multicast = true};
  }
  throw UserError(fmt::format("--cluster {}: must be one of {}", text, fmt::join(kClusters, ", ")));
}
