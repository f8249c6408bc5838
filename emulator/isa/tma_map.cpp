// tensormap.replace and tensormap.cp_fenceproxy: threads that change a tensor map. PTX ISA, "tensormap.replace" (its
// table of values: not those of the driver's enums), "tensormap.cp_fenceproxy".
//
// What a value must be by itself is checked here, how the fields of a map go together when it is used.

#include <array>
#include <cstring>

#include <fmt/format.h>

#include "emulator/isa/families.h"
#include "emulator/isa/memory_access.h"
#include "emulator/machine/cluster.h"
#include "emulator/machine/trap.h"
#include "emulator/units/tensor_map.h"

namespace emu::isa {
namespace {

constexpr const char* kSource = "PTX ISA, tensormap.replace";

enum class Field : uint64_t {
  global_address,
  rank,
  box_dim,
  global_dim,
  global_stride,
  element_stride,
  elemtype,
  interleave_layout,
  swizzle_mode,
  swizzle_atomicity,
  fill_mode
};
constexpr std::array<std::string_view, 11> kNames = {
    "global_address", "rank",     "box_dim",           "global_dim",   "global_stride",
    "element_stride", "elemtype", "interleave_layout", "swizzle_mode", "swizzle_atomicity",
    "fill_mode"};

void need(bool fine, Field field, uint64_t value, const char* rule) {
  if (!fine)
    throw Trap(FaultKind::tensor_map,
               fmt::format("tensormap.replace of .{} by {:#x}: it must be {}", kNames[static_cast<size_t>(field)],
                           value, rule),
               kSource);
}

/// .swizzle_mode and .swizzle_atomicity are one field of the driver's.
void set_swizzle(TensorMap& map, uint64_t mode, uint64_t atomicity) {
  using S = TensorMapSwizzle;
  constexpr S kWide[] = {S::b128, S::b128_atom32, S::b128_atom32_flip8, S::b128_atom64};
  constexpr S kNarrow[] = {S::none, S::b32, S::b64};
  map.swizzle = mode == 3 ? kWide[atomicity] : kNarrow[mode];
}

uint64_t mode_of(const TensorMap& map) {
  return std::min<uint64_t>(static_cast<uint64_t>(map.swizzle), 3);
}
uint64_t atomicity_of(const TensorMap& map) {
  return map.swizzle > TensorMapSwizzle::b128 ? static_cast<uint64_t>(map.swizzle) - 3 : 0;
}

void set(TensorMap& map, Field field, size_t ordinal, uint64_t value) {
  using T = TensorMapType;
  constexpr T kTypes[] = {T::uint8,        T::uint16,    T::uint32,      T::int32,     T::uint64,   T::int64,
                          T::float16,      T::float32,   T::float32_ftz, T::float64,   T::bfloat16, T::tfloat32,
                          T::tfloat32_ftz, T::u4_align8, T::u4_align16,  T::u6_align16};
  switch (field) {
    case Field::global_address:
      need(value % 16 == 0, field, value, "a multiple of 16");
      map.address = value;
      return;
    case Field::rank:
      need(value < 5, field, value, "the rank less one, 0 to 4");
      map.rank = static_cast<uint32_t>(value) + 1;
      return;
    case Field::box_dim:
      need(value >= 1 && value <= 256, field, value, "1 to 256");
      map.box[ordinal] = static_cast<uint32_t>(value);
      return;
    case Field::global_dim:
      need(value >= 1, field, value, "at least 1");
      map.dims[ordinal] = value;
      return;
    case Field::global_stride:
      need(value % 16 == 0 && value >> 40 == 0, field, value, "a multiple of 16 below 2^40");
      map.strides_bytes[ordinal + 1] = value;
      return;
    case Field::element_stride:
      need(value >= 1 && value <= 8, field, value, "1 to 8");
      map.element_strides[ordinal] = static_cast<uint32_t>(value);
      return;
    case Field::elemtype:
      need(value < std::size(kTypes), field, value, "a row of the ISA's table, 0 to 15");
      map.type = kTypes[value];
      return;
    case Field::interleave_layout:
      need(value < 3, field, value, "0 to 2");
      map.interleave = static_cast<TensorMapInterleave>(value);
      return;
    case Field::swizzle_mode:
      need(value < 4, field, value, "0 to 3 (4, a swizzle of 96 bytes, is not executed)");
      set_swizzle(map, value, value == 3 ? atomicity_of(map) : 0);
      return;
    case Field::swizzle_atomicity:
      need(value < 4, field, value, "0 to 3");
      need(value == 0 || mode_of(map) == 3, field, value, "0 unless the swizzle mode is 128 bytes: set that first");
      set_swizzle(map, mode_of(map), value);
      return;
    case Field::fill_mode:
      need(value < 2, field, value, "0 or 1");
      map.fill = static_cast<TensorMapFill>(value);
      return;
  }
}

/// Address: the map. Operand 0: the new value; immediate: the ordinal. Modifiers: field, and above it the state space.
Flow replace(Warp& warp, const Instruction& instruction) {
  Field field = static_cast<Field>(instruction.modifiers & 0xFF);
  std::byte* at[kLanes];
  resolve(warp, static_cast<MemorySpace>(instruction.modifiers >> 8), instruction.address, kTensorMapBytes, 64,
          Access::write, at);
  uint64_t address[kLanes];
  lane_addresses(warp, instruction.address, address);
  for_lanes(warp.active, [&](int lane) {
    // Compilers make maps without the host: they clear the 128 bytes and set every field that matters.
    TensorMap map = is_blank_tensor_map(at[lane]) ? TensorMap{} : decode_tensor_map(at[lane], address[lane]);
    set(map, field, static_cast<size_t>(instruction.immediate), warp.scalar(instruction.operand[0], lane));
    map.replaced = true;
    TensorMapObject object = encode_tensor_map(map);
    std::memcpy(at[lane], object.data(), object.size());
  });
  return Flow::next;
}

/// Operand 0: base of the source, immediate: its offset. The whole warp copies one map.
Flow copy(Warp& warp, const Instruction& instruction) {
  std::byte *to[kLanes], *from[kLanes];
  resolve(warp, MemorySpace::global, instruction.address, kTensorMapBytes, 64, Access::write, to);
  resolve(warp, MemorySpace::shared, {.base = instruction.operand[0], .offset = instruction.immediate}, kTensorMapBytes,
          64, Access::read, from);
  for_lanes(warp.active, [&](int lane) { std::memcpy(to[lane], from[lane], kTensorMapBytes); });
  return Flow::next;
}

void bind_replace(Binder& binder) {
  Instruction& out = binder.out;
  if (!binder.take("tile")) binder.refuse(".tile is wanted");
  size_t field = 0;
  while (field < kNames.size() && !binder.take(kNames[field])) ++field;
  if (field == kNames.size()) binder.refuse("the field is missing");
  MemorySpace space = binder.take("global")        ? MemorySpace::global
                      : binder.take("shared::cta") ? MemorySpace::shared
                                                   : MemorySpace::generic;
  if (!binder.take("b1024")) binder.refuse(".b1024 is missing");
  auto which = static_cast<Field>(field);
  bool wide = which == Field::global_address || which == Field::global_stride;
  if (!binder.take(wide ? "b64" : "b32")) binder.refuse("the type must be .b64 for addresses and strides, else .b32");
  bool has_ordinal = which >= Field::box_dim && which <= Field::element_stride;
  out.address = bind_address(binder, 0, space);
  if (has_ordinal) {
    out.immediate = binder.immediate(1);
    int64_t most = which == Field::global_stride ? 3 : 4;
    if (out.immediate < 0 || out.immediate > most) binder.refuse("there is no dimension of this ordinal");
  }
  out.operand[0] = binder.input(has_ordinal ? 2 : 1, wide ? 8 : 4);
  out.modifiers = field | static_cast<uint64_t>(space) << 8;
  out.execute = replace;
}

void bind_tensormap(Binder& binder) {
  if (binder.take("replace")) return bind_replace(binder);
  if (!binder.take("cp_fenceproxy")) binder.refuse(".replace or .cp_fenceproxy is wanted");
  for (std::string_view modifier : {"global", "shared::cta", "tensormap::generic", "release", "sync", "aligned"})
    binder.take(modifier);
  std::string_view scope = binder.take_any({"cta", "cluster", "gpu", "sys"});
  Instruction& out = binder.out;
  out.visible = scope == "gpu" || scope == "sys";
  if (binder.immediate(2) != 128) binder.refuse("the size must be 128");
  out.address = bind_address(binder, 0, MemorySpace::global);
  AddressOperand source = bind_address(binder, 1, MemorySpace::shared);
  out.operand[0] = source.base;
  out.immediate = source.offset;
  out.execute = copy;
}

constexpr Entry kEntries[] = {{"tensormap", bind_tensormap}};

}  // namespace

std::span<const Entry> tensormap_entries() {
  return kEntries;
}

}  // namespace emu::isa
