// The form that tensor maps have on the chip. cuTensorMapEncodeTiled here makes maps of a form of ours, but CuTe DSL's
// host code writes the chip's without asking a driver.
//
// No document describes it. These fields were read off maps that CuTe DSL 4.8 wrote for known tensors (its own name for
// the type's bits: "bits 74-71 of the TMA descriptor"), and a map with anything in the bits that were zero in all of
// them is none:
//
//   word (64 bits)   bits   field
//   0                all    address
//   1                0-3    2
//                    4-6    rank - 1
//                    7-10   type
//                    13-14  swizzle
//                    16     rounded to TF32
//                    17-18  L2 promotion
//                    19-20  swizzle atomicity, with the values of tensormap.replace
//                    21     set for 16- and 32-bit floating point that is not rounded; not looked at
//                    32-63  stride 0 >> 4
//   2, 3             32 bits each: stride 1 >> 4, stride 2 >> 4, stride 3 >> 4
//   4, 5, 6          32 bits each: dimension - 1, five of them
//   6, 7             from bit 56 of word 6 on, 8 bits each: box - 1, five of them
//
// The second half of the 128 bytes is not looked at: what CuTe DSL leaves there is whatever was there before.

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
  const auto type = type_of(field(word[1], 7, 4), field(word[1], 16, 1));
  const auto swizzle = swizzle_of(field(word[1], 13, 2), field(word[1], 19, 2));
  const bool rest_is_zero = field(word[1], 11, 2) == 0 && field(word[1], 15, 1) == 0 && field(word[1], 22, 10) == 0 &&
                            field(word[3], 32, 32) == 0 && field(word[6], 32, 24) == 0 && field(word[7], 32, 32) == 0;
  const auto rank = static_cast<uint32_t>(field(word[1], 4, 3)) + 1;
  if (field(word[1], 0, 4) != 2 || rank > 5 || !type || !swizzle || !rest_is_zero) return std::nullopt;

  TensorMap map;
  map.type = *type;
  map.swizzle = *swizzle;
  map.promotion = static_cast<TensorMapPromotion>(field(word[1], 17, 2));
  map.rank = rank;
  map.address = word[0];
  const uint64_t strides[] = {word[1] >> 32, word[2] & 0xFFFFFFFF, word[2] >> 32, word[3] & 0xFFFFFFFF};
  for (uint32_t d = 0; d < 5; ++d) {
    const uint64_t less_one = field(word[4 + d / 2], d % 2 ? 32 : 0, 32);
    const uint64_t box = d == 0 ? field(word[6], 56, 8) : field(word[7], static_cast<int>(8 * (d - 1)), 8);
    if (d >= rank && (less_one != 0 || box != 0)) return std::nullopt;
    map.dims[d] = less_one + 1;
    map.box[d] = static_cast<uint32_t>(box) + 1;
    if (d > 0 && d < rank) map.strides_bytes[d] = strides[d - 1] << 4;
  }
  map.replaced = true;  // nobody has looked at it: whether its fields go together is seen at use
  return map;
}

}  // namespace emu
