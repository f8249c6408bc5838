#pragma once
// The 32 lanes of a warp as one loop, and what binding such an instruction needs.
//
// `map<f>` makes an instruction of a function of one lane's values: operand 0 is the result, the others its arguments,
// in order. `map<f, 2>` does so for each of the two values that a register of a packed type (f16x2) holds. The compiler
// turns the loop over all 32 lanes into vector code; a warp of which only some lanes are active goes lane by lane.

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "emulator/isa/binder.h"
#include "emulator/machine/warp.h"

namespace emu::isa {

/// body(lane) for each active lane. Registers of one instruction coincide or lie apart, so no lane sees another's
/// result.
template <class Body>
inline void active_lanes(const Warp& warp, Body&& body) {
  if (warp.active == kAllLanes) {
#pragma GCC ivdep
    for (int lane = 0; lane < kLanes; ++lane) body(lane);
  } else {
    for_lanes(warp.active, body);
  }
}

/// The same for registers that hold `kElements` values side by side: body(element), of kElements * 32.
template <int kElements, class Body>
inline void active_elements(const Warp& warp, Body&& body) {
  if (warp.active == kAllLanes) {
#pragma GCC ivdep
    for (int i = 0; i < kElements * kLanes; ++i) body(i);
  } else {
    for_lanes(warp.active, [&](int lane) {
      for (int i = 0; i < kElements; ++i) body(lane * kElements + i);
    });
  }
}

namespace detail {

template <auto kFunction, int kElements, class D, class... S, size_t... I>
inline Flow map(Warp& warp, const Instruction& instruction, D (*)(S...), std::index_sequence<I...>) {
  D* result = warp.write<D>(instruction.operand[0]);
  std::tuple<const S*...> arguments{warp.read<S>(instruction.operand[I + 1])...};
  active_elements<kElements>(warp, [&](int i) { result[i] = kFunction(std::get<I>(arguments)[i]...); });
  return Flow::next;
}

template <class D, class... S>
constexpr size_t arity(D (*)(S...)) {
  return sizeof...(S);
}

template <class D, class... S>
constexpr std::array<uint8_t, sizeof...(S) + 1> widths(D (*)(S...), int elements) {
  return {static_cast<uint8_t>(sizeof(D) * elements), static_cast<uint8_t>(sizeof(S) * elements)...};
}

}  // namespace detail

template <auto kFunction, int kElements = 1>
Flow map(Warp& warp, const Instruction& instruction) {
  return detail::map<kFunction, kElements>(warp, instruction, kFunction,
                                           std::make_index_sequence<detail::arity(kFunction)>{});
}

/// A value read, refused where its register has another width than `bytes`.
inline Slot source(Binder& binder, size_t i, uint8_t bytes) {
  Slot slot = binder.input(i, bytes);
  if (slot.bytes != bytes)
    binder.refuse("operand " + std::to_string(i + 1) + " has " + std::to_string(slot.bytes * 8) + " bits, " +
                  std::to_string(bytes * 8) + " are wanted");
  return slot;
}

/// A place for a result that is thrown away (`_`).
Slot scratch(Binder& binder);

/// A register that is written; a place to throw the value away for `_`.
inline Slot result(Binder& binder, const ptx::Operand& operand, uint8_t bytes) {
  Slot slot = binder.output(operand);
  if (!slot.present()) return scratch(binder);
  if (slot.bytes != bytes)
    binder.refuse("a result has " + std::to_string(slot.bytes * 8) + " bits, " + std::to_string(bytes * 8) +
                  " are wanted");
  return slot;
}
inline Slot result(Binder& binder, size_t i, uint8_t bytes) {
  return result(binder, binder.operand(i), bytes);
}

/// Operand 0 is a result of widths[0] bytes a lane, the following ones are sources of the other widths.
template <class Widths>
inline void bind_operands(Binder& binder, const Widths& widths) {
  if (binder.count() != widths.size())
    binder.refuse("the emulator knows it with " + std::to_string(widths.size()) + " operands, not " +
                  std::to_string(binder.count()));
  size_t i = 0;
  for (uint8_t bytes : widths) {
    binder.out.operand[i] = i == 0 ? result(binder, i, bytes) : source(binder, i, bytes);
    ++i;
  }
}

/// The instruction that does `kFunction` in every lane.
template <auto kFunction, int kElements = 1>
inline void bind_map(Binder& binder) {
  bind_operands(binder, detail::widths(kFunction, kElements));
  binder.out.execute = map<kFunction, kElements>;
}

/// Calls f.operator()<T>() with the C++ type of a PTX integer type; false when `type` is none. 8-bit types do not occur
/// in registers.
template <class F>
inline bool with_integer(std::string_view type, F&& f) {
  if (type == "u16") return f.template operator()<uint16_t>(), true;
  if (type == "s16") return f.template operator()<int16_t>(), true;
  if (type == "u32") return f.template operator()<uint32_t>(), true;
  if (type == "s32") return f.template operator()<int32_t>(), true;
  if (type == "u64") return f.template operator()<uint64_t>(), true;
  if (type == "s64") return f.template operator()<int64_t>(), true;
  return false;
}

/// The same for .b16, .b32, .b64, as unsigned types.
template <class F>
inline bool with_bits(std::string_view type, F&& f) {
  if (type == "b16") return f.template operator()<uint16_t>(), true;
  if (type == "b32") return f.template operator()<uint32_t>(), true;
  if (type == "b64") return f.template operator()<uint64_t>(), true;
  return false;
}

[[noreturn]] inline void refuse_type(const Binder& binder, std::string_view type) {
  binder.refuse("the emulator does not execute it on type ." + std::string(type));
}

}  // namespace emu::isa
