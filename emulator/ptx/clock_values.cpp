#include "emulator/ptx/clock_values.h"

#include <algorithm>

#include "emulator/ptx/liveness.h"

namespace emu::ptx {
namespace {

bool names_clock(const Operand& operand) {
  const bool clock = operand.kind == Operand::Kind::special &&
                     (operand.name.starts_with("%clock") || operand.name.starts_with("%globaltimer"));
  return clock || std::any_of(operand.children.begin(), operand.children.end(), names_clock);
}

bool reads_clock(const Instruction& instruction) {
  return std::any_of(instruction.operands.begin(), instruction.operands.end(), names_clock);
}

using Registers = std::vector<uint32_t>;

/// All that follow from `from`, without `from` itself unless it follows from itself.
std::vector<bool> closure(const std::vector<Registers>& follows, Registers from) {
  std::vector<bool> reached(follows.size());
  while (!from.empty()) {
    const uint32_t r = from.back();
    from.pop_back();
    for (uint32_t next : follows[r]) {
      if (reached[next]) continue;
      reached[next] = true;
      from.push_back(next);
    }
  }
  return reached;
}

}  // namespace

std::vector<bool> clock_values(const Function& function) {
  const size_t count = function.registers.size();
  // Most functions read none, and every function that is loaded is asked.
  if (std::none_of(function.body.begin(), function.body.end(), reads_clock)) return std::vector<bool>(count);
  const auto is_predicate = [&](uint32_t r) { return function.registers[r].type == Type::pred; };
  std::vector<Registers> follows(count);  // what is computed from a register
  Registers read;
  for (const Instruction& instruction : function.body) {
    const Effects touched = effects(instruction);
    const bool clock = reads_clock(instruction);
    for (uint32_t to : touched.writes) {
      if (is_predicate(to)) continue;
      if (clock) read.push_back(to);
      for (uint32_t from : touched.reads) follows[from].push_back(to);
    }
  }

  std::vector<bool> result = closure(follows, read);
  for (uint32_t r : read) result[r] = true;
  Registers kept;
  for (uint32_t r = 0; r < count; ++r)
    if (result[r] && closure(follows, {r})[r]) kept.push_back(r);
  const std::vector<bool> progress = closure(follows, kept);
  for (uint32_t r = 0; r < count; ++r) result[r] = result[r] && !progress[r];
  return result;
}

}  // namespace emu::ptx
