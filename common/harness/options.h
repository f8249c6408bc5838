#pragma once
// The command line that all rungs share.

#include <cstdint>
#include <optional>
#include <string>

#include "common/harness/dtype.h"
#include "common/harness/rung.h"
#include "common/harness/shapes.h"

namespace ladder {

enum class Input {
  random,    ///< normal numbers
  integer,   ///< small integers whose product is exact: compared with ==
  position,  ///< the result says which row, column and K slice arrived
  file,      ///< --a and --b
};
const char* name_of(Input input);

struct Options {
  Shape shape;
  DType in = DType::f16;
  DType out = DType::f16;
  std::string variant;  ///< empty: the rung's first
  uint64_t seed = 1;
  Input input = Input::random;
  std::string a_path, b_path, out_path;
  bool round = false;
  bool check = false;
  bool bench = false;
  bool json = false;
  bool guard = false;
  bool where = false;
  std::string on = "auto";  ///< auto, gpu, or the name of an emulated chip
  std::optional<double> time_limit_s;
};

/// The seconds a kernel may take on a real GPU unless --time-limit says otherwise; the emulator has no limit of its
/// own, since it reports a hang at once.
constexpr double kDefaultTimeLimitSeconds = 20;

struct CommandLine {
  std::optional<Options> options;  ///< nothing: print `help` and leave with status 0
  std::string help;
};

/// Parses and checks everything that can be known without a device: values, the shape against TMA's and the rung's
/// rules, the headers of .npy files. Throws UserError.
CommandLine parse_command_line(const Rung& rung, int argc, const char* const* argv);

}  // namespace ladder
