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
    throw Trap(FaultKind::tensor_map, fmt::format("{}: {}", name_of(direction), why), kSource);
  };
  if (coordinates.size() != map.rank) {
    refuse(
        fmt::format("{} coordinates for a tensor map of {} dimensions; the instruction's .{}d must be the map's rank",
                    coordinates.size(), map.rank, coordinates.size()));
  }
  if (map.type == TensorMapType::u4_align16) chunk_ = 8;
  if (map.type == TensorMapType::u6_align16) chunk_ = 12;
  if (direction == Direction::reduce && map.type >= TensorMapType::u4_align8) {
    refuse("reductions have no types of 4 and 6 bits");
  }
  if (direction == Direction::store && map.type == TensorMapType::u4_align16) {
    refuse("16U4_ALIGN16B is for loads only (CUDA Driver API, cuTensorMapEncodeTiled); use 16U4_ALIGN8B");
  }
  if (direction != Direction::load && map.swizzle == TensorMapSwizzle::b128_atom32_flip8) {
    refuse("swizzle 128B_ATOM_32B_FLIP_8B is for loads only; use 128B_ATOM_32B");
  }
  std::copy(coordinates.begin(), coordinates.end(), coordinates_.begin());
  for (uint32_t d = 0; d < map.rank && direction != Direction::load; ++d) {
    if (coordinates[d] < 0) {
      refuse(fmt::format("coordinate {} of dimension {} is negative; only loads may begin before the tensor",
                         coordinates[d], d));
    }
  }
  const auto axis_of = [&](uint32_t d, uint32_t box, uint64_t stride_bytes) {
    const int64_t begin = coordinates[d], end = static_cast<int64_t>(map.dims[d]), step = map.element_strides[d];
    const int64_t extent = (box + step - 1) / step;
    // Index i is inside when 0 <= begin + i * step < end.
    const int64_t first = begin < 0 ? std::min(extent, (-begin + step - 1) / step) : 0;
    const int64_t last = begin < end ? std::min(extent, (end - begin + step - 1) / step) : 0;
    return Axis{static_cast<uint32_t>(extent),
                static_cast<uint32_t>(first),
                static_cast<uint32_t>(std::max(first, last)),
                begin,
                static_cast<uint32_t>(step),
                stride_bytes};
  };
  origin_ = map.address;
  const uint32_t bits = element_bits(map.type);
  if (map.interleave == TensorMapInterleave::none) {
    const uint32_t multiple = chunk_ == 16 ? 16 : 32;
    if (int64_t{coordinates[0]} * bits % (multiple * 8) != 0) {
      refuse(fmt::format("innermost coordinate {}: times the element's {} bytes it must be a multiple of {} bytes",
                         coordinates[0], bits / 8.0, multiple));
    }
    // Counted in bytes, no element is cut: a map of 4-bit values has an even number of them.
    Axis row = axis_of(0, map.box[0], 0);
    row.begin = row.begin * bits / 8;
    row.extent = row.extent * bits / 8;
    row.first = row.first * bits / 8;
    row.last = row.last * bits / 8;
    row.stride_bytes = 1;
    axes_[0] = row;
    for (uint32_t d = 1; d < map.rank; ++d) axes_[d] = axis_of(d, map.box[d], map.strides_bytes[d]);
    pitch_ = std::max(shared_row_bytes(), swizzle_span_bytes(map.swizzle));
  } else {
    const uint32_t slice = map.interleave == TensorMapInterleave::bytes16 ? 16 : 32;
    axes_[0] = {.extent = slice, .last = slice, .stride_bytes = 1};
    // NC/8HWC8: dimensions W, (H, (D,)) then the slices C/8, then N. A box holds one slice of channels.
    const uint32_t channel = map.rank - 2;
    axes_[1] = axis_of(0, map.box[0], slice);
    for (uint32_t d = 1, axis = 2; d < map.rank; ++d) {
      if (d != channel) axes_[axis++] = axis_of(d, map.box[d], map.strides_bytes[d]);
    }
    const Axis slices = axis_of(channel, 1, map.strides_bytes[channel]);
    if (slices.first == slices.last) axes_[0].last = 0;  // the whole box lies outside
    origin_ += static_cast<uint64_t>(slices.begin) * slices.stride_bytes;
    pitch_ = slice;
  }
  inner_last_ = axes_[0].last;
  if (direction != Direction::load && axes_[0].last > 0) {
    // Read off an H200: stores and reductions end at a multiple of 16 bytes, not at the element.
    axes_[0].last = std::min(axes_[0].extent, (axes_[0].last + 15) / 16 * 16);
  }
  for (uint32_t d = 1; d < 5; ++d) rows_ *= axes_[d].extent;
}

uint64_t Box::global_bytes() const {
  uint64_t bytes = 1;
  for (const Axis& axis : axes_) bytes *= axis.last - axis.first;
  return bytes;
}

uint64_t Box::footprint_bytes() const {
  const uint64_t bytes = rows_ * pitch_;
  // Slices may be scattered over the last span.
  const uint64_t span = std::max(swizzle_span_bytes(map_.swizzle), 1u);
  return (bytes + span - 1) / span * span;
}

