// PackedOperand::pack: transposition, conversion to f32 and exponents, vectorised. Highway's foreach_target compiles
// this file once per instruction set; the best one for the machine is chosen at run time.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "emulator/units/tensor_core_pack.cpp"
#include "emulator/units/tensor_core_targets.h"
// tensor_core_targets.h must be the first to include Highway.
#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

#include "emulator/units/tensor_core.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace emu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

constexpr uint32_t kBlock = PackedOperand::kBlock;

#if HWY_TARGET == HWY_SCALAR
/// Transposes a square of 16 bytes a side. Strides in elements.
template <class Lane>
void transpose_square(const Lane* from, size_t from_stride, Lane* to, size_t to_stride) {
  for (size_t i = 0; i < 16 / sizeof(Lane); ++i) {
    for (size_t j = 0; j < 16 / sizeof(Lane); ++j) to[j * to_stride + i] = from[i * from_stride + j];
  }
}
#else
/// Transposes 8 rows of 8 16-bit elements. Strides in elements.
HWY_ATTR void transpose_square(const uint16_t* from, size_t from_stride, uint16_t* to, size_t to_stride) {
  const hn::Full128<uint16_t> d;
  const auto r0 = hn::LoadU(d, from), r1 = hn::LoadU(d, from + from_stride);
  const auto r2 = hn::LoadU(d, from + 2 * from_stride), r3 = hn::LoadU(d, from + 3 * from_stride);
  const auto r4 = hn::LoadU(d, from + 4 * from_stride), r5 = hn::LoadU(d, from + 5 * from_stride);
  const auto r6 = hn::LoadU(d, from + 6 * from_stride), r7 = hn::LoadU(d, from + 7 * from_stride);
  // Interleaving rows i and i + 4, three times over, turns rows into columns.
  const auto a0 = hn::InterleaveLower(d, r0, r4), a1 = hn::InterleaveUpper(d, r0, r4);
  const auto a2 = hn::InterleaveLower(d, r1, r5), a3 = hn::InterleaveUpper(d, r1, r5);
  const auto a4 = hn::InterleaveLower(d, r2, r6), a5 = hn::InterleaveUpper(d, r2, r6);
  const auto a6 = hn::InterleaveLower(d, r3, r7), a7 = hn::InterleaveUpper(d, r3, r7);
  const auto b0 = hn::InterleaveLower(d, a0, a4), b1 = hn::InterleaveUpper(d, a0, a4);
  const auto b2 = hn::InterleaveLower(d, a1, a5), b3 = hn::InterleaveUpper(d, a1, a5);
  const auto b4 = hn::InterleaveLower(d, a2, a6), b5 = hn::InterleaveUpper(d, a2, a6);
  const auto b6 = hn::InterleaveLower(d, a3, a7), b7 = hn::InterleaveUpper(d, a3, a7);
  hn::StoreU(hn::InterleaveLower(d, b0, b4), d, to);
  hn::StoreU(hn::InterleaveUpper(d, b0, b4), d, to + to_stride);
  hn::StoreU(hn::InterleaveLower(d, b1, b5), d, to + 2 * to_stride);
  hn::StoreU(hn::InterleaveUpper(d, b1, b5), d, to + 3 * to_stride);
  hn::StoreU(hn::InterleaveLower(d, b2, b6), d, to + 4 * to_stride);
  hn::StoreU(hn::InterleaveUpper(d, b2, b6), d, to + 5 * to_stride);
  hn::StoreU(hn::InterleaveLower(d, b3, b7), d, to + 6 * to_stride);
  hn::StoreU(hn::InterleaveUpper(d, b3, b7), d, to + 7 * to_stride);
}

/// Transposes 4 rows of 4 32-bit elements.
HWY_ATTR void transpose_square(const uint32_t* from, size_t from_stride, uint32_t* to, size_t to_stride) {
  const hn::Full128<uint32_t> d;
  const auto r0 = hn::LoadU(d, from), r1 = hn::LoadU(d, from + from_stride);
  const auto r2 = hn::LoadU(d, from + 2 * from_stride), r3 = hn::LoadU(d, from + 3 * from_stride);
  const auto a0 = hn::InterleaveLower(d, r0, r2), a1 = hn::InterleaveUpper(d, r0, r2);
  const auto a2 = hn::InterleaveLower(d, r1, r3), a3 = hn::InterleaveUpper(d, r1, r3);
  hn::StoreU(hn::InterleaveLower(d, a0, a2), d, to);
  hn::StoreU(hn::InterleaveUpper(d, a0, a2), d, to + to_stride);
  hn::StoreU(hn::InterleaveLower(d, a1, a3), d, to + 2 * to_stride);
  hn::StoreU(hn::InterleaveUpper(d, a1, a3), d, to + 3 * to_stride);
}
#endif

