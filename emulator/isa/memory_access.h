#pragma once
// What ld, st, atom and their kin have in common: state space, memory order and hints from the modifiers, and from an
// address operand to each lane's bytes through the door of the memory they lie in.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "emulator/isa/binder.h"
#include "emulator/machine/global_memory.h"
#include "emulator/machine/warp.h"

namespace emu::isa {

/// `frame`: parameters of calls, by their offset in the running frame's part of the thread's stack.
enum class MemorySpace : uint8_t { generic, global, shared, local, constant, param, frame };

/// How a memory instruction was qualified. Taken from the binder: everything that stands before operation and type.
struct Qualifiers {
  MemorySpace space = MemorySpace::generic;
  bool strong = false;  ///< .volatile, .mmio, .relaxed, .acquire, .release, .acq_rel; .cv and .cg, which ask L2 anew
  bool narrow = false;  ///< scope .cta or .cluster
  bool has_policy = false;  ///< .L2::cache_hint: one more operand, a cache policy
  /// Whether another cluster may tell when it happens.
  bool visible() const { return strong && !narrow && (space == MemorySpace::generic || space == MemorySpace::global); }
};
Qualifiers take_qualifiers(Binder& binder);

/// The address operand, refused where its symbol lies in another space than the instruction says.
AddressOperand bind_address(Binder& binder, size_t operand, MemorySpace space);

/// Each active lane's address.
void lane_addresses(const Warp& warp, const AddressOperand& operand, uint64_t (&address)[kLanes]);

/// Where each active lane's `bytes` bytes lie. Throws Trap when an address is not a multiple of `align` or belongs to
/// nobody. Counts the bytes that cross to or from global memory. True when all 32 lanes are active and their bytes
/// follow each other.
bool resolve(Warp& warp, MemorySpace space, const AddressOperand& operand, uint32_t bytes, uint32_t align,
             Access access, std::byte* (&at)[kLanes]);
/// The same for addresses that the instruction has worked out itself. `space`: not a frame's parameters.
bool resolve(Warp& warp, MemorySpace space, const uint64_t (&address)[kLanes], uint32_t bytes, uint32_t align,
             Access access, std::byte* (&at)[kLanes]);

}  // namespace emu::isa
