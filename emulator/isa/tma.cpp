// The table entry of the bulk copies by the TMA unit: cp.async.bulk, cp.async.bulk.tensor,
// cp.reduce.async.bulk(.tensor); and their groups and prefetches. PTX ISA, "cp.async.bulk.commit_group",
// "cp.async.bulk.wait_group". What moves where is in units/tma.h; who asks, when it happens and who is told, in
// tma_tensor.cpp and tma_plain.cpp.

#include "emulator/isa/families.h"
#include "emulator/isa/tma_issue.h"

namespace emu::isa {
namespace {

/// Each active lane is an issue of its own (an H200 does the same).
template <void (*Issue)(Warp&, const Instruction&, int)>
Flow each_lane(Warp& warp, const Instruction& instruction) {
  for_lanes(warp.active, [&](int lane) { Issue(warp, instruction, lane); });
  return Flow::next;
}

Flow execute_commit_group(Warp& warp, const Instruction&) {
  for_lanes(warp.active, [&](int lane) { warp.bulk[static_cast<uint32_t>(lane)].groups.emplace_back(); });
  return Flow::next;
}

Flow execute_wait_group(Warp& warp, const Instruction& instruction) {
  Cluster& cluster = warp.cta.cluster;
  bool reading = instruction.modifiers;
  uint64_t allowed = static_cast<uint64_t>(instruction.immediate);
  if (cluster.hazards) cluster.hazards->bulk_groups_waited(warp, warp.active, allowed, reading);
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
  for_lanes(warp.active, [&](int lane) { check_prefetch(warp, instruction, lane); });
  return Flow::next;
}

Flow execute_prefetch_bulk(Warp& warp, const Instruction& instruction) {
  for_lanes(warp.active, [&](int lane) {
    tma::check_bulk(0, warp.address(instruction.address, lane), warp.scalar(instruction.operand[1], lane));
  });
  return Flow::next;
}

/// `offsets`: the {offsets} of im2col, or nullptr.
void bind_coordinates(Binder& binder, const ptx::Operand& map, const ptx::Operand* offsets = nullptr) {
  if (map.children.size() != 1) binder.refuse("a tensor map with {coordinates} is wanted");
  std::vector<Slot> coordinates = binder.inputs(map.children[0], 4);
  if (offsets)
    for (const Slot& offset : binder.inputs(*offsets, 2)) coordinates.push_back(offset);
  binder.out.list = binder.list(coordinates);
  binder.out.list_count = static_cast<uint32_t>(coordinates.size());
}

std::string_view take_dimension(Binder& binder) {
  return binder.take_any({"1d", "2d", "3d", "4d", "5d"});
}

void refuse_wide_im2col(Binder& binder) {
  if (binder.source.has("im2col::w") || binder.source.has("im2col::w::128"))
    binder.refuse("the emulator does not execute .im2col::w, of which no source says how it walks");
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
  binder.take("tile");
  refuse_wide_im2col(binder);
  if (binder.take("bulk_group")) {
    // [map, {coordinates}], [src]{, policy}
    if (reduces)
      out.modifiers = take_reduction(binder, false);
    else if (binder.take("tile::scatter4"))
      out.modifiers = kFourRows;
    if (binder.take("im2col_no_offs")) out.modifiers |= kIm2col;
    binder.take("global");
    if (!binder.take("shared::cta")) binder.refuse("the source must be shared::cta");
    out.address = binder.address(0);
    bind_coordinates(binder, binder.operand(0));
    binder.second_addresses({binder.address(1)});
    take_hint(binder, 2);
    out.visible = reduces;
    out.execute = each_lane<issue_tensor_store>;
    return;
  }
  if (!binder.take("mbarrier::complete_tx::bytes"))
    binder.refuse("bulk_group or mbarrier::complete_tx::bytes is missing");
  if (!binder.take("shared::cluster") && !binder.take("shared::cta"))
    binder.refuse("the destination must be shared memory");
  binder.take("global");
  if (binder.take("tile::gather4")) out.modifiers |= kFourRows;
  if (binder.take("cta_group::2"))
    out.modifiers |= kPair;
  else
    binder.take("cta_group::1");
  const bool im2col = binder.take("im2col");
  if (im2col) out.modifiers |= kIm2col;
  out.address = binder.address(0);
  bind_coordinates(binder, binder.operand(1), im2col ? &binder.operand(3) : nullptr);
  binder.second_addresses({binder.address(1), binder.address(2)});
  size_t next = im2col ? 4 : 3;
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
    binder.second_addresses({binder.address(1)});
    take_hint(binder, 3);
    out.visible = reduces;
    out.execute = each_lane<issue_bulk_store>;
    return;
  }
  if (!binder.take("mbarrier::complete_tx::bytes"))
    binder.refuse("bulk_group or mbarrier::complete_tx::bytes is missing");
  binder.second_addresses({binder.address(1), binder.address(3)});
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
  if (!binder.take("bulk")) return bind_copy_async(binder);
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
      binder.take("tile");
      refuse_wide_im2col(binder);
      if (binder.take("tile::gather4")) out.modifiers |= kFourRows;
      const bool im2col = binder.take("im2col");
      if (im2col) out.modifiers |= kIm2col;
      bind_coordinates(binder, binder.operand(0), im2col ? &binder.operand(1) : nullptr);
      take_hint(binder, im2col ? 2 : 1);
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
