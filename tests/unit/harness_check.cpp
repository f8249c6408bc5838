// The checks must notice. A product is computed on the host by the scalar model (harness_tensor_core_model.cpp tests
// that), then spoiled in known ways; what the check and its report say is compared with what was done.

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "common/harness/canary.h"
#include "common/harness/check.h"
#include "common/harness/elements.h"
#include "common/harness/inputs.h"
#include "common/harness/tensor_core_model.h"
#include "common/harness/user_error.h"
#include "tests/catch.h"

using namespace ladder;
using test::contains;

namespace {

constexpr TileSize kTile{128, 256, 16};

struct Product {
  HostMatrix a, b, d;
  CheckSettings settings;

  CheckResult check() const { return check_product(a, b, d, settings); }
};

HostMatrix copy_of(const HostMatrix& matrix) {
  HostMatrix copy(matrix.rows(), matrix.cols(), matrix.type());
  std::memcpy(copy.data(), matrix.data(), matrix.size_bytes());
  return copy;
}

/// D from `a` as `spoil` left it; the check sees A as it was.
Product multiply(
    const Shape& shape, DType in, DType out, Input input,
    const std::function<void(HostMatrix& a)>& spoil = [](HostMatrix&) {}) {
  Product product{HostMatrix(shape.m, shape.k, in),
                  HostMatrix(shape.n, shape.k, in),
                  HostMatrix(shape.m, shape.n, out),
                  {.input = input, .seed = 3, .tile = kTile}};
  if (input == Input::position) {
    const PositionCode code(shape, product.settings.seed);
    code.fill_a(product.a);
    code.fill_b(product.b);
  } else if (input == Input::integer) {
    fill_integer(product.a, 3, Stream::matrix_a, integer_range(shape.k, out));
    fill_integer(product.b, 3, Stream::matrix_b, integer_range(shape.k, out));
  } else {
    fill_random(product.a, 3, Stream::matrix_a);
    fill_random(product.b, 3, Stream::matrix_b);
  }
  HostMatrix a = copy_of(product.a);
  spoil(a);
  for (int64_t i = 0; i < shape.m; ++i) {
    for (int64_t j = 0; j < shape.n; ++j) {
      product.d.set_bits(i, j, from_f32(out, tensor_core_dot(in, a.row16(i), product.b.row16(j), shape.k)));
    }
  }
  return product;
}

std::string all_of(const CheckResult& result) {
  std::string text = result.summary;
  for (const std::string& line : result.pattern) text += "\n" + line;
  return text;
}

/// Small enough to be compared everywhere, and so large that it is sampled and projected.
const Shape kSmall{130, 264, 40}, kLarge{384, 520, 512};

}  // namespace

TEST_CASE("right products pass, of every kind and type") {
  for (const Input input : {Input::random, Input::integer, Input::position}) {
    for (const DType in : {DType::f16, DType::bf16}) {
      for (const DType out : {in, DType::f32}) {
        if (input == Input::position && out != DType::f32) continue;
        for (const Shape& shape : {kSmall, Shape{1, 8, 8}, Shape{3, 8, 24}, Shape{300, 264, 8}}) {
          CAPTURE(name_of(input), name_of(in), name_of(out), shape.m, shape.n, shape.k);
          const CheckResult result = multiply(shape, in, out, input).check();
          CHECK(result.passed);
          CHECK(result.compared == shape.m * shape.n);
          CHECK(result.wrong == 0);
          CHECK(result.pattern.empty());
        }
      }
    }
  }
}

TEST_CASE("right large products pass, sampled and projected") {
  for (const Input input : {Input::random, Input::integer}) {
    for (const DType in : {DType::f16, DType::bf16}) {
      for (const DType out : {in, DType::f32}) {
        CAPTURE(name_of(input), name_of(in), name_of(out));
        const CheckResult result = multiply(kLarge, in, out, input).check();
        CHECK(result.passed);
        CHECK(result.projected);
        CHECK(result.compared >= 4000);
        CHECK(result.compared < kLarge.m * kLarge.n);
      }
    }
  }
}

