#include "common/harness/inputs.h"

#include <algorithm>
#include <bit>

#include "common/harness/parallel.h"

namespace ladder {
namespace {

constexpr int64_t kGrain = 1 << 16;  // elements: less is not worth a thread

constexpr int32_t bell_shaped(uint32_t v, uint32_t w) {
  v = v - ((v >> 1) & 0x55555555u);  // popcount in the form that vectorises
  v = (v & 0x33333333u) + ((v >> 2) & 0x33333333u);
  v = (v + (v >> 4)) & 0x0F0F0F0Fu;
  const int32_t ones = static_cast<int32_t>((v + (v >> 8) + (v >> 16) + (v >> 24)) & 0x3Fu);
  return (ones - 16) * 65536 + static_cast<int32_t>(w & 0xFFFFu) + static_cast<int32_t>(w >> 16) - 65535;
}

/// t / 2^21 for t of at most 24 significant bits, rounded to nearest even. The conversion to float is exact, so this is
/// integer arithmetic on a float's bits and gives the same result everywhere.
template <DType type>
uint16_t scaled_to_16_bits(int32_t t) {
  const uint32_t sign = static_cast<uint32_t>(t) >> 31;
  const uint32_t magnitude = static_cast<uint32_t>(t < 0 ? -t : t);
  const uint32_t whole = std::bit_cast<uint32_t>(static_cast<float>(static_cast<int32_t>(magnitude)));
  const uint32_t scaled = whole - (21u << 23);
  uint32_t result;
  if constexpr (type == DType::f16) {
    const uint32_t normal = ((scaled + 0xFFFu + ((scaled >> 13) & 1u)) >> 13) - (112u << 10);
    result = magnitude < 128 ? magnitude * 8 : normal;  // below 2^-14 a multiple of 2^-21 is an exact subnormal
  } else {
    const uint32_t normal = (scaled + 0x7FFFu + ((scaled >> 16) & 1u)) >> 16;
    result = magnitude == 0 ? 0 : normal;
  }
  return static_cast<uint16_t>(result | (sign << 15));
}

template <DType type>
uint16_t small_integer(int32_t value) {
  return scaled_to_16_bits<type>(value * (1 << 21));
}

/// fill(batch, out) writes `batch_elements` elements from one batch of random words.
template <int batch_elements, class Fill>
void fill_by_batches(HostMatrix& matrix, uint64_t seed, Stream stream, const Fill& fill) {
  uint16_t* elements = matrix.row16(0);
  const int64_t size = matrix.size();
  const int64_t batches = (size + batch_elements - 1) / batch_elements;
  parallel_for(batches, kGrain / batch_elements, [&](int64_t begin, int64_t end, int) {
    for (int64_t index = begin; index < end; ++index) {
      const PhiloxBatch batch = philox_batch(seed, stream, static_cast<uint64_t>(index * kPhiloxLanes));
      uint16_t out[batch_elements];
      fill(batch, out);
      const int64_t first = index * batch_elements;
      std::copy_n(out, std::min<int64_t>(batch_elements, size - first), elements + first);
    }
  });
}

template <DType type>
void fill_random_as(HostMatrix& matrix, uint64_t seed, Stream stream) {
  fill_by_batches<2 * kPhiloxLanes>(matrix, seed, stream, [](const PhiloxBatch& batch, uint16_t* out) {
    for (int half = 0; half < 2; ++half) {
      for (int lane = 0; lane < kPhiloxLanes; ++lane) {
        const int32_t bell = bell_shaped(batch.word[2 * half][lane], batch.word[2 * half + 1][lane]);
        out[half * kPhiloxLanes + lane] = scaled_to_16_bits<type>(11 * bell);
      }
    }
  });
}

template <DType type>
void fill_integer_as(HostMatrix& matrix, uint64_t seed, Stream stream, IntegerRange range) {
  const uint32_t choices = static_cast<uint32_t>(2 * range.magnitude + 1);
  fill_by_batches<4 * kPhiloxLanes>(matrix, seed, stream, [=](const PhiloxBatch& batch, uint16_t* out) {
    for (int word = 0; word < 4; ++word) {
      for (int lane = 0; lane < kPhiloxLanes; ++lane) {
        const uint32_t bits = batch.word[word][lane];
        const int32_t drawn = static_cast<int32_t>(((bits & 0xFFFFu) * choices) >> 16) - range.magnitude;
        out[word * kPhiloxLanes + lane] = small_integer<type>((bits >> 16) < range.keep ? drawn : 0);
      }
    }
  });
}

constexpr uint64_t integer_sqrt(uint64_t value) {
  uint64_t root = 0;
  for (uint64_t bit = uint64_t{1} << 31; bit != 0; bit >>= 1) {
    if ((root + bit) * (root + bit) <= value) root += bit;
  }
  return root;
}

}  // namespace

void fill_random(HostMatrix& matrix, uint64_t seed, Stream stream) {
  matrix.type() == DType::f16 ? fill_random_as<DType::f16>(matrix, seed, stream)
                              : fill_random_as<DType::bf16>(matrix, seed, stream);
}

void fill_integer(HostMatrix& matrix, uint64_t seed, Stream stream, IntegerRange range) {
  matrix.type() == DType::f16 ? fill_integer_as<DType::f16>(matrix, seed, stream, range)
                              : fill_integer_as<DType::bf16>(matrix, seed, stream, range);
}

IntegerRange integer_range(int64_t k, DType out) {
  constexpr int kLargest = 127;  // exact in bf16, whose significand has 8 bits
  IntegerRange range;
  const auto sums_fit = [&](int64_t r) {
    if (out == DType::f32) return k * r * r < (int64_t{1} << 24);
    // A uniform integer in [-r, r] has variance r(r+1)/3, so a sum of k products has k (r(r+1)/3)^2.
    const int64_t deviation = (out == DType::f16 ? 2048 : 256) / 8;
    return k * r * (r + 1) * r * (r + 1) <= 9 * deviation * deviation;
  };
  while (range.magnitude < kLargest && sums_fit(range.magnitude + 1)) ++range.magnitude;
  if (out != DType::f32 && !sums_fit(1)) {
    // -1, 0, 1 kept with probability q have variance 2q/3: q = 1.5 deviation / sqrt(k).
    const uint64_t deviation = (out == DType::f16 ? 2048 : 256) / 8;
    range.keep = static_cast<uint32_t>(std::max<uint64_t>(
        1, std::min<uint64_t>(
               65536, 65536 * 3 * deviation / 2 / std::max<uint64_t>(1, integer_sqrt(static_cast<uint64_t>(k))))));
  }
  return range;
}

}  // namespace ladder
