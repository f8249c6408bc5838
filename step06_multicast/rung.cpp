// step06_multicast: the CTAs of a cluster load for each other. Kernels: blackwell.cu, hopper.cu.

#include "common/harness/rung.h"
#include "step06_multicast/cluster_shape.h"

void launch_step06_multicast(const ladder::Gemm& gemm, ClusterShape cluster);         // blackwell.cu
void launch_step06_multicast_hopper(const ladder::Gemm& gemm, ClusterShape cluster);  // hopper.cu

/// Of either chip's kernel.
static std::vector<ladder::Variant> clusters(void (*launch)(const ladder::Gemm&, ClusterShape)) {
  const auto with = [=](int m, int n, bool multicast) {
    return [=](const ladder::Gemm& gemm) { launch(gemm, {.m = m, .n = n, .multicast = multicast}); };
  };
  return {{"2x2", with(2, 2, true), "2 tiles down, 2 across: half of A and half of B each"},
          {"2x1", with(2, 1, true), "2 down: all of A, half of B each"},
          {"1x2", with(1, 2, true), "2 across: half of A, all of B each"},
          {"4x1", with(4, 1, true), "4 down: all of A, a quarter of B each"},
          {"2x2-alone", with(2, 2, false), "2x2, but each CTA loads all of its tiles itself"}};
}

ladder::Rung step06_multicast() {
  return {
      .name = "step06_multicast",
      .title = "the CTAs of a cluster load for each other",
      .blackwell = clusters(launch_step06_multicast),
      .hopper = clusters(launch_step06_multicast_hopper),
      .tile_m = 128,
      .tile_n = 256,
      .tile_k = 64,
  };
}
