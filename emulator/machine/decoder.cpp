#include "emulator/machine/decoder.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "emulator/isa/binder.h"
#include "emulator/machine/warp.h"
#include "emulator/ptx/control_flow.h"

namespace emu {
namespace {

constexpr uint32_t kWordBytes = 4 * kLanes;  // a 32-bit register of all lanes

uint32_t align_up(uint32_t value, uint32_t align) {
  return (value + align - 1) / align * align;
}

uint8_t lane_bytes(ptx::Type type) {
  if (type == ptx::Type::pred) return 0;
  return static_cast<uint8_t>(std::max<uint32_t>(2, ptx::bytes(type)));
}

/// Executed in place of an instruction that no family could bind; the reason is among the program's refusals.
Flow refuse_instruction(Warp& warp, const Instruction& instruction) {
  throw Unimplemented(warp.program.refusals[static_cast<size_t>(instruction.immediate)]);
}

}  // namespace

std::string pretty_name(const std::string& mangled) {
  int status = 0;
  char* text = abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status);
  if (status != 0 || !text) return mangled;
  std::string name = text;
  std::free(text);
  // "void step01_kloop<(ladder::DType)0>(CUtensorMap_st, ...)": without return type, template arguments and parameters.
  int depth = 0;
  std::string plain;
  for (char c : name) {
    if (c == '<')
      ++depth;
    else if (c == '>')
      --depth;
    else if (c == '(' && depth == 0 && !plain.empty() && plain.back() != ' ')
      break;
    else if (depth == 0)
      plain += c;
  }
  if (size_t space = plain.rfind(' '); space != std::string::npos) plain.erase(0, space + 1);
  return plain.empty() ? mangled : plain;
}

Decoder::Decoder(const Chip& chip, const ptx::Module& module, const ptx::Function& function,
                 const std::vector<uint64_t>& global_addresses)
    : chip_(chip), module_(module), function_(function), global_addresses_(global_addresses) {}

void Decoder::place_registers() {
  // Predicates first (4 bytes each), then 32-bit words of 32 lanes; what the warp knows of itself comes behind.
  words_base_ = align_up(slots_.predicates * 4, 64);
  next_value_ = words_base_ + slots_.words * kWordBytes;
}

void Decoder::place_shared_variables() {
  // Static variables follow each other in the order of the text, from the end of the reserved bytes on.
  uint32_t offset = chip_.shared_reserved_bytes;
  auto place = [&](bool in_function, uint32_t index, const ptx::Variable& variable) {
    if (variable.space != ptx::Space::shared) return;
    SharedVariable placed{.name = std::string(variable.name)};
    if (std::string text = placed.name; text.starts_with("_Z")) {
      // A static variable of a kernel: "step01_kloop(...)::tile_full".
      int status = 0;
      if (char* demangled = abi::__cxa_demangle(text.c_str(), nullptr, nullptr, &status)) {
        placed.name = demangled;
        if (size_t scope = placed.name.rfind("::"); scope != std::string::npos) placed.name.erase(0, scope + 2);
        std::free(demangled);
      }
    }
    if (variable.is_extern || variable.bytes == 0) {
      placed.dynamic = true;
      program_->dynamic_shared_align = std::max(program_->dynamic_shared_align, variable.align);
    } else {
      offset = align_up(offset, variable.align);
      placed.offset = offset;
      placed.bytes = static_cast<uint32_t>(variable.bytes);
      offset += placed.bytes;
    }
    shared_index_[{in_function, index}] = program_->shared_variables.size();
    program_->shared_variables.push_back(std::move(placed));
  };
  for (uint32_t i = 0; i < function_.variables.size(); ++i) place(true, i, function_.variables[i]);
  for (uint32_t i = 0; i < module_.variables.size(); ++i) place(false, i, module_.variables[i]);
  program_->static_shared_bytes = offset;
}

std::shared_ptr<Program> Decoder::decode() {
  program_ = std::make_shared<Program>();
  program_->name = function_.name;
  program_->pretty_name = pretty_name(program_->name);
  program_->local_bytes = align_up(function_.local_frame_bytes, 16);
  ptx::ControlFlow flow = ptx::analyse(function_);
  slots_ = ptx::assign_slots(function_, ptx::live_intervals(function_, flow));
  place_registers();
  place_shared_variables();
  uint32_t count = static_cast<uint32_t>(function_.body.size());
  program_->code.resize(count);
  for (uint32_t i = 0; i < count; ++i) {
    Instruction& out = program_->code[i];
    const ptx::Instruction& source = function_.body[i];
    out.source = i;
    // What parts lanes without being a branch (a wait that only some pass) meets again where its block's branch does.
    uint32_t meet = flow.reconvergence[i] != ptx::kNone ? flow.reconvergence[i]
                                                        : flow.reconvergence[flow.blocks[flow.block_of[i]].last];
    if (meet != ptx::kNone && meet < count) out.reconverge = meet;
    if (source.guard != ptx::kNone) {
      out.guard = register_slot(source.guard);
      out.guard.negated = source.guard_negated;
    }
    program_->locations.push_back(location(source));
    program_->text.push_back(source.opcode->text);
    bind(i);
    collect_touched(source, out);
  }
  program_->warp_file_bytes = align_up(next_value_, 64);
  return program_;
}

