// Bits and bit fields. PTX ISA, "Integer Arithmetic Instructions" (popc to szext), "Logic and Shift Instructions".

#include <algorithm>
#include <bit>
#include <type_traits>

#include "emulator/isa/arithmetic.h"
#include "emulator/isa/lanes.h"
#include "emulator/machine/cluster.h"

namespace emu::isa {
namespace {

template <class T>
T both(T a, T b) {
  return a & b;
}
template <class T>
T either(T a, T b) {
  return a | b;
}
template <class T>
T differ(T a, T b) {
  return a ^ b;
}
template <class T>
T inverse(T a) {
  return static_cast<T>(~a);
}
template <class T>
T is_zero(T a) {
  return a == 0;
}

// Shift amounts are 32-bit whatever the type, and clamp at its width.
template <class T>
T shift_left(T a, uint32_t by) {
  return by < sizeof(T) * 8 ? static_cast<T>(static_cast<uint64_t>(a) << (by & 63)) : T{0};
}
template <class T>
T shift_right(T a, uint32_t by) {
  constexpr uint32_t kBits = sizeof(T) * 8;
  if constexpr (std::is_signed_v<T>) return static_cast<T>(a >> std::min(by, kBits - 1));
  return by < kBits ? static_cast<T>(a >> (by & (kBits - 1))) : T{0};
}
template <bool kLeft, bool kWrap>
uint32_t funnel(uint32_t a, uint32_t b, uint32_t by) {
  uint32_t n = kWrap ? by & 31 : std::min(by, 32u);
  uint64_t both_words = uint64_t{b} << 32 | a;
  return static_cast<uint32_t>(kLeft ? (both_words << n) >> 32 : both_words >> n);
}

template <class T>
uint32_t count_ones(T a) {
  return static_cast<uint32_t>(std::popcount(a));
}
template <class T>
uint32_t leading_zeros(T a) {
  return static_cast<uint32_t>(std::countl_zero(a));
}
template <class T>
T reversed(T a) {
  T out = 0;
  for (size_t i = 0; i < sizeof(T) * 8; ++i) out = static_cast<T>(out << 1 | (a >> i & 1));
  return out;
}
/// Most significant bit that is not a copy of the sign; all ones when there is none.
template <class T>
uint32_t find_top(T a) {
  using U = std::make_unsigned_t<T>;
  U bits = static_cast<U>(a);
  if constexpr (std::is_signed_v<T>)
    if (a < 0) bits = ~bits;
  return bits == 0 ? 0xFFFFFFFFu : static_cast<uint32_t>(sizeof(T) * 8 - 1) - leading_zeros(bits);
}
template <class T>
uint32_t find_top_shift(T a) {
  uint32_t top = find_top(a);
  return top == 0xFFFFFFFFu ? top : static_cast<uint32_t>(sizeof(T) * 8 - 1) - top;
}
/// The n-th set bit of `mask` from `base` on.
uint32_t find_nth_set(uint32_t mask, uint32_t base, int32_t offset) {
  if (base > 31) return 0xFFFFFFFFu;
  if (offset == 0) return mask >> base & 1 ? base : 0xFFFFFFFFu;
  int step = offset > 0 ? 1 : -1;
  int64_t left = offset > 0 ? int64_t{offset} - 1 : -int64_t{offset} - 1;
  for (int at = static_cast<int>(base); at >= 0 && at < 32; at += step)
    if (mask >> at & 1 && left-- == 0) return static_cast<uint32_t>(at);
  return 0xFFFFFFFFu;
}

template <class T>
T low_bits(uint32_t count) {
  return count >= sizeof(T) * 8 ? static_cast<T>(~T{0}) : static_cast<T>((T{1} << count) - 1);
}
/// Position and length of a field: "restricted to the range 0..255 by ignoring higher bits". An H200 does that for 32
/// bits; for 64, where the assembler writes a sequence of shifts, larger values act as 255 does.
template <class T>
uint32_t field_part(uint32_t value) {
  return sizeof(T) == 4 ? value & 0xFF : std::min(value, 255u);
}

template <class T>
T extract(T a, uint32_t b, uint32_t c) {
  using U = std::make_unsigned_t<T>;
  constexpr uint32_t kTop = sizeof(T) * 8 - 1;
  uint32_t position = field_part<T>(b), length = field_part<T>(c);
  U bits = static_cast<U>(a);
  U field = position > kTop ? U{0} : static_cast<U>(bits >> position) & low_bits<U>(length);
  if constexpr (std::is_signed_v<T>) {
    bool sign = length != 0 && bits >> std::min(position + length - 1, kTop) & 1;
    // Above the field, and above what is left of the source, stand copies of its sign.
    uint32_t valid = position > kTop ? 0 : std::min(length, kTop + 1 - position);
    if (sign) field |= static_cast<U>(~low_bits<U>(valid));
  }
  return static_cast<T>(field);
}
template <class T>
T insert(T a, T b, uint32_t c, uint32_t d) {
  uint32_t position = field_part<T>(c), length = field_part<T>(d);
  if (position >= sizeof(T) * 8) return b;
  T field = static_cast<T>(low_bits<T>(length) << position);
  return static_cast<T>((b & ~field) | (static_cast<T>(a << position) & field));
}

template <class T, bool kClamp>
T extend(T a, uint32_t b) {
  bool too_large = kClamp && b >= 32;
  uint32_t width = b & 31;
  uint32_t above = too_large ? 0 : ~0u << width;
  bool sign = std::is_signed_v<T> && width != 0 && !too_large && static_cast<uint32_t>(a) >> (width - 1) & 1;
  return static_cast<T>((static_cast<uint32_t>(a) & ~above) | (sign ? above : 0));
}
template <bool kClamp>
uint32_t mask_of_bits(uint32_t a, uint32_t b) {
  uint32_t position = a & 31, width = b & 31, end = position + width;
  bool beyond = kClamp && a >= 32, too_wide = kClamp && b >= 32;
  uint32_t from = beyond ? 0 : ~0u << position;
  uint32_t to = end >= 32 || beyond || too_wide ? 0 : width == 0 ? ~0u : ~0u << end;
  return from & ~to;
}

/// Any function of three bits, as the sum of the minterms that `table` names.
Flow lop3(Warp& warp, const Instruction& instruction) {
  uint32_t* d = warp.write<uint32_t>(instruction.operand[0]);
  const uint32_t* a = warp.read<uint32_t>(instruction.operand[1]);
  const uint32_t* b = warp.read<uint32_t>(instruction.operand[2]);
  const uint32_t* c = warp.read<uint32_t>(instruction.operand[3]);
  uint32_t term[8];
  for (int i = 0; i < 8; ++i) term[i] = instruction.immediate >> i & 1 ? ~0u : 0u;
  active_lanes(warp, [&](int lane) {
    uint32_t x = a[lane], y = b[lane], z = c[lane];
    d[lane] = (term[0] & ~x & ~y & ~z) | (term[1] & ~x & ~y & z) | (term[2] & ~x & y & ~z) | (term[3] & ~x & y & z) |
              (term[4] & x & ~y & ~z) | (term[5] & x & ~y & z) | (term[6] & x & y & ~z) | (term[7] & x & y & z);
  });
  return Flow::next;
}

/// lop3 with .or or .and: the second result (operand 4) is (d != 0) joined with a predicate (in the list).
template <bool kOr>
Flow lop3_predicate(Warp& warp, const Instruction& instruction) {
  lop3(warp, instruction);
  const uint32_t* d = warp.read<uint32_t>(instruction.operand[0]);
  uint32_t q = warp.predicate(warp.listed(instruction.list, 0)), some = 0;
  for_lanes(warp.active, [&](int lane) { some |= static_cast<uint32_t>(d[lane] != 0) << lane; });
  warp.set_predicate(instruction.operand[4], kOr ? some | q : some & q);
  return Flow::next;
}

void bind_lop3(Binder& binder) {
  Instruction& out = binder.out;
  std::string_view join = binder.take_any({"or", "and"});
  if (binder.count() != (join.empty() ? 5u : 6u)) binder.refuse("the number of operands does not fit");
  const ptx::Operand& results = binder.operand(0);
  bool pair = results.kind == ptx::Operand::Kind::pair;
  if (pair == join.empty()) binder.refuse("a predicate goes with .or and .and");
  out.operand[0] = result(binder, pair ? results.children[0] : results, 4);
  for (size_t i = 1; i <= 3; ++i) out.operand[i] = source(binder, i, 4);
  out.immediate = binder.immediate(4) & 0xFF;
  out.execute = lop3;
  if (join.empty()) return;
  out.operand[4] = result(binder, results.children[1], 0);
  out.list_count = 1;
  out.list = binder.list({source(binder, 5, 0)});
  out.execute = join == "or" ? lop3_predicate<true> : lop3_predicate<false>;
}

enum class Logic : uint64_t { conjunction, disjunction, difference, negation };

Flow predicate_logic(Warp& warp, const Instruction& instruction) {
  uint32_t a = warp.predicate(instruction.operand[1]);
  uint32_t b = instruction.operand[2].present() ? warp.predicate(instruction.operand[2]) : 0;
  uint32_t d = 0;
  switch (static_cast<Logic>(instruction.modifiers)) {
    case Logic::conjunction:
      d = a & b;
      break;
    case Logic::disjunction:
      d = a | b;
      break;
    case Logic::difference:
      d = a ^ b;
      break;
    case Logic::negation:
      d = ~a;
      break;
  }
  warp.set_predicate(instruction.operand[0], d);
  return Flow::next;
}

void bind_predicate_logic(Binder& binder, Logic logic) {
  size_t count = logic == Logic::negation ? 2 : 3;
  if (binder.count() != count) binder.refuse(std::to_string(count) + " operands are wanted");
  binder.out.operand[0] = result(binder, 0, 0);
  for (size_t i = 1; i < count; ++i) binder.out.operand[i] = source(binder, i, 0);
  binder.out.modifiers = static_cast<uint64_t>(logic);
  binder.out.execute = predicate_logic;
}

bool bind_logic(Binder& binder, std::string_view name, std::string_view type) {
  if (type == "pred") {
    if (name == "cnot") return false;
    bind_predicate_logic(binder, name == "and"   ? Logic::conjunction
                                 : name == "or"  ? Logic::disjunction
                                 : name == "xor" ? Logic::difference
                                                 : Logic::negation);
    return true;
  }
  return with_bits(type, [&]<class T>() {
    if (name == "and") return bind_map<both<T>>(binder);
    if (name == "or") return bind_map<either<T>>(binder);
    if (name == "xor") return bind_map<differ<T>>(binder);
    if (name == "not") return bind_map<inverse<T>>(binder);
    return bind_map<is_zero<T>>(binder);
  });
}

bool bind_shift(Binder& binder, std::string_view name, std::string_view type) {
  if (name == "shl") return with_bits(type, [&]<class T>() { bind_map<shift_left<T>>(binder); });
  if (name == "shr")
    return with_bits(type, [&]<class T>() { bind_map<shift_right<T>>(binder); }) ||
           with_integer(type, [&]<class T>() { bind_map<shift_right<T>>(binder); });
  std::string_view direction = binder.take_any({"l", "r"}), mode = binder.take_any({"clamp", "wrap"});
  if (type != "b32" || direction.empty() || mode.empty()) return false;
  if (direction == "l")
    mode == "wrap" ? bind_map<funnel<true, true>>(binder) : bind_map<funnel<true, false>>(binder);
  else
    mode == "wrap" ? bind_map<funnel<false, true>>(binder) : bind_map<funnel<false, false>>(binder);
  return true;
}

}  // namespace

bool bind_bit_field(Binder& binder, std::string_view type) {
  std::string_view name = binder.source.name();
  if (name == "and" || name == "or" || name == "xor" || name == "not" || name == "cnot")
    return bind_logic(binder, name, type);
  if (name == "shl" || name == "shr" || name == "shf") return bind_shift(binder, name, type);
  if (name == "lop3" && type == "b32") return bind_lop3(binder), true;
  if (name == "fns" && type == "b32") return bind_map<find_nth_set>(binder), true;
  bool clamp = false;
  if (name == "szext" || name == "bmsk") {
    std::string_view mode = binder.take_any({"clamp", "wrap"});
    if (mode.empty()) return false;
    clamp = mode == "clamp";
  }
  if (name == "bmsk" && type == "b32")
    return clamp ? bind_map<mask_of_bits<true>>(binder) : bind_map<mask_of_bits<false>>(binder), true;
  bool bound = true;
  bool known = with_bits(type, [&]<class T>() {
    if constexpr (sizeof(T) >= 4) {
      if (name == "popc") return bind_map<count_ones<T>>(binder);
      if (name == "clz") return bind_map<leading_zeros<T>>(binder);
      if (name == "brev") return bind_map<reversed<T>>(binder);
      if (name == "bfi") return bind_map<insert<T>>(binder);
    }
    bound = false;
  });
  known = known || with_integer(type, [&]<class T>() {
            if constexpr (sizeof(T) >= 4) {
              if (name == "bfe") return bind_map<extract<T>>(binder);
              if (name == "bfind")
                return binder.take("shiftamt") ? bind_map<find_top_shift<T>>(binder) : bind_map<find_top<T>>(binder);
            }
            if constexpr (sizeof(T) == 4)
              if (name == "szext")
                return clamp ? bind_map<extend<T, true>>(binder) : bind_map<extend<T, false>>(binder);
            bound = false;
          });
  return known && bound;
}

}  // namespace emu::isa
