// wmma: matrices that a warp loads whole, multiplies whole and stores whole. PTX ISA, "Warp-level matrix multiplication
// using wmma instructions".
//
// The ISA leaves open which lane holds what; programs that touch single elements still see it. Here it is as ptxas
// 13.0 lays it out for sm_90 and sm_100 (read off its machine code), which is as mma.sync wants it:
//   A, B   a register is 8 rows (of A; columns of B) x 4 units of K: lane l has row l/4, unit l%4. A unit is 4 bytes,
//          of f64 8. The side of 16 or 32 rows goes through the 16-row operand of mma.sync: its registers take rows
//          0-7, 8-15, then both at the next 4 units of K. The other side goes through the 8-row operand, K first. Of
//          two sides of 16, that is B. f16 has always 8 registers, the first ones repeated.
//   C, D   two elements of an 8x8 matrix, whose matrices follow each other down, then right: row l/4, columns 2 (l%4)
//          and the next; with m8n32, which is multiplied as its transpose, column l/4, rows 2 (l%4) and the next.
//
// Arithmetic, from the same code: that of mma.sync, except that tf32 adds k = 0-3 and then k = 4-7. Sums are in f32
// unless C and D are both f16; a D of f16 is then rounded to nearest even.

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
#include "emulator/isa/memory_access.h"
#include "emulator/units/tensor_core.h"

namespace emu::isa {
namespace {

constexpr uint32_t kMostRows = 32, kMostCells = 256;
/// Of A or B: a row's K elements.
constexpr uint32_t kRowBytes = 32;

enum class Matrix : uint8_t { a, b, accumulator };

struct Fragment {
  Matrix matrix = Matrix::a;
  uint8_t m = 0, n = 0;
  uint8_t row_bytes = 0;     ///< A, B: of K, 16 or 32
  uint8_t element_bits = 0;  ///< 1, 4, 8, 16, 32, 64
  uint8_t registers = 0;
  bool row_major = true;
  MemorySpace space = MemorySpace::generic;

