#include "emulator/report/fault_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "emulator/machine/decoder.h"
#include "emulator/machine/grid.h"
#include "emulator/machine/mbarrier.h"

namespace emu {
namespace {

std::string short_path(const std::string& path) {
  // The last two parts tell a reader of the repository enough: step01_kloop/blackwell.cu.
  size_t last = path.rfind('/');
  if (last == std::string::npos || last == 0) return path;
  size_t before = path.rfind('/', last - 1);
  return before == std::string::npos ? path : path.substr(before + 1);
}

}  // namespace

std::string plural(int64_t count, const char* one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

std::string describe_location(const Location& location) {
  if (location.kernel.line == 0)
    return fmt::format("PTX line {} (no source lines: build with -lineinfo)", location.ptx_line);
  std::string text = fmt::format("{}:{}", short_path(location.kernel.file), location.kernel.line);
  if (location.wrapper.file != location.kernel.file || location.wrapper.line != location.kernel.line)
    text += fmt::format(" (in {}:{})", short_path(location.wrapper.file), location.wrapper.line);
  return text;
}

std::string describe_line(const Location& location) {
  if (location.kernel.line == 0) return fmt::format("PTX line {}", location.ptx_line);
  return fmt::format("{}:{}", short_path(location.kernel.file), location.kernel.line);
}

std::string describe_rank(const Cta& cta) {
  return cta.cluster.ctas.size() > 1 ? fmt::format(", CTA {} of its cluster", cta.rank) : "";
}

std::string describe_shared(const Cluster& cluster, uint32_t address) {
  const std::string where =
      cluster.ctas.size() > 1 ? fmt::format(" of CTA {} in the cluster", shared_rank(address)) : "";
  return describe_shared(cluster.grid, shared_offset(address)) + where;
}

std::string describe_shared(const Grid& grid, uint32_t offset) {
  for (const SharedVariable& variable : grid.program.shared_variables) {
    if (variable.dynamic || offset < variable.offset || offset >= variable.offset + variable.bytes) continue;
    uint32_t into = offset - variable.offset;
    if (variable.bytes == 8) return variable.name;
    if (variable.bytes % 8 == 0 && into % 8 == 0 && variable.bytes <= 512)
      return fmt::format("{}[{}]", variable.name, into / 8);
    return into ? fmt::format("{} + {:#x}", variable.name, into) : variable.name;
  }
  uint32_t dynamic = grid.dynamic_shared_offset();
  if (offset >= dynamic && offset < grid.window_bytes())
    return fmt::format("dynamic shared memory + {:#x}", offset - dynamic);
  return fmt::format("shared address {:#x}", offset);
}

std::vector<std::string> describe_calls(const Cluster& cluster, const Frame& innermost) {
  constexpr size_t kShown = 6;  // of each end of a long chain
  struct Step {
    std::string text;
    size_t times;  // a recursion repeats itself
  };
  std::vector<Step> steps;
  for (const Frame* frame = &innermost; frame->parent; frame = frame->parent.get()) {
    const Program& caller = *frame->parent->program;
    std::string text = fmt::format("in {}, called at {} of {}", pretty_name(frame->program->name),
                                   describe_location(cluster.grid.location(caller.code[frame->return_pc - 1].source)),
                                   pretty_name(caller.name));
    if (!steps.empty() && steps.back().text == text)
      ++steps.back().times;
    else
      steps.push_back({std::move(text), 1});
  }
  std::vector<std::string> chain;
  for (const Step& step : steps)
    chain.push_back(step.times == 1 ? step.text : fmt::format("{}: {} times", step.text, step.times));
  if (chain.size() > 2 * kShown + 1) {
    size_t left_out = chain.size() - 2 * kShown;
    auto from = chain.begin() + kShown;
    *from = fmt::format("... {} calls more", left_out);
    chain.erase(from + 1, chain.end() - kShown);
  }
  return chain;
}

std::string headline(const Grid& grid, const Fault& fault, const std::string& plainly) {
  return grid.device.options().check
             ? fmt::format("========= Error: {}: {} [{}]\n", grid.program.pretty_name, fault.title,
                           traits(fault.kind).id)
             : fmt::format("========= Emulated {}: {} {}\n", grid.device.chip().device_name.substr(7, 4),
                           grid.program.pretty_name, plainly);
}

Fault report_trap(Cluster& cluster, const Origin& who, const Trap& trap) {
  const Cta& cta = *cluster.ctas[who.cta_rank];
  Fault fault{.error = static_cast<int>(trap.code),
              .kind = trap.kind,
              .title = std::string(traits(trap.kind).title),
              .message = trap.what(),
              .source = trap.source};
  std::string first;
  if (const auto* assertion = dynamic_cast<const AssertionFailed*>(&trap)) first = assertion->lines;
  const int at_fault = trap.lane >= 0 ? trap.lane : who.lane;
  std::string lane = at_fault >= 0 ? fmt::format(", lane {}", at_fault) : "";
  fault.sides.push_back({"stopped", describe_location(cluster.grid.location(who.source)),
                         fmt::format("block ({},{},{}){}, warp {}{}", cta.index.x, cta.index.y, cta.index.z,
                                     describe_rank(cta), who.warp, lane),
                         cluster.grid.text(who.source)});
  const Side& side = fault.sides.front();
  std::string text = first + headline(cluster.grid, fault, "stopped");
  text += fmt::format("=========     {}\n", trap.what());
  if (dynamic_cast<const mbarrier::Fault*>(&trap))
    text += fmt::format("=========     {}: {}\n", describe_shared(cluster, cluster.last_mbarrier),
                        describe_mbarrier(cluster, cluster.last_mbarrier, "\n=========       "));
  text += fmt::format("=========     at {}\n", side.where);
  text += fmt::format("=========     by {}: {}\n", side.who, side.instruction);
  // What an asynchronous operation does wrong is not the fault of what its warp runs by then.
  const Group* group = cta.warps.size() > who.warp ? cta.warps[who.warp]->group : nullptr;
  if (group && group->frame &&
      cluster.grid.code().module().function_of(who.source) ==
          cluster.grid.code().module().function_of(group->frame->program->first_source))
    for (const std::string& call : describe_calls(cluster, *group->frame))
      text += fmt::format("=========     {}\n", call);
  if (dynamic_cast<const KernelTrap*>(&trap) || dynamic_cast<const AssertionFailed*>(&trap))
    text += report_given_up(cluster, *cta.warps[who.warp]);
  if (!trap.source.empty()) text += fmt::format("=========     rule: {}\n", trap.source);
  fault.report = std::move(text);
  return fault;
}

}  // namespace emu
