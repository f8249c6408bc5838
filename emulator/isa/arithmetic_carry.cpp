// Sums of more than 64 bits. PTX ISA, "Extended-Precision Integer Arithmetic Instructions": add.cc, addc, sub.cc, subc,
// mad.cc, madc.
//
// CC.CF is one bit a lane, kept in a hidden predicate of the warp's file. It is the adder's carry: a subtraction adds
// the complement, so that after it the bit says that nothing was borrowed (an H200; chains that mix additions and
// subtractions can tell, and compilers write such).

#include <type_traits>

#include "emulator/isa/arithmetic.h"
#include "emulator/isa/lanes.h"
#include "emulator/machine/decoder.h"

namespace emu::isa {
namespace {

enum class Form : uint8_t { add, subtract, multiply_add_low, multiply_add_high };

// Operands: 0 d, 1 a, 2 b, 3 c of mad, 4 the carry. Modifiers: bit 0 takes the carry in, bit 1 gives it out.
constexpr uint64_t kIn = 1, kOut = 2;
constexpr size_t kCarry = 4;

template <class T, Form kForm>
Flow extended(Warp& warp, const Instruction& instruction) {
  using Wide = std::conditional_t<sizeof(T) == 4, uint64_t, unsigned __int128>;
  using Unsigned = std::make_unsigned_t<T>;
  constexpr int kBits = sizeof(T) * 8;
  const T* a = warp.read<T>(instruction.operand[1]);
  const T* b = warp.read<T>(instruction.operand[2]);
  T* d = warp.write<T>(instruction.operand[0]);
  const Slot& flag = instruction.operand[kCarry];
  uint32_t in = instruction.modifiers & kIn ? warp.predicate(flag) : 0, out = 0;
  for_lanes(warp.active, [&](int lane) {
    Wide carry = in >> lane & 1;
    Wide x = static_cast<Unsigned>(a[lane]), y = static_cast<Unsigned>(b[lane]);
    Wide sum;
    if constexpr (kForm == Form::add) {
      sum = x + y + carry;
    } else if constexpr (kForm == Form::subtract) {
      sum = x + static_cast<Unsigned>(~y) + (instruction.modifiers & kIn ? carry : 1);
    } else {
      Wide product;
      if constexpr (kForm == Form::multiply_add_low) {
        product = static_cast<Unsigned>(x * y);
      } else if constexpr (std::is_signed_v<T>) {
        using Signed = std::conditional_t<sizeof(T) == 4, int64_t, __int128>;
        product = static_cast<Unsigned>((Signed{a[lane]} * Signed{b[lane]}) >> kBits);
      } else {
        product = (x * y) >> kBits;
      }
      const T* c = warp.read<T>(instruction.operand[3]);
      sum = product + static_cast<Unsigned>(c[lane]) + carry;
    }
    d[lane] = static_cast<T>(sum);
    out |= static_cast<uint32_t>(sum >> kBits & 1) << lane;
  });
  if (instruction.modifiers & kOut) warp.set_predicate(flag, out);
  return Flow::next;
}

}  // namespace

bool bind_carry(Binder& binder, std::string_view type) {
  std::string_view name = binder.source.name();
  bool gives = binder.take("cc"), takes = name == "addc" || name == "subc" || name == "madc";
  if (!gives && !takes) return false;
  bool multiplies = name.starts_with("mad");
  std::string_view part = multiplies ? binder.take_any({"lo", "hi"}) : "";
  if (multiplies && part.empty()) binder.refuse(".lo or .hi is wanted");
  Instruction& out = binder.out;
  bool known = with_integer(type, [&]<class T>() {
    if constexpr (sizeof(T) >= 4) {
      std::array<uint8_t, 4> widths{sizeof(T), sizeof(T), sizeof(T), sizeof(T)};
      bind_operands(binder, std::span(widths).first(multiplies ? 4 : 3));
      out.execute = part == "lo"              ? extended<T, Form::multiply_add_low>
                    : part == "hi"            ? extended<T, Form::multiply_add_high>
                    : name.starts_with("add") ? extended<T, Form::add>
                                              : extended<T, Form::subtract>;
    }
  });
  if (!known || !out.execute) return false;
  constexpr int64_t kCarryFlag = 1;  // tells it from other zeros of the warp's file
  out.operand[kCarry] = binder.decoder().warp_value(WarpValue::What::zero, 0, kCarryFlag);
  out.modifiers = (takes ? kIn : 0) | (gives ? kOut : 0);
  return true;
}

}  // namespace emu::isa
