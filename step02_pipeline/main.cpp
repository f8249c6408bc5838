// step02_pipeline: a ring of buffers, so that loads run ahead of the MMAs. The kernel is in blackwell.cu.

#include "common/harness/rung.h"

void launch_step02_pipeline(const ladder::Gemm& gemm, int stages);  // blackwell.cu

template <int kStages>
static void with_stages(const ladder::Gemm& gemm) {
  launch_step02_pipeline(gemm, kStages);
}

int main(int argc, char** argv) {
  const ladder::Rung rung{
      .name = "step02_pipeline",
      .title = "a ring of buffers: loads run ahead of the MMAs",
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
