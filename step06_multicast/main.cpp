// step06_multicast: the CTAs of a cluster load for each other. The kernel is in blackwell.cu.

#include "common/harness/rung.h"
#include "step06_multicast/cluster_shape.h"

void launch_step06_multicast(const ladder::Gemm& gemm, ClusterShape cluster);  // blackwell.cu

template <int kM, int kN, bool kMulticast>
static void with_cluster(const ladder::Gemm& gemm) {
  launch_step06_multicast(gemm, {.m = kM, .n = kN, .multicast = kMulticast});
}

int main(int argc, char** argv) {
  const ladder::Rung rung{
      .name = "step06_multicast",
      .title = "the CTAs of a cluster load for each other",
      .blackwell = {{"2x2", with_cluster<2, 2, true>, "2 tiles down, 2 across: half of A and half of B each"},
                    {"2x1", with_cluster<2, 1, true>, "2 down: all of A, half of B each"},
                    {"1x2", with_cluster<1, 2, true>, "2 across: half of A, all of B each"},
                    {"4x1", with_cluster<4, 1, true>, "4 down: all of A, a quarter of B each"},
                    {"2x2-alone", with_cluster<2, 2, false>, "2x2, but each CTA loads all of its tiles itself"}},
      .hopper = {},
      .tile_m = 128,
      .tile_n = 256,
      .tile_k = 64,
  };
  return ladder::run_rung(rung, argc, argv);
}
