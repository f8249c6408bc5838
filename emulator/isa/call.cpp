// Calls of functions, and the stack. PTX ISA, "Control Flow Instructions": call, ret; "Stack Manipulation
// Instructions": stacksave, stackrestore, alloca.
//
// Lanes that call the same function together share a frame. Lanes that call through a register go each to its own
// function, those of one function together, and all meet again behind the call.

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>

#include "emulator/isa/builtin.h"
#include "emulator/isa/families.h"
#include "emulator/isa/lanes.h"
#include "emulator/machine/align.h"
#include "emulator/machine/cluster.h"
#include "emulator/machine/decoder.h"
#include "emulator/machine/grid.h"

namespace emu::isa {
namespace {

constexpr const char* kSource = "PTX ISA, call";

/// Where an argument lies in one lane of a frame.
std::byte* place(Warp& warp, const Frame& frame, const Argument& argument, int lane) {
  if (!argument.slot.present()) return warp.frames.stack(lane, frame.base + argument.offset);
  const std::byte* bank = argument.slot.bank == Slot::warp ? frame.file() : frame.program->constants.data();
  return const_cast<std::byte*>(bank) + argument.slot.offset + size_t(lane) * argument.slot.bytes;
}

void hand_over(Warp& warp, const Frame& from, const std::vector<Argument>& given, const Frame& to,
               const std::vector<Argument>& taken, uint32_t lanes) {
  for (size_t i = 0; i < std::min(given.size(), taken.size()); ++i) {
    const Argument &source = given[i], &target = taken[i];
    uint32_t bytes = std::min(source.bytes, target.bytes);
    for_lanes(lanes, [&](int lane) {
      std::byte* at = place(warp, to, target, lane);
      if (target.slot.present()) std::memset(at, 0, target.slot.bytes);
      std::memcpy(at, place(warp, from, source, lane), bytes);
    });
  }
}

/// What a call costs of a thread's stack beside local memory and parameters: registers that it must keep, as far as
/// anybody can tell without the machine code.
uint32_t kept_bytes(const Program& program) {
  return 16 + std::min<uint32_t>(128, program.warp_file_bytes / kLanes);
}

/// Lets `group`, which stands at a call in its frame, begin `callee`.
void begin(Warp& warp, Group& group, const Program& callee, const CallSite& call) {
  const Frame& caller = *group.frame;
  uint32_t base = 0;
  for_lanes(group.mask, [&](int lane) { base = std::max(base, caller.top_of(lane)); });
  base = align_up(base, callee.stack_align);
  uint32_t charged = caller.charged + callee.stack_bytes + kept_bytes(callee);
  if (charged > Frames::kMostStack || base + callee.stack_bytes > Frames::kMostStack)
    throw Trap(
        FaultKind::stack, FaultCode::illegal_address,  // so says an H200 of a recursion that never ends
        fmt::format("stack overflow: {} calls deep, a call of {} needs {} bytes more than the {} KiB of stack "
                    "that a thread can have; does the recursion end?",
                    caller.depth, pretty_name(callee.name),
                    std::max(charged, base + callee.stack_bytes) - Frames::kMostStack, Frames::kMostStack / 1024),
        "CUDA programming guide, Technical Specifications: local memory per thread");
  FramePointer frame = warp.new_frame(callee, base);
  frame->parent = group.frame;
  frame->call = &call;
  frame->return_pc = group.pc + 1;
  frame->depth = caller.depth + 1;
  frame->charged = charged;
  hand_over(warp, caller, call.arguments, *frame, callee.parameters, group.mask);
  group.frame = std::move(frame);
  group.pc = 0;
}

const ptx::Function& function_of(const Warp& warp, uint32_t index) {
  return warp.cta.cluster.grid.code().module().module.functions[index];
}

/// The function with the code: an alias stands for another.
uint32_t resolve_alias(const Warp& warp, uint32_t index) {
  for (int steps = 0; steps < 16 && function_of(warp, index).alias_of != ptx::kNone; ++steps)
    index = function_of(warp, index).alias_of;
  return index;
}

/// Makes the lanes of the running group that do not call wait behind the call.
void leave_others(Warp& warp, uint32_t calling) {
  Group& group = *warp.group;
  if (uint32_t others = group.mask & ~calling) warp.cta.cluster.part(warp, others, group.pc + 1, group.pc + 1);
}

Flow call_one(Warp& warp, const CallSite& call, uint32_t function) {
  leave_others(warp, warp.active);
  begin(warp, *warp.group, warp.cta.cluster.grid.code().function(resolve_alias(warp, function)), call);
  warp.enter(*warp.group);
  return Flow::jump;
}

Flow execute_call(Warp& warp, const Instruction& instruction) {
  const CallSite& call = warp.program().calls[instruction.modifiers];
  return call_one(warp, call, call.function);
}

Flow execute_builtin(Warp& warp, const Instruction& instruction) {
  const CallSite& call = warp.program().calls[instruction.modifiers];
  reinterpret_cast<Builtin>(static_cast<uintptr_t>(instruction.immediate))(warp, call, warp.active);
  return Flow::next;
}

[[noreturn]] void no_function(uint64_t address, int lane, const char* what) {
  throw Trap(FaultCode::invalid_pc,
             fmt::format("lane {} calls through a pointer that holds {:#x}, {}", lane, address, what), kSource);
}

/// Operand 0: the address of the function, by lane.
Flow execute_indirect(Warp& warp, const Instruction& instruction) {
  const CallSite& call = warp.program().calls[instruction.modifiers];
  const ModuleCode& code = warp.cta.cluster.grid.code().module();
  const uint64_t* address = warp.read<uint64_t>(instruction.operand[0]);
  std::map<uint32_t, uint32_t> lanes_by_function;
  for_lanes(warp.active, [&](int lane) {
    uint32_t function = code.function_at(address[lane]);
    if (function == ptx::kNone)
      no_function(address[lane], lane,
                  address[lane] == 0 ? "a null pointer"
                                     : "which is the address of no function of this module: function pointers do not "
                                       "pass between modules, or between host and device");
    if (!call.targets.empty() && std::find(call.targets.begin(), call.targets.end(), function) == call.targets.end())
      no_function(address[lane], lane, "a function that the call's .calltargets does not list");
    lanes_by_function[function] |= 1u << lane;
  });
  for (auto [function, lanes] : lanes_by_function)
    if (!function_of(warp, resolve_alias(warp, function)).has_code())
      no_function(address[std::countr_zero(lanes)], std::countr_zero(lanes),
                  "a function that this module only declares");
  if (lanes_by_function.size() == 1) return call_one(warp, call, lanes_by_function.begin()->first);
  leave_others(warp, warp.active);
  Cluster& cluster = warp.cta.cluster;
  Group& group = *warp.group;
  KernelCode& programs = cluster.grid.code();
  auto last = std::prev(lanes_by_function.end());
  for (auto it = lanes_by_function.begin(); it != last; ++it) {
    Group& other = cluster.split(warp, it->second, group.pc, group.pc + 1);
    begin(warp, other, programs.function(resolve_alias(warp, it->first)), call);
  }
  begin(warp, group, programs.function(resolve_alias(warp, last->first)), call);
  warp.enter(group);
  return Flow::jump;
}

Argument bind_argument(Binder& binder, const ptx::Operand& operand, uint32_t formal_bytes) {
  using Kind = ptx::Operand::Kind;
  Decoder& decoder = binder.decoder();
  if (operand.kind == Kind::symbol) {
    if (!decoder.is_call_parameter(operand.symbol) || operand.value != 0)
      binder.refuse("an argument must be a .param variable, a register or a constant");
    return decoder.argument(decoder.variable(operand.symbol));
  }
  if (operand.kind == Kind::sink) return {};
  uint8_t bytes = formal_bytes == 0 ? 8 : static_cast<uint8_t>(std::clamp<uint32_t>(formal_bytes, 2, 16));
  Argument argument;
  argument.slot = binder.input(operand, bytes);
  if (argument.slot.bytes == 0) binder.refuse("a predicate as an argument");
  argument.bytes = argument.slot.bytes;
  return argument;
}

void bind_call(Binder& binder) {
  binder.take("uni");
  binder.out.changes_frame = true;
  using Kind = ptx::Operand::Kind;
  Instruction& out = binder.out;
  Decoder& decoder = binder.decoder();
  const ptx::Operand &results = binder.operand(0), &callee = binder.operand(1), &arguments = binder.operand(2),
                     &table = binder.operand(3);
  CallSite call;
  std::span<const ptx::Variable> formals;
  if (callee.kind == Kind::function) {
    call.function = callee.index;
    formals = decoder.module().functions[callee.index].parameters();
  } else if (table.kind == Kind::prototype) {
    formals = decoder.function().prototypes[table.index].parameters;
  } else if (table.kind == Kind::calltargets) {
    call.targets = decoder.function().call_targets[table.index];
    if (!call.targets.empty()) formals = decoder.module().functions[call.targets[0]].parameters();
  }
  for (size_t i = 0; i < arguments.children.size(); ++i)
    call.arguments.push_back(
        bind_argument(binder, arguments.children[i], i < formals.size() ? static_cast<uint32_t>(formals[i].bytes) : 0));
  for (const ptx::Operand& result : results.children) call.results.push_back(bind_argument(binder, result, 0));
  if (callee.kind != Kind::function) {
    out.operand[0] = source(binder, 1, 8);
    out.execute = execute_indirect;
  } else {
    const ptx::Function& function = decoder.module().functions[call.function];
    if (function.has_code() || function.alias_of != ptx::kNone) {
      if (arguments.children.size() != formals.size())
        binder.refuse(
            fmt::format("{} takes {} arguments, not {}", function.name, formals.size(), arguments.children.size()));
      out.execute = execute_call;
    } else if (Builtin builtin = find_builtin(function.name)) {
      out.immediate = static_cast<int64_t>(reinterpret_cast<uintptr_t>(builtin));
      out.visible = true;  // output and the heap are the whole device's
      out.execute = execute_builtin;
    } else {
      binder.refuse(
          fmt::format("the function {} is declared and not defined: it is neither in this module nor among "
                      "those that the emulator supplies",
                      pretty_name(std::string(function.name))));
    }
  }
  out.modifiers = decoder.program().calls.size();
  decoder.program().calls.push_back(std::move(call));
}

// ---- ret ------------------------------------------------------------------------------------------------------------

Flow execute_return(Warp& warp, const Instruction& instruction) {
  const Frame& frame = warp.frame();
  hand_over(warp, frame, frame.program->results, *frame.parent, frame.call->results, warp.active);
  return warp.cta.cluster.return_lanes(warp, warp.active, instruction.reconverge);
}

void bind_ret(Binder& binder) {
  if (binder.decoder().function().is_entry) {
    bind_exit(binder);
    return;
  }
  binder.take("uni");
  binder.out.changes_frame = true;
  binder.out.execute = execute_return;
}

// ---- the stack ------------------------------------------------------------------------------------------------------

/// Operands: 0 the address, 1 the size; immediate: the alignment. Addresses are of local memory.
template <class T>
Flow execute_alloca(Warp& warp, const Instruction& instruction) {
  Frame& frame = warp.frame();
  T* address = warp.write<T>(instruction.operand[0]);
  const T* size = warp.read<T>(instruction.operand[1]);
  uint64_t align = static_cast<uint64_t>(instruction.immediate);
  for_lanes(warp.active, [&](int lane) {
    uint32_t& top = frame.top[static_cast<size_t>(lane)];
    uint64_t start = (top + align - 1) / align * align, bytes = size[lane];
    if (bytes > Frames::kMostStack || start + bytes > Frames::kMostStack)
      throw Trap(FaultKind::stack, FaultCode::illegal_address,
                 fmt::format("stack overflow: alloca of {} bytes in lane {}, beside {} in use; a thread's stack has at "
                             "most {} KiB",
                             bytes, lane, top, Frames::kMostStack / 1024),
                 "CUDA programming guide, Technical Specifications: local memory per thread");
    top = static_cast<uint32_t>((start + bytes + 15) / 16 * 16);
    warp.frames.reserve(top);
    address[lane] = static_cast<T>(start);
  });
  return Flow::next;
}

void bind_alloca(Binder& binder) {
  std::string_view type = binder.take_next();
  binder.out.immediate = binder.count() > 2 ? binder.immediate(2) : 8;
  if (!std::has_single_bit(static_cast<uint64_t>(binder.out.immediate)))
    binder.refuse("the alignment must be a power of two");
  binder.decoder().program().allocates = true;
  uint8_t bytes = type == "u32" ? 4 : 8;
  if (type != "u32" && type != "u64") refuse_type(binder, type);
  binder.out.operand[0] = result(binder, 0, bytes);
  binder.out.operand[1] = source(binder, 1, bytes);
  binder.out.execute = bytes == 4 ? execute_alloca<uint32_t> : execute_alloca<uint64_t>;
}

template <class T>
Flow execute_save(Warp& warp, const Instruction& instruction) {
  T* out = warp.write<T>(instruction.operand[0]);
  for_lanes(warp.active, [&](int lane) { out[lane] = warp.frame().top_of(lane); });
  return Flow::next;
}

template <class T>
Flow execute_restore(Warp& warp, const Instruction& instruction) {
  const T* value = warp.read<T>(instruction.operand[0]);
  Frame& frame = warp.frame();
  uint32_t bottom = frame.base + frame.program->stack_bytes;
  for_lanes(warp.active, [&](int lane) {
    uint32_t& top = frame.top[static_cast<size_t>(lane)];
    if (value[lane] < bottom || value[lane] > top)
      throw Trap(
          FaultCode::hardware_stack,
          fmt::format("stackrestore of {:#x} in lane {}, which no stacksave of this function gave", value[lane], lane),
          "PTX ISA, stackrestore");
    top = static_cast<uint32_t>(value[lane]);
  });
  return Flow::next;
}

template <bool kRestore>
void bind_stack(Binder& binder) {
  std::string_view type = binder.take_next();
  if (type != "u32" && type != "u64") refuse_type(binder, type);
  uint8_t bytes = type == "u32" ? 4 : 8;
  binder.decoder().program().allocates = true;
  binder.out.operand[0] = kRestore ? source(binder, 0, bytes) : result(binder, 0, bytes);
  if (kRestore)
    binder.out.execute = bytes == 4 ? execute_restore<uint32_t> : execute_restore<uint64_t>;
  else
    binder.out.execute = bytes == 4 ? execute_save<uint32_t> : execute_save<uint64_t>;
}

constexpr Entry kEntries[] = {
    {"call", bind_call},
    {"ret", bind_ret},
    {"alloca", bind_alloca},
    {"stacksave", bind_stack<false>},
    {"stackrestore", bind_stack<true>},
};

}  // namespace

std::span<const Entry> call_entries() {
  return kEntries;
}

}  // namespace emu::isa
