#pragma once
// The GPU's power draw, as its driver's management library tells it.

#include <optional>

namespace ladder {

class PowerMeter {
 public:
  /// Of the first GPU. Where the library is missing or refuses, there are no readings.
  PowerMeter();
  /// Watts, averaged by the driver over about the last tenth of a second.
  std::optional<double> watts() const;
  /// The limit that is enforced.
  std::optional<double> limit_watts() const;

 private:
  void* device_ = nullptr;
  int (*usage_)(void*, unsigned*) = nullptr;
  int (*limit_)(void*, unsigned*) = nullptr;
};

}  // namespace ladder
