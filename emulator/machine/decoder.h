#pragma once
// From a parsed function to a Program: places registers, immediates and special registers, binds every instruction.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "emulator/machine/device.h"
#include "emulator/machine/program.h"
#include "emulator/ptx/ast.h"
#include "emulator/ptx/liveness.h"

namespace emu {

class Decoder {
 public:
  /// `global_addresses`: by index into module.variables, where .global and .const variables were placed.
  Decoder(const Chip& chip, const ptx::Module& module, const ptx::Function& function,
          const std::vector<uint64_t>& global_addresses);

  /// Throws std::runtime_error when the function cannot be decoded at all; single instructions that cannot are refused
  /// when they are reached.
  std::shared_ptr<Program> decode();

  const ptx::Module& module() const { return module_; }
  const ptx::Function& function() const { return function_; }
  Program& program() { return *program_; }
  const Chip& chip() const { return chip_; }

  Slot register_slot(uint32_t index) const;
  Slot constant(uint64_t low, uint64_t high, uint8_t bytes);
  Slot warp_value(WarpValue::What what, uint8_t bytes, int64_t value = 0);
  /// Address of a variable in its own space: 32 bits wide for shared, 64 for the others.
  Slot symbol_address(const ptx::SymbolRef& symbol, int64_t offset, uint8_t bytes);
  ptx::Space space_of(const ptx::SymbolRef& symbol) const;

 private:
  void place_registers();
  void place_shared_variables();
  void bind(uint32_t index);
  Location location(const ptx::Instruction& instruction) const;
  void collect_touched(const ptx::Instruction& instruction, Instruction& out);

  const Chip& chip_;
  const ptx::Module& module_;
  const ptx::Function& function_;
  const std::vector<uint64_t>& global_addresses_;
  std::shared_ptr<Program> program_;
  ptx::Slots slots_;
  uint32_t words_base_ = 0;
  std::map<std::pair<bool, uint32_t>, size_t> shared_index_;  // (in function, variable) -> Program::shared_variables
  std::map<std::tuple<uint64_t, uint64_t, uint8_t>, uint32_t> constants_;
  std::map<std::tuple<WarpValue::What, uint8_t, int64_t>, uint32_t> values_;
  uint32_t next_value_ = 0;
};

/// Demangled name without its parameter list; the name itself when it is not mangled.
std::string pretty_name(const std::string& mangled);

}  // namespace emu
