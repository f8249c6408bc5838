#pragma once
// Wrong outputs, gathered by many threads: how many there are, and the first of them in row order, so that what a
// report says does not depend on which thread was faster.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "common/harness/reference.h"

namespace ladder {

class WrongElements {
 public:
  /// Keeps the first `most`, in the order of rows and columns.
  explicit WrongElements(size_t most) : most_(most) {}

  void add(const WrongElement& element) {
    const std::lock_guard lock(mutex_);
    ++count_;
    if (kept_.size() >= most_ && !before(element, last_)) return;
    kept_.push_back(element);
    if (kept_.size() >= 2 * most_) trim();
  }
  int64_t count() const { return count_; }
  std::vector<WrongElement> take() {
    std::sort(kept_.begin(), kept_.end(), before);
    if (kept_.size() > most_) kept_.resize(most_);
    return std::move(kept_);
  }

 private:
  static bool before(const WrongElement& x, const WrongElement& y) {
    return std::pair(x.row, x.col) < std::pair(y.row, y.col);
  }
  void trim() {
    const auto end = kept_.begin() + static_cast<std::ptrdiff_t>(most_);
    std::nth_element(kept_.begin(), end - 1, kept_.end(), before);
    kept_.erase(end, kept_.end());
    last_ = kept_.back();
  }

  const size_t most_;
  std::mutex mutex_;
  int64_t count_ = 0;
  std::vector<WrongElement> kept_;
  WrongElement last_{INT64_MAX, INT64_MAX, 0, 0};  // nothing behind it is among the first
};

}  // namespace ladder
