// mma.sync: matrix multiplication by one warp, from registers to registers. PTX ISA, "Warp-level matrix
// multiply-accumulate instruction".
//
// Fragments: lane l has of A rows l/4 and l/4 + 8, of B column l/4, and of both the 4 bytes of K that begin at 4 (l%4),
// and at 16 more for each further register; of D rows l/4 and l/4 + 8, columns 2 (l%4) and the next. Elements of 64
// bits are spread in the same way, one a register.
//
// Arithmetic (an H200, 2.5 million sums): f16, bf16 and tf32 as wgmma, all K of the instruction in one sum. e4m3 and
// e5m2 are no instruction of sm_90: ptxas 13.0 unpacks them to f16 and multiplies k % 4 = 0, 1 from zero, adds
// k % 4 = 2, 3, and adds C last, to nearest; taken to be so on sm_100, too. f64 is a chain of fma along k. On sm_100
// the sums of f16, bf16 and tf32 are the same by MMA-Sim (arXiv 2511.10909).

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "emulator/isa/families.h"
#include "emulator/isa/float_format.h"
#include "emulator/isa/integer_dot.h"
#include "emulator/isa/lanes.h"
#include "emulator/units/fragment.h"
#include "emulator/units/tensor_core.h"

namespace emu::isa {
namespace {

// modifiers of floating-point forms: type of A, of B << 8, of D << 16; of integer ones: digit of A, of B << 8, saturate
// << 16. list: D; list2: A, B, C, one after the other. immediate: registers of A | of B << 8 | of D << 16.
struct Registers {
  uint32_t a, b, d;
};
Registers registers_of(const Instruction& instruction) {
  const auto counts = static_cast<uint64_t>(instruction.immediate);
  return {static_cast<uint32_t>(counts & 0xFF), static_cast<uint32_t>(counts >> 8 & 0xFF),
          static_cast<uint32_t>(counts >> 16 & 0xFF)};
}

constexpr uint32_t kColumns = 8;
using ARows = std::array<std::byte, kFragmentRows * kOperandBytesPerRow>;
using BRows = std::array<std::byte, kColumns * kOperandBytesPerRow>;

/// A and B as rows of 32 bytes, K fastest; what an instruction of smaller K or M does not have is zeros, which add
/// nothing.
void read_multiplicands(const Warp& warp, const Instruction& instruction, bool eight_rows, ARows& a, BRows& b) {
  const Registers count = registers_of(instruction);
  const uint32_t zeros[kLanes] = {};
  const auto reg = [&](uint32_t i) { return warp.read<uint32_t>(warp.listed(instruction.list2, i)); };
  const uint32_t* a_registers[4] = {zeros, zeros, zeros, zeros};
  // With 16 rows registers alternate between the upper and lower 8.
  for (uint32_t i = 0; i < count.a; ++i) a_registers[eight_rows ? 2 * i : i] = reg(i);
  multiplicand_to_rows(a_registers, a.data());
  b.fill(std::byte{0});
  for (uint32_t i = 0; i < count.b; ++i)
    for (uint32_t lane = 0; lane < kLanes; lane += 4)
      std::memcpy(b.data() + lane / 4 * kOperandBytesPerRow + 16 * i, reg(count.a + i) + lane, 16);
}

/// C and D as 16 rows of 8 words.
struct Accumulator {
  alignas(16) uint32_t rows[kFragmentRows * kColumns] = {};
  std::array<uint32_t*, kFragmentRows> pointers() {
    std::array<uint32_t*, kFragmentRows> out;
    for (uint32_t row = 0; row < kFragmentRows; ++row) out[row] = rows + row * kColumns;
    return out;
  }
};

void read_accumulator(const Warp& warp, const Instruction& instruction, AccumulatorType type, Accumulator& c) {
  const Registers count = registers_of(instruction);
  const uint32_t zeros[kLanes] = {};
  const uint32_t* registers[4] = {zeros, zeros, zeros, zeros};
  for (uint32_t i = 0; i < count.d; ++i)
    registers[i] = warp.read<uint32_t>(warp.listed(instruction.list2, count.a + count.b + i));
  accumulator_to_rows(type, kColumns, registers, c.rows, kColumns);
}

void write_accumulator(Warp& warp, const Instruction& instruction, AccumulatorType type, const Accumulator& d) {
  uint32_t values[4][kLanes];
  uint32_t* registers[4] = {values[0], values[1], values[2], values[3]};
  rows_to_accumulator(type, kColumns, d.rows, kColumns, registers);
  for (uint32_t i = 0; i < instruction.list_count; ++i) {
    uint32_t* to = warp.write<uint32_t>(warp.listed(instruction.list, i));
    for_lanes(warp.active, [&](int lane) { to[lane] = values[i][lane]; });
  }
}

void multiply(ElementType a_type, const ARows& a_rows, ElementType b_type, const BRows& b_rows,
              const AccumulatorUse& use, Accumulator& d) {
  auto& [a, b] = packed_operands();
  a.pack(a_type, kFragmentRows, a_rows.data());
  b.pack(b_type, kColumns, b_rows.data());
  const auto pointers = d.pointers();
  fused_multiply_add(a, b, use, pointers);
}

Flow multiply_floats(Warp& warp, const Instruction& instruction) {
  const auto a_type = static_cast<ElementType>(instruction.modifiers & 0xFF);
  const auto b_type = static_cast<ElementType>(instruction.modifiers >> 8 & 0xFF);
  const auto d_type = static_cast<AccumulatorType>(instruction.modifiers >> 16 & 0xFF);
  ARows a;
  BRows b;
  Accumulator d;
  read_multiplicands(warp, instruction, false, a, b);
  read_accumulator(warp, instruction, d_type, d);
  multiply(a_type, a, b_type, b, {.type = d_type}, d);
  write_accumulator(warp, instruction, d_type, d);
  return Flow::next;
}

/// The f16 of a code of e4m3 or e5m2: exact.
uint16_t f16_of(ElementType type, std::byte code) {
  static const auto tables = [] {
    std::array<std::array<uint16_t, 256>, 2> out;
    for (uint32_t i = 0; i < 256; ++i) {
      out[0][i] = static_cast<uint16_t>(encode<F16>(decode<E4m3>(i), Round::nearest_even));
      out[1][i] = static_cast<uint16_t>(encode<F16>(decode<E5m2>(i), Round::nearest_even));
    }
    return out;
  }();
  return tables[type == ElementType::e5m2][static_cast<size_t>(code)];
}

/// Elements k % 4 = 2 * half and the next, as f16.
template <class Rows>
Rows half_of_k(ElementType type, const Rows& rows, uint32_t half) {
  Rows out;
  for (size_t row = 0; row < rows.size(); row += kOperandBytesPerRow)
    for (uint32_t i = 0; i < 16; ++i) {
      const uint16_t value = f16_of(type, rows[row + i / 2 * 4 + 2 * half + i % 2]);
      std::memcpy(&out[row + 2 * i], &value, 2);
    }
  return out;
}

Flow multiply_bytes(Warp& warp, const Instruction& instruction) {
  const auto a_type = static_cast<ElementType>(instruction.modifiers & 0xFF);
  const auto b_type = static_cast<ElementType>(instruction.modifiers >> 8 & 0xFF);
  ARows a;
  BRows b;
  Accumulator c, d;
  read_multiplicands(warp, instruction, false, a, b);
  read_accumulator(warp, instruction, AccumulatorType::f32, c);
  for (uint32_t half = 0; half < 2; ++half)
    multiply(ElementType::f16, half_of_k(a_type, a, half), ElementType::f16, half_of_k(b_type, b, half),
             {.input = half == 1}, d);
  for (uint32_t i = 0; i < kFragmentRows * kColumns; ++i)
    d.rows[i] = std::bit_cast<uint32_t>(canonical(std::bit_cast<float>(c.rows[i]) + std::bit_cast<float>(d.rows[i])));
  write_accumulator(warp, instruction, AccumulatorType::f32, d);
  return Flow::next;
}

Flow multiply_integers(Warp& warp, const Instruction& instruction) {
  const auto a_digit = static_cast<Digit>(instruction.modifiers & 0xFF);
  const auto b_digit = static_cast<Digit>(instruction.modifiers >> 8 & 0xFF);
  const bool saturate = instruction.modifiers >> 16 & 1, eight_rows = instruction.list_count == 2;
  ARows a;
  BRows b;
  Accumulator d;
  read_multiplicands(warp, instruction, eight_rows, a, b);
  read_accumulator(warp, instruction, AccumulatorType::s32, d);
  for (uint32_t row = 0; row < (eight_rows ? 8 : kFragmentRows); ++row)
    for (uint32_t column = 0; column < kColumns; ++column) {
      uint32_t& cell = d.rows[row * kColumns + column];
      const int64_t sum =
          static_cast<int32_t>(cell) + dot(std::span(a).subspan(row * kOperandBytesPerRow, kOperandBytesPerRow),
                                           b.data() + column * kOperandBytesPerRow, a_digit, b_digit);
      cell = static_cast<uint32_t>(saturate ? std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX) : sum);
    }
  write_accumulator(warp, instruction, AccumulatorType::s32, d);
  return Flow::next;
}

Flow multiply_doubles(Warp& warp, const Instruction& instruction) {
  const Registers count = registers_of(instruction);
  const uint32_t rows = count.d * 4, depth = count.b * 4;
  const auto reg = [&](uint32_t i) { return warp.read<double>(warp.listed(instruction.list2, i)); };
  double a[16][16], b[8][16], d[4][kLanes];
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    for (uint32_t i = 0; i < count.a; ++i) {
      const uint32_t lower = rows == 16 ? i % 2 : 0, quarter = rows == 16 ? i / 2 : i;
      a[lane / 4 + 8 * lower][lane % 4 + 4 * quarter] = reg(i)[lane];
    }
    for (uint32_t i = 0; i < count.b; ++i) b[lane / 4][lane % 4 + 4 * i] = reg(count.a + i)[lane];
  }
  for (uint32_t lane = 0; lane < kLanes; ++lane)
    for (uint32_t i = 0; i < count.d; ++i) {
      double sum = reg(count.a + count.b + i)[lane];
      for (uint32_t k = 0; k < depth; ++k)
        sum = std::fma(a[lane / 4 + 8 * (i / 2)][k], b[2 * (lane % 4) + i % 2][k], sum);
      d[i][lane] = sum;
    }
  for (uint32_t i = 0; i < count.d; ++i) {
    double* to = warp.write<double>(warp.listed(instruction.list, i));
    for_lanes(warp.active, [&](int lane) { to[lane] = d[i][lane]; });
  }
  return Flow::next;
}

