#pragma once
// What the driver's management library tells of a GPU: its power draw, and the driver's own version.

#include <optional>
#include <string>

namespace ladder {

class PowerMeter {
 public:
  /// Of the first GPU. Where the library is missing or refuses, there are no readings.
  PowerMeter();
  /// Watts, averaged by the driver over about the last tenth of a second.
  std::optional<double> watts() const;
  /// The limit that is enforced.
  std::optional<double> limit_watts() const;
  /// "580.159.04"; empty where the library is missing.
  const std::string& driver() const { return driver_; }

 private:
  std::string driver_;
  void* device_ = nullptr;
  int (*usage_)(void*, unsigned*) = nullptr;
  int (*limit_)(void*, unsigned*) = nullptr;
};

}  // namespace ladder
