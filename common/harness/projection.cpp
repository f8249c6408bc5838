#include "common/harness/projection.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <mutex>

#include "common/harness/elements.h"
#include "common/harness/parallel.h"
#include "common/harness/philox.h"
#include "common/harness/wrong_elements.h"

namespace ladder {
namespace {

constexpr int64_t kRowsPerThread = 16;
constexpr int64_t kEnoughWrongElements = 1000;  // one by one, spread over the rows; beyond that the pattern is clear
constexpr int64_t kEnoughInARow = 4;

/// What a float is in the arithmetic of the projection: an integer modulo 2^32, or a double.
template <class Number>
inline Number number(float value) {
  if constexpr (std::is_same_v<Number, uint32_t>) {
    return static_cast<uint32_t>(static_cast<int32_t>(value));
  } else {
    return static_cast<Number>(value);
  }
}

/// y += weight * row
template <class Number>
void add_scaled(Number* y, Number weight, const float* row, int64_t count) {
  for (int64_t i = 0; i < count; ++i) y[i] += weight * number<Number>(row[i]);
}

template <class Number>
Number dot(const float* row, const Number* x, int64_t count) {
  constexpr int kWays = 8;  // floating-point sums do not vectorise by themselves
  Number sums[kWays] = {};
  int64_t i = 0;
  for (; i + kWays <= count; i += kWays) {
    for (int way = 0; way < kWays; ++way) sums[way] += number<Number>(row[i + way]) * x[i + way];
  }
  for (; i < count; ++i) sums[0] += number<Number>(row[i]) * x[i];
  for (int way = 1; way < kWays; ++way) sums[0] += sums[way];
  return sums[0];
}

template <class Number>
std::vector<Number> random_weights(int64_t count, PhiloxSequence& random) {
  std::vector<Number> weights(static_cast<size_t>(count));
  for (Number& weight : weights) {
    if constexpr (std::is_same_v<Number, uint32_t>) {
      weight = random.next() | 1u;
    } else {
      weight = (random.next() >> 31) ? 1 : -1;
    }
  }
  return weights;
}

/// Vectors of one length, one a thread, that are added up at the end.
template <class Number>
class Partial {
 public:
  explicit Partial(int64_t length)
      : length_(static_cast<size_t>(length)), parts_(static_cast<size_t>(worker_count())) {}
  Number* of(int worker) {
    std::vector<Number>& part = parts_[static_cast<size_t>(worker)];
    if (part.empty()) part.resize(length_);
    return part.data();
  }
  std::vector<Number> sum() const {
    std::vector<Number> total(length_);
    for (const std::vector<Number>& part : parts_) {
      for (size_t i = 0; i < part.size(); ++i) total[i] += part[i];
    }
    return total;
  }

 private:
  size_t length_;
  std::vector<std::vector<Number>> parts_;
};

/// matrixᵀ weights
template <class Number>
std::vector<Number> transposed_product(const HostMatrix& matrix, const std::vector<Number>& weights) {
  Partial<Number> sums(matrix.cols());
  parallel_for(matrix.rows(), kRowsPerThread, [&](int64_t begin, int64_t end, int worker) {
    Number* sum = sums.of(worker);
    std::vector<float> row(static_cast<size_t>(matrix.cols()));
    for (int64_t i = begin; i < end; ++i) {
      to_floats(matrix, i, 0, matrix.cols(), row.data());
      add_scaled(sum, weights[static_cast<size_t>(i)], row.data(), matrix.cols());
    }
  });
  return sums.sum();
}

/// matrix x
template <class Number>
std::vector<Number> product(const HostMatrix& matrix, const std::vector<Number>& x) {
  std::vector<Number> result(static_cast<size_t>(matrix.rows()));
  parallel_for(matrix.rows(), kRowsPerThread, [&](int64_t begin, int64_t end, int) {
    std::vector<float> row(static_cast<size_t>(matrix.cols()));
    for (int64_t i = begin; i < end; ++i) {
      to_floats(matrix, i, 0, matrix.cols(), row.data());
      result[static_cast<size_t>(i)] = dot(row.data(), x.data(), matrix.cols());
    }
  });
  return result;
}

template <class Number>
struct Residuals {
  std::vector<Number> rows, cols;  ///< D x - A (Bᵀ x), yᵀ D - (yᵀ A) Bᵀ
};

/// `mend(row index, floats of the row)` may replace elements before they are projected.
template <class Number, class Mend>
Residuals<Number> residuals(const HostMatrix& a, const HostMatrix& b, const HostMatrix& d, uint64_t seed,
                            const Mend& mend) {
  PhiloxSequence random(seed, Stream::projection);
  const std::vector<Number> x = random_weights<Number>(d.cols(), random);
  const std::vector<Number> y = random_weights<Number>(d.rows(), random);

  Residuals<Number> result;
  result.rows.resize(static_cast<size_t>(d.rows()));
  Partial<Number> columns(d.cols());
  parallel_for(d.rows(), kRowsPerThread, [&](int64_t begin, int64_t end, int worker) {
    Number* column_sums = columns.of(worker);
    std::vector<float> row(static_cast<size_t>(d.cols()));
    for (int64_t i = begin; i < end; ++i) {
      to_floats(d, i, 0, d.cols(), row.data());
      mend(i, row.data());
      result.rows[static_cast<size_t>(i)] = dot(row.data(), x.data(), d.cols());
      add_scaled(column_sums, y[static_cast<size_t>(i)], row.data(), d.cols());
    }
  });
  result.cols = columns.sum();

  const std::vector<Number> rows_expected = product(a, transposed_product(b, x));
  const std::vector<Number> cols_expected = product(b, transposed_product(a, y));
  for (size_t i = 0; i < result.rows.size(); ++i) result.rows[i] -= rows_expected[i];
  for (size_t j = 0; j < result.cols.size(); ++j) result.cols[j] -= cols_expected[j];
  return result;
}

/// Elements that were compared one by one.
class SingleElements {
 public:
  SingleElements(const HostMatrix& d, const Reference& reference) : d_(d), reference_(reference) {}
  /// So many of one row are wrong that its rest is of no interest. A rule for each row alone: which elements are looked
  /// at must not depend on what other threads have found by then.
  bool enough(int64_t wrong_in_row) const {
    return wrong_in_row >= std::max(kEnoughInARow, kEnoughWrongElements / d_.rows());
  }
  /// False when it is wrong.
  bool compare(int64_t row, int64_t col) {
    const WrongElement element{row, col, d_.bits(row, col), reference_.expected(row, col)};
    // NaN never passes, not even where NaN is what the rule gives.
    if (element.got == element.expected && !is_nan_f32(to_f32(d_.type(), element.got))) return true;
    wrong_.add(element);
    return false;
  }
  std::vector<WrongElement> take() { return wrong_.take(); }

