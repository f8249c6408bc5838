// The opcodes of arithmetic, and which kind of number has which file.

#include "emulator/isa/arithmetic.h"

#include "emulator/isa/families.h"
#include "emulator/isa/lanes.h"

namespace emu::isa {
namespace {

/// The type is the last modifier; where there are two, the last is that of the sources.
void bind_arithmetic(Binder& binder) {
  auto modifiers = binder.source.modifiers();
  if (modifiers.empty()) binder.refuse("a type is wanted");
  std::string_view type = modifiers.back();
  if (type == "relu" && modifiers.size() > 1) type = modifiers[modifiers.size() - 2];  // nvcc writes max.s32.relu
  binder.take(type);
  for (auto bind :
       {bind_carry, bind_real_function, bind_real, bind_half, bind_integer_pair, bind_bit_field, bind_integer})
    if (bind(binder, type)) return;
  refuse_type(binder, type);
}

constexpr std::string_view kOpcodes[] = {
    "abs", "add", "addc", "and",   "bfe",  "bfi", "bfind", "bmsk",  "brev", "clz",   "cnot",  "copysign",
    "cos", "div", "dp2a", "dp4a",  "ex2",  "fma", "fns",   "lg2",   "lop3", "mad",   "mad24", "madc",
    "max", "min", "mul",  "mul24", "neg",  "not", "or",    "popc",  "rcp",  "rem",   "rsqrt", "sad",
    "shf", "shl", "shr",  "sin",   "sqrt", "sub", "subc",  "szext", "tanh", "testp", "xor",
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
