// st.async and red.async: stores and reductions in another CTA's shared memory that tell an mbarrier there when they
// are done. PTX ISA, "st.async", "red.async".

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "emulator/isa/families.h"
#include "emulator/isa/tma_issue.h"
#include "emulator/machine/grid.h"

namespace emu::isa {
namespace {

enum class Operation : uint64_t {
  store,
  add,
  minimum,
  maximum,
  increment,
  decrement,
  conjunction,
  disjunction,
  difference
};

// Instruction: address and, in list2, the barrier's; list: the values; immediate: bytes of each. Modifiers: operation,
// and these bits.
constexpr uint64_t kGeneric = 1 << 8, kSigned = 1 << 9;

using Bytes = std::array<std::byte, 16>;

uint64_t combine(Operation operation, bool is_signed, uint64_t old, uint64_t value) {
  switch (operation) {
    case Operation::store:
      return value;
    case Operation::add:
      return old + value;
    case Operation::minimum:
      if (is_signed) return static_cast<int32_t>(old) < static_cast<int32_t>(value) ? old : value;
      return std::min(old, value);
    case Operation::maximum:
      if (is_signed) return static_cast<int32_t>(old) > static_cast<int32_t>(value) ? old : value;
      return std::max(old, value);
    case Operation::increment:
      return old >= value ? 0 : old + 1;
    case Operation::decrement:
      return old == 0 || old > value ? value : old - 1;
    case Operation::conjunction:
      return old & value;
    case Operation::disjunction:
      return old | value;
    case Operation::difference:
      return old ^ value;
  }
  return value;
}

uint32_t cluster_address(const Warp& warp, const AddressOperand& operand, bool generic, int lane) {
  uint64_t address = warp.address(operand, lane);
  if (!generic) return static_cast<uint32_t>(address);
  if (!is_shared(address))
    throw Trap(FaultCode::invalid_address_space,
               fmt::format("{:#x} is not in the shared memory of the cluster", address),
               "PTX ISA, st.async: generic addresses must fall within shared::cluster");
  return static_cast<uint32_t>(address - kSharedWindow);
}

void issue(Warp& warp, const Instruction& instruction, int lane) {
  constexpr const char* kSource = "PTX ISA, st.async, red.async";
  Cluster& cluster = warp.cta.cluster;
  const bool generic = instruction.modifiers & kGeneric, is_signed = instruction.modifiers & kSigned;
  const auto operation = static_cast<Operation>(instruction.modifiers & 0xFF);
  const auto element = static_cast<uint32_t>(instruction.immediate);
  const uint32_t bytes = element * instruction.list_count;
  const uint32_t to = cluster_address(warp, instruction.address, generic, lane);
  // The barrier told is the one beside the data, whatever rank the operand names (so does an H200).
  const uint32_t barrier =
      (to & ~0xFFFFFFu) | shared_offset(cluster_address(warp, warp.second_address(instruction, 0), generic, lane));
  cluster.act_as(cluster.origin(warp, lane));
  if (!cluster.grid.explicit_cluster)
    throw Trap(FaultCode::illegal_instruction,
               "asynchronous store in a launch without clusters: it needs one (an H200 faults with 715)", kSource);
  if (to % bytes)
    throw Trap(FaultCode::misaligned_address,
               fmt::format("{} bytes at shared address {:#x}: the address must be a multiple of {}", bytes, to, bytes),
               kSource);
  if (cluster.drops(cluster.cta_of(to), cluster.origin(warp, lane), "an asynchronous store")) return;
  cluster.shared(to, bytes, Access::write);
  mbarrier::need_plausible(cluster.mbarrier_word(barrier, Access::atomic));
  Bytes value{};
  for (uint32_t i = 0; i < instruction.list_count; ++i) {
    uint64_t part = warp.scalar(warp.listed(instruction.list, i), lane);
    std::memcpy(value.data() + i * element, &part, element);
  }
  Origin who = cluster.origin(warp, lane);
  warp.counters.bytes_into_shared += bytes;
  Cluster::Times times = cluster.draw_times();
  const auto announced = announce_bytes(warp, lane, barrier);
  cluster.at(times.show, cluster.cta_of(to), who, {.signal = barrier}, [=, &cluster] {
    if (cluster.drops(cluster.cta_of(to), who, "an asynchronous store")) return;
    bytes_shown(cluster, announced, hazards::Kind::store_async, cluster.cta_of(to), barrier,
                {{shared_offset(to), bytes}});
    std::byte* place = cluster.shared(to, bytes, Access::write);
    if (operation == Operation::store) {
      std::memcpy(place, value.data(), bytes);
    } else {
      uint64_t old = 0, operand = 0;
      std::memcpy(&old, place, element);
      std::memcpy(&operand, value.data(), element);
      uint64_t fresh = combine(operation, is_signed, old, operand);
      std::memcpy(place, &fresh, element);
    }
    complete_bytes(cluster, barrier, bytes, who);
  });
}

Flow execute(Warp& warp, const Instruction& instruction) {
  for_lanes(warp.active, [&](int lane) { issue(warp, instruction, lane); });
  return Flow::next;
}

/// [a], b, [mbar]; everything but the operation and the type has been taken.
void bind(Binder& binder, uint8_t element, size_t elements) {
  Instruction& out = binder.out;
  if (binder.count() != 3) binder.refuse("[a], b, [mbar] are wanted");
  out.address = binder.address(0);
  std::vector<Slot> values = binder.inputs(binder.operand(1), element);
  if (values.size() != elements) binder.refuse("the number of registers does not fit the vector");
  for (const Slot& slot : values)
    if (slot.bytes != element) binder.refuse("a register has the wrong width");
  out.list = binder.list(values);
  out.list_count = static_cast<uint32_t>(values.size());
  binder.second_addresses({binder.address(2)});
  out.immediate = element;
  out.execute = execute;
}

void take_completion(Binder& binder) {
  if (!binder.take("mbarrier::complete_tx::bytes"))
    binder.refuse("the form without .mbarrier::complete_tx::bytes is not executed");
  binder.out.modifiers = binder.take("shared::cluster") ? 0 : kGeneric;
}

}  // namespace

void bind_store_async(Binder& binder) {
  binder.take("weak");
  take_completion(binder);
  std::string_view vector = binder.take_any({"v2", "v4"}), type = binder.take_next();
  uint8_t element = type.ends_with("64") ? 8 : type.ends_with("32") ? 4 : 0;
  size_t elements = vector.empty() ? 1 : static_cast<size_t>(vector[1] - '0');
  if (!element || element * elements > 16) binder.refuse("32- or 64-bit values of at most 16 bytes are wanted");
  bind(binder, element, elements);
}

void bind_reduce_async(Binder& binder) {
  binder.take("relaxed");
  binder.take("cluster");
  take_completion(binder);
  constexpr std::pair<std::string_view, Operation> kOperations[] = {
      {"inc", Operation::increment},  {"dec", Operation::decrement}, {"min", Operation::minimum},
      {"max", Operation::maximum},    {"add", Operation::add},       {"and", Operation::conjunction},
      {"or", Operation::disjunction}, {"xor", Operation::difference}};
  Operation operation = Operation::store;
  for (auto [name, candidate] : kOperations)
    if (binder.take(name)) operation = candidate;
  if (operation == Operation::store) binder.refuse("the operation is missing");
  std::string_view type = binder.take_next();
  // Which exist: PTX ISA, red.async.
  bool counts = operation == Operation::increment || operation == Operation::decrement;
  bool logic = operation >= Operation::conjunction, adds = operation == Operation::add;
  bool known = logic    ? type == "b32"
               : counts ? type == "u32"
                        : type == "u32" || type == "s32" || (adds && type == "u64");
  if (!known) binder.refuse("red.async has no such operation on ." + std::string(type));
  binder.out.modifiers |= static_cast<uint64_t>(operation) | (type == "s32" ? kSigned : 0);
  bind(binder, type == "u64" ? 8 : 4, 1);
}

}  // namespace emu::isa