/// A form: shape, bits of an element, and its registers.
struct Shape {
  uint32_t m = 0, k = 0;
};
Shape shape_of(const Binder& binder, std::string_view text) {
  for (uint32_t m : {8u, 16u})
    for (uint32_t k : {4u, 8u, 16u, 32u, 64u, 128u, 256u})
      if (text == fmt::format("m{}n8k{}", m, k)) return {m, k};
  binder.refuse(fmt::format("the emulator does not execute shape .{}", text));
}

void bind_registers(Binder& binder, const Registers& count, uint8_t bytes) {
  Instruction& out = binder.out;
  if (binder.count() != 4) binder.refuse("four operands are wanted: d, a, b, c");
  std::vector<Slot> d = binder.outputs(binder.operand(0)), sources;
  const auto check = [&](const std::vector<Slot>& slots, uint32_t wanted, const char* what) {
    if (slots.size() != wanted) binder.refuse(fmt::format("{} takes {} registers, not {}", what, wanted, slots.size()));
    for (const Slot& slot : slots)
      if (slot.bytes != bytes) binder.refuse(fmt::format("{} takes registers of {} bits", what, bytes * 8));
  };
  for (Slot& slot : d)
    if (!slot.present()) slot = scratch(binder);
  check(d, count.d, "D");
  const uint32_t counts[] = {count.a, count.b, count.d};
  constexpr const char* kNames[] = {"A", "B", "C"};
  for (size_t i = 0; i < 3; ++i) {
    const std::vector<Slot> slots = binder.inputs(binder.operand(i + 1), bytes);
    check(slots, counts[i], kNames[i]);
    sources.insert(sources.end(), slots.begin(), slots.end());
  }
  out.list = binder.list(d);
  out.list_count = count.d;
  out.list2 = binder.list(sources);
  out.list2_count = static_cast<uint32_t>(sources.size());
  out.immediate = static_cast<int64_t>(count.a | count.b << 8 | count.d << 16);
}

