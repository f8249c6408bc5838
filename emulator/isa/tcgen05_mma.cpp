// tcgen05.mma: spelling and issue. PTX ISA, "tcgen05.mma", "tcgen05.mma.ws". Operands in shared memory:
// units/descriptor_operand.h; rows and columns in tensor memory: units/tmem_layout.h; arithmetic: units/tensor_core.h.

#include "emulator/isa/tcgen05_mma.h"

#include <fmt/format.h>

#include <memory>

namespace emu::isa {
namespace {

void trace_mma(Cluster& cluster, const Origin& who, uint64_t operation, const Mma& mma) {
  cluster.trace(who, "mma", {operation, mma.a_in_tensor_memory ? 0 : mma.a.start, mma.b.start, mma.d_column});
}

void issue_mma(Warp& warp, const Instruction& instruction, int lane) {
  Cta& cta = warp.cta;
  Cluster& cluster = cta.cluster;
  warp.counters.mmas++;
  const Origin who = cluster.origin(warp, lane);
  Warp::Uncommitted& uncommitted = warp.uncommitted[static_cast<uint32_t>(lane)];
  uncommitted = {uncommitted.mmas + 1, who.source};
  const uint64_t operation = cluster.new_operation();
  if (cluster.schedule() == Schedule::earliest) {
    thread_local const auto scratch = std::make_unique<Mma>();
    Mma& mma = *scratch;
    decode_mma(warp, instruction, lane, mma);
    mma.announced = announce_tensor_work(warp, lane);
    trace_mma(cluster, who, operation, mma);
    read_operands(mma);
    cluster.trace(who, "mma_read", {operation});
    multiply(mma);
    cluster.trace(who, "mma_shown", {operation});
    cluster.mma_started();
    cluster.mma_ended();
    cluster.note_effect();
    return;
  }
  auto mma = std::make_shared<Mma>();
  decode_mma(warp, instruction, lane, *mma);
  mma->announced = announce_tensor_work(warp, lane);
  trace_mma(cluster, who, operation, *mma);
  cluster.mma_started();
  issue_to_tensor_core(
      warp, lane, mma->group,
      [&cluster, mma, who, operation] {
        read_operands(*mma);
        cluster.trace(who, "mma_read", {operation});
      },
      [&cluster, &cta, mma, who, operation] {
        check_columns(mma->group, cta, mma->d_column, mma->layout.columns_per_part,
                      "tcgen05.mma that was still under way writes D to");
        multiply(*mma);
        cluster.mma_ended();
        cluster.note_effect();
        cluster.trace(who, "mma_shown", {operation});
      });
}

Flow execute_mma(Warp& warp, const Instruction& instruction) {
  // Every active lane is an issue of its own, as in the loop that ptxas makes where it cannot prove a single lane.
  for_lanes(warp.active, [&](int lane) { issue_mma(warp, instruction, lane); });
  return Flow::next;
}

struct Kind {
  const char* name;
  MmaKind kind;
};
constexpr Kind kKinds[] = {{"kind::f16", MmaKind::f16},           {"kind::tf32", MmaKind::tf32},
                           {"kind::f8f6f4", MmaKind::f8f6f4},     {"kind::i8", MmaKind::i8},
                           {"kind::mxf8f6f4", MmaKind::mxf8f6f4}, {"kind::mxf4", MmaKind::mxf4},
                           {"kind::mxf4nvf4", MmaKind::mxf4nvf4}};

MmaKind take_kind(Binder& binder) {
  for (const Kind& kind : kKinds)
    if (binder.take(kind.name)) return kind.kind;
  binder.refuse("the kind is missing, or none that the emulator knows");
}

/// Elements that share a scale factor. PTX ISA, tables "Valid combinations of scale_vectorsize".
uint32_t take_block(Binder& binder, MmaKind kind) {
  if (!binder.take("block_scale")) binder.refuse(".block_scale is missing");
  const bool fp8 = kind == MmaKind::mxf8f6f4, nv = kind == MmaKind::mxf4nvf4;
  if (binder.take("block32") || binder.take(fp8 ? "scale_vec::1X" : "scale_vec::2X")) return 32;
  if (nv && (binder.take("block16") || binder.take("scale_vec::4X"))) return 16;
  if (nv) binder.refuse(".scale_vec::2X, .scale_vec::4X, .block16 or .block32 is wanted with kind::mxf4nvf4");
  return 32;
}

/// Which operand is kept between MMAs, and in which buffer: speed only.
void take_collector(Binder& binder, bool weight_stationary) {
  if (!weight_stationary) {
    binder.take_any({"collector::a::fill", "collector::a::use", "collector::a::lastuse", "collector::a::discard"});
    return;
  }
  for (const char* buffer : {"b0", "b1", "b2", "b3"})
    for (const char* use : {"fill", "use", "lastuse", "discard"})
      if (binder.take(fmt::format("collector::{}::{}", buffer, use))) return;
}

}  // namespace

void bind_mma(Binder& binder) {
  Instruction& out = binder.out;
  if (binder.source.has("sp")) binder.refuse("the emulator does not execute .sp");
  if (binder.source.has("ashift")) binder.refuse("the emulator does not execute .ashift");
  const bool weight_stationary = binder.take("ws");
  take_cta_group(binder);
  if (weight_stationary && (out.modifiers & kPair)) binder.refuse(".ws exists with cta_group::1 only");
  const MmaKind kind = take_kind(binder);
  if (weight_stationary && block_scaled(kind)) binder.refuse(".ws does not exist with block scaling");
  const uint32_t block = block_scaled(kind) ? take_block(binder, kind) : 0;
  take_collector(binder, weight_stationary);
  out.modifiers |= static_cast<uint64_t>(kind) << 8 | uint64_t{block} << 16;
  if (weight_stationary) out.modifiers |= kWeightStationary;
  // [d], a, b, idesc{, [scale a], [scale b]}{, {disabled lanes}}, enable{, scale or zero columns}
  out.address = binder.address(0);
  std::vector<AddressOperand> further;  // A, where it is in tensor memory; factors
  if (binder.is_address(1)) {
    out.modifiers |= kAInTensorMemory;
    further.push_back(binder.address(1));
  } else {
    out.operand[0] = binder.input(1, 8);
  }
  out.operand[1] = binder.input(2, 8);
  out.operand[2] = binder.input(3, 4);
  size_t next = 4;
  if (block_scaled(kind)) {
    further.push_back(binder.address(next++));
    further.push_back(binder.address(next++));
  } else if (binder.is_vector(next)) {
    std::vector<Slot> lanes = binder.inputs(binder.operand(next++), 4);
    const uint32_t wanted = out.modifiers & kPair ? 8 : 4;
    if (lanes.size() != wanted || weight_stationary)
      binder.refuse(fmt::format("{} registers of disabled lanes are wanted, 32 lanes each, and none with .ws", wanted));
    out.list = binder.list(lanes);
    out.list_count = wanted;
  }
  binder.second_addresses(further);
  out.operand[3] = binder.input(next++, 0);
  if (binder.count() > next && weight_stationary) {
    out.operand[4] = binder.input(next, 8);
  } else if (binder.count() > next) {
    if (kind != MmaKind::f16 && kind != MmaKind::tf32)
      binder.refuse("scale-input-d exists with kind::f16 and kind::tf32 only");
    out.immediate = binder.immediate(next);
    if (out.immediate < 0 || out.immediate > 15) binder.refuse("scale-input-d must be 0 to 15");
  }
  out.execute = execute_mma;
}

}  // namespace emu::isa