void Decoder::bind(uint32_t index) {
  Instruction& out = program_->code[index];
  const ptx::Instruction& source = function_.body[index];
  Instruction blank = out;
  try {
    isa::Binder binder(*this, source, out);
    isa::Bind bind = isa::find(source.name());
    if (!bind) throw Unimplemented("the emulator does not know the instruction " + source.opcode->text);
    bind(binder);
    binder.done();
    if (!out.execute) throw Unimplemented(source.opcode->text + ": the emulator does not execute this form");
    if (source.has("aligned")) out.aligned = true;
  } catch (const Unimplemented& refusal) {
    out = blank;
    out.execute = refuse_instruction;
    out.immediate = static_cast<int64_t>(program_->refusals.size());
    program_->refusals.push_back(refusal.what());
  }
}

Location Decoder::location(const ptx::Instruction& instruction) const {
  Location out;
  out.ptx_line = static_cast<int>(instruction.line);
  if (instruction.location == ptx::kNone) return out;
  const ptx::Location& from = module_.locations[instruction.location];
  auto place = [&](const ptx::SourceLine& line) {
    return Place{line.file == ptx::kNone ? "" : module_.files[line.file], static_cast<int>(line.line)};
  };
  out.wrapper = place(from.innermost);
  out.kernel = place(from.outermost);
  return out;
}

void Decoder::collect_touched(const ptx::Instruction& instruction, Instruction& out) {
  out.touched = static_cast<uint32_t>(program_->touched.size());
  auto add = [&](uint32_t index) {
    Slot slot = register_slot(index);
    uint32_t bytes = slot.bytes == 0 ? 4 : std::max<uint32_t>(slot.bytes, 4) * kLanes;
    program_->touched.push_back({slot.offset, slot.offset + bytes});
  };
  if (instruction.guard != ptx::kNone) add(instruction.guard);
  auto walk = [&](auto& self, const ptx::Operand& operand) -> void {
    using Kind = ptx::Operand::Kind;
    if (operand.kind == Kind::reg) add(operand.index);
    if (operand.kind == Kind::address && operand.address_base == ptx::Operand::Base::reg) add(operand.index);
    for (const ptx::Operand& child : operand.children) self(self, child);
  };
  for (const ptx::Operand& operand : instruction.operands) walk(walk, operand);
  out.touched_count = static_cast<uint32_t>(program_->touched.size()) - out.touched;
}

Slot Decoder::register_slot(uint32_t index) const {
  ptx::Type type = function_.registers[index].type;
  uint32_t slot = slots_.slot[index];
  if (slot == ptx::kNone)
    throw std::runtime_error("register " + std::string(function_.registers[index].name) + " has no place");
  if (type == ptx::Type::pred) return {.offset = slot * 4, .bank = Slot::warp, .bytes = 0};
  return {.offset = words_base_ + slot * kWordBytes, .bank = Slot::warp, .bytes = lane_bytes(type)};
}

Slot Decoder::constant(uint64_t low, uint64_t high, uint8_t bytes) {
  auto [it, fresh] = constants_.try_emplace({low, high, bytes}, static_cast<uint32_t>(program_->constants.size()));
  if (fresh) {
    std::vector<std::byte>& pool = program_->constants;
    uint32_t size = bytes == 0 ? 64 : static_cast<uint32_t>(bytes) * kLanes;
    pool.resize(pool.size() + align_up(size, 64));
    std::byte* at = pool.data() + it->second;
    uint64_t words[2] = {low, high};
    if (bytes == 0) {
      uint32_t bits = low ? kAllLanes : 0;
      std::memcpy(at, &bits, 4);
    } else {
      for (int lane = 0; lane < kLanes; ++lane) std::memcpy(at + lane * bytes, words, bytes);
    }
  }
  return {.offset = it->second, .bank = Slot::constant, .bytes = bytes};
}

Slot Decoder::warp_value(WarpValue::What what, uint8_t bytes, int64_t value) {
  auto [it, fresh] = values_.try_emplace({what, bytes, value}, next_value_);
  if (fresh) {
    program_->warp_values.push_back({.what = what, .offset = next_value_, .bytes = bytes, .value = value});
    next_value_ += bytes == 0 ? 64 : static_cast<uint32_t>(bytes) * kLanes;
    next_value_ = align_up(next_value_, 64);
  }
  return {.offset = it->second, .bank = Slot::warp, .bytes = bytes};
}

ptx::Space Decoder::space_of(const ptx::SymbolRef& symbol) const {
  return symbol.in_function ? function_.variables[symbol.index].space : module_.variables[symbol.index].space;
}

Slot Decoder::symbol_address(const ptx::SymbolRef& symbol, int64_t offset, uint8_t bytes) {
  const ptx::Variable& variable =
      symbol.in_function ? function_.variables[symbol.index] : module_.variables[symbol.index];
  switch (variable.space) {
    case ptx::Space::shared: {
      const SharedVariable& placed = program_->shared_variables[shared_index_.at({symbol.in_function, symbol.index})];
      return placed.dynamic ? warp_value(WarpValue::What::dynamic_shared, bytes, offset)
                            : warp_value(WarpValue::What::shared_address, bytes, placed.offset + offset);
    }
    case ptx::Space::local:
      return warp_value(WarpValue::What::local_address, bytes, variable.offset + offset);
    case ptx::Space::param:
      if (!function_.is_entry || symbol.index >= function_.parameter_count)
        throw Unimplemented("the address of " + std::string(variable.name) + ", a parameter of a call");
      return warp_value(WarpValue::What::parameter_address, bytes, variable.offset + offset);
    case ptx::Space::global:
    case ptx::Space::constant:
      if (symbol.in_function)
        throw Unimplemented("a .global variable declared inside a function: " + std::string(variable.name));
      return constant(global_addresses_[symbol.index] + static_cast<uint64_t>(offset), 0, bytes);
    default:
      throw Unimplemented("the address of " + std::string(variable.name) + " in state space " +
                          std::string(ptx::to_string(variable.space)));
  }
}

}  // namespace emu
