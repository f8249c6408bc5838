#include "emulator/hazards/shadow.h"

namespace emu::hazards {

uint32_t Shadow::new_set() {
  if (free_sets_.empty()) {
    sets_.emplace_back();
    places_.resize(sets_.size() * warps_);
    return static_cast<uint32_t>(sets_.size() - 1);
  }
  const uint32_t set = free_sets_.back();
  free_sets_.pop_back();
  return set;
}

void Shadow::split(State& state) {
  std::array<State, 4> bytes;
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = state;
    // A set of readers belongs to one state.
    if (i > 0 && (state.read & kFlag)) {
      const uint32_t from = state.read & ~kFlag, to = new_set();
      bytes[i].read = kFlag | to;
      sets_[to] = sets_[from];
      std::copy_n(&place(from, 0), warps_, &place(to, 0));
    }
  }
  uint32_t split;
  if (free_splits_.empty()) {
    split = static_cast<uint32_t>(splits_.size());
    splits_.push_back(bytes);
  } else {
    split = free_splits_.back();
    free_splits_.pop_back();
    splits_[split] = bytes;
  }
  state = {kFlag | split, kNobody};
}

}  // namespace emu::hazards