 private:
  const HostMatrix& d_;
  const Reference& reference_;
  WrongElements wrong_{kEnoughWrongElements};
};

double norm(const float* row, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += std::isfinite(row[i]) ? double{row[i]} * row[i] : 0.0;
  return std::sqrt(sum);
}

std::vector<double> row_norms(const HostMatrix& matrix) {
  std::vector<double> norms(static_cast<size_t>(matrix.rows()));
  parallel_for(matrix.rows(), kRowsPerThread, [&](int64_t begin, int64_t end, int) {
    std::vector<float> row(static_cast<size_t>(matrix.cols()));
    for (int64_t i = begin; i < end; ++i) {
      to_floats(matrix, i, 0, matrix.cols(), row.data());
      norms[static_cast<size_t>(i)] = norm(row.data(), matrix.cols());
    }
  });
  return norms;
}

double largest(const std::vector<double>& values) {
  return *std::max_element(values.begin(), values.end());
}

double root_mean_square(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum / static_cast<double>(values.size()));
}

double median_magnitude(std::vector<double> values) {
  for (double& value : values) value = std::fabs(value);
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// How far rounding may take a residual of `terms` elements with random signs.
struct Tolerance {
  double accumulation;    ///< most one element can lose in the accumulator, whatever its row
  double typical;         ///< the same for rows of one distribution
  double rounding;        ///< half a unit of the output type, relative
  double largest_output;  ///< of all finite elements
  bool alike;

  /// `output_norm`: of the row or column of D.
  double bound(double terms, double output_norm) const {
    constexpr double kDeviations = 12;  // random signs exceed this with a chance of 2 exp(-72)
    return kDeviations *
           std::sqrt(terms * accumulation * accumulation + rounding * rounding * output_norm * output_norm);
  }
  double limit(double terms, double output_norm, double median) const {
    const double worst = bound(terms, output_norm);
    if (!alike) return worst;
    constexpr double kMedians = 20, kSingleErrors = 12;
    return std::min(worst, std::max(kMedians * median, kSingleErrors * (typical + rounding * largest_output)));
  }
};

Tolerance tolerance(const HostMatrix& a, const HostMatrix& b, DType out, double largest_output, bool alike) {
  // One fused step cuts 17 terms at 2^-25 and the result at 2^-23 of its largest term.
  const double steps = std::ceil(static_cast<double>(a.cols()) / 16);
  const double relative = steps * (17.0 / 4 + 1) * 0x1p-23;
  const std::vector<double> a_norms = row_norms(a), b_norms = row_norms(b);
  const double typical_sum =
      root_mean_square(a_norms) * root_mean_square(b_norms) / std::sqrt(static_cast<double>(a.cols()));
  return {.accumulation = relative * largest(a_norms) * largest(b_norms),  // Cauchy and Schwarz bound every partial sum
          .typical = relative * 8 * typical_sum,
          .rounding = out == DType::f16    ? 0x1p-11
                      : out == DType::bf16 ? 0x1p-8
                                           : 0,
          .largest_output = largest_output,
          .alike = alike};
}

}  // namespace

ProjectionResult project_integers(const HostMatrix& a, const HostMatrix& b, const HostMatrix& d,
                                  const IntegerReference& reference, uint64_t seed) {
  const float limit = d.type() == DType::f16 ? 2048.0f : d.type() == DType::bf16 ? 256.0f : 0x1p24f;
  SingleElements singles(d, reference);
  const auto exact_integer = [&](float value) {
    return value >= -limit && value <= limit && value == static_cast<float>(static_cast<int32_t>(value));
  };
  const auto mend = [&](int64_t i, float* row) {
    int unusual = 0;
    for (int64_t j = 0; j < d.cols(); ++j) {
      // Bitwise on purpose: a loop without branches vectorises. NaN fails every comparison.
      const float clamped = row[j] > limit ? limit : row[j] < -limit ? -limit : row[j];
      const float whole = static_cast<float>(static_cast<int32_t>(clamped == clamped ? clamped : 0.0f));
      unusual |= whole != row[j];
    }
    if (!unusual) return;
    int64_t wrong = 0;
    for (int64_t j = 0; j < d.cols(); ++j) {
      if (exact_integer(row[j])) continue;
      const bool skip = singles.enough(wrong);
      if (!skip) wrong += !singles.compare(i, j);
      // Right as rounded, the exact sum takes its place; wrong, it is reported already and must not hide others.
      row[j] = skip ? 0.0f : static_cast<float>(reference.exact(i, j));
    }
  };
  const Residuals<uint32_t> residual = residuals<uint32_t>(a, b, d, seed, mend);
  ProjectionResult result;
  for (size_t i = 0; i < residual.rows.size(); ++i) {
    if (residual.rows[i] != 0) result.bad_rows.push_back(static_cast<int64_t>(i));
  }
  for (size_t j = 0; j < residual.cols.size(); ++j) {
    if (residual.cols[j] != 0) result.bad_cols.push_back(static_cast<int64_t>(j));
  }
  result.wrong = singles.take();
  return result;
}

ProjectionResult project_rounded(const HostMatrix& a, const HostMatrix& b, const HostMatrix& d,
                                 const Reference& reference, uint64_t seed, bool alike) {
  SingleElements singles(d, reference);
  std::vector<double> row_norm(static_cast<size_t>(d.rows()));
  std::vector<char> row_skipped(static_cast<size_t>(d.rows())), col_skipped(static_cast<size_t>(d.cols()));
  Partial<double> col_squares(d.cols());
  std::mutex mutex;
  double largest_output = 0;
  const auto mend = [&](int64_t i, float* row) {
    double most = 0;
    for (int64_t j = 0; j < d.cols(); ++j) most = std::max(most, std::fabs(double{row[j]}));
    bool finite = true;
    for (int64_t j = 0; j < d.cols(); ++j) finite &= std::isfinite(row[j]);
    if (!finite) {
      most = 0;
      int64_t wrong = 0;
      for (int64_t j = 0; j < d.cols(); ++j) {
        if (std::isfinite(row[j])) {
          most = std::max(most, std::fabs(double{row[j]}));
          continue;
        }
        if (!singles.enough(wrong)) wrong += !singles.compare(i, j);
        row[j] = 0;
        row_skipped[static_cast<size_t>(i)] = 1;
        const std::lock_guard lock(mutex);
        col_skipped[static_cast<size_t>(j)] = 1;
      }
    }
    row_norm[static_cast<size_t>(i)] = norm(row, d.cols());
    const std::lock_guard lock(mutex);
    largest_output = std::max(largest_output, most);
  };
  const Residuals<double> residual = residuals<double>(a, b, d, seed, mend);
  // A column's norm enters its bound only through output rounding: the norm of all of D, spread evenly, would let one
  // loud column pass another, so take the largest element of D for each.
  const Tolerance allowed = tolerance(a, b, d.type(), largest_output, alike);
  const double col_norm = largest_output * std::sqrt(static_cast<double>(d.rows()));

  ProjectionResult result;
  const double row_median = median_magnitude(residual.rows), col_median = median_magnitude(residual.cols);
  for (size_t i = 0; i < residual.rows.size(); ++i) {
    const double limit = allowed.limit(static_cast<double>(d.cols()), row_norm[i], row_median);
    if (!row_skipped[i] && !(std::fabs(residual.rows[i]) <= limit)) result.bad_rows.push_back(static_cast<int64_t>(i));
  }
  for (size_t j = 0; j < residual.cols.size(); ++j) {
    const double limit = allowed.limit(static_cast<double>(d.rows()), col_norm, col_median);
    if (!col_skipped[j] && !(std::fabs(residual.cols[j]) <= limit)) result.bad_cols.push_back(static_cast<int64_t>(j));
  }
  result.wrong = singles.take();
  return result;
}

}  // namespace ladder