struct F16 {
  using Lane = uint16_t;
  static constexpr int lowest_field = 127 - 14;  // f32 exponent field of what its subnormals count as
  template <class D>
  static HWY_INLINE HWY_ATTR hn::Vec<D> float_bits(D d, const uint16_t* raw, uint32_t k) {
    const auto bits = hn::PromoteTo(d, hn::LoadU(hn::Rebind<uint16_t, D>(), raw + k * kBlock));
    const auto shifted = hn::ShiftLeft<13>(hn::And(bits, hn::Set(d, 0x7FFFu)));
    const auto exponent = hn::And(shifted, hn::Set(d, 0x0F800000u));
    const auto rebias = hn::Set(d, 112u << 23);
    const auto normal = hn::Add(shifted, rebias);
    const auto special = hn::Add(normal, rebias);
    // A subnormal's fraction put behind a leading one that is then subtracted: exact, and no f32 subnormals on the way.
    const hn::RebindToFloat<D> df;
    const auto with_one = hn::BitCast(df, hn::Add(normal, hn::Set(d, 1u << 23)));
    const auto subnormal = hn::BitCast(d, hn::Sub(with_one, hn::Set(df, 0x1p-14f)));
    auto magnitude = hn::IfThenElse(hn::Eq(exponent, hn::Zero(d)), subnormal, normal);
    magnitude = hn::IfThenElse(hn::Eq(exponent, hn::Set(d, 0x0F800000u)), special, magnitude);
    return hn::Or(magnitude, hn::ShiftLeft<16>(hn::And(bits, hn::Set(d, 0x8000u))));
  }
};

struct Bf16 {
  using Lane = uint16_t;
  static constexpr int lowest_field = 1;
  template <class D>
  static HWY_INLINE HWY_ATTR hn::Vec<D> float_bits(D d, const uint16_t* raw, uint32_t k) {
    return hn::ShiftLeft<16>(hn::PromoteTo(d, hn::LoadU(hn::Rebind<uint16_t, D>(), raw + k * kBlock)));
  }
};

struct Tf32 {
  using Lane = uint32_t;
  static constexpr int lowest_field = 1;
  template <class D>
  static HWY_INLINE HWY_ATTR hn::Vec<D> float_bits(D d, const uint32_t* raw, uint32_t k) {
    return hn::And(hn::LoadU(d, raw + k * kBlock), hn::Set(d, 0xFFFFE000u));
  }
};

/// Bytes are transposed in pairs: row k / 2 has element k in its low or its high half.
template <class D>
HWY_INLINE HWY_ATTR hn::Vec<D> byte_of_pair(D d, const uint16_t* raw, uint32_t k) {
  const auto pair = hn::PromoteTo(d, hn::LoadU(hn::Rebind<uint16_t, D>(), raw + k / 2 * kBlock));
  return hn::And(k % 2 ? hn::ShiftRight<8>(pair) : pair, hn::Set(d, 0xFFu));
}

