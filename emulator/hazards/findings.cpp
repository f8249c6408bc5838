#include "emulator/hazards/findings.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace emu::hazards {
namespace {

bool is_at(const Side& side, const std::string& where) {
  return side.where == where || std::ranges::find(side.also, where) != side.also.end();
}

/// At the same places; or, where it may grow, with one of two sides at the same place and the other at a new one, which
/// `known` takes in.
bool takes_in(Finding& known, const Finding& finding, bool may_grow) {
  if (known.rule != finding.rule || known.sides.size() != finding.sides.size()) return false;
  size_t there = 0, same = 0;
  for (size_t i = 0; i < known.sides.size(); ++i) {
    if (known.sides[i].what != finding.sides[i].what) return false;
    there += is_at(known.sides[i], finding.sides[i].where);
    same += known.sides[i].where == finding.sides[i].where;
  }
  if (there == known.sides.size()) return true;
  if (!may_grow || known.sides.size() != 2 || same == 0 || known.rank != finding.rank) return false;
  for (size_t i = 0; i < 2; ++i)
    if (!is_at(known.sides[i], finding.sides[i].where)) known.sides[i].also.push_back(finding.sides[i].where);
  return true;
}

bool holds_places(const Finding& known, const Finding& finding) {
  return !finding.sides.empty() && std::ranges::all_of(finding.sides, [&](const Side& side) {
    return std::ranges::any_of(known.sides, [&](const Side& other) { return is_at(other, side.where); });
  });
}

/// A read that comes too early and an overwrite that does, of the same two.
bool turned(const Finding& known, const Finding& finding) {
  const bool read = known.rule == Rule::read_too_early && finding.rule == Rule::overwrite_too_early,
             overwrite = known.rule == Rule::overwrite_too_early && finding.rule == Rule::read_too_early;
  return (read || overwrite) && known.sides.size() == 2 && finding.sides.size() == 2 &&
         is_at(known.sides[0], finding.sides[1].where) && is_at(known.sides[1], finding.sides[0].where);
}
constexpr const char* kBothWays =
    "The same two were met in the other order, too: what is missing may belong before the read or behind it.";

std::string fix_of(const Finding& finding) {
  return finding.fix.empty() ? std::string(traits(finding.rule).fix) : finding.fix;
}

/// "line 12, 15": those in the same file by their lines alone.
std::string also_text(const Side& side) {
  const std::string file = side.where.substr(0, side.where.find(':') + 1);
  std::string lines, others;
  for (const std::string& where : side.also) {
    const std::string place = where.substr(0, where.find(" ("));
    if (place.starts_with(file))
      lines += (lines.empty() ? "line " : ", ") + place.substr(file.size());
    else
      others += (others.empty() ? "" : ", ") + place;
  }
  return lines + (lines.empty() || others.empty() ? "" : ", ") + others;
}

nlohmann::ordered_json to_json(const std::vector<Side>& sides) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const Side& side : sides)
    out.push_back({{"what", side.what},
                   {"where", side.where},
                   {"who", side.who},
                   {"instruction", side.instruction},
                   {"also", side.also}});
  return out;
}

}  // namespace

const char* name(Schedule schedule) {
  constexpr const char* kNames[] = {"earliest", "latest", "random"};
  return kNames[static_cast<size_t>(schedule)];
}

size_t Findings::add(Finding finding) {
  std::lock_guard lock(mutex_);
  for (size_t i = 0; i < entries_.size(); ++i) {
    Finding& known = entries_[i].finding;
    if (known.kernel != finding.kernel) continue;
    if (takes_in(known, finding, !entries_[i].absorbed)) {
      ++known.count;
      return i;
    }
    if (known.rank == Rank::error && holds_places(known, finding)) {
      known.both_ways = known.both_ways || turned(known, finding);
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

void Findings::fault(const Fault& fault, const std::string& kernel, Schedule schedule) {
  std::lock_guard lock(mutex_);
  faults_.push_back({fault, kernel, schedule});
}

void Findings::remark(const std::string& text) {
  std::lock_guard lock(mutex_);
  ++remarks_[text];
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
      if (!side.also.empty()) text += fmt::format("=========         also: {}\n", also_text(side));
    }
    if (!finding.explanation.empty()) text += fmt::format("=========     {}\n", finding.explanation);
    if (finding.both_ways) text += fmt::format("=========     {}\n", kBothWays);
    text += fmt::format("=========     fix: {}\n", fix_of(finding));
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
    findings.push_back({{"rule", rule.id},
                        {"rank", name(finding.rank)},
                        {"title", rule.title},
                        {"kernel", finding.kernel},
                        {"object", finding.object},
                        {"sides", to_json(finding.sides)},
                        {"explanation", finding.explanation},
                        {"both_ways", finding.both_ways ? kBothWays : ""},
                        {"fix", fix_of(finding)},
                        {"source", rule.source},
                        {"schedule", finding.schedule},
                        {"consequences", finding.consequences},
                        {"count", finding.count}});
  }
  for (const auto& [fault, kernel, schedule] : faults_)
    findings.push_back({{"rule", traits(fault.kind).id},
                        {"rank", name(Rank::error)},
                        {"title", fault.title},
                        {"kernel", kernel},
                        {"object", ""},
                        {"sides", to_json(fault.sides)},
                        {"explanation", fault.message},
                        {"both_ways", ""},
                        {"fix", ""},
                        {"source", fault.source},
                        {"schedule", name(schedule)},
                        {"consequences", 0},
                        {"count", 1},
                        {"report", fault.report}});
  nlohmann::ordered_json outputs = nlohmann::ordered_json::array();
  for (const auto& [kernel, fingerprint] : outputs_)
    outputs.push_back({{"kernel", kernel}, {"fingerprint", fmt::format("{:016x}", fingerprint)}});
  nlohmann::ordered_json remarks = nlohmann::ordered_json::array();
  for (const auto& [text, count] : remarks_) remarks.push_back({{"text", text}, {"count", count}});
  const nlohmann::ordered_json out = {{"findings", findings}, {"remarks", remarks}, {"outputs", outputs}};
  return out.dump(2) + "\n";
}

}  // namespace emu::hazards
