#pragma once
// What the files of the bulk copies share: operands of the instructions, who is told when a copy is done.

#include <functional>
#include <span>
#include <vector>

#include "emulator/hazards/hazards.h"
#include "emulator/isa/binder.h"
#include "emulator/machine/cluster.h"
#include "emulator/units/tma.h"

namespace emu::isa {

// Of a bulk copy's Instruction: `address` is the first address; list2 holds the others (Binder::second_addresses);
// list the coordinates, and behind them the offsets of im2col; operand 1 the size in bytes, operand 2 the multicast
// mask; modifiers these bits:
inline constexpr uint64_t kMulticast = 1, kReduce = 2, kPair = 4, kFourRows = 8, kIm2col = 16;
inline constexpr int kReductionShift = 8, kTypeShift = 16;

uint32_t shared_address(const Warp& warp, const AddressOperand& operand, int lane);
/// Throws Trap when the CTA has exited.
tma::Window window_of(Cta& cta);
/// Where a bulk copy reads. A CTA may end before that happens: its memory stays its own until it has. CUTLASS's
/// epilogues end with their last stores under way.
tma::Window source_window_of(Cta& cta);
TensorMap read_map(Warp& warp, uint64_t address);
std::vector<int32_t> read_coordinates(const Warp& warp, const Instruction& instruction, int lane);
/// Where a load writes to, and the mbarrier (shared::cluster address) that it tells.
struct Destination {
  Cta* cta;
  uint32_t barrier;
};
/// The CTA that the address names, or those of the multicast mask (none where it is 0). The barrier told is the one at
/// `barrier`'s offset in the same CTA, whatever rank the operand names (so does an H200); with .cta_group::2 it may be
/// the peer's.
std::vector<Destination> destinations(Warp& warp, const Instruction& instruction, int lane, uint32_t address,
                                      uint32_t barrier);

/// The halves of a load: `read` takes `bytes` bytes from the source, `place` puts them into one CTA's window. Each
/// destination sees them at a time of its own.
struct Load {
  uint64_t bytes;
  std::function<void(std::span<std::byte>)> read;
  std::function<void(std::span<const std::byte>, Cta&)> place;
  uint64_t operation;  ///< for the trace
  /// The shared bytes that `place` writes, for the hazard rules: calls visit(address, bytes).
  std::function<void(const std::function<void(uint32_t, uint32_t)>&)> ranges;
  /// The same of the global bytes that `read` reads.
  std::function<void(const std::function<void(uint64_t, uint64_t)>&)> sources;
};
/// "tma_load" in the trace, for each CTA that gets the bytes. `from`: of a tensor map its address and the box's
/// coordinates; nothing for plain bytes.
struct TracedSource {
  uint64_t map_address = 0;
  std::span<const int32_t> coordinates = {};
};
uint64_t trace_load(Cluster& cluster, const Origin& who, const std::vector<Destination>& to, uint32_t offset,
                    uint64_t bytes, const TracedSource& from = {});
/// "tma_load_shown": one CTA of the destinations has the bytes.
void trace_shown(Cluster& cluster, const Origin& who, const Destination& to, uint64_t operation);
/// "tma_store".
uint64_t trace_store(Cluster& cluster, const Origin& who, uint32_t offset, uint64_t bytes, const TracedSource& to = {});
void issue_load(Warp& warp, int lane, const std::vector<Destination>& to, Load load);

/// For the hazard rules: what an operation touches of a CTA's shared memory.
using Ranges = std::vector<hazards::Hazards::Bytes>;
Ranges box_ranges(const tma::Box& box, uint32_t offset);
/// Of a copy that tells `barrier` and has been issued by `lane`; nullptr where nobody asks.
hazards::IssuedPointer announce_bytes(Warp& warp, int lane, uint32_t barrier);
/// Its bytes are in `cta` now; before the barrier is told.
void bytes_shown(Cluster& cluster, const hazards::IssuedPointer& operation, hazards::Kind kind, Cta& cta,
                 uint32_t barrier, const Ranges& ranges);

/// The mbarrier at this shared::cluster address gets its bytes.
void complete_bytes(Cluster& cluster, uint32_t barrier, uint64_t bytes, const Origin& who);
/// True when all but the `allowed` most recent committed groups of the lane are done (reading only, or altogether).
bool groups_done(const Warp& warp, int lane, uint64_t allowed, bool reading);

/// A bulk_group operation, from issue to end: counts in its group and wakes who waits for it.
struct GroupTicket {
  Warp* warp;
  uint32_t lane;
  uint64_t group;

  static GroupTicket issue(Warp& warp, int lane);
  /// For the hazard rules: the operation's read of its source; nullptr where nobody asks.
  hazards::IssuedPointer reads_source() const;
  hazards::IssuedPointer writes_result() const;  ///< the same of its result
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
void check_prefetch(Warp& warp, const Instruction& instruction, int lane);  // [map, {coordinates}]
void issue_bulk_load(Warp& warp, const Instruction& instruction,
                     int lane);  // [dst shared], [src global], bytes, [mbarrier]
void issue_bulk_store(Warp& warp, const Instruction& instruction,
                      int lane);  // [dst global], [src shared], bytes; or a reduction
void issue_bulk_shared(Warp& warp, const Instruction& instruction,
                       int lane);  // [dst shared::cluster], [src shared::cta], bytes, [mbarrier]

}  // namespace emu::isa
