// Cluster launch control: running clusters take over the work of clusters that have not started. PTX ISA,
// "clusterlaunchcontrol.try_cancel", "clusterlaunchcontrol.query_cancel". Bits of the response as the code that ptxas
// makes of the queries picks them: word 0 ctaid.x, word 1 ctaid.y (low half) and ctaid.z (high half), word 2 bit 0
// whether a cluster was cancelled.
//
// Which cluster is cancelled is decided when the instruction is issued, in (clock, cluster) order among all that ask or
// start; the response shows later.

#include <array>
#include <cstring>

#include <fmt/format.h>

#include "emulator/isa/families.h"
#include "emulator/isa/tma_issue.h"
#include "emulator/machine/decoder.h"
#include "emulator/machine/grid.h"

namespace emu::isa {
namespace {

constexpr const char* kSource = "PTX ISA, clusterlaunchcontrol.try_cancel";
constexpr uint32_t kResponseBytes = 16;

// Instruction::modifiers of try_cancel (kMulticast is that of the bulk copies).
constexpr uint64_t kGeneric = 1 << 8;

using Response = std::array<uint32_t, 4>;

uint32_t own_address(const Warp& warp, const AddressOperand& operand, bool generic, int lane, const char* what) {
  uint64_t address = warp.address(operand, lane);
  if (generic && is_shared(address)) address -= kSharedWindow;
  if (address >> 32 || shared_rank(static_cast<uint32_t>(address)) != warp.cta.rank)
    throw Trap(FaultKind::launch_control, FaultCode::illegal_instruction,
               fmt::format("clusterlaunchcontrol.try_cancel with its {} at {:#x}: it must be in the executing CTA's "
                           "shared memory",
                           what, address),
               kSource);
  return static_cast<uint32_t>(address);
}

void ask(Warp& warp, const Instruction& instruction, int lane) {
  Cta& own = warp.cta;
  Cluster& cluster = own.cluster;
  const bool generic = instruction.modifiers & kGeneric, all = instruction.modifiers & kMulticast;
  uint32_t response = shared_offset(own_address(warp, instruction.address, generic, lane, "response"));
  uint32_t barrier = shared_offset(own_address(warp, warp.second_address(instruction, 0), generic, lane, "mbarrier"));
  if (response % kResponseBytes)
    throw Trap(
        FaultCode::misaligned_address,
        fmt::format("response of clusterlaunchcontrol.try_cancel at {:#x}: it must be 16-byte aligned", response),
        kSource);
  if (own.saw_no_more_clusters)
    throw Trap(FaultKind::launch_control,
               "clusterlaunchcontrol.try_cancel after this CTA has seen that no cluster was left: what it does then is "
               "undefined; stop asking at the first is_canceled that is false",
               kSource);
  std::vector<Cta*> to;
  for (auto& cta : cluster.ctas) {
    if (cta.get() != &own && !all) continue;
    cluster.shared(cta->rank << 24 | response, kResponseBytes, Access::write);
    mbarrier::need_plausible(cluster.mbarrier_word(cta->rank << 24 | barrier, Access::atomic));
    to.push_back(cta.get());
  }
  Response words{};
  Origin who = cluster.origin(warp, lane);
  std::optional<uint64_t> cancelled = cluster.grid.cancel_one();
  if (cancelled) {
    Dim3 first = cluster.grid.cta_index(*cancelled, 0);
    words = {first.x, first.y | first.z << 16, 1, 0};
  }
  cluster.trace(who, "cancel", {cancelled.has_value(), cancelled.value_or(0)});
  for (Cta* cta : to)
    cluster.at(cluster.draw_times().show, *cta, who, {.signal = cta->rank << 24 | barrier},
               [&cluster, cta, response, barrier, words, who,
                announced = announce_bytes(warp, lane, cta->rank << 24 | barrier)] {
                 bytes_shown(cluster, announced, hazards::Kind::launch_control, *cta, cta->rank << 24 | barrier,
                             {{response, kResponseBytes}});
                 std::memcpy(cluster.shared(cta->rank << 24 | response, kResponseBytes, Access::write), words.data(),
                             kResponseBytes);
                 complete_bytes(cluster, cta->rank << 24 | barrier, kResponseBytes, who);
               });
}

Flow execute_try_cancel(Warp& warp, const Instruction& instruction) {
  for_lanes(warp.active, [&](int lane) { ask(warp, instruction, lane); });
  return Flow::next;
}

Response response_of(const Warp& warp, const Instruction& instruction, int lane) {
  Response words;
  std::memcpy(words.data(), warp.read<std::byte>(instruction.operand[1]) + kResponseBytes * static_cast<size_t>(lane),
              kResponseBytes);
  return words;
}

Flow execute_is_canceled(Warp& warp, const Instruction& instruction) {
  uint32_t bits = 0;
  for_lanes(warp.active, [&](int lane) {
    if (response_of(warp, instruction, lane)[2] & 1)
      bits |= 1u << lane;
    else
      warp.cta.saw_no_more_clusters = true;
  });
  warp.set_predicate(instruction.operand[0], bits);
  return Flow::next;
}

/// `list`: registers for x, y, z in turn, from coordinate `immediate` on. Undefined when nothing was cancelled.
Flow execute_first_ctaid(Warp& warp, const Instruction& instruction) {
  for_lanes(warp.active, [&](int lane) {
    Response words = response_of(warp, instruction, lane);
    const uint32_t place[] = {words[0], words[1] & 0xFFFF, words[1] >> 16, 0};
    for (uint32_t i = 0; i < instruction.list_count; ++i) {
      const Slot& slot = warp.listed(instruction.list, i);
      if (slot.present()) warp.write<uint32_t>(slot)[lane] = place[static_cast<size_t>(instruction.immediate) + i];
    }
  });
  return Flow::next;
}

void bind_try_cancel(Binder& binder) {
  Instruction& out = binder.out;
  if (!binder.take("async") || !binder.take("mbarrier::complete_tx::bytes") || !binder.take("b128"))
    binder.refuse(".async, .mbarrier::complete_tx::bytes and .b128 are wanted");
  if (!binder.take("shared::cta")) out.modifiers |= kGeneric;
  if (binder.take("multicast::cluster::all")) out.modifiers |= kMulticast;
  out.address = binder.address(0);
  binder.second_addresses({binder.address(1)});
  out.visible = true;
  out.execute = execute_try_cancel;
}

void bind_query_cancel(Binder& binder) {
  Instruction& out = binder.out;
  if (!binder.take("b128")) binder.refuse(".b128 is wanted");
  out.operand[1] = binder.input(1, 16);
  if (out.operand[1].bytes != 16) binder.refuse("the response must be a 128-bit register");
  if (binder.take("is_canceled")) {
    binder.take("pred");
    out.operand[0] = binder.output(0);
    out.execute = execute_is_canceled;
    return;
  }
  std::vector<Slot> to;
  if (binder.take("get_first_ctaid")) {
    if (!binder.take("v4")) binder.refuse(".v4 or one of ::x, ::y, ::z is wanted");
    to = binder.outputs(binder.operand(0));
    if (to.size() != 4) binder.refuse("four registers are wanted");
  } else {
    std::string_view one = binder.take_any({"get_first_ctaid::x", "get_first_ctaid::y", "get_first_ctaid::z"});
    if (one.empty()) binder.refuse(".is_canceled or .get_first_ctaid is wanted");
    out.immediate = one.back() - 'x';
    to = {binder.output(0)};
  }
  if (!binder.take("b32")) binder.refuse(".b32 is wanted");
  for (const Slot& slot : to)
    if (slot.present() && slot.bytes != 4) binder.refuse("registers of 32 bits are wanted");
  out.list = binder.list(to);
  out.list_count = static_cast<uint32_t>(to.size());
  out.execute = execute_first_ctaid;
}

void bind_launch_control(Binder& binder) {
  if (!binder.decoder().chip().has_tcgen05) binder.refuse("cluster launch control needs compute capability 10.0");
  if (binder.take("try_cancel")) return bind_try_cancel(binder);
  if (binder.take("query_cancel")) return bind_query_cancel(binder);
  binder.refuse(".try_cancel or .query_cancel is wanted");
}

constexpr Entry kEntries[] = {{"clusterlaunchcontrol", bind_launch_control}};

}  // namespace

std::span<const Entry> launch_entries() {
  return kEntries;
}

}  // namespace emu::isa
