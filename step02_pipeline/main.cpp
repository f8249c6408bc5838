// step02_pipeline: a ring of buffers, so that loads run ahead of the MMAs.
#include "common/harness/rung.h"

ladder::Rung step02_pipeline();  // rung.cpp

int main(int argc, char** argv) {
  return ladder::run_rung(step02_pipeline(), argc, argv);
}