TEST_CASE("one wrong bit anywhere in a small product fails") {
  for (const Input input : {Input::random, Input::integer, Input::position}) {
    for (const DType out : {DType::f16, DType::f32}) {
      if (input == Input::position && out != DType::f32) continue;
      Product product = multiply(kSmall, DType::f16, out, input);
      product.d.set_bits(129, 263, product.d.bits(129, 263) ^ 1);
      const CheckResult result = product.check();
      CHECK_FALSE(result.passed);
      CHECK(result.wrong == 1);
      CHECK_THAT(all_of(result), contains("wrong in 1 of 4") && contains("D[129][263]"));
    }
  }
}

TEST_CASE("one wrong element anywhere in a large integer product fails, whatever its size") {
  for (const DType out : {DType::f16, DType::f32}) {
    Product product = multiply(kLarge, DType::f16, out, Input::integer);
    for (const auto& [row, col] : {std::pair<int64_t, int64_t>{0, 0}, {77, 311}, {383, 519}, {200, 8}}) {
      const uint32_t right = product.d.bits(row, col);
      for (const uint32_t wrong :
           {right ^ 1u, right ^ 0x10u, 0u, poison_bits(out), from_f32(out, 0x7FC00000u), from_f32(out, 0x7F800000u)}) {
        if (wrong == right) continue;
        CAPTURE(name_of(out), row, col, right, wrong);
        product.d.set_bits(row, col, wrong);
        const CheckResult result = product.check();
        CHECK_FALSE(result.passed);
        CHECK_THAT(all_of(result), contains("D[" + std::to_string(row) + "][" + std::to_string(col) + "]"));
      }
      product.d.set_bits(row, col, right);
    }
    REQUIRE(product.check().passed);
  }
}

TEST_CASE("one element from elsewhere in a large random product fails") {
  for (const DType out : {DType::f16, DType::bf16, DType::f32}) {
    const DType in = out == DType::bf16 ? DType::bf16 : DType::f16;
    Product product = multiply(kLarge, in, out, Input::random);
    const uint32_t right = product.d.bits(77, 311);
    product.d.set_bits(77, 311, from_f32(out, 0x42700000u));  // 60, where 23 is a deviation
    CHECK_FALSE(product.check().passed);
    product.d.set_bits(77, 311, right);
    REQUIRE(product.check().passed);
  }
}

TEST_CASE("NaN never passes, not even where the rule gives NaN") {
  Product product = multiply({128, 256, 16}, DType::f16, DType::f32, Input::random);
  // Inf - Inf in the inputs: the model gives NaN for row 5, and so does this D.
  product.a.row16(5)[0] = 0x7C00;
  product.a.row16(5)[1] = 0x7C00;
  for (int64_t j = 0; j < 256; ++j) {
    product.b.row16(j)[0] = 0x3C00;
    product.b.row16(j)[1] = 0xBC00;
  }
  for (int64_t i = 0; i < 128; ++i) {
    for (int64_t j = 0; j < 256; ++j) {
      product.d.set_bits(i, j, tensor_core_dot(DType::f16, product.a.row16(i), product.b.row16(j), 16));
    }
  }
  REQUIRE(product.d.bits(5, 9) == 0x7FFFFFFFu);
  const CheckResult result = product.check();
  CHECK_FALSE(result.passed);
  CHECK_THAT(result.summary, contains("256 of 32768 outputs NaN"));
}

