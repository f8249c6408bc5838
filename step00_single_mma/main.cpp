// step00_single_mma: one TMA load, one MMA, one store.
#include "common/harness/rung.h"

ladder::Rung step00_single_mma();  // rung.cpp

int main(int argc, char** argv) {
  return ladder::run_rung(step00_single_mma(), argc, argv);
}
