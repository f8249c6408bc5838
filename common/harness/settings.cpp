#include "common/harness/settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <string>

#include "common/harness/user_error.h"

namespace ladder {
namespace {

/// The value's number: of the word if it is one, 0 for any other (`auto`, `off`, ...).
int number_of(const Setting& setting, std::string_view value) {
  int number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  const bool whole = error == std::errc{} && end == value.data() + value.size();
  for (const std::string& known : setting.values) {
    const size_t dots = known.find("..");
    const bool fits = dots == known.npos ? value == known
                                         : whole && number >= std::stoi(known.substr(0, dots)) &&
                                               number <= std::stoi(known.substr(dots + 2));
    if (fits) return whole ? number : 0;
  }
  throw UserError(fmt::format("{}={}: must be {}", setting.name, value, fmt::join(setting.values, "|")));
}

}  // namespace

std::vector<SetTo> parse_settings(std::string_view text, const std::vector<Setting>& known) {
  std::vector<SetTo> found;
  while (true) {
    const std::string_view pair = text.substr(0, text.find(','));
    const std::string_view name = pair.substr(0, pair.find('='));
    const auto setting = std::find_if(known.begin(), known.end(), [&](const Setting& one) { return one.name == name; });
    if (setting == known.end() || name.size() == pair.size()) {
      std::string names;
      for (const Setting& one : known) names += fmt::format("{}{}", names.empty() ? "" : ", ", one.name);
      throw UserError(fmt::format("--variant: '{}' is no setting; expected NAME=VALUE, with commas between them, of {}",
                                  pair, names));
    }
    if (std::any_of(found.begin(), found.end(), [&](const SetTo& one) { return one.name == name; })) {
      throw UserError(fmt::format("--variant: {} is set twice", name));
    }
    const std::string_view value = pair.substr(name.size() + 1);
    found.push_back({name, value, number_of(*setting, value)});
    if (pair.size() == text.size()) return found;
    text.remove_prefix(pair.size() + 1);
  }
}

}  // namespace ladder