/// A format of up to 8 bits, in the low bits of a byte. kNan: magnitude of its NaN, where the highest exponent is not
/// Inf and NaN as in IEEE 754; 0: none.
template <int kExponentBits, int kFractionBits, bool kInfinity, uint32_t kNan>
struct Small {
  using Lane = uint16_t;
  static constexpr int lowest = 2 - (1 << (kExponentBits - 1)), lowest_field = 127 + lowest;
  template <class D>
  static HWY_INLINE HWY_ATTR hn::Vec<D> float_bits(D d, const uint16_t* raw, uint32_t k) {
    const auto bits = byte_of_pair(d, raw, k);
    constexpr uint32_t kMagnitude = (1u << (kExponentBits + kFractionBits)) - 1;
    constexpr uint32_t kTop = ((1u << kExponentBits) - 1) << 23;
    const auto code = hn::And(bits, hn::Set(d, kMagnitude));
    const auto shifted = hn::ShiftLeft<23 - kFractionBits>(code);
    const auto exponent = hn::And(shifted, hn::Set(d, kTop));
    const auto rebias = hn::Set(d, static_cast<uint32_t>(lowest_field - 1) << 23);
    const auto normal = hn::Add(shifted, rebias);
    const hn::RebindToFloat<D> df;
    const auto one = hn::Set(d, static_cast<uint32_t>(lowest_field) << 23);
    const auto with_one = hn::BitCast(df, hn::Add(normal, hn::Set(d, 1u << 23)));
    const auto subnormal = hn::BitCast(d, hn::Sub(with_one, hn::BitCast(df, one)));
    auto magnitude = hn::IfThenElse(hn::Eq(exponent, hn::Zero(d)), subnormal, normal);
    if constexpr (kInfinity) {
      const auto special = hn::Or(shifted, hn::Set(d, 0x7F800000u));
      magnitude = hn::IfThenElse(hn::Eq(exponent, hn::Set(d, kTop)), special, magnitude);
    }
    if constexpr (kNan != 0) {
      magnitude = hn::IfThenElse(hn::Eq(code, hn::Set(d, kNan)), hn::Set(d, 0x7FC00000u), magnitude);
    }
    const auto sign = hn::And(bits, hn::Set(d, kMagnitude + 1));
    return hn::Or(magnitude, hn::ShiftLeft<31 - kExponentBits - kFractionBits>(sign));
  }
};

/// Integers have no use for exponents; as floats they are exact.
template <bool kSigned>
struct Integer {
  using Lane = uint16_t;
  static constexpr int lowest_field = 1;
  template <class D>
  static HWY_INLINE HWY_ATTR hn::Vec<D> float_bits(D d, const uint16_t* raw, uint32_t k) {
    const hn::RebindToSigned<D> di;
    auto value = hn::BitCast(di, byte_of_pair(d, raw, k));
    if constexpr (kSigned) value = hn::Sub(hn::Xor(value, hn::Set(di, 128)), hn::Set(di, 128));
    return hn::BitCast(d, hn::ConvertTo(hn::RebindToFloat<D>(), value));
  }
};

/// Exponent field as the alignment counts it; 0 for a zero.
template <class Type, class D>
HWY_INLINE HWY_ATTR hn::Vec<D> exponent_field(D d, hn::Vec<D> bits) {
  const auto field = hn::And(hn::ShiftRight<23>(bits), hn::Set(d, 0xFF));
  const auto is_zero = hn::Eq(hn::ShiftLeft<1>(bits), hn::Zero(d));
  return hn::IfThenZeroElse(is_zero, hn::Max(field, hn::Set(d, Type::lowest_field)));
}

template <class Type, uint32_t depth = kOperandBytesPerRow / sizeof(typename Type::Lane)>
HWY_ATTR void pack_rows(PackedOperand& to, const std::byte* dense, bool negate) {
  using Lane = typename Type::Lane;
  constexpr uint32_t lanes = kOperandBytesPerRow / sizeof(Lane), side = 16 / sizeof(Lane);
  const hn::ScalableTag<uint32_t> du;
  const hn::RebindToSigned<decltype(du)> di;
  const hn::Rebind<uint8_t, decltype(di)> d8;
  const auto flip = hn::Set(du, negate ? 0x80000000u : 0u);
  const auto infinite = hn::Set(di, 255);

  for (uint32_t first = 0; first < to.rows; first += kBlock) {
    alignas(64) Lane raw[lanes * kBlock] = {};  // [k][row]; rows past the end stay zero
    const uint32_t rows = HWY_MIN(kBlock, to.rows - first);
    const auto* from = reinterpret_cast<const Lane*>(dense) + size_t{first} * lanes;
    for (uint32_t row = 0; row < rows; row += side) {
      for (uint32_t k = 0; k < lanes; k += side) {
        transpose_square(from + row * lanes + k, lanes, raw + k * kBlock + row, kBlock);
      }
    }

    float* value = to.value + size_t{first} * depth;
    uint8_t* below = to.below + size_t{first} * depth;
    for (uint32_t row = 0; row < kBlock; row += hn::Lanes(du)) {
      auto largest = hn::Zero(di);
      for (uint32_t k = 0; k < depth; ++k) {
        const auto bits = hn::Xor(Type::float_bits(du, raw + row, k), flip);
        hn::Store(bits, du, reinterpret_cast<uint32_t*>(value + k * kBlock + row));
        largest = hn::Max(largest, exponent_field<Type>(di, hn::BitCast(di, bits)));
      }
      for (uint32_t k = 0; k < depth; ++k) {
        const auto bits = hn::Load(di, reinterpret_cast<const int32_t*>(value + k * kBlock + row));
        const auto field = exponent_field<Type>(di, bits);
        const auto distance = hn::IfThenElse(hn::Eq(field, hn::Zero(di)), infinite, hn::Sub(largest, field));
        hn::StoreU(hn::DemoteTo(d8, distance), d8, below + k * kBlock + row);
      }
      const auto special = hn::Eq(largest, infinite);
      auto exponent = hn::Sub(largest, hn::Set(di, 127));
      exponent = hn::IfThenElse(special, hn::Set(di, PackedOperand::kSpecial), exponent);
      exponent = hn::IfThenElse(hn::Eq(largest, hn::Zero(di)), hn::Set(di, PackedOperand::kOnlyZeros), exponent);
      hn::Store(exponent, di, to.exponent + first + row);
      to.has_special |= !hn::AllFalse(di, special);
    }
  }
}

