// step06_multicast: the CTAs of a cluster load for each other.
#include "common/harness/rung.h"

ladder::Rung step06_multicast();  // rung.cpp

int main(int argc, char** argv) {
  return ladder::run_rung(step06_multicast(), argc, argv);
}
