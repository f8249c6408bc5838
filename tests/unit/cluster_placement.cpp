// How many clusters a chip holds at once. The figures of the H200 are what cudaOccupancyMaxActiveClusters answers there
// for a kernel of which an SM holds one CTA (driver 580).

#include "emulator/machine/chip.h"
#include "emulator/machine/device.h"
#include "tests/catch.h"

TEST_CASE("clusters: an H200 holds 132 CTAs, 66 clusters of 2, 30 of 4, 15 of 8, 7 of 16") {
  emu::Device h200(*emu::find_chip("h200"), emu::Options{});
  CHECK(h200.max_clusters(1, 1) == 132);
  CHECK(h200.max_clusters(1, 2) == 66);
  CHECK(h200.max_clusters(1, 4) == 30);
  CHECK(h200.max_clusters(1, 8) == 15);
  CHECK(h200.max_clusters(1, 16) == 7);
  CHECK(h200.max_clusters(0, 1) == 0);
}

TEST_CASE("clusters: the SMs of a chip are those of its GPCs, in pairs, and a cluster is never larger than a GPC") {
  for (const emu::Chip& chip : emu::all_chips()) {
    INFO(chip.name);
    int sum = 0;
    for (int sms : chip.gpc_sms) {
      CHECK(sms % 2 == 0);
      sum += sms;
    }
    CHECK(sum == chip.sm_count);
    emu::Device device(chip, emu::Options{});
    CHECK(device.max_clusters(1, 2) == chip.sm_count / 2);
    CHECK(device.max_clusters(1, static_cast<uint64_t>(chip.max_cluster)) > 0);
    CHECK(device.max_clusters(8, 64) == 0);
  }
}
