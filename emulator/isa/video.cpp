// Video instructions: arithmetic on bytes and halves of registers. PTX ISA, "Scalar Video Instructions" (vadd, vsub,
// vabsdiff, vmin, vmax, vshl, vshr, vset) and "SIMD Video Instructions" (vadd2, vadd4, ...).
//
// Scalar ones take a part of each source, widen it, and put the result into a part of c, or combine it with c. SIMD
// ones do two halves or four bytes at once; a mask keeps lanes of c, .add adds the lanes to c.

#include <algorithm>
#include <string>

#include "emulator/isa/families.h"
#include "emulator/isa/lanes.h"

namespace emu::isa {
namespace {

enum class Operation : uint8_t { add, sub, absdiff, min, max, shl, shr, avrg, set };
enum class Compare : uint8_t { eq, ne, lt, le, gt, ge };
enum class Second : uint8_t { none, merge, add, min, max };

/// What a video instruction does, packed into Instruction::modifiers; selectors are in Instruction::immediate.
struct Video {
  Operation operation;
  Compare compare = Compare::eq;
  Second second = Second::none;
  bool signed_d = false, signed_a = false, signed_b = false, saturate = false, wrap = false;

  uint64_t packed() const {
    return static_cast<uint64_t>(operation) | static_cast<uint64_t>(compare) << 8 |
           static_cast<uint64_t>(second) << 16 | uint64_t{signed_d} << 24 | uint64_t{signed_a} << 25 |
           uint64_t{signed_b} << 26 | uint64_t{saturate} << 27 | uint64_t{wrap} << 28;
  }
  static Video unpack(uint64_t bits) {
    return {.operation = static_cast<Operation>(bits & 0xFF),
            .compare = static_cast<Compare>(bits >> 8 & 0xFF),
            .second = static_cast<Second>(bits >> 16 & 0xFF),
            .signed_d = (bits >> 24 & 1) != 0,
            .signed_a = (bits >> 25 & 1) != 0,
            .signed_b = (bits >> 26 & 1) != 0,
            .saturate = (bits >> 27 & 1) != 0,
            .wrap = (bits >> 28 & 1) != 0};
  }
};

/// `bits` bits of `value` from bit `shift` on.
int64_t field(uint32_t value, int shift, int bits, bool is_signed) {
  uint64_t raw = (uint64_t{value} >> shift) & ((uint64_t{1} << bits) - 1);
  if (is_signed && raw >> (bits - 1) & 1) raw |= ~uint64_t{0} << bits;
  return static_cast<int64_t>(raw);
}

int64_t clamp_to(int64_t value, int bits, bool is_signed) {
  int64_t low = is_signed ? -(int64_t{1} << (bits - 1)) : 0;
  int64_t high = (int64_t{1} << (is_signed ? bits - 1 : bits)) - 1;
  return std::clamp(value, low, high);
}

int64_t compute(const Video& video, int64_t a, int64_t b) {
  switch (video.operation) {
    case Operation::add:
      return a + b;
    case Operation::sub:
      return a - b;
    case Operation::absdiff:
      return a > b ? a - b : b - a;
    case Operation::min:
      return std::min(a, b);
    case Operation::max:
      return std::max(a, b);
    case Operation::avrg:
      return (a + b + (a + b >= 0)) >> 1;
    case Operation::shl:
    case Operation::shr: {
      int64_t count = video.wrap ? b & 31 : std::min<int64_t>(static_cast<uint32_t>(b), 32);
      if (video.operation == Operation::shr) return a >> count;
      __int128 wide = static_cast<__int128>(a) << count;
      constexpr __int128 kMost = INT64_MAX, kLeast = INT64_MIN;
      return static_cast<int64_t>(video.saturate ? std::clamp(wide, kLeast, kMost) : wide);
    }
    case Operation::set:
      switch (video.compare) {
        case Compare::eq:
          return a == b;
        case Compare::ne:
          return a != b;
        case Compare::lt:
          return a < b;
        case Compare::le:
          return a <= b;
        case Compare::gt:
          return a > b;
        case Compare::ge:
          return a >= b;
      }
  }
  return 0;
}

// ---- scalar ---------------------------------------------------------------------------------------------------------

/// A part of a register: shift | bits << 8. The immediate holds those of a, b and d, 16 bits each.
constexpr uint64_t kWhole = 32 << 8;

uint64_t part_of(Binder& binder, const ptx::Operand& operand) {
  std::string_view selector = operand.selector;
  if (selector.empty()) return kWhole;
  if (selector.size() == 2 && selector[0] == 'b' && selector[1] >= '0' && selector[1] < '4')
    return static_cast<uint64_t>(8 * (selector[1] - '0')) | 8 << 8;
  if (selector.size() == 2 && selector[0] == 'h' && (selector[1] == '0' || selector[1] == '1'))
    return static_cast<uint64_t>(16 * (selector[1] - '0')) | 16 << 8;
  binder.refuse("the selector ." + std::string(selector));
}

/// Operands: 0 d, 1 a, 2 b, 3 c.
Flow scalar(Warp& warp, const Instruction& instruction) {
  Video video = Video::unpack(instruction.modifiers);
  auto select = [&](uint32_t value, int which, bool is_signed) {
    uint64_t part = static_cast<uint64_t>(instruction.immediate) >> (16 * which);
    return field(value, static_cast<int>(part & 0xFF), static_cast<int>(part >> 8 & 0xFF), is_signed);
  };
  int shift = static_cast<int>(instruction.immediate >> 32 & 0xFF);
  int bits = static_cast<int>(instruction.immediate >> 40 & 0xFF);
  uint32_t* d = warp.write<uint32_t>(instruction.operand[0]);
  const uint32_t *a = warp.read<uint32_t>(instruction.operand[1]), *b = warp.read<uint32_t>(instruction.operand[2]),
                 *c = warp.read<uint32_t>(instruction.operand[3]);
  for_lanes(warp.active, [&](int lane) {
    int64_t value = compute(video, select(a[lane], 0, video.signed_a), select(b[lane], 1, video.signed_b));
    if (video.saturate) value = clamp_to(value, bits, video.signed_d);
    uint32_t low = static_cast<uint32_t>(value), old = c[lane];
    switch (video.second) {
      case Second::none:
        d[lane] = low;
        break;
      case Second::merge: {
        uint32_t mask = bits == 32 ? ~0u : ((1u << bits) - 1) << shift;
        d[lane] = (old & ~mask) | (low << shift & mask);
        break;
      }
      case Second::add:
        d[lane] = low + old;
        break;
      case Second::min:
      case Second::max: {
        bool less = video.signed_d ? static_cast<int32_t>(low) < static_cast<int32_t>(old) : low < old;
        d[lane] = less == (video.second == Second::min) ? low : old;
      }
    }
  });
  return Flow::next;
}

bool take_type(Binder& binder) {
  std::string_view type = binder.take_next();
  if (type != "u32" && type != "s32") refuse_type(binder, type);
  return type == "s32";
}

Compare take_compare(Binder& binder) {
  constexpr std::string_view kNames[] = {"eq", "ne", "lt", "le", "gt", "ge"};
  for (size_t i = 0; i < std::size(kNames); ++i)
    if (binder.take(kNames[i])) return static_cast<Compare>(i);
  binder.refuse("a comparison is wanted");
}

template <Operation kOperation>
void bind_scalar(Binder& binder) {
  Video video{.operation = kOperation};
  if (kOperation != Operation::set) video.signed_d = take_type(binder);
  video.signed_a = take_type(binder);
  video.signed_b = take_type(binder);
  if (kOperation == Operation::set) video.compare = take_compare(binder);
  video.saturate = binder.take("sat");
  if (kOperation == Operation::shl || kOperation == Operation::shr) {
    video.wrap = binder.take("wrap");
    if (!video.wrap && !binder.take("clamp")) binder.refuse("clamp or wrap is wanted");
  }
  std::string_view second = binder.take_any({"add", "min", "max"});
  Instruction& out = binder.out;
  for (size_t i = 0; i < 3; ++i) out.operand[i] = i == 0 ? result(binder, 0, 4) : source(binder, i, 4);
  uint64_t into = part_of(binder, binder.operand(0));
  bool third = binder.count() == 4;
  if (third != (!second.empty() || into != kWhole))
    binder.refuse("a third source goes with a second operation or a selector");
  out.operand[3] = third ? source(binder, 3, 4) : binder.constant(0, 4);
  video.second = second == "add"   ? Second::add
                 : second == "min" ? Second::min
                 : second == "max" ? Second::max
                 : third           ? Second::merge
                                   : Second::none;
  out.immediate =
      static_cast<int64_t>(part_of(binder, binder.operand(1)) | part_of(binder, binder.operand(2)) << 16 | into << 32);
  out.modifiers = video.packed();
  out.execute = scalar;
}

// ---- SIMD -----------------------------------------------------------------------------------------------------------

/// Four bits for each lane of a source: which lane of {b, a} it is; the immediate holds those of a, of b, and the mask.
template <int kLanesOfWord>
uint64_t choice(Binder& binder, const ptx::Operand& operand, uint64_t usual) {
  std::string_view selector = operand.selector;
  if (selector.empty()) return usual;
  uint64_t out = 0;
  if (selector.size() != kLanesOfWord + 1) binder.refuse("the selector ." + std::string(selector));
  for (char digit : selector.substr(1)) {
    if (digit < '0' || digit >= '0' + 2 * kLanesOfWord) binder.refuse("the selector ." + std::string(selector));
    out = out << 4 | static_cast<uint64_t>(digit - '0');
  }
  return out;
}

template <int kLanesOfWord>
Flow simd(Warp& warp, const Instruction& instruction) {
  constexpr int kBits = 32 / kLanesOfWord;
  Video video = Video::unpack(instruction.modifiers);
  uint64_t choices = static_cast<uint64_t>(instruction.immediate);
  uint32_t mask = static_cast<uint32_t>(choices >> 32);
  uint32_t* d = warp.write<uint32_t>(instruction.operand[0]);
  const uint32_t *a = warp.read<uint32_t>(instruction.operand[1]), *b = warp.read<uint32_t>(instruction.operand[2]),
                 *c = warp.read<uint32_t>(instruction.operand[3]);
  for_lanes(warp.active, [&](int thread) {
    auto lane_of = [&](int which, int lane, bool is_signed) {
      int at = static_cast<int>(choices >> (16 * which + 4 * lane) & 15);
      return field(at < kLanesOfWord ? a[thread] : b[thread], at % kLanesOfWord * kBits, kBits, is_signed);
    };
    uint32_t value = video.second == Second::add ? c[thread] : 0;
    for (int lane = 0; lane < kLanesOfWord; ++lane) {
      uint32_t place = ((uint64_t{1} << kBits) - 1) << (lane * kBits);
      if (!(mask >> lane & 1)) {
        if (video.second == Second::merge) value |= c[thread] & place;
        continue;
      }
      int64_t one = compute(video, lane_of(0, lane, video.signed_a), lane_of(1, lane, video.signed_b));
      if (video.saturate) one = clamp_to(one, kBits, video.signed_d);
      if (video.second == Second::add)
        value += static_cast<uint32_t>(one);
      else
        value |= static_cast<uint32_t>(one) << (lane * kBits) & place;
    }
    d[thread] = value;
  });
  return Flow::next;
}

template <Operation kOperation, int kLanesOfWord>
void bind_simd(Binder& binder) {
  Video video{.operation = kOperation};
  if (kOperation != Operation::set) video.signed_d = take_type(binder);
  video.signed_a = take_type(binder);
  video.signed_b = take_type(binder);
  if (kOperation == Operation::set) video.compare = take_compare(binder);
  video.saturate = binder.take("sat");
  video.second = binder.take("add") ? Second::add : Second::merge;
  Instruction& out = binder.out;
  if (binder.count() != 4) binder.refuse("three sources are wanted");
  for (size_t i = 0; i < 4; ++i) out.operand[i] = i == 0 ? result(binder, 0, 4) : source(binder, i, 4);
  uint64_t mask = 0;
  std::string_view chosen = binder.operand(0).selector;
  if (chosen.empty()) mask = (1u << kLanesOfWord) - 1;
  for (char digit : chosen.substr(chosen.empty() ? 0 : 1)) mask |= uint64_t{1} << (digit - '0');
  if (mask >> kLanesOfWord) binder.refuse("the mask ." + std::string(chosen));
  out.immediate = static_cast<int64_t>(
      choice<kLanesOfWord>(binder, binder.operand(1), kLanesOfWord == 2 ? 0x10 : 0x3210) |
      choice<kLanesOfWord>(binder, binder.operand(2), kLanesOfWord == 2 ? 0x32 : 0x7654) << 16 | mask << 32);
  out.modifiers = video.packed();
  out.execute = simd<kLanesOfWord>;
}

constexpr Entry kEntries[] = {
    {"vadd", bind_scalar<Operation::add>},           {"vsub", bind_scalar<Operation::sub>},
    {"vabsdiff", bind_scalar<Operation::absdiff>},   {"vmin", bind_scalar<Operation::min>},
    {"vmax", bind_scalar<Operation::max>},           {"vshl", bind_scalar<Operation::shl>},
    {"vshr", bind_scalar<Operation::shr>},           {"vset", bind_scalar<Operation::set>},
    {"vadd2", bind_simd<Operation::add, 2>},         {"vsub2", bind_simd<Operation::sub, 2>},
    {"vavrg2", bind_simd<Operation::avrg, 2>},       {"vabsdiff2", bind_simd<Operation::absdiff, 2>},
    {"vmin2", bind_simd<Operation::min, 2>},         {"vmax2", bind_simd<Operation::max, 2>},
    {"vset2", bind_simd<Operation::set, 2>},         {"vadd4", bind_simd<Operation::add, 4>},
    {"vsub4", bind_simd<Operation::sub, 4>},         {"vavrg4", bind_simd<Operation::avrg, 4>},
    {"vabsdiff4", bind_simd<Operation::absdiff, 4>}, {"vmin4", bind_simd<Operation::min, 4>},
    {"vmax4", bind_simd<Operation::max, 4>},         {"vset4", bind_simd<Operation::set, 4>},
};

}  // namespace

std::span<const Entry> video_entries() {
  return kEntries;
}

}  // namespace emu::isa
