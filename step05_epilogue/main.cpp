// step05_epilogue: D leaves through shared memory, by TMA.
#include "common/harness/rung.h"

ladder::Rung step05_epilogue();  // rung.cpp

int main(int argc, char** argv) {
  return ladder::run_rung(step05_epilogue(), argc, argv);
}
