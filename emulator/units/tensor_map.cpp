#include "emulator/units/tensor_map.h"

#include <fmt/format.h>

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

bool is_padded(TensorMapType type) {
  return type == TensorMapType::u4_align16 || type == TensorMapType::u6_align16;
}
bool is_packed(TensorMapType type) {
  return type >= TensorMapType::u4_align8;
}

bool is_float(TensorMapType type) {
  return !is_packed(type) && type >= TensorMapType::float16;
}

// One line per rule; the first broken one is told.
class Checker {
 public:
  Checker(const TensorMapArguments& a, const Chip& chip) : a_(a), chip_(chip) {}

  std::optional<std::string> refusal() {
    pointers() && enums() && address() && dims() && strides() && box() && steps() && modes();
    if (why_.empty()) return std::nullopt;
    return "cuTensorMapEncodeTiled: " + why_;
  }

 private:
  template <class... Values>
  bool refuse(fmt::format_string<Values...> text, Values&&... values) {
    why_ = fmt::format(text, std::forward<Values>(values)...);
    return false;
  }

  bool pointers() {
    if (a_.map == nullptr) return refuse("tensorMap is a null pointer; pass the CUtensorMap to fill in");
    if (reinterpret_cast<uintptr_t>(a_.map) % 64 != 0) {
      return refuse("tensorMap = {}: the object must be aligned to 64 bytes; declare it as CUtensorMap, which is",
                    a_.map);
    }
    if (a_.rank < 1 || a_.rank > 5) return refuse("tensorRank = {}: a tensor map has 1 to 5 dimensions", a_.rank);
    if (a_.global_dim == nullptr) return refuse("globalDim is a null pointer; pass {} sizes", a_.rank);
    if (a_.global_strides == nullptr && a_.rank > 1) {
      return refuse("globalStrides is a null pointer; pass {} strides in bytes", a_.rank - 1);
    }
    if (a_.box_dim == nullptr) return refuse("boxDim is a null pointer; pass {} sizes", a_.rank);
    if (a_.element_strides == nullptr)
      return refuse("elementStrides is a null pointer; pass {} steps, usually all 1", a_.rank);
    return true;
  }

  bool enums() {
    if (a_.type >= kTypeNames.size())
      return refuse("tensorDataType = {}: no such CUtensorMapDataType (0 to 15)", a_.type);
    if (a_.interleave >= kInterleaveNames.size()) {
      return refuse("interleave = {}: no such CUtensorMapInterleave (0 to 2)", a_.interleave);
    }
    if (a_.swizzle >= kSwizzleNames.size())
      return refuse("swizzle = {}: no such CUtensorMapSwizzle (0 to 6)", a_.swizzle);
    if (a_.l2_promotion > 3)
      return refuse("l2Promotion = {}: no such CUtensorMapL2promotion (0 to 3)", a_.l2_promotion);
    if (a_.oob_fill > 1) return refuse("oobFill = {}: no such CUtensorMapFloatOOBfill (0 or 1)", a_.oob_fill);
    type_ = static_cast<TensorMapType>(a_.type);
    interleave_ = static_cast<TensorMapInterleave>(a_.interleave);
    swizzle_ = static_cast<TensorMapSwizzle>(a_.swizzle);
    if (chip_.major < 10 && a_.swizzle > 3) {
      return refuse("swizzle = {}: {} has NONE, 32B, 64B and 128B only; the others need compute capability 10.0",
                    name_of(swizzle_), chip_.name);
    }
    if (chip_.major < 10 && is_packed(type_)) {
      return refuse("tensorDataType = {}: {} has no 4-bit and 6-bit types; they need compute capability 10.0",
                    name_of(type_), chip_.name);
    }
    if (interleave_ != TensorMapInterleave::none && a_.rank < 3) {
      return refuse("tensorRank = {}: interleave {} needs at least 3 dimensions", a_.rank, name_of(interleave_));
    }
    return true;
  }

  // 32 bytes where the unit moves 32-byte units.
  uint64_t granule() const { return interleave_ == TensorMapInterleave::bytes32 || is_padded(type_) ? 32 : 16; }
  std::string why_granule() const {
    if (granule() == 16) return "";
    return fmt::format(" with {}", is_padded(type_) ? name_of(type_) : "interleave 32B");
  }

