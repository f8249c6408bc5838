#pragma once
// Golden data of the layout tests: numbers that CUTLASS computed (tests/golden, each file says how in its header).

#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "common/layout/operand_tile.h"

namespace layout_test {

inline nlohmann::json golden(const std::string& name) {
  const std::string path = std::string(SOURCE_FOLDER "/tests/golden/") + name;
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  return nlohmann::json::parse(file);
}

inline uint64_t hexadecimal(const nlohmann::json& text) {
  return std::stoull(text.get<std::string>(), nullptr, 16);
}

/// The checksum that the headers of the golden files define.
inline uint64_t checksum_step(uint64_t hash, uint64_t value) {
  return hash * 1000003 + value;
}

inline ladder::Swizzle swizzle_named(const std::string& name) {
  if (name == "none") return ladder::Swizzle::kNone;
  if (name == "32B") return ladder::Swizzle::k32B;
  if (name == "64B") return ladder::Swizzle::k64B;
  if (name == "128B") return ladder::Swizzle::k128B;
  if (name == "128B_32Batom" || name == "128B, 32B atom") return ladder::Swizzle::k128BAtom32B;
  throw std::runtime_error("unknown swizzle " + name);
}

inline ladder::Major major_named(const std::string& name) {
  if (name == "K") return ladder::Major::k;
  if (name == "MN") return ladder::Major::mn;
  throw std::runtime_error("unknown major " + name);
}

inline ladder::AtomOrder order_named(const std::string& name) {
  if (name == "mn first") return ladder::AtomOrder::kRowsFirst;
  if (name == "k first") return ladder::AtomOrder::kKFirst;
  throw std::runtime_error("unknown order " + name);
}

}  // namespace layout_test
