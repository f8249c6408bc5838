#pragma once
// A module's code as it is when it has been loaded: the parser's functions, and each of them decoded for each kernel
// that comes to call it, at the first call. (Where a shared variable lies depends on the kernel, so a device function
// is decoded once for each kernel.)

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "emulator/machine/chip.h"
#include "emulator/machine/program.h"
#include "emulator/ptx/ast.h"

namespace emu {

/// Where a kernel's shared variables lie in a CTA's window: those that it or a function it may call names.
struct SharedLayout {
  std::vector<SharedVariable> variables;
  std::map<std::pair<uint32_t, uint32_t>, size_t> index;  ///< (function, or kModule; variable) -> `variables`
  uint32_t static_end = 0;                                ///< window offset behind the static ones
  uint32_t dynamic_align = 16;
  static constexpr uint32_t kModule = 0xFFFFFFFF;
};

class ModuleCode {
 public:
  explicit ModuleCode(ptx::Module parsed);

  const ptx::Module module;
  std::vector<uint64_t> variable_addresses;  ///< of .global and .const variables, by index; 0: not placed

  /// A number for each instruction of the module, from which reports find its text and its line.
  uint32_t first_source(uint32_t function) const { return first_source_[function]; }
  uint32_t function_of(uint32_t source) const;
  Location location(uint32_t source) const;
  /// The same without words; nullptr without -lineinfo.
  const ptx::Location* lines(uint32_t source) const;
  const std::string& text(uint32_t source) const;

  /// The value of a function's address: no place in memory, and unlike that of any other module's function.
  uint64_t function_address(uint32_t function) const;
  /// The function behind an address; ptx::kNone when it is none of this module's.
  uint32_t function_at(uint64_t address) const;

  SharedLayout place_shared(const Chip& chip, uint32_t kernel) const;

 private:
  const ptx::Instruction& instruction(uint32_t source) const;
  std::vector<bool> reachable_from(uint32_t kernel) const;

  std::vector<uint32_t> first_source_;
  uint64_t address_base_;
};

/// One kernel with the functions that it calls.
class KernelCode {
 public:
  KernelCode(const Chip& chip, std::shared_ptr<const ModuleCode> module, uint32_t kernel);
  ~KernelCode();

  const ModuleCode& module() const { return *module_; }
  const SharedLayout& shared() const { return shared_; }
  const Program& entry() { return function(kernel_); }
  /// Decodes it when this is the first time that it is asked for. Throws std::runtime_error when it cannot be decoded.
  const Program& function(uint32_t index);

 private:
  const Chip& chip_;
  std::shared_ptr<const ModuleCode> module_;
  const uint32_t kernel_;
  SharedLayout shared_;
  std::vector<std::atomic<const Program*>> programs_;  // by function
  std::vector<std::shared_ptr<const Program>> owned_;
  std::mutex mutex_;
};

}  // namespace emu
