#include "emulator/isa/builtin.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>

#include "emulator/hazards/hazards.h"
#include "emulator/isa/print_format.h"
#include "emulator/machine/cluster.h"
#include "emulator/machine/grid.h"

namespace emu::isa {
namespace {

// ---- arguments ------------------------------------------------------------------------------------------------------

std::byte* place(Warp& warp, const Argument& argument, int lane) {
  const Frame& frame = warp.frame();
  if (!argument.slot.present()) return warp.frames.stack(lane, frame.base + argument.offset);
  const std::byte* bank = argument.slot.bank == Slot::warp ? frame.file() : frame.program->constants.data();
  return const_cast<std::byte*>(bank) + argument.slot.offset + size_t(lane) * argument.slot.bytes;
}

uint64_t argument(Warp& warp, const CallSite& call, size_t i, int lane) {
  if (i >= call.arguments.size())
    throw Trap(FaultCode::illegal_instruction, fmt::format("a call of a built-in function without argument {}", i + 1),
               "CUDA C++ programming guide, C++ Language Extensions");
  uint64_t value = 0;
  std::memcpy(&value, place(warp, call.arguments[i], lane), std::min<uint32_t>(call.arguments[i].bytes, 8));
  return value;
}

void give(Warp& warp, const CallSite& call, int lane, uint64_t value) {
  if (call.results.empty()) return;
  std::memcpy(place(warp, call.results[0], lane), &value, std::min<uint32_t>(call.results[0].bytes, 8));
}

/// A string that ends with a zero byte, at a generic address.
std::string text_at(Warp& warp, int lane, uint64_t address) {
  constexpr size_t kLongest = 1 << 20;
  std::string text;
  while (text.size() < kLongest) {
    char c;
    std::memcpy(&c, warp.cta.cluster.generic(warp, lane, address + text.size(), 1, Access::read), 1);
    if (c == 0) break;
    text += c;
  }
  return text;
}

// ---- printf ---------------------------------------------------------------------------------------------------------

void print(Warp& warp, const CallSite& call, uint32_t lanes) {
  Cluster& cluster = warp.cta.cluster;
  for_lanes(lanes, [&](int lane) {
    uint64_t format = argument(warp, call, 0, lane), values = argument(warp, call, 1, lane);
    if (format == 0) {
      give(warp, call, lane, static_cast<uint64_t>(-1));
      return;
    }
    PrintSources sources;
    sources.value = [&](uint64_t offset, uint32_t bytes) {
      uint64_t value = 0;
      std::memcpy(&value, cluster.generic(warp, lane, values + offset, bytes, Access::read), bytes);
      return value;
    };
    sources.text = [&](uint64_t address) { return text_at(warp, lane, address); };
    Printed printed = print_format(text_at(warp, lane, format), sources);
    cluster.grid.device.print(printed.text);
    give(warp, call, lane, static_cast<uint64_t>(printed.arguments));
  });
}

// ---- assert ---------------------------------------------------------------------------------------------------------

void assert_failed(Warp& warp, const CallSite& call, uint32_t lanes) {
  const Dim3& block = warp.cta.index;
  const Dim3& shape = warp.cta.cluster.grid.config.block;
  std::string lines, message;
  for_lanes(lanes, [&](int lane) {
    uint32_t thread = warp.index * kLanes + static_cast<uint32_t>(lane);
    message = text_at(warp, lane, argument(warp, call, 0, lane));
    lines += fmt::format("{}:{}: {}: block: [{},{},{}], thread: [{},{},{}] Assertion `{}` failed.\n",
                         text_at(warp, lane, argument(warp, call, 1, lane)), argument(warp, call, 2, lane),
                         text_at(warp, lane, argument(warp, call, 3, lane)), block.x, block.y, block.z,
                         thread % shape.x, thread / shape.x % shape.y, thread / shape.x / shape.y, message);
  });
  throw AssertionFailed(fmt::format("an assertion failed: {}", message), lines);
}

// ---- malloc ---------------------------------------------------------------------------------------------------------

/// What threads did to these bytes when they were somebody else's is over.
uint64_t fresh(Warp& warp, uint64_t address, uint64_t bytes) {
  if (auto* const hazards = warp.cta.cluster.hazards.get(); hazards && address)
    hazards->global_allocated(address, bytes);
  return address;
}

void allocate(Warp& warp, const CallSite& call, uint32_t lanes) {
  DeviceHeap& heap = warp.cta.cluster.grid.device.heap();
  for_lanes(lanes, [&](int lane) {
    const uint64_t bytes = argument(warp, call, 0, lane);
    give(warp, call, lane, fresh(warp, heap.allocate(bytes), bytes));
  });
}

void allocate_aligned(Warp& warp, const CallSite& call, uint32_t lanes) {
  DeviceHeap& heap = warp.cta.cluster.grid.device.heap();
  for_lanes(lanes, [&](int lane) {
    uint64_t align = argument(warp, call, 1, lane);
    bool fits = align != 0 && (align & (align - 1)) == 0;
    const uint64_t bytes = argument(warp, call, 0, lane);
    give(warp, call, lane, fits ? fresh(warp, heap.allocate(bytes, align), bytes) : 0);
  });
}

void release(Warp& warp, const CallSite& call, uint32_t lanes) {
  DeviceHeap& heap = warp.cta.cluster.grid.device.heap();
  for_lanes(lanes, [&](int lane) {
    uint64_t address = argument(warp, call, 0, lane);
    if (address == 0 || heap.release(address)) return;
    throw Trap(FaultKind::invalid_free,
               fmt::format("free({:#x}) in lane {}: malloc() in a kernel gave no such address, or it has been freed "
                           "already (memory of cudaMalloc is freed by cudaFree)",
                           address, lane),
               "CUDA programming guide, Dynamic Global Memory Allocation and Operations");
  });
}

}  // namespace

Builtin find_builtin(std::string_view name) {
  static const std::map<std::string_view, Builtin> kBuiltins{
      {"vprintf", print},   {"__assertfail", assert_failed},
      {"malloc", allocate}, {"__nv_aligned_device_malloc", allocate_aligned},
      {"free", release},
  };
  auto found = kBuiltins.find(name);
  return found == kBuiltins.end() ? nullptr : found->second;
}

}  // namespace emu::isa