  uint32_t unit() const { return element_bits == 64 ? 8 : 4; }
  uint32_t rows() const { return matrix == Matrix::a ? m : n; }
  bool transposed() const { return n == 32; }
  /// Whether what a register holds lies side by side in memory.
  bool side_by_side() const {
    return matrix == Matrix::accumulator ? row_major != transposed() : row_major == (matrix == Matrix::a);
  }
};

/// Row of A or column of B, and the byte of K with which the unit begins.
struct Unit {
  uint32_t row, byte;
};
Unit unit_of(const Fragment& f, uint32_t index, uint32_t lane) {
  const uint32_t across = f.row_bytes / (4 * f.unit());
  const bool sixteen = f.matrix == Matrix::a ? f.m >= 16 : f.n == 32;
  index %= f.rows() / 8 * across;
  const uint32_t of_row = sixteen ? 16 * (index / (2 * across)) + 8 * (index % 2) : 8 * (index / across);
  const uint32_t of_k = sixteen ? index % (2 * across) / 2 : index % across;
  return {of_row + lane / 4, (4 * of_k + lane % 4) * f.unit()};
}

/// Where the first of the two elements is that a lane has of 8x8 matrix `index`, and how to get to the second.
struct Pair {
  uint32_t row, column;
};
Pair pair_of(const Fragment& f, uint32_t index, uint32_t lane) {
  const uint32_t row = index % (f.m / 8u) * 8, column = index / (f.m / 8u) * 8;
  if (f.transposed()) return {row + 2 * (lane % 4), column + lane / 4};
  return {row + lane / 4, column + 2 * (lane % 4)};
}

/// Bits from the matrix's start to element (row, column).
uint64_t bits_to(const Fragment& f, uint64_t row, uint64_t column, uint64_t stride) {
  return (f.row_major ? row * stride + column : column * stride + row) * f.element_bits;
}

/// f(register, bytes in the register, addresses): every access that loading or storing the fragment takes, as wide as
/// ptxas makes it, so that misalignment shows where it does there.
template <class Access>
void for_each_access(const Warp& warp, const Instruction& instruction, const Fragment& f, Access&& access) {
  uint64_t base[kLanes], at[kLanes];
  lane_addresses(warp, instruction.address, base);
  const Slot stride_slot = instruction.operand[0];
  const uint32_t* stride = stride_slot.present() ? warp.read<uint32_t>(stride_slot) : nullptr;
  const uint32_t rows = f.matrix == Matrix::b ? f.row_bytes * 8u / f.element_bits : f.m;
  const uint32_t columns = f.matrix == Matrix::a ? f.row_bytes * 8u / f.element_bits : f.n;
  const auto addresses = [&](auto&& position) {
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      const auto [row, column] = position(lane);
      at[lane] = base[lane] + bits_to(f, row, column, stride ? stride[lane] : f.row_major ? columns : rows) / 8;
    }
  };
  const uint32_t element_bytes = std::max(1u, f.element_bits / 8u);
  if (f.matrix == Matrix::accumulator) {
    const uint32_t step = f.side_by_side() ? 2 : 1;
    for (uint32_t i = 0; i < f.m * f.n / 32u; i += step) {
      addresses([&](uint32_t lane) {
        const Pair at = pair_of(f, i / 2, lane);
        return f.transposed() ? Pair{at.row + i % 2, at.column} : Pair{at.row, at.column + i % 2};
      });
      access(i * element_bytes, step * element_bytes, at);
    }
    return;
  }
  const uint32_t distinct = f.rows() * f.row_bytes / (kLanes * f.unit());
  const uint32_t step = f.side_by_side() ? f.unit() : element_bytes;
  for (uint32_t i = 0; i < distinct; ++i)
    for (uint32_t byte = 0; byte < f.unit(); byte += step) {
      addresses([&](uint32_t lane) {
        const Unit unit = unit_of(f, i, lane);
        const uint32_t k = (unit.byte + byte) * 8 / f.element_bits;
        return f.matrix == Matrix::a ? Pair{unit.row, k} : Pair{k, unit.row};
      });
      access(i * f.unit() + byte, step, at);
    }
}

/// A lane's registers one after the other.
using Held = std::array<std::byte, 32>;

Flow load(Warp& warp, const Instruction& instruction) {
  const auto f = std::bit_cast<Fragment>(instruction.modifiers);
  Held held[kLanes];
  std::byte* from[kLanes];
  for_each_access(warp, instruction, f, [&](uint32_t offset, uint32_t bytes, const uint64_t(&at)[kLanes]) {
    resolve(warp, f.space, at, bytes, bytes, Access::read, from);
    for_lanes(warp.active, [&](int lane) { std::memcpy(held[lane].data() + offset, from[lane], bytes); });
  });
  const uint32_t width = f.unit();
  const uint32_t distinct =
      f.matrix == Matrix::accumulator ? f.registers : f.rows() * f.row_bytes / (kLanes * f.unit());
  for (uint32_t i = 0; i < f.registers; ++i) {
    std::byte* to = warp.write<std::byte>(warp.listed(instruction.list, i));
    for_lanes(warp.active, [&](int lane) {
      std::memcpy(to + static_cast<uint32_t>(lane) * width, held[lane].data() + i % distinct * width, width);
    });
  }
  return Flow::next;
}

Flow store(Warp& warp, const Instruction& instruction) {
  const auto f = std::bit_cast<Fragment>(instruction.modifiers);
  Held held[kLanes];
  std::byte* to[kLanes];
  const uint32_t width = f.unit();
  for (uint32_t i = 0; i < f.registers; ++i) {
    const std::byte* from = warp.read<std::byte>(warp.listed(instruction.list, i));
    for (uint32_t lane = 0; lane < kLanes; ++lane)
      std::memcpy(held[lane].data() + i * width, from + lane * width, width);
  }
  for_each_access(warp, instruction, f, [&](uint32_t offset, uint32_t bytes, const uint64_t(&at)[kLanes]) {
    resolve(warp, f.space, at, bytes, bytes, Access::write, to);
    for_lanes(warp.active, [&](int lane) { std::memcpy(to[lane], held[lane].data() + offset, bytes); });
  });
  return Flow::next;
}

// ------------------------------------------------------------------------------------------------------ multiplication

enum class Arithmetic : uint8_t { floats, integers, doubles };

struct Product {
  uint8_t m = 0, n = 0, row_bytes = 0, a_registers = 0, b_registers = 0;
  uint8_t type = 0;  ///< of A and B: ElementType or Digit
  bool c_half = false, d_half = false;
};

/// A or B as rows of 32 bytes, K fastest.
struct Rows {
  alignas(16) std::array<std::byte, kMostRows * kRowBytes> bytes{};
};

void gather(const Warp& warp, const Instruction& instruction, const Fragment& f, uint32_t first, Rows& rows) {
  for (uint32_t i = 0; i < f.rows() * f.row_bytes / (kLanes * f.unit()); ++i) {
    const std::byte* from = warp.read<std::byte>(warp.listed(instruction.list2, first + i));
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      const Unit at = unit_of(f, i, lane);
      std::memcpy(rows.bytes.data() + at.row * kRowBytes + at.byte, from + lane * f.unit(), f.unit());
    }
  }
}

