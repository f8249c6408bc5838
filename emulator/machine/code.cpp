#include "emulator/machine/code.h"

#include <algorithm>

#include "emulator/machine/align.h"
#include "emulator/machine/decoder.h"
#include "emulator/machine/demangle.h"

namespace emu {
namespace {

// Addresses of functions lie where no memory is: above the windows of shared and local memory.
constexpr uint64_t kCodeWindow = uint64_t{1} << 62;
constexpr uint64_t kFunctionStride = 16;
std::atomic<uint64_t> module_count{0};

/// Calls f(operand) for an instruction's operands and what they are made of.
template <class F>
void each_operand(const ptx::Instruction& instruction, F&& f) {
  auto walk = [&](auto& self, const ptx::Operand& operand) -> void {
    f(operand);
    for (const ptx::Operand& child : operand.children) self(self, child);
  };
  for (const ptx::Operand& operand : instruction.operands) walk(walk, operand);
}

/// A static variable of a kernel: "step01_kloop(...)::tile_full" is tile_full to a reader.
std::string readable(std::string_view name) {
  std::string text(name);
  if (!text.starts_with("_Z")) return text;
  text = demangled(text);
  if (size_t scope = text.rfind("::"); scope != std::string::npos) text.erase(0, scope + 2);
  return text;
}

}  // namespace

ModuleCode::ModuleCode(ptx::Module parsed)
    : module(std::move(parsed)), address_base_(kCodeWindow | ++module_count << 32) {
  uint32_t next = 0;
  for (const ptx::Function& function : module.functions) {
    first_source_.push_back(next);
    next += static_cast<uint32_t>(function.body.size());
  }
}

uint32_t ModuleCode::function_of(uint32_t source) const {
  // The last function that starts at or before it; functions without code start where the next one does.
  auto behind = std::upper_bound(first_source_.begin(), first_source_.end(), source);
  return static_cast<uint32_t>(behind - first_source_.begin()) - 1;
}

const ptx::Instruction& ModuleCode::instruction(uint32_t source) const {
  uint32_t function = function_of(source);
  return module.functions[function].body[source - first_source_[function]];
}

const std::string& ModuleCode::text(uint32_t source) const {
  return instruction(source).opcode->text;
}

Location ModuleCode::location(uint32_t source) const {
  const ptx::Instruction& at = instruction(source);
  Location out;
  out.ptx_line = static_cast<int>(at.line);
  if (at.location == ptx::kNone) return out;
  const ptx::Location& from = module.locations[at.location];
  auto place = [&](const ptx::SourceLine& line) {
    return Place{line.file == ptx::kNone ? "" : module.files[line.file], static_cast<int>(line.line)};
  };
  out.wrapper = place(from.innermost);
  out.kernel = place(from.outermost);
  return out;
}

const ptx::Location* ModuleCode::lines(uint32_t source) const {
  const uint32_t location = instruction(source).location;
  return location == ptx::kNone ? nullptr : &module.locations[location];
}

uint64_t ModuleCode::function_address(uint32_t function) const {
  return address_base_ + (uint64_t{function} + 1) * kFunctionStride;
}

uint32_t ModuleCode::function_at(uint64_t address) const {
  uint64_t offset = address - address_base_;
  if (offset % kFunctionStride || offset == 0 || offset / kFunctionStride > module.functions.size()) return ptx::kNone;
  return static_cast<uint32_t>(offset / kFunctionStride - 1);
}

/// What a kernel may call: what its text names, and, where it calls through a register, every function whose address is
/// taken anywhere in the module.
std::vector<bool> ModuleCode::reachable_from(uint32_t kernel) const {
  std::vector<bool> reached(module.functions.size(), false);
  std::vector<uint32_t> pending;
  auto reach = [&](uint32_t function) {
    if (reached[function]) return;
    reached[function] = true;
    pending.push_back(function);
  };
  reach(kernel);
  bool through_register = false;
  while (!pending.empty()) {
    const ptx::Function& function = module.functions[pending.back()];
    pending.pop_back();
    if (function.alias_of != ptx::kNone) reach(function.alias_of);
    for (const ptx::Instruction& instruction : function.body) {
      if (instruction.name() == "call" && instruction.operands[1].kind != ptx::Operand::Kind::function &&
          !through_register) {
        through_register = true;
        for (const ptx::Variable& variable : module.variables)
          for (const ptx::Relocation& relocation : variable.relocations)
            if (relocation.is_function) reach(relocation.index);
        for (const ptx::Function& other : module.functions)
          for (const ptx::Instruction& user : other.body)
            if (user.name() != "call")
              each_operand(user, [&](const ptx::Operand& operand) {
                if (operand.kind == ptx::Operand::Kind::function) reach(operand.index);
              });
      }
      each_operand(instruction, [&](const ptx::Operand& operand) {
        if (operand.kind == ptx::Operand::Kind::function) reach(operand.index);
      });
    }
  }
  return reached;
}

SharedLayout ModuleCode::place_shared(const Chip& chip, uint32_t kernel) const {
  SharedLayout layout;
  // Static variables follow each other in the order of the text, from the end of the reserved bytes on.
  uint32_t offset = chip.shared_reserved_bytes;
  auto place = [&](uint32_t function, uint32_t index, const ptx::Variable& variable) {
    if (variable.space != ptx::Space::shared) return;
    SharedVariable placed{.name = readable(variable.name)};
    if (variable.bytes == 0) {
      placed.dynamic = true;
      layout.dynamic_align = std::max(layout.dynamic_align, variable.align);
    } else {
      offset = align_up(offset, variable.align);
      placed.offset = offset;
      placed.bytes = static_cast<uint32_t>(variable.bytes);
      offset += placed.bytes;
    }
    layout.index[{function, index}] = layout.variables.size();
    layout.variables.push_back(std::move(placed));
  };
  std::vector<bool> reached = reachable_from(kernel);
  std::vector<bool> named(module.variables.size(), false);
  auto place_locals = [&](uint32_t f) {
    const ptx::Function& function = module.functions[f];
    for (uint32_t i = 0; i < function.variables.size(); ++i) place(f, i, function.variables[i]);
    for (const ptx::Instruction& instruction : function.body)
      each_operand(instruction, [&](const ptx::Operand& operand) {
        bool is_symbol =
            operand.kind == ptx::Operand::Kind::symbol ||
            (operand.kind == ptx::Operand::Kind::address && (operand.address_base == ptx::Operand::Base::symbol ||
                                                             operand.address_base == ptx::Operand::Base::element));
        if (is_symbol && !operand.symbol.in_function) named[operand.symbol.index] = true;
      });
  };
  place_locals(kernel);
  for (uint32_t f = 0; f < module.functions.size(); ++f)
    if (reached[f] && f != kernel) place_locals(f);
  for (uint32_t i = 0; i < module.variables.size(); ++i)
    if (named[i]) place(SharedLayout::kModule, i, module.variables[i]);
  layout.static_end = offset;
  return layout;
}

KernelCode::KernelCode(const Chip& chip, std::shared_ptr<const ModuleCode> module, uint32_t kernel)
    : chip_(chip),
      module_(std::move(module)),
      kernel_(kernel),
      shared_(module_->place_shared(chip, kernel)),
      programs_(module_->module.functions.size()) {}
KernelCode::~KernelCode() = default;

const Program& KernelCode::function(uint32_t index) {
  if (const Program* program = programs_[index].load(std::memory_order_acquire)) return *program;
  std::lock_guard lock(mutex_);
  if (const Program* program = programs_[index].load(std::memory_order_relaxed)) return *program;
  owned_.push_back(Decoder(chip_, *module_, shared_, index).decode());
  programs_[index].store(owned_.back().get(), std::memory_order_release);
  return *owned_.back();
}

}  // namespace emu
