#include "emulator/machine/decoder.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "emulator/isa/binder.h"
#include "emulator/machine/align.h"
#include "emulator/machine/demangle.h"
#include "emulator/machine/warp.h"
#include "emulator/ptx/clock_values.h"
#include "emulator/ptx/control_flow.h"

namespace emu {
namespace {

constexpr uint32_t kWordBytes = 4 * kLanes;  // a 32-bit register of all lanes
constexpr uint32_t kFrameAlign = 16;

uint8_t lane_bytes(ptx::Type type) {
  if (type == ptx::Type::pred) return 0;
  return static_cast<uint8_t>(std::max<uint32_t>(2, ptx::bytes(type)));
}

/// Executed in place of an instruction that no family could bind; the reason is among the program's refusals.
Flow refuse_instruction(Warp& warp, const Instruction& instruction) {
  throw Unimplemented(warp.program().refusals[static_cast<size_t>(instruction.immediate)]);
}

}  // namespace

std::string pretty_name(const std::string& mangled) {
  const std::string name = demangled(mangled);
  if (name == mangled) return mangled;
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

Decoder::Decoder(const Chip& chip, const ModuleCode& code, const SharedLayout& shared, uint32_t function)
    : chip_(chip), code_(code), shared_(shared), index_(function), function_(code.module.functions[function]) {}

void Decoder::place_registers() {
  // Predicates first (4 bytes each), then 32-bit words of 32 lanes; what the warp knows of itself comes behind.
  words_base_ = align_up(slots_.predicates * 4, 64);
  next_value_ = words_base_ + slots_.words * kWordBytes;
  program_->clock_values = {words_base_, words_base_ + slots_.apart_words * kWordBytes};
}

void Decoder::place_frame() {
  program_->stack_align = std::max({kFrameAlign, function_.local_frame_align, function_.param_frame_align});
  program_->local_bytes = align_up(function_.local_frame_bytes, kFrameAlign);
  param_base_ = align_up(program_->local_bytes, std::max(kFrameAlign, function_.param_frame_align));
  program_->stack_bytes = param_base_ + align_up(function_.param_frame_bytes, kFrameAlign);
  if (function_.is_entry) return;
  for (const ptx::Variable& parameter : function_.parameters()) program_->parameters.push_back(argument(parameter));
  for (const ptx::Variable& returned : function_.returns()) program_->results.push_back(argument(returned));
}

Argument Decoder::argument(const ptx::Variable& variable) const {
  Argument out{.bytes = static_cast<uint32_t>(variable.bytes)};
  if (variable.reg != ptx::kNone)
    // One that nothing names has no place, and nobody who would miss its value.
    out.slot = slots_.slot[variable.reg] == ptx::kNone ? Slot::none() : register_slot(variable.reg);
  else
    out.offset = param_base_ + variable.offset;
  if (variable.reg != ptx::kNone && !out.slot.present()) out.bytes = 0;
  return out;
}

std::shared_ptr<Program> Decoder::decode() {
  program_ = std::make_shared<Program>();
  program_->name = function_.name;
  program_->pretty_name = pretty_name(program_->name);
  program_->first_source = code_.first_source(index_);
  program_->shared_variables = shared_.variables;
  program_->static_shared_bytes = shared_.static_end;
  program_->dynamic_shared_align = shared_.dynamic_align;
  ptx::ControlFlow flow = ptx::analyse(function_);
  slots_ = ptx::assign_slots(function_, ptx::live_intervals(function_, flow), ptx::clock_values(function_));
  place_registers();
  place_frame();
  uint32_t count = static_cast<uint32_t>(function_.body.size());
  program_->code.resize(count);
  for (uint32_t i = 0; i < count; ++i) {
    Instruction& out = program_->code[i];
    const ptx::Instruction& source = function_.body[i];
    out.source = program_->first_source + i;
    // What parts lanes without being a branch (a wait that only some pass) meets again where its block's branch does.
    uint32_t meet = flow.reconvergence[i] != ptx::kNone ? flow.reconvergence[i]
                                                        : flow.reconvergence[flow.blocks[flow.block_of[i]].last];
    if (meet != ptx::kNone && meet < count) out.reconverge = meet;
    if (source.guard != ptx::kNone) {
      out.guard = register_slot(source.guard);
      out.guard.negated = source.guard_negated;
    }
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
    if (what == WarpValue::What::local_address)
      program_->frame_values.push_back(static_cast<uint32_t>(program_->warp_values.size()));
    program_->warp_values.push_back({.what = what, .offset = next_value_, .bytes = bytes, .value = value});
    next_value_ += bytes == 0 ? 64 : static_cast<uint32_t>(bytes) * kLanes;
    next_value_ = align_up(next_value_, 64);
  }
  return {.offset = it->second, .bank = Slot::warp, .bytes = bytes};
}

const ptx::Variable& Decoder::variable(const ptx::SymbolRef& symbol) const {
  return symbol.in_function ? function_.variables[symbol.index] : module().variables[symbol.index];
}

ptx::Space Decoder::space_of(const ptx::SymbolRef& symbol) const {
  return variable(symbol).space;
}

bool Decoder::is_call_parameter(const ptx::SymbolRef& symbol) const {
  return symbol.in_function && space_of(symbol) == ptx::Space::param &&
         !(function_.is_entry && symbol.index < function_.parameter_count);
}

Slot Decoder::function_address(uint32_t function) {
  return constant(code_.function_address(function), 0, 8);
}

Slot Decoder::symbol_address(const ptx::SymbolRef& symbol, int64_t offset, uint8_t bytes) {
  const ptx::Variable& named = variable(symbol);
  switch (named.space) {
    case ptx::Space::shared: {
      uint32_t scope = symbol.in_function ? index_ : SharedLayout::kModule;
      const SharedVariable& placed = shared_.variables[shared_.index.at({scope, symbol.index})];
      return placed.dynamic ? warp_value(WarpValue::What::dynamic_shared, bytes, offset)
                            : warp_value(WarpValue::What::shared_address, bytes, placed.offset + offset);
    }
    case ptx::Space::local:
      if (!symbol.in_function)
        throw Unimplemented("a .local variable declared outside functions: " + std::string(named.name));
      return warp_value(WarpValue::What::local_address, bytes, named.offset + offset);
    case ptx::Space::param:
      // PTX ISA, mov: the address of a function's parameter is one in local memory, where the call put it.
      if (is_call_parameter(symbol))
        return warp_value(WarpValue::What::local_address, bytes, param_base_ + named.offset + offset);
      return warp_value(WarpValue::What::parameter_address, bytes, named.offset + offset);
    case ptx::Space::global:
    case ptx::Space::constant:
      if (symbol.in_function)
        throw Unimplemented("a .global variable declared inside a function: " + std::string(named.name));
      return constant(code_.variable_addresses[symbol.index] + static_cast<uint64_t>(offset), 0, bytes);
    default:
      throw Unimplemented("the address of " + std::string(named.name) + " in state space " +
                          std::string(ptx::to_string(named.space)));
  }
}

}  // namespace emu