/// f(lane, register, element of the lane, cell of the m x n matrix), for every element of C or D.
template <class Function>
void for_each_cell(const Fragment& f, uint32_t elements_a_register, Function&& function) {
  for (uint32_t i = 0; i < f.m * f.n / 32u; ++i)
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      const Pair at = pair_of(f, i / 2, lane);
      const uint32_t second = i % 2 * (f.transposed() ? f.n : 1u);
      function(lane, i / elements_a_register, i % elements_a_register, at.row * f.n + at.column + second);
    }
}

struct Operands {
  Fragment a, b, d;
  Operands(const Product& product, uint8_t element_bits) {
    a = {Matrix::a, product.m, product.n, product.row_bytes, element_bits, product.a_registers};
    b = {Matrix::b, product.m, product.n, product.row_bytes, element_bits, product.b_registers};
    d = {Matrix::accumulator, product.m, product.n, 0, 32, 0};
  }
};

uint32_t to_half(uint32_t f32) {
  return encode<F16>(double{std::bit_cast<float>(f32)}, Round::nearest_even);
}
uint32_t to_single(uint32_t f16) {
  return std::bit_cast<uint32_t>(canonical(static_cast<float>(decode<F16>(f16))));
}

void read_cells(const Warp& warp, const Instruction& instruction, const Fragment& f, uint32_t first, bool half,
                uint32_t (&cells)[kMostCells]) {
  for_each_cell(f, half ? 2 : 1, [&](uint32_t lane, uint32_t index, uint32_t element, uint32_t cell) {
    const uint32_t word = warp.read<uint32_t>(warp.listed(instruction.list2, first + index))[lane];
    cells[cell] = half ? word >> (16 * element) & 0xFFFF : word;
  });
}

void write_cells(Warp& warp, const Instruction& instruction, const Fragment& f, bool half,
                 const uint32_t (&cells)[kMostCells]) {
  uint32_t words[8][kLanes] = {};
  for_each_cell(f, half ? 2 : 1, [&](uint32_t lane, uint32_t index, uint32_t element, uint32_t cell) {
    words[index][lane] |= cells[cell] << (16 * element);
  });
  for (uint32_t i = 0; i < instruction.list_count; ++i) {
    uint32_t* to = warp.write<uint32_t>(warp.listed(instruction.list, i));
    for_lanes(warp.active, [&](int lane) { to[lane] = words[i][lane]; });
  }
}

