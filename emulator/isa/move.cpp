// Moving values and addresses. PTX ISA, "Data Movement and Conversion Instructions": mov, cvta, isspacep, prmt, mapa,
// getctarank, createpolicy; "griddepcontrol".

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "emulator/isa/families.h"
#include "emulator/isa/lanes.h"
#include "emulator/machine/address.h"
#include "emulator/machine/cluster.h"
#include "emulator/machine/decoder.h"
#include "emulator/machine/grid.h"

namespace emu::isa {
namespace {

using Wide = unsigned __int128;

// ---- mov ------------------------------------------------------------------------------------------------------------

template <class D, class S>
D copy(S value) {
  return static_cast<D>(value);
}

Flow move_predicate(Warp& warp, const Instruction& instruction) {
  warp.set_predicate(instruction.operand[0], warp.predicate(instruction.operand[1]));
  return Flow::next;
}

/// Registers of `list` are the parts of one value, lowest first; of equal width. (8-bit parts lie in 16-bit lanes.)
Flow pack(Warp& warp, const Instruction& instruction) {
  const Slot& d = instruction.operand[0];
  std::byte* out = warp.write<std::byte>(d);
  size_t part = d.bytes / instruction.list_count;
  for (uint32_t i = 0; i < instruction.list_count; ++i) {
    const Slot& from = warp.listed(instruction.list, i);
    const std::byte* in = warp.read<std::byte>(from);
    for_lanes(warp.active, [&](int lane) {
      auto at = static_cast<size_t>(lane);
      std::memcpy(out + at * d.bytes + i * part, in + at * from.bytes, part);
    });
  }
  return Flow::next;
}

Flow unpack(Warp& warp, const Instruction& instruction) {
  const Slot& s = instruction.operand[1];
  const std::byte* in = warp.read<std::byte>(s);
  size_t part = s.bytes / instruction.list_count;
  for (uint32_t i = 0; i < instruction.list_count; ++i) {
    const Slot& to = warp.listed(instruction.list, i);
    std::byte* out = warp.write<std::byte>(to);
    for_lanes(warp.active, [&](int lane) {
      auto at = static_cast<size_t>(lane);
      if (part < to.bytes) std::memset(out + at * to.bytes, 0, to.bytes);
      std::memcpy(out + at * to.bytes, in + at * s.bytes + i * part, part);
    });
  }
  return Flow::next;
}

// The clock registers count the cluster's virtual clock, which starts at 0 with the launch.
template <class T, int kShift>
Flow read_clock(Warp& warp, const Instruction& instruction) {
  T value = static_cast<T>(warp.cta.cluster.read_clock() >> kShift);
  T* d = warp.write<T>(instruction.operand[0]);
  for_lanes(warp.active, [&](int lane) { d[lane] = value; });
  return Flow::next;
}

template <class T, int kShift>
Flow read_timer(Warp& warp, const Instruction& instruction) {
  Cluster& cluster = warp.cta.cluster;
  uint64_t nanoseconds = cluster.grid.started_ns + cluster.grid.device.nanoseconds(cluster.read_clock());
  T* d = warp.write<T>(instruction.operand[0]);
  for_lanes(warp.active, [&](int lane) { d[lane] = static_cast<T>(nanoseconds >> kShift); });
  return Flow::next;
}

/// Special registers that change while a warp runs.
bool bind_dynamic_special(Binder& binder) {
  const ptx::Operand& from = binder.operand(1);
  if (from.kind != ptx::Operand::Kind::special) return false;
  struct Row {
    std::string_view name;
    uint8_t bytes;
    Execute execute;
  };
  constexpr Row kRows[] = {
      {"%clock", 4, read_clock<uint32_t, 0>},          {"%clock_hi", 4, read_clock<uint32_t, 32>},
      {"%clock64", 8, read_clock<uint64_t, 0>},        {"%globaltimer", 8, read_timer<uint64_t, 0>},
      {"%globaltimer_lo", 4, read_timer<uint32_t, 0>}, {"%globaltimer_hi", 4, read_timer<uint32_t, 32>},
  };
  for (const Row& row : kRows)
    if (from.name == row.name) {
      binder.out.operand[0] = result(binder, 0, row.bytes);
      binder.out.execute = row.execute;
      return true;
    }
  return false;
}

std::vector<Slot> parts(Binder& binder, const ptx::Operand& vector, uint8_t whole, bool written) {
  size_t count = vector.children.size();
  if ((count != 2 && count != 4 && count != 8) || whole % count) binder.refuse("a vector of 2, 4 or 8 parts is wanted");
  uint8_t part = static_cast<uint8_t>(whole / count);
  if (part == 0) binder.refuse("there are more parts than bytes");
  uint8_t held = std::max<uint8_t>(part, 2);
  std::vector<Slot> slots = written ? binder.outputs(vector) : binder.inputs(vector, held);
  for (Slot& slot : slots) {
    if (!slot.present())
      slot = {.offset = scratch(binder).offset, .bytes = held};
    else if (slot.bytes != held)
      binder.refuse("the parts must have equal width and fill the whole");
  }
  return slots;
}

void bind_mov(Binder& binder) {
  std::string_view type = binder.take_next();
  if (binder.count() != 2) binder.refuse("two operands are wanted");
  Instruction& out = binder.out;
  if (type == "pred") {
    out.operand[0] = result(binder, 0, 0);
    out.operand[1] = source(binder, 1, 0);
    out.execute = move_predicate;
    return;
  }
  if (type.size() < 2) refuse_type(binder, type);
  uint8_t bytes = type.ends_with("128")  ? 16
                  : type.ends_with("64") ? 8
                  : type.ends_with("32") ? 4
                  : type.ends_with("16") ? 2
                                         : 0;
  if (bytes == 0) refuse_type(binder, type);
  if (binder.is_vector(0) || binder.is_vector(1)) {
    bool packs = binder.is_vector(1);
    if (packs && binder.is_vector(0)) binder.refuse("a vector on either side");
    std::vector<Slot> slots = parts(binder, binder.operand(packs ? 1 : 0), bytes, !packs);
    out.operand[packs ? 0 : 1] = packs ? result(binder, 0, bytes) : source(binder, 1, bytes);
    out.list_count = static_cast<uint32_t>(slots.size());
    out.list = binder.list(slots);
    out.execute = packs ? pack : unpack;
    return;
  }
  if (bind_dynamic_special(binder)) return;
  out.operand[0] = result(binder, 0, bytes);
  out.operand[1] = binder.input(1, bytes);
  uint8_t from = out.operand[1].bytes;
  if (from == bytes) {
    out.execute = bytes == 2   ? map<copy<uint16_t, uint16_t>>
                  : bytes == 4 ? map<copy<uint32_t, uint32_t>>
                  : bytes == 8 ? map<copy<uint64_t, uint64_t>>
                               : map<copy<Wide, Wide>>;
    return;
  }
  // Old code reads special registers at other widths than their own.
  if (binder.operand(1).kind == ptx::Operand::Kind::special) {
    if (from == 4 && bytes == 2) out.execute = map<copy<uint16_t, uint32_t>>;
    if (from == 4 && bytes == 8) out.execute = map<copy<uint64_t, uint32_t>>;
    if (from == 8 && bytes == 4) out.execute = map<copy<uint32_t, uint64_t>>;
  }
  if (!out.execute) binder.refuse("source and result have different widths");
}

// ---- addresses ------------------------------------------------------------------------------------------------------

uint64_t identity(uint64_t address) {
  return address;
}
uint64_t shared_to_generic(uint64_t address) {
  return kSharedWindow + (address & 0xFFFFFFFFu);
}
uint64_t generic_to_shared(uint64_t address) {
  return static_cast<uint32_t>(address - kSharedWindow);
}
uint64_t local_to_generic(uint64_t address) {
  return kLocalWindow + address;
}
uint64_t generic_to_local(uint64_t address) {
  return address - kLocalWindow;
}

/// A kernel's parameter. A program that keeps addresses of small memories in 32 bits has only half of the address here.
Flow param_to_generic(Warp& warp, const Instruction& instruction) {
  const Grid& grid = warp.cta.cluster.grid;
  const uint64_t* a = warp.read<uint64_t>(instruction.operand[1]);
  uint64_t* d = warp.write<uint64_t>(instruction.operand[0]);
  for_lanes(warp.active, [&](int lane) { d[lane] = grid.parameter_address(a[lane]); });
  return Flow::next;
}

std::string_view take_space(Binder& binder) {
  return binder.take_any(
      {"global", "shared", "shared::cta", "shared::cluster", "local", "const", "param", "param::entry"});
}

void bind_cvta(Binder& binder) {
  bool to = binder.take("to");
  std::string_view space = take_space(binder);
  std::string_view type = binder.take_next();
  if (type != "u64") refuse_type(binder, type);
  if (space.starts_with("shared"))
    to ? bind_map<generic_to_shared>(binder) : bind_map<shared_to_generic>(binder);
  else if (space == "local")
    to ? bind_map<generic_to_local>(binder) : bind_map<local_to_generic>(binder);
  else if (space.starts_with("param") && !to) {
    binder.out.operand[0] = result(binder, 0, 8);
    binder.out.operand[1] = source(binder, 1, 8);
    binder.out.execute = param_to_generic;
  } else if (!space.empty())
    bind_map<identity>(binder);
  else
    binder.refuse("a state space is wanted");
}

enum class Region : uint64_t { global, shared_cta, shared_cluster, local, constant, param };

Region region_of(Warp& warp, const Instruction& instruction, uint64_t address) {
  if (is_shared(address)) return Region::shared_cluster;
  if (is_local(address)) return Region::local;
  const Grid& grid = warp.cta.cluster.grid;
  if (address - reinterpret_cast<uint64_t>(grid.parameters()) < grid.kernel.parameter_bytes) return Region::param;
  // Pairs in the list: start and size of each .const variable.
  for (uint32_t i = 0; i + 1 < instruction.list_count; i += 2) {
    uint64_t start = warp.scalar(warp.listed(instruction.list, i), 0);
    if (address - start < warp.scalar(warp.listed(instruction.list, i + 1), 0)) return Region::constant;
  }
  return Region::global;
}

Flow is_space(Warp& warp, const Instruction& instruction) {
  Region wanted = static_cast<Region>(instruction.modifiers);
  const uint64_t* a = warp.read<uint64_t>(instruction.operand[1]);
  uint32_t bits = 0;
  for_lanes(warp.active, [&](int lane) {
    Region region = region_of(warp, instruction, a[lane]);
    bool yes = region == wanted;
    if (wanted == Region::shared_cta)
      yes = region == Region::shared_cluster &&
            shared_rank(static_cast<uint32_t>(a[lane] - kSharedWindow)) == warp.cta.rank;
    if (yes) bits |= 1u << lane;
  });
  warp.set_predicate(instruction.operand[0], bits);
  return Flow::next;
}

void bind_isspacep(Binder& binder) {
  std::string_view space = take_space(binder);
  Region region;
  if (space == "global")
    region = Region::global;
  else if (space == "shared" || space == "shared::cta")
    region = Region::shared_cta;
  else if (space == "shared::cluster")
    region = Region::shared_cluster;
  else if (space == "local")
    region = Region::local;
  else if (space == "const")
    region = Region::constant;
  else if (space.starts_with("param"))
    region = Region::param;
  else
    binder.refuse("a state space is wanted");
  Instruction& out = binder.out;
  out.operand[0] = result(binder, 0, 0);
  out.operand[1] = source(binder, 1, 8);
  out.modifiers = static_cast<uint64_t>(region);
  std::vector<Slot> ranges;
  const std::vector<ptx::Variable>& variables = binder.decoder().module().variables;
  for (uint32_t i = 0; i < variables.size(); ++i)
    if (variables[i].space == ptx::Space::constant) {
      ranges.push_back(binder.decoder().symbol_address({.in_function = false, .index = i}, 0, 8));
      ranges.push_back(binder.constant(variables[i].bytes, 8));
    }
  out.list_count = static_cast<uint32_t>(ranges.size());
  out.list = binder.list(ranges);
  out.execute = is_space;
}

uint32_t map_shared(uint32_t address, uint32_t rank) {
  return rank << 24 | shared_offset(address);
}
uint64_t map_shared_wide(uint64_t address, uint32_t rank) {
  return map_shared(static_cast<uint32_t>(address), rank);
}
uint64_t map_generic(uint64_t address, uint32_t rank) {
  if (!is_shared(address))
    throw Trap(FaultCode::invalid_address_space,
               fmt::format("mapa of generic address {:#x}, which is not in shared memory", address), "PTX ISA, mapa");
  return kSharedWindow + map_shared(static_cast<uint32_t>(address), rank);
}

void bind_mapa(Binder& binder) {
  bool shared = binder.take("shared::cluster");
  std::string_view type = binder.take_next();
  if (type == "u32" && shared)
    bind_map<map_shared>(binder);
  else if (type == "u64")
    shared ? bind_map<map_shared_wide>(binder) : bind_map<map_generic>(binder);
  else
    refuse_type(binder, type);
}

uint32_t rank_of_shared(uint32_t address) {
  return shared_rank(address);
}
uint32_t rank_of_wide(uint64_t address) {
  return shared_rank(static_cast<uint32_t>(address));
}
uint32_t rank_of_generic(uint64_t address) {
  if (!is_shared(address))
    throw Trap(FaultCode::invalid_address_space,
               fmt::format("getctarank of generic address {:#x}, which is not in shared memory", address),
               "PTX ISA, getctarank");
  return shared_rank(static_cast<uint32_t>(address));
}

void bind_getctarank(Binder& binder) {
  bool shared = binder.take("shared::cluster");
  std::string_view type = binder.take_next();
  if (type == "u32" && shared)
    bind_map<rank_of_shared>(binder);
  else if (type == "u64")
    shared ? bind_map<rank_of_wide>(binder) : bind_map<rank_of_generic>(binder);
  else
    refuse_type(binder, type);
}

// ---- prmt -----------------------------------------------------------------------------------------------------------

/// Byte `selector & 7` of b:a; bit 3 of the selector spreads its sign instead.
uint32_t pick_byte(uint64_t bytes, uint32_t selector) {
  uint32_t byte = static_cast<uint32_t>(bytes >> (8 * (selector & 7))) & 0xFF;
  return selector & 8 ? (byte & 0x80 ? 0xFF : 0) : byte;
}

uint32_t permute(uint32_t a, uint32_t b, uint32_t c) {
  uint64_t bytes = uint64_t{b} << 32 | a;
  uint32_t d = 0;
  for (int i = 0; i < 4; ++i) d |= pick_byte(bytes, c >> (4 * i) & 15) << (8 * i);
  return d;
}

/// Modes whose four byte numbers follow from the two low bits of c; table: PTX ISA, prmt.
template <int kMode>
uint32_t permute_by_mode(uint32_t a, uint32_t b, uint32_t c) {
  constexpr uint16_t kSelectors[6][4] = {
      {0x3210, 0x4321, 0x5432, 0x6543},  // f4e
      {0x5670, 0x6701, 0x7012, 0x0123},  // b4e
      {0x0000, 0x1111, 0x2222, 0x3333},  // rc8
      {0x3210, 0x3211, 0x3222, 0x3333},  // ecl
      {0x0000, 0x1110, 0x2210, 0x3210},  // ecr
      {0x1010, 0x3232, 0x1010, 0x3232},  // rc16
  };
  return permute(a, b, kSelectors[kMode][c & 3]);
}

void bind_prmt(Binder& binder) {
  binder.take("b32");
  std::string_view mode = binder.take_any({"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"});
  if (mode.empty())
    bind_map<permute>(binder);
  else if (mode == "f4e")
    bind_map<permute_by_mode<0>>(binder);
  else if (mode == "b4e")
    bind_map<permute_by_mode<1>>(binder);
  else if (mode == "rc8")
    bind_map<permute_by_mode<2>>(binder);
  else if (mode == "ecl")
    bind_map<permute_by_mode<3>>(binder);
  else if (mode == "ecr")
    bind_map<permute_by_mode<4>>(binder);
  else
    bind_map<permute_by_mode<5>>(binder);
}

// ---- hints ----------------------------------------------------------------------------------------------------------

/// A cache policy travels to instructions that ignore it. This one is the word that an H200 makes: 1, the priority
/// (`immediate`), and how many sixteenths of the accesses have it, less one.
Flow fractional_policy(Warp& warp, const Instruction& instruction) {
  uint64_t* d = warp.write<uint64_t>(instruction.operand[0]);
  const float* fraction = warp.read<float>(instruction.operand[1]);
  for_lanes(warp.active, [&](int lane) {
    const float sixteenths = std::clamp(std::ceil(fraction[lane] * 16), 1.0f, 16.0f);
    d[lane] = static_cast<uint64_t>(instruction.immediate) << 56 | static_cast<uint64_t>(sixteenths - 1) << 52;
  });
  return Flow::next;
}

/// Of address ranges, and of access properties: opaque.
Flow zero_policy(Warp& warp, const Instruction& instruction) {
  uint64_t* d = warp.write<uint64_t>(instruction.operand[0]);
  for_lanes(warp.active, [&](int lane) { d[lane] = 0; });
  return Flow::next;
}

void bind_createpolicy(Binder& binder) {
  binder.out.operand[0] = result(binder, 0, 8);
  binder.out.execute = zero_policy;
  if (binder.take("fractional")) {
    constexpr std::pair<std::string_view, int> kPrimary[] = {
        {"L2::evict_unchanged", 0}, {"L2::evict_first", 2}, {"L2::evict_last", 4}, {"L2::evict_normal", 6}};
    const std::string_view name = binder.take_next();
    const auto* primary =
        std::find_if(std::begin(kPrimary), std::end(kPrimary), [&](auto& p) { return p.first == name; });
    if (primary == std::end(kPrimary)) binder.refuse("a primary priority is wanted");
    // The rest of the accesses: unchanged, or evict_first.
    const std::string_view secondary = binder.take_any({"L2::evict_first", "L2::evict_unchanged"});
    binder.out.immediate = 0x10 | primary->second | (secondary == "L2::evict_first");
    binder.out.operand[1] =
        binder.count() > 1 ? source(binder, 1, 4) : binder.constant(std::bit_cast<uint32_t>(1.0f), 4);
    binder.out.execute = fractional_policy;
  }
  while (!binder.next().empty()) binder.take_next();
}

Flow nothing(Warp&, const Instruction&) {
  return Flow::next;
}

/// Launches follow each other here, so the grids before this one are complete.
void bind_griddepcontrol(Binder& binder) {
  if (!binder.take("wait") && !binder.take("launch_dependents")) binder.refuse("wait or launch_dependents is wanted");
  binder.out.execute = nothing;
}

constexpr Entry kEntries[] = {
    {"mov", bind_mov},
    {"cvta", bind_cvta},
    {"isspacep", bind_isspacep},
    {"prmt", bind_prmt},
    {"mapa", bind_mapa},
    {"getctarank", bind_getctarank},
    {"createpolicy", bind_createpolicy},
    {"griddepcontrol", bind_griddepcontrol},
};

}  // namespace

std::span<const Entry> move_entries() {
  return kEntries;
}

}  // namespace emu::isa
