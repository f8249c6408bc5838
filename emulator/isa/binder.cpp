#include "emulator/isa/binder.h"

#include <cstring>
#include <map>
#include <stdexcept>

#include "emulator/machine/decoder.h"
#include "emulator/machine/reserved_shared.h"

namespace emu::isa {
namespace {

using What = WarpValue::What;
using Kind = ptx::Operand::Kind;

struct Special {
  What what;
  uint8_t bytes;
};

/// Special registers whose value a warp knows from its start. Clocks and timers are read when they are reached: see
/// move.cpp.
const Special* find_special(std::string_view name, char component) {
  static const std::map<std::string, Special, std::less<>> kSpecials = [] {
    std::map<std::string, Special, std::less<>> map;
    auto triple = [&](const char* reg, What x, What y, What z) {
      map[std::string(reg) + ".x"] = {x, 4};
      map[std::string(reg) + ".y"] = {y, 4};
      map[std::string(reg) + ".z"] = {z, 4};
      map[std::string(reg) + ".w"] = {What::zero, 4};
    };
    triple("%tid", What::tid_x, What::tid_y, What::tid_z);
    triple("%ntid", What::ntid_x, What::ntid_y, What::ntid_z);
    triple("%ctaid", What::ctaid_x, What::ctaid_y, What::ctaid_z);
    triple("%nctaid", What::nctaid_x, What::nctaid_y, What::nctaid_z);
    triple("%clusterid", What::clusterid_x, What::clusterid_y, What::clusterid_z);
    triple("%nclusterid", What::nclusterid_x, What::nclusterid_y, What::nclusterid_z);
    triple("%cluster_ctaid", What::cluster_ctaid_x, What::cluster_ctaid_y, What::cluster_ctaid_z);
    triple("%cluster_nctaid", What::cluster_nctaid_x, What::cluster_nctaid_y, What::cluster_nctaid_z);
    map["%laneid"] = {What::laneid, 4};
    map["%warpid"] = {What::warpid, 4};
    map["%nwarpid"] = {What::nwarpid, 4};
    map["%smid"] = {What::smid, 4};
    map["%nsmid"] = {What::nsmid, 4};
    map["%gridid"] = {What::gridid, 8};
    map["%lanemask_eq"] = {What::lanemask_eq, 4};
    map["%lanemask_le"] = {What::lanemask_le, 4};
    map["%lanemask_lt"] = {What::lanemask_lt, 4};
    map["%lanemask_ge"] = {What::lanemask_ge, 4};
    map["%lanemask_gt"] = {What::lanemask_gt, 4};
    map["%envreg1"] = {What::workspace_high, 4};
    map["%envreg2"] = {What::workspace_low, 4};
    map["%cluster_ctarank"] = {What::cluster_ctarank, 4};
    map["%cluster_nctarank"] = {What::cluster_nctarank, 4};
    map["%is_explicit_cluster"] = {What::is_explicit_cluster, 0};
    map["%dynamic_smem_size"] = {What::dynamic_smem_size, 4};
    map["%total_smem_size"] = {What::total_smem_size, 4};
    map["%aggr_smem_size"] = {What::aggr_smem_size, 4};
    return map;
  }();
  std::string key(name);
  if (component) key += std::string(".") + component;
  auto it = kSpecials.find(key);
  return it == kSpecials.end() ? nullptr : &it->second;
}

}  // namespace

Binder::Binder(Decoder& decoder, const ptx::Instruction& source_, Instruction& out_)
    : source(source_), out(out_), decoder_(decoder) {}

bool Binder::take(std::string_view modifier) {
  auto modifiers = source.modifiers();
  for (size_t i = 0; i < modifiers.size(); ++i)
    if (modifiers[i] == modifier && !(taken_ >> i & 1)) {
      taken_ |= 1u << i;
      return true;
    }
  return false;
}

std::string_view Binder::take_any(std::initializer_list<std::string_view> choices) {
  for (std::string_view choice : choices)
    if (take(choice)) return choice;
  return {};
}

std::string_view Binder::next() const {
  auto modifiers = source.modifiers();
  for (size_t i = 0; i < modifiers.size(); ++i)
    if (!(taken_ >> i & 1)) return modifiers[i];
  return {};
}

std::string_view Binder::take_next() {
  std::string_view modifier = next();
  if (modifier.empty()) refuse("a modifier is missing");
  take(modifier);
  return modifier;
}

void Binder::done() const {
  std::string left;
  auto modifiers = source.modifiers();
  for (size_t i = 0; i < modifiers.size(); ++i)
    if (!(taken_ >> i & 1) && modifiers[i] != "aligned") left += "." + std::string(modifiers[i]);
  if (!left.empty()) refuse("the emulator does not execute it with " + left);
}

void Binder::refuse(const std::string& why) const {
  throw Unimplemented(source.opcode->text + ": " + why);
}

const ptx::Operand& Binder::operand(size_t i) const {
  if (i >= source.operands.size()) refuse("operand " + std::to_string(i + 1) + " is missing");
  return source.operands[i];
}

Slot Binder::constant(uint64_t value, uint8_t bytes) {
  return decoder_.constant(value, 0, bytes);
}
Slot Binder::zero_address() {
  return constant(0, 8);
}

Slot Binder::input(const ptx::Operand& operand, uint8_t bytes) {
  switch (operand.kind) {
    case Kind::reg: {
      Slot slot = decoder_.register_slot(operand.index);
      slot.negated = operand.negated;
      return slot;
    }
    case Kind::special: {
      if (const Special* special = find_special(operand.name, operand.component))
        return decoder_.warp_value(special->what, special->bytes);
      // What the driver may set and does not, what profilers read, and the graph that a launch is not part of.
      if (operand.name.starts_with("%envreg")) return constant(0, 4);
      if (operand.name.starts_with("%pm")) return constant(0, operand.name.ends_with("_64") ? 8 : 4);
      if (operand.name == "%current_graph_exec") return constant(0, 8);
      // The chip's own part of a CTA's shared memory: what it uses of it (an H200), and all.
      if (operand.name == "%reserved_smem_offset_begin") return constant(0, 4);
      if (operand.name == "%reserved_smem_offset_end") return constant(kGroupsOffset + kGroupsBytes, 4);
      if (operand.name == "%reserved_smem_offset_cap") return constant(decoder_.chip().shared_reserved_bytes, 4);
      if (operand.name == "%reserved_smem_offset_1") return constant(kGroupsOffset, 4);
      refuse("the emulator does not know the special register " + std::string(operand.name) +
             (operand.component ? std::string(".") + operand.component : ""));
    }
    case Kind::integer:
      return constant(bytes == 8 || bytes == 16 ? static_cast<uint64_t>(operand.value)
                      : bytes == 0 ? static_cast<uint64_t>(operand.value != 0) != static_cast<uint64_t>(operand.negated)
                                   : static_cast<uint64_t>(operand.value) & ((uint64_t{1} << (bytes * 8)) - 1),
                      bytes);
    case Kind::real: {
      if (bytes == 8) {
        if (operand.real_width == 64) return constant(operand.real_bits, 8);
        float f;
        uint32_t bits = static_cast<uint32_t>(operand.real_bits);
        std::memcpy(&f, &bits, 4);
        double d = f;
        uint64_t wide;
        std::memcpy(&wide, &d, 8);
        return constant(wide, 8);
      }
      if (bytes != 4) refuse("a floating-point literal where a value of " + std::to_string(bytes) + " bytes is wanted");
      if (operand.real_width == 32) return constant(operand.real_bits, 4);
      double d;
      std::memcpy(&d, &operand.real_bits, 8);
      float f = static_cast<float>(d);
      uint32_t bits;
      std::memcpy(&bits, &f, 4);
      return constant(bits, 4);
    }
    case Kind::symbol:
      return decoder_.symbol_address(operand.symbol, operand.value, bytes);
    case Kind::function:
      if (bytes != 8) refuse("the address of a function has 64 bits");
      return decoder_.function_address(operand.index);
    default:
      refuse("an operand is of a kind that the emulator does not take here");
  }
}

Slot Binder::output(const ptx::Operand& operand) {
  if (operand.kind == Kind::sink) return Slot::none();
  if (operand.kind != Kind::reg) refuse("a result that is not a register");
  return decoder_.register_slot(operand.index);
}

int64_t Binder::immediate(size_t i) const {
  const ptx::Operand& op = operand(i);
  if (op.kind != Kind::integer) refuse("operand " + std::to_string(i + 1) + " must be an integer constant here");
  return op.value;
}

AddressOperand Binder::address(const ptx::Operand& operand) {
  if (operand.kind != Kind::address) refuse("an address in brackets is wanted");
  AddressOperand address{.base = Slot::none(), .offset = operand.value};
  switch (operand.address_base) {
    case ptx::Operand::Base::reg:
      address.base = decoder_.register_slot(operand.index);
      break;
    case ptx::Operand::Base::symbol: {
      uint8_t bytes = decoder_.space_of(operand.symbol) == ptx::Space::shared ? 4 : 8;
      address.base = decoder_.symbol_address(operand.symbol, 0, bytes);
      break;
    }
    case ptx::Operand::Base::element:
      refuse("an address of the form name[register]");
    case ptx::Operand::Base::none:
      break;
  }
  return address;
}

std::optional<ptx::Space> Binder::symbol_space(const ptx::Operand& address) const {
  if (address.kind == Kind::address && address.address_base == ptx::Operand::Base::symbol)
    return decoder_.space_of(address.symbol);
  return std::nullopt;
}

void Binder::second_addresses(const std::vector<AddressOperand>& addresses) {
  std::vector<Slot> slots;
  for (const AddressOperand& address : addresses) {
    slots.push_back(address.base);
    slots.push_back(constant(static_cast<uint64_t>(address.offset), 8));
  }
  out.list2 = list(slots);
  out.list2_count = static_cast<uint32_t>(slots.size());
}

uint32_t Binder::list(const std::vector<Slot>& slots) {
  std::vector<Slot>& lists = decoder_.program().slot_lists;
  uint32_t first = static_cast<uint32_t>(lists.size());
  lists.insert(lists.end(), slots.begin(), slots.end());
  return first;
}

std::vector<Slot> Binder::inputs(const ptx::Operand& vector, uint8_t bytes) {
  if (vector.kind != Kind::vector) return {input(vector, bytes)};
  std::vector<Slot> slots;
  for (const ptx::Operand& child : vector.children) slots.push_back(input(child, bytes));
  return slots;
}

std::vector<Slot> Binder::outputs(const ptx::Operand& vector) {
  if (vector.kind != Kind::vector) return {output(vector)};
  std::vector<Slot> slots;
  for (const ptx::Operand& child : vector.children) slots.push_back(output(child));
  return slots;
}

}  // namespace emu::isa
