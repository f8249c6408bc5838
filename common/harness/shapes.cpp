#include "common/harness/shapes.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

#include "common/harness/user_error.h"

namespace ladder {
namespace {

constexpr std::array kNamedShapes = {
    NamedShape{"square-4096", {4096, 4096, 4096}, "the familiar reference"},
    NamedShape{"prefill-attn-out", {8192, 8192, 8192}, "prefill, attention output"},
    NamedShape{"prefill-mlp-up", {8192, 28672, 8192}, "prefill, MLP up"},
    NamedShape{"decode-attn-out", {256, 8192, 8192}, "decode, attention output"},
    NamedShape{"decode-qkv", {256, 10240, 8192}, "decode, fused QKV"},
    NamedShape{"decode-mlp-up", {256, 28672, 8192}, "decode, MLP up"},
    NamedShape{"decode-mlp-down", {256, 8192, 28672}, "decode, MLP down"},
};

constexpr int64_t kLargestDimension = (int64_t{1} << 31) - 1;
constexpr int64_t kRowElements = 8;  // 16 bytes of a 16-bit type

bool parse_number(std::string_view text, int64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

void check_rows_are_16_byte_multiples(char name, int64_t value, std::string_view rule) {
  if (value % kRowElements == 0) return;
  const int64_t above = value + kRowElements - value % kRowElements;
  const std::string below = value > kRowElements ? fmt::format("{} or ", value - value % kRowElements) : "";
  throw UserError(
      fmt::format("{0} = {1}: {2}, so {0} must be a multiple of 8; take {3}{4}", name, value, rule, below, above));
}

}  // namespace

std::string to_string(const Shape& shape) {
  return fmt::format("{} x {} x {}", shape.m, shape.n, shape.k);
}

std::span<const NamedShape> named_shapes() {
  return kNamedShapes;
}

Shape parse_shape(std::string_view text) {
  for (const NamedShape& named : kNamedShapes) {
    if (named.name == text) return named.shape;
  }
  const size_t first = text.find('x');
  const size_t second = first == text.npos ? text.npos : text.find('x', first + 1);
  Shape shape;
  if (second != text.npos && parse_number(text.substr(0, first), shape.m) &&
      parse_number(text.substr(first + 1, second - first - 1), shape.n) &&
      parse_number(text.substr(second + 1), shape.k)) {
    return shape;
  }
  std::string names;
  for (const NamedShape& named : kNamedShapes) names += fmt::format("{}{}", names.empty() ? "" : ", ", named.name);
  throw UserError(fmt::format("--shape {}: not a shape; write MxNxK, as in 4096x4096x4096, or one of {}", text, names));
}

void check_shape(const Shape& shape, int64_t fixed_k, std::string_view rung) {
  const std::array<std::pair<char, int64_t>, 3> dimensions = {{{'M', shape.m}, {'N', shape.n}, {'K', shape.k}}};
  for (const auto& [name, value] : dimensions) {
    if (value < 1) throw UserError(fmt::format("{} = {}: every dimension must be at least 1", name, value));
    if (value > kLargestDimension) {
      throw UserError(fmt::format("{} = {}: TMA coordinates are signed 32-bit numbers, so {} can be at most {}", name,
                                  value, name, kLargestDimension));
    }
  }
  if (fixed_k != 0 && shape.k != fixed_k) {
    throw UserError(fmt::format("K = {0}: {1} multiplies one K tile only, so K must be {2}; step01_kloop takes any multiple of 8",
                                shape.k, rung, fixed_k));
  }
  check_rows_are_16_byte_multiples('K', shape.k, "TMA needs rows of A and B that are a multiple of 16 bytes");
  check_rows_are_16_byte_multiples(
      'N', shape.n, "all rungs take the same shapes, and TMA stores need rows of D that are a multiple of 16 bytes");
}

}  // namespace ladder
