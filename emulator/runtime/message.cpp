#include "emulator/runtime/message.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace emu::runtime {

void say(std::string_view line) {
  const std::string text = fmt::format("emulator: {}\n", line);
  std::fflush(stdout);  // keeps the two streams in order when both end in one file
  std::fwrite(text.data(), 1, text.size(), stderr);
}

void refuse(std::string_view line) {
  say(line);
  std::fflush(nullptr);
  // Not exit(): we may be inside the program's constructors, or on one of its threads.
  _exit(2);
}

}  // namespace emu::runtime
