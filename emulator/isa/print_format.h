#pragma once
// What printf() in a kernel makes of its format: CUDA programming guide, "Formatted Output".

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace emu::isa {

/// Where arguments come from. The compiler puts them side by side, each aligned to its size: four bytes for int and
/// what is promoted to it, eight for long, pointers and double.
struct PrintSources {
  std::function<uint64_t(uint64_t offset, uint32_t bytes)> value;
  std::function<std::string(uint64_t address)> text;  ///< of %s
};

struct Printed {
  std::string text;
  int arguments = 0;  ///< widths included: what printf returns (an H200)
};

Printed print_format(std::string_view format, const PrintSources& sources);

}  // namespace emu::isa
