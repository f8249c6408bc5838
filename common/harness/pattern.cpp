#include "common/harness/pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "common/harness/canary.h"
#include "common/harness/k_explanation.h"
#include "common/harness/parallel.h"
#include "common/harness/philox.h"

namespace ladder {
namespace {

constexpr int kProbesPerTile = 16;
constexpr int64_t kMostTiles = 16384;  // more are not probed: their elements were sampled already
constexpr int kTilesLookedInto = 4;
constexpr int64_t kMapRows = 24, kMapColumns = 64;

bool wrong_at(const PatternInput& input, int64_t row, int64_t col, WrongElement& element) {
  element = {row, col, input.d.bits(row, col), input.reference.expected(row, col)};
  return element.got != element.expected || is_nan_f32(to_f32(input.d.type(), element.got));
}

/// One tile's probes: how many, how many wrong.
struct TileState {
  int64_t looked_at = 0;
  std::vector<WrongElement> wrong;
};

class TileGrid {
 public:
  TileGrid(const HostMatrix& d, TileSize tile)
      : tile_(tile),
        rows_((d.rows() + tile.m - 1) / tile.m),
        cols_((d.cols() + tile.n - 1) / tile.n),
        height_(d.rows()),
        width_(d.cols()) {}
  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }
  int64_t count() const { return rows_ * cols_; }
  int64_t index_of(int64_t row, int64_t col) const { return row / tile_.m * cols_ + col / tile_.n; }
  int64_t first_row(int64_t index) const { return index / cols_ * tile_.m; }
  int64_t first_col(int64_t index) const { return index % cols_ * tile_.n; }
  int height(int64_t index) const { return static_cast<int>(std::min<int64_t>(tile_.m, height_ - first_row(index))); }
  int width(int64_t index) const { return static_cast<int>(std::min<int64_t>(tile_.n, width_ - first_col(index))); }

 private:
  TileSize tile_;
  int64_t rows_, cols_, height_, width_;
};

std::map<int64_t, TileState> survey(const PatternInput& input, const TileGrid& grid) {
  std::map<int64_t, TileState> tiles;
  for (const WrongElement& element : input.known) {
    TileState& state = tiles[grid.index_of(element.row, element.col)];
    state.wrong.push_back(element);
    ++state.looked_at;
  }
  if (input.known_is_all) {
    for (auto& [index, state] : tiles) state.looked_at = int64_t{grid.height(index)} * grid.width(index);
    return tiles;
  }
  std::vector<int64_t> order;
  if (grid.count() <= kMostTiles) {
    for (int64_t index = 0; index < grid.count(); ++index) order.push_back(index);
  } else {
    for (const auto& [index, state] : tiles) order.push_back(index);
  }
  std::vector<TileState> probed(order.size());
  parallel_for(static_cast<int64_t>(order.size()), 8, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t index = order[static_cast<size_t>(i)];
      PhiloxSequence random(static_cast<uint64_t>(index), Stream::samples);
      TileState& state = probed[static_cast<size_t>(i)];
      for (int probe = 0; probe < kProbesPerTile; ++probe) {
        WrongElement element;
        const int64_t row = grid.first_row(index) + random.below(grid.height(index));
        const int64_t col = grid.first_col(index) + random.below(grid.width(index));
        ++state.looked_at;
        if (wrong_at(input, row, col, element)) state.wrong.push_back(element);
      }
    }
  });
  for (size_t i = 0; i < order.size(); ++i) {
    if (probed[i].wrong.empty() && !tiles.contains(order[i])) continue;
    TileState& state = tiles[order[i]];
    state.looked_at += probed[i].looked_at;
    state.wrong.insert(state.wrong.end(), probed[i].wrong.begin(), probed[i].wrong.end());
  }
  return tiles;
}

