// Conversions between number types. PTX ISA, "Data Movement and Conversion Instructions": cvt, cvt.pack.

#include <algorithm>
#include <string>

#include "emulator/isa/convert_number.h"
#include "emulator/isa/convert_scale.h"
#include "emulator/isa/families.h"
#include "emulator/isa/lanes.h"

namespace emu::isa {
namespace {

void put(Warp& warp, const Slot& slot, int lane, uint64_t value) {
  if (slot.bytes == 2) warp.write<uint16_t>(slot)[lane] = static_cast<uint16_t>(value);
  if (slot.bytes == 4) warp.write<uint32_t>(slot)[lane] = static_cast<uint32_t>(value);
  if (slot.bytes == 8) warp.write<uint64_t>(slot)[lane] = value;
}

Round round_from(std::string_view name) {
  if (name == "rz" || name == "rzi") return Round::zero;
  if (name == "rm" || name == "rmi") return Round::down;
  if (name == "rp" || name == "rpi") return Round::up;
  if (name == "rna") return Round::nearest_away;
  return Round::nearest_even;
}

// ---- one value ------------------------------------------------------------------------------------------------------

Flow convert_any(Warp& warp, const Instruction& instruction) {
  const Conversion conversion = Conversion::unpack(instruction.modifiers);
  const Slot& s = instruction.operand[1];
  for_lanes(warp.active,
            [&](int lane) { put(warp, instruction.operand[0], lane, convert(conversion, warp.scalar(s, lane))); });
  return Flow::next;
}

template <class D, class S>
D cast(S value) {
  return static_cast<D>(value);
}
int32_t truncate(float value) {
  // NaN becomes 0, what is too large the nearest there is.
  double wide = value == value ? std::clamp<double>(value, -0x1p31, 0x1p31 - 1) : 0;
  return static_cast<int32_t>(wide);
}

/// Conversions that loops are full of, as plain loops; nullptr where there is none.
Execute quick(const Conversion& c, uint8_t to_bytes, uint8_t from_bytes) {
  if (to_bytes != std::max<uint8_t>(2, bytes_of(c.to)) || from_bytes != std::max<uint8_t>(2, bytes_of(c.from)))
    return nullptr;
  if (c.saturate || c.ftz || c.relu || c.finite || c.round != Round::nearest_even) {
    bool only_zero = !c.saturate && !c.ftz && c.round == Round::zero;
    return only_zero && c.integral && c.from == Number::f32 && c.to == Number::s32 ? map<truncate> : nullptr;
  }
  if (c.integral) return nullptr;
  auto is = [&](Number to, Number from) { return c.to == to && c.from == from; };
  using N = Number;
  if (is(N::u64, N::u32) || is(N::s64, N::u32)) return map<cast<uint64_t, uint32_t>>;
  if (is(N::s64, N::s32) || is(N::u64, N::s32)) return map<cast<int64_t, int32_t>>;
  if (is(N::u32, N::u64) || is(N::u32, N::s64) || is(N::s32, N::u64) || is(N::s32, N::s64))
    return map<cast<uint32_t, uint64_t>>;
  if (is(N::u32, N::u16) || is(N::s32, N::u16)) return map<cast<uint32_t, uint16_t>>;
  if (is(N::s32, N::s16) || is(N::u32, N::s16)) return map<cast<int32_t, int16_t>>;
  if (is(N::u16, N::u32) || is(N::u16, N::s32) || is(N::s16, N::u32) || is(N::s16, N::s32))
    return map<cast<uint16_t, uint32_t>>;
  if (is(N::f32, N::s32)) return map<cast<float, int32_t>>;
  if (is(N::f32, N::u32)) return map<cast<float, uint32_t>>;
  if (is(N::f16, N::f32)) return map<float_to_f16>;
  if (is(N::bf16, N::f32)) return map<float_to_bf16>;
  return nullptr;
}

void bind_scalar(Binder& binder, Conversion c, std::string_view rounding) {
  bool is_integral = rounding.ends_with("i");
  bool between_floats = is_float(c.from) && is_float(c.to);
  c.integral = is_integral && between_floats;
  if (!rounding.empty()) c.round = round_from(rounding);
  // PTX ISA, cvt: a float becomes an integer only by .rni and its kin; .rn and its kin are for results that may not
  // fit.
  if (is_float(c.from) && !is_float(c.to) && !is_integral) binder.refuse(".rni, .rzi, .rmi or .rpi is wanted");
  if (!is_float(c.from) && is_integral) binder.refuse("integers need no " + std::string(rounding));
  c.integral = c.integral || (is_float(c.from) && !is_float(c.to));
  Instruction& out = binder.out;
  if (binder.count() != 2) binder.refuse("two operands are wanted");
  // Registers may be wider than the types say.
  out.operand[0] = binder.output(0);
  if (!out.operand[0].present()) out.operand[0] = scratch(binder);
  out.operand[1] = binder.input(1, std::max<uint8_t>(2, bytes_of(c.from)));
  if (out.operand[0].bytes < bytes_of(c.to) || out.operand[1].bytes < bytes_of(c.from) || out.operand[0].bytes == 0 ||
      out.operand[1].bytes == 0)
    binder.refuse("a register is too narrow for its type");
  out.modifiers = c.packed();
  out.execute = quick(c, out.operand[0].bytes, out.operand[1].bytes);
  if (!out.execute) out.execute = convert_any;
}

// ---- two values side by side ----------------------------------------------------------------------------------------

/// f32 a, b to a pair: a in the upper half.
template <uint16_t (*kConvert)(float)>
uint32_t pair_of(float a, float b) {
  return static_cast<uint32_t>(kConvert(a)) << 16 | kConvert(b);
}

/// Small formats, by the name of a pair of them.
enum class Small : uint8_t { f16, bf16, e4m3, e5m2, e2m3, e3m2, e2m1, tf32 };

uint32_t encode_small(Small format, double value, Round round, bool finite) {
  switch (format) {
    case Small::f16:
      return encode<F16>(value, round, finite);
    case Small::bf16:
      return encode<Bf16>(value, round, finite);
    case Small::e4m3:
      return encode<E4m3>(value, round, finite);
    case Small::e5m2:
      return encode<E5m2>(value, round, finite);
    case Small::e2m3:
      return value != value ? E2m3::kLargest : encode<E2m3>(value, round, finite);
    case Small::e3m2:
      return value != value ? E3m2::kLargest : encode<E3m2>(value, round, finite);
    case Small::e2m1:
      return value != value ? E2m1::kLargest : encode<E2m1>(value, round, finite);
    case Small::tf32:
      return encode<Tf32>(value, round, finite) << 13;
  }
  return 0;
}

double decode_small(Small format, uint32_t code) {
  switch (format) {
    case Small::f16:
      return decode<F16>(code);
    case Small::bf16:
      return decode<Bf16>(code);
    case Small::e4m3:
      return decode<E4m3>(code);
    case Small::e5m2:
      return decode<E5m2>(code);
    case Small::e2m3:
      return decode<E2m3>(code);
    case Small::e3m2:
      return decode<E3m2>(code);
    case Small::e2m1:
      return decode<E2m1>(code);
    case Small::tf32:
      return decode<F32>(code);
  }
  return 0;
}

int bits_of(Small format) {
  switch (format) {
    case Small::f16:
    case Small::bf16:
      return 16;
    case Small::e2m1:
      return 4;
    case Small::tf32:
      return 32;
    default:
      return 8;
  }
}

std::optional<Small> small_pair(std::string_view name) {
  if (name == "f16x2") return Small::f16;
  if (name == "bf16x2") return Small::bf16;
  if (name == "e4m3x2") return Small::e4m3;
  if (name == "e5m2x2") return Small::e5m2;
  if (name == "e2m3x2") return Small::e2m3;
  if (name == "e3m2x2") return Small::e3m2;
  if (name == "e2m1x2") return Small::e2m1;
  return std::nullopt;
}

struct PairConversion {
  Small from, to;
  Round round;
  bool relu, finite;
  uint64_t packed() const {
    return static_cast<uint64_t>(from) | static_cast<uint64_t>(to) << 4 | static_cast<uint64_t>(round) << 8 |
           static_cast<uint64_t>(relu) << 12 | static_cast<uint64_t>(finite) << 13;
  }
  static PairConversion unpack(uint64_t bits) {
    return {static_cast<Small>(bits & 15), static_cast<Small>(bits >> 4 & 15), static_cast<Round>(bits >> 8 & 15),
            (bits >> 12 & 1) != 0, (bits >> 13 & 1) != 0};
  }
  uint32_t one(double value) const {
    if (relu && value <= 0) value = 0;
    return encode_small(to, value, round, finite);
  }
  /// .rna to tf32 cuts a NaN as it cuts anything (read off an H200; of a payload in the low bits nothing is left).
  uint32_t one(float value) const {
    if (value != value && to == Small::tf32 && round == Round::nearest_away)
      return std::bit_cast<uint32_t>(value) & ~0x1FFFu;
    return one(double{value});
  }
};

/// d = {a, b}, from f32; without operand 2 from one f32.
Flow convert_floats(Warp& warp, const Instruction& instruction) {
  const PairConversion c = PairConversion::unpack(instruction.modifiers);
  const float* a = warp.read<float>(instruction.operand[1]);
  const float* b = instruction.operand[2].present() ? warp.read<float>(instruction.operand[2]) : nullptr;
  for_lanes(warp.active, [&](int lane) {
    uint64_t value = c.one(a[lane]);
    if (b) value = value << bits_of(c.to) | c.one(b[lane]);
    put(warp, instruction.operand[0], lane, value);
  });
  return Flow::next;
}

/// Pair to pair.
Flow convert_pair(Warp& warp, const Instruction& instruction) {
  const PairConversion c = PairConversion::unpack(instruction.modifiers);
  uint32_t mask = (1u << bits_of(c.from)) - 1;
  for_lanes(warp.active, [&](int lane) {
    uint32_t codes = static_cast<uint32_t>(warp.scalar(instruction.operand[1], lane));
    uint32_t low = c.one(decode_small(c.from, codes & mask));
    uint32_t high = c.one(decode_small(c.from, codes >> bits_of(c.from) & mask));
    put(warp, instruction.operand[0], lane, high << bits_of(c.to) | low);
  });
  return Flow::next;
}

void bind_pair(Binder& binder, Small to, std::string_view from, std::string_view rounding) {
  bool eight_bits = bits_of(to) <= 8;
  PairConversion c{.from = to,
                   .to = to,
                   .round = round_from(rounding),
                   .relu = binder.take("relu"),
                   .finite = binder.take("satfinite")};
  if (rounding != "rn" && rounding != "rz") binder.refuse("rounding ." + std::string(rounding) + " is not executed");
  if (eight_bits && !c.finite) binder.refuse(".satfinite is wanted");
  Instruction& out = binder.out;
  uint8_t to_bytes = bits_of(to) == 16 ? 4 : 2;
  out.operand[0] = result(binder, 0, to_bytes);
  if (from == "f32") {
    out.operand[1] = source(binder, 1, 4);
    out.operand[2] = source(binder, 2, 4);
    if (binder.count() != 3) binder.refuse("two sources are wanted");
    bool plain = rounding == "rn" && !c.relu && !c.finite;
    out.execute = plain && to == Small::f16    ? map<pair_of<float_to_f16>>
                  : plain && to == Small::bf16 ? map<pair_of<float_to_bf16>>
                                               : convert_floats;
  } else {
    std::optional<Small> pair = small_pair(from);
    if (!pair || (bits_of(*pair) == 16) == (bits_of(to) == 16)) refuse_type(binder, from);
    c.from = *pair;
    out.operand[1] = source(binder, 1, bits_of(*pair) == 16 ? 4 : 2);
    if (binder.count() != 2) binder.refuse("one source is wanted");
    out.execute = convert_pair;
  }
  out.modifiers = c.packed();
}

/// cvt.{rna,rn,rz}{.satfinite}{.relu}.tf32.f32
void bind_tf32(Binder& binder, std::string_view from, std::string_view rounding) {
  if (from != "f32" || (rounding != "rna" && rounding != "rn" && rounding != "rz")) refuse_type(binder, from);
  PairConversion c{.from = Small::tf32,
                   .to = Small::tf32,
                   .round = round_from(rounding),
                   .relu = binder.take("relu"),
                   .finite = binder.take("satfinite")};
  bind_operands(binder, std::array<uint8_t, 2>{4, 4});
  binder.out.modifiers = c.packed();
  binder.out.execute = convert_floats;
}

// ---- cvt.pack -------------------------------------------------------------------------------------------------------

/// Operands: 0 d, 1 a, 2 b, 3 c (absent for 16 bits). `immediate`: bits of a part, negative when they are signed.
Flow pack_saturated(Warp& warp, const Instruction& instruction) {
  int bits = static_cast<int>(std::abs(instruction.immediate));
  bool is_signed = instruction.immediate < 0;
  int64_t low = is_signed ? -(int64_t{1} << (bits - 1)) : 0;
  int64_t high = (int64_t{1} << (is_signed ? bits - 1 : bits)) - 1;
  uint32_t* d = warp.write<uint32_t>(instruction.operand[0]);
  bool unsigned_sources = instruction.modifiers != 0;
  for_lanes(warp.active, [&](int lane) {
    auto part = [&](size_t operand) {
      uint32_t raw = warp.read<uint32_t>(instruction.operand[operand])[lane];
      int64_t value = unsigned_sources ? int64_t{raw} : int64_t{static_cast<int32_t>(raw)};
      return static_cast<uint64_t>(std::clamp(value, low, high)) & ((uint64_t{1} << bits) - 1);
    };
    uint64_t value = part(1) << bits | part(2);
    if (instruction.operand[3].present())
      value |= uint64_t{warp.read<uint32_t>(instruction.operand[3])[lane]} << (2 * bits);
    d[lane] = static_cast<uint32_t>(value);
  });
  return Flow::next;
}

void bind_pack(Binder& binder) {
  if (!binder.take("sat")) binder.refuse(".sat is wanted");
  std::string_view to = binder.take_next(), from = binder.take_next();
  if (from != "s32" && from != "u32") refuse_type(binder, from);
  if (to.size() < 2 || (to[0] != 'u' && to[0] != 's')) refuse_type(binder, to);
  int bits = std::stoi(std::string(to.substr(1)));
  bool third = bits < 16;
  if (bits != 16 && bits != 8 && bits != 4 && bits != 2) refuse_type(binder, to);
  if (third && !binder.take("b32")) binder.refuse(".b32 is wanted");
  Instruction& out = binder.out;
  out.operand[0] = result(binder, 0, 4);
  for (size_t i = 1; i < (third ? 4u : 3u); ++i) out.operand[i] = source(binder, i, 4);
  out.immediate = to[0] == 's' ? -bits : bits;
  out.modifiers = from == "u32";
  out.execute = pack_saturated;
}

void bind_cvt(Binder& binder) {
  if (binder.take("pack")) return bind_pack(binder);
  std::string_view rounding = binder.take_any({"rn", "rz", "rm", "rp", "rna", "rni", "rzi", "rmi", "rpi", "rs"});
  if (rounding == "rs") binder.refuse("stochastic rounding is not executed");
  Conversion c{};
  c.ftz = binder.take("ftz");
  c.saturate = binder.take("sat");
  // The two types come last, whatever stands before them.
  auto modifiers = binder.source.modifiers();
  if (modifiers.size() < 2) binder.refuse("two types are wanted");
  std::string_view to = modifiers[modifiers.size() - 2], from = modifiers.back();
  binder.take(to);
  binder.take(from);
  if (bind_scale(binder, to, from, rounding)) return;
  if (!c.ftz && !c.saturate) {
    if (std::optional<Small> pair = small_pair(to)) return bind_pair(binder, *pair, from, rounding);
    if (to == "tf32") return bind_tf32(binder, from, rounding);
  }
  std::optional<Number> target = number_from_name(to), origin = number_from_name(from);
  if (!target) refuse_type(binder, to);
  if (!origin) refuse_type(binder, from);
  c.to = *target;
  c.from = *origin;
  if (c.to == Number::f16 || c.to == Number::bf16) {
    c.relu = binder.take("relu");
    c.finite = binder.take("satfinite");
  }
  bind_scalar(binder, c, rounding);
}

constexpr Entry kEntries[] = {{"cvt", bind_cvt}};

}  // namespace

std::span<const Entry> convert_entries() {
  return kEntries;
}

}  // namespace emu::isa
