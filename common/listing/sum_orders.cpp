// What becomes of the bits of D when its sums are made in other ways, for the pages: sum_orders f16|bf16 K. Every way
// is computed here from the model of one instruction (tensor_core_model.h) or in plain floating point; no rung runs.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "common/harness/inputs.h"
#include "common/harness/tensor_core_model.h"

namespace {

using namespace ladder;

constexpr int kRows = 64;  // of A and of B: 4096 outputs

/// Two rows to be multiplied, their bits and their values.
struct Rows {
  DType type;
  std::vector<uint16_t> a, b;

  int64_t k() const { return static_cast<int64_t>(a.size()); }
  double product(int64_t i) const { return value(a[static_cast<size_t>(i)]) * value(b[static_cast<size_t>(i)]); }
  double value(uint16_t bits) const { return std::bit_cast<float>(to_f32(type, bits)); }
};

/// K elements [first, first + count), `block` at a time.
uint32_t in_blocks(const Rows& rows, int64_t first, int64_t count, int64_t block, bool last_first = false) {
  uint32_t accumulator = 0;
  const int64_t blocks = (count + block - 1) / block;
  for (int64_t i = 0; i < blocks; ++i) {
    const int64_t at = first + (last_first ? blocks - 1 - i : i) * block;
    const auto length = static_cast<size_t>(std::min(block, first + count - at));
    accumulator =
        fused_multiply_add(rows.type, {rows.a.data() + at, length}, {rows.b.data() + at, length}, accumulator);
  }
  return accumulator;
}

float value_of(uint32_t bits) {
  return std::bit_cast<float>(bits);
}

uint32_t as_the_rungs(const Rows& rows) {
  return in_blocks(rows, 0, rows.k(), kFusedProducts);
}

uint32_t reversed_inside(const Rows& rows) {
  Rows turned = rows;
  for (int64_t at = 0; at < rows.k(); at += kFusedProducts) {
    const int64_t end = std::min<int64_t>(at + kFusedProducts, rows.k());
    std::reverse(turned.a.begin() + at, turned.a.begin() + end);
    std::reverse(turned.b.begin() + at, turned.b.begin() + end);
  }
  return as_the_rungs(turned);
}

uint32_t last_block_first(const Rows& rows) {
  return in_blocks(rows, 0, rows.k(), kFusedProducts, true);
}

uint32_t blocks_of_8(const Rows& rows) {
  return in_blocks(rows, 0, rows.k(), 8);
}

template <int parts>
uint32_t split(const Rows& rows) {
  float sum = 0;
  const int64_t blocks = (rows.k() + kFusedProducts - 1) / kFusedProducts;
  for (int part = 0; part < parts; ++part) {
    const int64_t first = blocks * part / parts * kFusedProducts;
    const int64_t end = std::min(blocks * (part + 1) / parts * kFusedProducts, rows.k());
    sum += value_of(in_blocks(rows, first, end - first, kFusedProducts));
  }
  return std::bit_cast<uint32_t>(sum);
}

uint32_t fma_chain(const Rows& rows) {
  float sum = 0;
  for (size_t i = 0; i < rows.a.size(); ++i)
    sum = std::fma(static_cast<float>(rows.value(rows.a[i])), static_cast<float>(rows.value(rows.b[i])), sum);
  return std::bit_cast<uint32_t>(sum);
}

double in_double(const Rows& rows) {
  double sum = 0;
  for (int64_t i = 0; i < rows.k(); ++i) sum += rows.product(i);
  return sum;
}

uint32_t rounded_once(const Rows& rows) {
  return std::bit_cast<uint32_t>(static_cast<float>(in_double(rows)));
}

struct Way {
  const char* name;
  uint32_t (*sum)(const Rows&);
};
constexpr Way kWays[] = {
    {"blocks of 16 in the order of K: the rungs", as_the_rungs},
    {"the same, each block's 16 products backwards", reversed_inside},
    {"the same blocks, the last first", last_block_first},
    {"K in two halves, added in fp32", split<2>},
    {"K in four quarters, added in fp32", split<4>},
    {"blocks of 8 in place of 16", blocks_of_8},
    {"one fp32 fused multiply-add after the other", fma_chain},
    {"exact, rounded once to nearest", rounded_once},
};

/// What one way makes of all outputs of a pair of matrices, and how far it is off.
struct Outputs {
  std::vector<uint32_t> bits;
  double mean_error = 0, mean_absolute_error = 0;  // in units of the last place of a typical output
};

/// The outputs of kWays, one after the other.
std::vector<Outputs> multiply(const HostMatrix& a, const HostMatrix& b) {
  std::vector<Rows> all;
  for (int64_t i = 0; i < a.rows(); ++i)
    for (int64_t j = 0; j < b.rows(); ++j)
      all.push_back({a.type(), {a.row16(i), a.row16(i) + a.cols()}, {b.row16(j), b.row16(j) + b.cols()}});
  std::vector<double> exact;
  double squares = 0;
  for (const Rows& rows : all) exact.push_back(in_double(rows)), squares += exact.back() * exact.back();
  const auto count = static_cast<double>(all.size());
  const double unit = std::ldexp(1.0, std::ilogb(std::sqrt(squares / count)) - 23);

  std::vector<Outputs> out;
  for (const Way& way : kWays) {
    Outputs& outputs = out.emplace_back();
    for (size_t i = 0; i < all.size(); ++i) {
      outputs.bits.push_back(way.sum(all[i]));
      const double error = (value_of(outputs.bits.back()) - exact[i]) / unit;
      outputs.mean_error += error / count;
      outputs.mean_absolute_error += std::fabs(error) / count;
    }
  }
  return out;
}

/// The share of outputs that have the bits of the first way, as they are or rounded to a type.
std::string same(const std::vector<Outputs>& ways, size_t way, DType type) {
  size_t equal = 0;
  const std::vector<uint32_t>&ours = ways[way].bits, &rungs = ways[0].bits;
  for (size_t i = 0; i < ours.size(); ++i) equal += from_f32(type, ours[i]) == from_f32(type, rungs[i]);
  return fmt::format("{:.1f} %", 100.0 * static_cast<double>(equal) / static_cast<double>(ours.size()));
}

HostMatrix positive(const HostMatrix& matrix) {
  HostMatrix out(matrix.rows(), matrix.cols(), matrix.type());
  for (int64_t row = 0; row < matrix.rows(); ++row)
    for (int64_t column = 0; column < matrix.cols(); ++column)
      out.set_bits(row, column, matrix.bits(row, column) & 0x7FFF);
  return out;
}

void print_table(DType type, int64_t k) {
  HostMatrix a(kRows, k, type), b(kRows, k, type), integer_a(kRows, k, type), integer_b(kRows, k, type);
  fill_random(a, 1, Stream::matrix_a);
  fill_random(b, 1, Stream::matrix_b);
  const IntegerRange range = integer_range(k, DType::f32);
  fill_integer(integer_a, 1, Stream::matrix_a, range);
  fill_integer(integer_b, 1, Stream::matrix_b, range);
  const std::vector<Outputs> normal = multiply(a, b), positives = multiply(positive(a), positive(b)),
                             integers = multiply(integer_a, integer_b);
  fmt::print(
      "| {} products, {} | same f32 bits | same bits in {} | mean absolute error, ulp | mean error, positive inputs, "
      "ulp "
      "| same f32 bits, integers |\n| --- | ---: | ---: | ---: | ---: | ---: |\n",
      k, name_of(type), name_of(type));
  for (size_t way = 0; way < std::size(kWays); ++way)
    fmt::print("| {} | {} | {} | {:.2f} | {:+.2f} | {} |\n", kWays[way].name, same(normal, way, DType::f32),
               same(normal, way, type), normal[way].mean_absolute_error, positives[way].mean_error,
               same(integers, way, DType::f32));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view type = argc == 3 ? argv[1] : "";
  int64_t k = 0;
  if (argc == 3) std::from_chars(argv[2], argv[2] + std::strlen(argv[2]), k);
  if ((type != "f16" && type != "bf16") || k < 1 || k > 65536) {
    fmt::print(stderr, "expected f16 or bf16 and a K from 1 to 65536\n");
    return 2;
  }
  print_table(type == "f16" ? DType::f16 : DType::bf16, k);
  return 0;
}
