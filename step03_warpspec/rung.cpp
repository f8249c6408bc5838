// step03_warpspec: a producer warp and an MMA warp, with the ring between them. Kernels: blackwell.cu, hopper.cu.

#include "common/harness/rung.h"

void launch_step03_warpspec(const ladder::Gemm& gemm, int stages);                          // blackwell.cu
void launch_step03_warpspec_hopper(const ladder::Gemm& gemm, int stages, bool reallocate);  // hopper.cu

/// Of either chip's kernel.
static std::vector<ladder::Variant> stages(const std::function<void(const ladder::Gemm&, int)>& launch) {
  const auto with = [=](int stages) { return [=](const ladder::Gemm& gemm) { launch(gemm, stages); }; };
  return {{"stages-4", with(4), "four buffers"}, {"stages-2", with(2), "two"}, {"stages-3", with(3), "three"},
          {"stages-5", with(5), "five"},         {"stages-6", with(6), "six"}, {"stages-7", with(7), "seven"},
          {"stages-8", with(8), "eight"}};
}

template <bool kReallocate>
static void hopper(const ladder::Gemm& gemm, int stages) {
  launch_step03_warpspec_hopper(gemm, stages, kReallocate);
}

static std::vector<ladder::Variant> hopper_variants() {
  std::vector<ladder::Variant> variants = stages(hopper<false>);
  variants.push_back({"setmaxnreg", [](const ladder::Gemm& gemm) { hopper<true>(gemm, 4); },
                      "four buffers; the producer hands registers to the others"});
  return variants;
}

ladder::Rung step03_warpspec() {
  return {
      .name = "step03_warpspec",
      .title = "a producer warp and an MMA warp, with the ring between them",
      .blackwell = stages(launch_step03_warpspec),
      .hopper = hopper_variants(),
      .tile_m = 128,
      .tile_n = 256,
      .tile_k = 16,
  };
}
