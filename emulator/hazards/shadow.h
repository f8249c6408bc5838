#pragma once
// The shadow of a memory: for each cell, who wrote it last and who has read it since.
//
// A cell is a 32-bit word of shared memory, or 16 lanes of a column of tensor memory. Words of which threads write
// parts are split into their bytes.

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
  explicit Shadow(size_t cells) : cells_(cells) {}
  size_t size() const { return cells_.size(); }

  /// `Judge`: before(Ref earlier, size_t cell), told of each earlier access that conflicts with this one in kind, says
  /// whether the two are ordered; all_before(Ref, lanes), whether those of several lanes certainly are; again(size_t
  /// cell), that another cell is in the state of the last one where not all were; unwritten(cell), that it reads what
  /// nobody has written; replaces(Ref earlier, lanes), asked whether readers need not be remembered once this one is;
  /// lanes(Ref).
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

  /// Of some bytes of one word: bit i of `bytes` is byte i.
  template <class Judge>
  void read_part(size_t cell, uint32_t bytes, Ref by, Judge& judge) {
    State& state = cells_[cell];
    if (!(state.written & kFlag)) {
      read_one(state, cell, by, judge);
      return;
    }
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

  /// As if nobody had ever been there.
  void forget(size_t first, size_t count) {
    for (size_t cell = first; cell < first + count; ++cell) cells_[cell] = {};
  }

  bool written(size_t cell) const { return cells_[cell].written != kNobody; }

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

  // Both say whether all was ordered.
  /// Lanes of one record that have read a cell.
  struct Readers {
    Ref base;
    uint32_t lanes;
  };
  static Ref base_of(Ref ref) { return ref & ~((Ref{1} << kLaneBits) - 1); }

  template <class Judge>
  bool read_one(State& state, size_t cell, Ref by, Judge& judge) {
    if (!state.written) judge.unwritten(cell);
    const bool clean = !state.written || judge.before(state.written, cell);
    if (state.read == kNobody || state.read == by) {
      state.read = by;
    } else if (!(state.read & kFlag)) {
      const uint32_t lanes = judge.lanes(state.read);
      if (judge.replaces(state.read, lanes)) {
        state.read = by;
      } else {
        const Readers earlier{base_of(state.read), lanes};
        state.read = kFlag | new_set();
        std::vector<Readers>& set = sets_[state.read & ~kFlag];
        set.reserve(16);
        set.push_back(earlier);
        add(set, by, judge.lanes(by));
      }
    } else {
      std::vector<Readers>& set = sets_[state.read & ~kFlag];
      // Who need not be remembered is looked for where the set would grow: so a read costs the same however many read.
      if (set.size() == set.capacity())
        std::erase_if(set, [&](const Readers& earlier) { return judge.replaces(earlier.base, earlier.lanes); });
      add(set, by, judge.lanes(by));
    }
    return clean;
  }

  template <class Judge>
  bool write_one(State& state, size_t cell, Ref by, Judge& judge) {
    bool clean = true;
    if (state.read & kFlag) {
      const uint32_t set = state.read & ~kFlag;
      for (const Readers& readers : sets_[set]) {
        if (judge.all_before(readers.base, readers.lanes)) continue;
        if (std::has_single_bit(readers.lanes))
          clean = judge.before(readers.base | static_cast<Ref>(std::countr_zero(readers.lanes)), cell) && clean;
        else if (readers.lanes == judge.lanes(readers.base))
          clean = judge.before(readers.base, cell) && clean;
        else
          for (uint32_t left = readers.lanes; left; left &= left - 1)
            clean = judge.before(readers.base | static_cast<Ref>(std::countr_zero(left)), cell) && clean;
      }
      sets_[set].clear();
      free_sets_.push_back(set);
    } else if (state.read) {
      clean = judge.before(state.read, cell);
    }
    // Who read it knew of the writer: what comes before them comes before the writer, too.
    if (clean && state.written) clean = judge.before(state.written, cell);
    state = {by, kNobody};
    return clean;
  }

  static void add(std::vector<Readers>& set, Ref by, uint32_t lanes) {
    for (Readers& readers : set)
      if (readers.base == base_of(by)) {
        readers.lanes |= lanes;
        return;
      }
    set.push_back({base_of(by), lanes});
  }

  void split(State& state);
  uint32_t new_set();

  std::vector<State> cells_;
  std::vector<std::array<State, 4>> splits_;
  std::vector<std::vector<Readers>> sets_;
  std::vector<uint32_t> free_splits_, free_sets_;
};

}  // namespace emu::hazards