TEST_CASE("another rule of rounding is told apart from wrong numbers") {
  using Sum = float (*)(const float* a, const float* b, int64_t k);
  const Sum backwards = [](const float* a, const float* b, int64_t k) {
    float sum = 0;
    while (k-- > 0) sum = std::fma(a[k], b[k], sum);
    return sum;
  };
  const Sum exact = [](const float* a, const float* b, int64_t k) {
    double sum = 0;
    while (k-- > 0) sum += double{a[k]} * b[k];
    return static_cast<float>(sum);
  };
  const Sum without_the_first = [](const float* a, const float* b, int64_t k) {
    double sum = 0;
    while (--k > 0) sum += double{a[k]} * b[k];
    return static_cast<float>(sum);
  };
  const auto floats = [](const HostMatrix& matrix) {
    std::vector<float> values(static_cast<size_t>(matrix.size()));
    for (int64_t row = 0; row < matrix.rows(); ++row) {
      to_floats(matrix, row, 0, matrix.cols(), values.data() + row * matrix.cols());
    }
    return values;
  };
  struct Types {
    DType in, out;
    Shape shape;
  };
  for (const auto& [in, out, shape] :
       {Types{DType::f16, DType::f32, kLarge}, {DType::f16, DType::f16, kSmall}, {DType::bf16, DType::f32, kSmall}}) {
    Product product = multiply(shape, in, out, Input::random);
    const std::vector<float> a = floats(product.a), b = floats(product.b);
    for (const auto& [sum, rounds] : {std::pair{backwards, true}, {exact, true}, {without_the_first, false}}) {
      CAPTURE(name_of(in), name_of(out), shape.m, rounds);
      for (int64_t i = 0; i < shape.m; ++i) {
        for (int64_t j = 0; j < shape.n; ++j) {
          const float d = sum(a.data() + i * shape.k, b.data() + j * shape.k, shape.k);
          product.d.set_bits(i, j, from_f32(out, std::bit_cast<uint32_t>(d)));
        }
      }
      const CheckResult result = product.check();
      CHECK_FALSE(result.passed);
      CHECK(result.rounding_only == rounds);
      CHECK((result.summary.find("another rule or order of summing") != std::string::npos) == rounds);
    }
  }
}

TEST_CASE("rounding explains no error in what is exact by any rule, and nothing that is no number") {
  for (const Input input : {Input::integer, Input::position}) {
    Product product = multiply(kSmall, DType::f16, DType::f32, input);
    product.d.set_bits(5, 7, product.d.bits(5, 7) ^ 1);
    CHECK_FALSE(product.check().rounding_only);
  }
  Product product = multiply(kSmall, DType::f16, DType::f32, Input::random);
  product.d.set_bits(5, 7, product.d.bits(5, 7) ^ 1);
  CHECK(product.check().rounding_only);
  for (const uint32_t bits : {poison_bits(DType::f32), 0x7FC00000u, 0x7F800000u}) {
    product.d.set_bits(5, 8, bits);
    CHECK_FALSE(product.check().rounding_only);
  }
}

TEST_CASE("what was never written is told apart") {
  for (const Shape& shape : {Shape{130, 264, 40}, kLarge}) {
    Product product = multiply(shape, DType::f16, DType::f16, Input::random);
    for (int64_t i = 128; i < std::min<int64_t>(256, shape.m); ++i) {
      for (int64_t j = 0; j < 256; ++j) product.d.set_bits(i, j, poison_bits(DType::f16));
    }
    const CheckResult result = product.check();
    CHECK_FALSE(result.passed);
    CHECK_THAT(all_of(result), contains("never written") && contains("wrong in 1 of") && contains("columns all 256"));
    CHECK(scan(product.d).unwritten == (std::min<int64_t>(256, shape.m) - 128) * 256);
    CHECK(scan(product.d).nan == 0);
  }
}

