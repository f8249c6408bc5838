// Boxes: what a copy will touch, and everything the unit refuses.

#include <fmt/format.h>

#include <algorithm>

#include "emulator/machine/trap.h"
#include "emulator/units/tma.h"
#include "emulator/units/tma_nest.h"

namespace emu::tma {
namespace {

constexpr auto kSource = "PTX ISA, cp.async.bulk.tensor";

std::string_view name_of(Direction direction) {
  switch (direction) {
    case Direction::load:
      return "TMA load";
    case Direction::store:
      return "TMA store";
    case Direction::reduce:
      return "TMA reduction";
  }
  return "TMA copy";
}

template <class Array>
std::string list(const Array& values, uint32_t from, uint32_t to) {
  std::string text;
  for (uint32_t i = from; i < to; ++i) text += (i > from ? ", " : "") + std::to_string(values[i]);
  return text;
}

}  // namespace

std::string Box::describe() const {
  return fmt::format("box at ({}) of the tensor map of {} with address {:#x}, dimensions ({}), strides ({}) bytes",
                     list(coordinates_, 0, map_.rank), emu::name_of(map_.type), map_.address,
                     list(map_.dims, 0, map_.rank), list(map_.strides_bytes, 1, map_.rank));
}

Box::Box(const TensorMap& map, std::span<const int32_t> coordinates, Direction direction)
    : map_(map), direction_(direction) {
  const auto refuse = [&](const std::string& why) {
    throw Trap(FaultCode::illegal_instruction, fmt::format("{}: {}", name_of(direction), why), kSource);
  };
  if (coordinates.size() != map.rank) {
    refuse(
        fmt::format("{} coordinates for a tensor map of {} dimensions; the instruction's .{}d must be the map's rank",
                    coordinates.size(), map.rank, coordinates.size()));
  }
  if (map.interleave != TensorMapInterleave::none) {
    throw Unimplemented(fmt::format("{}: interleave {} is not executed; only interleave NONE is", name_of(direction),
                                    emu::name_of(map.interleave)));
  }
  if (map.type == TensorMapType::u4_align16 || map.type == TensorMapType::u6_align16) {
    throw Unimplemented(
        fmt::format("{}: tensor maps of {} are not executed", name_of(direction), emu::name_of(map.type)));
  }
  if (direction == Direction::reduce && map.type == TensorMapType::u4_align8) {
    refuse("reductions have no 4-bit type");
  }
  if (direction != Direction::load && map.swizzle == TensorMapSwizzle::b128_atom32_flip8) {
    refuse("swizzle 128B_ATOM_32B_FLIP_8B is for loads only; use 128B_ATOM_32B");
  }
  const uint32_t bits = element_bits(map.type);
  if (int64_t{coordinates[0]} * bits % 128 != 0) {
    refuse(fmt::format("innermost coordinate {}: times the element's {} bytes it must be a multiple of 16 bytes",
                       coordinates[0], bits / 8.0));
  }
  std::copy(coordinates.begin(), coordinates.end(), coordinates_.begin());
  for (uint32_t d = 0; d < map.rank; ++d) {
    if (direction != Direction::load && coordinates[d] < 0) {
      refuse(fmt::format("coordinate {} of dimension {} is negative; only loads may begin before the tensor",
                         coordinates[d], d));
    }
    const int64_t begin = coordinates[d], end = static_cast<int64_t>(map.dims[d]);
    const int64_t step = map.element_strides[d];
    const int64_t extent = (map.box[d] + step - 1) / step;
    // Index i is inside when 0 <= begin + i * step < end.
    int64_t first = begin < 0 ? std::min(extent, (-begin + step - 1) / step) : 0;
    int64_t last = begin < end ? std::min(extent, (end - begin + step - 1) / step) : 0;
    last = std::max(first, last);
    // Dimension 0 is counted in bytes: no element is cut, since a map of 4-bit values has an even number of them.
    const uint32_t unit = d == 0 ? bits : 8;
    extent_[d] = static_cast<uint32_t>(extent * unit / 8);
    first_[d] = static_cast<uint32_t>(first * unit / 8);
    last_[d] = static_cast<uint32_t>(last * unit / 8);
  }
  for (uint32_t d = map.rank; d < 5; ++d) last_[d] = 1;
  row_bytes_ = extent_[0];
  pitch_ = std::max(row_bytes_, swizzle_span_bytes(map.swizzle));
  for (uint32_t d = 1; d < 5; ++d) rows_ *= extent_[d];
}

uint64_t Box::global_bytes() const {
  uint64_t bytes = 1;
  for (uint32_t d = 0; d < 5; ++d) bytes *= last_[d] - first_[d];
  return bytes;
}

void Box::check_shared(uint32_t address, uint32_t window_bytes) const {
  if (address % 128 != 0) {
    throw Trap(
        FaultCode::misaligned_address,
        fmt::format("{}: shared address {:#x} must be a multiple of 128 bytes; it is {} past one. Align the buffer "
                    "(alignas(128), with swizzle {})",
                    name_of(direction_), address, address % 128, "256, 512 or 1024 for 32B, 64B, 128B"),
        kSource);
  }
  if (footprint_bytes() > window_bytes || address > window_bytes - footprint_bytes()) {
    throw Trap(
        FaultCode::illegal_address,
        fmt::format(
            "{}: the box takes {} bytes of shared memory ({} rows, {} bytes apart) from {:#x}, which ends {} bytes "
            "past the CTA's window of {}",
            name_of(direction_), footprint_bytes(), rows_, pitch_, address, address + footprint_bytes() - window_bytes,
            window_bytes),
        kSource);
  }
}

void Box::visit_global(const std::function<void(uint64_t, uint64_t)>& visit) const {
  if (global_bytes() == 0) return;
  uint64_t begin = 0, bytes = 0;
  const auto index = [&](uint32_t d, uint32_t i) {
    return static_cast<uint64_t>(coordinates_[d] + int64_t{i} * map_.element_strides[d]) * map_.strides_bytes[d];
  };
  const uint64_t start =
      map_.address + static_cast<uint64_t>(int64_t{coordinates_[0]} * element_bits(map_.type) / 8 + first_[0]);
  for (uint32_t i4 = first_[4]; i4 < last_[4]; ++i4) {
    for (uint32_t i3 = first_[3]; i3 < last_[3]; ++i3) {
      for (uint32_t i2 = first_[2]; i2 < last_[2]; ++i2) {
        for (uint32_t i1 = first_[1]; i1 < last_[1]; ++i1) {
          const uint64_t row = start + index(1, i1) + index(2, i2) + index(3, i3) + index(4, i4);
          if (bytes != 0 && row == begin + bytes) {
            bytes += last_[0] - first_[0];
            continue;
          }
          if (bytes != 0) visit(begin, bytes);
          begin = row;
          bytes = last_[0] - first_[0];
        }
      }
    }
  }
  visit(begin, bytes);
}

void Box::visit_shared(uint32_t address, const std::function<void(uint32_t, uint32_t)>& visit) const {
  // The pattern permutes bytes within a span: rows that fill theirs leave nothing out.
  if (row_bytes_ == pitch_) {
    visit(address, static_cast<uint32_t>(footprint_bytes()));
    return;
  }
  constexpr uint32_t kUnit = 16;  // the narrowest that moves as one, but for 8-byte halves that change places within it
  uint32_t begin = 0, bytes = 0;
  for (uint64_t row = 0; row < rows_; ++row) {
    // In rising order of where the units end up.
    const auto start = static_cast<uint32_t>(address + row * pitch_);
    for (uint32_t place = 0; place < pitch_; place += kUnit) {
      const uint32_t line = start + place;
      const uint32_t unit = swizzled(map_.swizzle, line) & ~(kUnit - 1);  // the pattern is its own inverse
      if (unit - start >= row_bytes_) continue;
      if (bytes != 0 && line == begin + bytes) {
        bytes += kUnit;
        continue;
      }
      if (bytes != 0) visit(begin, bytes);
      begin = line;
      bytes = kUnit;
    }
  }
  if (bytes != 0) visit(begin, bytes);
}

Nest Nest::of(const Box& box, uint32_t pitch) {
  Nest nest;
  if (box.global_bytes() == 0) return nest;
  const TensorMap& map = box.map();
  const auto& first = box.first();
  const auto& last = box.last();
  nest.width = last[0] - first[0];
  nest.local = first[0];
  // Dimensions of 2^32 and strides of 2^40 can leave 64 bits.
  unsigned __int128 begin = map.address;
  begin += static_cast<uint64_t>(int64_t{box.coordinates()[0]} * element_bits(map.type) / 8 + first[0]);
  unsigned __int128 extent = nest.width;
  uint64_t local_step = pitch;
  for (uint32_t d = 1; d < map.rank; ++d) {
    const auto position = static_cast<uint64_t>(box.coordinates()[d] + int64_t{first[d]} * map.element_strides[d]);
    begin += static_cast<unsigned __int128>(position) * map.strides_bytes[d];
    const uint32_t count = last[d] - first[d];
    const uint64_t global_step = map.strides_bytes[d] * map.element_strides[d];
    extent += static_cast<unsigned __int128>(count - 1) * global_step;
    nest.loops[d - 1] = {count, global_step, local_step};
    nest.local += first[d] * local_step;
    local_step *= box.extent()[d];
  }
  if (begin + extent > UINT64_MAX) {
    throw Trap(FaultCode::illegal_address, box.describe() + ": it reaches past the end of the address space", kSource);
  }
  nest.global = static_cast<uint64_t>(begin);
  nest.extent = static_cast<uint64_t>(extent);
  // Loops of one turn go outside, the others by global stride.
  std::stable_sort(std::begin(nest.loops), std::end(nest.loops), [](const Loop& a, const Loop& b) {
    return (a.count > 1) != (b.count > 1) ? a.count > 1 : a.count > 1 && a.global_step < b.global_step;
  });
  return nest;
}

std::byte* Nest::row(const Box& box, const GlobalMemory& memory, uint64_t global_offset, Access access) const {
  try {
    return memory.door(global + global_offset, width, access);
  } catch (const Trap& trap) {
    throw Trap(trap.code, fmt::format("{} of a {}: {}", name_of(box.direction()), box.describe(), trap.what()),
               kSource);
  }
}

}  // namespace emu::tma
