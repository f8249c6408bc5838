#include "emulator/units/tensor_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "emulator/machine/trap.h"

namespace emu {
namespace {

constexpr std::array<std::string_view, 16> kTypeNames = {
    "UINT8",   "UINT16",   "UINT32",      "INT32",    "UINT64",       "INT64",        "FLOAT16",       "FLOAT32",
    "FLOAT64", "BFLOAT16", "FLOAT32_FTZ", "TFLOAT32", "TFLOAT32_FTZ", "16U4_ALIGN8B", "16U4_ALIGN16B", "16U6_ALIGN16B"};
constexpr std::array<std::string_view, 7> kSwizzleNames = {
    "NONE", "32B", "64B", "128B", "128B_ATOM_32B", "128B_ATOM_32B_FLIP_8B", "128B_ATOM_64B"};
constexpr std::array<std::string_view, 3> kInterleaveNames = {"NONE", "16B", "32B"};

// The 128 bytes. Fields are stored as they are (little endian hosts only); what a dimension does not have stays 1 or 0.
struct Packed {
  uint32_t magic;
  uint16_t version;
  uint8_t rank;
  uint8_t type;
  // CUTLASS and Triton clear bit 21 of the second word in every map of a small tensor, to get round something in
  // NVIDIA's drivers of CUDA 13.0 and 13.1 (cute/atom/copy_traits_sm90_tma.hpp). Nothing of ours may lie there. The
  // bits that are set tell our form from the chip's (tensor_map_chip.cpp), in which they are zero.
  uint64_t second_word;
  uint64_t address;
  uint32_t dims_less_one[5];
  uint8_t interleave, swizzle, promotion, fill;
  uint64_t strides_bytes[4];
  uint16_t box[5];
  uint8_t element_strides[5];
  uint8_t replaced, im2col, zero_before;
  int16_t lower[3], upper[3];
  uint8_t zero[10];
  uint64_t checksum;  // of all before
};
static_assert(sizeof(Packed) == kTensorMapBytes);

constexpr uint32_t kMagic = 0x50414D54;  // "TMAP"
constexpr uint16_t kVersion = 2;
constexpr uint64_t kSecondWord = uint64_t{0xFF} << 23;

uint64_t checksum_of(const Packed& packed) {
  uint64_t words[offsetof(Packed, checksum) / 8];
  std::memcpy(words, &packed, sizeof words);
  uint64_t sum = kVersion;
  for (const uint64_t word : words) {
    sum = (sum ^ word) * 0x9E3779B97F4A7C15;
    sum ^= sum >> 32;
  }
  return sum;
}

}  // namespace

std::string_view name_of(TensorMapType type) {
  return kTypeNames[static_cast<size_t>(type)];
}
std::string_view name_of(TensorMapSwizzle swizzle) {
  return kSwizzleNames[static_cast<size_t>(swizzle)];
}
std::string_view name_of(TensorMapInterleave interleave) {
  return kInterleaveNames[static_cast<size_t>(interleave)];
}

uint32_t element_bits(TensorMapType type) {
  constexpr std::array<uint8_t, 16> kBits = {8, 16, 32, 32, 64, 64, 16, 32, 64, 16, 32, 32, 32, 4, 4, 6};
  return kBits[static_cast<size_t>(type)];
}

TensorMap make_tensor_map(const TensorMapArguments& arguments) {
  TensorMap map;
  map.type = static_cast<TensorMapType>(arguments.type);
  map.interleave = static_cast<TensorMapInterleave>(arguments.interleave);
  map.swizzle = static_cast<TensorMapSwizzle>(arguments.swizzle);
  map.promotion = static_cast<TensorMapPromotion>(arguments.l2_promotion);
  map.fill = static_cast<TensorMapFill>(arguments.oob_fill);
  map.rank = arguments.rank;
  map.address = arguments.global_address;
  map.im2col = arguments.im2col;
  for (uint32_t d = 0; d < map.rank; ++d) {
    map.dims[d] = arguments.global_dim[d];
    if (!map.im2col || d < 2) map.box[d] = arguments.box_dim[d];
    // Without interleave there is no step along dimension 0, whatever the argument says.
    const bool ignored = d == 0 && map.interleave == TensorMapInterleave::none;
    map.element_strides[d] = ignored ? 1 : arguments.element_strides[d];
    if (d > 0) map.strides_bytes[d] = arguments.global_strides[d - 1];
  }
  for (uint32_t d = 0; map.im2col && d + 2 < map.rank; ++d) {
    map.lower[d] = arguments.lower_corner[d];
    map.upper[d] = arguments.upper_corner[d];
  }
  return map;
}

TensorMapObject encode_tensor_map(const TensorMap& map) {
  Packed packed{};
  packed.magic = kMagic;
  packed.version = kVersion;
  packed.second_word = kSecondWord;
  packed.rank = static_cast<uint8_t>(map.rank);
  packed.type = static_cast<uint8_t>(map.type);
  packed.address = map.address;
  packed.interleave = static_cast<uint8_t>(map.interleave);
  packed.swizzle = static_cast<uint8_t>(map.swizzle);
  packed.promotion = static_cast<uint8_t>(map.promotion);
  packed.fill = static_cast<uint8_t>(map.fill);
  packed.replaced = map.replaced;
  packed.im2col = map.im2col;
  for (size_t d = 0; d < 3; ++d) {
    packed.lower[d] = static_cast<int16_t>(map.lower[d]);
    packed.upper[d] = static_cast<int16_t>(map.upper[d]);
  }
  for (size_t d = 0; d < 5; ++d) {
    packed.dims_less_one[d] = static_cast<uint32_t>(map.dims[d] - 1);
    packed.box[d] = static_cast<uint16_t>(map.box[d]);
    packed.element_strides[d] = static_cast<uint8_t>(map.element_strides[d]);
    if (d > 0) packed.strides_bytes[d - 1] = map.strides_bytes[d];
  }
  packed.checksum = checksum_of(packed);
  TensorMapObject object;
  std::memcpy(object.data(), &packed, sizeof packed);
  return object;
}

bool holds_tensor_map(const std::byte* object) {
  Packed packed;
  std::memcpy(&packed, object, sizeof packed);
  return packed.magic == kMagic && packed.version == kVersion && packed.checksum == checksum_of(packed);
}

bool is_blank_tensor_map(const std::byte* object) {
  return std::all_of(object, object + kTensorMapBytes, [](std::byte byte) { return byte == std::byte{0}; });
}

TensorMap decode_tensor_map(const std::byte* object, uint64_t object_address) {
  constexpr auto kSource = "CUDA Driver API, cuTensorMapEncodeTiled";
  if (object_address % 64 != 0) {
    throw Trap(
        FaultCode::misaligned_address,
        fmt::format("tensor map at {:#x}: a map must be aligned to 64 bytes; pass it as a `const __grid_constant__ "
                    "CUtensorMap` parameter, or keep it in constant or global memory at such an address",
                    object_address),
        kSource);
  }
  Packed packed;
  std::memcpy(&packed, object, sizeof packed);
  if (packed.magic != kMagic || packed.version != kVersion) {
    if (const auto map = decode_chip_tensor_map(object)) return *map;
    throw Trap(
        FaultKind::tensor_map,
        fmt::format(
            "no tensor map at {:#x}: the 128 bytes there (they begin with {:#010x}) were not made by "
            "cuTensorMapEncodeTiled; is the operand the map's address, and is the map a `const __grid_constant__` "
            "parameter?",
            object_address, packed.magic),
        kSource);
  }
  if (packed.checksum != checksum_of(packed)) {
    throw Trap(
        FaultKind::tensor_map,
        fmt::format(
            "the tensor map at {:#x} was changed since cuTensorMapEncodeTiled made it: its checksum is {:#x}, its "
            "bytes give {:#x}. A map is opaque; change it with tensormap.replace only, and copy all 128 bytes",
            object_address, packed.checksum, checksum_of(packed)),
        kSource);
  }
  TensorMap map;
  map.type = static_cast<TensorMapType>(packed.type);
  map.interleave = static_cast<TensorMapInterleave>(packed.interleave);
  map.swizzle = static_cast<TensorMapSwizzle>(packed.swizzle);
  map.promotion = static_cast<TensorMapPromotion>(packed.promotion);
  map.fill = static_cast<TensorMapFill>(packed.fill);
  map.rank = packed.rank;
  map.replaced = packed.replaced != 0;
  map.im2col = packed.im2col != 0;
  for (size_t d = 0; d < 3; ++d) {
    map.lower[d] = packed.lower[d];
    map.upper[d] = packed.upper[d];
  }
  map.address = packed.address;
  for (size_t d = 0; d < 5; ++d) {
    map.dims[d] = uint64_t{packed.dims_less_one[d]} + 1;
    map.box[d] = packed.box[d];
    map.element_strides[d] = packed.element_strides[d];
    if (d > 0) map.strides_bytes[d] = packed.strides_bytes[d - 1];
  }
  return map;
}

}  // namespace emu
