// cp.async.bulk.tensor and cp.reduce.async.bulk.tensor: boxes of a tensor map. PTX ISA, "cp.async.bulk.tensor".

#include <array>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "emulator/isa/tma_issue.h"

namespace emu::isa {

namespace {

/// What one instruction moves: a box, or four boxes of one row each (.tile::gather4, .tile::scatter4), which lie in
/// shared memory as the rows of one box would.
class Boxes {
 public:
  Boxes(Warp& warp, const Instruction& instruction, int lane, uint64_t map_address, tma::Direction direction) {
    TensorMap map = read_map(warp, map_address);
    std::vector<int32_t> at = read_coordinates(warp, instruction, lane);
    if (!(instruction.modifiers & kFourRows)) {
      boxes_.emplace_back(map, at, direction);
      return;
    }
    constexpr const char* kSource = "PTX ISA, .tile::scatter4 and .tile::gather4 modes";
    if (map.rank != 2 || map.interleave != TensorMapInterleave::none || at.size() != 5)
      throw Trap(FaultCode::illegal_instruction,
                 fmt::format("four rows of a tensor map with {} dimensions, {} coordinates: the map must have two, "
                             "without interleave, the coordinates must be a column and four rows",
                             map.rank, at.size()),
                 kSource);
    if (map.box[1] != 1)
      throw Trap(FaultCode::illegal_instruction,
                 fmt::format("four rows through a tensor map whose box has {} rows: encode it with a box of one row",
                             map.box[1]),
                 kSource);
    for (size_t row = 1; row <= 4; ++row) boxes_.emplace_back(map, std::array{at[0], at[row]}, direction);
    map.box[1] = 4;
    map.element_strides[1] = 1;
    together_.emplace(map, std::array{at[0], 0}, direction);
  }

  /// As it lies in shared memory.
  const tma::Box& shape() const { return together_ ? *together_ : boxes_[0]; }
  bool single() const { return !together_; }
  uint64_t bytes() const { return shape().bytes(); }
  uint64_t global_bytes() const {
    uint64_t bytes = 0;
    for (const tma::Box& box : boxes_) bytes += box.global_bytes();
    return bytes;
  }

  /// Calls f(box, its part of staging).
  template <class F>
  void each(std::span<std::byte> staging, F&& f) const {
    for (size_t i = 0; i < boxes_.size(); ++i) f(boxes_[i], staging.subspan(i * boxes_[i].bytes(), boxes_[i].bytes()));
  }

 private:
  std::vector<tma::Box> boxes_;
  std::optional<tma::Box> together_;  // four rows
};

}  // namespace

void issue_tensor_load(Warp& warp, const Instruction& instruction, int lane) {
  Cluster& cluster = warp.cta.cluster;
  uint32_t address = shared_address(warp, instruction.address, lane);
  uint64_t map_address = warp.address(warp.second_address(instruction, 0), lane);
  uint32_t barrier = shared_address(warp, warp.second_address(instruction, 1), lane);
  auto boxes = std::make_shared<Boxes>(warp, instruction, lane, map_address, tma::Direction::load);
  std::vector<Destination> to = destinations(warp, instruction, lane, address, barrier);
  uint32_t offset = shared_offset(address);
  for (const Destination& each : to) boxes->shape().check_shared(offset, window_of(*each.cta));
  Origin who = cluster.origin(warp, lane);
  warp.counters.tma_loads++;
  warp.counters.tma_box_rows += boxes->shape().rows();
  warp.counters.bytes_from_global += boxes->global_bytes();
  warp.counters.bytes_into_shared += boxes->bytes() * to.size();
  cluster.trace(who, "tma_load", offset, map_address - reinterpret_cast<uint64_t>(cluster.grid_parameters()));
  if (cluster.schedule() == Schedule::earliest && to.size() == 1 && boxes->single()) {
    cluster.load_started();
    tma::load(boxes->shape(), cluster.global(), window_of(*to[0].cta), offset);
    cluster.note_effect();
    cluster.load_ended();
    complete_bytes(cluster, to[0].barrier, boxes->bytes(), who);
    return;
  }
  auto read = [&cluster, boxes](std::span<std::byte> staging) {
    boxes->each(staging,
                [&](const tma::Box& box, std::span<std::byte> part) { tma::gather(box, cluster.global(), part); });
  };
  auto place = [boxes, offset](std::span<const std::byte> staging, Cta& cta) {
    tma::place(boxes->shape(), staging, window_of(cta), offset);
  };
  issue_load(warp, lane, to, {boxes->bytes(), read, place, offset});
}

void issue_tensor_store(Warp& warp, const Instruction& instruction, int lane) {
  Cluster& cluster = warp.cta.cluster;
  bool reduces = instruction.modifiers & kReduce;
  auto reduction = static_cast<tma::Reduction>(instruction.modifiers >> kReductionShift & 0xFF);
  uint64_t map_address = warp.address(instruction.address, lane);
  uint32_t source = shared_address(warp, warp.second_address(instruction, 0), lane);
  auto boxes = std::make_shared<Boxes>(warp, instruction, lane, map_address,
                                       reduces ? tma::Direction::reduce : tma::Direction::store);
  Cta& from = cluster.cta_of(source);
  uint32_t offset = shared_offset(source);
  boxes->shape().check_shared(offset, window_of(from));
  Origin who = cluster.origin(warp, lane);
  warp.counters.tma_stores++;
  warp.counters.tma_box_rows += boxes->shape().rows();
  warp.counters.bytes_to_global += boxes->global_bytes();
  cluster.trace(who, "tma_store", offset, boxes->bytes());
  GroupTicket ticket = GroupTicket::issue(warp, lane);
  Cluster::Times times = cluster.draw_times();
  if (cluster.schedule() == Schedule::earliest && !reduces && boxes->single()) {
    tma::store(boxes->shape(), window_of(from), offset, cluster.global());
    cluster.note_effect();
    ticket.read_done();
    ticket.written();
    return;
  }
  auto staging = std::make_shared<std::vector<std::byte>>(boxes->bytes());
  uint64_t chain = cluster.new_chain();
  cluster.at(times.read, warp.cta, who, ticket.reading(chain), [boxes, staging, &from, offset, ticket] {
    tma::collect(boxes->shape(), window_of(from), offset, *staging);
    ticket.read_done();
  });
  cluster.at(times.show, warp.cta, who, ticket.writing(chain, reduces),
             [&cluster, boxes, staging, ticket, reduces, reduction] {
               boxes->each(*staging, [&](const tma::Box& box, std::span<std::byte> part) {
                 if (reduces)
                   tma::reduce(box, reduction, part, cluster.global());
                 else
                   tma::scatter(box, part, cluster.global());
               });
               cluster.note_effect();
               ticket.written();
             });
}

void check_prefetch(Warp& warp, const Instruction& instruction, int lane) {
  Boxes(warp, instruction, lane, warp.address(instruction.address, lane), tma::Direction::load);
}

}  // namespace emu::isa