void multiply_rows(ElementType type, const Product& product, const Rows& a_rows, const Rows& b_rows,
                   AccumulatorType d_type, uint32_t (&cells)[kMostCells]) {
  auto& [a, b] = packed_operands();
  a.pack(type, product.m, a_rows.bytes.data());
  b.pack(type, product.n, b_rows.bytes.data());
  std::array<uint32_t*, kMostRows> pointers;
  for (uint32_t row = 0; row < product.m; ++row) pointers[row] = cells + row * product.n;
  fused_multiply_add(a, b, {.type = d_type}, std::span(pointers).first(product.m));
}

/// K's bytes [begin, end), zeros elsewhere.
Rows part_of_k(const Rows& rows, uint32_t begin, uint32_t end) {
  Rows out;
  for (uint32_t row = 0; row < kMostRows; ++row)
    std::memcpy(&out.bytes[row * kRowBytes + begin], &rows.bytes[row * kRowBytes + begin], end - begin);
  return out;
}

Flow multiply_floats(Warp& warp, const Instruction& instruction) {
  const auto product = std::bit_cast<Product>(instruction.modifiers);
  const auto type = static_cast<ElementType>(product.type);
  const Operands operands(product, type == ElementType::tf32 ? 32 : 16);
  Rows a, b;
  uint32_t cells[kMostCells];
  gather(warp, instruction, operands.a, 0, a);
  gather(warp, instruction, operands.b, product.a_registers, b);
  read_cells(warp, instruction, operands.d, uint32_t{product.a_registers} + product.b_registers, product.c_half, cells);
  const bool all_half = product.c_half && product.d_half;
  if (product.c_half && !all_half) std::transform(std::begin(cells), std::end(cells), cells, to_single);
  if (type == ElementType::tf32) {
    constexpr uint32_t kHalf = kRowBytes / 2;
    multiply_rows(type, product, part_of_k(a, 0, kHalf), part_of_k(b, 0, kHalf), AccumulatorType::f32, cells);
    multiply_rows(type, product, part_of_k(a, kHalf, kRowBytes), part_of_k(b, kHalf, kRowBytes), AccumulatorType::f32,
                  cells);
  } else {
    multiply_rows(type, product, a, b, all_half ? AccumulatorType::f16 : AccumulatorType::f32, cells);
  }
  if (product.d_half && !all_half) std::transform(std::begin(cells), std::end(cells), cells, to_half);
  write_cells(warp, instruction, operands.d, product.d_half, cells);
  return Flow::next;
}

template <bool kSaturate>
Flow multiply_integers(Warp& warp, const Instruction& instruction) {
  const auto product = std::bit_cast<Product>(instruction.modifiers);
  const auto digit = static_cast<Digit>(product.type);
  const Operands operands(product, 8);
  Rows a, b;
  uint32_t cells[kMostCells];
  gather(warp, instruction, operands.a, 0, a);
  gather(warp, instruction, operands.b, product.a_registers, b);
  read_cells(warp, instruction, operands.d, uint32_t{product.a_registers} + product.b_registers, false, cells);
  for (uint32_t row = 0; row < product.m; ++row)
    for (uint32_t column = 0; column < product.n; ++column) {
      uint32_t& cell = cells[row * product.n + column];
      const int64_t sum = static_cast<int32_t>(cell) + dot(std::span(a.bytes).subspan(row * kRowBytes, kRowBytes),
                                                           b.bytes.data() + column * kRowBytes, digit, digit);
      cell = static_cast<uint32_t>(kSaturate ? std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX) : sum);
    }
  write_cells(warp, instruction, operands.d, false, cells);
  return Flow::next;
}

