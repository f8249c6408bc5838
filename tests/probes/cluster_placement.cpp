// Where clusters run: their CTAs on different SMs of one GPC, as many clusters at once as the chip holds. Which SMs
// share clusters on an H200, and how many it holds, was read off one (driver 580).

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "emulator/machine/chip.h"
#include "tests/probes/everywhere.h"

namespace {

struct Placement {
  std::vector<uint32_t> sm;  ///< by CTA
  uint64_t most_resident = 0;
};

/// A grid of one-per-SM CTAs in clusters; each notes where it runs. Every cluster waits for its fellows' barrier.
Placement place(const std::string& chip, uint32_t ctas, uint32_t cluster, int sms = 0) {
  emu::Options with;
  with.chip = chip;
  with.sms = sms;
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("probe_counters_" + std::to_string(getpid()) + ".json");
  with.counters_path = path;
  const std::string ptx = probe::kernel(R"(
    ld.param.u64 %d0, [p0];
    mov.u32 %r0, %ctaid.x;
    mad.wide.u32 %d0, %r0, 4, %d0;
    mov.u32 %r1, %smid;
    st.global.u32 [%d0], %r1;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
)",
                                        1, "", chip == "h200" ? "sm_90a" : "sm_100a");
  probe::Machine machine(with);
  std::vector<uint64_t> parameters{machine.buffer(std::vector<uint32_t>(ctas))};
  // No two chips place alike, so this is nothing to compare with one.
  auto fault = machine.launch(
      ptx, parameters,
      {.grid = {ctas, 1, 1}, .block = {32, 1, 1}, .cluster = {cluster, 1, 1}, .dynamic_shared_bytes = 200'000}, false);
  if (fault) FAIL(fault->report);
  Placement out{machine.read<uint32_t>(parameters[0], ctas), 0};
  std::ifstream file(path);
  out.most_resident = nlohmann::json::parse(file)["most_resident_ctas"];
  std::filesystem::remove(path);
  return out;
}

}  // namespace

TEST_CASE("cluster placement: as many at once as an H200 says it holds, each inside one GPC") {
  const emu::Chip& chip = *emu::find_chip("h200");
  const std::vector<uint32_t> gpc_of = emu::gpc_of_sms(chip);
  struct Row {
    uint32_t cluster;
    uint64_t held;
  };
  for (Row row : {Row{1, 132}, Row{2, 66}, Row{4, 30}, Row{8, 15}, Row{16, 7}}) {
    Placement placement = place("h200", 320, row.cluster);
    INFO("clusters of " << row.cluster);
    CHECK(placement.most_resident == row.held * row.cluster);
    for (uint32_t first = 0; first < 320; first += row.cluster) {
      std::set<uint32_t> sms(placement.sm.begin() + first, placement.sm.begin() + first + row.cluster);
      CHECK(sms.size() == row.cluster);
      std::set<uint32_t> gpcs;
      for (uint32_t sm : sms) gpcs.insert(gpc_of.at(sm));
      CHECK(gpcs.size() == 1);
    }
  }
}

TEST_CASE("cluster placement: seven clusters of 16 are on the SMs on which an H200 has them") {
  Placement placement = place("h200", 7 * 16, 16);
  std::set<std::vector<uint32_t>> got;
  for (size_t first = 0; first < placement.sm.size(); first += 16)
    got.emplace(placement.sm.begin() + static_cast<long>(first), placement.sm.begin() + static_cast<long>(first) + 16);
  std::set<std::vector<uint32_t>> recorded;
  for (uint32_t pair = 2; pair < 16; pair += 2) {
    // 2, 3, 18, 19, 34, 35, 50, 51, 64, 65, 78, 79, 92, 93, 106, 107 and so on in steps of 2: the GPC of SM 0 has 8
    // SMs.
    std::vector<uint32_t> sms;
    for (uint32_t row : {0u, 16u, 32u, 48u, 62u, 76u, 90u, 104u}) sms.insert(sms.end(), {row + pair, row + pair + 1});
    recorded.insert(sms);
  }
  CHECK(got == recorded);
}

TEST_CASE("cluster placement: on so many SMs as LADDER_SMS leaves") {
  for (int sms : {2, 4, 18, 40, 148})
    for (uint32_t cluster : {1u, 2u}) {
      INFO(sms << " SMs, clusters of " << cluster);
      Placement placement = place("b200", 320, cluster, sms);
      CHECK(placement.most_resident == static_cast<uint64_t>(sms));
      CHECK(*std::max_element(placement.sm.begin(), placement.sm.end()) == static_cast<uint32_t>(sms) - 1);
    }
}
