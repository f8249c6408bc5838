// wgmma: mma_async, fence, commit_group, wait_group. PTX ISA, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate
// Instructions". What happens between issue and result: warpgroup.h.

#include <fmt/format.h>

#include "emulator/isa/families.h"
#include "emulator/isa/warpgroup.h"
#include "emulator/machine/decoder.h"

namespace emu::isa {
namespace {

Flow execute_mma(Warp& warp, const Instruction& instruction) {
  return Warpgroup::of(warp).issue(warp, instruction) ? Flow::next : Flow::parked;
}

Flow execute_commit(Warp& warp, const Instruction&) {
  Warpgroup::of(warp).commit(warp);
  return Flow::next;
}

Flow execute_wait(Warp& warp, const Instruction& instruction) {
  return Warpgroup::of(warp).wait(warp, static_cast<uint64_t>(instruction.immediate)) ? Flow::next : Flow::parked;
}

/// Orders register accesses of this warp with the wgmma that follow. Here they are in order.
Flow execute_fence(Warp& warp, const Instruction&) {
  Warpgroup::of(warp);
  return Flow::next;
}

/// m64nNkK. Returns N, 0 when it is no such shape or K is another.
uint32_t columns_of(std::string_view shape, uint32_t k) {
  for (uint32_t n = 8; n <= 256; n += 8)
    if (shape == fmt::format("m64n{}k{}", n, k)) return n;
  return 0;
}

bool is_integer(ElementType type) {
  return type == ElementType::u8 || type == ElementType::s8;
}

/// D, A and B types. PTX ISA: tables of wgmma.mma_async.
void bind_types(Binder& binder, WgmmaForm& form) {
  const std::string_view d = binder.take_next(), a = binder.take_next(), b = binder.take_next();
  const auto element = [&](std::string_view name) {
    for (ElementType type : {ElementType::f16, ElementType::bf16, ElementType::tf32, ElementType::e4m3,
                             ElementType::e5m2, ElementType::u8, ElementType::s8})
      if (name == emu::name(type)) return type;
    binder.refuse(fmt::format("the emulator does not execute it on type .{}", name));
  };
  form.a = element(a);
  form.b = element(b);
  for (AccumulatorType type : {AccumulatorType::f16, AccumulatorType::f32, AccumulatorType::s32})
    if (d == name(type)) form.d = type;
  const bool wide = element_bytes(form.a) > 1 || element_bytes(form.b) > 1;
  const bool alike = wide ? form.a == form.b : is_integer(form.a) == is_integer(form.b);
  const bool fits = is_integer(form.a) ? d == "s32"
                    : d == "f16"       ? form.a != ElementType::bf16 && form.a != ElementType::tf32
                                       : d == "f32";
  if (!alike || !fits) binder.refuse(fmt::format("there is no form with D .{}, A .{}, B .{}", d, a, b));
}

/// The immediates behind scale-d: 1 or -1 twice, then which operands are MN-major.
void bind_immediates(Binder& binder, WgmmaForm& form, bool a_in_registers) {
  size_t next = 4;
  const auto one_of = [&](const char* what, int64_t first, int64_t second) {
    const int64_t value = binder.immediate(next++);
    if (value != first && value != second)
      binder.refuse(fmt::format("{} is {}; it must be {} or {}", what, value, first, second));
    return value == second;
  };
  if (!is_integer(form.a)) {
    form.negate_a = one_of("imm-scale-a", 1, -1);
    form.negate_b = one_of("imm-scale-b", 1, -1);
  }
  if (element_bytes(form.a) == 2) {
    if (!a_in_registers && one_of("imm-trans-a", 0, 1)) form.a_major = Major::mn;
    if (one_of("imm-trans-b", 0, 1)) form.b_major = Major::mn;
  }
  if (binder.count() != next) binder.refuse(fmt::format("{} operands are wanted, not {}", next, binder.count()));
}

void bind_mma_async(Binder& binder) {
  Instruction& out = binder.out;
  if (binder.source.has("sp")) binder.refuse("the emulator does not execute sparse wgmma (.sp)");
  if (!binder.decoder().chip().has_wgmma) binder.refuse("only sm_90a has it");
  if (!binder.take("sync") || !binder.source.has("aligned")) binder.refuse(".sync.aligned is wanted");
  binder.take("aligned");
  const std::string_view shape = binder.take_next();
  WgmmaForm form;
  form.saturate = binder.take("satfinite");
  bind_types(binder, form);
  if (form.saturate && !is_integer(form.a)) binder.refuse(".satfinite is for integers");
  form.n = columns_of(shape, elements_per_step(form.a));
  const bool steps_of_16 = !is_integer(form.a) || form.n == 8 || form.n == 24 || form.n % 16 == 0;
  if (form.n == 0 || !steps_of_16)
    binder.refuse(fmt::format("shape .{} does not exist for .{}: m64nNk{}, N 8 to 256 in steps of 8{}", shape,
                              name(form.a), elements_per_step(form.a),
                              is_integer(form.a) ? " up to 32, then of 16" : ""));

  // {d}, a-desc | {a}, b-desc, scale-d{, imm-scale-a, imm-scale-b{, imm-trans-a}{, imm-trans-b}}
  const auto registers = [&](size_t operand, uint32_t count, const char* what) {
    std::vector<Slot> slots;
    if (binder.is_vector(operand)) slots = binder.outputs(binder.operand(operand));
    for (const Slot& slot : slots)
      if (slot.bytes != 4) binder.refuse(fmt::format("{} wants registers of 32 bits", what));
    if (slots.size() != count) binder.refuse(fmt::format("{} takes {} registers, not {}", what, count, slots.size()));
    return binder.list(slots);
  };
  out.list_count = accumulator_registers(form.d, form.n);
  out.list = registers(0, out.list_count, "D");
  if (binder.is_vector(1)) {
    out.list2_count = 4;
    out.list2 = registers(1, 4, "A");
  } else {
    out.operand[0] = binder.input(1, 8);
  }
  out.operand[1] = binder.input(2, 8);
  out.operand[2] = binder.input(3, 0);
  bind_immediates(binder, form, binder.is_vector(1));
  out.modifiers = form.packed();
  out.drains = true;
  out.execute = execute_mma;
}

void bind_wgmma(Binder& binder) {
  Instruction& out = binder.out;
  if (binder.take("mma_async")) {
    bind_mma_async(binder);
    return;
  }
  out.drains = true;
  if (binder.take("fence")) {
    out.execute = execute_fence;
  } else if (binder.take("commit_group")) {
    out.execute = execute_commit;
  } else if (binder.take("wait_group")) {
    out.immediate = binder.immediate(0);
    if (out.immediate < 0) binder.refuse("the number of pending groups must not be negative");
    out.execute = execute_wait;
  } else {
    binder.refuse("the emulator does not execute this operation");
  }
  if (!binder.take("sync") || !binder.source.has("aligned")) binder.refuse(".sync.aligned is wanted");
}

constexpr Entry kEntries[] = {{"wgmma", bind_wgmma}};

}  // namespace

std::span<const Entry> wgmma_entries() {
  return kEntries;
}

}  // namespace emu::isa
