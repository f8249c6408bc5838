#include "emulator/hazards/findings.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace emu::hazards {
namespace {

bool same_places(const Finding& a, const Finding& b) {
  return std::equal(a.sides.begin(), a.sides.end(), b.sides.begin(), b.sides.end(),
                    [](const Side& x, const Side& y) { return x.where == y.where && x.what == y.what; });
}

bool holds_places(const Finding& known, const Finding& finding) {
  return !finding.sides.empty() && std::all_of(finding.sides.begin(), finding.sides.end(), [&](const Side& side) {
    return std::any_of(known.sides.begin(), known.sides.end(),
                       [&](const Side& other) { return other.where == side.where; });
  });
}

}  // namespace

size_t Findings::add(Finding finding) {
  std::lock_guard lock(mutex_);
  for (size_t i = 0; i < entries_.size(); ++i) {
    Finding& known = entries_[i].finding;
    if (known.kernel != finding.kernel) continue;
    if (known.rule == finding.rule && same_places(known, finding)) {
      ++known.count;
      return i;
    }
    if (known.rank == Rank::error && holds_places(known, finding)) {
      ++known.consequences;
      return i;
    }
  }
  // What was a matter of rules alone at the same places before this was seen is told with it.
  if (finding.rank == Rank::error)
    for (Entry& earlier : entries_)
      if (earlier.finding.rank != Rank::error && !earlier.absorbed && earlier.finding.kernel == finding.kernel &&
          holds_places(finding, earlier.finding)) {
        earlier.absorbed = true;
        ++finding.consequences;
      }
  entries_.push_back({std::move(finding)});
  return entries_.size() - 1;
}

void Findings::count(size_t number) {
  std::lock_guard lock(mutex_);
  ++entries_[number].finding.count;
}

void Findings::output(const std::string& kernel, uint64_t fingerprint) {
  std::lock_guard lock(mutex_);
  outputs_.emplace_back(kernel, fingerprint);
}

void Findings::fault(std::string report) {
  std::lock_guard lock(mutex_);
  faults_.push_back(std::move(report));
}

std::string Findings::take_text() {
  std::lock_guard lock(mutex_);
  std::vector<Entry*> untold;
  for (Entry& entry : entries_)
    if (!entry.told && !entry.absorbed) untold.push_back(&entry);
  std::stable_sort(untold.begin(), untold.end(),
                   [](const Entry* a, const Entry* b) { return a->finding.rank < b->finding.rank; });
  std::string text;
  for (Entry* entry : untold) {
    entry->told = true;
    const Finding& finding = entry->finding;
    const RuleTraits& rule = traits(finding.rule);
    text += fmt::format("========= {}: {}: {} [{}]\n", name(finding.rank), finding.kernel, rule.title, rule.id);
    if (!finding.object.empty()) text += fmt::format("=========     {}\n", finding.object);
    for (const Side& side : finding.sides) {
      text += fmt::format("=========     {} at {}\n", side.what, side.where);
      text += fmt::format("=========         by {}: {}\n", side.who, side.instruction);
    }
    if (!finding.explanation.empty()) text += fmt::format("=========     {}\n", finding.explanation);
    text += fmt::format("=========     fix: {}\n", rule.fix);
    text += fmt::format("=========     rule: {}\n", rule.source);
    if (finding.consequences)
      text += "=========     more was found at the same places that may follow from this: mend this first\n";
    if (finding.count > 1) text += fmt::format("=========     seen {} times so far\n", finding.count);
  }
  return text;
}

std::string Findings::json() const {
  std::lock_guard lock(mutex_);
  nlohmann::ordered_json findings = nlohmann::ordered_json::array();
  for (const Entry& entry : entries_) {
    if (entry.absorbed) continue;
    const Finding& finding = entry.finding;
    const RuleTraits& rule = traits(finding.rule);
    nlohmann::ordered_json sides = nlohmann::ordered_json::array();
    for (const Side& side : finding.sides)
      sides.push_back(
          {{"what", side.what}, {"where", side.where}, {"who", side.who}, {"instruction", side.instruction}});
    findings.push_back({{"rule", rule.id},
                        {"rank", name(finding.rank)},
                        {"title", rule.title},
                        {"kernel", finding.kernel},
                        {"object", finding.object},
                        {"sides", sides},
                        {"explanation", finding.explanation},
                        {"fix", rule.fix},
                        {"source", rule.source},
                        {"schedule", finding.schedule},
                        {"consequences", finding.consequences},
                        {"count", finding.count}});
  }
  nlohmann::ordered_json outputs = nlohmann::ordered_json::array();
  for (const auto& [kernel, fingerprint] : outputs_)
    outputs.push_back({{"kernel", kernel}, {"fingerprint", fmt::format("{:016x}", fingerprint)}});
  const nlohmann::ordered_json out = {{"findings", findings}, {"faults", faults_}, {"outputs", outputs}};
  return out.dump(2) + "\n";
}

}  // namespace emu::hazards
