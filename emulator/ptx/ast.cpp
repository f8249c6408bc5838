#include "emulator/ptx/ast.h"

#include <algorithm>
#include <array>

namespace emu::ptx {
namespace {

struct TypeRow {
  std::string_view name;
  uint32_t bits;
};
/// In the order of enum Type.
constexpr std::array<TypeRow, 21> kTypes{{
    {"pred", 1}, {"b8", 8},     {"b16", 16}, {"b32", 32}, {"b64", 64},    {"b128", 128},      {"u8", 8},
    {"u16", 16}, {"u32", 32},   {"u64", 64}, {"s8", 8},   {"s16", 16},    {"s32", 32},        {"s64", 64},
    {"f16", 16}, {"f16x2", 32}, {"f32", 32}, {"f64", 64}, {"texref", 64}, {"samplerref", 64}, {"surfref", 64},
}};
static_assert(static_cast<size_t>(Type::surfref) + 1 == kTypes.size());

}  // namespace

std::string_view to_string(Space space) {
  constexpr std::array<std::string_view, 7> kNames{"reg", "global", "const", "shared", "local", "param", "tex"};
  return kNames[static_cast<size_t>(space)];
}

std::string_view to_string(Type type) {
  return kTypes[static_cast<size_t>(type)].name;
}
uint32_t bits(Type type) {
  return kTypes[static_cast<size_t>(type)].bits;
}

std::optional<Type> type_from_name(std::string_view name) {
  for (size_t i = 0; i < kTypes.size(); ++i) {
    if (kTypes[i].name == name) return static_cast<Type>(i);
  }
  return std::nullopt;
}

const Function* Module::function(std::string_view name) const {
  const auto found =
      std::find_if(functions.begin(), functions.end(), [&](const Function& f) { return f.name == name; });
  return found == functions.end() ? nullptr : &*found;
}

const Variable* Module::variable(std::string_view name) const {
  const auto found =
      std::find_if(variables.begin(), variables.end(), [&](const Variable& v) { return v.name == name; });
  return found == variables.end() ? nullptr : &*found;
}

std::string Module::describe(const SourceLine& line) const {
  if (line.file >= files.size() || files[line.file].empty()) return {};
  const std::string& path = files[line.file];
  const size_t slash = path.rfind('/');
  return path.substr(slash == std::string::npos ? 0 : slash + 1) + ":" + std::to_string(line.line);
}

}  // namespace emu::ptx
