// What the last rung's Hopper twin plans for a shape on an H200, and what it refuses.
#include <fmt/format.h>

#include <string>

#include "common/harness/user_error.h"
#include "step07_persistent/hopper_plan.h"
#include "tests/catch.h"

using ladder::DType;
using ladder::UserError;

namespace {

const HopperDevice kH200{132, 66, 50 << 20};

HopperPlan planned(const std::string& settings, int64_t m, int64_t n, int64_t k, DType out = DType::f16) {
  return make_hopper_plan(read_hopper_settings(settings), m, n, k, out, kH200);
}

std::string refusal(const std::string& settings) {
  try {
    planned(settings, 1000, 1000, 64);
    return "";
  } catch (const UserError& error) {
    return error.what();
  }
}

int shared_bytes(const HopperPlan& plan, DType out) {
  return plan.stages * hopper_stage_bytes(plan.tile_n) + plan.buffers * 128 * stripe_bytes(plan.tile_n, out);
}

}  // namespace

TEST_CASE("step07 Hopper plan: the origin's shapes") {
  struct Row {
    int64_t m, n, k;
    int tile_n, ctas, clusters, waves;
  };
  // By hand: waves of 132 CTAs or 66 clusters, each K tile as many cycles as four times its columns, or a 48th of its
  // bytes.
  for (const Row& row :
       {Row{4096, 4096, 4096, 256, 1, 128, 4}, Row{8192, 8192, 8192, 256, 1, 128, 16},
        Row{8192, 28672, 8192, 256, 1, 131, 55}, Row{256, 8192, 8192, 128, 2, 64, 1},
        Row{256, 10240, 8192, 160, 2, 64, 1}, Row{256, 28672, 8192, 224, 2, 64, 2},
        Row{256, 8192, 28672, 128, 2, 64, 1}, Row{1, 8192, 8192, 64, 1, 128, 1}, Row{128, 8192, 8192, 64, 1, 128, 1}}) {
    const HopperPlan plan = planned("", row.m, row.n, row.k);
    INFO(to_string(plan));
    CHECK(plan.tile_n == row.tile_n);
    CHECK(plan.ctas() == row.ctas);
    CHECK(plan.clusters == row.clusters);
    CHECK((plan.walk.tiles() + plan.clusters - 1) / plan.clusters == row.waves);
  }
}

TEST_CASE("step07 Hopper plan: stages and store buffers fill shared memory") {
  for (const DType out : {DType::f16, DType::f32})
    for (const int tile_n : {64, 128, 160, 192, 224, 256}) {
      const HopperPlan plan = planned(fmt::format("tile-n={}", tile_n), 4000, 12000, 640, out);
      INFO(to_string(plan));
      CHECK(shared_bytes(plan, out) <= 226 * 1024);
      CHECK(plan.stages >= 3);
      const int stripes = tile_n * static_cast<int>(bytes_of(out)) / stripe_bytes(tile_n, out);
      CHECK(2 * plan.buffers > std::min(stripes, 8));
      const bool all = plan.stages == kMostHopperStages;
      CHECK((all || shared_bytes(plan, out) + hopper_stage_bytes(tile_n) -
                            plan.buffers * 128 * stripe_bytes(tile_n, out) +
                            (stripes / 2 + 1) * 128 * stripe_bytes(tile_n, out) >
                        226 * 1024));
    }
  // As the page has them: where no tile comes after another, stages first.
  CHECK(planned("tile-n=256", 4096, 4096, 64).stages == 3);
  CHECK(planned("tile-n=256", 4096, 4096, 64).buffers == 4);
  CHECK(planned("tile-n=256", 2048, 2048, 64).stages == 4);
  CHECK(planned("tile-n=256", 2048, 2048, 64).buffers == 2);
  CHECK(planned("tile-n=256,ctas=1,clusters=64", 2048, 2048, 64).stages == 3);
  CHECK(planned("", 256, 10240, 8192).stages == 6);  // of 160 columns
  CHECK(planned("stores=direct,tile-n=256", 1000, 1000, 64).stages == 4);
  CHECK(planned("stores=direct,tile-n=256", 1000, 1000, 64).buffers == 0);
  CHECK(planned("buffers=1,tile-n=256", 1000, 1000, 64).stages == 4);
}

