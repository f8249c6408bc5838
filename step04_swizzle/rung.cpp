// step04_swizzle: rows of 128 bytes and the 128-byte swizzle. Kernels: blackwell.cu, hopper.cu.

#include "common/harness/rung.h"

void launch_step04_swizzle(const ladder::Gemm& gemm);         // blackwell.cu
void launch_step04_swizzle_hopper(const ladder::Gemm& gemm);  // hopper.cu

ladder::Rung step04_swizzle() {
  return {
      .name = "step04_swizzle",
      .title = "rows of 128 bytes, swizzled: four MMAs a stage",
      .blackwell = {{"plain", launch_step04_swizzle, "the rung as it stands in blackwell.cu"}},
      .hopper = {{"plain", launch_step04_swizzle_hopper, "the rung as it stands in hopper.cu"}},
      .tile_m = 128,
      .tile_n = 256,
      .tile_k = 64,
  };
}