HWY_ATTR void pack(PackedOperand& to, const std::byte* dense, bool negate) {
  switch (to.type) {
    case ElementType::f16:
      return pack_rows<F16>(to, dense, negate);
    case ElementType::bf16:
      return pack_rows<Bf16>(to, dense, negate);
    case ElementType::tf32:
      return pack_rows<Tf32>(to, dense, negate);
    case ElementType::e4m3:
      return pack_rows<Small<4, 3, false, 0x7F>, 32>(to, dense, negate);
    case ElementType::e5m2:
      return pack_rows<Small<5, 2, true, 0>, 32>(to, dense, negate);
    case ElementType::e2m3:
      return pack_rows<Small<2, 3, false, 0>, 32>(to, dense, negate);
    case ElementType::e3m2:
      return pack_rows<Small<3, 2, false, 0>, 32>(to, dense, negate);
    case ElementType::e2m1:
      return pack_rows<Small<2, 1, false, 0>, 32>(to, dense, negate);
    case ElementType::u8:
      return pack_rows<Integer<false>, 32>(to, dense, negate);
    case ElementType::s8:
      return pack_rows<Integer<true>, 32>(to, dense, negate);
  }
}

}  // namespace
}  // namespace emu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace emu {

HWY_EXPORT(pack);

void PackedOperand::pack(ElementType element, uint32_t row_count, const std::byte* dense, bool negate) {
  if (negate && (element == ElementType::u8 || element == ElementType::s8))
    throw std::invalid_argument("integers are not negated");
  if (row_count == 0 || row_count > kMaxRows || row_count % 8 != 0) {
    throw std::invalid_argument("operand of " + std::to_string(row_count) + " rows; multiples of 8 up to 256");
  }
  type = element;
  rows = row_count;
  k = elements_per_step(element);
  has_special = scaled = false;
  HWY_DYNAMIC_DISPATCH(pack)(*this, dense, negate);
}

void PackedOperand::scale(std::span<const uint8_t> scales) {
  if (scales.size() != rows || k != 32 || type == ElementType::u8 || type == ElementType::s8)
    throw std::invalid_argument("one scale for each row of an operand of floating-point types of 8 bits and fewer");
  scaled = true;
  std::fill(scale_exponent, scale_exponent + kMaxRows, 0);
  for (uint32_t row = 0; row < rows; ++row) {
    const bool nan = scales[row] == 0xFF;
    scale_exponent[row] = nan ? kNanScale : scales[row] - 127;
    if (nan) {
      exponent[row] = kSpecial;
      has_special = true;
    } else if (exponent[row] != kOnlyZeros && exponent[row] != kSpecial) {
      exponent[row] += scale_exponent[row];
    }
  }
}

void PackedOperand::pack_tmem(ElementType element, std::span<const uint32_t* const> columns, bool negate) {
  // Eight 32-bit columns, low half first, are the row's 32 bytes.
  alignas(64) std::byte dense[kMaxRows * kOperandBytesPerRow];
  for (size_t row = 0; row < std::min<size_t>(columns.size(), kMaxRows); ++row) {
    std::memcpy(dense + row * kOperandBytesPerRow, columns[row], kOperandBytesPerRow);
  }
  pack(element, static_cast<uint32_t>(columns.size()), dense, negate);
}

}  // namespace emu
#endif  // HWY_ONCE
