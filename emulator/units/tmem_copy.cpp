#include "emulator/units/tmem_copy.h"

#include <fmt/format.h>

#include <cstring>

#include "emulator/machine/trap.h"
#include "emulator/units/padded_elements.h"

namespace emu {
namespace {

constexpr uint32_t kChunk = 16;

}  // namespace

void decompress(Decompression decompression, const std::byte* chunk, std::byte* out) {
  if (decompression == Decompression::none) {
    std::memcpy(out, chunk, kChunk);
    return;
  }
  const bool four = decompression == Decompression::b4x16_p64;
  unpack_padded(four ? 4 : 6, chunk, out);
  for (uint32_t i = 0; four && i < kChunk; ++i) out[i] <<= kFp4Shift;
}

void gather_copy(const SharedWindow& shared, const MatrixDescriptor& descriptor, CopyShape shape,
                 Decompression decompression, CopiedRows& out) {
  const CopyExtent extent = extent_of(shape);
  const OperandShape rows{extent.rows, ElementType::e4m3, Major::k};
  const uint32_t chunks = extent.row_bytes / kChunk;
  for (uint32_t row = 0; row < extent.rows; ++row)
    for (uint32_t i = 0; i < chunks; ++i) {
      const uint64_t address = chunk_address(descriptor, rows, row * 2 + i);
      if (address < shared.begin || address + kChunk > shared.end)
        throw Trap(
            FaultKind::descriptor,
            fmt::format("tcgen05.cp reads row {} of {} at shared address {:#x}, but this CTA has {:#x} to {:#x}. "
                        "Check the descriptor's start ({:#x}) and both offsets (leading {}, stride {} bytes)",
                        row, extent.rows, address, shared.begin, shared.end - 1, descriptor.start,
                        descriptor.leading_bytes, descriptor.stride_bytes),
            "PTX ISA, tcgen05.cp");
      decompress(decompression, shared.base + address, out.data() + row * extent.row_bytes + i * kChunk);
    }
}

}  // namespace emu