/// 8x8x4: an fma after the other along k.
Flow multiply_doubles(Warp& warp, const Instruction& instruction) {
  const auto of = [&](uint32_t i) { return warp.read<double>(warp.listed(instruction.list2, i)); };
  double d[2][kLanes];
  for (uint32_t lane = 0; lane < kLanes; ++lane)
    for (uint32_t i = 0; i < 2; ++i) {
      double sum = of(2 + i)[lane];
      for (uint32_t k = 0; k < 4; ++k)
        sum = std::fma(of(0)[lane / 4 * 4 + k], of(1)[(2 * (lane % 4) + i) * 4 + k], sum);
      d[i][lane] = sum;
    }
  for (uint32_t i = 0; i < 2; ++i) {
    double* to = warp.write<double>(warp.listed(instruction.list, i));
    for_lanes(warp.active, [&](int lane) { to[lane] = d[i][lane]; });
  }
  return Flow::next;
}

// ------------------------------------------------------------------------------------------------------------- binding

/// What A and B may be: the shapes of which type, and where it goes.
struct Type {
  std::string_view name;
  uint8_t bits;
  Arithmetic arithmetic;
  uint8_t code;  ///< ElementType or Digit
};
constexpr auto code(ElementType type) {
  return static_cast<uint8_t>(type);
}
constexpr auto code(Digit type) {
  return static_cast<uint8_t>(type);
}
constexpr Type kTypes[] = {
    {"f16", 16, Arithmetic::floats, code(ElementType::f16)},
    {"bf16", 16, Arithmetic::floats, code(ElementType::bf16)},
    {"tf32", 32, Arithmetic::floats, code(ElementType::tf32)},
    {"f64", 64, Arithmetic::doubles, 0},
    {"u8", 8, Arithmetic::integers, code(Digit::u8)},
    {"s8", 8, Arithmetic::integers, code(Digit::s8)},
    {"u4", 4, Arithmetic::integers, code(Digit::u4)},
    {"s4", 4, Arithmetic::integers, code(Digit::s4)},
    {"b1", 1, Arithmetic::integers, code(Digit::bits_and)},
};
const Type* find_type(std::string_view name) {
  const auto* found = std::ranges::find(kTypes, name, &Type::name);
  return found == std::end(kTypes) ? nullptr : found;
}

struct Shape {
  uint8_t m = 0, n = 0, k = 0;
};
Shape take_shape(Binder& binder) {
  constexpr std::pair<std::string_view, Shape> kShapes[] = {
      {"m16n16k16", {16, 16, 16}}, {"m32n8k16", {32, 8, 16}}, {"m8n32k16", {8, 32, 16}}, {"m16n16k8", {16, 16, 8}},
      {"m8n8k4", {8, 8, 4}},       {"m8n8k32", {8, 8, 32}},   {"m8n8k128", {8, 8, 128}},
  };
  for (auto [name, shape] : kShapes)
    if (binder.take(name)) return shape;
  binder.refuse("a shape is wanted: m16n16k16, m32n8k16, m8n32k16, m16n16k8, m8n8k4, m8n8k32 or m8n8k128");
}

/// Shapes of a type of A and B.
bool has(const Type& type, const Shape& shape) {
  const uint32_t k = type.bits == 64 ? 4 : type.bits == 32 ? 8 : type.bits >= 8 ? 16 : 128 / type.bits;
  return shape.k == k;
}

uint32_t registers_of(const Type& type, uint32_t rows, const Shape& shape) {
  if (type.name == "f16") return 8;
  return rows * shape.k * type.bits / 8 / (kLanes * (type.bits == 64 ? 8 : 4));
}

struct AccumulatorShape {
  uint8_t bits = 0, registers = 0;
};
/// `type` of C or D, with whatever A and B go with it in this shape; bits 0 where there is none.
AccumulatorShape accumulator_of(std::string_view type, const Shape& shape) {
  const auto elements = static_cast<uint8_t>(shape.m * shape.n / 32);
  if (type == "f64") return {static_cast<uint8_t>(shape.k == 4 ? 64 : 0), elements};
  if (type == "f16") return {static_cast<uint8_t>(shape.k == 16 ? 16 : 0), static_cast<uint8_t>(elements / 2)};
  if (type == "f32") return {static_cast<uint8_t>(shape.k == 16 || shape.k == 8 ? 32 : 0), elements};
  if (type == "s32") return {static_cast<uint8_t>(shape.k == 4 || shape.k == 8 ? 0 : 32), elements};
  return {};
}

