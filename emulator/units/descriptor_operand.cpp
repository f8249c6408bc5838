#include "emulator/units/descriptor_operand.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "emulator/machine/trap.h"

namespace emu {
namespace {

constexpr const char* kSource = "PTX ISA, tcgen05 canonical layouts";
constexpr uint32_t kChunk = 16;

/// The swizzle's exclusive-or on an absolute shared address. A base offset moves the pattern by so many 128-byte rows.
uint64_t swizzled(const MatrixDescriptor& descriptor, uint64_t address) {
  const uint64_t phase = ((address >> 7) - descriptor.base_offset) & pattern_mask(descriptor.swizzle);
  return address ^ phase << (descriptor.swizzle == OperandSwizzle::b128_atom32 ? 5 : 4);
}

/// Bytes that a swizzle mode keeps together along the dense dimension.
uint32_t span_bytes(OperandSwizzle swizzle) {
  switch (swizzle) {
    case OperandSwizzle::none:
      return 16;
    case OperandSwizzle::b32:
      return 32;
    case OperandSwizzle::b64:
      return 64;
    default:
      return 128;
  }
}

/// Where chunks lie before the swizzle. Row i counts matrix rows when K-major, k when MN-major; chunk j counts 16 bytes
/// along the other, dense dimension.
struct Walk {
  uint32_t rows = 0, chunks = 0;
  uint32_t row_bytes = 0, group_rows = 8;  ///< groups of rows packed row_bytes apart ...
  uint64_t group_bytes = 0;                ///< ... from one group to the next
  uint32_t chunks_per_span = 1;            ///< chunks side by side ...
  uint64_t span_bytes = 0;                 ///< ... from one such span to the next

