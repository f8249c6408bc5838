#pragma once
// Turns one parsed instruction into a decoded one: the families call it to take the modifiers they know and to find the
// slots of the operands. What a family does not take is refused by name, when it is reached.

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/machine/program.h"
#include "emulator/ptx/ast.h"

namespace emu {
class Decoder;
}

namespace emu::isa {

class Binder {
 public:
  Binder(Decoder& decoder, const ptx::Instruction& source, Instruction& out);

  const ptx::Instruction& source;
  Instruction& out;

  // ---- modifiers, in any order; each can be taken once
  // ----------------------------------------------------------------
  bool take(std::string_view modifier);
  /// The first of `choices` that the instruction has, or "" when it has none.
  std::string_view take_any(std::initializer_list<std::string_view> choices);
  /// The next modifier not taken yet, in the order written; "" at the end.
  std::string_view next() const;
  /// Takes and returns next(); throws Unimplemented when there is none.
  std::string_view take_next();
  /// Throws Unimplemented naming the modifiers that nobody took.
  void done() const;

  // ---- operands
  // ---------------------------------------------------------------------------------------------------------
  size_t count() const { return source.operands.size(); }
  const ptx::Operand& operand(size_t i) const;
  bool is_sink(size_t i) const { return operand(i).kind == ptx::Operand::Kind::sink; }
  bool is_immediate(size_t i) const { return operand(i).kind == ptx::Operand::Kind::integer; }
  bool is_vector(size_t i) const { return operand(i).kind == ptx::Operand::Kind::vector; }
  bool is_address(size_t i) const { return operand(i).kind == ptx::Operand::Kind::address; }

  /// A value read per lane. Immediates, special registers and addresses of variables become slots of `bytes` (2, 4, 8,
  /// 16; 0: a predicate); registers keep their own width, which the family may compare with `bytes`.
  Slot input(size_t i, uint8_t bytes) { return input(operand(i), bytes); }
  Slot input(const ptx::Operand& operand, uint8_t bytes);
  /// A register that is written; Slot::none() for `_`.
  Slot output(size_t i) { return output(operand(i)); }
  Slot output(const ptx::Operand& operand);
  /// Integer known when the program is decoded.
  int64_t immediate(size_t i) const;
  /// [base + offset], without what follows the first comma.
  AddressOperand address(size_t i) { return address(operand(i)); }
  AddressOperand address(const ptx::Operand& operand);
  /// A list of slots, in order, for {a, b, ...} (or a single value): index of the first in Program::slot_lists.
  uint32_t list(const std::vector<Slot>& slots);
  /// The addresses after the first one go into list2, as Warp::second_address reads them: pairs of slots, base (or
  /// none) and offset.
  void second_addresses(const std::vector<AddressOperand>& addresses);
  std::vector<Slot> inputs(const ptx::Operand& vector, uint8_t bytes);
  std::vector<Slot> outputs(const ptx::Operand& vector);
  /// A constant as a slot.
  Slot constant(uint64_t value, uint8_t bytes);
  Slot zero_address();  ///< 64-bit 0

  /// State space in which an address's symbol lives, when its base is a symbol.
  std::optional<ptx::Space> symbol_space(const ptx::Operand& address) const;

  Decoder& decoder() { return decoder_; }
  [[noreturn]] void refuse(const std::string& why) const;  ///< throws Unimplemented

 private:
  Decoder& decoder_;
  uint32_t taken_ = 0;  // bit i: modifier i
};

using Bind = void (*)(Binder&);

/// Looks an opcode name up in the table of all families; nullptr when no family has it.
Bind find(std::string_view opcode);

struct Entry {
  std::string_view opcode;
  Bind bind;
};
/// All opcodes that some family has.
const std::vector<Entry>& table();

}  // namespace emu::isa
