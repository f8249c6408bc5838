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

/// "Error read-too-early", ...: what is found in `body`, sorted; under all schedules alike. p0: 64 words, all 0.
inline Names found(const std::string& body, Shape shape = {.block = {64, 1, 1}}, const std::string& module_scope = "") {
  shape.apart = "what is left depends on the order of what nothing orders";
  Names all;
  bool first = true;
  for (emu::Schedule schedule : {emu::Schedule::earliest, emu::Schedule::latest, emu::Schedule::random}) {
    emu::Options options;
    options.schedule = schedule;
    options.seed = 3;
    options.check = true;
    Machine machine(options);
    const uint64_t buffer = machine.buffer(std::vector<uint32_t>(64));
    if (auto fault = machine.launch(kernel(body, 1, module_scope), {buffer}, shape)) FAIL(fault->report);
    Names names;
    const nlohmann::json report = nlohmann::json::parse(machine.device().findings().json());
    for (const auto& finding : report["findings"])
      names.push_back(finding["rank"].get<std::string>() + " " + finding["rule"].get<std::string>());
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
