#include "common/harness/position.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <numeric>
#include <set>

namespace ladder {
namespace {

// Columns of the home slice, from its first: three for the weights, then low and high digits of rows and of columns.
constexpr int kRowLow = 3, kRowHigh = 6, kColumnLow = 9, kColumnHigh = 12;
// The same where K = 8: no weights, no high digits.
constexpr int kNarrowRow = 0, kNarrowColumn = 3;
constexpr int64_t kWideCodes = 65535, kNarrowCodes = 255;

int64_t low_digit(int64_t code) {
  return code & 255;
}
int64_t high_digit(int64_t code) {
  return code & ~int64_t{255};
}

struct Factors {
  int32_t a, b;  ///< at most 127 each: exact in bf16
};

/// The products in [lowest, 2 lowest) of two such factors, ascending and distinct. Within a factor of two, a sum of two
/// is never mistaken for one.
std::vector<Factors> products_from(int32_t lowest) {
  std::vector<Factors> products;
  for (int32_t value = lowest; value < 2 * lowest; ++value) {
    int32_t factor = std::min(127, value);
    while (value % factor != 0) --factor;
    if (value / factor <= 127) products.push_back({factor, value / factor});
  }
  return products;
}

/// Those whose pairwise differences are all different, so that a slice in place of another names both.
std::vector<Factors> with_distinct_differences(const std::vector<Factors>& products) {
  std::vector<Factors> chosen;
  std::set<int32_t> seen;
  for (const Factors& candidate : products) {
    const int32_t value = candidate.a * candidate.b;
    const auto difference = [&](const Factors& other) { return value - other.a * other.b; };
    if (std::any_of(chosen.begin(), chosen.end(), [&](const Factors& f) { return seen.contains(difference(f)); }))
      continue;
    for (const Factors& other : chosen) seen.insert(difference(other));
    chosen.push_back(candidate);
  }
  return chosen;
}

/// Weights for `count` slices, with a sum below 2^24: with different differences where that is possible (up to about 50
/// slices), else all different (about 1300). Large ones are better: beside them their differences are small, so that
/// sums of different kinds are far apart.
std::vector<Factors> slice_weights(int64_t count) {
  constexpr int64_t kLargestSum = (int64_t{1} << 24) - 1;
  for (int32_t lowest = 8192; lowest >= 16; lowest /= 2) {
    if (2 * lowest * count > kLargestSum) continue;
    std::vector<Factors> weights = with_distinct_differences(products_from(lowest));
    if (static_cast<int64_t>(weights.size()) >= count) return weights;
  }
  std::vector<Factors> best = {{1, 1}};
  for (int32_t lowest = 16; lowest <= 8192 && 2 * lowest * count <= kLargestSum; lowest *= 2) {
    std::vector<Factors> products = products_from(lowest);
    if (products.size() > best.size()) best = std::move(products);
    if (static_cast<int64_t>(best.size()) >= count) break;
  }
  return best;
}

void put(HostMatrix& matrix, int64_t row, int64_t col, int64_t value) {
  matrix.row16(row)[col] =
      static_cast<uint16_t>(from_f32(matrix.type(), std::bit_cast<uint32_t>(static_cast<float>(value))));
}

/// "x or y": weights repeat where there are very many slices.
std::string any_of(const std::vector<std::string>& names) {
  std::string text = names.front();
  for (size_t i = 1; i < names.size(); ++i) text += " or " + names[i];
  return text;
}

/// The key that most votes agree on, with its share of all votes.
template <class Key>
std::pair<Key, double> winner(const std::map<Key, int64_t>& votes, int64_t all) {
  const auto best =
      std::max_element(votes.begin(), votes.end(), [](const auto& x, const auto& y) { return x.second < y.second; });
  if (best == votes.end()) return {Key{}, 0.0};
  return {best->first, static_cast<double>(best->second) / static_cast<double>(std::max<int64_t>(all, 1))};
}

/// "row 8 arrived at row 1, 16 at 2": where a destination's votes name one source clearly. Codes of the other kind cast
/// votes too, but for a different source each. A sum over K that happens to look like a code is one source everywhere.
std::string mapping(const std::map<int64_t, std::map<int64_t, int64_t>>& sources, const char* what) {
  constexpr int kShown = 8;
  std::string text;
  int shown = 0, moved = 0;
  std::set<int64_t> distinct;
  for (const auto& [destination, votes] : sources) {
    int64_t source = destination, most = 0, second = 0;
    for (const auto& [candidate, count] : votes) {
      if (count > most) {
        second = most;
        most = count;
        source = candidate;
      } else {
        second = std::max(second, count);
      }
    }
    if (most < 3 || most < 2 * second) continue;
    ++moved;
    distinct.insert(source);
    if (++shown > kShown) continue;
    text += shown == 1 ? fmt::format("{0} {1} arrived at {0} {2}", what, source, destination)
                       : fmt::format(", {} at {}", source, destination);
  }
  if (2 * static_cast<int>(distinct.size()) < moved) return {};
  return shown > kShown ? text + ", and so on" : text;
}

}  // namespace

PositionCode::PositionCode(const Shape& shape, uint64_t seed)
    : shape_(shape), codes_(shape.k < kSlice ? kNarrowCodes : kWideCodes) {
  if (shape.k < kSlice) return;
  const int64_t count = (shape.k + kSlice - 1) / kSlice;
  home_ = static_cast<int64_t>(seed % static_cast<uint64_t>(shape.k / kSlice));
  const std::vector<Factors> weights = slice_weights(count);
  for (int64_t slice = 0; slice < count; ++slice) {
    const Factors factors = weights[static_cast<size_t>(slice) % weights.size()];
    factor_a_.push_back(factors.a);
    factor_b_.push_back(factors.b);
    weight_.push_back(int64_t{factors.a} * factors.b);
  }
  total_weight_ = std::accumulate(weight_.begin(), weight_.end(), int64_t{0});
}

int64_t PositionCode::weight_column(int64_t slice) const {
  // Every other slice uses the second half of its 16 columns, so that both halves matter.
  const bool second_half = slice % 2 == 1 && slice != home_ && (slice + 1) * kSlice <= shape_.k;
  return slice * kSlice + (second_half ? 8 : 0);
}

void PositionCode::fill_a(HostMatrix& a) const {
  std::memset(a.data(), 0, a.size_bytes());
  for (int64_t i = 0; i < shape_.m; ++i) {
    const int64_t u = i % 3;
    for (int64_t slice = 0; slice < slices(); ++slice) {
      put(a, i, weight_column(slice) + u, factor_a_[static_cast<size_t>(slice)]);
    }
    if (slices() == 0) {
      put(a, i, kNarrowRow + u, code_of(i));
      put(a, i, kNarrowColumn + u, 1);
      continue;
    }
    const int64_t home = home_ * kSlice + u;
    put(a, i, home + kRowLow, low_digit(code_of(i)));
    put(a, i, home + kRowHigh, high_digit(code_of(i)));
    put(a, i, home + kColumnLow, 1);
    put(a, i, home + kColumnHigh, 1);
  }
}

void PositionCode::fill_b(HostMatrix& b) const {
  std::memset(b.data(), 0, b.size_bytes());
  for (int64_t j = 0; j < shape_.n; ++j) {
    // The u with (u + j) % 3 equal to the class.
    const auto u_for = [&](int64_t klass) { return ((klass - j) % 3 + 3) % 3; };
    for (int64_t slice = 0; slice < slices(); ++slice) {
      put(b, j, weight_column(slice) + u_for(2), factor_b_[static_cast<size_t>(slice)]);
    }
    if (slices() == 0) {
      put(b, j, kNarrowRow + u_for(0), 1);
      put(b, j, kNarrowColumn + u_for(1), code_of(j));
      continue;
    }
    const int64_t home = home_ * kSlice;
    put(b, j, home + kRowLow + u_for(0), 1);
    put(b, j, home + kRowHigh + u_for(0), 1);
    put(b, j, home + kColumnLow + u_for(1), low_digit(code_of(j)));
    put(b, j, home + kColumnHigh + u_for(1), high_digit(code_of(j)));
  }
}

int64_t PositionCode::expected_value(int64_t row, int64_t col) const {
  const int64_t klass = (row + col) % 3;
  return klass == 0 ? code_of(row) : klass == 1 ? code_of(col) : total_weight_;
}

uint32_t PositionCode::expected(int64_t row, int64_t col) const {
  return std::bit_cast<uint32_t>(static_cast<float>(expected_value(row, col)));
}

std::string PositionCode::decode_slices(int64_t value, int tile_k) const {
  if (value == 0) return "nothing arrived: the sum over K is zero";
  if (value == 2 * total_weight_) return "every K slice arrived twice: the accumulator was not cleared, or added again";
  const int64_t group = std::max<int64_t>(1, tile_k / kSlice);
  const auto name = [&](int64_t first, int64_t last) {  // slices [first, last)
    return fmt::format("K tile {} (k = {}..{})", first / group, first * kSlice, std::min(last * kSlice, shape_.k) - 1);
  };
  int64_t before = 0;  // weights of all slices before the tile
  std::vector<std::string> missing, twice;
  for (int64_t first = 0; first < slices(); first += group) {
    const int64_t last = std::min(first + group, slices());
    const int64_t weight = std::accumulate(weight_.begin() + first, weight_.begin() + last, int64_t{0});
    if (first > 0 && value == before)
      return first == group ? "only " + name(0, first) + " arrived"
                            : fmt::format("only K tiles 0 to {} arrived", first / group - 1);
    if (first > 0 && value == total_weight_ - before) {
      return fmt::format(
          "{} lost: the accumulator started afresh at {}",
          first == group ? name(0, first) + " was" : fmt::format("K tiles 0 to {} were", first / group - 1),
          name(first, last));
    }
    if (value == total_weight_ - weight) missing.push_back(name(first, last));
    if (value == total_weight_ + weight) twice.push_back(name(first, last));
    before += weight;
  }
  if (!missing.empty()) return any_of(missing) + " is missing";
  if (!twice.empty()) return any_of(twice) + " arrived twice";
  for (int64_t slice = 0; slice < slices(); ++slice) {
    if (slices() > 2 && value == slices() * weight_[static_cast<size_t>(slice)])
      return fmt::format("K slice {} (k = {}..{}) arrived {} times, and no other", slice, slice * kSlice,
                         std::min((slice + 1) * kSlice, shape_.k) - 1, slices());
  }
  constexpr size_t kNamed = 3;
  for (int64_t lag = 1; lag <= 8; ++lag) {  // a ring's stage that was read too early or too late
    std::vector<std::string> places;
    for (int64_t slice = 0; slice < slices(); ++slice) {
      for (const int64_t other : {slice - lag, slice + lag}) {
        if (other < 0 || other >= slices()) continue;
        const int64_t change = weight_[static_cast<size_t>(other)] - weight_[static_cast<size_t>(slice)];
        if (change != 0 && value == total_weight_ + change) {
          places.push_back(fmt::format("K slice {} (k = {}..{}) arrived twice, slice {} not at all", other,
                                       other * kSlice, std::min((other + 1) * kSlice, shape_.k) - 1, slice));
        }
      }
    }
    if (places.size() > kNamed) {
      places.resize(kNamed);
      places.push_back("the like");
    }
    if (!places.empty()) return any_of(places);
  }
  return {};
}

std::vector<std::string> PositionCode::decode(const std::vector<WrongElement>& wrong, int tile_k) const {
  constexpr double kClear = 0.2;  // of all wrong elements: a class holds a third of them
  const auto transposed = std::count_if(wrong.begin(), wrong.end(), [&](const WrongElement& element) {
    return element.col < shape_.m && element.row < shape_.n && element.got == expected(element.col, element.row);
  });
  if (10 * transposed > 9 * static_cast<int64_t>(wrong.size())) return {kTransposed};
  std::map<int64_t, int64_t> row_shifts, column_shifts;
  std::map<int64_t, std::map<int64_t, int64_t>> row_sources, column_sources;
  std::map<std::string, int64_t> slice_findings;
  int64_t doubled = 0;  // codes: they would pass for those of other rows and columns
  for (const WrongElement& element : wrong) {
    const float got = std::bit_cast<float>(element.got);
    if (!(got >= 0 && got < 0x1p24f) || got != static_cast<float>(static_cast<int64_t>(got))) continue;
    const int64_t value = static_cast<int64_t>(got);
    // Without its home slice D has no codes, only weights: zeros elsewhere say nothing about the sum over K.
    const int64_t klass = (element.row + element.col) % 3;
    if (klass == 2 || slices() == 0) {
      const std::string slices = decode_slices(value, tile_k);
      if (!slices.empty()) ++slice_findings[slices];
    }
    if (value == total_weight_) continue;
    if (slices() > 0 && klass != 2 && value == 2 * code_of(klass == 0 ? element.row : element.col)) {
      ++doubled;
      continue;
    }
    if (value >= 1 && value <= std::min(shape_.m, codes_)) {
      ++row_shifts[value - code_of(element.row)];
      if (value != code_of(element.row)) ++row_sources[element.row][value - 1];
    }
    if (value >= 1 && value <= std::min(shape_.n, codes_)) {
      ++column_shifts[value - code_of(element.col)];
      if (value != code_of(element.col)) ++column_sources[element.col][value - 1];
    }
  }
  const int64_t all = static_cast<int64_t>(wrong.size());
  std::vector<std::string> lines;
  const auto report = [&](const std::map<int64_t, int64_t>& shifts,
                          const std::map<int64_t, std::map<int64_t, int64_t>>& sources, const char* what) {
    const auto [shift, share] = winner(shifts, all);
    if (share >= kClear && shift != 0) {
      lines.push_back(fmt::format("{0}s arrived shifted: {0} i holds what belongs to {0} i {1} {2}", what,
                                  shift > 0 ? "+" : "-", shift > 0 ? shift : -shift));
    } else if (share < kClear) {
      const std::string text = mapping(sources, what);
      if (!text.empty()) lines.push_back(text);
    }
  };
  const auto [finding, share] = winner(slice_findings, all);
  if (share >= kClear) lines.push_back(finding);
  if (lines.empty() && static_cast<double>(doubled) >= kClear * static_cast<double>(all))
    lines.push_back(
        fmt::format("K slice {} (k = {}..{}) arrived twice", home_, home_ * kSlice, (home_ + 1) * kSlice - 1));
  report(row_shifts, row_sources, "row");
  report(column_shifts, column_sources, "column");
  return lines;
}

}  // namespace ladder