TEST_CASE("reports name what arrived") {
  struct Case {
    const char* what;
    std::function<void(HostMatrix&)> spoil;
    std::vector<const char*> by_sums;      ///< for random and integer inputs
    std::vector<const char*> by_position;  ///< for position-coded ones
  };
  const Shape shape{256, 264, 128};
  const auto row_bytes = static_cast<size_t>(shape.k) * 2;
  const std::vector<Case> cases = {{"a K tile missing",
                                    [&](HostMatrix& a) {
                                      for (int64_t i = 0; i < shape.m; ++i) std::memset(a.row16(i) + 48, 0, 32);
                                    },
                                    {"K tile 3 (k = 48..63) is missing", "wrong in 4 of 4"},
                                    {"K tile 3 (k = 48..63) is missing"}},
                                   {"the sum started afresh",
                                    [&](HostMatrix& a) {
                                      for (int64_t i = 0; i < shape.m; ++i) std::memset(a.row16(i), 0, 64);
                                    },
                                    {"K tiles 0 to 1 were lost"},
                                    {"K tiles 0 to 1 were lost"}},
                                   {"rows shifted by 8",
                                    [&](HostMatrix& a) {
                                      for (int64_t i = 0; i + 8 < shape.m; ++i)
                                        std::memcpy(a.row16(i), a.row16(i + 8), row_bytes);
                                    },
                                    {"row i holds what belongs to row i + 8"},
                                    {"row i holds what belongs to row i + 8"}},
                                   {"halves of 16 swapped",
                                    [&](HostMatrix& a) {
                                      for (int64_t i = 0; i < shape.m; ++i) {
                                        for (int64_t k = 0; k < shape.k; ++k) {
                                          if (k % 16 < 8) std::swap(a.row16(i)[k], a.row16(i)[k + 8]);
                                        }
                                      }
                                    },
                                    {"8-element halves"},
                                    {}},
                                   {"every eighth row of the second row of tiles empty",
                                    [&](HostMatrix& a) {
                                      for (int64_t i = 131; i < shape.m; i += 8) std::memset(a.row16(i), 0, row_bytes);
                                    },
                                    {"r % 8 = 3", "columns all 256", "zero", "wrong in 2 of 4"},
                                    {"r % 8 = 3", "nothing arrived"}},
                                   {"rows of each 64 transposed as 8 x 8",
                                    [&](HostMatrix& a) {
                                      const HostMatrix before = copy_of(a);
                                      for (int64_t i = 0; i < shape.m; ++i) {
                                        std::memcpy(a.row16(i), before.row16(i / 64 * 64 + i % 8 * 8 + i % 64 / 8),
                                                    row_bytes);
                                      }
                                    },
                                    {},
                                    {"row 8 arrived at row 1, 16 at 2, 24 at 3"}}};
  for (const Case& one : cases) {
    for (const Input input : {Input::random, Input::integer, Input::position}) {
      CAPTURE(one.what, name_of(input));
      const CheckResult result = multiply(shape, DType::f16, DType::f32, input, one.spoil).check();
      CHECK_FALSE(result.passed);
      for (const char* part : input == Input::position ? one.by_position : one.by_sums) {
        CHECK_THAT(all_of(result), contains(part));
      }
    }
  }
}

TEST_CASE("position codes tell every place apart") {
  for (const Shape& shape : {Shape{700, 1032, 272}, Shape{700, 520, 8}, Shape{2, 8, 40}, Shape{1, 8, 28672}}) {
    for (const DType type : {DType::f16, DType::bf16}) {
      const PositionCode code(shape, 12345);
      HostMatrix a(shape.m, shape.k, type), b(shape.n, shape.k, type);
      code.fill_a(a);
      code.fill_b(b);
      const int64_t codes = shape.k == 8 ? 255 : 65535;
      int64_t weights = -1;
      for (int64_t i = 0; i < shape.m; i += 37) {
        for (int64_t j = 0; j < shape.n; ++j) {
          int64_t sum = 0;
          for (int64_t k = 0; k < shape.k; ++k) sum += static_cast<int64_t>(a.value(i, k) * b.value(j, k));
          CAPTURE(shape.m, shape.n, shape.k, i, j);
          REQUIRE(sum < (1 << 24));
          REQUIRE(sum == code.expected_value(i, j));
          if ((i + j) % 3 == 0) REQUIRE(sum == i % codes + 1);
          if ((i + j) % 3 == 1) REQUIRE(sum == j % codes + 1);
          if ((i + j) % 3 == 2) {
            if (weights < 0) weights = sum;
            REQUIRE(sum == weights);
          }
        }
      }
    }
  }
}

