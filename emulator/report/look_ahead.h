#pragma once
// What groups that wait would do next if their waits ended: which barriers they would signal, which words write. So a
// report can tell a group that waits for another one that waits from a group that nobody would ever help.
//
// A group's code is followed from where it stands, with its own registers, as if every wait succeeded: instructions
// that compute are executed, those that signal or store are noted and not executed. What comes from another lane is
// guessed to be what the lane has itself, and what follows is not certain; what comes from a function or an atomic is
// not known: there it ends.

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "emulator/machine/cluster.h"

namespace emu {

/// Something that a group would do.
struct Deed {
  enum class Kind : uint8_t { signal, arrive_at_barrier, store, join_peer } kind;
  uint64_t address;  ///< signal: the mbarrier, a shared::cluster address; arrive_at_barrier: its number; store:
                     ///< generic; join_peer, a call that both CTAs of a pair make: none
  uint32_t source;   ///< instruction
  uint32_t lanes;
};

struct Future {
  std::vector<Deed> deeds;  ///< each once, in order
  bool known = true;        ///< to the end
};

/// A load, an atomic or a wait on an mbarrier that a loop comes by.
struct Asks {
  uint32_t source;
  uint64_t address;  ///< generic
  bool is_wait;
};

class LookAhead {
 public:
  /// `watched`: generic addresses whose stores are deeds.
  LookAhead(Cluster& cluster, std::set<uint64_t> watched) : cluster_(cluster), watched_(std::move(watched)) {}
  /// From `pc` on. Leaves the group as it was.
  Future of(Group& group, uint32_t pc);
  /// What the group asks for on one way round its loop, up to where it stands, with waits that fail.
  std::vector<Asks> one_lap(Group& group);

 private:
  enum class Class : uint8_t {
    skip,
    computes,
    loads,
    stores,
    signals,
    waits,
    branches,
    barrier,
    joins,
    elects,
    shuffles,
    answers,
    exits,
    unknown
  };
  Future follow(Group& group, uint32_t from, uint64_t& left, std::vector<Asks>* lap);
  static Class class_of(const std::string& text);
  const std::vector<Class>& classes_of(const Program& program);
  void note(Future& future, Deed::Kind kind, uint64_t address, uint32_t source, int lane) const;
  void note_signal(Future& future, Warp& warp, const Instruction& instruction, int lane) const;
  void note_store(Future& future, Warp& warp, const Instruction& instruction, int lane) const;

  Cluster& cluster_;
  std::set<uint64_t> watched_;
  std::map<const Program*, std::vector<Class>> classes_;
  uint64_t left_ = 20'000'000;  // instructions, for all groups together: about a second
};

/// A shared or generic address as a generic one.
uint64_t generic_address(const std::string& text, uint64_t address);
/// Bytes that a load, a store or an atomic touches in one lane.
uint32_t accessed_bytes(const std::string& text);

}  // namespace emu