void add_map(const TileGrid& grid, const std::map<int64_t, TileState>& tiles, std::vector<std::string>& lines) {
  if (grid.count() == 1) return;
  for (int64_t row = 0; row < std::min(grid.rows(), kMapRows); ++row) {
    std::string line = "  ";
    for (int64_t col = 0; col < std::min(grid.cols(), kMapColumns); ++col) {
      const auto found = tiles.find(row * grid.cols() + col);
      const bool any = found != tiles.end() && !found->second.wrong.empty();
      const bool all = any && static_cast<int64_t>(found->second.wrong.size()) >= found->second.looked_at;
      line += all ? '#' : any ? '+' : '.';
    }
    lines.push_back(line + (grid.cols() > kMapColumns ? " ..." : ""));
  }
  if (grid.rows() > kMapRows) lines.push_back("  ...");
}

/// Which rows and columns of one tile are wrong, as local indices.
struct LocalPattern {
  std::string rows, cols;
  auto operator<=>(const LocalPattern&) const = default;
};

LocalPattern look_into(const PatternInput& input, const TileGrid& grid, int64_t index, const TileState& state,
                       std::vector<WrongElement>& wrong) {
  std::set<int> rows, cols;
  const int64_t top = grid.first_row(index), left = grid.first_col(index);
  const auto note = [&](const WrongElement& element) {
    rows.insert(static_cast<int>(element.row - top));
    cols.insert(static_cast<int>(element.col - left));
  };
  for (const WrongElement& element : state.wrong) note(element);
  if (!input.known_is_all) {
    // Three neighbouring lines each way: one line alone may hold values that are right by chance.
    constexpr int kLines = 3;
    const WrongElement first = state.wrong.front();
    const auto probe = [&](int64_t row, int64_t col) {
      WrongElement element;
      if (row >= top + grid.height(index) || col >= left + grid.width(index)) return;
      if (!wrong_at(input, row, col, element)) return;
      note(element);
      wrong.push_back(element);
    };
    for (int line = 0; line < kLines; ++line) {
      for (int i = 0; i < grid.height(index); ++i) probe(top + i, first.col + line);
      for (int j = 0; j < grid.width(index); ++j) probe(first.row + line, left + j);
    }
  }
  return {describe_set({rows.begin(), rows.end()}, grid.height(index), 'r'),
          describe_set({cols.begin(), cols.end()}, grid.width(index), 'c')};
}

std::string describe_element(const PatternInput& input, const WrongElement& element) {
  const DType type = input.d.type();
  const auto show = [&](uint32_t bits) {
    const int digits = type == DType::f32 ? 8 : 4;
    if (bits == poison_bits(type)) return std::string("never written");
    return fmt::format("{} (0x{:0{}x})", std::bit_cast<float>(to_f32(type, bits)), bits, digits);
  };
  return fmt::format("D[{}][{}] is {}, should be {}", element.row, element.col, show(element.got),
                     show(element.expected));
}

std::vector<int> remainders(const std::vector<int>& members, int modulus) {
  std::set<int> set;
  for (const int member : members) set.insert(member % modulus);
  return {set.begin(), set.end()};
}

std::string list_of(const std::vector<int>& values) {
  std::string text;
  for (size_t i = 0; i < values.size(); ++i) text += fmt::format("{}{}", i == 0 ? "" : ", ", values[i]);
  return text;
}

}  // namespace

std::string describe_set(const std::vector<int>& members, int size, char letter) {
  if (members.empty()) return "none";
  if (static_cast<int>(members.size()) == size) return size == 1 ? "the only one" : fmt::format("all {}", size);
  if (static_cast<int>(members.size()) >= size - size / 32) {
    return fmt::format("all {} but {}", size, size - static_cast<int>(members.size()));
  }
  std::vector<std::pair<int, int>> ranges;
  for (const int member : members) {
    if (!ranges.empty() && ranges.back().second + 1 == member) {
      ranges.back().second = member;
    } else {
      ranges.emplace_back(member, member);
    }
  }
  if (ranges.size() > 2) {
    for (const int modulus : {2, 4, 8, 16, 32, 64, 128}) {
      const std::vector<int> rest = remainders(members, modulus);
      if (modulus >= size || static_cast<int>(rest.size()) > std::max(1, modulus / 2)) continue;
      int64_t matching = 0;
      for (int i = 0; i < size; ++i) matching += std::binary_search(rest.begin(), rest.end(), i % modulus);
      if (matching != static_cast<int64_t>(members.size())) continue;
      return rest.size() == 1 ? fmt::format("{} % {} = {}", letter, modulus, rest.front())
                              : fmt::format("{} % {} in {{{}}}", letter, modulus, list_of(rest));
    }
  }
  constexpr size_t kShown = 6;
  std::string text;
  for (size_t i = 0; i < std::min(ranges.size(), kShown); ++i) {
    const auto [first, last] = ranges[i];
    text += i == 0 ? "" : ", ";
    text += first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
  }
  if (ranges.size() > kShown) text += fmt::format(" and more, {} of {}", members.size(), size);
  return text;
}

