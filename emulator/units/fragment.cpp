#include "emulator/units/fragment.h"

#include <cstring>

#include "hwy/highway.h"

namespace emu {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

constexpr uint32_t kLanes = 32;

// Lanes 4r to 4r + 3 hold a piece of row r. With 32-bit elements the 8 columns of a core matrix are those lanes of two
// registers, interleaved; with f16 they are those lanes of one register.

#if HWY_TARGET == HWY_SCALAR
void interleave(const uint32_t* even, const uint32_t* odd, uint32_t* out) {
  for (uint32_t i = 0; i < 4; ++i) out[2 * i] = even[i], out[2 * i + 1] = odd[i];
}
void separate(const uint32_t* in, uint32_t* even, uint32_t* odd) {
  for (uint32_t i = 0; i < 4; ++i) even[i] = in[2 * i], odd[i] = in[2 * i + 1];
}
#else
HWY_INLINE void interleave(const uint32_t* even, const uint32_t* odd, uint32_t* out) {
  const hn::Full128<uint32_t> d;
  const auto a = hn::LoadU(d, even), b = hn::LoadU(d, odd);
  hn::StoreU(hn::InterleaveLower(d, a, b), d, out);
  hn::StoreU(hn::InterleaveUpper(d, a, b), d, out + 4);
}
HWY_INLINE void separate(const uint32_t* in, uint32_t* even, uint32_t* odd) {
  const hn::Full128<uint32_t> d;
  const auto a = hn::LoadU(d, in), b = hn::LoadU(d, in + 4);
  hn::StoreU(hn::ConcatEven(d, b, a), d, even);
  hn::StoreU(hn::ConcatOdd(d, b, a), d, odd);
}
#endif

}  // namespace

void accumulator_to_rows(AccumulatorType type, uint32_t n, const uint32_t* const* registers, uint32_t* rows,
                         uint32_t stride) {
  const bool half = type == AccumulatorType::f16;
  for (uint32_t core = 0; core < n / 8; ++core) {
    for (uint32_t upper = 0; upper < 2; ++upper) {
      for (uint32_t row = 0; row < 8; ++row) {
        uint32_t* to = rows + (row + 8 * upper) * stride + 8 * core;
        if (half) {
          const uint32_t* from = registers[2 * core + upper] + 4 * row;
          for (uint32_t i = 0; i < 4; ++i) to[2 * i] = from[i] & 0xFFFF, to[2 * i + 1] = from[i] >> 16;
        } else {
          const uint32_t* const* pair = registers + 4 * core + 2 * upper;
          interleave(pair[0] + 4 * row, pair[1] + 4 * row, to);
        }
      }
    }
  }
}

void rows_to_accumulator(AccumulatorType type, uint32_t n, const uint32_t* rows, uint32_t stride,
                         uint32_t* const* registers) {
  const bool half = type == AccumulatorType::f16;
  for (uint32_t core = 0; core < n / 8; ++core) {
    for (uint32_t upper = 0; upper < 2; ++upper) {
      for (uint32_t row = 0; row < 8; ++row) {
        const uint32_t* from = rows + (row + 8 * upper) * stride + 8 * core;
        if (half) {
          uint32_t* to = registers[2 * core + upper] + 4 * row;
          for (uint32_t i = 0; i < 4; ++i) to[i] = (from[2 * i] & 0xFFFF) | from[2 * i + 1] << 16;
        } else {
          uint32_t* const* pair = registers + 4 * core + 2 * upper;
          separate(from, pair[0] + 4 * row, pair[1] + 4 * row);
        }
      }
    }
  }
}

void multiplicand_to_rows(const uint32_t* const* registers, std::byte* rows) {
  for (uint32_t j = 0; j < 4; ++j)
    for (uint32_t lane = 0; lane < kLanes; lane += 4)
      std::memcpy(rows + (lane / 4 + 8 * (j % 2)) * 32 + 16 * (j / 2), registers[j] + lane, 16);
}

}  // namespace emu
