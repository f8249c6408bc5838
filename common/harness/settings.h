#pragma once
// Variants named by what is set in them: NAME=VALUE, with commas between them.

#include <string_view>
#include <vector>

#include "common/harness/rung.h"

namespace ladder {

struct SetTo {
  std::string_view name, value;  ///< of the text that was read
  int number;                    ///< of a value that is one; else (`auto`, `off`) 0
};

/// Throws UserError where `text` names a setting that is not `known`, names one twice, or gives it another value than
/// it takes.
std::vector<SetTo> parse_settings(std::string_view text, const std::vector<Setting>& known);

}  // namespace ladder
