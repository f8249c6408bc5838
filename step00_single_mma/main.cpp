// step00_single_mma: one TMA load, one MMA, one store. The kernel is in blackwell.cu.

#include "common/harness/rung.h"

void launch_step00_single_mma(const ladder::Gemm& gemm);  // blackwell.cu

int main(int argc, char** argv) {
  const ladder::Rung rung{
      .name = "step00_single_mma",
      .title = "one TMA load, one MMA, one store; K is 16",
      .blackwell = {{"plain", launch_step00_single_mma, "the rung as it stands in blackwell.cu"}},
      .hopper = {},
      .tile_m = 128,
      .tile_n = 256,
      .tile_k = 16,
      .fixed_k = 16,
  };
  return ladder::run_rung(rung, argc, argv);
}
