// step03_warpspec: a producer warp and an MMA warp, with the ring between them.
#include "common/harness/rung.h"

ladder::Rung step03_warpspec();  // rung.cpp

int main(int argc, char** argv) {
  return ladder::run_rung(step03_warpspec(), argc, argv);
}
