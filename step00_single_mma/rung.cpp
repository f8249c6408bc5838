// step00_single_mma: one TMA load, one MMA, one store. Kernels: blackwell.cu, hopper.cu.

#include "common/harness/rung.h"

void launch_step00_single_mma(const ladder::Gemm& gemm);         // blackwell.cu
void launch_step00_single_mma_hopper(const ladder::Gemm& gemm);  // hopper.cu

ladder::Rung step00_single_mma() {
  return {
      .name = "step00_single_mma",
      .title = "one TMA load, one MMA, one store; K is 16",
      .blackwell = {{"plain", launch_step00_single_mma, "the rung as it stands in blackwell.cu"}},
      .hopper = {{"plain", launch_step00_single_mma_hopper, "the rung as it stands in hopper.cu"}},
      .tile_m = 128,
      .tile_n = 256,
      .tile_k = 16,
      .fixed_k = 16,
  };
}
