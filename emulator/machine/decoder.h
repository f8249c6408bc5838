#pragma once
// From a parsed function to a Program: places registers, immediates and special registers, binds every instruction.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "emulator/machine/code.h"
#include "emulator/machine/program.h"
#include "emulator/ptx/ast.h"
#include "emulator/ptx/liveness.h"

namespace emu {

class Decoder {
 public:
  Decoder(const Chip& chip, const ModuleCode& code, const SharedLayout& shared, uint32_t function);

  /// Throws std::runtime_error when the function cannot be decoded at all; single instructions that cannot are refused
  /// when they are reached.
  std::shared_ptr<Program> decode();

  const ModuleCode& code() const { return code_; }
  const ptx::Module& module() const { return code_.module; }
  const ptx::Function& function() const { return function_; }
  Program& program() { return *program_; }
  const Chip& chip() const { return chip_; }

  Slot register_slot(uint32_t index) const;
  Slot constant(uint64_t low, uint64_t high, uint8_t bytes);
  Slot warp_value(WarpValue::What what, uint8_t bytes, int64_t value = 0);
  /// Address of a variable in its own space: 32 bits wide for shared, 64 for the others.
  Slot symbol_address(const ptx::SymbolRef& symbol, int64_t offset, uint8_t bytes);
  ptx::Space space_of(const ptx::SymbolRef& symbol) const;
  const ptx::Variable& variable(const ptx::SymbolRef& symbol) const;
  /// Whether the variable is a parameter of a call: one of a .func, or one that a body declares for the functions that
  /// it calls. Those lie in the frame's part of the thread's stack; a kernel's own parameters do not.
  bool is_call_parameter(const ptx::SymbolRef& symbol) const;
  /// Such a parameter, or one that a .func takes in a register.
  Argument argument(const ptx::Variable& variable) const;
  Slot function_address(uint32_t function);

 private:
  void place_registers();
  void place_frame();
  void bind(uint32_t index);
  void collect_touched(const ptx::Instruction& instruction, Instruction& out);

  const Chip& chip_;
  const ModuleCode& code_;
  const SharedLayout& shared_;
  const uint32_t index_;
  const ptx::Function& function_;
  std::shared_ptr<Program> program_;
  ptx::Slots slots_;
  uint32_t words_base_ = 0;
  uint32_t param_base_ = 0;  // of parameters of calls, in the frame's part of the stack
  std::map<std::tuple<uint64_t, uint64_t, uint8_t>, uint32_t> constants_;
  std::map<std::tuple<WarpValue::What, uint8_t, int64_t>, uint32_t> values_;
  uint32_t next_value_ = 0;
};

/// Demangled name without its parameter list; the name itself when it is not mangled.
std::string pretty_name(const std::string& mangled);

}  // namespace emu