TEST_CASE("sets of rows and columns are said as a person would") {
  const auto every = [](int step, int first, int size) {
    std::vector<int> members;
    for (int i = first; i < size; i += step) members.push_back(i);
    return members;
  };
  CHECK(describe_set({}, 128, 'r') == "none");
  CHECK(describe_set(every(1, 0, 128), 128, 'r') == "all 128");
  CHECK(describe_set(every(1, 64, 128), 128, 'r') == "64-127");
  CHECK(describe_set({5}, 128, 'r') == "5");
  CHECK(describe_set({5, 6, 9}, 128, 'r') == "5-6, 9");
  CHECK(describe_set(every(8, 3, 128), 128, 'r') == "r % 8 = 3");
  CHECK(describe_set(every(2, 1, 256), 256, 'c') == "c % 2 = 1");
  std::vector<int> two_classes;
  for (int i = 0; i < 64; ++i) {
    if (i % 16 == 2 || i % 16 == 7) two_classes.push_back(i);
  }
  CHECK(describe_set(two_classes, 64, 'c') == "c % 16 in {2, 7}");
  CHECK(describe_set(every(1, 1, 128), 128, 'r') == "all 128 but 1");
  CHECK(describe_set({1, 4, 9, 16, 25, 36, 49, 64}, 128, 'r') == "1, 4, 9, 16, 25, 36 and more, 8 of 128");
}

TEST_CASE("inputs that are not finite cannot be checked") {
  HostMatrix matrix(3, 8, DType::f16);
  std::memset(matrix.data(), 0, matrix.size_bytes());
  CHECK_NOTHROW(require_finite(matrix, "a.npy"));
  matrix.set_bits(2, 5, 0x7E00);
  CHECK_THROWS_WITH(require_finite(matrix, "a.npy"), contains("a.npy") && contains("[2][5] is NaN"));
  matrix.set_bits(2, 5, 0xFC00);
  CHECK_THROWS_WITH(require_finite(matrix, "a.npy"), contains("infinite"));
  matrix.set_bits(2, 5, 0xFFFF);  // the poison's own bits
  CHECK_THROWS_WITH(require_finite(matrix, "a.npy"), contains("NaN"));
}

TEST_CASE("canary bands notice every byte and are NaN to whoever reads them") {
  std::vector<std::byte> band(1000);
  fill_canary(band, 2);
  CHECK_FALSE(find_canary_damage(band, 2).has_value());
  CHECK(find_canary_damage(band, 3).has_value());
  for (const size_t place : {size_t{0}, size_t{1}, size_t{501}, size_t{999}}) {
    const std::byte before = band[place];
    band[place] = before ^ std::byte{0x10};
    CHECK(find_canary_damage(band, 2) == place);
    band[place] = before;
  }
  for (size_t offset = 0; offset + 4 <= band.size(); offset += 2) {
    uint32_t word;
    std::memcpy(&word, band.data() + offset, 4);
    CHECK(is_nan_f32(bf16_to_f32(static_cast<uint16_t>(word))));
    CHECK(is_nan_f32(f16_to_f32(static_cast<uint16_t>(word))));
    if (offset % 4 == 0) CHECK(is_nan_f32(word));
  }
  CHECK(is_nan_f32(to_f32(DType::f16, poison_bits(DType::f16))));
  CHECK(is_nan_f32(poison_bits(DType::f32)));
}

TEST_CASE("what is said of very many wrong elements does not depend on who was faster") {
  for (const Input input : {Input::random, Input::integer}) {
    Product product = multiply({600, 1024, 16}, DType::f16, DType::f16, input);
    for (int64_t i = 0; i < product.d.rows(); ++i)
      for (int64_t j = 0; j < product.d.cols(); ++j) product.d.set_bits(i, j, product.d.bits(i, j) ^ (1 + (i * j) % 3));
    const std::string first = all_of(product.check());
    for (int turn = 0; turn < 5; ++turn) CHECK(all_of(product.check()) == first);
  }
}
