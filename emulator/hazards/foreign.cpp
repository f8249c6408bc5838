#include "emulator/hazards/foreign.h"

#include "emulator/hazards/clock.h"

namespace emu::hazards {
namespace {

constexpr std::array kClocks = {&View::done, &View::seen, &View::fenced, &View::fenced_global, &View::handed};

bool includes(const View& all, const View& part) {
  for (const auto clock : kClocks)
    if (!(all.*clock).includes(part.*clock)) return false;
  return true;
}

}  // namespace

const View* Foreign::find(uint64_t cluster) const {
  const size_t chunk = cluster / kChunk;
  if (!root_ || chunk >= root_->size() || !(*root_)[chunk]) return nullptr;
  return (*(*root_)[chunk])[cluster % kChunk].get();
}

/// Both say whether `ours` has become something else than `theirs`.
bool Foreign::join(Known& ours, const Known& theirs) {
  if (ours == theirs) return false;
  if (!theirs) return true;
  if (!ours || includes(*theirs, *ours)) {
    ours = theirs;
    return false;
  }
  if (includes(*ours, *theirs)) return true;
  auto joined = std::make_shared<View>(*ours);
  for (const auto clock : kClocks) ((*joined).*clock).join((*theirs).*clock);
  ours = std::move(joined);
  return true;
}

bool Foreign::join(std::shared_ptr<const Chunk>& ours, const std::shared_ptr<const Chunk>& theirs) {
  if (ours == theirs) return false;
  if (!theirs) return true;
  if (!ours) {
    ours = theirs;
    return false;
  }
  Chunk joined = *ours;
  bool as_theirs = true;
  for (size_t i = 0; i < kChunk; ++i)
    if (join(joined[i], (*theirs)[i])) as_theirs = false;
  if (as_theirs)
    ours = theirs;
  else if (joined != *ours)
    ours = std::make_shared<const Chunk>(std::move(joined));
  return !as_theirs;
}

void Foreign::join(const Foreign& other) {
  if (root_ == other.root_ || !other.root_) return;
  if (!root_) {
    root_ = other.root_;
    return;
  }
  Root joined = *root_;
  if (joined.size() < other.root_->size()) joined.resize(other.root_->size());
  bool as_theirs = joined.size() == other.root_->size();
  for (size_t i = 0; i < other.root_->size(); ++i)
    if (join(joined[i], (*other.root_)[i])) as_theirs = false;
  if (as_theirs)
    root_ = other.root_;
  else if (joined != *root_)
    root_ = std::make_shared<const Root>(std::move(joined));
}

void Foreign::join(uint64_t cluster, const Known& theirs) {
  const size_t chunk = cluster / kChunk;
  Chunk changed;
  if (root_ && chunk < root_->size() && (*root_)[chunk]) changed = *(*root_)[chunk];
  const Known before = changed[cluster % kChunk];
  join(changed[cluster % kChunk], theirs);
  if (changed[cluster % kChunk] == before) return;
  auto root = root_ ? std::make_shared<Root>(*root_) : std::make_shared<Root>();
  if (root->size() <= chunk) root->resize(chunk + 1);
  (*root)[chunk] = std::make_shared<const Chunk>(std::move(changed));
  root_ = std::move(root);
}

bool Foreign::operator==(const Foreign& other) const {
  if (root_ == other.root_) return true;
  if (!root_ || !other.root_ || root_->size() != other.root_->size()) return false;
  for (size_t i = 0; i < root_->size(); ++i) {
    const auto &a = (*root_)[i], &b = (*other.root_)[i];
    if (a == b) continue;
    if (!a || !b) return false;
    for (size_t k = 0; k < kChunk; ++k)
      if ((*a)[k] != (*b)[k] &&
          (!(*a)[k] || !(*b)[k] || !includes(*(*a)[k], *(*b)[k]) || !includes(*(*b)[k], *(*a)[k])))
        return false;
  }
  return true;
}

}  // namespace emu::hazards