  bool address() {
    if (a_.global_address % granule() != 0) {
      return refuse("globalAddress = {:#x}: it must be a multiple of {} bytes{}; it is {} past one", a_.global_address,
                    granule(), why_granule(), a_.global_address % granule());
    }
    return true;
  }

  bool dims() {
    for (uint32_t d = 0; d < a_.rank; ++d) {
      if (a_.global_dim[d] == 0 || a_.global_dim[d] > uint64_t{1} << 32) {
        return refuse("globalDim[{}] = {}: each dimension has 1 to 2^32 elements", d, a_.global_dim[d]);
      }
    }
    const uint64_t multiple = is_padded(type_) ? 128 : type_ == TensorMapType::u4_align8 ? 2 : 1;
    if (a_.global_dim[0] % multiple != 0) {
      return refuse("globalDim[0] = {}: with {} it must be a multiple of {}", a_.global_dim[0], name_of(type_),
                    multiple);
    }
    return true;
  }

  bool strides() {
    for (uint32_t d = 0; d + 1 < a_.rank; ++d) {
      const uint64_t stride = a_.global_strides[d];
      if (stride % granule() != 0) {
        return refuse(
            "globalStrides[{}] = {} bytes (dimension {}): each stride must be a multiple of {} bytes{}; pad the rows, "
            "for example "
            "to {} bytes",
            d, stride, d + 1, granule(), why_granule(), (stride / granule() + 1) * granule());
      }
      if (stride >= uint64_t{1} << 40) {
        return refuse("globalStrides[{}] = {} bytes (dimension {}): each stride must be below 2^40 bytes", d, stride,
                      d + 1);
      }
    }
    return true;
  }

  bool box() {
    for (uint32_t d = 0; d < a_.rank; ++d) {
      if (a_.box_dim[d] == 0 || a_.box_dim[d] > 256) {
        return refuse(
            "boxDim[{}] = {}: a box has 1 to 256 elements along each dimension; copy larger tiles with several boxes",
            d, a_.box_dim[d]);
      }
    }
    if (is_padded(type_) && a_.box_dim[0] != 128) {
      return refuse("boxDim[0] = {}: with {} it must be 128", a_.box_dim[0], name_of(type_));
    }
    if (interleave_ != TensorMapInterleave::none) return true;
    const uint32_t row_bits = a_.box_dim[0] * element_bits(type_);
    if (row_bits % 128 != 0) {
      return refuse(
          "boxDim[0] = {}: the innermost extent must be a multiple of 16 bytes; {} elements of {} are {} bytes",
          a_.box_dim[0], a_.box_dim[0], name_of(type_), row_bits / 8.0);
    }
    // A 6-bit or padded 4-bit value takes 8 bits of shared memory.
    const uint32_t row_bytes = is_padded(type_) ? a_.box_dim[0] : row_bits / 8;
    const uint32_t span = swizzle_span_bytes(swizzle_);
    if (span != 0 && row_bytes > span) {
      return refuse(
          "boxDim[0] = {}: with swizzle {} the innermost extent may be {} bytes at most; {} elements of {} are {} "
          "bytes. Take a "
          "narrower box, and several of them",
          a_.box_dim[0], name_of(swizzle_), span, a_.box_dim[0], name_of(type_), row_bytes);
    }
    return true;
  }

  bool steps() {
    for (uint32_t d = 0; d < a_.rank; ++d) {
      const bool ignored = d == 0 && interleave_ == TensorMapInterleave::none;
      if (!ignored && (a_.element_strides[d] == 0 || a_.element_strides[d] > 8)) {
        return refuse("elementStrides[{}] = {}: steps are 1 to 8", d, a_.element_strides[d]);
      }
    }
    return true;
  }

