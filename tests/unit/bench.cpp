// What gemm_bench needs no GPU for: how far a D is from another, and kernels of other people's.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include "common/bench/contenders.h"
#include "common/bench/relative_error.h"
#include "common/bench/timing.h"
#include "common/harness/user_error.h"
#include "tests/catch.h"

using namespace ladder;

namespace {

HostMatrix matrix_of(DType type, float first, float rest) {
  HostMatrix matrix(3, 8, type);
  for (int64_t row = 0; row < 3; ++row)
    for (int64_t column = 0; column < 8; ++column)
      matrix.set_bits(row, column, from_f32(type, std::bit_cast<uint32_t>(row + column == 0 ? first : rest)));
  return matrix;
}

std::string refusal(const std::string& library) {
  try {
    beside(library);
    return "";
  } catch (const UserError& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("relative error: a part of the norm") {
  for (const DType type : {DType::f16, DType::bf16, DType::f32}) {
    const HostMatrix ones = matrix_of(type, 1, 1);
    CHECK(relative_error(ones, ones) == 0);
    CHECK(relative_error(matrix_of(type, 3, 1), ones) == std::sqrt(4. / 24));
    CHECK(relative_error(matrix_of(type, 2, 2), ones) == 1);
    CHECK(std::isnan(relative_error(matrix_of(type, std::numeric_limits<float>::quiet_NaN(), 1), ones)));
    CHECK(!(relative_error(matrix_of(type, std::numeric_limits<float>::infinity(), 1), ones) < 1));
  }
}

TEST_CASE("timing: medians, quantiles, and who is fastest") {
  Timing timing;
  for (const double us : {5., 1., 4., 2., 3.}) timing.samples.push_back({us, 1000 + us, 100 * us});
  CHECK(timing.median_s() == 3);
  CHECK(timing.quantile_s(0) == 1);
  CHECK(timing.quantile_s(.25) == 2);
  CHECK(timing.quantile_s(1) == 5);
  CHECK(timing.median_megahertz() == 1003);
  CHECK(timing.median_watts() == 300);
  timing.samples[0].watts.reset();
  CHECK(timing.median_watts() == 250);  // of those that there are
  Timing slower = timing, faster = timing;
  for (Sample& sample : slower.samples) sample.seconds *= 2;
  for (Sample& sample : faster.samples) sample.seconds /= 2;
  faster.samples[0].seconds = 100;  // one outlier
  CHECK(fastest({timing, slower, faster}) == 2);
}

TEST_CASE("timing: every side has its turn in every round, and other neighbours") {
  constexpr size_t kSides = 11;
  std::set<size_t> first;
  std::set<std::pair<size_t, size_t>> neighbours;
  for (int round = 0; round < 40; ++round) {
    const std::vector<size_t> order = order_of_round(round, kSides);
    CHECK(std::set<size_t>(order.begin(), order.end()).size() == kSides);
    CHECK(*std::max_element(order.begin(), order.end()) == kSides - 1);
    CHECK(order == order_of_round(round, kSides));
    first.insert(order[0]);
    for (size_t i = 1; i < kSides; ++i) neighbours.insert({order[i - 1], order[i]});
  }
  CHECK(first.size() > kSides / 2);
  CHECK(neighbours.size() > kSides * (kSides - 1) / 2);  // of 110; rotation would have 11
}

TEST_CASE("beside: a kernel out of a shared library") {
  const std::string library = TEST_KERNEL_LIBRARY;
  CHECK(refusal("no/such.so").starts_with("--beside no/such.so: "));
  CHECK(refusal(library + ":nobody") == "--beside " + library + ":nobody: " + library +
                                            " has no extern \"C\" function nobody; name it as LIBRARY.so:SYMBOL");

  int d = 0;
  const Gemm gemm{.m = 3,
                  .n = 8,
                  .k = 16,
                  .in = DType::f16,
                  .out = DType::f16,
                  .a = nullptr,
                  .b = nullptr,
                  .d = &d,
                  .stream = nullptr};
  const Contender mine = beside(library);
  CHECK(mine.name == "libtest_kernel:gemm");
  CHECK((mine.fixed_k == 0 && mine.computes));
  mine.planned(gemm).launch(gemm);
  CHECK(d == 30816);  // what it makes of the sizes
  CHECK(beside(library + ":broken").name == "libtest_kernel:broken");
  std::string said;
  try {
    beside(library + ":broken").planned(gemm).launch(gemm);
  } catch (const std::runtime_error& error) {
    said = error.what();
  }
  CHECK(said == "libtest_kernel:broken returned 9, which is no cudaSuccess");
}
