#pragma once
// Tensor maps: what cuTensorMapEncodeTiled takes, the 128 opaque bytes it hands out, and what the TMA unit reads out of
// them.
//
// The 128 bytes have a layout of our own, sealed by a magic number, a version and a checksum: a kernel that passes
// anything else as a map, or a map some of whose bytes were overwritten, traps with a clear message instead of copying
// from nowhere. (Maps in the chip's own form are read as well: tensor_map_chip.cpp.) A field is changed
// (tensormap.replace) by decode, change, encode. Sources: CUDA Driver API, cuTensorMapEncodeTiled,
// cuTensorMapEncodeIm2col (cuda.h 13.0); PTX ISA, "Tensor-map" and "Restriction on Tensor Copy instructions".

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "emulator/machine/chip.h"

namespace emu {

/// Values of CUtensorMapDataType.
enum class TensorMapType : uint8_t {
  uint8 = 0,
  uint16 = 1,
  uint32 = 2,
  int32 = 3,
  uint64 = 4,
  int64 = 5,
  float16 = 6,
  float32 = 7,
  float64 = 8,
  bfloat16 = 9,
  float32_ftz = 10,
  tfloat32 = 11,
  tfloat32_ftz = 12,
  u4_align8 = 13,   ///< 16 packed 4-bit values in 8 bytes, in shared memory too
  u4_align16 = 14,  ///< 16 packed 4-bit values in 8 bytes; 16 bytes in shared memory
  u6_align16 = 15,  ///< 16 packed 6-bit values in 12 bytes; 16 bytes in shared memory
};

/// Values of CUtensorMapInterleave.
enum class TensorMapInterleave : uint8_t { none = 0, bytes16 = 1, bytes32 = 2 };

/// Values of CUtensorMapSwizzle.
enum class TensorMapSwizzle : uint8_t {
  none = 0,
  b32 = 1,
  b64 = 2,
  b128 = 3,
  b128_atom32 = 4,
  b128_atom32_flip8 = 5,
  b128_atom64 = 6,
};

/// Values of CUtensorMapL2promotion. Speed only; the emulator carries it along.
enum class TensorMapPromotion : uint8_t { none = 0, l2_64b = 1, l2_128b = 2, l2_256b = 3 };

/// Values of CUtensorMapFloatOOBfill.
enum class TensorMapFill : uint8_t { zeros = 0, nan = 1 };

std::string_view name_of(TensorMapType type);        ///< "FLOAT16": the enumerator without its CUDA prefix
std::string_view name_of(TensorMapSwizzle swizzle);  ///< "128B_ATOM_32B"
std::string_view name_of(TensorMapInterleave interleave);

/// Bits of one element in global memory: 4, 6, 8, 16, 32 or 64.
uint32_t element_bits(TensorMapType type);

/// Bytes of one row of the swizzle pattern: 32, 64 or 128; 0 without swizzle.
constexpr uint32_t swizzle_span_bytes(TensorMapSwizzle swizzle) {
  switch (swizzle) {
    case TensorMapSwizzle::none:
      return 0;
    case TensorMapSwizzle::b32:
      return 32;
    case TensorMapSwizzle::b64:
      return 64;
    default:
      return 128;
  }
}

/// Where a byte lies in shared memory: the absolute address inside the CTA's window in, the same out. PTX ISA,
/// "Swizzling Modes". Only bits 3 to 6 change, by bits 7 to 9: within an aligned 128-byte line the XOR is one constant.
constexpr uint32_t swizzled(TensorMapSwizzle swizzle, uint32_t address) {
  switch (swizzle) {
    case TensorMapSwizzle::none:
      return address;
    case TensorMapSwizzle::b32:
      return address ^ ((address >> 3) & 0x10);
    case TensorMapSwizzle::b64:
      return address ^ ((address >> 3) & 0x30);
    case TensorMapSwizzle::b128:
      return address ^ ((address >> 3) & 0x70);
    case TensorMapSwizzle::b128_atom32:
      return address ^ ((address >> 2) & 0x60);
    case TensorMapSwizzle::b128_atom32_flip8:
      return address ^ ((address >> 2) & 0x60) ^ ((address >> 4) & 0x08);
    case TensorMapSwizzle::b128_atom64:
      return address ^ ((address >> 1) & 0x40);
  }
  return address;
}

/// A tensor map, decoded. Entries at and beyond `rank` are 1 (strides 0).
struct TensorMap {
  TensorMapType type = TensorMapType::uint8;
  TensorMapInterleave interleave = TensorMapInterleave::none;
  TensorMapSwizzle swizzle = TensorMapSwizzle::none;
  TensorMapPromotion promotion = TensorMapPromotion::none;
  TensorMapFill fill = TensorMapFill::zeros;
  uint32_t rank = 1;
  uint64_t address = 0;                         ///< global address of element (0, 0, ..)
  std::array<uint64_t, 5> dims{1, 1, 1, 1, 1};  ///< elements, innermost first
  std::array<uint64_t, 5> strides_bytes{0, 0, 0, 0,
                                        0};    ///< [d]: bytes from one index of dimension d to the next; [0] unused
  std::array<uint32_t, 5> box{1, 1, 1, 1, 1};  ///< elements traversed, before element strides
  std::array<uint32_t, 5> element_strides{1, 1, 1, 1, 1};
  /// Im2col: box[0] channels of each of box[1] pixels; a pixel's corner runs through the box from `lower` to the end of
  /// the tensor plus `upper`, inclusive, in dimensions 1 to rank - 2 (innermost first).
  bool im2col = false;
  std::array<int32_t, 3> lower{}, upper{};
  bool replaced = false;  ///< fields were changed by tensormap.replace: whether they go together is seen at use
  bool operator==(const TensorMap&) const = default;
};

/// The arguments of cuTensorMapEncodeTiled or cuTensorMapEncodeIm2col as the caller gave them: enums as plain numbers,
/// arrays as pointers that may be null.
struct TensorMapArguments {
  const void* map = nullptr;  ///< where the 128 bytes will go
  uint32_t type = 0;
  uint32_t rank = 0;
  uint64_t global_address = 0;
  const uint64_t* global_dim = nullptr;       ///< rank values, elements
  const uint64_t* global_strides = nullptr;   ///< rank - 1 values, bytes; dimension 0 is dense
  const uint32_t* box_dim = nullptr;          ///< rank values, elements; im2col: channels, pixels
  const uint32_t* element_strides = nullptr;  ///< rank values
  uint32_t interleave = 0;
  uint32_t swizzle = 0;
  uint32_t l2_promotion = 0;
  uint32_t oob_fill = 0;
  bool im2col = false;
  const int32_t* lower_corner = nullptr;  ///< im2col: rank - 2 values, innermost first
  const int32_t* upper_corner = nullptr;
};

/// Why the driver would answer CUDA_ERROR_INVALID_VALUE: one sentence with the argument, its value, the rule and the
/// way out. Nothing when the arguments are fine for `chip`.
std::optional<std::string> tensor_map_refusal(const TensorMapArguments& arguments, const Chip& chip);

/// The map that these arguments describe. Only after tensor_map_refusal found nothing.
TensorMap make_tensor_map(const TensorMapArguments& arguments);

inline constexpr size_t kTensorMapBytes = 128;
using TensorMapObject = std::array<std::byte, kTensorMapBytes>;

TensorMapObject encode_tensor_map(const TensorMap& map);

/// Do these 128 bytes look like a map that encode_tensor_map made?
bool holds_tensor_map(const std::byte* object);

/// Whether the 128 bytes are zeros: no map yet, but what tensormap.replace can make one of, field by field.
bool is_blank_tensor_map(const std::byte* object);

/// Reads the 128 bytes at `object`. Throws Trap (illegal instruction) when they are not a map made by
/// encode_tensor_map. `object_address` is the address the kernel gave, for the message; a map must be aligned to 64
/// bytes.
TensorMap decode_tensor_map(const std::byte* object, uint64_t object_address);

/// A map in the form that it has on the chip, as CuTe DSL's host code writes it; nothing when the bytes are none.
/// decode_tensor_map takes these too.
std::optional<TensorMap> decode_chip_tensor_map(const std::byte* object);

}  // namespace emu
