#pragma once
// What each part of step04's study should have left behind.

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "common/harness/matrix.h"
#include "step04_swizzle/study.h"

/// For one pair of matrices, of type f16. Keeps references to them.
class StudyCheck {
 public:
  StudyCheck(const ladder::HostMatrix& a, const ladder::HostMatrix& b) : a_(a), b_(b) {}

  /// What is wrong with D, for a person to read; empty if nothing is. `part`: not the loads.
  std::string fault_of(const Configuration& configuration, Part part, const ladder::HostMatrix& d);

  /// The same for the loads' checksums, kChecksumLanes for each CTA.
  std::string fault_of(const Configuration& configuration, const std::vector<uint32_t>& checksums) const;

 private:
  uint32_t checksum(const Configuration& configuration, int64_t tile_m, int64_t tile_n) const;

  const ladder::HostMatrix &a_, &b_;
  /// Sentences found before, by the two lengths in K of the product and the hash of D: most configurations leave the
  /// same bits.
  std::map<std::tuple<int64_t, int64_t, uint64_t>, std::string> known_;
};
