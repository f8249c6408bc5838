// Every rule of cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col. Where the documentation and the driver differ, the
// driver beside an H200 counts: it takes an object at any address and a null globalAddress, wants globalStrides even
// for rank 1 and elementStrides[0] within 1 to 8 though neither is used, wants rows of 16 bytes with interleave too,
// and refuses boxes beyond an SM's shared memory.

#include <fmt/format.h>

#include "emulator/units/tensor_map.h"

namespace emu {
namespace {

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
    pointers() && enums() && address() && dims() && strides() && box() && corners() && steps() && modes();
    if (why_.empty()) return std::nullopt;
    return (a_.im2col ? "cuTensorMapEncodeIm2col: " : "cuTensorMapEncodeTiled: ") + why_;
  }

 private:
  template <class... Values>
  bool refuse(fmt::format_string<Values...> text, Values&&... values) {
    why_ = fmt::format(text, std::forward<Values>(values)...);
    return false;
  }

  bool pointers() {
    if (a_.map == nullptr) return refuse("tensorMap is a null pointer; pass the CUtensorMap to fill in");
    if (a_.rank < 1 || a_.rank > 5) return refuse("tensorRank = {}: a tensor map has 1 to 5 dimensions", a_.rank);
    if (a_.global_dim == nullptr) return refuse("globalDim is a null pointer; pass {} sizes", a_.rank);
    if (a_.global_strides == nullptr) {
      return refuse("globalStrides is a null pointer; pass {} strides in bytes{}", a_.rank - 1,
                    a_.rank == 1 ? ", and any other pointer for a rank of 1" : "");
    }
    if (a_.im2col && a_.rank < 3) return refuse("tensorRank = {}: im2col needs 3, 4 or 5 dimensions", a_.rank);
    if (a_.im2col && (a_.lower_corner == nullptr || a_.upper_corner == nullptr)) {
      return refuse("pixelBox{}Corner is a null pointer; pass {} offsets",
                    a_.lower_corner == nullptr ? "Lower" : "Upper", a_.rank - 2);
    }
    if (a_.box_dim == nullptr) return refuse("boxDim is a null pointer; pass {} sizes", a_.rank);
    if (a_.element_strides == nullptr)
      return refuse("elementStrides is a null pointer; pass {} steps, usually all 1", a_.rank);
    return true;
  }

