#include "emulator/ptx/liveness.h"

#include <algorithm>
#include <array>
#include <bit>
#include <queue>

namespace emu::ptx {
namespace {

/// A set of registers.
class Set {
 public:
  explicit Set(size_t size = 0) : words_((size + 63) / 64) {}
  void insert(uint32_t i) { words_[i / 64] |= uint64_t{1} << i % 64; }
  void erase(uint32_t i) { words_[i / 64] &= ~(uint64_t{1} << i % 64); }
  bool contains(uint32_t i) const { return words_[i / 64] >> i % 64 & 1; }
  void clear() { std::fill(words_.begin(), words_.end(), 0); }
  /// this |= other & ~without; true when that changed it.
  bool unite(const Set& other, const Set* without = nullptr) {
    uint64_t changed = 0;
    for (size_t i = 0; i < words_.size(); ++i) {
      const uint64_t fresh = other.words_[i] & (without ? ~without->words_[i] : ~uint64_t{0}) & ~words_[i];
      words_[i] |= fresh;
      changed |= fresh;
    }
    return changed != 0;
  }
  template <class F>
  void for_each(F f) const {
    for (size_t i = 0; i < words_.size(); ++i) {
      for (uint64_t word = words_[i]; word != 0; word &= word - 1)
        f(static_cast<uint32_t>(i * 64 + std::countr_zero(word)));
    }
  }
  template <class F>
  static void for_each_common(const Set& a, const Set& b, F f) {
    for (size_t i = 0; i < a.words_.size(); ++i) {
      for (uint64_t word = a.words_[i] & b.words_[i]; word != 0; word &= word - 1) {
        f(static_cast<uint32_t>(i * 64 + std::countr_zero(word)));
      }
    }
  }

 private:
  std::vector<uint64_t> words_;
};

/// Asynchronous instructions that touch registers after they issue, by what waits for them.
enum class Pending { none, tensor_load, tensor_store, wgmma };
constexpr Pending kPendings[] = {Pending::tensor_load, Pending::tensor_store, Pending::wgmma};

Pending starts(const Instruction& i) {
  if (i.name() == "tcgen05" && i.has("ld")) return Pending::tensor_load;
  if (i.name() == "tcgen05" && i.has("st")) return Pending::tensor_store;
  if (i.name() == "wgmma" && i.has("mma_async")) return Pending::wgmma;
  return Pending::none;
}

/// What an instruction certainly waits for. Under a guard, some lanes do not.
Pending finishes(const Instruction& i) {
  if (i.guard != kNone) return Pending::none;
  if (i.name() == "tcgen05" && i.has("wait::ld")) return Pending::tensor_load;
  if (i.name() == "tcgen05" && i.has("wait::st")) return Pending::tensor_store;
  const bool all_groups =
      !i.operands.empty() && i.operands[0].kind == Operand::Kind::integer && i.operands[0].value == 0;
  if (i.name() == "wgmma" && i.has("wait_group") && all_groups) return Pending::wgmma;
  return Pending::none;
}

class Analysis {
 public:
  Analysis(const Function& function, const ControlFlow& flow)
      : function_(function), flow_(flow), intervals_(function.registers.size()) {}

  std::vector<Interval> run() {
    if (function_.body.empty()) return std::move(intervals_);
    for (const Instruction& i : function_.body) {
      effects_.push_back(effects(i));
      for (Pending pending : kPendings) has_pending_ |= starts(i) == pending;
    }
    // Registers that carry parameters are written before the first instruction, those that carry results are read by
    // every ret.
    for (const Variable& variable : function_.parameters()) {
      if (variable.reg != kNone) for_elements(variable, [&](uint32_t r) { arguments_.push_back(r); });
    }
    for (size_t i = 0; i < function_.body.size(); ++i) {
      if (function_.body[i].name() != "ret") continue;
      for (const Variable& variable : function_.returns()) {
        if (variable.reg != kNone) for_elements(variable, [&](uint32_t r) { effects_[i].reads.push_back(r); });
      }
    }
    occurrences();
    live_values();
    if (has_pending_) {
      for (Pending pending : kPendings) pending_values(pending);
    }
    return std::move(intervals_);
  }

 private:
  template <class F>
  static void for_elements(const Variable& variable, F f) {
    for (uint32_t i = 0; i < variable.vector; ++i) f(variable.reg + i);
  }

  void occurrences() {
    for (uint32_t i = 0; i < effects_.size(); ++i) {
      for (uint32_t r : effects_[i].reads) intervals_[r].include(i);
      for (uint32_t r : effects_[i].writes) intervals_[r].include(i);
    }
    for (uint32_t r : arguments_) intervals_[r].include(0);
  }

