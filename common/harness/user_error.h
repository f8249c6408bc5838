#pragma once
// What a person did that cannot work: told in one line, exit status 2, before anything runs.

#include <stdexcept>

namespace ladder {

/// what() names the value, the rule and the way out, and has no newline.
struct UserError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace ladder