  bool enums() {
    if (a_.type >= 16) return refuse("tensorDataType = {}: no such CUtensorMapDataType (0 to 15)", a_.type);
    if (a_.interleave >= 3) {
      return refuse("interleave = {}: no such CUtensorMapInterleave (0 to 2)", a_.interleave);
    }
    if (a_.swizzle >= 7) return refuse("swizzle = {}: no such CUtensorMapSwizzle (0 to 6)", a_.swizzle);
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
    if (a_.im2col && interleave_ != TensorMapInterleave::none) {
      return refuse("interleave = {}: the emulator does not execute interleaved layouts with im2col",
                    name_of(interleave_));
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
            "for "
            "example to {} bytes",
            d, stride, d + 1, granule(), why_granule(), (stride / granule() + 1) * granule());
      }
      if (stride >= uint64_t{1} << 40) {
        return refuse("globalStrides[{}] = {} bytes (dimension {}): each stride must be below 2^40 bytes", d, stride,
                      d + 1);
      }
    }
    return true;
  }

  const char* inner() const { return a_.im2col ? "channelsPerPixel" : "boxDim[0]"; }

  bool box() {
    if (a_.im2col && (a_.box_dim[1] == 0 || a_.box_dim[1] > 1024))
      return refuse("pixelsPerColumn = {}: a column has 1 to 1024 pixels", a_.box_dim[1]);
    for (uint32_t d = 0; d < (a_.im2col ? 1 : a_.rank); ++d) {
      if (a_.im2col && (a_.box_dim[0] == 0 || a_.box_dim[0] > 256))
        return refuse("channelsPerPixel = {}: 1 to 256 channels are copied of a pixel", a_.box_dim[0]);
      if (a_.box_dim[d] == 0 || a_.box_dim[d] > 256) {
        return refuse(
            "boxDim[{}] = {}: a box has 1 to 256 elements along each dimension; copy larger tiles with several boxes",
            d, a_.box_dim[d]);
      }
    }
    if (is_padded(type_) && a_.box_dim[0] != 128) {
      return refuse("{} = {}: with {} it must be 128", inner(), a_.box_dim[0], name_of(type_));
    }
    const uint32_t row_bits = a_.box_dim[0] * element_bits(type_);
    if (row_bits % 128 != 0) {
      return refuse("{} = {}: the innermost extent must be a multiple of 16 bytes; {} elements of {} are {} bytes",
                    inner(), a_.box_dim[0], a_.box_dim[0], name_of(type_), row_bits / 8.0);
    }
    // A 6-bit or padded 4-bit value takes 8 bits of shared memory.
    const uint32_t row_bytes = is_padded(type_) ? a_.box_dim[0] : row_bits / 8;
    const uint32_t span = swizzle_span_bytes(swizzle_);
    if (interleave_ == TensorMapInterleave::none && span != 0 && row_bytes > span) {
      return refuse(
          "{} = {}: with swizzle {} the innermost extent may be {} bytes at most; {} elements of {} are {} bytes. Take "
          "a narrower box, and several of them",
          inner(), a_.box_dim[0], name_of(swizzle_), span, a_.box_dim[0], name_of(type_), row_bytes);
    }
    return true;
  }

  // As precise as the bits that the map has for them.
  bool corners() {
    if (!a_.im2col) return true;
    const int32_t most = a_.rank == 3 ? 32767 : a_.rank == 4 ? 127 : 15;
    for (uint32_t d = 0; d + 2 < a_.rank; ++d) {
      const auto in_range = [&](int32_t corner) { return corner >= -most - 1 && corner <= most; };
      if (!in_range(a_.lower_corner[d]) || !in_range(a_.upper_corner[d])) {
        const bool lower = !in_range(a_.lower_corner[d]);
        return refuse("pixelBox{}Corner[{}] = {}: with {} dimensions offsets are {} to {}", lower ? "Lower" : "Upper",
                      d, lower ? a_.lower_corner[d] : a_.upper_corner[d], a_.rank, -most - 1, most);
      }
      const int64_t last = static_cast<int64_t>(a_.global_dim[d + 1]) - 1 + a_.upper_corner[d];
      if (last < a_.lower_corner[d]) {
        return refuse(
            "pixelBoxLowerCorner[{0}] = {1}, pixelBoxUpperCorner[{0}] = {2}: the box from {1} to {3} (globalDim "
            "is {4}) has no pixel",
            d, a_.lower_corner[d], a_.upper_corner[d], last, a_.global_dim[d + 1]);
      }
    }
    return true;
  }

  bool steps() {
    for (uint32_t d = 0; d < a_.rank; ++d) {
      if (a_.element_strides[d] == 0 || a_.element_strides[d] > 8) {
        return refuse("elementStrides[{}] = {}: steps are 1 to 8", d, a_.element_strides[d]);
      }
    }
    if (a_.im2col) return true;
    // As the driver counts: steps rounded down, and along dimension 0 too.
    uint64_t bits = is_padded(type_) ? 8 : element_bits(type_);
    for (uint32_t d = 0; d < a_.rank; ++d) bits *= a_.box_dim[d] / a_.element_strides[d];
    const uint64_t bytes = bits / 8;
    if (bytes > chip_.shared_per_sm_bytes) {
      return refuse("boxDim: the box takes {} bytes, and {} has {} bytes of shared memory; take a smaller box", bytes,
                    chip_.name, chip_.shared_per_sm_bytes);
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

}  // namespace

std::optional<std::string> tensor_map_refusal(const TensorMapArguments& arguments, const Chip& chip) {
  return Checker(arguments, chip).refusal();
}

}  // namespace emu
