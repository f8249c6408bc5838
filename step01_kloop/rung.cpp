// step01_kloop: a loop over K through one buffer. Kernels: blackwell.cu, hopper.cu.

#include "common/harness/rung.h"

void launch_step01_kloop(const ladder::Gemm& gemm);         // blackwell.cu
void launch_step01_kloop_hopper(const ladder::Gemm& gemm);  // hopper.cu

ladder::Rung step01_kloop() {
  return {
      .name = "step01_kloop",
      .title = "a loop over K through one buffer; the first MMA overwrites, later ones add",
      .blackwell = {{"plain", launch_step01_kloop, "the rung as it stands in blackwell.cu"}},
      .hopper = {{"plain", launch_step01_kloop_hopper, "the rung as it stands in hopper.cu"}},
      .tile_m = 128,
      .tile_n = 256,
      .tile_k = 16,
  };
}