  /// Values that may be read later (backwards) and that some path has written (forwards).
  void live_values() {
    const size_t registers = intervals_.size(), count = flow_.blocks.size();
    std::vector<Set> live(count, Set(registers)), killed = live, written_in = live, written = live;
    for (size_t b = 0; b < count; ++b) {
      for (uint32_t i = flow_.blocks[b].first; i <= flow_.blocks[b].last; ++i) {
        for (uint32_t r : effects_[i].reads) {
          if (!killed[b].contains(r)) live[b].insert(r);
        }
        for (uint32_t r : effects_[i].writes) {
          if (function_.body[i].guard == kNone) killed[b].insert(r);
          written[b].insert(r);
        }
      }
    }
    for (uint32_t r : arguments_) written_in[0].insert(r);
    written[0].unite(written_in[0]);

    // `live` is at a block's beginning, `written` at its end.
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t b = count; b-- > 0;) {
        for (uint32_t n : flow_.blocks[b].next) changed |= live[b].unite(live[n], &killed[b]);
      }
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t b = 0; b < count; ++b) {
        for (uint32_t p : flow_.blocks[b].previous) written_in[b].unite(written[p]);
        changed |= written[b].unite(written_in[b]);
      }
    }
    for (size_t b = 0; b < count; ++b) {
      const Block& block = flow_.blocks[b];
      Set::for_each_common(live[b], written_in[b], [&](uint32_t r) { intervals_[r].include(block.first); });
      for (uint32_t n : block.next) {
        Set::for_each_common(live[n], written[b], [&](uint32_t r) { intervals_[r].include(block.last); });
      }
    }
  }

  void pending_values(Pending kind) {
    const size_t count = flow_.blocks.size();
    std::vector<Set> in(count, Set(intervals_.size())), out = in;
    std::vector<char> clears(count, 0);
    // Once through a block; `visit` sees what is pending before each instruction that waits.
    const auto walk = [&](size_t b, Set& pending, auto visit) {
      for (uint32_t i = flow_.blocks[b].first; i <= flow_.blocks[b].last; ++i) {
        if (finishes(function_.body[i]) == kind) {
          visit(i, pending);
          pending.clear();
        }
        if (starts(function_.body[i]) == kind) {
          for (uint32_t r : effects_[i].reads) pending.insert(r);
          for (uint32_t r : effects_[i].writes) pending.insert(r);
        }
      }
    };
    for (size_t b = 0; b < count; ++b) walk(b, out[b], [&](uint32_t, const Set&) { clears[b] = 1; });
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t b = 0; b < count; ++b) {
        for (uint32_t p : flow_.blocks[b].previous) changed |= in[b].unite(out[p]);
        if (!clears[b]) changed |= out[b].unite(in[b]);
      }
    }
    for (size_t b = 0; b < count; ++b) {
      const Block& block = flow_.blocks[b];
      in[b].for_each([&](uint32_t r) { intervals_[r].include(block.first); });
      out[b].for_each([&](uint32_t r) { intervals_[r].include(block.last); });
      Set pending = in[b];
      walk(b, pending,
           [&](uint32_t i, const Set& before) { before.for_each([&](uint32_t r) { intervals_[r].include(i); }); });
    }
  }

  const Function& function_;
  const ControlFlow& flow_;
  std::vector<Interval> intervals_;
  std::vector<Effects> effects_;
  std::vector<uint32_t> arguments_;
  bool has_pending_ = false;
};

}  // namespace

void Interval::include(uint32_t instruction) {
  if (empty()) {
    first = last = instruction;
  } else {
    first = std::min(first, instruction);
    last = std::max(last, instruction);
  }
}

std::vector<Interval> live_intervals(const Function& function, const ControlFlow& flow) {
  return Analysis(function, flow).run();
}

Slots assign_slots(const Function& function, const std::vector<Interval>& intervals, const std::vector<bool>& apart) {
  // Linear scan by first instruction, lowest free place first.
  Slots result;
  result.slot.assign(intervals.size(), kNone);
  std::vector<uint32_t> order;
  for (uint32_t r = 0; r < intervals.size(); ++r) {
    if (!intervals[r].empty()) order.push_back(r);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return intervals[a].first < intervals[b].first; });

  // Registers share with their like only: predicates; up to 16, 32, 64, 128 bits; the same again, apart. A place of
  // another width would lie across the lanes: lane 0 of a 64-bit register is where lanes 0 and 1 of a 32-bit one would
  // be.
  struct Class {
    std::vector<char> busy;
    size_t lowest_free = 0;
  };
  std::array<Class, 9> classes;
  const auto class_of = [&](uint32_t r) -> size_t {
    const Type type = function.registers[r].type;
    if (type == Type::pred) return 0;
    const uint32_t width = bits(type);
    return (width <= 16 ? 1 : width <= 32 ? 2 : width <= 64 ? 3 : 4) + (!apart.empty() && apart[r] ? 4 : 0);
  };

  using End = std::pair<uint32_t, uint32_t>;  // last instruction, register
  std::priority_queue<End, std::vector<End>, std::greater<>> ends;
  for (uint32_t r : order) {
    for (; !ends.empty() && ends.top().first < intervals[r].first; ends.pop()) {
      const uint32_t over = ends.top().second;
      Class& place = classes[class_of(over)];
      place.busy[result.slot[over]] = 0;
      place.lowest_free = std::min<size_t>(place.lowest_free, result.slot[over]);
    }
    Class& place = classes[class_of(r)];
    while (place.lowest_free < place.busy.size() && place.busy[place.lowest_free]) ++place.lowest_free;
    if (place.lowest_free == place.busy.size()) place.busy.push_back(0);
    place.busy[place.lowest_free] = 1;
    result.slot[r] = static_cast<uint32_t>(place.lowest_free);
    ends.emplace(intervals[r].last, r);
  }

  // The classes one after the other, those apart and the widest first, so that each place is aligned to its size.
  constexpr std::array<uint32_t, 9> kWords{0, 1, 1, 2, 4, 1, 1, 2, 4};
  std::array<uint32_t, 9> base{};
  for (size_t c = kWords.size(); c-- > 1;) {
    base[c] = result.words;
    result.words += kWords[c] * static_cast<uint32_t>(classes[c].busy.size());
    if (c == 5) result.apart_words = result.words += (kWords[4] - result.words % kWords[4]) % kWords[4];
  }
  for (uint32_t r : order) {
    const size_t c = class_of(r);
    if (c != 0) result.slot[r] = base[c] + kWords[c] * result.slot[r];
  }
  result.predicates = static_cast<uint32_t>(classes[0].busy.size());
  return result;
}

}  // namespace emu::ptx