std::vector<Slot> registers(Binder& binder, size_t operand, bool written, uint32_t count, uint32_t bytes,
                            const char* what) {
  const ptx::Operand& vector = binder.operand(operand);
  std::vector<Slot> slots = written ? binder.outputs(vector) : binder.inputs(vector, static_cast<uint8_t>(bytes));
  if (slots.size() != count) binder.refuse(fmt::format("{} takes {} registers, not {}", what, count, slots.size()));
  for (Slot& slot : slots) {
    if (written && !slot.present()) slot = scratch(binder);
    if (slot.bytes != bytes) binder.refuse(fmt::format("{} takes registers of {} bits", what, bytes * 8));
  }
  return slots;
}

/// .load.a, .load.b, .load.c, .store.d; .load or .store has been taken.
void bind_memory(Binder& binder, bool loads) {
  Instruction& out = binder.out;
  const std::string_view matrix = binder.take_next();
  binder.take("sync");
  binder.take("aligned");
  Fragment f;
  f.matrix = matrix == "a" ? Matrix::a : matrix == "b" ? Matrix::b : Matrix::accumulator;
  if (loads ? f.matrix == Matrix::accumulator && matrix != "c" : matrix != "d")
    binder.refuse(".load.a, .load.b, .load.c or .store.d is wanted");
  const std::string_view layout = binder.take_any({"row", "col"});
  if (layout.empty()) binder.refuse(".row or .col is wanted");
  f.row_major = layout == "row";
  const Shape shape = take_shape(binder);
  f.m = shape.m;
  f.n = shape.n;
  if (binder.take("global")) f.space = MemorySpace::global;
  if (!binder.take_any({"shared", "shared::cta"}).empty()) f.space = MemorySpace::shared;
  const std::string_view name = binder.take_next();
  const auto no_such = [&] {
    binder.refuse(fmt::format("there is no matrix {} of type .{} in this shape", matrix, name));
  };
  if (f.matrix == Matrix::accumulator) {
    const AccumulatorShape found = accumulator_of(name, shape);
    if (found.bits == 0) no_such();
    f.element_bits = found.bits;
    f.registers = found.registers;
  } else {
    const Type* type = find_type(name);
    if (!type || !has(*type, shape)) no_such();
    f.element_bits = type->bits;
    f.row_bytes = static_cast<uint8_t>(shape.k * type->bits / 8);
    f.registers = static_cast<uint8_t>(registers_of(*type, f.rows(), shape));
    if (type->bits < 8 && !f.side_by_side())
      binder.refuse("elements of less than a byte want .row for A and .col for B");
  }
  if (binder.count() != 2 && binder.count() != 3)
    binder.refuse("an address and registers are wanted, and perhaps a stride");
  const size_t vector = loads ? 0 : 1;
  out.address = bind_address(binder, 1 - vector, f.space);
  const std::vector<Slot> slots = registers(binder, vector, loads, f.registers, f.unit(), "the matrix");
  out.list = binder.list(slots);
  out.list_count = f.registers;
  if (binder.count() == 3) out.operand[0] = source(binder, 2, 4);
  out.modifiers = std::bit_cast<uint64_t>(f);
  out.execute = loads ? load : store;
}

