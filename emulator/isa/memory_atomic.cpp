// Atomic operations on memory. PTX ISA, "Parallel Synchronization and Communication Instructions": atom, red.
//
// Lanes go one after the other, lowest first. Between clusters, what other clusters may see is admitted in order
// (Instruction::visible), so reading, computing and writing cannot be torn apart.

#include "emulator/isa/memory_atomic.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "emulator/isa/families.h"
#include "emulator/isa/float_format.h"
#include "emulator/isa/lanes.h"
#include "emulator/isa/memory_access.h"
#include "emulator/machine/address.h"
#include "emulator/machine/cluster.h"

namespace emu::isa {
namespace {

using Quad = unsigned __int128;

enum class Operation : uint8_t {
  add,
  minimum,
  maximum,
  increment,
  decrement,
  conjunction,
  disjunction,
  difference,
  exchange
};

// How the operands of one element are read. Pairs are two elements that lie in one register.
enum class Number : uint8_t { u32, s32, u64, s64, f32, f64, f16, bf16 };

struct Modifiers {
  MemorySpace space;
  Operation operation;
  Number number;
  uint8_t element_bytes;  ///< of one register: 2, 4, 8, 16
  bool pairs;

  uint64_t packed() const {
    return static_cast<uint64_t>(space) | static_cast<uint64_t>(operation) << 8 | static_cast<uint64_t>(number) << 16 |
           static_cast<uint64_t>(element_bytes) << 24 | static_cast<uint64_t>(pairs) << 32;
  }
  static Modifiers unpack(uint64_t bits) {
    return {static_cast<MemorySpace>(bits & 0xFF), static_cast<Operation>(bits >> 8 & 0xFF),
            static_cast<Number>(bits >> 16 & 0xFF), static_cast<uint8_t>(bits >> 24 & 0xFF), (bits >> 32 & 1) != 0};
  }
};

template <class T>
T integer(Operation operation, T old, T b) {
  switch (operation) {
    case Operation::add:
      return static_cast<T>(static_cast<uint64_t>(old) + static_cast<uint64_t>(b));
    case Operation::minimum:
      return std::min(old, b);
    case Operation::maximum:
      return std::max(old, b);
    case Operation::increment:
      return old >= b ? T{0} : static_cast<T>(old + 1);
    case Operation::decrement:
      return old == 0 || old > b ? b : static_cast<T>(old - 1);
    case Operation::conjunction:
      return old & b;
    case Operation::disjunction:
      return old | b;
    case Operation::difference:
      return old ^ b;
    case Operation::exchange:
      return b;
  }
  return b;
}

/// 16-bit floats: exact in double, then rounded once. Subnormals are kept (.noftz).
template <class F>
uint64_t half(Operation operation, uint16_t old, uint16_t b) {
  double x = decode<F>(old), y = decode<F>(b);
  if (operation == Operation::add) return encode<F>(x + y, Round::nearest_even);
  if (x != x) return y != y ? F::kNan : b;
  if (y != y) return old;
  // Of two zeros the negative one is less.
  bool less = x < y || (x == y && (old & F::kSign));
  return less == (operation == Operation::minimum) ? old : b;
}

uint64_t combine(const Modifiers& m, uint64_t old, uint64_t b, bool in_global) {
  switch (m.number) {
    case Number::u32:
      return integer(m.operation, static_cast<uint32_t>(old), static_cast<uint32_t>(b));
    case Number::s32:
      return static_cast<uint32_t>(integer(m.operation, static_cast<int32_t>(old), static_cast<int32_t>(b)));
    case Number::u64:
      return integer(m.operation, old, b);
    case Number::s64:
      return static_cast<uint64_t>(integer(m.operation, static_cast<int64_t>(old), static_cast<int64_t>(b)));
    case Number::f32: {
      float x = std::bit_cast<float>(static_cast<uint32_t>(old)), y = std::bit_cast<float>(static_cast<uint32_t>(b));
      // PTX ISA, atom: "atom.add.f32 on global memory flushes subnormal inputs and results to sign-preserving zero;
      // on shared memory [it] supports subnormal inputs and results".
      return std::bit_cast<uint32_t>(in_global ? canonical(flush(flush(x) + flush(y))) : canonical(x + y));
    }
    case Number::f64: {
      double x = std::bit_cast<double>(old), y = std::bit_cast<double>(b);
      // A NaN passes as it is, of two the one that the adder is given last; an invalid sum gives CUDART_NAN (an H200).
      // In shared memory the sum is a loop around DADD, which is given the old value last.
      if (y != y && (in_global || x == x)) return b;
      if (x != x) return old;
      return x + y == x + y ? std::bit_cast<uint64_t>(x + y) : 0xFFF8000000000000ull;
    }
    case Number::f16:
      return half<F16>(m.operation, static_cast<uint16_t>(old), static_cast<uint16_t>(b));
    case Number::bf16:
      return half<Bf16>(m.operation, static_cast<uint16_t>(old), static_cast<uint16_t>(b));
  }
  return b;
}

uint64_t apply(const Modifiers& m, uint64_t old, uint64_t b, bool in_global) {
  if (!m.pairs) return combine(m, old, b, in_global);
  return combine(m, old & 0xFFFF, b & 0xFFFF, in_global) | combine(m, old >> 16 & 0xFFFF, b >> 16 & 0xFFFF, in_global)
                                                               << 16;
}

bool in_global(const Warp& warp, const Instruction& instruction, MemorySpace space, int lane) {
  if (space != MemorySpace::generic) return space == MemorySpace::global;
  uint64_t address = warp.address(instruction.address, lane);
  return !is_shared(address) && !is_local(address);
}

uint64_t value_of(const Warp& warp, const Slot& slot, int lane) {
  return warp.scalar(slot, lane);
}

void put(Warp& warp, const Slot& slot, int lane, uint64_t value) {
  if (slot.bytes == 2) warp.write<uint16_t>(slot)[lane] = static_cast<uint16_t>(value);
  if (slot.bytes == 4) warp.write<uint32_t>(slot)[lane] = static_cast<uint32_t>(value);
  if (slot.bytes == 8) warp.write<uint64_t>(slot)[lane] = value;
}

/// Lists: `list` results (none for red), `list2` sources.
Flow execute_atomic(Warp& warp, const Instruction& instruction) {
  const Modifiers m = Modifiers::unpack(instruction.modifiers);
  std::byte* at[kLanes];
  uint32_t bytes = m.element_bytes * instruction.list2_count;
  resolve(warp, m.space, instruction.address, bytes, bytes, Access::atomic, at);
  bool changed = false;
  for_lanes(warp.active, [&](int lane) {
    bool global = (m.number == Number::f32 || m.number == Number::f64) && in_global(warp, instruction, m.space, lane);
    for (uint32_t i = 0; i < instruction.list2_count; ++i) {
      std::byte* place = at[lane] + i * m.element_bytes;
      uint64_t old = 0, b = value_of(warp, warp.listed(instruction.list2, i), lane);
      std::memcpy(&old, place, m.element_bytes);
      uint64_t fresh = apply(m, old, b, global);
      changed = changed || std::memcmp(place, &fresh, m.element_bytes) != 0;
      std::memcpy(place, &fresh, m.element_bytes);
      if (instruction.list_count) put(warp, warp.listed(instruction.list, i), lane, old);
    }
  });
  if (changed) warp.cta.cluster.note_effect();  // who tries for a lock in vain has done nothing
  return Flow::next;
}

/// Operands: 0 result, 1 value, 2 what cas compares with (absent: exchange).
template <class T>
Flow execute_exchange(Warp& warp, const Instruction& instruction) {
  const Modifiers m = Modifiers::unpack(instruction.modifiers);
  std::byte* at[kLanes];
  resolve(warp, m.space, instruction.address, sizeof(T), sizeof(T), Access::atomic, at);
  const T* value = warp.read<T>(instruction.operand[1]);
  const T* expected = instruction.operand[2].present() ? warp.read<T>(instruction.operand[2]) : nullptr;
  T* d = warp.write<T>(instruction.operand[0]);
  bool changed = false;
  for_lanes(warp.active, [&](int lane) {
    T old, fresh = value[lane];
    std::memcpy(&old, at[lane], sizeof(T));
    if (!expected || old == expected[lane]) {
      changed = changed || old != fresh;
      std::memcpy(at[lane], &fresh, sizeof(T));
    }
    d[lane] = old;
  });
  if (changed) warp.cta.cluster.note_effect();
  return Flow::next;
}

Operation take_operation(Binder& binder) {
  constexpr struct {
    std::string_view name;
    Operation operation;
  } kOperations[] = {
      {"add", Operation::add},        {"min", Operation::minimum},    {"max", Operation::maximum},
      {"inc", Operation::increment},  {"dec", Operation::decrement},  {"and", Operation::conjunction},
      {"or", Operation::disjunction}, {"xor", Operation::difference}, {"exch", Operation::exchange},
  };
  for (const auto& row : kOperations)
    if (binder.take(row.name)) return row.operation;
  binder.refuse("an operation is wanted");
}

bool is_logic(Operation operation) {
  return operation == Operation::conjunction || operation == Operation::disjunction ||
         operation == Operation::difference || operation == Operation::exchange;
}

/// Which operations exist on which types: PTX ISA, atom, table of .op and .type.
Modifiers take_type(Binder& binder, Operation operation) {
  bool noftz = binder.take("noftz");
  std::string_view type = binder.take_next();
  bool halves = type.starts_with("f16") || type.starts_with("bf16");
  bool extreme = operation == Operation::minimum || operation == Operation::maximum;
  bool ok = false;
  Modifiers m{.space = {}, .operation = operation, .number = {}, .element_bytes = 4, .pairs = false};
  if (halves) {
    m.number = type.starts_with("f16") ? Number::f16 : Number::bf16;
    m.pairs = type.ends_with("x2");
    m.element_bytes = m.pairs ? 4 : 2;
    ok = noftz && (operation == Operation::add || extreme);
  } else if (type == "f32" || type == "f64") {
    m.number = type == "f32" ? Number::f32 : Number::f64;
    m.element_bytes = type == "f32" ? 4 : 8;
    ok = operation == Operation::add;
  } else if (type == "b32" || type == "b64") {
    m.number = type == "b32" ? Number::u32 : Number::u64;
    m.element_bytes = type == "b32" ? 4 : 8;
    ok = is_logic(operation);
  } else {
    bool counts = operation == Operation::increment || operation == Operation::decrement;
    if (type == "u32") m.number = Number::u32, ok = operation == Operation::add || extreme || counts;
    if (type == "s32") m.number = Number::s32, ok = operation == Operation::add || extreme;
    if (type == "u64") m.number = Number::u64, ok = operation == Operation::add || extreme;
    if (type == "s64") m.number = Number::s64, ok = operation == Operation::add || extreme;
    m.element_bytes = type.ends_with("64") ? 8 : 4;
    // Old code writes exch, and, or, xor with a number's type.
    if (is_logic(operation) && (type == "u32" || type == "s32" || type == "u64" || type == "s64")) ok = true;
  }
  if (!ok) refuse_type(binder, type);
  return m;
}

void bind_exchange(Binder& binder, const Qualifiers& qualifiers, bool compares) {
  std::string_view type = binder.take_next();
  Instruction& out = binder.out;
  uint8_t bytes = type == "b128"              ? 16
                  : type.ends_with("64")      ? 8
                  : type.ends_with("32")      ? 4
                  : type == "b16" && compares ? 2
                                              : 0;
  if (bytes == 0) refuse_type(binder, type);
  out.execute = bytes == 2   ? execute_exchange<uint16_t>
                : bytes == 4 ? execute_exchange<uint32_t>
                : bytes == 8 ? execute_exchange<uint64_t>
                             : execute_exchange<Quad>;
  out.operand[0] = result(binder, 0, bytes);
  if (compares) out.operand[2] = source(binder, 2, bytes);
  out.operand[1] = source(binder, compares ? 3 : 2, bytes);
  out.address = bind_address(binder, 1, qualifiers.space);
  out.modifiers = Modifiers{qualifiers.space, Operation::exchange, Number::u32, bytes, false}.packed();
  if (binder.count() != (compares ? 4u : 3u) + (qualifiers.has_policy ? 1u : 0u))
    binder.refuse("the number of operands does not fit");
}

void bind(Binder& binder, bool reads) {
  if (!reads && binder.take("async")) return bind_reduce_async(binder);
  Qualifiers qualifiers = take_qualifiers(binder);
  qualifiers.strong = true;  // .relaxed is the default, at .gpu scope
  binder.out.order |= Instruction::kStrong;
  binder.out.visible = qualifiers.visible();
  if (qualifiers.space != MemorySpace::generic && qualifiers.space != MemorySpace::global &&
      qualifiers.space != MemorySpace::shared)
    binder.refuse("atomic operations exist on global and shared memory");
  if (reads && binder.take("cas")) return bind_exchange(binder, qualifiers, true);
  if (reads && binder.take("exch")) return bind_exchange(binder, qualifiers, false);
  Operation operation = take_operation(binder);
  std::string_view vector = binder.take_any({"v2", "v4", "v8"});
  Modifiers m = take_type(binder, operation);
  m.space = qualifiers.space;
  if (!vector.empty() && (m.number == Number::f64 || m.number < Number::f32))
    binder.refuse("vectors are of f32, f16, bf16 or pairs");
  size_t address = reads ? 1 : 0;
  if (binder.count() != address + 2 + (qualifiers.has_policy ? 1 : 0))
    binder.refuse("the number of operands does not fit");
  Instruction& out = binder.out;
  out.address = bind_address(binder, address, qualifiers.space);
  std::vector<Slot> sources = binder.inputs(binder.operand(address + 1), m.element_bytes);
  size_t wanted = vector.empty() ? 1 : static_cast<size_t>(vector[1] - '0');
  if (sources.size() != wanted) binder.refuse("the number of registers does not fit the vector");
  for (const Slot& slot : sources)
    if (slot.bytes != m.element_bytes) binder.refuse("a register has the wrong width");
  if (reads) {
    std::vector<Slot> results = binder.outputs(binder.operand(0));
    if (results.size() != wanted) binder.refuse("the number of registers does not fit the vector");
    for (Slot& slot : results) {
      if (!slot.present()) slot = {.offset = scratch(binder).offset, .bytes = m.element_bytes};
      if (slot.bytes != m.element_bytes) binder.refuse("a register has the wrong width");
    }
    out.list_count = static_cast<uint32_t>(results.size());
    out.list = binder.list(results);
  }
  out.list2_count = static_cast<uint32_t>(sources.size());
  out.list2 = binder.list(sources);
  out.modifiers = m.packed();
  out.execute = execute_atomic;
}

}  // namespace

void bind_atom(Binder& binder) {
  bind(binder, true);
}
void bind_red(Binder& binder) {
  bind(binder, false);
}

}  // namespace emu::isa
