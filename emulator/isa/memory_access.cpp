#include "emulator/isa/memory_access.h"

#include <bit>
#include <initializer_list>

#include <fmt/format.h>

#include "emulator/hazards/hazards.h"
#include "emulator/isa/lanes.h"
#include "emulator/machine/address.h"
#include "emulator/machine/cluster.h"
#include "emulator/machine/grid.h"

namespace emu::isa {
namespace {

const char* name(MemorySpace space) {
  constexpr const char* kNames[] = {"generic", "global", "shared", "local", "const", "param", "param"};
  return kNames[static_cast<size_t>(space)];
}

[[noreturn]] void misaligned(MemorySpace space, uint64_t address, uint32_t bytes, uint32_t align) {
  throw Trap(FaultCode::misaligned_address,
             fmt::format("access of {} bytes at {} address {:#x}: the address must be a multiple of {} (a vector is "
                         "aligned as a whole)",
                         bytes, name(space), address, align),
             "PTX ISA, Addresses as Operands: natural alignment");
}

std::byte* parameter(Warp& warp, int lane, uint64_t address, uint64_t bytes) {
  const Grid& grid = warp.cta.cluster.grid;
  // The address of a function's parameter is one in local memory.
  if (address < Frames::kMostStack) return warp.cta.cluster.local(warp, lane, address, bytes);
  address = grid.parameter_address(address);
  uint64_t offset = address - reinterpret_cast<uint64_t>(grid.parameters());
  uint64_t size = grid.kernel.parameter_bytes;
  if (offset > size || bytes > size - offset)
    throw Trap(FaultCode::illegal_address,
               fmt::format("{} bytes at parameter address {:#x}: the kernel's parameters are {:#x} to {:#x}", bytes,
                           address, reinterpret_cast<uint64_t>(grid.parameters()),
                           reinterpret_cast<uint64_t>(grid.parameters()) + size - 1),
               "PTX ISA, Kernel Function Parameters");
  return reinterpret_cast<std::byte*>(address);
}

std::byte* door(Warp& warp, MemorySpace space, int lane, uint64_t address, uint64_t bytes, Access access) {
  Cluster& cluster = warp.cta.cluster;
  switch (space) {
    case MemorySpace::generic:
      return cluster.generic(warp, lane, address, bytes, access);
    case MemorySpace::global:
    case MemorySpace::constant:
      return cluster.global().door(address, bytes, access);
    case MemorySpace::shared:
      if (address >> 32)
        throw Trap(FaultKind::address_space, FaultCode::illegal_address,
                   fmt::format("{:#x} is used as an address in shared memory, where addresses have 32 bits: a generic "
                               "address needs cvta.to.shared",
                               address),
                   "PTX ISA, shared state space");
      return cluster.shared(static_cast<uint32_t>(address), bytes, access);
    case MemorySpace::local:
      return cluster.local(warp, lane, address, bytes);
    case MemorySpace::frame:
      return warp.frames.stack(lane, warp.frame().base + static_cast<uint32_t>(address));
    case MemorySpace::param:
      return parameter(warp, lane, address, bytes);
  }
  return nullptr;
}

/// One call of the door for the whole warp where its lanes' bytes are the same or follow each other.
bool resolve_together(Warp& warp, MemorySpace space, const uint64_t (&address)[kLanes], uint32_t bytes, Access access,
                      std::byte* (&at)[kLanes]) {
  if (warp.active != kAllLanes || space == MemorySpace::local) return false;
  uint64_t first = address[0], stride = address[1] - first;
  if (stride != bytes && stride != 0) return false;
  uint64_t other = 0;
  for (int lane = 0; lane < kLanes; ++lane) other |= address[lane] ^ (first + stride * static_cast<uint64_t>(lane));
  if (other != 0 || first + stride * (kLanes - 1) < first) return false;
  if (space == MemorySpace::generic) {
    if (is_local(first)) return false;
    // Not across the edge between two memories.
    if (is_shared(first) != is_shared(first + stride * (kLanes - 1) + bytes - 1)) return false;
  }
  uint64_t span = stride * (kLanes - 1) + bytes;
  std::byte* base;
  try {
    base = door(warp, space, 0, first, span, access);
  } catch (const Trap&) {
    return false;  // lane by lane, so that the report names the lane's own address
  }
  for (int lane = 0; lane < kLanes; ++lane) at[lane] = base + stride * static_cast<uint64_t>(lane);
  return true;
}

/// The lanes that reach shared memory, and those that reach global memory.
void tell_hazards(Warp& warp, MemorySpace space, const uint64_t (&address)[kLanes], uint32_t bytes, Access access) {
  uint64_t in_shared[kLanes] = {};
  uint32_t shared = 0, global = 0;
  for_lanes(warp.active, [&](int lane) {
    const uint64_t at = address[lane];
    if (space == MemorySpace::shared || (space == MemorySpace::generic && is_shared(at))) {
      in_shared[lane] = space == MemorySpace::generic ? at - kSharedWindow : at;
      shared |= 1u << lane;
    } else if (space == MemorySpace::global || !is_local(at)) {
      global |= 1u << lane;
    }
  });
  hazards::Hazards& hazards = *warp.cta.cluster.hazards;
  const uint8_t order = warp.program().code[warp.group->pc].order;
  if (shared) hazards.threads(warp, shared, in_shared, bytes, access, order);
  if (global) hazards.global_threads(warp, global, address, bytes, access, order);
}

}  // namespace

Qualifiers take_qualifiers(Binder& binder) {
  Qualifiers out;
  constexpr struct {
    std::string_view name;
    MemorySpace space;
  } kSpaces[] = {
      {"global", MemorySpace::global},      {"shared", MemorySpace::shared},
      {"shared::cta", MemorySpace::shared}, {"shared::cluster", MemorySpace::shared},
      {"local", MemorySpace::local},        {"const", MemorySpace::constant},
      {"param", MemorySpace::param},        {"param::entry", MemorySpace::param},
      {"param::func", MemorySpace::param},
  };
  for (const auto& row : kSpaces)
    if (binder.take(row.name)) {
      out.space = row.space;
      break;
    }
  binder.take("weak");
  for (std::string_view order : {"volatile", "mmio", "relaxed", "acquire", "release", "acq_rel"})
    if (binder.take(order)) {
      out.strong = true;
      if (order == "acquire" || order == "acq_rel") binder.out.order |= Instruction::kAcquire;
      if (order == "release" || order == "acq_rel") binder.out.order |= Instruction::kRelease;
    }
  std::string_view scope = binder.take_any({"cta", "cluster", "gpu", "sys"});
  out.narrow = scope == "cta" || scope == "cluster";
  if (out.narrow) binder.out.order |= Instruction::kNarrow;
  // Old code polls with these, which do not look into L1.
  for (std::string_view cache : {"cg", "cv"})
    if (binder.take(cache)) out.strong = true;
  if (out.strong) binder.out.order |= Instruction::kStrong;
  // Hints: they may change when data is fetched or evicted, never what is read.
  if (binder.take("nc")) binder.out.order |= Instruction::kConstant;
  for (std::string_view hint :
       {"ca", "cs", "lu", "wb", "wt", "L1::evict_normal", "L1::evict_unchanged", "L1::evict_first", "L1::evict_last",
        "L1::no_allocate", "L2::evict_normal", "L2::evict_first", "L2::evict_last", "L2::64B", "L2::128B", "L2::256B"})
    binder.take(hint);
  out.has_policy = binder.take("L2::cache_hint");
  return out;
}

AddressOperand bind_address(Binder& binder, size_t operand, MemorySpace space) {
  const ptx::Operand& from = binder.operand(operand);
  if (auto symbol = binder.symbol_space(from)) {
    bool fits = false;
    switch (space) {
      case MemorySpace::generic:
        // A symbol stands for its address in its own space, which is a generic one for these three.
        fits = *symbol == ptx::Space::global || *symbol == ptx::Space::constant || *symbol == ptx::Space::param;
        break;
      case MemorySpace::global:
        fits = *symbol == ptx::Space::global;
        break;
      case MemorySpace::shared:
        fits = *symbol == ptx::Space::shared;
        break;
      case MemorySpace::local:
        fits = *symbol == ptx::Space::local;
        break;
      case MemorySpace::constant:
        fits = *symbol == ptx::Space::constant;
        break;
      case MemorySpace::param:
      case MemorySpace::frame:
        fits = *symbol == ptx::Space::param;
        break;
    }
    if (!fits) binder.refuse(fmt::format("a .{} access to a variable in .{}", name(space), ptx::to_string(*symbol)));
  }
  return binder.address(operand);
}

void lane_addresses(const Warp& warp, const AddressOperand& operand, uint64_t (&address)[kLanes]) {
  uint64_t offset = static_cast<uint64_t>(operand.offset);
  if (!operand.base.present()) {
    for (uint64_t& a : address) a = offset;
  } else if (operand.base.bytes == 8) {
    const uint64_t* base = warp.read<uint64_t>(operand.base);
    for (int lane = 0; lane < kLanes; ++lane) address[lane] = base[lane] + offset;
  } else {
    const uint32_t* base = warp.read<uint32_t>(operand.base);
    for (int lane = 0; lane < kLanes; ++lane) address[lane] = base[lane] + static_cast<uint32_t>(offset);
  }
}

bool resolve(Warp& warp, MemorySpace space, const AddressOperand& operand, uint32_t bytes, uint32_t align,
             Access access, std::byte* (&at)[kLanes]) {
  if (space == MemorySpace::frame) {
    uint32_t offset = warp.frame().base + static_cast<uint32_t>(operand.offset);
    for_lanes(warp.active, [&](int lane) { at[lane] = warp.frames.stack(lane, offset); });
    return false;
  }
  uint64_t address[kLanes];
  lane_addresses(warp, operand, address);
  return resolve(warp, space, address, bytes, align, access, at);
}

bool resolve(Warp& warp, MemorySpace space, const uint64_t (&address)[kLanes], uint32_t bytes, uint32_t align,
             Access access, std::byte* (&at)[kLanes]) {
  uint64_t low_bits = 0;
  active_lanes(warp, [&](int lane) { low_bits |= address[lane]; });
  if (low_bits & (align - 1))
    for_lanes(warp.active, [&](int lane) {
      if (address[lane] & (align - 1)) misaligned(space, address[lane], bytes, align);
    });
  uint64_t lanes_in_global = 0;
  if (space == MemorySpace::global) lanes_in_global = static_cast<uint64_t>(std::popcount(warp.active));
  if (space == MemorySpace::generic)
    for_lanes(warp.active, [&](int lane) { lanes_in_global += !is_shared(address[lane]) && !is_local(address[lane]); });
  if (lanes_in_global) {
    if (access != Access::write) {
      warp.counters.bytes_from_global += lanes_in_global * bytes;
      warp.cta.cluster.note_outside_read();
    }
    if (access != Access::read) warp.counters.bytes_to_global += lanes_in_global * bytes;
  }
  if (access == Access::write) warp.cta.cluster.note_effect();
  bool row = false;
  if (resolve_together(warp, space, address, bytes, access, at))
    row = at[0] != at[1];
  else
    for_lanes(warp.active, [&](int lane) {
      at[lane] = in_lane(lane, [&] { return door(warp, space, lane, address[lane], bytes, access); });
    });
  if (warp.cta.cluster.hazards &&
      (space == MemorySpace::shared || space == MemorySpace::generic || space == MemorySpace::global))
    tell_hazards(warp, space, address, bytes, access);
  return row;
}

}  // namespace emu::isa
