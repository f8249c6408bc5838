// Every export of the real driver library that the emulator does not do.

#include "emulator/runtime/stub.h"

#include "emulator/runtime/libcuda/unimplemented.inc"