std::vector<std::string> describe_pattern(const PatternInput& input) {
  const TileGrid grid(input.d, input.tile);
  const std::map<int64_t, TileState> tiles = survey(input, grid);
  std::vector<WrongElement> wrong;
  std::vector<int64_t> bad;
  for (const auto& [index, state] : tiles) {
    if (state.wrong.empty()) continue;
    bad.push_back(index);
    wrong.insert(wrong.end(), state.wrong.begin(), state.wrong.end());
  }
  std::vector<std::string> lines;
  if (bad.empty()) return {"no single wrong element was found again: the result differs in places not sampled"};

  lines.push_back(fmt::format("tiles of {} x {}: wrong in {} of {} (# all of it, + part of it)", input.tile.m,
                              input.tile.n, bad.size(), grid.count()));
  add_map(grid, tiles, lines);

  std::map<LocalPattern, int> patterns;
  const size_t looked_into = std::min<size_t>(kTilesLookedInto, bad.size());
  for (size_t i = 0; i < looked_into; ++i) {
    const int64_t index = bad[i * bad.size() / looked_into];
    ++patterns[look_into(input, grid, index, tiles.at(index), wrong)];
  }
  for (const auto& [pattern, count] : patterns) {
    lines.push_back(fmt::format("inside {}: rows {}; columns {}",
                                patterns.size() == 1 && bad.size() == 1 ? "it"
                                : patterns.size() == 1                  ? "them"
                                                       : fmt::format("{} of {} looked into", count, looked_into),
                                pattern.rows, pattern.cols));
  }

  const auto place = [](const WrongElement& x, const WrongElement& y) {
    return std::pair(x.row, x.col) < std::pair(y.row, y.col);
  };
  const auto same = [](const WrongElement& x, const WrongElement& y) { return x.row == y.row && x.col == y.col; };
  std::sort(wrong.begin(), wrong.end(), place);
  wrong.erase(std::unique(wrong.begin(), wrong.end(), same), wrong.end());
  std::vector<WrongElement> numbers;
  int64_t unwritten = 0, nan = 0;
  for (const WrongElement& element : wrong) {
    if (element.got == poison_bits(input.d.type())) {
      ++unwritten;
    } else if (is_nan_f32(to_f32(input.d.type(), element.got))) {
      ++nan;
    } else {
      numbers.push_back(element);
    }
  }
  if (unwritten > 0)
    lines.push_back(fmt::format("{} of {} of these outputs were never written", unwritten, wrong.size()));
  if (nan > 0) lines.push_back(fmt::format("{} of {} of these outputs are NaN", nan, wrong.size()));
  if (!numbers.empty()) {
    const std::vector<std::string> explained =
        input.position != nullptr ? input.position->decode(numbers, input.tile.k)
                                  : explain_sums(input.a, input.b, input.d.type(), numbers, input.tile);
    for (const std::string& line : explained) lines.push_back("what arrived: " + line);
    constexpr size_t kWorthAsking = 8;
    if (explained.empty() && numbers.size() >= kWorthAsking) {
      lines.push_back(input.position != nullptr
                          ? "no simple story fits: what arrived has no one order of rows, columns and K slices"
                          : "no simple story fits; --input position shows which row, column and K slice arrived where");
    }
  }
  constexpr size_t kShown = 4;
  for (size_t i = 0; i < std::min(kShown, wrong.size()); ++i) {
    lines.push_back(describe_element(input, wrong[i * wrong.size() / std::min(kShown, wrong.size())]));
  }
  return lines;
}

}  // namespace ladder
