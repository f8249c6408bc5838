#include "emulator/machine/demangle.h"

#include <cxxabi.h>

#include <cstdlib>

namespace emu {

std::string demangled(const std::string& name) {
  int status = 0;
  char* text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  if (status != 0 || !text) return name;
  std::string result = text;
  std::free(text);
  return result;
}

}  // namespace emu
