// step03_warpspec: a producer warp and an MMA warp, with the ring between them. The kernel is in blackwell.cu.

#include "common/harness/rung.h"

void launch_step03_warpspec(const ladder::Gemm& gemm, int stages);  // blackwell.cu

template <int kStages>
static void with_stages(const ladder::Gemm& gemm) {
  launch_step03_warpspec(gemm, kStages);
}

int main(int argc, char** argv) {
  const ladder::Rung rung{
      .name = "step03_warpspec",
      .title = "a producer warp and an MMA warp, with the ring between them",
      .blackwell = {{"stages-4", with_stages<4>, "four buffers"},
                    {"stages-2", with_stages<2>, "two"},
                    {"stages-3", with_stages<3>, "three"},
                    {"stages-5", with_stages<5>, "five"},
                    {"stages-6", with_stages<6>, "six"},
                    {"stages-7", with_stages<7>, "seven"},
                    {"stages-8", with_stages<8>, "eight"}},
      .hopper = {},
      .tile_m = 128,
      .tile_n = 256,
      .tile_k = 16,
  };
  return ladder::run_rung(rung, argc, argv);
}
