// step02_pipeline: a ring of buffers, so that loads run ahead of the MMAs. Kernels: blackwell.cu, hopper.cu.

#include "common/harness/rung.h"

void launch_step02_pipeline(const ladder::Gemm& gemm, int stages);         // blackwell.cu
void launch_step02_pipeline_hopper(const ladder::Gemm& gemm, int stages);  // hopper.cu

/// Of either chip's kernel.
static std::vector<ladder::Variant> stages(void (*launch)(const ladder::Gemm&, int)) {
  const auto with = [=](int stages) { return [=](const ladder::Gemm& gemm) { launch(gemm, stages); }; };
  return {{"stages-4", with(4), "four buffers"}, {"stages-2", with(2), "two"}, {"stages-3", with(3), "three"},
          {"stages-5", with(5), "five"},         {"stages-6", with(6), "six"}, {"stages-7", with(7), "seven"},
          {"stages-8", with(8), "eight"}};
}

ladder::Rung step02_pipeline() {
  return {
      .name = "step02_pipeline",
      .title = "a ring of buffers: loads run ahead of the MMAs",
      .blackwell = stages(launch_step02_pipeline),
      .hopper = stages(launch_step02_pipeline_hopper),
      .tile_m = 128,
      .tile_n = 256,
      .tile_k = 16,
  };
}
