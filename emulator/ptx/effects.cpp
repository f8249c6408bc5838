// Which operands of an instruction are read and which are written.

#include <algorithm>
#include <array>
#include <string_view>

#include "emulator/ptx/liveness.h"

namespace emu::ptx {
namespace {

/// Opcodes whose first operand, where it is a register, a vector or a pair, receives the result and is not read.
/// Sorted. PTX ISA section 9.7. An opcode that is missing here costs storage, not correctness; one that does not belong
/// here costs correctness.
constexpr auto kWriters = std::to_array<std::string_view>({
    "abs",
    "activemask",
    "add",
    "addc",
    "alloca",
    "and",
    "atom",
    "bfe",
    "bfi",
    "bfind",
    "bmsk",
    "brev",
    "clusterlaunchcontrol",
    "clz",
    "cnot",
    "copysign",
    "cos",
    "createpolicy",
    "cvt",
    "cvta",
    "div",
    "dp2a",
    "dp4a",
    "elect",
    "ex2",
    "fma",
    "fns",
    "getctarank",
    "isspacep",
    "istypep",
    "ld",
    "ldmatrix",
    "ldu",
    "lg2",
    "lop3",
    "mad",
    "mad24",
    "madc",
    "mapa",
    "match",
    "max",
    "mbarrier",
    "min",
    "mma",
    "mov",
    "movmatrix",
    "mul",
    "mul24",
    "multimem",
    "neg",
    "not",
    "or",
    "popc",
    "prmt",
    "rcp",
    "redux",
    "rem",
    "rsqrt",
    "sad",
    "selp",
    "set",
    "setp",
    "shf",
    "shfl",
    "shl",
    "shr",
    "sin",
    "slct",
    "sqrt",
    "stacksave",
    "sub",
    "subc",
    "suld",
    "suq",
    "szext",
    "tanh",
    "testp",
    "tex",
    "tld4",
    "txq",
    "vabsdiff",
    "vabsdiff2",
    "vabsdiff4",
    "vadd",
    "vadd2",
    "vadd4",
    "vavrg2",
    "vavrg4",
    "vmad",
    "vmax",
    "vmax2",
    "vmax4",
    "vmin",
    "vmin2",
    "vmin4",
    "vote",
    "vset",
    "vset2",
    "vset4",
    "vshl",
    "vshr",
    "vsub",
    "vsub2",
    "vsub4",
    "wmma",
    "xor",
});
static_assert(std::is_sorted(kWriters.begin(), kWriters.end()));

/// Opcodes whose registers are all read.
constexpr auto kReaders = std::to_array<std::string_view>({
    "applypriority",  "bra",    "brkpt",        "brx",      "cp",       "discard",   "exit",      "fence",
    "griddepcontrol", "membar", "nanosleep",    "pmevent",  "prefetch", "prefetchu", "red",       "ret",
    "setmaxnreg",     "st",     "stackrestore", "stmatrix", "sured",    "sust",      "tensormap", "trap",
});
static_assert(std::is_sorted(kReaders.begin(), kReaders.end()));

template <class Names>
bool contains(const Names& names, std::string_view name) {
  return std::binary_search(names.begin(), names.end(), name);
}

/// Registers that an operand names; `index` of other kinds means something else.
void collect(const Operand& operand, std::vector<uint32_t>& into) {
  const bool based = operand.kind == Operand::Kind::address &&
                     (operand.address_base == Operand::Base::reg || operand.address_base == Operand::Base::element);
  if (operand.kind == Operand::Kind::reg || based) into.push_back(operand.index);
  for (const Operand& child : operand.children) collect(child, into);
}

enum class First { written, read, both };

First first_operand(const Instruction& instruction) {
  const std::string_view name = instruction.name();
  if (name == "bar" || name == "barrier") return instruction.has("red") ? First::written : First::read;
  if (name == "tcgen05") return instruction.has("ld") ? First::written : First::read;
  if (contains(kWriters, name)) return First::written;
  return contains(kReaders, name) ? First::read
                                  : First::both;  // both: wgmma, whose accumulator is also a source, and the unknown
}

}  // namespace

Effects effects(const Instruction& instruction) {
  Effects result;
  if (instruction.guard != kNone) result.reads.push_back(instruction.guard);
  size_t at = 0;
  if (instruction.name() == "call") {
    collect(instruction.operands[0], result.writes);
    at = 1;
  } else if (!instruction.operands.empty() && instruction.operands[0].kind != Operand::Kind::address) {
    const First first = first_operand(instruction);
    if (first != First::read) collect(instruction.operands[0], result.writes);
    if (first != First::written) collect(instruction.operands[0], result.reads);
    at = 1;
    // tcgen05.ld.red has a second result.
    if (instruction.name() == "tcgen05" && instruction.has("ld") && instruction.has("red") &&
        instruction.operands.size() > 1 && instruction.operands[1].kind != Operand::Kind::address) {
      collect(instruction.operands[1], result.writes);
      at = 2;
    }
  }
  for (; at < instruction.operands.size(); ++at) collect(instruction.operands[at], result.reads);
  return result;
}

}  // namespace emu::ptx
