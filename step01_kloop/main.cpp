// step01_kloop: a loop over K through one buffer. The kernel is in blackwell.cu.

#include "common/harness/rung.h"

void launch_step01_kloop(const ladder::Gemm& gemm);  // blackwell.cu

int main(int argc, char** argv) {
  const ladder::Rung rung{
      .name = "step01_kloop",
      .title = "a loop over K through one buffer; the first MMA overwrites, later ones add",
      .blackwell = {{"plain", launch_step01_kloop, "the rung as it stands in blackwell.cu"}},
      .hopper = {},
      .tile_m = 128,
      .tile_n = 256,
      .tile_k = 16,
  };
  return ladder::run_rung(rung, argc, argv);
}