  uint64_t row_offset(uint32_t i) const { return i / group_rows * group_bytes + i % group_rows * row_bytes; }
  uint64_t chunk_offset(uint32_t j) const { return j / chunks_per_span * span_bytes + j % chunks_per_span * kChunk; }
};

Walk walk_of(const MatrixDescriptor& descriptor, const OperandShape& shape) {
  Walk walk;
  walk.row_bytes = span_bytes(descriptor.swizzle);
  walk.group_rows = descriptor.swizzle == OperandSwizzle::b128_atom32 ? 4 : 8;
  walk.chunks_per_span = walk.row_bytes / kChunk;
  const bool plain = descriptor.swizzle == OperandSwizzle::none;
  if (shape.major == Major::k) {
    walk.rows = shape.rows;
    walk.chunks = kOperandBytesPerRow / kChunk;
    walk.group_bytes = descriptor.stride_bytes;
    walk.span_bytes = descriptor.leading_bytes;  // without swizzle only: 32 bytes of K fit any other span
  } else {
    walk.rows = elements_per_step(shape.type);
    walk.chunks = shape.rows * element_bytes(shape.type) / kChunk;
    walk.group_bytes = plain ? descriptor.leading_bytes : descriptor.stride_bytes;
    walk.span_bytes = plain ? descriptor.stride_bytes : descriptor.leading_bytes;
  }
  return walk;
}

void gather_k_major(const std::byte* base, const MatrixDescriptor& descriptor, const Walk& walk, std::byte* out) {
  const uint64_t second = walk.chunk_offset(1);
  for (uint32_t row = 0; row < walk.rows; row += 8) {
    uint64_t address = descriptor.start + row / 8 * walk.group_bytes;
    for (uint32_t i = 0; i < 8; ++i, address += walk.row_bytes, out += kOperandBytesPerRow) {
      std::memcpy(out, base + swizzled(descriptor, address), kChunk);
      std::memcpy(out + kChunk, base + swizzled(descriptor, address + second), kChunk);
    }
  }
}

template <class Element>
void gather_mn_major(const std::byte* base, const MatrixDescriptor& descriptor, const Walk& walk, std::byte* out) {
  constexpr uint32_t per_chunk = kChunk / sizeof(Element), depth = kOperandBytesPerRow / sizeof(Element);
  for (uint32_t j = 0; j < walk.chunks; ++j) {
    Element square[depth][per_chunk];
    const uint64_t column = descriptor.start + walk.chunk_offset(j);
    for (uint32_t k = 0; k < depth; ++k) {
      std::memcpy(square[k], base + swizzled(descriptor, column + walk.row_offset(k)), kChunk);
    }
    for (uint32_t i = 0; i < per_chunk; ++i) {
      Element row[depth];
      for (uint32_t k = 0; k < depth; ++k) row[k] = square[k][i];
      std::memcpy(out, row, kOperandBytesPerRow);
      out += kOperandBytesPerRow;
    }
  }
}

/// Every byte lies in [start & ~127, this]: the swizzle permutes inside 128 aligned bytes.
uint64_t upper_bound(const MatrixDescriptor& descriptor, const Walk& walk) {
  const uint64_t row = (walk.rows - 1) / walk.group_rows * walk.group_bytes + (walk.group_rows - 1) * walk.row_bytes;
  const uint64_t chunk = (walk.chunks - 1) / walk.chunks_per_span * walk.span_bytes + walk.chunks_per_span * kChunk - 1;
  return (descriptor.start + row + chunk) | 127;
}

void check_bounds(const SharedWindow& shared, const MatrixDescriptor& descriptor, const OperandShape& shape,
                  const Walk& walk, std::string_view operand) {
  if ((descriptor.start & ~127u) >= shared.begin && upper_bound(descriptor, walk) < shared.end) return;
  const ByteExtent extent = operand_extent(descriptor, shape);
  if (extent.first >= shared.begin && extent.last < shared.end) return;
  throw Trap(
      FaultKind::descriptor,
      fmt::format(
          "{} ({} rows of {}, {}-major, {} swizzle; descriptor: start {:#x}, leading offset {}, stride offset {} "
          "bytes) is read from shared address {:#x} to {:#x}, but this CTA has {:#x} to {:#x}. Check the start, "
          "both offsets (in bytes, >> 4 in the descriptor) and the launch's dynamic shared memory",
          operand, shape.rows, name(shape.type), shape.major == Major::k ? "K" : "MN", name(descriptor.swizzle),
          descriptor.start, descriptor.leading_bytes, descriptor.stride_bytes, extent.first, extent.last, shared.begin,
          shared.end - 1),
      kSource);
}

}  // namespace

void check_operand(const MatrixDescriptor& descriptor, const OperandShape& shape, std::string_view operand) {
  const auto refuse = [&](const std::string& why) { throw Trap(FaultKind::descriptor, why, kSource); };
  const bool atom32 = descriptor.swizzle == OperandSwizzle::b128_atom32;
  if (atom32 && shape.type != ElementType::tf32) {
    refuse(
        fmt::format("{} is {} in layout 1 (128B swizzle with 32B atom), which is for tf32 alone. Use layout 2 (128B)",
                    operand, name(shape.type)));
  }
  if (atom32 && shape.major == Major::k) {
    throw Unimplemented(
        fmt::format("{}: K-major tf32 in layout 1 (128B swizzle with 32B atom), whose addresses no source gives. "
                    "Use layout 2 (128B)",
                    operand));
  }
  if (shape.major == Major::mn && shape.type == ElementType::tf32 && !atom32) {
    refuse(fmt::format(
        "{} is MN-major tf32 with {} swizzle; tf32 can be MN-major in layout 1 (128B swizzle with 32B atom) only",
        operand, name(descriptor.swizzle)));
  }
}

uint64_t chunk_address(const MatrixDescriptor& descriptor, const OperandShape& shape, uint32_t index) {
  const Walk walk = walk_of(descriptor, shape);
  return swizzled(descriptor,
                  descriptor.start + walk.row_offset(index / walk.chunks) + walk.chunk_offset(index % walk.chunks));
}

ByteExtent operand_extent(const MatrixDescriptor& descriptor, const OperandShape& shape) {
  ByteExtent extent{~uint64_t{0}, 0};
  for (uint32_t i = 0; i < chunk_count(shape); ++i) {
    const uint64_t address = chunk_address(descriptor, shape, i);
    extent.first = std::min(extent.first, address);
    extent.last = std::max(extent.last, address + kChunk - 1);
  }
  return extent;
}

void gather_operand(const SharedWindow& shared, const MatrixDescriptor& descriptor, const OperandShape& shape,
                    std::string_view operand, std::byte* out) {
  const Walk walk = walk_of(descriptor, shape);
  check_bounds(shared, descriptor, shape, walk, operand);
  if (shape.major == Major::k) return gather_k_major(shared.base, descriptor, walk, out);
  switch (element_bytes(shape.type)) {
    case 1:
      return gather_mn_major<uint8_t>(shared.base, descriptor, walk, out);
    case 2:
      return gather_mn_major<uint16_t>(shared.base, descriptor, walk, out);
    default:
      return gather_mn_major<uint32_t>(shared.base, descriptor, walk, out);
  }
}

}  // namespace emu
