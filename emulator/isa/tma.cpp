// Bulk copies by the TMA unit: cp.async.bulk, cp.async.bulk.tensor, cp.reduce.async.bulk(.tensor), their groups and
// prefetches. PTX ISA, "cp.async.bulk", "cp.async.bulk.tensor", "cp.async.bulk.commit_group",
// "cp.async.bulk.wait_group". What moves where is in units/tma.h; here is who asks, when it happens, and who is told.

#include "emulator/units/tma.h"

#include <fmt/format.h>

#include <memory>

#include "emulator/isa/families.h"
#include "emulator/machine/cluster.h"
#include "emulator/machine/mbarrier.h"

namespace emu::isa {
namespace {

// ---- operands
// -----------------------------------------------------------------------------------------------------------

// operand 0: coordinates are in the list; 1: size in bytes; 2: multicast mask; 3: second address's base; 4: barrier's
// base. address: the first address. Offsets of the other two lie in the extra slots of list2 as constants.
constexpr uint64_t kMulticast = 1, kReduce = 2;
constexpr int kReductionShift = 8, kTypeShift = 16;

AddressOperand second_address(const Warp& warp, const Instruction& instruction, uint32_t which) {
  return {.base = warp.listed(instruction.list2, 2 * which),
          .offset = static_cast<int64_t>(*warp.read<uint64_t>(warp.listed(instruction.list2, 2 * which + 1)))};
}

/// Addresses after the first one, as pairs of slots: base (or none), offset.
void set_addresses(Binder& binder, const std::vector<AddressOperand>& addresses) {
  std::vector<Slot> slots;
  for (const AddressOperand& address : addresses) {
    slots.push_back(address.base);
    slots.push_back(binder.constant(static_cast<uint64_t>(address.offset), 8));
  }
  binder.out.list2 = binder.list(slots);
  binder.out.list2_count = static_cast<uint32_t>(slots.size());
}

uint32_t shared_address(const Warp& warp, const AddressOperand& operand, int lane) {
  return static_cast<uint32_t>(warp.address(operand, lane));
}

tma::Window window_of(Cta& cta) {
  if (cta.window.empty())
    throw Trap(FaultCode::illegal_address,
               fmt::format("bulk copy to or from CTA {} of the cluster, which has exited", cta.rank),
               "PTX ISA, shared::cluster: the CTA must be running");
  return {cta.window.data(), cta.window_bytes};
}

TensorMap read_map(Warp& warp, uint64_t address) {
  return decode_tensor_map(warp.cta.cluster.generic(warp, 0, address, kTensorMapBytes, Access::read), address);
}

std::vector<int32_t> read_coordinates(const Warp& warp, const Instruction& instruction, int lane) {
  std::vector<int32_t> coordinates;
  for (uint32_t i = 0; i < instruction.list_count; ++i)
    coordinates.push_back(static_cast<int32_t>(warp.read<uint32_t>(warp.listed(instruction.list, i))[lane]));
  return coordinates;
}

/// CTAs that a load writes to: the one that the address names, or those of the multicast mask.
std::vector<Cta*> destinations(Warp& warp, const Instruction& instruction, int lane, uint32_t address) {
  Cluster& cluster = warp.cta.cluster;
  if (!(instruction.modifiers & kMulticast)) return {&cluster.cta_of(address)};
  uint32_t mask = static_cast<uint32_t>(warp.scalar(instruction.operand[2], lane)) & 0xFFFF;
  if (mask == 0 || mask >> cluster.ctas.size())
    throw Trap(FaultCode::illegal_instruction,
               fmt::format("multicast to CTAs {:#06x} of a cluster of {}", mask, cluster.ctas.size()),
               "PTX ISA, cp.async.bulk: .multicast::cluster");
  std::vector<Cta*> ctas;
  for_lanes(mask, [&](int rank) { ctas.push_back(cluster.ctas[static_cast<size_t>(rank)].get()); });
  return ctas;
}

// ---- telling who waits
// --------------------------------------------------------------------------------------------------

/// The barrier at `barrier`'s offset in `cta` gets its bytes (on an H200 the rank that the operand names does not
/// matter).
void complete_bytes(Cluster& cluster, Cta& cta, uint32_t barrier, uint64_t bytes, const Origin& who) {
  uint32_t address = cta.rank << 24 | shared_offset(barrier);
  mbarrier::Outcome outcome =
      mbarrier::complete_tx(cluster.mbarrier_word(address, Access::atomic), static_cast<uint32_t>(bytes));
  cluster.mbarrier_signal(address, who, "bytes of a copy");
  cluster.mbarrier_store(address, outcome.word, outcome.completed);
}

/// True when all but the `allowed` most recent committed groups of the lane are done (reading only, or altogether).
bool groups_done(const Warp& warp, int lane, uint64_t allowed, bool reading) {
  auto it = warp.bulk.find(static_cast<uint32_t>(lane));
  if (it == warp.bulk.end()) return true;
  const auto& groups = it->second.groups;
  size_t committed = groups.size() - 1;
  for (size_t i = 0; i + allowed < committed; ++i)
    if (groups[i].reading || (!reading && groups[i].writing)) return false;
  return true;
}

void check_group_waiters(Cluster& cluster, Warp& warp) {
  for (size_t i = 0; i < warp.groups.size(); ++i) {
    Group& group = *warp.groups[i];
    if (group.state != Group::State::parked || group.wait.kind != WaitKind::bulk_group) continue;
    bool done = true;
    for_lanes(group.mask,
              [&](int lane) { done = done && groups_done(warp, lane, group.wait.address, group.wait.parity); });
    if (done) cluster.wake(group);
  }
}

/// A bulk_group operation, from issue to end: counts in its group and wakes who waits for it.
struct GroupTicket {
  Warp* warp;
  uint32_t lane;
  uint64_t group;

