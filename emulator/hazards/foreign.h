#pragma once
// What is known of other clusters of the grid: of each, the part of a view that is about its own agents.
//
// It is handed on with every barrier of a CTA and grows with the grid, so it is shared and never changed: a copy is a
// pointer, and two that have most in common are joined at the cost of where they differ.

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace emu::hazards {

struct View;

class Foreign {
 public:
  /// nullptr: nothing.
  const View* find(uint64_t cluster) const;
  void join(const Foreign& other);
  /// `theirs`: with nothing foreign of its own.
  void join(uint64_t cluster, const std::shared_ptr<const View>& theirs);
  /// Whether joining `other` would change nothing.
  bool includes(const Foreign& other) const { return compare(root_, other.root_).ours; }
  bool operator==(const Foreign& other) const;

 private:
  static constexpr size_t kChunk = 32;
  using Known = std::shared_ptr<const View>;
  using Chunk = std::array<Known, kChunk>;
  using Root = std::vector<std::shared_ptr<const Chunk>>;
  /// Which of the two says all that both say.
  struct Enough {
    bool ours = true, theirs = true;
    void also(Enough other) {
      ours = ours && other.ours;
      theirs = theirs && other.theirs;
    }
  };
  static Enough compare(const Known& ours, const Known& theirs);
  static Enough compare(const std::shared_ptr<const Chunk>& ours, const std::shared_ptr<const Chunk>& theirs);
  static Enough compare(const std::shared_ptr<const Root>& ours, const std::shared_ptr<const Root>& theirs);
  static Known joined(const Known& ours, const Known& theirs);
  static std::shared_ptr<const Chunk> joined(const std::shared_ptr<const Chunk>& ours,
                                             const std::shared_ptr<const Chunk>& theirs);

  std::shared_ptr<const Root> root_;  ///< by cluster
};

}  // namespace emu::hazards
