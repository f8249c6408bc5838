// The form that tensor maps have on the chip. cuTensorMapEncodeTiled here makes maps of a form of ours, but CuTe DSL's
// host code writes the chip's without asking a driver.
//
// No document describes it. These fields were read off maps that an H200's driver made of known arguments
// (tests/golden/h200_tensor_maps.json); CuTe DSL's maps for Blackwell agree, but for the mode. A map with anything in
// the bits that are zero in all of them is none.
//
//   word (64 bits)   bits   field
//   0                all    address
//   1                0-3    mode: 0 tile (CuTe DSL: 2), 1 im2col
//                    4-6    rank - 1
//                    7-10   type
//                    11-12  interleave
//                    13-14  swizzle
//                    15     fill with NaN
//                    16     rounded to TF32
//                    17-18  L2 promotion
//                    19-20  swizzle atomicity, with the values of tensormap.replace (CuTe DSL; an H200 has none)
//                    21     CuTe DSL sets it for floating point of 16 and 32 bits; not looked at
//                    32-63  stride 0 >> 4, its low half
//   2, 3             32 bits each: stride 1 >> 4, stride 2 >> 4, stride 3 >> 4; then the high 4 bits of the four
//   4, 5, 6          32 bits each: dimension - 1, five of them
//   6                32-46  element stride - 1, 3 bits each
//   6, 7             from bit 56 of word 6 on, 8 bits each: box - 1, five of them
//
// Of an im2col map, channels - 1 in the place of the first box; word 7 holds the corners, each of 16, 8 or 5 bits by
// the rank, the lower ones from bit 0 and the upper ones from bit 16 on, and pixels - 1 from bit 32 on.
//
// The second half of the 128 bytes is not looked at: the driver leaves sums of the box's there, CuTe DSL whatever was
// there before.

#include <algorithm>
#include <cstring>

#include "emulator/units/tensor_map.h"

namespace emu {
namespace {

constexpr uint64_t field(uint64_t word, int first, int bits) {
  return word >> first & ((uint64_t{1} << bits) - 1);
}

std::optional<TensorMapType> type_of(uint64_t code, bool rounded) {
  using enum TensorMapType;
  if (rounded) {
    if (code == 7) return tfloat32;
    if (code == 8) return tfloat32_ftz;
    return std::nullopt;
  }
  constexpr TensorMapType kTypes[] = {uint8,   uint16,      uint32,  int32,    uint64,    int64,      float16,
                                      float32, float32_ftz, float64, bfloat16, u4_align8, u4_align16, u6_align16};
  if (code < std::size(kTypes)) return kTypes[code];
  return std::nullopt;
}

std::optional<TensorMapSwizzle> swizzle_of(uint64_t span, uint64_t atomicity) {
  using enum TensorMapSwizzle;
  if (atomicity == 0) return static_cast<TensorMapSwizzle>(span);
  if (span != 3) return std::nullopt;
  return atomicity == 1 ? b128_atom32 : atomicity == 2 ? b128_atom32_flip8 : b128_atom64;
}

}  // namespace

std::optional<TensorMap> decode_chip_tensor_map(const std::byte* object) {
  std::array<uint64_t, 8> word;
  std::memcpy(word.data(), object, sizeof word);
  if (std::all_of(word.begin() + 1, word.end(), [](uint64_t w) { return w == 0; })) return std::nullopt;
  const uint64_t mode = field(word[1], 0, 4), interleave = field(word[1], 11, 2);
  const bool im2col = mode == 1;
  const auto type = type_of(field(word[1], 7, 4), field(word[1], 16, 1));
  const auto swizzle = swizzle_of(field(word[1], 13, 2), field(word[1], 19, 2));
  const auto rank = static_cast<uint32_t>(field(word[1], 4, 3)) + 1;
  const bool rest_is_zero = field(word[1], 22, 10) == 0 && field(word[3], 48, 16) == 0 && field(word[6], 47, 9) == 0 &&
                            field(word[7], im2col ? 42 : 32, im2col ? 22 : 32) == 0;
  if (mode > 2 || rank > 5 || (im2col && rank < 3) || interleave > 2 || !type || !swizzle || !rest_is_zero)
    return std::nullopt;

  TensorMap map;
  map.type = *type;
  map.interleave = static_cast<TensorMapInterleave>(interleave);
  map.swizzle = *swizzle;
  map.promotion = static_cast<TensorMapPromotion>(field(word[1], 17, 2));
  map.fill = static_cast<TensorMapFill>(field(word[1], 15, 1));
  map.rank = rank;
  map.address = word[0];
  map.im2col = im2col;
  const uint64_t strides[] = {word[1] >> 32, field(word[2], 0, 32), word[2] >> 32, field(word[3], 0, 32)};
  for (uint32_t d = 0; d < 5; ++d) {
    const uint64_t less_one = field(word[4 + d / 2], d % 2 ? 32 : 0, 32);
    const uint64_t step = field(word[6], static_cast<int>(32 + 3 * d), 3);
    uint64_t box = d == 0 ? field(word[6], 56, 8) : field(word[7], static_cast<int>(8 * (d - 1)), 8);
    if (im2col && d > 0) box = d == 1 ? field(word[7], 32, 10) : 0;
    if (d >= rank && (less_one != 0 || box != 0 || step != 0)) return std::nullopt;
    map.dims[d] = less_one + 1;
    map.box[d] = static_cast<uint32_t>(box) + 1;
    // Without interleave there is no step along dimension 0, whatever is written there.
    if (d > 0 || map.interleave != TensorMapInterleave::none) map.element_strides[d] = static_cast<uint32_t>(step) + 1;
    if (d > 0 && d < rank)
      map.strides_bytes[d] = (strides[d - 1] | field(word[3], static_cast<int>(32 + 4 * (d - 1)), 4) << 32) << 4;
  }
  const int corner_bits = rank == 3 ? 16 : rank == 4 ? 8 : 5;
  for (uint32_t d = 0; im2col && d + 2 < rank; ++d) {
    auto corner = [&](int first) {
      const uint64_t bits = field(word[7], first + static_cast<int>(d) * corner_bits, corner_bits);
      return static_cast<int32_t>(bits) - (bits >> (corner_bits - 1) ? 1 << corner_bits : 0);
    };
    map.lower[d] = corner(0);
    map.upper[d] = corner(16);
  }
  map.replaced = true;  // nobody has looked at it: whether its fields go together is seen at use
  return map;
}

}  // namespace emu