  static GroupTicket issue(Warp& warp, int lane) {
    BulkGroups& bulk = warp.bulk[static_cast<uint32_t>(lane)];
    bulk.groups.back().reading++;
    bulk.groups.back().writing++;
    return {&warp, static_cast<uint32_t>(lane), bulk.oldest + bulk.groups.size() - 1};
  }
  BulkGroups::Counts& counts() const {
    BulkGroups& bulk = warp->bulk[lane];
    return bulk.groups[group - bulk.oldest];
  }
  void read_done() const {
    counts().reading--;
    check_group_waiters(warp->cta.cluster, *warp);
  }
  void written() const {
    counts().writing--;
    BulkGroups& bulk = warp->bulk[lane];
    while (bulk.groups.size() > 1 && !bulk.groups.front().reading && !bulk.groups.front().writing) {
      bulk.groups.erase(bulk.groups.begin());
      ++bulk.oldest;
    }
    check_group_waiters(warp->cta.cluster, *warp);
  }
};

// ---- tensor copies
// ------------------------------------------------------------------------------------------------------

/// [dst], [map, {coordinates}], [mbarrier]
void issue_tensor_load(Warp& warp, const Instruction& instruction, int lane) {
  Cluster& cluster = warp.cta.cluster;
  uint32_t address = shared_address(warp, instruction.address, lane);
  uint64_t map_address = warp.address(second_address(warp, instruction, 0), lane);
  uint32_t barrier = shared_address(warp, second_address(warp, instruction, 1), lane);
  auto box = std::make_shared<tma::Box>(read_map(warp, map_address), read_coordinates(warp, instruction, lane),
                                        tma::Direction::load);
  std::vector<Cta*> to = destinations(warp, instruction, lane, address);
  uint32_t offset = shared_offset(address);
  for (Cta* cta : to) box->check_shared(offset, window_of(*cta).size);
  Origin who = cluster.origin(warp, lane);
  warp.counters.tma_loads++;
  warp.counters.tma_box_rows += box->rows();
  warp.counters.bytes_from_global += box->global_bytes();
  warp.counters.bytes_into_shared += box->bytes() * to.size();
  cluster.trace(who, "tma_load", offset, map_address - reinterpret_cast<uint64_t>(cluster.grid_parameters()));
  cluster.load_started();
  Cluster::Times times = cluster.draw_times();
  if (cluster.schedule() == Schedule::earliest && to.size() == 1) {
    tma::load(*box, cluster.global(), window_of(*to[0]), offset);
    cluster.note_effect();
    cluster.load_ended();
    complete_bytes(cluster, *to[0], barrier, box->bytes(), who);
    return;
  }
  auto staging = std::make_shared<std::vector<std::byte>>(box->bytes());
  uint64_t chain = cluster.new_chain();
  uint32_t signal = to[0]->rank << 24 | shared_offset(barrier);
  cluster.at(times.read, warp.cta, who, {chain},
             [&cluster, box, staging] { tma::gather(*box, cluster.global(), *staging); });
  cluster.at(times.show, warp.cta, who, {chain, signal}, [&cluster, box, staging, to, offset, barrier, who] {
    cluster.load_ended();
    for (Cta* cta : to) {
      tma::place(*box, *staging, window_of(*cta), offset);
      cluster.note_effect();
      cluster.trace(who, "tma_shown", offset, box->bytes());
      complete_bytes(cluster, *cta, barrier, box->bytes(), who);
    }
  });
}

/// [map, {coordinates}], [src]; a store, or a reduction.
void issue_tensor_store(Warp& warp, const Instruction& instruction, int lane) {
  Cluster& cluster = warp.cta.cluster;
  bool reduces = instruction.modifiers & kReduce;
  auto reduction = static_cast<tma::Reduction>(instruction.modifiers >> kReductionShift & 0xFF);
  uint64_t map_address = warp.address(instruction.address, lane);
  uint32_t source = shared_address(warp, second_address(warp, instruction, 0), lane);
  auto box = std::make_shared<tma::Box>(read_map(warp, map_address), read_coordinates(warp, instruction, lane),
                                        reduces ? tma::Direction::reduce : tma::Direction::store);
  Cta& from = cluster.cta_of(source);
  uint32_t offset = shared_offset(source);
  box->check_shared(offset, window_of(from).size);
  Origin who = cluster.origin(warp, lane);
  warp.counters.tma_stores++;
  warp.counters.tma_box_rows += box->rows();
  warp.counters.bytes_to_global += box->global_bytes();
  cluster.trace(who, "tma_store", offset, box->bytes());
  GroupTicket ticket = GroupTicket::issue(warp, lane);
  Cluster::Times times = cluster.draw_times();
  if (cluster.schedule() == Schedule::earliest && !reduces) {
    tma::store(*box, window_of(from), offset, cluster.global());
    cluster.note_effect();
    ticket.read_done();
    ticket.written();
    return;
  }
  auto staging = std::make_shared<std::vector<std::byte>>(box->bytes());
  uint64_t chain = cluster.new_chain();
  cluster.at(times.read, warp.cta, who, {chain}, [box, staging, &from, offset, ticket] {
    tma::collect(*box, window_of(from), offset, *staging);
    ticket.read_done();
  });
  cluster.at(times.show, warp.cta, who, {chain}, [&cluster, box, staging, ticket, reduces, reduction] {
    if (reduces)
      tma::reduce(*box, reduction, *staging, cluster.global());
    else
      tma::scatter(*box, *staging, cluster.global());
    cluster.note_effect();
    ticket.written();
  });
}

// ---- plain copies
// -------------------------------------------------------------------------------------------------------

/// [dst shared], [src global], bytes, [mbarrier]
void issue_bulk_load(Warp& warp, const Instruction& instruction, int lane) {
  Cluster& cluster = warp.cta.cluster;
  uint32_t address = shared_address(warp, instruction.address, lane);
  uint64_t source = warp.address(second_address(warp, instruction, 0), lane);
  uint32_t barrier = shared_address(warp, second_address(warp, instruction, 1), lane);
  uint64_t bytes = warp.scalar(instruction.operand[1], lane);
  tma::check_bulk(shared_offset(address), source, bytes);
  std::vector<Cta*> to = destinations(warp, instruction, lane, address);
  uint32_t offset = shared_offset(address);
  for (Cta* cta : to) tma::check_shared_range(offset, bytes, window_of(*cta).size);
  Origin who = cluster.origin(warp, lane);
  warp.counters.tma_loads++;
  warp.counters.bytes_from_global += bytes;
  warp.counters.bytes_into_shared += bytes * to.size();
  cluster.load_started();
  Cluster::Times times = cluster.draw_times();
  auto staging = std::make_shared<std::vector<std::byte>>(bytes);
  uint64_t chain = cluster.new_chain();
  uint32_t signal = to[0]->rank << 24 | shared_offset(barrier);
  cluster.at(times.read, warp.cta, who, {chain},
             [&cluster, source, staging] { tma::bulk_read_global(cluster.global(), source, *staging); });
  cluster.at(times.show, warp.cta, who, {chain, signal}, [&cluster, staging, to, offset, barrier, who] {
    cluster.load_ended();
    for (Cta* cta : to) {
      tma::bulk_write_shared(window_of(*cta), offset, *staging);
      cluster.note_effect();
      complete_bytes(cluster, *cta, barrier, staging->size(), who);
    }
  });
}

/// [dst global], [src shared], bytes; a store, or a reduction.
void issue_bulk_store(Warp& warp, const Instruction& instruction, int lane) {
  Cluster& cluster = warp.cta.cluster;
  bool reduces = instruction.modifiers & kReduce;
  auto reduction = static_cast<tma::Reduction>(instruction.modifiers >> kReductionShift & 0xFF);
  auto type = static_cast<tma::ReductionType>(instruction.modifiers >> kTypeShift & 0xFF);
  uint64_t destination = warp.address(instruction.address, lane);
  uint32_t source = shared_address(warp, second_address(warp, instruction, 0), lane);
  uint64_t bytes = warp.scalar(instruction.operand[1], lane);
  tma::check_bulk(destination, shared_offset(source), bytes);
  Cta& from = cluster.cta_of(source);
  uint32_t offset = shared_offset(source);
  tma::check_shared_range(offset, bytes, window_of(from).size);
  if (reduces) tma::check_bulk_reduction(reduction, type, false);
  Origin who = cluster.origin(warp, lane);
  warp.counters.tma_stores++;
  warp.counters.bytes_to_global += bytes;
  GroupTicket ticket = GroupTicket::issue(warp, lane);
  Cluster::Times times = cluster.draw_times();
  auto staging = std::make_shared<std::vector<std::byte>>(bytes);
  uint64_t chain = cluster.new_chain();
  cluster.at(times.read, warp.cta, who, {chain}, [staging, &from, offset, ticket] {
    tma::bulk_read_shared(window_of(from), offset, *staging);
    ticket.read_done();
  });
  cluster.at(times.show, warp.cta, who, {chain}, [&cluster, staging, destination, ticket, reduces, reduction, type] {
    if (reduces)
      tma::bulk_reduce_global(cluster.global(), destination, reduction, type, *staging);
    else
      tma::bulk_write_global(cluster.global(), destination, *staging);
    cluster.note_effect();
    ticket.written();
  });
}

/// [dst shared::cluster], [src shared::cta], bytes, [mbarrier]; a copy, or a reduction.
void issue_bulk_shared(Warp& warp, const Instruction& instruction, int lane) {
  Cluster& cluster = warp.cta.cluster;
  bool reduces = instruction.modifiers & kReduce;
  auto reduction = static_cast<tma::Reduction>(instruction.modifiers >> kReductionShift & 0xFF);
  auto type = static_cast<tma::ReductionType>(instruction.modifiers >> kTypeShift & 0xFF);
  uint32_t destination = shared_address(warp, instruction.address, lane);
  uint32_t source = shared_address(warp, second_address(warp, instruction, 0), lane);
  uint32_t barrier = shared_address(warp, second_address(warp, instruction, 1), lane);
  uint64_t bytes = warp.scalar(instruction.operand[1], lane);
  tma::check_bulk(shared_offset(destination), shared_offset(source), bytes);
  Cta& to = cluster.cta_of(destination);
  Cta& from = cluster.cta_of(source);
  tma::check_shared_range(shared_offset(source), bytes, window_of(from).size);
  tma::check_shared_range(shared_offset(destination), bytes, window_of(to).size);
  if (reduces) tma::check_bulk_reduction(reduction, type, true);
  Origin who = cluster.origin(warp, lane);
  Cluster::Times times = cluster.draw_times();
  auto staging = std::make_shared<std::vector<std::byte>>(bytes);
  uint64_t chain = cluster.new_chain();
  uint32_t signal = to.rank << 24 | shared_offset(barrier);
  cluster.at(times.read, warp.cta, who, {chain},
             [staging, &from, source] { tma::bulk_read_shared(window_of(from), shared_offset(source), *staging); });
  cluster.at(times.show, warp.cta, who, {chain, signal},
             [&cluster, staging, &to, destination, barrier, who, reduces, reduction, type] {
               if (reduces)
                 tma::bulk_reduce_shared(window_of(to), shared_offset(destination), reduction, type, *staging);
               else
                 tma::bulk_write_shared(window_of(to), shared_offset(destination), *staging);
               cluster.note_effect();
               complete_bytes(cluster, to, barrier, staging->size(), who);
             });
}

/// Each active lane is an issue of its own (an H200 does the same).
template <void (*Issue)(Warp&, const Instruction&, int)>
Flow each_lane(Warp& warp, const Instruction& instruction) {
  for_lanes(warp.active, [&](int lane) { Issue(warp, instruction, lane); });
  return Flow::next;
}

// ---- groups and prefetches
// ----------------------------------------------------------------------------------------------

Flow execute_commit_group(Warp& warp, const Instruction&) {
  for_lanes(warp.active, [&](int lane) { warp.bulk[static_cast<uint32_t>(lane)].groups.emplace_back(); });
  return Flow::next;
}

Flow execute_wait_group(Warp& warp, const Instruction& instruction) {
  Cluster& cluster = warp.cta.cluster;
  bool reading = instruction.modifiers;
  uint64_t allowed = static_cast<uint64_t>(instruction.immediate);
  uint32_t waiting = 0;
  for_lanes(warp.active, [&](int lane) {
    if (!groups_done(warp, lane, allowed, reading)) waiting |= 1u << lane;
  });
  if (!waiting) return Flow::next;
  bool all = waiting == warp.group->mask;
  cluster.park(warp, waiting,
               {.kind = WaitKind::bulk_group, .address = static_cast<uint32_t>(allowed), .parity = reading ? 1u : 0u},
               warp.group->pc + 1);
  return all ? Flow::parked : Flow::next;
}

Flow execute_prefetch_tensor(Warp& warp, const Instruction& instruction) {
  for_lanes(warp.active, [&](int lane) {
    tma::Box(read_map(warp, warp.address(instruction.address, lane)), read_coordinates(warp, instruction, lane),
             tma::Direction::load);
  });
  return Flow::next;
}

Flow execute_prefetch_bulk(Warp& warp, const Instruction& instruction) {
  for_lanes(warp.active, [&](int lane) {
    tma::check_bulk(0, warp.address(instruction.address, lane), warp.scalar(instruction.operand[1], lane));
  });
  return Flow::next;
}

// ---- binding
// ------------------------------------------------------------------------------------------------------------

void bind_coordinates(Binder& binder, const ptx::Operand& map) {
  if (map.children.size() != 1) binder.refuse("a tensor map with {coordinates} is wanted");
  std::vector<Slot> coordinates = binder.inputs(map.children[0], 4);
  binder.out.list = binder.list(coordinates);
  binder.out.list_count = static_cast<uint32_t>(coordinates.size());
}

std::string_view take_dimension(Binder& binder) {
  return binder.take_any({"1d", "2d", "3d", "4d", "5d"});
}

void take_hint(Binder& binder, size_t operand) {
  if (binder.take("L2::cache_hint"))
    binder.input(operand, 8);  // where lines stay in L2: nothing an interpreter could show
}

uint64_t take_reduction(Binder& binder, bool with_type) {
  using tma::Reduction;
  using tma::ReductionType;
  constexpr std::pair<std::string_view, Reduction> kOperations[] = {
      {"add", Reduction::add}, {"min", Reduction::min},     {"max", Reduction::max},   {"inc", Reduction::inc},
      {"dec", Reduction::dec}, {"and", Reduction::bit_and}, {"or", Reduction::bit_or}, {"xor", Reduction::bit_xor}};
  constexpr std::pair<std::string_view, ReductionType> kTypes[] = {
      {"u32", ReductionType::u32}, {"s32", ReductionType::s32},   {"u64", ReductionType::u64},
      {"s64", ReductionType::s64}, {"b32", ReductionType::b32},   {"b64", ReductionType::b64},
      {"f16", ReductionType::f16}, {"bf16", ReductionType::bf16}, {"f32", ReductionType::f32},
      {"f64", ReductionType::f64}};
  uint64_t bits = kReduce;
  bool found = false;
  for (auto [name, operation] : kOperations)
    if (binder.take(name)) bits |= static_cast<uint64_t>(operation) << kReductionShift, found = true;
  if (!found) binder.refuse("the operation of the reduction is missing");
  if (with_type) {
    binder.take("noftz");
    found = false;
    for (auto [name, type] : kTypes)
      if (binder.take(name)) bits |= static_cast<uint64_t>(type) << kTypeShift, found = true;
    if (!found) binder.refuse("the type of the reduction is missing");
  }
  return bits;
}

void bind_tensor(Binder& binder, bool reduces) {
  Instruction& out = binder.out;
  if (take_dimension(binder).empty()) binder.refuse("the number of dimensions is missing");
  if (!binder.source.has("tile::gather4") && !binder.source.has("tile::scatter4")) binder.take("tile");
  if (binder.take("bulk_group")) {
    // [map, {coordinates}], [src]{, policy}
    if (reduces) out.modifiers = take_reduction(binder, false);
    binder.take("global");
    if (!binder.take("shared::cta")) binder.refuse("the source must be shared::cta");
    out.address = binder.address(0);
    bind_coordinates(binder, binder.operand(0));
    set_addresses(binder, {binder.address(1)});
    take_hint(binder, 2);
    out.execute = each_lane<issue_tensor_store>;
    return;
  }
  if (!binder.take("mbarrier::complete_tx::bytes"))
    binder.refuse("bulk_group or mbarrier::complete_tx::bytes is missing");
  if (!binder.take("shared::cluster") && !binder.take("shared::cta"))
    binder.refuse("the destination must be shared memory");
  binder.take("global");
  binder.take("cta_group::1");
  out.address = binder.address(0);
  bind_coordinates(binder, binder.operand(1));
  set_addresses(binder, {binder.address(1), binder.address(2)});
  size_t next = 3;
  if (binder.take("multicast::cluster")) {
    out.modifiers |= kMulticast;
    out.operand[2] = binder.input(next++, 2);
  }
  take_hint(binder, next);
  out.execute = each_lane<issue_tensor_load>;
}

void bind_plain(Binder& binder, bool reduces) {
  Instruction& out = binder.out;
  if (reduces) out.modifiers = take_reduction(binder, true);
  out.address = binder.address(0);
  out.operand[1] = binder.input(2, 4);
  if (binder.take("bulk_group")) {
    binder.take("global");
    if (!binder.take("shared::cta")) binder.refuse("the source must be shared::cta");
    set_addresses(binder, {binder.address(1)});
    take_hint(binder, 3);
    out.execute = each_lane<issue_bulk_store>;
    return;
  }
  if (!binder.take("mbarrier::complete_tx::bytes"))
    binder.refuse("bulk_group or mbarrier::complete_tx::bytes is missing");
  set_addresses(binder, {binder.address(1), binder.address(3)});
  if (binder.take("global")) {
    if (!binder.take("shared::cluster") && !binder.take("shared::cta"))
      binder.refuse("the destination must be shared memory");
    size_t next = 4;
    if (binder.take("multicast::cluster")) {
      out.modifiers |= kMulticast;
      out.operand[2] = binder.input(next++, 2);
    }
    take_hint(binder, next);
    out.execute = each_lane<issue_bulk_load>;
    return;
  }
  if (!binder.take("shared::cluster") || !binder.take("shared::cta"))
    binder.refuse("shared::cluster from shared::cta is wanted");
  out.execute = each_lane<issue_bulk_shared>;
}

void bind_cp(Binder& binder) {
  Instruction& out = binder.out;
  bool reduces = binder.take("reduce");
  binder.take("async");
  if (!binder.take("bulk")) binder.refuse("the emulator executes the bulk forms of cp.async only");
  if (binder.take("commit_group")) {
    out.execute = execute_commit_group;
  } else if (binder.take("wait_group")) {
    out.modifiers = binder.take("read");
    out.immediate = binder.immediate(0);
    out.execute = execute_wait_group;
  } else if (binder.take("prefetch")) {
    binder.take("L2");
    binder.take("global");
    out.address = binder.address(0);
    if (binder.take("tensor")) {
      take_dimension(binder);
      if (!binder.source.has("tile::gather4")) binder.take("tile");
      bind_coordinates(binder, binder.operand(0));
      take_hint(binder, 1);
      out.execute = execute_prefetch_tensor;
    } else {
      out.operand[1] = binder.input(1, 4);
      take_hint(binder, 2);
      out.execute = execute_prefetch_bulk;
    }
  } else if (binder.take("tensor")) {
    bind_tensor(binder, reduces);
  } else {
    bind_plain(binder, reduces);
  }
}

constexpr Entry kEntries[] = {{"cp", bind_cp}};

}  // namespace

std::span<const Entry> tma_entries() {
  return kEntries;
}

}  // namespace emu::isa