  bool modes() {
    if (interleave_ == TensorMapInterleave::bytes32 && swizzle_ != TensorMapSwizzle::b32) {
      return refuse("swizzle = {}: interleave 32B goes with swizzle 32B only", name_of(swizzle_));
    }
    if (type_ == TensorMapType::u6_align16 && interleave_ != TensorMapInterleave::none) {
      return refuse("interleave = {}: {} goes with interleave NONE only", name_of(interleave_), name_of(type_));
    }
    if (is_padded(type_) && swizzle_ != TensorMapSwizzle::none && swizzle_ != TensorMapSwizzle::b128 &&
        swizzle_ != TensorMapSwizzle::b128_atom32 &&
        !(swizzle_ == TensorMapSwizzle::b128_atom64 && type_ == TensorMapType::u6_align16)) {
      return refuse("swizzle = {}: {} goes with NONE, 128B, 128B_ATOM_32B{} only", name_of(swizzle_), name_of(type_),
                    type_ == TensorMapType::u6_align16 ? " and 128B_ATOM_64B" : "");
    }
    if (a_.oob_fill == 1 && !is_float(type_)) {
      return refuse("oobFill = NAN_REQUEST_ZERO_FMA: only floating-point types have a NaN; tensorDataType is {}",
                    name_of(type_));
    }
    return true;
  }

  const TensorMapArguments& a_;
  const Chip& chip_;
  TensorMapType type_{};
  TensorMapInterleave interleave_{};
  TensorMapSwizzle swizzle_{};
  std::string why_;
};

// The 128 bytes. Fields are stored as they are (little endian hosts only); what a dimension does not have stays 1 or 0.
struct Packed {
  uint32_t magic;
  uint16_t version;
  uint8_t rank;
  uint8_t type;
  uint64_t address;
  uint32_t dims_less_one[5];
  uint8_t interleave, swizzle, promotion, fill;
  uint64_t strides_bytes[4];
  uint16_t box[5];
  uint8_t element_strides[5];
  uint8_t zero[33];
  uint64_t checksum;  // of all before
};
static_assert(sizeof(Packed) == kTensorMapBytes);

constexpr uint32_t kMagic = 0x50414D54;  // "TMAP"
constexpr uint16_t kVersion = 1;

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

std::optional<std::string> tensor_map_refusal(const TensorMapArguments& arguments, const Chip& chip) {
  return Checker(arguments, chip).refusal();
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
  for (uint32_t d = 0; d < map.rank; ++d) {
    map.dims[d] = arguments.global_dim[d];
    map.box[d] = arguments.box_dim[d];
    // Without interleave there is no step along dimension 0, whatever the argument says.
    const bool ignored = d == 0 && map.interleave == TensorMapInterleave::none;
    map.element_strides[d] = ignored ? 1 : arguments.element_strides[d];
    if (d > 0) map.strides_bytes[d] = arguments.global_strides[d - 1];
  }
  return map;
}

TensorMapObject encode_tensor_map(const TensorMap& map) {
  Packed packed{};
  packed.magic = kMagic;
  packed.version = kVersion;
  packed.rank = static_cast<uint8_t>(map.rank);
  packed.type = static_cast<uint8_t>(map.type);
  packed.address = map.address;
  packed.interleave = static_cast<uint8_t>(map.interleave);
  packed.swizzle = static_cast<uint8_t>(map.swizzle);
  packed.promotion = static_cast<uint8_t>(map.promotion);
  packed.fill = static_cast<uint8_t>(map.fill);
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

TensorMap decode_tensor_map(const std::byte* object, uint64_t object_address) {
  constexpr auto kSource = "CUDA Driver API, cuTensorMapEncodeTiled";
  if (object_address % 64 != 0) {
    throw Trap(
        FaultCode::illegal_instruction,
        fmt::format("tensor map at {:#x}: a map must be aligned to 64 bytes; pass it as a `const __grid_constant__ "
                    "CUtensorMap` parameter, or keep it in constant or global memory at such an address",
                    object_address),
        kSource);
  }
  Packed packed;
  std::memcpy(&packed, object, sizeof packed);
  if (packed.magic != kMagic || packed.version != kVersion) {
    throw Trap(
        FaultCode::illegal_instruction,
        fmt::format(
            "no tensor map at {:#x}: the 128 bytes there (they begin with {:#010x}) were not made by "
            "cuTensorMapEncodeTiled; is the operand the map's address, and is the map a `const __grid_constant__` "
            "parameter?",
            object_address, packed.magic),
        kSource);
  }
  if (packed.checksum != checksum_of(packed)) {
    throw Trap(
        FaultCode::illegal_instruction,
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
