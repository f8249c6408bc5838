#pragma once
// What the checker has found in a process, each finding once with its count, and how it is told.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "emulator/hazards/rules.h"
#include "emulator/machine/fault.h"
#include "emulator/machine/options.h"

namespace emu::hazards {

/// "earliest".
const char* name(Schedule schedule);

struct Finding {
  Rule rule = Rule::read_too_early;
  Rank rank = Rank::error;
  std::string kernel;
  std::string object;       ///< which bytes or columns, of which variable
  std::string explanation;  ///< what is missing
  std::string fix;          ///< the usual one; empty: the rule's
  std::vector<Side> sides;  ///< the later one first
  std::string schedule;     ///< under which it was seen
  uint64_t count = 1;
  uint64_t consequences = 0;  ///< findings that followed from it
  bool both_ways = false;     ///< of a read and a write: in the other order, too, neither is known to come first
};

class Findings {
 public:
  /// Returns its number. The same rule at the same places is the same finding; with one of its two places the same, it
  /// is told with it: five loads of a stage miss one wait. And what concerns no other places than an earlier error did
  /// is taken for a consequence of that: a stage that was overwritten too early is then read too early, too.
  size_t add(Finding finding);
  /// One more of that number.
  void count(size_t number);
  /// A launch ended: of what it wrote to global memory.
  void output(const std::string& kernel, uint64_t fingerprint);
  /// A launch ended in a trap or a hang. Whoever ended it tells it; here it is kept.
  void fault(const Fault& fault, const std::string& kernel, Schedule schedule);
  /// What the machine lets pass with a word: see Device::remark().
  void remark(const std::string& text);

  /// What has been found since the last call, for a person; empty when nothing.
  std::string take_text();
  /// Everything found so far, as JSON.
  std::string json() const;

 private:
  struct Entry {
    Finding finding;
    bool told = false, absorbed = false;
  };
  mutable std::mutex mutex_;
  std::deque<Entry> entries_;  // in the order in which they were found
  struct LaunchFault {
    Fault fault;
    std::string kernel;
    Schedule schedule;
  };
  std::vector<LaunchFault> faults_;
  std::map<std::string, uint64_t> remarks_;                // how often
  std::vector<std::pair<std::string, uint64_t>> outputs_;  // by launch
};

}  // namespace emu::hazards
