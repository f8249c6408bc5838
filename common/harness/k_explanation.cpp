#include "common/harness/k_explanation.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <set>

#include "common/harness/elements.h"
#include "common/harness/parallel.h"

namespace ladder {
namespace {

constexpr size_t kElements = 16;           // enough for a vote
constexpr int64_t kMostRowWork = 1 << 26;  // multiplications per element in the search for other rows

std::vector<float> row_of(const HostMatrix& matrix, int64_t row) {
  std::vector<float> values(static_cast<size_t>(matrix.cols()));
  to_floats(matrix, row, 0, matrix.cols(), values.data());
  return values;
}

double dot(const std::vector<float>& x, const std::vector<float>& y, size_t first, size_t last) {
  double sum = 0;
  for (size_t i = first; i < last; ++i) sum += double{x[i]} * y[i];
  return sum;
}

/// All explanations that fit one element.
std::set<std::string> explanations(const HostMatrix& a, const HostMatrix& b, DType out, const WrongElement& element,
                                   TileSize tile) {
  std::set<std::string> found;
  const double got = std::bit_cast<float>(to_f32(out, element.got));
  if (!std::isfinite(got)) return found;
  if (got == 0) found.insert("the outputs are zero: nothing was accumulated, or nothing was stored");
  const std::vector<float> x = row_of(a, element.row), y = row_of(b, element.col);
  const size_t k = x.size(), step = static_cast<size_t>(std::max(1, tile.k));
  const size_t tiles = (k + step - 1) / step;
  std::vector<double> part(tiles), before(tiles + 1);
  double magnitude = 0;
  for (size_t t = 0; t < tiles; ++t) {
    part[t] = dot(x, y, t * step, std::min(k, (t + 1) * step));
    before[t + 1] = before[t] + part[t];
    magnitude = std::max({magnitude, std::fabs(part[t]), std::fabs(before[t + 1])});
  }
  const double full = before[tiles];
  const double rounding = out == DType::f16 ? 0x1p-10 : out == DType::bf16 ? 0x1p-7 : 0;
  const double tolerance = static_cast<double>(k) / 16 * magnitude * 0x1p-22 + rounding * std::fabs(got);
  const auto fits = [&](double value) {
    return std::fabs(got - value) <= tolerance && std::fabs(full - value) > tolerance;
  };
  const auto name = [&](size_t t) {
    return fmt::format("K tile {} (k = {}..{})", t, t * step, std::min(k, (t + 1) * step) - 1);
  };

  if (fits(2 * full)) found.insert("the sums are twice what they should be: not cleared, or added again");
  for (size_t t = 0; t < tiles; ++t) {
    if (fits(full - part[t])) found.insert(name(t) + " is missing");
    if (fits(full + part[t])) found.insert(name(t) + " was added twice");
    if (tiles > 2 && fits(part[t])) found.insert("only " + name(t) + " was summed");
    if (t > 0 && t + 1 < tiles && fits(before[t + 1])) found.insert(fmt::format("only K tiles 0 to {} were summed", t));
    if (t > 1 && fits(full - before[t])) {
      found.insert(fmt::format("K tiles 0 to {} were lost: the sum started afresh at K tile {}", t - 1, t));
    }
    for (size_t lag = 1; lag <= 8; ++lag) {
      if (t >= lag && fits(full - part[t] + part[t - lag])) {
        found.insert(lag == 1 ? "a K tile was replaced by the one before it"
                              : fmt::format("a K tile was replaced by the one {} before it", lag));
      }
    }
  }

  constexpr size_t kMostPairs = 64 * 64;
  for (size_t t = 0; t < tiles; ++t) {
    if (tiles > 2 && fits(static_cast<double>(tiles) * part[t]))
      found.insert(fmt::format("{} was summed {} times, and no other", name(t), tiles));
    for (size_t other = 0; other < tiles && tiles * tiles <= kMostPairs; ++other) {
      if (other != t && fits(full - part[t] + part[other]))
        found.insert(fmt::format("{} was summed twice, K tile {} not at all", name(other), t));
    }
  }

  // Columns of K out of step between A and B: element k of `x` meets element other(k) of `y`.
  const auto out_of_step = [&](const auto& other) {
    double sum = 0;
    for (size_t i = 0; i < k; ++i) {
      if (other(i) < k) sum += double{x[i]} * y[other(i)];
    }
    return fits(sum);
  };
  if (out_of_step([](size_t i) { return i ^ 8; })) {
    found.insert("the two 8-element halves of each 16 along K are swapped in one of the operands");
  }
  if (out_of_step([&](size_t i) { return i - step; })) found.insert("K tile i + 1 of A met K tile i of B");
  if (out_of_step([&](size_t i) { return i + step; })) found.insert("K tile i of A met K tile i + 1 of B");
  const auto chunk_of = [](int64_t row) { return static_cast<size_t>(row % 8) * 8; };
  if (out_of_step([&](size_t i) { return i ^ chunk_of(element.row); }) ||
      out_of_step([&](size_t i) { return i ^ chunk_of(element.col); }) ||
      out_of_step([&](size_t i) { return i ^ chunk_of(element.row) ^ chunk_of(element.col); })) {
    found.insert("16-byte chunks are XORed with the row (128-byte swizzle) on one side only");
  }

  if (element.row < b.rows() && element.col < a.rows() &&
      fits(dot(row_of(a, element.col), row_of(b, element.row), 0, k))) {
    found.insert(kTransposed);
  }
  const auto search = [&](const HostMatrix& matrix, const std::vector<float>& other, int64_t own, const char* what) {
    const int64_t most = std::max<int64_t>(1, kMostRowWork / static_cast<int64_t>(k));
    const int64_t begin = std::max<int64_t>(0, own - most / 2), end = std::min(matrix.rows(), own + most / 2);
    for (int64_t row = begin; row < end; ++row) {
      if (row == own || !fits(dot(row_of(matrix, row), other, 0, k))) continue;
      const int64_t shift = row - own;
      found.insert(
          fmt::format("{0} i holds what belongs to {0} i {1} {2}", what, shift > 0 ? "+" : "-", std::abs(shift)));
    }
  };
  search(a, y, element.row, "row");
  search(b, x, element.col, "column");
  for (int64_t down = -1; down <= 1; ++down) {
    for (int64_t right = -1; right <= 1; ++right) {
      const int64_t row = element.row + down * tile.m, col = element.col + right * tile.n;
      if (down == 0 || right == 0 || row < 0 || col < 0 || row >= a.rows() || col >= b.rows()) continue;
      if (fits(dot(row_of(a, row), row_of(b, col), 0, k))) {
        found.insert(fmt::format("the tile holds what belongs to the tile {} {}, {} {}", std::abs(down),
                                 down > 0 ? "below" : "above", std::abs(right), right > 0 ? "right" : "left"));
      }
    }
  }
  return found;
}

}  // namespace

std::vector<std::string> explain_sums(const HostMatrix& a, const HostMatrix& b, DType out,
                                      const std::vector<WrongElement>& wrong, TileSize tile) {
  const size_t count = std::min(kElements, wrong.size());
  std::vector<std::set<std::string>> found(count);
  parallel_for(static_cast<int64_t>(count), 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const auto index = static_cast<size_t>(i);
      // Spread over the list, which is ordered by place.
      found[index] = explanations(a, b, out, wrong[index * wrong.size() / count], tile);
    }
  });
  std::map<std::string, size_t> votes;
  for (const auto& one : found) {
    for (const std::string& text : one) ++votes[text];
  }
  std::vector<std::pair<size_t, std::string>> order;
  for (const auto& [text, agreeing] : votes) {
    if (2 * agreeing > count || (agreeing >= 3 && 4 * agreeing >= count)) order.emplace_back(agreeing, text);
  }
  std::stable_sort(order.begin(), order.end(), [](const auto& p, const auto& q) { return p.first > q.first; });
  if (order.size() > 3) order.resize(3);
  std::vector<std::string> lines;
  for (const auto& [agreeing, text] : order) {
    lines.push_back(fmt::format("{} (fits {} of {} outputs looked at)", text, agreeing, count));
  }
  return lines;
}

}  // namespace ladder
