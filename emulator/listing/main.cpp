// Says of single PTX instructions whether the emulator executes them. Reads from stdin: a module in which a line %%%
// stands where an instruction goes, a line ===, then one instruction a line. Writes for each of them a line: "yes", or
// "no" and the reason. tools/isa.py makes docs/emulator_isa.md of it.
//
//   isa_listing b200 < forms
//   isa_listing rules            the hazard rules, as JSON: tools/page_blocks.py makes docs/hazards.md of it
//   isa_listing faults           what ends a launch, likewise

#include <cstdio>
#include <exception>
#include <iostream>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include "emulator/hazards/rules.h"
#include "emulator/machine/code.h"
#include "emulator/machine/fault_kind.h"
#include "emulator/ptx/parser.h"

namespace {

std::string verdict(const emu::Chip& chip, const std::string& module_text) {
  auto code = std::make_shared<emu::ModuleCode>(emu::ptx::parse(module_text, "listing"));
  code->variable_addresses.assign(code->module.variables.size(), 4096);
  for (uint32_t i = 0; i < code->module.functions.size(); ++i) {
    if (!code->module.functions[i].is_entry) continue;
    emu::KernelCode kernel(chip, code, i);
    const emu::Program& program = kernel.entry();
    return program.refusals.empty() ? "yes" : "no " + program.refusals.front();
  }
  return "no the module has no kernel";
}

int list_rules() {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (size_t i = 0; i < emu::hazards::kRules; ++i) {
    const emu::hazards::RuleTraits& rule = emu::hazards::traits(static_cast<emu::hazards::Rule>(i));
    out.push_back({{"id", rule.id},
                   {"rank", emu::hazards::name(rule.rank)},
                   {"title", rule.title},
                   {"fix", rule.fix},
                   {"source", rule.source},
                   {"sees", rule.sees},
                   {"misses", rule.misses}});
  }
  std::cout << out.dump(2) << "\n";
  return 0;
}

int list_faults() {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (size_t i = 0; i < emu::kFaultKinds; ++i) {
    const emu::FaultTraits& fault = emu::traits(static_cast<emu::FaultKind>(i));
    out.push_back({{"id", fault.id}, {"title", fault.title}, {"sees", fault.sees}});
  }
  std::cout << out.dump(2) << "\n";
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  if (count == 2 && std::string(arguments[1]) == "rules") return list_rules();
  if (count == 2 && std::string(arguments[1]) == "faults") return list_faults();
  const emu::Chip* chip = count == 2 ? emu::find_chip(arguments[1]) : nullptr;
  if (!chip) {
    std::fprintf(stderr, "usage: isa_listing CHIP < forms\n");
    return 2;
  }
  std::string before, after, line;
  for (std::string* part = &before; std::getline(std::cin, line) && line != "===";)
    if (line == "%%%")
      part = &after;
    else
      *part += line + "\n";
  while (std::getline(std::cin, line)) {
    std::string answer;
    try {
      answer = verdict(*chip, before + line + ";\n" + after);
    } catch (const std::exception& error) {
      answer = std::string("no ") + error.what();
    }
    for (char& c : answer)
      if (c == '\n') c = ' ';
    std::cout << answer << "\n";
  }
  return 0;
}
