#pragma once
// What the files of the bulk copies share: operands of the instructions, who is told when a copy is done.

#include <vector>

#include "emulator/isa/binder.h"
#include "emulator/machine/cluster.h"
#include "emulator/units/tma.h"

namespace emu::isa {

// Of a bulk copy's Instruction: `address` is the first address; list2 holds the others as pairs of slots (base,
// offset); list the coordinates; operand 1 the size in bytes, operand 2 the multicast mask; modifiers these bits:
inline constexpr uint64_t kMulticast = 1, kReduce = 2;
inline constexpr int kReductionShift = 8, kTypeShift = 16;

AddressOperand second_address(const Warp& warp, const Instruction& instruction, uint32_t which);
uint32_t shared_address(const Warp& warp, const AddressOperand& operand, int lane);
/// Throws Trap when the CTA has exited.
tma::Window window_of(Cta& cta);
TensorMap read_map(Warp& warp, uint64_t address);
std::vector<int32_t> read_coordinates(const Warp& warp, const Instruction& instruction, int lane);
/// CTAs that a load writes to: the one that the address names, or those of the multicast mask.
std::vector<Cta*> destinations(Warp& warp, const Instruction& instruction, int lane, uint32_t address);

/// The barrier at `barrier`'s offset in `cta` gets its bytes (on an H200 the rank that the operand names does not
/// matter).
void complete_bytes(Cluster& cluster, Cta& cta, uint32_t barrier, uint64_t bytes, const Origin& who);
/// True when all but the `allowed` most recent committed groups of the lane are done (reading only, or altogether).
bool groups_done(const Warp& warp, int lane, uint64_t allowed, bool reading);

/// A bulk_group operation, from issue to end: counts in its group and wakes who waits for it.
struct GroupTicket {
  Warp* warp;
  uint32_t lane;
  uint64_t group;

  static GroupTicket issue(Warp& warp, int lane);
  BulkGroups::Counts& counts() const;
  /// Of the events that read the source and that write the result.
  Cluster::Order reading(uint64_t chain) const {
    return {.chain = chain, .bulk = {.warp = warp, .lane = lane, .group = group, .reads = true}};
  }
  Cluster::Order writing(uint64_t chain, bool visible) const {
    return {.chain = chain, .visible = visible, .bulk = {.warp = warp, .lane = lane, .group = group}};
  }
  void read_done() const;
  void written() const;
};

// One issue by one lane.
void issue_tensor_load(Warp& warp, const Instruction& instruction,
                       int lane);  // [dst], [map, {coordinates}], [mbarrier]
void issue_tensor_store(Warp& warp, const Instruction& instruction,
                        int lane);  // [map, {coordinates}], [src]; or a reduction
void issue_bulk_load(Warp& warp, const Instruction& instruction,
                     int lane);  // [dst shared], [src global], bytes, [mbarrier]
void issue_bulk_store(Warp& warp, const Instruction& instruction,
                      int lane);  // [dst global], [src shared], bytes; or a reduction
void issue_bulk_shared(Warp& warp, const Instruction& instruction,
                       int lane);  // [dst shared::cluster], [src shared::cta], bytes, [mbarrier]

}  // namespace emu::isa