void bind_mma(Binder& binder) {
  Instruction& out = binder.out;
  if (binder.source.has("sp") || binder.source.has("sp::ordered_metadata"))
    binder.refuse("the emulator does not execute sparse mma (.sp)");
  if (binder.source.has("block_scale")) binder.refuse("block-scaled mma exists on sm_120 only");
  if (!binder.take("sync") || !binder.source.has("aligned")) binder.refuse(".sync.aligned is wanted");
  binder.take("aligned");
  const std::string_view shape_text = binder.take_next();
  const Shape shape = shape_of(binder, shape_text);
  if (!binder.take("row") || !binder.take("col")) binder.refuse("the emulator executes .row.col only");
  const bool saturate = binder.take("satfinite");
  const std::string_view d = binder.take_next(), a = binder.take_next(), b = binder.take_next(), c = binder.take_next();
  const std::string types = fmt::format("D .{}, A .{}, B .{}, C .{}", d, a, b, c);
  const auto no_such = [&] { binder.refuse(fmt::format("there is no form .{} with {}", shape_text, types)); };
  if (c != d) no_such();

  if (a == "f64") {
    const bool exists = b == a && d == a && (shape.m == 8 ? shape.k == 4 : shape.k <= 16);
    if (!exists || saturate) no_such();
    bind_registers(binder, {shape.m * shape.k / 32, shape.k / 4, shape.m / 4}, 8);
    out.execute = multiply_doubles;
    return;
  }
  constexpr std::pair<std::string_view, uint32_t> kBits[] = {{"f16", 16}, {"bf16", 16}, {"tf32", 32}, {"e4m3", 8},
                                                             {"e5m2", 8}, {"u8", 8},    {"s8", 8},    {"u4", 4},
                                                             {"s4", 4},   {"b1", 1}};
  uint32_t bits = 0, b_bits = 0;
  for (auto [name, size] : kBits) {
    if (a == name) bits = size;
    if (b == name) b_bits = size;
  }
  if (bits == 0 || bits != b_bits) no_such();
  // An instruction has 32 or 16 bytes of K; 8 rows only with 16 bytes, and only of integers.
  const uint32_t bytes = shape.k * bits / 8;
  const bool integer = a[0] == 'u' || a[0] == 's' || a == "b1";
  if ((bytes != 16 && bytes != 32) || (shape.m == 8 && (bytes != 16 || !integer))) no_such();
  const bool half = d == "f16";
  bind_registers(binder, {shape.m * bytes / 128, bytes / 16, integer ? shape.m / 4 : half ? 2u : 4u}, 4);

  if (integer) {
    const auto digit = [&](std::string_view type) {
      if (const auto found = digit_of(type)) return *found;
      if (type != "b1") no_such();
      if (!binder.source.has("popc")) binder.refuse(".and.popc or .xor.popc is wanted");
      return binder.source.has("and") ? Digit::bits_and : Digit::bits_xor;
    };
    if (d != "s32" || (saturate && a == "b1")) no_such();
    out.modifiers = static_cast<uint64_t>(digit(a)) | static_cast<uint64_t>(digit(b)) << 8 | uint64_t{saturate} << 16;
    if (a == "b1") binder.take_any({"and", "xor"}), binder.take("popc");
    out.execute = multiply_integers;
    return;
  }
  const auto element = [&](std::string_view name) {
    for (ElementType type :
         {ElementType::f16, ElementType::bf16, ElementType::tf32, ElementType::e4m3, ElementType::e5m2})
      if (name == emu::name(type)) return type;
    no_such();
    return ElementType::f16;
  };
  const ElementType a_type = element(a), b_type = element(b);
  const bool exists = bits == 8 || (a_type == b_type && (d == "f32" || a_type == ElementType::f16));
  if (!exists || saturate || (d != "f32" && !half)) no_such();
  if (bits == 8 && half)
    binder.refuse("the emulator does not execute 8-bit floats with a D of .f16: how ptxas unpacks them is not known");
  out.modifiers = static_cast<uint64_t>(a_type) | static_cast<uint64_t>(b_type) << 8 |
                  static_cast<uint64_t>(half ? AccumulatorType::f16 : AccumulatorType::f32) << 16;
  out.execute = bits == 8 ? multiply_bytes : multiply_floats;
}

constexpr Entry kEntries[] = {{"mma", bind_mma}};

}  // namespace

std::span<const Entry> mma_entries() {
  return kEntries;
}

}  // namespace emu::isa
