// step07_persistent: CTA pairs that stay, with two accumulators.
#include "common/harness/rung.h"

ladder::Rung step07_persistent();  // rung.cpp

int main(int argc, char** argv) {
  return ladder::run_rung(step07_persistent(), argc, argv);
}
