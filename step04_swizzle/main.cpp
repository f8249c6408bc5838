// step04_swizzle: rows of 128 bytes and the 128-byte swizzle.
#include "common/harness/rung.h"

ladder::Rung step04_swizzle();  // rung.cpp

int main(int argc, char** argv) {
  return ladder::run_rung(step04_swizzle(), argc, argv);
}
