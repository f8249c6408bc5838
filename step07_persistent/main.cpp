// step07_persistent: CTA pairs that stay, with two accumulators. The kernels are in pair.cu, persistent.cu,
// blackwell.cu.

#include "common/harness/rung.h"
#include "step07_persistent/plan.h"

void launch_step07_pair(const ladder::Gemm& gemm);                                // pair.cu
void launch_step07_persistent_grid(const ladder::Gemm& gemm);                     // persistent.cu
Plan plan_step07_persistent(const ladder::Gemm& gemm, const Settings& settings);  // blackwell.cu
void launch_step07_persistent(const ladder::Gemm& gemm, const Plan& plan);        // blackwell.cu

static ladder::Variant with(const std::string& name, const Settings& settings, const char* what) {
  return {.name = name, .launch = nullptr, .what = what, .plan = [=](const ladder::Gemm& shape) {
            const Plan plan = plan_step07_persistent(shape, settings);
            return ladder::Planned{[=](const ladder::Gemm& gemm) { launch_step07_persistent(gemm, plan); },
                                   to_string(plan)};
          }};
}

static ladder::Variant setting(const char* name, const char* what = "") {
  return with(name, read_settings(name), what);
}

int main(int argc, char** argv) {
  const ladder::Rung rung{
      .name = "step07_persistent",
      .title = "CTA pairs that stay, with two accumulators",
      .blackwell = {with("best", {}, "all of it"),
                    {"pair", launch_step07_pair, "step06 with a pair in place of multicast (pair.cu)"},
                    {"persistent", launch_step07_persistent_grid, "and a grid that stays (persistent.cu)"},
                    setting("cta-group=1", "without the pair"),
                    setting("cta-group=1,multicast=on", "in its place two CTAs that share B"),
                    setting("persistent=off", "without a grid that stays"),
                    setting("accumulators=1", "without the second accumulator"),
                    setting("walk=1", "without the walk"),
                    setting("walk=8", "in groups of 8 tile rows, where the best would be chosen"),
                    setting("stages=4", "with as many stages as step06"),
                    setting("tile-n=128", "tiles half as wide"),
                    setting("tile-n=224", "tiles of 224 columns"),
                    setting("tile-n=256", "tiles of 256 columns"),
                    setting("scheduler=clc", "tiles from the hardware's scheduler"),
                    setting("stores=direct", "D straight from registers, and a stage more where it fits")},
      .hopper = {},
      .tile_m = 128,
      .tile_n = 256,
      .tile_k = 64,
      .blackwell_settings = {.variant = [](const std::string& name) { return setting(name.c_str()); },
                             .settings = known_settings()},
  };
  return ladder::run_rung(rung, argc, argv);
}
