#include "emulator/hazards/shadow.h"

namespace emu::hazards {

uint32_t Shadow::new_set() {
  if (free_sets_.empty()) {
    sets_.emplace_back();
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
      bytes[i].read = kFlag | new_set();
      sets_[bytes[i].read & ~kFlag] = sets_[state.read & ~kFlag];
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
