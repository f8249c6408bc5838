#include "common/harness/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <numeric>

#include "common/harness/canary.h"
#include "common/harness/parallel.h"
#include "common/harness/philox.h"
#include "common/harness/projection.h"
#include "common/harness/user_error.h"
#include "common/harness/wrong_elements.h"

namespace ladder {
namespace {

constexpr int64_t kAffordableSteps = 4 << 20;  // fused steps of 16 products, about 0.1 us each
constexpr int64_t kFewestSamples = 4096;
constexpr size_t kMostKept = 1 << 16;  // wrong elements kept for the report

bool is_nan(DType type, uint32_t bits) {
  return is_nan_f32(to_f32(type, bits));
}

/// Compares elements and keeps the wrong ones. NaN never passes.
class Comparison {
 public:
  /// `rounding`: set where inputs round, to tell wrong elements that rounding explains.
  Comparison(const HostMatrix& d, const Reference& reference, const ModelReference* rounding)
      : d_(d), reference_(reference), rounding_(rounding) {}

  void everything() {
    parallel_for(d_.rows(), 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t row = begin; row < end; ++row) {
        for (int64_t col = 0; col < d_.cols(); ++col) compare(row, col);
      }
    });
    compared_ = d_.size();
  }

  /// Every row and every column once, and as many places at random.
  void samples(uint64_t seed) {
    std::vector<std::pair<int64_t, int64_t>> places;
    PhiloxSequence random(seed, Stream::samples);
    const int64_t longest = std::max(d_.rows(), d_.cols());
    // Steps coprime to the sizes visit all rows and all columns, in an order unrelated to tiles and swizzles.
    const auto step_for = [&](int64_t size) {
      int64_t step = 1 + random.below(size);
      while (std::gcd(step, size) != 1) ++step;
      return step;
    };
    const int64_t row_step = step_for(d_.rows()), col_step = step_for(d_.cols());
    for (int64_t i = 0; i < longest; ++i) places.emplace_back(i * row_step % d_.rows(), i * col_step % d_.cols());
    for (int64_t i = 0; i < std::max(longest, kFewestSamples - longest); ++i) {
      const int64_t row = random.below(d_.rows());
      places.emplace_back(row, random.below(d_.cols()));
    }
    for (const int64_t row : {int64_t{0}, d_.rows() - 1}) {
      for (const int64_t col : {int64_t{0}, d_.cols() - 1}) places.emplace_back(row, col);
    }
    std::sort(places.begin(), places.end());
    places.erase(std::unique(places.begin(), places.end()), places.end());
    parallel_for(static_cast<int64_t>(places.size()), 16, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) {
        compare(places[static_cast<size_t>(i)].first, places[static_cast<size_t>(i)].second);
      }
    });
    compared_ = static_cast<int64_t>(places.size());
  }

  int64_t compared() const { return compared_; }
  int64_t wrong() const { return wrong_.count(); }
  int64_t rounded() const { return rounded_; }  ///< of the wrong ones, those that rounding explains
  std::vector<WrongElement> take_wrong() { return wrong_.take(); }

 private:
  void compare(int64_t row, int64_t col) {
    const WrongElement element{row, col, d_.bits(row, col), reference_.expected(row, col)};
    if (element.got == element.expected && !is_nan(d_.type(), element.got)) return;
    wrong_.add(element);
    if (rounding_ != nullptr && rounding_->within_rounding(row, col, element.got)) ++rounded_;
  }

  const HostMatrix& d_;
  const Reference& reference_;
  const ModelReference* rounding_;
  int64_t compared_ = 0;
  std::atomic<int64_t> rounded_ = 0;
  WrongElements wrong_{kMostKept};
};

std::string describe_scan(const Scan& scan, int64_t size) {
  std::string text;
  const auto add = [&](int64_t count, const char* what) {
    if (count > 0) text += fmt::format("{}{} of {} outputs {}", text.empty() ? "" : ", ", count, size, what);
  };
  add(scan.unwritten, "never written");
  add(scan.nan, "NaN");
  return text;
}

/// Where a projection names rows and columns, their crossings hold the wrong elements.
void add_crossings(const ProjectionResult& projected, const HostMatrix& d, const Reference& reference,
                   std::vector<WrongElement>& wrong) {
  constexpr size_t kMostCrossings = 4096;
  wrong.insert(wrong.end(), projected.wrong.begin(), projected.wrong.end());
  const size_t rows = projected.bad_rows.size(), cols = projected.bad_cols.size();
  const size_t row_step = std::max<size_t>(1, rows / 64), col_step = std::max<size_t>(1, cols / 64);
  size_t looked_at = 0;
  for (size_t i = 0; i < rows; i += row_step) {
    for (size_t j = 0; j < cols && looked_at < kMostCrossings; j += col_step, ++looked_at) {
      const int64_t row = projected.bad_rows[i], col = projected.bad_cols[j];
      const WrongElement element{row, col, d.bits(row, col), reference.expected(row, col)};
      if (element.got != element.expected) wrong.push_back(element);
    }
  }
}

}  // namespace

