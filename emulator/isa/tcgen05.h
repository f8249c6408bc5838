#pragma once
// What the files of the tcgen05 family share.

#include <array>
#include <functional>
#include <string_view>

#include "emulator/hazards/hazards.h"
#include "emulator/isa/binder.h"
#include "emulator/machine/cluster.h"
#include "emulator/units/descriptor.h"
#include "emulator/units/descriptor_operand.h"

namespace emu::isa {

/// Modifiers bit of every tcgen05 instruction that has a .cta_group: it is ::2.
constexpr uint64_t kPair = uint64_t{1} << 63;

/// Takes .cta_group::1 or ::2; sets kPair in the instruction's modifiers.
void take_cta_group(Binder& binder);

/// The CTAs that an instruction of one CTA works on: itself, or both of its pair, the even one first. PTX ISA, "CTA
/// Pair": the CTAs of a cluster whose %cluster_ctarank differ in the last bit alone.
struct CtaGroup {
  std::array<Cta*, 2> ctas{};
  uint32_t size = 1;
  Cta& leader() const { return *ctas[0]; }
  Cta** begin() { return ctas.data(); }
  Cta** end() { return ctas.data() + size; }
};
/// A shared-memory descriptor. The ISA wants 0b001 in its bits 46 to 48. Triton's releases up to 3.5 leave zeros there,
/// as for wgmma: taken with a remark, refused with LADDER_STRICT. `operand`: "A".
MatrixDescriptor matrix_descriptor(Warp& warp, uint64_t word, std::string_view operand);

/// Traps when the CTA has no peer. `what` reads "tcgen05.mma".
CtaGroup cta_group(Cta& cta, bool pair, const char* what);
/// The other CTA of the pair.
Cta& peer_of(Cta& cta, const char* what);

/// Traps unless columns [first, first + count) belong to `cta`. `what` reads "tcgen05.ld reads".
void check_columns(const Cta& cta, uint32_t first, uint32_t count, const char* what);
/// The same for every CTA of a group, all of which must be running.
void check_columns(const CtaGroup& group, const Cta& executing, uint32_t first, uint32_t count, const char* what);

/// An MMA, copy or shift: the tensor core of a CTA, or of a pair, carries them out in the order of their issue, also
/// those of different threads (PTX ISA asks for fences and a barrier between threads, not for completion).
/// `read` takes what is in shared memory, `show` works on tensor memory.
void issue_to_tensor_core(Warp& warp, int lane, const CtaGroup& group, std::function<void()> read,
                          std::function<void()> show);

/// For the hazard rules: an operation that tcgen05.commit tracks, issued by `lane`; nullptr where nobody asks.
hazards::IssuedPointer announce_tensor_work(Warp& warp, int lane);
/// It reads an operand in the CTA's shared memory now.
void tell_operand(Cta& cta, const hazards::IssuedPointer& operation, hazards::Kind kind,
                  const MatrixDescriptor& descriptor, const OperandShape& shape);

void bind_alloc(Binder& binder);  // tcgen05_alloc.cpp; each name has been taken
void bind_dealloc(Binder& binder);
void bind_relinquish(Binder& binder);
void bind_tensor_load(Binder& binder);  // tcgen05_ldst.cpp
void bind_tensor_store(Binder& binder);
void bind_tensor_wait(Binder& binder, bool loads);
void bind_mma(Binder& binder);     // tcgen05_mma.cpp
void bind_commit(Binder& binder);  // tcgen05_commit.cpp
void bind_copy(Binder& binder);    // tcgen05_copy.cpp
void bind_shift(Binder& binder);

}  // namespace emu::isa
