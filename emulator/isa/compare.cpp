// Comparison and selection. PTX ISA, "Comparison and Selection Instructions": setp, set, selp, slct; "Half Precision
// Comparison Instructions".

#include <cmath>
#include <cstring>
#include <type_traits>

#include "emulator/isa/families.h"
#include "emulator/isa/float_format.h"
#include "emulator/isa/lanes.h"

namespace emu::isa {
namespace {

/// A relation is the set of outcomes (less, equal, greater, unordered) for which it holds.
enum : uint64_t { kLess = 1, kEqual = 2, kGreater = 4, kUnordered = 8 };

struct Relation {
  std::string_view name;
  uint64_t outcomes;
};
constexpr Relation kRelations[] = {
    {"eq", kEqual},
    {"ne", kLess | kGreater},
    {"lt", kLess},
    {"le", kLess | kEqual},
    {"gt", kGreater},
    {"ge", kGreater | kEqual},
    {"lo", kLess},
    {"ls", kLess | kEqual},
    {"hi", kGreater},
    {"hs", kGreater | kEqual},
    {"equ", kEqual | kUnordered},
    {"neu", kLess | kGreater | kUnordered},
    {"ltu", kLess | kUnordered},
    {"leu", kLess | kEqual | kUnordered},
    {"gtu", kGreater | kUnordered},
    {"geu", kGreater | kEqual | kUnordered},
    {"num", kLess | kEqual | kGreater},
    {"nan", kUnordered},
};

// How sources are read: as the number they are, or flushed, or widened from 16 bits.
struct Plain {
  template <class T>
  static T value(T raw) {
    return raw;
  }
};
struct Flushed {
  static float value(float raw) { return flush(raw); }
};
struct FromF16 {
  static float value(uint16_t raw) { return f16_to_float(raw); }
};
struct FromF16Flushed {
  static float value(uint16_t raw) { return f16_to_float(flush_f16(raw)); }
};
struct FromBf16 {
  static float value(uint16_t raw) { return bf16_to_float(raw); }
};

/// Bit i: byte i is 1. Bytes are 0 or 1.
uint32_t pack(const uint8_t (&bytes)[kLanes]) {
  uint32_t bits = 0;
  for (int i = 0; i < kLanes; i += 8) {
    uint64_t eight;
    std::memcpy(&eight, bytes + i, 8);
    // The product moves byte k's bit to bit 56 + k; no two meet.
    bits |= static_cast<uint32_t>(eight * 0x0102040810204080ull >> 56) << i;
  }
  return bits;
}

/// The lanes (of all 32; inactive ones too) in which the relation holds.
template <class Raw, class Reader, int kStride = 1>
uint32_t relation_holds(const Raw* a, const Raw* b, uint64_t outcomes) {
  auto lanes = [&](auto compare) {
    uint8_t holds[kLanes];
    for (int lane = 0; lane < kLanes; ++lane)
      holds[lane] = compare(Reader::value(a[lane * kStride]), Reader::value(b[lane * kStride]));
    return pack(holds);
  };
  // A relation that holds for unordered values is the opposite of one that does not.
  bool opposite = outcomes & kUnordered;
  uint32_t bits = 0;
  switch (opposite ? ~outcomes & 7 : outcomes) {
    case kLess:
      bits = lanes([](auto x, auto y) { return x < y; });
      break;
    case kLess | kEqual:
      bits = lanes([](auto x, auto y) { return x <= y; });
      break;
    case kEqual:
      bits = lanes([](auto x, auto y) { return x == y; });
      break;
    case kGreater:
      bits = lanes([](auto x, auto y) { return x > y; });
      break;
    case kGreater | kEqual:
      bits = lanes([](auto x, auto y) { return x >= y; });
      break;
    case kLess | kGreater:
      bits = lanes([](auto x, auto y) { return (x < y) | (x > y); });
      break;
    case kLess | kEqual | kGreater:
      bits = lanes([](auto x, auto y) { return (x == x) & (y == y); });
      break;
  }
  return opposite ? ~bits : bits;
}

enum : uint64_t { kAnd = 1, kOr = 2, kXor = 3, kCombine = 0xF };
constexpr int kOutcomesShift = 4;
constexpr int kResultShift = 8;  // of set: 0 all ones, 1 1.0f, 2 f16 1.0, 3 bf16 1.0

uint32_t combine(uint64_t modifiers, uint32_t holds, uint32_t c) {
  switch (modifiers & kCombine) {
    case kAnd:
      return holds & c;
    case kOr:
      return holds | c;
    case kXor:
      return holds ^ c;
    default:
      return holds;
  }
}

uint32_t third(const Warp& warp, const Instruction& instruction) {
  return instruction.operand[4].present() ? warp.predicate(instruction.operand[4]) : 0;
}

/// Operands: 0 p, 1 q, 2 a, 3 b, 4 c. p = (a op b) bool c; q = !(a op b) bool c.
template <class Raw, class Reader>
Flow set_predicates(Warp& warp, const Instruction& instruction) {
  uint32_t holds =
      relation_holds<Raw, Reader>(warp.read<Raw>(instruction.operand[2]), warp.read<Raw>(instruction.operand[3]),
                                  instruction.modifiers >> kOutcomesShift & 15);
  uint32_t c = third(warp, instruction);
  warp.set_predicate(instruction.operand[0], combine(instruction.modifiers, holds, c));
  warp.set_predicate(instruction.operand[1], combine(instruction.modifiers, ~holds, c));
  return Flow::next;
}

/// Pairs of 16-bit floats: p is of the low halves, q of the high ones.
template <class Reader>
Flow set_predicates_of_pairs(Warp& warp, const Instruction& instruction) {
  const uint16_t* a = warp.read<uint16_t>(instruction.operand[2]);
  const uint16_t* b = warp.read<uint16_t>(instruction.operand[3]);
  uint64_t outcomes = instruction.modifiers >> kOutcomesShift & 15;
  uint32_t low = relation_holds<uint16_t, Reader, 2>(a, b, outcomes);
  uint32_t high = relation_holds<uint16_t, Reader, 2>(a + 1, b + 1, outcomes);
  uint32_t c = third(warp, instruction);
  warp.set_predicate(instruction.operand[0], combine(instruction.modifiers, low, c));
  warp.set_predicate(instruction.operand[1], combine(instruction.modifiers, high, c));
  return Flow::next;
}

template <class Raw, class Reader>
Flow set_words(Warp& warp, const Instruction& instruction) {
  constexpr uint32_t kTrue[] = {0xFFFFFFFFu, 0x3F800000u, 0x3C00u, 0x3F80u};
  uint32_t holds =
      relation_holds<Raw, Reader>(warp.read<Raw>(instruction.operand[2]), warp.read<Raw>(instruction.operand[3]),
                                  instruction.modifiers >> kOutcomesShift & 15);
  holds = combine(instruction.modifiers, holds, third(warp, instruction));
  uint32_t value = kTrue[instruction.modifiers >> kResultShift & 3];
  const Slot& d = instruction.operand[0];
  for_lanes(warp.active, [&](int lane) {
    uint32_t word = holds >> lane & 1 ? value : 0;
    if (d.bytes == 2)
      warp.write<uint16_t>(d)[lane] = static_cast<uint16_t>(word);
    else
      warp.write<uint32_t>(d)[lane] = word;
  });
  return Flow::next;
}

/// f16x2: each half of d is 1.0 (or all ones) where its relation holds.
template <class Reader>
Flow set_pairs(Warp& warp, const Instruction& instruction) {
  constexpr uint32_t kTrue[] = {0xFFFFu, 0, 0x3C00u, 0x3F80u};
  const uint16_t* a = warp.read<uint16_t>(instruction.operand[2]);
  const uint16_t* b = warp.read<uint16_t>(instruction.operand[3]);
  uint64_t outcomes = instruction.modifiers >> kOutcomesShift & 15;
  uint32_t c = third(warp, instruction);
  uint32_t low = combine(instruction.modifiers, relation_holds<uint16_t, Reader, 2>(a, b, outcomes), c);
  uint32_t high = combine(instruction.modifiers, relation_holds<uint16_t, Reader, 2>(a + 1, b + 1, outcomes), c);
  uint32_t value = kTrue[instruction.modifiers >> kResultShift & 3];
  uint16_t* d = warp.write<uint16_t>(instruction.operand[0]);
  for_lanes(warp.active, [&](int lane) {
    d[2 * lane] = static_cast<uint16_t>(low >> lane & 1 ? value : 0);
    d[2 * lane + 1] = static_cast<uint16_t>(high >> lane & 1 ? value : 0);
  });
  return Flow::next;
}

/// Takes relation and Boolean operation and packs them.
uint64_t take_relation(Binder& binder) {
  uint64_t modifiers = 0;
  bool found = false;
  for (const Relation& relation : kRelations)
    if (binder.take(relation.name)) {
      modifiers = relation.outcomes << kOutcomesShift;
      found = true;
      break;
    }
  if (!found) binder.refuse("a comparison is wanted");
  std::string_view boolean = binder.take_any({"and", "or", "xor"});
  if (boolean == "and") modifiers |= kAnd;
  if (boolean == "or") modifiers |= kOr;
  if (boolean == "xor") modifiers |= kXor;
  return modifiers;
}

/// Finds the functions for a source type: f.template operator()<Raw, Reader>(pairs).
template <class F>
void with_source(Binder& binder, std::string_view type, bool ftz, F&& f) {
  if (type == "f32")
    return ftz ? f.template operator()<float, Flushed>(false) : f.template operator()<float, Plain>(false);
  if (type == "f64") return f.template operator()<double, Plain>(false);
  if (type == "f16" || type == "f16x2")
    return ftz ? f.template operator()<uint16_t, FromF16Flushed>(type == "f16x2")
               : f.template operator()<uint16_t, FromF16>(type == "f16x2");
  if (type == "bf16" || type == "bf16x2") return f.template operator()<uint16_t, FromBf16>(type == "bf16x2");
  bool known = with_integer(type, [&]<class T>() { f.template operator()<T, Plain>(false); }) ||
               with_bits(type, [&]<class T>() { f.template operator()<T, Plain>(false); });
  if (!known) refuse_type(binder, type);
}

void bind_third(Binder& binder, size_t index) {
  bool wanted = binder.out.modifiers & kCombine;
  if (binder.count() != index + (wanted ? 1u : 0u)) binder.refuse("the number of operands does not fit");
  if (wanted) binder.out.operand[4] = source(binder, index, 0);
}

void bind_setp(Binder& binder) {
  Instruction& out = binder.out;
  out.modifiers = take_relation(binder);
  bool ftz = binder.take("ftz");
  std::string_view type = binder.take_next();
  const ptx::Operand& results = binder.operand(0);
  if (results.kind == ptx::Operand::Kind::pair) {
    out.operand[0] = binder.output(results.children[0]);
    out.operand[1] = binder.output(results.children[1]);
  } else {
    out.operand[0] = binder.output(0);
  }
  with_source(binder, type, ftz, [&]<class Raw, class Reader>(bool pairs) {
    uint8_t bytes = pairs ? 4 : sizeof(Raw);
    out.operand[2] = source(binder, 1, bytes);
    out.operand[3] = source(binder, 2, bytes);
    out.execute = set_predicates<Raw, Reader>;
    if constexpr (std::is_same_v<Raw, uint16_t> && !std::is_same_v<Reader, Plain>)
      if (pairs) out.execute = set_predicates_of_pairs<Reader>;
  });
  bind_third(binder, 3);
}

void bind_set(Binder& binder) {
  Instruction& out = binder.out;
  out.modifiers = take_relation(binder);
  bool ftz = binder.take("ftz");
  std::string_view to = binder.take_next(), type = binder.take_next();
  uint64_t value = to == "f32" ? 1 : to.starts_with("f16") ? 2 : to.starts_with("bf16") ? 3 : 0;
  out.modifiers |= value << kResultShift;
  bool words = to == "u32" || to == "s32" || to == "f32" || to.ends_with("x2");
  bool halves = to == "u16" || to == "s16" || to == "f16" || to == "bf16";
  if (!words && !halves) refuse_type(binder, to);
  out.operand[0] = result(binder, 0, words ? 4 : 2);
  with_source(binder, type, ftz, [&]<class Raw, class Reader>(bool pairs) {
    if (!pairs && to.ends_with("x2")) refuse_type(binder, to);
    if (pairs && halves) refuse_type(binder, to);
    uint8_t bytes = pairs ? 4 : sizeof(Raw);
    out.operand[2] = source(binder, 1, bytes);
    out.operand[3] = source(binder, 2, bytes);
    out.execute = set_words<Raw, Reader>;
    if constexpr (std::is_same_v<Raw, uint16_t> && !std::is_same_v<Reader, Plain>)
      if (pairs) out.execute = set_pairs<Reader>;
  });
  bind_third(binder, 3);
}

// ---- selp, slct -----------------------------------------------------------------------------------------------------

template <class T>
Flow select(Warp& warp, const Instruction& instruction) {
  T* d = warp.write<T>(instruction.operand[0]);
  const T* a = warp.read<T>(instruction.operand[1]);
  const T* b = warp.read<T>(instruction.operand[2]);
  uint32_t p = warp.predicate(instruction.operand[3]);
  active_lanes(warp, [&](int lane) { d[lane] = p >> lane & 1 ? a[lane] : b[lane]; });
  return Flow::next;
}

uint8_t width(Binder& binder, std::string_view type) {
  if (type.ends_with("16")) return 2;
  if (type.ends_with("32")) return 4;
  if (type.ends_with("64")) return 8;
  refuse_type(binder, type);
}

void bind_selp(Binder& binder) {
  uint8_t bytes = width(binder, binder.take_next());
  binder.out.operand[0] = result(binder, 0, bytes);
  binder.out.operand[1] = source(binder, 1, bytes);
  binder.out.operand[2] = source(binder, 2, bytes);
  binder.out.operand[3] = source(binder, 3, 0);
  binder.out.execute = bytes == 2 ? select<uint16_t> : bytes == 4 ? select<uint32_t> : select<uint64_t>;
}

template <class T>
T choose(T a, T b, int32_t c) {
  return c >= 0 ? a : b;
}
template <class T>
T choose_by_float(T a, T b, float c) {
  return c >= 0 ? a : b;  // -0 is not less than 0; NaN selects b
}
template <class T>
T choose_by_flushed(T a, T b, float c) {
  return flush(c) >= 0 ? a : b;
}

void bind_slct(Binder& binder) {
  bool ftz = binder.take("ftz");
  std::string_view type = binder.take_next(), by = binder.take_next();
  if (by != "s32" && by != "f32") refuse_type(binder, by);
  auto bind = [&]<class T>() {
    if (by == "s32") return bind_map<choose<T>>(binder);
    ftz ? bind_map<choose_by_flushed<T>>(binder) : bind_map<choose_by_float<T>>(binder);
  };
  uint8_t bytes = width(binder, type);
  if (bytes == 2)
    bind.template operator()<uint16_t>();
  else if (bytes == 4)
    bind.template operator()<uint32_t>();
  else
    bind.template operator()<uint64_t>();
}

constexpr Entry kEntries[] = {{"setp", bind_setp}, {"set", bind_set}, {"selp", bind_selp}, {"slct", bind_slct}};

}  // namespace

std::span<const Entry> compare_entries() {
  return kEntries;
}

}  // namespace emu::isa
