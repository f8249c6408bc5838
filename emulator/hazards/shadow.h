#pragma once
// The shadow of a memory: for each cell, who wrote it last and who has read it since.
//
// A cell is a 32-bit word of shared memory, or 16 lanes of a column of tensor memory. Words of which threads read or
// write parts are split into their bytes.

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulator/hazards/record.h"

namespace emu::hazards {

class Shadow {
 public:
  /// `warps` agents from `first_warp` on are those whose memory it is, or that most often come.
  Shadow(size_t cells, Agent first_warp, uint32_t warps) : cells_(cells), first_warp_(first_warp), warps_(warps) {}

  /// `Judge`: before(Ref earlier, size_t cell), told of each earlier access that conflicts with this one in kind, says
  /// whether the two are ordered; all_before(Ref, lanes), whether those of several lanes certainly are; again(size_t
  /// cell), that another cell is in the state of the last one where not all were; unwritten(cell), that it reads what
  /// nobody has written; replaces(Ref earlier, lanes), asked whether readers need not be remembered once this one is,
  /// and surely_replaces(Ref earlier), which is cheap and may say no where it could say yes; known(Ref earlier), which
  /// has answered yes before; lanes(Ref); warp(Ref); moment(Ref), the same for readers of which it makes no difference
  /// which one of a lane is remembered.
  template <class Judge>
  void read(size_t first, size_t count, Ref by, Judge& judge) {
    for (size_t cell = first, end = first + count; cell < end;) {
      if (cells_[cell].written & kFlag) {
        for (State& byte : splits_[cells_[cell].written & ~kFlag]) read_one(byte, cell, by, judge);
        ++cell;
        continue;
      }
      const size_t alike = run(cell, end);
      const bool clean = read_one(cells_[cell], cell, by, judge);
      // A set of readers belongs to one cell.
      const bool shares = !(cells_[cell].read & kFlag);
      if (shares) std::fill(&cells_[cell] + 1, &cells_[cell] + alike, cells_[cell]);
      for (size_t i = 1; i < alike && !(clean && shares); ++i) {
        if (!clean) judge.again(cell + i);
        if (!shares) read_one(cells_[cell + i], cell + i, by, judge);
      }
      cell += alike;
    }
  }

  template <class Judge>
  void write(size_t first, size_t count, Ref by, Judge& judge) {
    for (size_t cell = first, end = first + count; cell < end;) {
      if (cells_[cell].written & kFlag) {
        const uint32_t split = cells_[cell].written & ~kFlag;
        for (State& byte : splits_[split]) write_one(byte, cell, by, judge);
        free_splits_.push_back(split);
        cells_[cell++] = {by, kNobody};
        continue;
      }
      const size_t alike = run(cell, end);
      const bool clean = write_one(cells_[cell], cell, by, judge);
      std::fill(&cells_[cell] + 1, &cells_[cell] + alike, State{by, kNobody});
      for (size_t i = 1; i < alike && !clean; ++i) judge.again(cell + i);
      cell += alike;
    }
  }

  /// The same of one cell, if all that has been done to it is known to come before; else nothing.
  template <class Judge>
  bool read_known(size_t cell, Ref by, Judge& judge) {
    State& state = cells_[cell];
    if (state.written == kNobody || !judge.known(state.written)) return false;
    if (state.read != kNobody && state.read != by && !judge.known(state.read)) return false;
    state.read = by;
    return true;
  }
  template <class Judge>
  bool write_known(size_t cell, Ref by, Judge& judge) {
    State& state = cells_[cell];
    if (state.written != kNobody && !judge.known(state.written)) return false;
    if (state.read != kNobody && !judge.known(state.read)) return false;
    state = {by, kNobody};
    return true;
  }

  /// Of some bytes of one word: bit i of `bytes` is byte i.
  template <class Judge>
  void read_part(size_t cell, uint32_t bytes, Ref by, Judge& judge) {
    State& state = cells_[cell];
    if (!(state.written & kFlag)) split(state);
    for (uint32_t i = 0; i < 4; ++i)
      if (bytes >> i & 1) read_one(splits_[state.written & ~kFlag][i], cell, by, judge);
  }
  template <class Judge>
  void write_part(size_t cell, uint32_t bytes, Ref by, Judge& judge) {
    State& state = cells_[cell];
    if (!(state.written & kFlag)) split(state);
    for (uint32_t i = 0; i < 4; ++i)
      if (bytes >> i & 1) write_one(splits_[state.written & ~kFlag][i], cell, by, judge);
  }

  /// Calls f(Ref) for the last writer of the cell (of any of its bytes); not for cells that nobody wrote.
  template <class F>
  void writers(size_t cell, F&& f) const {
    const State& state = cells_[cell];
    if (!(state.written & kFlag)) {
      if (state.written) f(state.written);
      return;
    }
    for (const State& byte : splits_[state.written & ~kFlag])
      if (byte.written) f(byte.written);
  }

  /// Calls f(Ref) for all that is remembered.
  template <class F>
  void for_each_ref(F&& f) const {
    const auto of = [&](const State& state) {
      f(state.written);
      if (!(state.read & kFlag)) return f(state.read);
      const uint32_t number = state.read & ~kFlag;
      const Set& set = sets_[number];
      for (uint32_t left = set.warps; left; left &= left - 1)
        f(places_[size_t{number} * warps_ + static_cast<uint32_t>(std::countr_zero(left))].base);
      for (const Readers& readers : set.others) f(readers.base);
    };
    State last;
    for (const State& state : cells_) {
      if (state == last) continue;
      last = state;
      if (state.written & kFlag)
        for (const State& byte : splits_[state.written & ~kFlag]) of(byte);
      else
        of(state);
    }
  }

