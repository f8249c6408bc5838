#pragma once
// Runs a program under the hazard rules, under each schedule.

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "emulator/hazards/findings.h"
#include "tests/probes/probe.h"

namespace probe {

using Names = std::vector<std::string>;

/// All that the checker keeps of a run. p0: 64 words, all 0.
inline nlohmann::json kept(const std::string& body, Shape shape, emu::Options options = {},
                           const std::string& module_scope = "") {
  shape.apart = "what is left depends on the order of what nothing orders";
  options.check = true;
  Machine machine(options);
  const uint64_t buffer = machine.buffer(std::vector<uint32_t>(64));
  machine.launch(kernel(body, 1, module_scope), {buffer}, shape);
  return nlohmann::json::parse(machine.device().findings().json());
}

/// "Error read-too-early", ...: what is found in `body`, which comes to its end, sorted; under all schedules alike.
inline Names found(const std::string& body, const Shape& shape = {.block = {64, 1, 1}},
                   const std::string& module_scope = "") {
  Names all;
  bool first = true;
  for (emu::Schedule schedule : {emu::Schedule::earliest, emu::Schedule::latest, emu::Schedule::random}) {
    emu::Options options;
    options.schedule = schedule;
    options.seed = 3;
    const nlohmann::json report = kept(body, shape, options, module_scope);
    Names names;
    for (const auto& finding : report["findings"]) {
      if (finding.contains("report")) FAIL(finding["report"].get<std::string>());
      names.push_back(finding["rank"].get<std::string>() + " " + finding["rule"].get<std::string>());
    }
    std::sort(names.begin(), names.end());
    if (first)
      all = names;
    else
      CHECK(names == all);
    first = false;
  }
  return all;
}

}  // namespace probe
