// Loads, stores and prefetches. PTX ISA, "Data Movement and Conversion Instructions": ld, ld.global.nc, ldu, st,
// prefetch, prefetchu, applypriority, discard.
//
// Memory order: within a cluster everything happens in program order of one virtual clock, and what other clusters may
// see is admitted in order (Instruction::visible); so .acquire and .release ask for nothing more here.

#include <fmt/format.h>

#include <cstring>
#include <string>
#include <type_traits>

#include "emulator/hazards/hazards.h"
#include "emulator/isa/families.h"
#include "emulator/isa/lanes.h"
#include "emulator/isa/memory_access.h"
#include "emulator/isa/memory_atomic.h"
#include "emulator/machine/address.h"
#include "emulator/machine/cluster.h"
#include "emulator/machine/decoder.h"

namespace emu::isa {
namespace {

using Quad = unsigned __int128;

MemorySpace space_of(const Instruction& instruction) {
  return static_cast<MemorySpace>(instruction.modifiers);
}

/// Operands: the registers of `list`, one for a scalar.
template <class Memory, class Register>
Flow load(Warp& warp, const Instruction& instruction) {
  std::byte* at[kLanes];
  uint32_t bytes = static_cast<uint32_t>(sizeof(Memory)) * instruction.list_count;
  bool row = resolve(warp, space_of(instruction), instruction.address, bytes, bytes, Access::read, at);
  if (sizeof(Memory) == sizeof(Register) && row && instruction.list_count == 1) {
    std::memcpy(warp.write<std::byte>(warp.listed(instruction.list, 0)), at[0], sizeof(Memory) * kLanes);
    return Flow::next;
  }
  for (uint32_t i = 0; i < instruction.list_count; ++i) {
    Register* d = warp.write<Register>(warp.listed(instruction.list, i));
    active_lanes(warp, [&](int lane) {
      Memory value;
      std::memcpy(&value, at[lane] + i * sizeof(Memory), sizeof(Memory));
      d[lane] = static_cast<Register>(value);
    });
  }
  return Flow::next;
}

template <class Memory, class Register>
Flow store(Warp& warp, const Instruction& instruction) {
  std::byte* at[kLanes];
  uint32_t bytes = static_cast<uint32_t>(sizeof(Memory)) * instruction.list_count;
  bool row = resolve(warp, space_of(instruction), instruction.address, bytes, bytes, Access::write, at);
  if (sizeof(Memory) == sizeof(Register) && row && instruction.list_count == 1) {
    std::memcpy(at[0], warp.read<std::byte>(warp.listed(instruction.list, 0)), sizeof(Memory) * kLanes);
    return Flow::next;
  }
  for (uint32_t i = 0; i < instruction.list_count; ++i) {
    const Register* s = warp.read<Register>(warp.listed(instruction.list, i));
    active_lanes(warp, [&](int lane) {
      Memory value = static_cast<Memory>(s[lane]);
      std::memcpy(at[lane] + i * sizeof(Memory), &value, sizeof(Memory));
    });
  }
  return Flow::next;
}

/// Calls f.template operator()<T>() with the C++ type of a value in memory.
template <class F>
bool with_memory_type(std::string_view type, F&& f) {
  if (type == "b8" || type == "u8") return f.template operator()<uint8_t>(), true;
  if (type == "s8") return f.template operator()<int8_t>(), true;
  if (type == "b16" || type == "u16") return f.template operator()<uint16_t>(), true;
  if (type == "s16") return f.template operator()<int16_t>(), true;
  if (type == "b32" || type == "u32" || type == "f32") return f.template operator()<uint32_t>(), true;
  if (type == "s32") return f.template operator()<int32_t>(), true;
  if (type == "b64" || type == "u64" || type == "s64" || type == "f64") return f.template operator()<uint64_t>(), true;
  if (type == "b128") return f.template operator()<Quad>(), true;
  return false;
}

/// The function for registers of `bytes` bytes, which may be wider than the value in memory.
template <bool kLoad, class Memory>
Execute choose(Binder& binder, uint8_t bytes) {
  auto pick = []<class Register>() -> Execute {
    if constexpr (kLoad)
      return load<Memory, Register>;
    else
      return store<Memory, Register>;
  };
  if constexpr (sizeof(Memory) <= 2)
    if (bytes == 2) return pick.template operator()<uint16_t>();
  if constexpr (sizeof(Memory) <= 4)
    if (bytes == 4) return pick.template operator()<uint32_t>();
  if constexpr (sizeof(Memory) <= 8)
    if (bytes == 8) return pick.template operator()<uint64_t>();
  if constexpr (sizeof(Memory) == 16)
    if (bytes == 16) return pick.template operator()<Quad>();
  binder.refuse("a register of " + std::to_string(bytes * 8) + " bits does not hold the value");
}

/// st.bulk: zeros. Operand 0: how many bytes, a multiple of 8.
Flow store_zeros(Warp& warp, const Instruction& instruction) {
  for_lanes(warp.active, [&](int lane) {
    uint64_t address = warp.address(instruction.address, lane), bytes = warp.scalar(instruction.operand[0], lane);
    if (bytes % 8 || address % 8)
      throw Trap(FaultCode::misaligned_address,
                 fmt::format("st.bulk of {} bytes at {:#x}: both must be multiples of 8", bytes, address),
                 "PTX ISA, st.bulk");
    if (bytes == 0) return;
    Cluster& cluster = warp.cta.cluster;
    std::byte* at = space_of(instruction) == MemorySpace::shared
                        ? cluster.shared(static_cast<uint32_t>(address), bytes, Access::write)
                        : cluster.generic(warp, lane, address, bytes, Access::write);
    if (space_of(instruction) == MemorySpace::generic && !is_shared(address))
      throw Trap(FaultCode::invalid_address_space,
                 fmt::format("st.bulk at generic address {:#x}, which is not in shared memory", address),
                 "PTX ISA, st.bulk: a generic address must be in .shared::cta");
    std::memset(at, 0, bytes);
    if (cluster.hazards) {
      uint64_t where[kLanes] = {};
      where[lane] = address - (is_shared(address) ? kSharedWindow : 0);
      cluster.hazards->threads(warp, 1u << lane, where, static_cast<uint32_t>(bytes), Access::write, 0);
    }
  });
  return Flow::next;
}

void bind_bulk_store(Binder& binder) {
  binder.take("weak");
  MemorySpace space = binder.take("shared::cta") ? MemorySpace::shared : MemorySpace::generic;
  if (binder.count() != 3 || binder.immediate(2) != 0) binder.refuse("an address, a size and the value 0 are wanted");
  binder.out.address = bind_address(binder, 0, space);
  binder.out.operand[0] = source(binder, 1, 8);
  binder.out.modifiers = static_cast<uint64_t>(space);
  binder.out.execute = store_zeros;
}

template <bool kLoad>
void bind_access(Binder& binder) {
  if (!kLoad && binder.take("bulk")) return bind_bulk_store(binder);
  if (!kLoad && binder.take("async")) return bind_store_async(binder);
  Qualifiers qualifiers = take_qualifiers(binder);
  std::string_view vector = binder.take_any({"v2", "v4", "v8"});
  std::string_view type = binder.take_next();
  Instruction& out = binder.out;
  size_t address = kLoad ? 1 : 0, data = 1 - address;
  if (binder.count() != 2 + (qualifiers.has_policy ? 1u : 0u)) binder.refuse("an address and a value are wanted");
  const ptx::Operand& where = binder.operand(address);
  if (qualifiers.space == MemorySpace::param && binder.symbol_space(where) &&
      binder.decoder().is_call_parameter(where.symbol)) {
    qualifiers.space = MemorySpace::frame;
    out.address = {.base = Slot::none(),
                   .offset = binder.decoder().argument(binder.decoder().variable(where.symbol)).offset + where.value};
  } else if (!kLoad && qualifiers.space == MemorySpace::param && binder.symbol_space(where)) {
    binder.refuse("a store to the kernel's own parameters");
  } else {
    out.address = bind_address(binder, address, qualifiers.space);
  }
  out.modifiers = static_cast<uint64_t>(qualifiers.space);
  out.visible = qualifiers.visible();

  const ptx::Operand& value = binder.operand(data);
  size_t wanted = vector.empty() ? 1 : static_cast<size_t>(vector[1] - '0');
  bool known = with_memory_type(type, [&]<class Memory>() {
    constexpr uint8_t kHeld = std::max<size_t>(2, sizeof(Memory));
    std::vector<Slot> slots = kLoad ? binder.outputs(value) : binder.inputs(value, kHeld);
    if (slots.size() != wanted) binder.refuse("the number of registers does not fit the vector");
    uint8_t held = 0;
    for (const Slot& slot : slots)
      if (slot.present()) held = std::max(held, slot.bytes);
    if (held == 0) held = kHeld;
    for (Slot& slot : slots) {
      if (!slot.present()) slot = {.offset = scratch(binder).offset, .bytes = held};
      if (slot.bytes != held) binder.refuse("registers of different widths in one vector");
    }
    if (sizeof(Memory) * wanted > 32) binder.refuse("an access is at most 32 bytes wide");
    out.list_count = static_cast<uint32_t>(slots.size());
    out.list = binder.list(slots);
    out.execute = choose<kLoad, Memory>(binder, held);
  });
  if (!known) refuse_type(binder, type);
}

// ---- hints ----------------------------------------------------------------------------------------------------------

Flow nothing(Warp&, const Instruction&) {
  return Flow::next;
}

/// prefetch.tensormap and prefetches into caches: nothing here is cached.
void bind_prefetch(Binder& binder) {
  while (!binder.next().empty()) binder.take_next();
  if (!binder.is_address(0)) binder.refuse("an address in brackets is wanted");
  binder.out.execute = nothing;
}

/// applypriority and discard work on 128 bytes of global memory.
Flow touch_line(Warp& warp, const Instruction& instruction) {
  std::byte* at[kLanes];
  constexpr uint32_t kLine = 128;
  resolve(warp, space_of(instruction), instruction.address, kLine, kLine, Access::read, at);
  return Flow::next;
}

void bind_touch_line(Binder& binder) {
  MemorySpace space = binder.take("global") ? MemorySpace::global : MemorySpace::generic;
  while (!binder.next().empty()) binder.take_next();
  if (binder.immediate(1) != 128) binder.refuse("the size must be 128");
  binder.out.address = bind_address(binder, 0, space);
  binder.out.modifiers = static_cast<uint64_t>(space);
  binder.out.execute = touch_line;
}

constexpr Entry kEntries[] = {
    {"ld", bind_access<true>},
    {"ldu", bind_access<true>},
    {"st", bind_access<false>},
    {"atom", bind_atom},
    {"red", bind_red},
    {"prefetch", bind_prefetch},
    {"prefetchu", bind_prefetch},
    {"applypriority", bind_touch_line},
    {"discard", bind_touch_line},
};

}  // namespace

std::span<const Entry> memory_entries() {
  return kEntries;
}

}  // namespace emu::isa
