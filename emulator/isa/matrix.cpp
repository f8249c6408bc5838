// ldmatrix, stmatrix, movmatrix: 8x8 matrices of 16-bit elements between shared memory and the registers of a warp, and
// the forms of sm_100 for 8-bit elements. PTX ISA, "Warp-level matrix load / store / transpose instructions"; stmatrix
// of 16 bits read off an H200; 8-bit forms as CUTLASS has them (copy_traits_sm100.hpp, evaluated by hand), which is all
// that is known of them here.

#include <array>
#include <cstring>

#include "emulator/isa/families.h"
#include "emulator/isa/lanes.h"
#include "emulator/isa/memory_access.h"
#include "emulator/machine/decoder.h"

namespace emu::isa {
namespace {

constexpr uint32_t kRowBytes = 16;

enum Form : uint64_t { kPlain, kTransposed, kBytes };

/// Where the rows that lanes 0 to `count` - 1 name lie.
void rows_of(Warp& warp, const Instruction& instruction, uint32_t count, Access access, std::byte* (&at)[kLanes]) {
  const uint32_t active = warp.active;
  warp.active = active & static_cast<uint32_t>((uint64_t{1} << count) - 1);
  resolve(warp, static_cast<MemorySpace>(instruction.modifiers >> 8), instruction.address, kRowBytes, kRowBytes, access,
          at);
  warp.active = active;
}

/// Lane l has elements 2 (l%4) and the next of row l/4 of an 8x8 matrix of 16 bits.
template <class Matrix>
uint32_t pair_of(const Matrix& matrix, int lane, bool transposed) {
  const int row = lane / 4, column = 2 * (lane % 4);
  const uint16_t low = transposed ? matrix[column][row] : matrix[row][column];
  const uint16_t high = transposed ? matrix[column + 1][row] : matrix[row][column + 1];
  return low | uint32_t{high} << 16;
}
template <class Matrix>
void put_pair(Matrix& matrix, int lane, bool transposed, uint32_t pair) {
  const int row = lane / 4, column = 2 * (lane % 4);
  (transposed ? matrix[column][row] : matrix[row][column]) = static_cast<uint16_t>(pair);
  (transposed ? matrix[column + 1][row] : matrix[row][column + 1]) = static_cast<uint16_t>(pair >> 16);
}

Flow load(Warp& warp, const Instruction& instruction) {
  const bool transposed = (instruction.modifiers & 0xFF) == kTransposed;
  std::byte* at[kLanes];
  rows_of(warp, instruction, 8 * instruction.list_count, Access::read, at);
  for (uint32_t j = 0; j < instruction.list_count; ++j) {
    uint16_t matrix[8][8] = {};
    for (uint32_t row = 0; row < 8; ++row)
      if (warp.active >> (8 * j + row) & 1) std::memcpy(matrix[row], at[8 * j + row], kRowBytes);
    uint32_t* to = warp.write<uint32_t>(warp.listed(instruction.list, j));
    for_lanes(warp.active, [&](int lane) { to[lane] = pair_of(matrix, lane, transposed); });
  }
  return Flow::next;
}

/// m16n16, .trans, 8 bits: two registers for each matrix of 16 rows x 16 bytes. Register r of lane l has rows
/// 4 (l%4) + 2r and the next of column l/4, then of column l/4 + 8.
Flow load_bytes(Warp& warp, const Instruction& instruction) {
  std::byte* at[kLanes];
  rows_of(warp, instruction, 8 * instruction.list_count, Access::read, at);
  for (uint32_t j = 0; j < instruction.list_count; ++j) {
    uint8_t matrix[16][16] = {};
    for (uint32_t row = 0; row < 16; ++row)
      if (warp.active >> (j / 2 * 16 + row) & 1) std::memcpy(matrix[row], at[j / 2 * 16 + row], kRowBytes);
    uint32_t* to = warp.write<uint32_t>(warp.listed(instruction.list, j));
    for_lanes(warp.active, [&](int lane) {
      const uint32_t row = 4 * (static_cast<uint32_t>(lane) % 4) + j % 2 * 2, column = static_cast<uint32_t>(lane) / 4;
      to[lane] = matrix[row][column] | uint32_t{matrix[row + 1][column]} << 8 |
                 uint32_t{matrix[row][column + 8]} << 16 | uint32_t{matrix[row + 1][column + 8]} << 24;
    });
  }
  return Flow::next;
}

Flow store(Warp& warp, const Instruction& instruction) {
  const uint64_t form = instruction.modifiers & 0xFF;
  std::byte* at[kLanes];
  rows_of(warp, instruction, 8 * instruction.list_count, Access::write, at);
  for (uint32_t j = 0; j < instruction.list_count; ++j) {
    const uint32_t* from = warp.read<uint32_t>(warp.listed(instruction.list, j));
    std::byte rows[8][kRowBytes];
    if (form == kBytes) {
      // Byte b of lane l: row 2 (l%4) + b%2, column l/4 + 8 (b/2).
      for (uint32_t lane = 0; lane < kLanes; ++lane)
        for (uint32_t b = 0; b < 4; ++b)
          rows[2 * (lane % 4) + b % 2][lane / 4 + 8 * (b / 2)] = static_cast<std::byte>(from[lane] >> (8 * b));
    } else {
      uint16_t matrix[8][8];
      for (int lane = 0; lane < kLanes; ++lane) put_pair(matrix, lane, form == kTransposed, from[lane]);
      std::memcpy(rows, matrix, sizeof rows);
    }
    for (uint32_t row = 0; row < 8; ++row)
      if (warp.active >> (8 * j + row) & 1) std::memcpy(at[8 * j + row], rows[row], kRowBytes);
  }
  return Flow::next;
}

Flow transpose(Warp& warp, const Instruction& instruction) {
  uint16_t matrix[8][8];
  const uint32_t* from = warp.read<uint32_t>(instruction.operand[1]);
  for (int lane = 0; lane < kLanes; ++lane) put_pair(matrix, lane, false, from[lane]);
  uint32_t* to = warp.write<uint32_t>(instruction.operand[0]);
  for_lanes(warp.active, [&](int lane) { to[lane] = pair_of(matrix, lane, true); });
  return Flow::next;
}

/// What ldmatrix and stmatrix share: .sync, shape, number, .trans, space, type; then address and registers.
void bind_matrix(Binder& binder, bool loads) {
  Instruction& out = binder.out;
  if (!binder.take("sync") || !binder.source.has("aligned")) binder.refuse(".sync.aligned is wanted");
  binder.take("aligned");
  const std::string_view shape = binder.take_any({"m8n8", "m16n16", "m16n8", "m8n16"});
  const std::string_view number = binder.take_any({"x1", "x2", "x4"});
  if (shape.empty() || number.empty()) binder.refuse("a shape and .x1, .x2 or .x4 are wanted");
  const bool transposed = binder.take("trans");
  const MemorySpace space =
      binder.take_any({"shared", "shared::cta"}).empty() ? MemorySpace::generic : MemorySpace::shared;
  if (binder.take("b8x16"))
    binder.refuse("the emulator does not execute .b8x16: no source says where the 4 and 6 bits go in their bytes");
  const std::string_view type = binder.take_next();
  const bool bytes = type == "b8";
  const bool exists = bytes ? transposed && shape == (loads ? "m16n16" : "m16n8") : type == "b16" && shape == "m8n8";
  if (!exists || (shape == "m16n16" && number == "x4"))
    binder.refuse("there is no form ." + std::string(shape) + "." + std::string(number) + (transposed ? ".trans" : "") +
                  " of ." + std::string(type));
  if (bytes && !binder.decoder().chip().has_tcgen05) binder.refuse("8-bit forms begin with sm_100");
  uint32_t registers = static_cast<uint32_t>(number[1] - '0');
  if (bytes && loads) registers *= 2;
  out.address = bind_address(binder, loads ? 1 : 0, space);
  const ptx::Operand& vector = binder.operand(loads ? 0 : 1);
  std::vector<Slot> slots = loads ? binder.outputs(vector) : binder.inputs(vector, 4);
  if (slots.size() != registers)
    binder.refuse(std::to_string(registers) + " registers are wanted, not " + std::to_string(slots.size()));
  for (Slot& slot : slots) {
    if (loads && !slot.present()) slot = scratch(binder);
    if (slot.bytes != 4) binder.refuse("registers of 32 bits are wanted");
  }
  out.list = binder.list(slots);
  out.list_count = registers;
  out.modifiers = (bytes ? kBytes : transposed ? kTransposed : kPlain) | static_cast<uint64_t>(space) << 8;
  out.execute = !loads ? store : bytes ? load_bytes : load;
}

void bind_load(Binder& binder) {
  bind_matrix(binder, true);
}
void bind_store(Binder& binder) {
  bind_matrix(binder, false);
}

void bind_transpose(Binder& binder) {
  if (!binder.take("sync") || !binder.source.has("aligned") || !binder.take("m8n8") || !binder.take("trans") ||
      !binder.take("b16"))
    binder.refuse(".sync.aligned.m8n8.trans.b16 is wanted");
  binder.out.operand[0] = result(binder, 0, 4);
  binder.out.operand[1] = source(binder, 1, 4);
  binder.out.execute = transpose;
}

constexpr Entry kEntries[] = {{"ldmatrix", bind_load}, {"stmatrix", bind_store}, {"movmatrix", bind_transpose}};

}  // namespace

std::span<const Entry> matrix_entries() {
  return kEntries;
}

}  // namespace emu::isa
