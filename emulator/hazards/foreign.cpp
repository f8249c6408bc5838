#include "emulator/hazards/foreign.h"

#include <algorithm>

#include "emulator/hazards/clock.h"

namespace emu::hazards {
namespace {

constexpr std::array kClocks = {&View::done, &View::seen, &View::fenced_global};

bool says_all_of(const View& all, const View& part) {
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

Foreign::Enough Foreign::compare(const Known& ours, const Known& theirs) {
  if (ours == theirs) return {};
  if (!ours || !theirs) return {.ours = !theirs, .theirs = !ours};
  return {.ours = says_all_of(*ours, *theirs), .theirs = says_all_of(*theirs, *ours)};
}

Foreign::Enough Foreign::compare(const std::shared_ptr<const Chunk>& ours, const std::shared_ptr<const Chunk>& theirs) {
  if (ours == theirs) return {};
  if (!ours || !theirs) return {.ours = !theirs, .theirs = !ours};
  Enough enough;
  for (size_t i = 0; i < kChunk && (enough.ours || enough.theirs); ++i) {
    const Known &our = (*ours)[i], &their = (*theirs)[i];
    if (our == their) continue;
    // What cannot be any more is not asked.
    if (!our || !their) {
      enough.also({.ours = !their, .theirs = !our});
      continue;
    }
    const bool theirs_do = enough.theirs && says_all_of(*their, *our);
    enough.also({.ours = enough.ours && says_all_of(*our, *their), .theirs = theirs_do});
  }
  return enough;
}

Foreign::Enough Foreign::compare(const std::shared_ptr<const Root>& ours, const std::shared_ptr<const Root>& theirs) {
  if (ours == theirs) return {};
  if (!ours || !theirs) return {.ours = !theirs, .theirs = !ours};
  Enough enough;
  for (size_t i = 0; i < std::max(ours->size(), theirs->size()) && (enough.ours || enough.theirs); ++i)
    enough.also(compare(i < ours->size() ? (*ours)[i] : nullptr, i < theirs->size() ? (*theirs)[i] : nullptr));
  return enough;
}

Foreign::Known Foreign::joined(const Known& ours, const Known& theirs) {
  const Enough enough = compare(ours, theirs);
  if (enough.ours) return ours;
  if (enough.theirs) return theirs;
  auto both = std::make_shared<View>(*ours);
  for (const auto clock : kClocks) ((*both).*clock).join((*theirs).*clock);
  return both;
}

std::shared_ptr<const Foreign::Chunk> Foreign::joined(const std::shared_ptr<const Chunk>& ours,
                                                      const std::shared_ptr<const Chunk>& theirs) {
  const Enough enough = compare(ours, theirs);
  if (enough.ours) return ours;
  if (enough.theirs) return theirs;
  auto both = std::make_shared<Chunk>();
  for (size_t i = 0; i < kChunk; ++i) (*both)[i] = joined((*ours)[i], (*theirs)[i]);
  return both;
}

void Foreign::join(const Foreign& other) {
  if (root_ == other.root_ || !other.root_) return;
  if (!root_) {
    root_ = other.root_;
    return;
  }
  // The warps of a CTA learn the same at a barrier, one after the other; and then they share it.
  struct Join {
    std::shared_ptr<const Root> ours, theirs, both;
  };
  thread_local std::array<Join, 16> latest;
  const auto number = [](const std::shared_ptr<const Root>& root) {
    return reinterpret_cast<uintptr_t>(root.get()) >> 4;
  };
  Join& known = latest[(number(root_) + 3 * number(other.root_)) % latest.size()];
  if (known.ours != root_ || known.theirs != other.root_) {
    known = {root_, other.root_, root_};
    const Enough enough = compare(root_, other.root_);
    if (enough.theirs) {
      known.both = other.root_;
    } else if (!enough.ours) {
      auto both = std::make_shared<Root>(*root_);
      both->resize(std::max(both->size(), other.root_->size()));
      for (size_t i = 0; i < other.root_->size(); ++i) (*both)[i] = joined((*both)[i], (*other.root_)[i]);
      known.both = std::move(both);
    }
  }
  root_ = known.both;
}

void Foreign::join(uint64_t cluster, const Known& theirs) {
  const size_t chunk = cluster / kChunk;
  const std::shared_ptr<const Chunk> before = root_ && chunk < root_->size() ? (*root_)[chunk] : nullptr;
  const Known ours = before ? (*before)[cluster % kChunk] : nullptr;
  const Known both = joined(ours, theirs);
  if (both == ours) return;
  auto changed = before ? std::make_shared<Chunk>(*before) : std::make_shared<Chunk>();
  (*changed)[cluster % kChunk] = both;
  auto root = root_ ? std::make_shared<Root>(*root_) : std::make_shared<Root>();
  root->resize(std::max(root->size(), chunk + 1));
  (*root)[chunk] = std::move(changed);
  root_ = std::move(root);
}

bool Foreign::operator==(const Foreign& other) const {
  const Enough enough = compare(root_, other.root_);
  return enough.ours && enough.theirs;
}

}  // namespace emu::hazards