/// .mma has been taken.
void bind_multiply(Binder& binder) {
  Instruction& out = binder.out;
  const std::string_view operation = binder.take_any({"xor", "and"});
  if (!operation.empty() && !binder.take("popc")) binder.refuse(".popc is wanted");
  binder.take("sync");
  binder.take("aligned");
  const std::string_view a_layout = binder.take_next(), b_layout = binder.take_next();
  for (std::string_view layout : {a_layout, b_layout})
    if (layout != "row" && layout != "col") binder.refuse("the layouts of A and B are wanted");
  const Shape shape = take_shape(binder);
  const bool saturate = binder.take("satfinite");
  if (!binder.take_any({"rz", "rm", "rp"}).empty())
    binder.refuse("the emulator executes wmma of f64 with rounding to nearest only");
  binder.take("rn");
  std::vector<std::string_view> types;
  while (!binder.next().empty()) types.push_back(binder.take_next());
  // Of f16 only the types of D and C are told.
  if (types.size() == 2) types = {types[0], "f16", "f16", types[1]};
  if (types.size() != 4) binder.refuse("the types of D, A, B and C are wanted");
  const auto no_such = [&] {
    binder.refuse(
        fmt::format("there is no form with D .{}, A .{}, B .{}, C .{}", types[0], types[1], types[2], types[3]));
  };
  const Type* type = find_type(types[1]);
  if (!type || types[1] != types[2] || !has(*type, shape)) no_such();
  const AccumulatorShape d = accumulator_of(types[0], shape), c = accumulator_of(types[3], shape);
  const bool half = types[0] == "f16" || types[3] == "f16";
  const std::string_view sums = type->arithmetic == Arithmetic::floats    ? "f32"
                                : type->arithmetic == Arithmetic::doubles ? "f64"
                                                                          : "s32";
  for (size_t i : {size_t{0}, size_t{3}})
    if (types[i] != sums && !(types[i] == "f16" && type->name == "f16")) no_such();
  if (d.bits == 0 || c.bits == 0 || (half && type->name != "f16")) no_such();
  if (operation.empty() == (type->bits == 1) || (saturate && (type->bits == 1 || sums != "s32"))) no_such();
  if (type->bits < 8 && (a_layout != "row" || b_layout != "col")) no_such();

  Product product;
  product.m = shape.m;
  product.n = shape.n;
  product.row_bytes = static_cast<uint8_t>(shape.k * type->bits / 8);
  product.a_registers = static_cast<uint8_t>(registers_of(*type, shape.m, shape));
  product.b_registers = static_cast<uint8_t>(registers_of(*type, shape.n, shape));
  product.type = operation == "xor" ? code(Digit::bits_xor) : type->code;
  product.c_half = types[3] == "f16";
  product.d_half = types[0] == "f16";

  if (binder.count() != 4) binder.refuse("four operands are wanted: d, a, b, c");
  const uint32_t bytes = type->bits == 64 ? 8 : 4;
  out.list = binder.list(registers(binder, 0, true, d.registers, bytes, "D"));
  out.list_count = d.registers;
  std::vector<Slot> sources = registers(binder, 1, false, product.a_registers, bytes, "A");
  for (Slot slot : registers(binder, 2, false, product.b_registers, bytes, "B")) sources.push_back(slot);
  for (Slot slot : registers(binder, 3, false, c.registers, bytes, "C")) sources.push_back(slot);
  out.list2 = binder.list(sources);
  out.list2_count = static_cast<uint32_t>(sources.size());
  out.modifiers = std::bit_cast<uint64_t>(product);
  switch (type->arithmetic) {
    case Arithmetic::floats:
      out.execute = multiply_floats;
      break;
    case Arithmetic::integers:
      out.execute = saturate ? multiply_integers<true> : multiply_integers<false>;
      break;
    case Arithmetic::doubles:
      out.execute = multiply_doubles;
      break;
  }
}

void bind_wmma(Binder& binder) {
  if (!binder.source.has("sync") || !binder.source.has("aligned")) binder.refuse(".sync.aligned is wanted");
  if (binder.take("mma")) return bind_multiply(binder);
  const bool loads = binder.take("load");
  if (!loads && !binder.take("store")) binder.refuse(".load, .store or .mma is wanted");
  bind_memory(binder, loads);
}

constexpr Entry kEntries[] = {{"wmma", bind_wmma}};

}  // namespace

std::span<const Entry> wmma_entries() {
  return kEntries;
}

}  // namespace emu::isa
