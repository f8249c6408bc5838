#pragma once
// Shapes of the multiplication: their names and what TMA can address.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ladder {

struct Shape {
  int64_t m = 0, n = 0, k = 0;
  bool operator==(const Shape&) const = default;
};

/// "4096 x 4096 x 4096"
std::string to_string(const Shape& shape);

struct NamedShape {
  std::string_view name;
  Shape shape;
  std::string_view use;
};

/// The linear layers that the origin measured (Llama 3 70B), and its reference cube.
std::span<const NamedShape> named_shapes();

/// "4096x4096x4096" (M x N x K) or a name. Throws UserError.
Shape parse_shape(std::string_view text);

/// Throws UserError unless TMA can address all three matrices and the rung takes this K (fixed_k, 0: any).
void check_shape(const Shape& shape, int64_t fixed_k, std::string_view rung);

}  // namespace ladder