void Box::check_shared(uint32_t address, const Window& window) const {
  if (address % 128 != 0) {
    throw Trap(
        FaultCode::misaligned_address,
        fmt::format("{}: shared address {:#x} must be a multiple of 128 bytes; it is {} past one. Align the buffer "
                    "(alignas(128), with swizzle {})",
                    name_of(direction_), address, address % 128, "256, 512 or 1024 for 32B, 64B, 128B"),
        kSource);
  }
  check_first(address, window, name_of(direction_));
  if (footprint_bytes() > window.size || address > window.size - footprint_bytes()) {
    throw Trap(
        FaultCode::illegal_address,
        fmt::format(
            "{}: the box takes {} bytes of shared memory ({} rows, {} bytes apart) from {:#x}, which ends {} bytes "
            "past the CTA's window of {}",
            name_of(direction_), footprint_bytes(), rows_, pitch_, address, address + footprint_bytes() - window.size,
            window.size),
        kSource);
  }
}

void Box::visit_global(const std::function<void(uint64_t, uint64_t)>& visit) const {
  if (global_bytes() == 0) return;
  const auto offset = [&](uint32_t d, uint32_t i) {
    return static_cast<uint64_t>(axes_[d].begin + int64_t{i} * axes_[d].step) * axes_[d].stride_bytes;
  };
  const uint64_t width = axes_[0].last - axes_[0].first;
  uint64_t begin = 0, bytes = 0;
  for (uint32_t i4 = axes_[4].first; i4 < axes_[4].last; ++i4) {
    for (uint32_t i3 = axes_[3].first; i3 < axes_[3].last; ++i3) {
      for (uint32_t i2 = axes_[2].first; i2 < axes_[2].last; ++i2) {
        for (uint32_t i1 = axes_[1].first; i1 < axes_[1].last; ++i1) {
          const uint64_t row =
              origin_ + offset(0, axes_[0].first) + offset(1, i1) + offset(2, i2) + offset(3, i3) + offset(4, i4);
          if (bytes != 0 && row == begin + bytes) {
            bytes += width;
            continue;
          }
          if (bytes != 0) visit(begin, bytes);
          begin = row;
          bytes = width;
        }
      }
    }
  }
  visit(begin, bytes);
}

void Box::visit_shared(uint32_t address, const std::function<void(uint32_t, uint32_t)>& visit) const {
  constexpr uint32_t kUnit = 16;  // the narrowest that moves as one, but for 8-byte halves that change places within it
  const uint32_t end = address + static_cast<uint32_t>(footprint_bytes());
  uint32_t begin = address, bytes = 0;
  for (uint32_t place = address; place < end; place += kUnit) {
    // Which unit of the box ends up here? A pattern is its own inverse.
    const uint32_t unit = (swizzled(map_.swizzle, place) & ~(kUnit - 1)) - address;
    if (unit >= rows_ * pitch_ || unit % pitch_ >= shared_row_bytes()) continue;
    if (bytes != 0 && place != begin + bytes) {
      visit(begin, bytes);
      bytes = 0;
    }
    if (bytes == 0) begin = place;
    bytes += kUnit;
  }
  visit(begin, bytes);
}

Nest Nest::of(const Box& box, uint32_t pitch) {
  Nest nest;
  if (box.global_bytes() == 0) return nest;
  const auto& axes = box.axes();
  nest.width = axes[0].last - axes[0].first;
  nest.inner_width = box.inner_last() - axes[0].first;
  nest.local = axes[0].first;
  // Addresses wrap at 64 bits, and maps of tensors cut in ragged parts are built on it: Triton's have two dimensions
  // more than the tensor, whose strides bring the address round to where it was. An extent of 64 bits is no one's.
  uint64_t begin = box.origin();
  unsigned __int128 extent = nest.width;
  uint64_t local_step = pitch;
  for (uint32_t d = 0; d < axes.size(); ++d) {
    const Box::Axis& axis = axes[d];
    const auto position = static_cast<uint64_t>(axis.begin + int64_t{axis.first} * axis.step);
    begin += position * axis.stride_bytes;
    if (d == 0) continue;
    const uint32_t count = axis.last - axis.first;
    const uint64_t global_step = axis.stride_bytes * axis.step;
    extent += static_cast<unsigned __int128>(count - 1) * global_step;
    nest.loops[d - 1] = {count, global_step, local_step};
    nest.local += axis.first * local_step;
    local_step *= axis.extent;
  }
  nest.global = begin;
  nest.extent = static_cast<uint64_t>(std::min<unsigned __int128>(extent, UINT64_MAX));
  // Loops of one turn go outside, the others by global stride.
  std::stable_sort(std::begin(nest.loops), std::end(nest.loops), [](const Loop& a, const Loop& b) {
    return (a.count > 1) != (b.count > 1) ? a.count > 1 : a.count > 1 && a.global_step < b.global_step;
  });
  return nest;
}

std::span<std::byte> Nest::row(const Box& box, const GlobalMemory& memory, uint64_t global_offset,
                               Access access) const {
  const uint64_t address = global + global_offset;
  uint32_t bytes = width;
  if (width != inner_width) {
    // What a store writes past the tensor's end is nobody's loss where nobody owns it.
    const auto* allocation = memory.find(address);
    if (allocation != nullptr && allocation->bytes - (address - allocation->address) < width) bytes = inner_width;
  }
  try {
    return {memory.door(address, bytes, access), bytes};
  } catch (const Trap& trap) {
    throw Trap(trap.kind, trap.code,
               fmt::format("{} of a {}: {}", name_of(box.direction()), box.describe(), trap.what()), kSource);
  }
}

}  // namespace emu::tma
