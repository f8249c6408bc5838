// step03_warpspec: a producer warp and an MMA warp, with the ring between them. Kernels: blackwell.cu, hopper.cu.

#include "common/harness/rung.h"

void launch_step03_warpspec(const ladder::Gemm& gemm, int stages);                          // blackwell.cu
void launch_step03_warpspec_hopper(const ladder::Gemm& gemm, int stages, bool reallocate);  // hopper.cu

static ladder::Variant blackwell(int stages, const char* what) {
  return {"stages-" + std::to_string(stages), [=](const ladder::Gemm& gemm) { launch_step03_warpspec(gemm, stages); },
          what};
}
static ladder::Variant hopper(int stages, const char* what) {
  return {"stages-" + std::to_string(stages),
          [=](const ladder::Gemm& gemm) { launch_step03_warpspec_hopper(gemm, stages, false); }, what};
}
static void with_setmaxnreg(const ladder::Gemm& gemm) {
  launch_step03_warpspec_hopper(gemm, 4, true);
}

ladder::Rung step03_warpspec() {
  return {
      .name = "step03_warpspec",
      .title = "a producer warp and an MMA warp, with the ring between them",
      .blackwell = {blackwell(4, "four buffers"), blackwell(2, "two"), blackwell(3, "three"), blackwell(5, "five"),
                    blackwell(6, "six"), blackwell(7, "seven"), blackwell(8, "eight")},
      .hopper = {hopper(4, "four buffers"),
                 hopper(2, "two"),
                 hopper(3, "three"),
                 hopper(5, "five"),
                 hopper(6, "six"),
                 hopper(7, "seven"),
                 hopper(8, "eight"),
                 {"setmaxnreg", with_setmaxnreg, "four buffers; the producer hands registers to the others"}},
      .tile_m = 128,
      .tile_n = 256,
      .tile_k = 16,
  };
}
