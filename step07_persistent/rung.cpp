// step07_persistent: CTA pairs that stay, two accumulators. Kernels: pair.cu, persistent.cu, blackwell.cu; hopper.cu.

#include "common/harness/rung.h"
#include "step07_persistent/hopper_plan.h"
#include "step07_persistent/plan.h"

void launch_step07_pair(const ladder::Gemm& gemm);                                // pair.cu
void launch_step07_persistent_grid(const ladder::Gemm& gemm);                     // persistent.cu
Plan plan_step07_persistent(const ladder::Gemm& gemm, const Settings& settings);  // blackwell.cu
void launch_step07_persistent(const ladder::Gemm& gemm, const Plan& plan);        // blackwell.cu

HopperPlan plan_step07_persistent_hopper(const ladder::Gemm& gemm, const HopperSettings& settings);  // hopper.cu
void launch_step07_persistent_hopper(const ladder::Gemm& gemm, const HopperPlan& plan);              // hopper.cu

/// What is planned once for a shape and launched as often as one likes, of either chip's kernel.
template <class Settings, class Plan>
static ladder::Variant with(const std::string& name, const Settings& settings, const char* what,
                            Plan (*plan_for)(const ladder::Gemm&, const Settings&),
                            void (*launch)(const ladder::Gemm&, const Plan&)) {
  return {.name = name, .launch = nullptr, .what = what, .plan = [=](const ladder::Gemm& shape) {
            const Plan plan = plan_for(shape, settings);
            return ladder::Planned{[=](const ladder::Gemm& gemm) { launch(gemm, plan); }, to_string(plan)};
          }};
}

static ladder::Variant with(const std::string& name, const Settings& settings, const char* what) {
  return with(name, settings, what, plan_step07_persistent, launch_step07_persistent);
}

static ladder::Variant hopper_with(const std::string& name, const HopperSettings& settings, const char* what) {
  return with(name, settings, what, plan_step07_persistent_hopper, launch_step07_persistent_hopper);
}

static ladder::Variant hopper_setting(const char* name, const char* what = "") {
  return hopper_with(name, read_hopper_settings(name), what);
}

static ladder::Variant setting(const char* name, const char* what = "") {
  return with(name, read_settings(name), what);
}

ladder::Rung step07_persistent() {
  return {
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
      .hopper = {hopper_with("best", {}, "all of it"), hopper_setting("ctas=1", "each CTA loads all of B itself"),
                 hopper_setting("ctas=2", "two CTAs load half of B for each other"),
                 hopper_setting("persistent=off", "without a grid that stays"),
                 hopper_setting("accumulators=2", "the warpgroups take tiles in turn"),
                 hopper_setting("walk=1", "without the walk"),
                 hopper_setting("walk=8", "in groups of 8 tile rows, where the best would be chosen"),
                 hopper_setting("tile-n=128", "tiles half as wide"),
                 hopper_setting("tile-n=256", "tiles of 256 columns"), hopper_setting("stages=2", "with two stages"),
                 hopper_setting("buffers=1", "with one store buffer"),
                 hopper_setting("scheduler=counter", "tiles on demand, from a counter in global memory"),
                 hopper_setting("stores=direct", "D straight from registers"),
                 hopper_setting("start=late", "its CTAs come when the launch before has ended")},
      .tile_m = 128,
      .tile_n = 256,
      .tile_k = 64,
      .blackwell_settings = {.variant = [](const std::string& name) { return setting(name.c_str()); },
                             .settings = known_settings()},
      .hopper_settings = {.variant = [](const std::string& name) { return hopper_setting(name.c_str()); },
                          .settings = known_hopper_settings()},
  };
}
