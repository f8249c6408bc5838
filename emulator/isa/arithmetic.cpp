// The opcodes of arithmetic, and which kind of number has which file.

#include "emulator/isa/arithmetic.h"

#include "emulator/isa/families.h"
#include "emulator/isa/lanes.h"

namespace emu::isa {
namespace {

/// The type is the last modifier; where there are two, it is that of the sources.
void bind_arithmetic(Binder& binder) {
  auto modifiers = binder.source.modifiers();
  if (modifiers.empty()) binder.refuse("a type is wanted");
  std::string_view type = modifiers.back();
  binder.take(type);
  if (!bind_integer(binder, type) && !bind_bit_field(binder, type)) refuse_type(binder, type);
}

constexpr std::string_view kOpcodes[] = {
    "abs",  "add",  "and", "bfe",   "bfi", "bfind", "bmsk", "brev",  "clz", "cnot", "div",
    "fns",  "lop3", "mad", "mad24", "max", "min",   "mul",  "mul24", "neg", "not",  "or",
    "popc", "rem",  "sad", "shf",   "shl", "shr",   "sub",  "szext", "xor",
};

}  // namespace

std::span<const Entry> arithmetic_entries() {
  static const std::vector<Entry> kEntries = [] {
    std::vector<Entry> entries;
    for (std::string_view opcode : kOpcodes) entries.push_back({opcode, bind_arithmetic});
    return entries;
  }();
  return kEntries;
}

}  // namespace emu::isa
