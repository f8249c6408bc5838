// Every export of the real library that the emulator does not do. None of the toolkit's headers here: they would insist
// on the signatures.

#include <cstdio>
#include <cstdlib>

#include "emulator/runtime/stub.h"

#include "emulator/runtime/unimplemented.inc"

namespace {

[[noreturn]] void stop(const char* name) {
  std::fprintf(stderr, "emulator: %s is not implemented and has no way to return an error; stopping\n", name);
  std::abort();
}

}  // namespace

// Those that return no error code.
extern "C" {
__attribute__((visibility("default"))) void __cudaRegisterHostVar() {
  stop("__cudaRegisterHostVar");
}
__attribute__((visibility("default"))) void __cudaRegisterUnifiedTable() {
  stop("__cudaRegisterUnifiedTable");
}
__attribute__((visibility("default"))) void* __cudaGetProcAddress() {
  stop("__cudaGetProcAddress");
}
}
