// How many clusters a chip holds at once. The figures of the H200 are what cudaOccupancyMaxActiveClusters answers there
// for a kernel of which an SM holds one CTA (driver 580).

#include "emulator/machine/chip.h"
#include "emulator/machine/device.h"
#include "tests/catch.h"

TEST_CASE("clusters: an H200 holds so many clusters of 1 to 16 CTAs, at 1, 2, 4 and 8 CTAs an SM") {
  emu::Device h200(*emu::find_chip("h200"), emu::Options{});
  struct Row {
    int per_sm;
    std::vector<int> clusters;
  };
  const Row rows[] = {{1, {132, 66, 39, 30, 22, 17, 15, 15, 9, 7, 7, 7, 7, 7, 7, 7}},
                      {2, {264, 132, 79, 62, 47, 39, 32, 30, 23, 21, 16, 16, 14, 14, 14, 14}},
                      {4, {528, 264, 163, 124, 94, 79, 69, 62, 51, 44, 37, 37, 30, 30, 28, 28}},
                      {8, {1056, 528, 327, 248, 193, 163, 139, 124, 102, 88, 81, 74, 67, 65, 58, 58}}};
  for (const Row& row : rows)
    for (size_t ctas = 1; ctas <= 16; ++ctas) {
      INFO("clusters of " << ctas << ", " << row.per_sm << " CTAs an SM");
      CHECK(h200.max_clusters(row.per_sm, ctas) == row.clusters[ctas - 1]);
    }
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
    CHECK(emu::gpc_of_sms(chip).size() == static_cast<size_t>(chip.sm_count));
    emu::Device device(chip, emu::Options{});
    CHECK(device.max_clusters(1, 2) == chip.sm_count / 2);
    CHECK(device.max_clusters(1, static_cast<uint64_t>(chip.max_cluster)) > 0);
    CHECK(device.max_clusters(8, 64) == 0);
  }
}

TEST_CASE("clusters: a chip of which some SMs are left out has whole GPCs and a part of one") {
  for (const emu::Chip& chip : emu::all_chips())
    for (int sms = 2; sms <= chip.sm_count; sms += 2) {
      INFO(chip.name << ", " << sms << " SMs");
      const emu::Chip part = emu::with_sms(chip, sms);
      CHECK(part.sm_count == sms);
      CHECK(emu::gpc_of_sms(part).size() == static_cast<size_t>(sms));
      CHECK(emu::Device(part, emu::Options{}).max_clusters(1, 2) == sms / 2);
      bool cut = false;
      for (size_t gpc = 0; gpc < chip.gpc_sms.size(); ++gpc) {
        CHECK(part.gpc_sms[gpc] <= (cut ? 0 : chip.gpc_sms[gpc]));
        cut = cut || part.gpc_sms[gpc] < chip.gpc_sms[gpc];
      }
    }
  CHECK(emu::with_sms(*emu::find_chip("b200"), 40).gpc_sms == std::array<uint8_t, 12>{16, 18, 6});
  CHECK(emu::with_sms(*emu::find_chip("b200"), 148).gpc_sms == emu::find_chip("b200")->gpc_sms);
}