TEST_CASE("step07 Hopper plan: a box of A is no higher than D") {
  CHECK(planned("", 1, 8192, 64).box_m == 8);
  CHECK(planned("", 8, 8192, 64).box_m == 8);
  CHECK(planned("", 9, 8192, 64).box_m == 16);
  CHECK(planned("share=a", 1, 8192, 64).box_m == 16);  // eight rows of each CTA
  CHECK(planned("share=a", 40, 8192, 64).box_m == 48);
  CHECK(planned("", 121, 8192, 64).box_m == 128);
  CHECK(planned("", 4096, 8192, 64).box_m == 128);
}

TEST_CASE("step07 Hopper plan: grids") {
  // What a cluster computes, and which of its operands its CTAs share.
  CHECK(planned("tile-n=128,ctas=2", 1000, 1000, 64).walk.tiles() == 4 * 8);
  CHECK(planned("tile-n=128,ctas=2,share=a", 1000, 1000, 64).walk.tiles() == 8 * 4);
  CHECK(planned("tile-n=128,share=a", 1000, 1000, 64).across == 2);
  CHECK(planned("share=a", 16, 8192, 8192).tile_n == 64);  // 64 clusters of two, not 32
  CHECK(to_string(planned("share=a,start=late", 16, 8192, 8192)) ==
        "1 x 64 tiles of 128 x 128, walk 1; 64 clusters of 2, side by side, late; 8 stages, 1 accumulator, 1 store "
        "buffer");
  CHECK(planned("", 4096, 4096, 64).early);
  CHECK(planned("clusters=5,tile-n=128,ctas=1", 1000, 1000, 64).clusters == 5);
  CHECK(planned("clusters=5000,tile-n=128,ctas=1", 1000, 1000, 64).clusters == 64);
  CHECK(planned("persistent=off,tile-n=128,ctas=1", 4096, 4096, 64).clusters == 32 * 32);
  CHECK(planned("tile-n=128,ctas=2", 4096, 4096, 64).clusters == 64);  // 512 tiles, 8 waves of 66 or of 64
  CHECK(planned("walk=7", 4096, 4096, 64).walk.group == 7);
  CHECK(planned("accumulators=2", 4096, 4096, 64).tile_n == 128);
}

TEST_CASE("step07 Hopper plan: refusals") {
  CHECK(refusal("stages=1") == "stages=1: must be auto|2..9");
  CHECK(refusal("tile-n=96") == "tile-n=96: must be auto|64|128|160|192|224|256");
  CHECK(refusal("ctas=2,ctas=1") == "--variant: ctas is set twice");
  CHECK(refusal("share=a,ctas=1") == "share=a: two CTAs share a tile of A; leave ctas=1 out");
  CHECK(refusal("accumulators=2,tile-n=256") ==
        "accumulators=2: a warpgroup has registers for all of a tile of 128 columns, not 256; leave tile-n=256 out");
  CHECK(refusal("scheduler=counter,persistent=off") ==
        "scheduler=counter: hands more tiles to clusters that stay; leave persistent=off out");
  CHECK(refusal("clusters=3,persistent=off") ==
        "clusters=3: with persistent=off the grid has a cluster for each tile; leave one of them out");
  CHECK(refusal("buffers=2,stores=direct") == "buffers=2: stores=direct needs none; leave one of them out");
  CHECK(refusal("stages=9,tile-n=256") ==
        "stages=9: 4 fit where a tile is 256 columns wide; ask for fewer, or leave it out");
  CHECK(planned("buffers=8,tile-n=256", 1000, 1000, 64).stages == 2);
}
