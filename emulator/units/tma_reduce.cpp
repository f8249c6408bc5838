// Reductions: cp.reduce.async.bulk and cp.reduce.async.bulk.tensor.
// Each element changes in one atomic step, so that reductions of several clusters, and the machine's atomics, never
// tear it.

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <type_traits>

#include "emulator/machine/trap.h"
#include "emulator/units/tma.h"
#include "emulator/units/tma_nest.h"

namespace emu::tma {
namespace {

constexpr auto kSource = "PTX ISA, cp.reduce.async.bulk";

std::string_view name_of(Reduction reduction) {
  constexpr std::string_view kNames[] = {"add", "min", "max", "inc", "dec", "and", "or", "xor"};
  return kNames[static_cast<size_t>(reduction)];
}

std::string_view name_of(ReductionType type) {
  constexpr std::string_view kNames[] = {"u32", "s32",  "u64", "s64", "b32",    "b64",
                                         "f16", "bf16", "f32", "f64", "f32.ftz"};
  return kNames[static_cast<size_t>(type)];
}

// 16-bit floating point, by its exponent bits (5: f16, 8: bf16). Sums of two of them rounded to f32 and then to 16 bits
// are rounded once: f32 has more than twice the digits plus two.
template <int kExponentBits>
float widen(uint16_t bits) {
  if constexpr (kExponentBits == 8) {
    return std::bit_cast<float>(uint32_t{bits} << 16);
  } else {
    const uint32_t sign = uint32_t{bits & 0x8000u} << 16, rest = bits & 0x7FFF;
    if (rest >= 0x7C00) return std::bit_cast<float>(sign | 0x7F80'0000 | (rest & 0x3FF) << 13);
    // The exponent field is rebased by a multiplication, which normalises subnormals too.
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(std::bit_cast<float>(rest << 13) * 0x1p112f));
  }
}

template <int kExponentBits>
uint16_t narrow(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return 0x7FFF;
  if constexpr (kExponentBits == 8) {
    return static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
  } else {
    const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
    const float magnitude = std::fabs(value);
    if (magnitude >= 65520.0f) return sign | 0x7C00;  // half a step past the largest
    if (magnitude < 0x1p-14f) {                       // subnormal: steps of 2^-24, and the sum of f16 values is one
      return sign | static_cast<uint16_t>(std::nearbyint(magnitude * 0x1p24f));
    }
    const uint32_t rounded = (bits & 0x7FFF'FFFF) + 0xFFF + ((bits >> 13) & 1);
    return sign | static_cast<uint16_t>((rounded - (uint32_t{112} << 23)) >> 13);
  }
}

/// min and max as the ISA has them: a number wins over a NaN, two NaN give the canonical one, -0 is below +0.
template <int kExponentBits>
uint16_t pick(uint16_t a, uint16_t b, bool smaller) {
  const float x = widen<kExponentBits>(a), y = widen<kExponentBits>(b);
  if (std::isnan(x)) return std::isnan(y) ? 0x7FFF : b;
  if (std::isnan(y)) return a;
  const bool a_first = x != y ? x < y : std::signbit(x);
  return a_first == smaller ? a : b;
}

template <Reduction kReduction, class T>
T combine_integers(T old, T operand) {
  using Unsigned = std::make_unsigned_t<T>;
  switch (kReduction) {
    case Reduction::add:
      return static_cast<T>(static_cast<Unsigned>(old) + static_cast<Unsigned>(operand));
    case Reduction::min:
      return std::min(old, operand);
    case Reduction::max:
      return std::max(old, operand);
    case Reduction::inc:
      return old >= operand ? T{0} : static_cast<T>(old + 1);
    case Reduction::dec:
      return old == 0 || old > operand ? operand : static_cast<T>(old - 1);
    case Reduction::bit_and:
      return old & operand;
    case Reduction::bit_or:
      return old | operand;
    case Reduction::bit_xor:
      return old ^ operand;
  }
}

template <Reduction kReduction, ReductionType kType, class T>
T combine(T old, T operand) {
  if constexpr (kType == ReductionType::f16 || kType == ReductionType::bf16) {
    constexpr int kExponentBits = kType == ReductionType::f16 ? 5 : 8;
    if constexpr (kReduction != Reduction::add) {
      return pick<kExponentBits>(old, operand, kReduction == Reduction::min);
    } else {
      return narrow<kExponentBits>(widen<kExponentBits>(old) + widen<kExponentBits>(operand));
    }
  } else if constexpr (kType == ReductionType::f32 || kType == ReductionType::f32_ftz) {
    const auto flush = [](uint32_t bits) {
      const bool tiny = kType == ReductionType::f32_ftz && (bits & 0x7F80'0000) == 0;
      return tiny ? bits & 0x8000'0000 : bits;
    };
    const float sum = std::bit_cast<float>(flush(old)) + std::bit_cast<float>(flush(operand));
    return std::isnan(sum) ? 0x7FFF'FFFF : flush(std::bit_cast<uint32_t>(sum));
  } else if constexpr (kType == ReductionType::f64) {
    // A NaN passes as it is, the operand's first; infinities that cancel give the NaN below. Read off an H200.
    if (std::isnan(std::bit_cast<double>(operand))) return operand;
    if (std::isnan(std::bit_cast<double>(old))) return old;
    const double sum = std::bit_cast<double>(old) + std::bit_cast<double>(operand);
    return std::isnan(sum) ? 0xFFF8'0000'0000'0000 : std::bit_cast<uint64_t>(sum);
  } else {
    return combine_integers<kReduction>(old, operand);
  }
}

/// Combines `bytes` of operands into memory, element by element.
using Combine = void (*)(std::byte* memory, const std::byte* operands, uint64_t bytes);

template <Reduction kReduction, ReductionType kType, class T>
void combine_all(std::byte* memory, const std::byte* operands, uint64_t bytes) {
  for (uint64_t at = 0; at < bytes; at += sizeof(T)) {
    T operand;
    std::memcpy(&operand, operands + at, sizeof(T));
    // Maps, bulk addresses and the storage behind them are aligned to 16 bytes.
    std::atomic_ref<T> element(*reinterpret_cast<T*>(memory + at));
    T old = element.load(std::memory_order_relaxed);
    while (!element.compare_exchange_weak(old, combine<kReduction, kType>(old, operand), std::memory_order_relaxed)) {
    }
  }
}

template <Reduction kReduction>
Combine combine_of(ReductionType type) {
  constexpr bool kFloatToo = kReduction == Reduction::add;
  constexpr bool kHalfToo = kFloatToo || kReduction == Reduction::min || kReduction == Reduction::max;
  constexpr bool kBits = kReduction >= Reduction::bit_and;
  constexpr bool kStep = kReduction == Reduction::inc || kReduction == Reduction::dec;
  switch (type) {
    case ReductionType::b32:
      if constexpr (kBits) return combine_all<kReduction, ReductionType::b32, uint32_t>;
      break;
    case ReductionType::b64:
      if constexpr (kBits) return combine_all<kReduction, ReductionType::b64, uint64_t>;
      break;
    case ReductionType::u32:
      if constexpr (!kBits) return combine_all<kReduction, ReductionType::u32, uint32_t>;
      break;
    case ReductionType::s32:
      if constexpr (!kBits && !kStep) return combine_all<kReduction, ReductionType::s32, int32_t>;
      break;
    case ReductionType::u64:
      if constexpr (!kBits && !kStep) return combine_all<kReduction, ReductionType::u64, uint64_t>;
      break;
    case ReductionType::s64:
      if constexpr (kHalfToo && !kFloatToo) return combine_all<kReduction, ReductionType::s64, int64_t>;
      break;
    case ReductionType::f16:
      if constexpr (kHalfToo) return combine_all<kReduction, ReductionType::f16, uint16_t>;
      break;
    case ReductionType::bf16:
      if constexpr (kHalfToo) return combine_all<kReduction, ReductionType::bf16, uint16_t>;
      break;
    case ReductionType::f32:
      if constexpr (kFloatToo) return combine_all<kReduction, ReductionType::f32, uint32_t>;
      break;
    case ReductionType::f32_ftz:
      if constexpr (kFloatToo) return combine_all<kReduction, ReductionType::f32_ftz, uint32_t>;
      break;
    case ReductionType::f64:
      if constexpr (kFloatToo) return combine_all<kReduction, ReductionType::f64, uint64_t>;
      break;
  }
  return nullptr;
}

/// nullptr where the ISA has no such combination.
Combine find_combine(Reduction reduction, ReductionType type) {
  switch (reduction) {
    case Reduction::add:
      return combine_of<Reduction::add>(type);
    case Reduction::min:
      return combine_of<Reduction::min>(type);
    case Reduction::max:
      return combine_of<Reduction::max>(type);
    case Reduction::inc:
      return combine_of<Reduction::inc>(type);
    case Reduction::dec:
      return combine_of<Reduction::dec>(type);
    case Reduction::bit_and:
      return combine_of<Reduction::bit_and>(type);
    case Reduction::bit_or:
      return combine_of<Reduction::bit_or>(type);
    case Reduction::bit_xor:
      return combine_of<Reduction::bit_xor>(type);
  }
  return nullptr;
}

/// The reductions that maps of each type take (an H200 refuses all others: illegal instruction).
Combine find_combine(Reduction reduction, TensorMapType type) {
  const bool bits = reduction >= Reduction::bit_and;
  switch (type) {
    case TensorMapType::uint32:
      return find_combine(reduction, bits ? ReductionType::b32 : ReductionType::u32);
    case TensorMapType::int32:
      return find_combine(reduction, bits ? ReductionType::b32 : ReductionType::s32);
    case TensorMapType::uint64:
      return find_combine(reduction, bits ? ReductionType::b64 : ReductionType::u64);
    case TensorMapType::int64:
      return find_combine(reduction, ReductionType::s64);
    case TensorMapType::float16:
      return find_combine(reduction, ReductionType::f16);
    case TensorMapType::bfloat16:
      return find_combine(reduction, ReductionType::bf16);
    case TensorMapType::float32:
    case TensorMapType::tfloat32:
      return find_combine(reduction, ReductionType::f32);
    case TensorMapType::float32_ftz:
    case TensorMapType::tfloat32_ftz:
      return find_combine(reduction, ReductionType::f32_ftz);
    case TensorMapType::float64:
      return find_combine(reduction, ReductionType::f64);
    default:
      return nullptr;
  }
}

Combine require_bulk(Reduction reduction, ReductionType type, bool to_shared) {
  // Between CTAs: 32-bit integers, and sums of u64.
  const bool exists = !to_shared || type == ReductionType::u32 || type == ReductionType::s32 ||
                      type == ReductionType::b32 || (type == ReductionType::u64 && reduction == Reduction::add);
  if (Combine combine = exists ? find_combine(reduction, type) : nullptr) return combine;
  throw Trap(FaultCode::illegal_instruction,
             fmt::format("bulk reduction to {} memory: .{}.{} does not exist", to_shared ? "shared" : "global",
                         name_of(reduction), name_of(type)),
             kSource);
}

}  // namespace

void check_reduction(const Box& box, Reduction reduction) {
  if (box.direction() != Direction::reduce) throw std::invalid_argument("the box was not made for a reduction");
  if (find_combine(reduction, box.map().type) != nullptr) return;
  throw Trap(FaultCode::illegal_instruction,
             fmt::format("TMA reduction: .{} does not exist for tensor maps of {}", name_of(reduction),
                         emu::name_of(box.map().type)),
             "PTX ISA, cp.reduce.async.bulk.tensor");
}

void reduce(const Box& box, Reduction reduction, std::span<const std::byte> staging, GlobalMemory& memory) {
  check_reduction(box, reduction);
  if (staging.size() != box.bytes()) {
    throw std::invalid_argument(fmt::format("staging of {} bytes for a box of {}", staging.size(), box.bytes()));
  }
  const Combine combine = find_combine(reduction, box.map().type);
  const Nest nest = Nest::of(box, box.row_bytes());
  if (nest.extent == 0) return;
  for_rows(nest, [&](uint64_t global_offset, uint64_t local_offset) {
    const std::span<std::byte> row = nest.row(box, memory, global_offset, Access::atomic);
    combine(row.data(), staging.data() + nest.local + local_offset, row.size());
  });
}

void check_bulk_reduction(Reduction reduction, ReductionType type, bool to_shared) {
  require_bulk(reduction, type, to_shared);
}

void bulk_reduce_global(GlobalMemory& memory, uint64_t address, Reduction reduction, ReductionType type,
                        std::span<const std::byte> from) {
  const Combine combine = require_bulk(reduction, type, false);
  if (!from.empty()) combine(memory.door(address, from.size(), Access::atomic), from.data(), from.size());
}

void bulk_reduce_shared(Window window, uint32_t address, Reduction reduction, ReductionType type,
                        std::span<const std::byte> from) {
  const Combine combine = require_bulk(reduction, type, true);
  check_shared_range(address, from.size(), window);
  if (!from.empty()) combine(window.bytes + address, from.data(), from.size());
}

}  // namespace emu::tma
