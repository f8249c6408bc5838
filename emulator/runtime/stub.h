#pragma once
// Functions that exist only to say that they are not there. A list of names is included with UNIMPLEMENTED defined as a
// function definition: a name has to become both a symbol and a text, which only the preprocessor does.

#include <atomic>
#include <cstdio>

namespace emu::runtime {

/// Says it once per function. 801 is cudaErrorNotSupported and CUDA_ERROR_NOT_SUPPORTED.
inline int not_supported(const char* name, std::atomic_flag& said) {
  if (!said.test_and_set())
    std::fprintf(stderr, "emulator: %s is not implemented; it returns %s\n", name,
                 name[2] == 'd' ? "cudaErrorNotSupported" : "CUDA_ERROR_NOT_SUPPORTED");
  return 801;
}

}  // namespace emu::runtime

// The arguments are not looked at, so the list needs no signatures (the caller cleans up, on x86-64 and on arm64).
#define UNIMPLEMENTED(name)                                     \
  extern "C" __attribute__((visibility("default"))) int name(); \
  int name() {                                                  \
    static std::atomic_flag said;                               \
    return emu::runtime::not_supported(#name, said);            \
  }
