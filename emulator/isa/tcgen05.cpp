// tcgen05: the table entry of the whole family, and what its files share.

#include "emulator/isa/tcgen05.h"

#include <fmt/format.h>

#include "emulator/hazards/hazards.h"
#include "emulator/isa/families.h"
#include "emulator/machine/cluster.h"
#include "emulator/machine/decoder.h"

namespace emu::isa {
namespace {

// Instruction::modifiers of a fence.
constexpr uint64_t kAfter = 1;

/// It orders nothing here that is not in order.
Flow execute_fence(Warp& warp, const Instruction& instruction) {
  if (auto* const hazards = warp.cta.cluster.hazards.get()) {
    if (instruction.modifiers & kAfter)
      hazards->after_thread_sync(warp, warp.active);
    else
      hazards->before_thread_sync(warp, warp.active);
  }
  return Flow::next;
}

Flow execute_mixed(Warp& warp, const Instruction& instruction) {
  throw Trap(FaultKind::cta_group,
             fmt::format("this instruction is of cta_group::{}, another one of the kernel of cta_group::{}",
                         instruction.modifiers & kPair ? 2 : 1, warp.program().cta_group),
             "PTX ISA, tcgen05: all tcgen05 instructions within a kernel must specify the same .cta_group");
}

void bind_tcgen05(Binder& binder) {
  Instruction& out = binder.out;
  if (binder.take("alloc"))
    bind_alloc(binder);
  else if (binder.take("dealloc"))
    bind_dealloc(binder);
  else if (binder.take("relinquish_alloc_permit"))
    bind_relinquish(binder);
  else if (binder.take("fence::before_thread_sync"))
    out.execute = execute_fence;
  else if (binder.take("fence::after_thread_sync"))
    out.execute = execute_fence, out.modifiers = kAfter;
  else if (binder.take("ld"))
    bind_tensor_load(binder);
  else if (binder.take("st"))
    bind_tensor_store(binder);
  else if (binder.take("wait::ld"))
    bind_tensor_wait(binder, true);
  else if (binder.take("wait::st"))
    bind_tensor_wait(binder, false);
  else if (binder.take("mma"))
    bind_mma(binder);
  else if (binder.take("commit"))
    bind_commit(binder);
  else if (binder.take("cp"))
    bind_copy(binder);
  else if (binder.take("shift"))
    bind_shift(binder);
  else
    binder.refuse("the emulator does not execute this operation");
  const uint8_t group = out.modifiers & kPair ? 2 : 1;
  if (binder.source.has("cta_group::1") || binder.source.has("cta_group::2")) {
    uint8_t& of_kernel = binder.decoder().program().cta_group;
    if (of_kernel == 0) of_kernel = group;
    if (of_kernel != group) out.execute = execute_mixed;
  }
}

constexpr Entry kEntries[] = {{"tcgen05", bind_tcgen05}};

}  // namespace

void take_cta_group(Binder& binder) {
  if (binder.take("cta_group::1")) return;
  if (!binder.take("cta_group::2")) binder.refuse("a .cta_group is wanted");
  binder.out.modifiers |= kPair;
}

Cta& peer_of(Cta& cta, const char* what) {
  const auto& ctas = cta.cluster.ctas;
  if (ctas.size() % 2)
    throw Trap(
        FaultKind::cta_group,
        fmt::format("{} of cta_group::2 in a cluster of {}: a pair is two CTAs of one cluster, whose ranks differ "
                    "in the last bit alone. Launch clusters of an even number of CTAs",
                    what, ctas.size()),
        "PTX ISA, CTA Pair");
  return *ctas[cta.rank ^ 1];
}

CtaGroup cta_group(Cta& cta, bool pair, const char* what) {
  if (!pair) return {{&cta, nullptr}, 1};
  Cta& peer = peer_of(cta, what);
  return cta.rank % 2 ? CtaGroup{{&peer, &cta}, 2} : CtaGroup{{&cta, &peer}, 2};
}

MatrixDescriptor matrix_descriptor(Warp& warp, uint64_t word, std::string_view operand) {
  constexpr uint64_t kVersion = uint64_t{1} << 46, kVersionBits = uint64_t{7} << 46;
  if ((word & kVersionBits) == 0 && !warp.strict()) {
    Cluster& cluster = warp.cta.cluster;
    cluster.remark(cluster.origin(warp),
                   fmt::format("the descriptor of {} has zeros in bits 46-48, as wgmma's have; the "
                               "PTX ISA wants 0b001 there (set bit 46)",
                               operand));
    word |= kVersion;
  }
  return decode_tcgen05_matrix_descriptor(word, operand);
}

void check_columns(const Cta& cta, uint32_t first, uint32_t count, const char* what) {
  check_columns(CtaGroup{{const_cast<Cta*>(&cta), nullptr}, 1}, cta, first, count, what);
}

void check_columns(const CtaGroup& group, const Cta& executing, uint32_t first, uint32_t count, const char* what) {
  if (first + count > TensorMemory::kColumns)
    throw Trap(FaultKind::tensor_memory_unallocated,
               fmt::format("{} columns {} to {}: tensor memory has 512", what, first, first + count - 1),
               "PTX ISA, Tensor Memory: 128 lanes x 512 columns");
  for (uint32_t i = 0; i < group.size; ++i) {
    const Cta& cta = *group.ctas[i];
    if (&cta != &executing && cta.exited())
      throw Trap(
          FaultKind::peer_gone, FaultCode::illegal_address,
          fmt::format("{} columns of CTA {}, the other one of the pair, which has ended: end a CTA of a pair only "
                      "when all MMAs that work on it are complete",
                      what, cta.rank),
          "PTX ISA, CTA Pair");
    for (uint32_t column = first; column < first + count; ++column) {
      TensorMemory::Owner owner = cta.tensor_memory.owner(column);
      if (owner == cta.owner) continue;
      throw Trap(FaultKind::tensor_memory_unallocated,
                 fmt::format("{} columns {} to {}{}: column {} is {}. {} may use what its tcgen05.alloc gave it", what,
                             first, first + count - 1, group.size == 1 ? "" : fmt::format(" of CTA {}", cta.rank),
                             column, owner ? "another CTA's" : "not allocated", group.size == 1 ? "This CTA" : "A CTA"),
                 "PTX ISA, Tensor Memory: columns must be allocated before use");
    }
  }
}

std::span<const Entry> tcgen05_entries() {
  return kEntries;
}

}  // namespace emu::isa