  /// As if nobody had ever been there.
  void forget(size_t first, size_t count) {
    for (size_t cell = first; cell < first + count; ++cell) cells_[cell] = {};
  }

 private:
  struct State {
    Ref written = kNobody, read = kNobody;
    bool operator==(const State&) const = default;
  };

  /// How many cells from `cell` on are in the same state.
  size_t run(size_t cell, size_t end) const {
    const State state = cells_[cell];
    if (state.read & kFlag) return 1;
    size_t i = cell + 1;
    // By the dozen first: without a way out of the inner loop it is done in vectors.
    for (; i + 16 <= end; i += 16) {
      uint32_t different = 0;
      for (size_t k = 0; k < 16; ++k)
        different |= (cells_[i + k].written ^ state.written) | (cells_[i + k].read ^ state.read);
      if (different) break;
    }
    while (i < end && cells_[i] == state) ++i;
    return i - cell;
  }

  /// Lanes of one record that have read a cell, or of several of one moment.
  struct Readers {
    Ref base = kNobody;
    uint32_t lanes = 0;
  };
  /// Who has read a cell, where it is more than one: a place for each warp's last moment, and others.
  struct Set {
    uint32_t warps = 0;  ///< whose places are taken
    std::vector<Readers> others;
  };

  // Both say whether all was ordered.
  template <class Judge>
  bool read_one(State& state, size_t cell, Ref by, Judge& judge) {
    if (!state.written) judge.unwritten(cell);
    const bool clean = !state.written || judge.before(state.written, cell);
    if (state.read == kNobody || state.read == by) {
      state.read = by;
    } else if (!(state.read & kFlag)) {
      if (judge.surely_replaces(state.read)) {
        state.read = by;
      } else {
        const Ref earlier = state.read;
        const uint32_t set = new_set();
        state.read = kFlag | set;
        add(set, earlier, judge);
        add(set, by, judge);
      }
    } else {
      add(state.read & ~kFlag, by, judge);
    }
    return clean;
  }

  template <class Judge>
  bool write_one(State& state, size_t cell, Ref by, Judge& judge) {
    bool clean = true;
    if (state.read & kFlag) {
      const uint32_t number = state.read & ~kFlag;
      Set& set = sets_[number];
      for (uint32_t left = set.warps; left; left &= left - 1)
        clean = before(place(number, static_cast<uint32_t>(std::countr_zero(left))), cell, judge) && clean;
      for (const Readers& earlier : set.others) clean = before(earlier, cell, judge) && clean;
      set.warps = 0;
      set.others.clear();
      free_sets_.push_back(number);
    } else if (state.read) {
      clean = judge.before(state.read, cell);
    }
    // Who read it knew of the writer: what comes before them comes before the writer, too.
    if (clean && state.written) clean = judge.before(state.written, cell);
    state = {by, kNobody};
    return clean;
  }

  template <class Judge>
  static bool before(const Readers& readers, size_t cell, Judge& judge) {
    if (judge.all_before(readers.base, readers.lanes)) return true;
    if (readers.lanes == judge.lanes(readers.base)) return judge.before(readers.base, cell);
    bool clean = true;
    for (uint32_t left = readers.lanes; left; left &= left - 1)
      clean = judge.before(readers.base | static_cast<Ref>(std::countr_zero(left)), cell) && clean;
    return clean;
  }

  Readers& place(uint32_t set, uint32_t warp) { return places_[size_t{set} * warps_ + warp]; }

  template <class Judge>
  void add(uint32_t number, Ref by, Judge& judge) {
    Readers now{base_of(by), judge.lanes(by)};
    Set& set = sets_[number];
    const uint32_t warp = judge.warp(by) - first_warp_;
    if (warp < warps_ && judge.moment(by)) {
      Readers& last = place(number, warp);
      if (!(set.warps >> warp & 1)) {
        last = now;
        set.warps |= 1u << warp;
        return;
      }
      if (last.base == now.base || judge.moment(last.base) == judge.moment(by)) {
        last.lanes |= now.lanes;
        return;
      }
      std::swap(last, now);
      if (judge.replaces(now.base, now.lanes)) return;
    }
    for (Readers& readers : set.others)
      if (readers.base == now.base) {
        readers.lanes |= now.lanes;
        return;
      }
    // Who need not be remembered is looked for where the set would grow: so a read costs the same however many read.
    if (set.others.size() == set.others.capacity())
      std::erase_if(set.others, [&](const Readers& earlier) { return judge.replaces(earlier.base, earlier.lanes); });
    set.others.push_back(now);
  }

  void split(State& state);
  uint32_t new_set();

  std::vector<State> cells_;
  std::vector<std::array<State, 4>> splits_;
  std::vector<Set> sets_;
  std::vector<Readers> places_;  // by set and warp
  const Agent first_warp_;
  const uint32_t warps_;
  std::vector<uint32_t> free_splits_, free_sets_;
};

}  // namespace emu::hazards
