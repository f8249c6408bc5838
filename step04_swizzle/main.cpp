// step04_swizzle: rows of 128 bytes and the 128-byte swizzle. The kernel is in blackwell.cu.

#include "common/harness/rung.h"

void launch_step04_swizzle(const ladder::Gemm& gemm);  // blackwell.cu

int main(int argc, char** argv) {
  const ladder::Rung rung{
      .name = "step04_swizzle",
      .title = "rows of 128 bytes, swizzled: four MMAs a stage",
      .blackwell = {{"plain", launch_step04_swizzle, "the rung as it stands in blackwell.cu"}},
      .hopper = {},
      .tile_m = 128,
      .tile_n = 256,
      .tile_k = 64,
  };
  return ladder::run_rung(rung, argc, argv);
}