Scan scan(const HostMatrix& d) {
  Scan total;
  std::mutex mutex;
  const uint32_t poison = poison_bits(d.type());
  const uint32_t infinity = d.type() == DType::f32 ? 0x7F800000u : d.type() == DType::f16 ? 0x7C00u : 0x7F80u;
  const auto count = [&](const auto* elements, int64_t begin, int64_t end) {
    using Element = std::remove_cvref_t<decltype(*elements)>;
    const auto sign = static_cast<Element>(Element{1} << (8 * sizeof(Element) - 1));
    int64_t special = 0;  // NaNs and infinities
    for (int64_t i = begin; i < end; ++i) special += static_cast<Element>(elements[i] & ~sign) >= infinity;
    if (special == 0) return;
    Scan part;
    for (int64_t i = begin; i < end; ++i) {
      const uint32_t magnitude = static_cast<Element>(elements[i] & ~sign);
      part.unwritten += elements[i] == poison;
      part.nan += magnitude > infinity && elements[i] != poison;
      part.infinite += magnitude == infinity;
    }
    const std::lock_guard lock(mutex);
    total.unwritten += part.unwritten;
    total.nan += part.nan;
    total.infinite += part.infinite;
  };
  parallel_for(d.size(), 1 << 16, [&](int64_t begin, int64_t end, int) {
    d.type() == DType::f32 ? count(d.row32(0), begin, end) : count(d.row16(0), begin, end);
  });
  return total;
}

void require_finite(const HostMatrix& matrix, const std::string& name) {
  const Scan seen = scan(matrix);
  if (seen.unwritten + seen.nan + seen.infinite == 0) return;
  for (int64_t row = 0; row < matrix.rows(); ++row) {
    for (int64_t col = 0; col < matrix.cols(); ++col) {
      const uint32_t bits = to_f32(matrix.type(), matrix.bits(row, col));
      if (is_finite_f32(bits)) continue;
      throw UserError(
          fmt::format("{}: element [{}][{}] is {}, and --check needs finite inputs; leave --check out or mend "
                      "the file",
                      name, row, col, is_nan_f32(bits) ? "NaN" : "infinite"));
    }
  }
}

CheckResult check_product(const HostMatrix& a, const HostMatrix& b, const HostMatrix& d,
                          const CheckSettings& settings) {
  std::unique_ptr<const Reference> reference;
  const PositionCode* position = nullptr;
  const IntegerReference* integers = nullptr;
  const ModelReference* rounding = nullptr;
  switch (settings.input) {
    case Input::position: {
      auto code = std::make_unique<PositionCode>(Shape{a.rows(), b.rows(), a.cols()}, settings.seed);
      position = code.get();
      reference = std::move(code);
      break;
    }
    case Input::integer: {
      auto exact = std::make_unique<IntegerReference>(a, b, d.type());
      integers = exact.get();
      reference = std::move(exact);
      break;
    }
    case Input::random:
    case Input::file: {
      auto model = std::make_unique<ModelReference>(a, b, d.type());
      rounding = model.get();
      reference = std::move(model);
      break;
    }
  }

  const Scan seen = scan(d);
  Comparison comparison(d, *reference, rounding);
  ProjectionResult projected;
  CheckResult result;
  const int64_t steps = (a.cols() + 15) / 16;
  const bool everything = position != nullptr || d.rows() <= kAffordableSteps / steps / d.cols();
  if (everything) {
    comparison.everything();
  } else {
    comparison.samples(settings.seed);
    projected = integers != nullptr
                    ? project_integers(a, b, d, *integers, settings.seed)
                    : project_rounded(a, b, d, *reference, settings.seed, settings.input == Input::random);
    result.projected = true;
  }
  result.compared = comparison.compared();
  result.wrong = comparison.wrong();
  result.passed = seen.unwritten + seen.nan + comparison.wrong() == 0 && projected.passed();

  const char* against = position != nullptr   ? "the position code"
                        : integers != nullptr ? "exact integer sums"
                                              : "the tensor core's rule";
  const std::string all = fmt::format("all {} outputs", d.size());
  const std::string some = fmt::format("{} outputs (each row and column among them)", result.compared);
  if (result.passed) {
    result.summary =
        everything ? fmt::format("{} equal {}, bit for bit", all, against)
                   : fmt::format("{} equal {}, bit for bit; {} agree with a random projection", some, against, all);
    return result;
  }
  result.summary = describe_scan(seen, d.size());
  const auto add = [&](const std::string& text) { result.summary += (result.summary.empty() ? "" : "; ") + text; };
  if (result.wrong > 0) {
    result.rounding_only = seen.unwritten + seen.nan == 0 && projected.passed() && comparison.rounded() == result.wrong;
    add(fmt::format("{} of {} outputs compared differ from {}{}", result.wrong, result.compared, against,
                    result.rounding_only ? ", none by more than another rule or order of summing explains" : ""));
  }
  if (!projected.wrong.empty()) add("some outputs are of a size or kind that cannot be right");
  if (!projected.bad_rows.empty() || !projected.bad_cols.empty()) {
    add(fmt::format("a random projection finds {} wrong rows and {} wrong columns", projected.bad_rows.size(),
                    projected.bad_cols.size()));
  }
  std::vector<WrongElement> wrong = comparison.take_wrong();
  add_crossings(projected, d, *reference, wrong);
  const auto place = [](const WrongElement& element) { return std::pair(element.row, element.col); };
  std::sort(wrong.begin(), wrong.end(), [&](const auto& x, const auto& y) { return place(x) < place(y); });
  wrong.erase(
      std::unique(wrong.begin(), wrong.end(), [&](const auto& x, const auto& y) { return place(x) == place(y); }),
      wrong.end());
  const bool all_known = everything && result.wrong == static_cast<int64_t>(wrong.size());
  result.wrong = std::max({result.wrong, static_cast<int64_t>(wrong.size()), seen.unwritten + seen.nan});
  result.pattern = describe_pattern({.a = a,
                                     .b = b,
                                     .d = d,
                                     .reference = *reference,
                                     .position = position,
                                     .tile = settings.tile,
                                     .known = wrong,
                                     .known_is_all = all_known});
  return result;
}

}  // namespace ladder
