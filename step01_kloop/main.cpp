// step01_kloop: a loop over K through one buffer.
#include "common/harness/rung.h"

ladder::Rung step01_kloop();  // rung.cpp

int main(int argc, char** argv) {
  return ladder::run_rung(step01_kloop(), argc, argv);
}
