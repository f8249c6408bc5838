// cp.async.bulk.tensor and cp.reduce.async.bulk.tensor: boxes of a tensor map. PTX ISA, "cp.async.bulk.tensor".

#include <array>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "emulator/isa/tma_issue.h"

namespace emu::isa {

namespace {

/// What one instruction moves: a box, or boxes of one row each, which lie in shared memory as the rows of one box
/// would: four (.tile::gather4, .tile::scatter4), or the pixels of a column (.im2col).
class Boxes {
 public:
  Boxes(Warp& warp, const Instruction& instruction, int lane, uint64_t map_address, tma::Direction direction) {
    TensorMap map = read_map(warp, map_address);
    const std::vector<int32_t>& at = coordinates_ = read_coordinates(warp, instruction, lane);
    const bool im2col = instruction.modifiers & kIm2col;
    if (im2col != map.im2col)
      throw Trap(
          FaultKind::tensor_map,
          fmt::format("an instruction {} .im2col and a tensor map made by cuTensorMapEncode{}: both must be of one "
                      "mode; an H200 faults with 715",
                      im2col ? "with" : "without", map.im2col ? "Im2col" : "Tiled"),
          "PTX ISA, cp.async.bulk.tensor: .load_mode");
    if (im2col) {
      add_column(map, at, direction);
      return;
    }
    if (!(instruction.modifiers & kFourRows)) {
      boxes_.emplace_back(map, at, direction);
      return;
    }
    constexpr const char* kSource = "PTX ISA, .tile::scatter4 and .tile::gather4 modes";
    if (map.rank != 2 || map.interleave != TensorMapInterleave::none || at.size() != 5)
      throw Trap(FaultKind::tensor_map,
                 fmt::format("four rows of a tensor map with {} dimensions, {} coordinates: the map must have two, "
                             "without interleave, the coordinates must be a column and four rows",
                             map.rank, at.size()),
                 kSource);
    if (map.box[1] != 1)
      throw Trap(FaultKind::tensor_map,
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
  const std::vector<int32_t>& coordinates() const { return coordinates_; }  ///< as the instruction gives them
  uint64_t global_bytes() const {
    uint64_t bytes = 0;
    for (const tma::Box& box : boxes_) bytes += box.global_bytes();
    return bytes;
  }

  void visit_global(const std::function<void(uint64_t, uint64_t)>& visit) const {
    for (const tma::Box& box : boxes_) box.visit_global(visit);
  }

  /// Calls f(box, its part of staging).
  template <class F>
  void each(std::span<std::byte> staging, F&& f) const {
    for (size_t i = 0; i < boxes_.size(); ++i) f(boxes_[i], staging.subspan(i * boxes_[i].bytes(), boxes_[i].bytes()));
  }

 private:
  /// The pixels of a column: the corner runs through the map's bounding box, innermost dimension first, and on through
  /// the images (PTX ISA, "im2col mode": order; an H200: everything else). `at`: the first corner and, of loads, the
  /// offsets from a corner to the pixel that is read.
  void add_column(TensorMap map, std::vector<int32_t> at, tma::Direction direction) {
    constexpr const char* kSource = "PTX ISA, im2col mode; an H200 faults with 715";
    const bool loads = direction == tma::Direction::load;
    const size_t rank = map.rank, box_dims = rank - 2;
    if (at.size() != rank + (loads ? box_dims : 0))
      throw Trap(FaultKind::tensor_map,
                 fmt::format("{} coordinates and offsets for an im2col tensor map of {} dimensions: {} are wanted",
                             at.size(), rank, rank + (loads ? box_dims : 0)),
                 kSource);
    for (size_t d = 1; d <= box_dims; ++d) {
      const int64_t first = map.lower[d - 1], last = static_cast<int64_t>(map.dims[d]) - 1 + map.upper[d - 1];
      if (at[d] < first || at[d] > last)
        throw Trap(FaultKind::tensor_map,
                   fmt::format("coordinate {} of dimension {}: a column begins inside the bounding box, {} to {}",
                               at[d], d, first, last),
                   kSource);
      if (!loads && (map.lower[d - 1] || map.upper[d - 1]))
        throw Trap(
            FaultKind::tensor_map,
            fmt::format("a store or reduction through an im2col map with corners {} and {} in dimension {}: they "
                        "must be 0",
                        map.lower[d - 1], map.upper[d - 1], d),
            kSource);
    }
    const uint32_t pixels = map.box[1];
    const auto steps = map.element_strides;
    map.box = {map.box[0], 1, 1, 1, 1};
    map.element_strides = {1, 1, 1, 1, 1};
    std::vector<int32_t> corner(at.begin(), at.begin() + static_cast<std::ptrdiff_t>(rank));
    for (uint32_t i = 0; i < pixels; ++i) {
      std::vector<int32_t> pixel = corner;
      for (size_t d = 1; loads && d <= box_dims; ++d) pixel[d] += at[rank + d - 1];
      boxes_.emplace_back(map, pixel, direction);
      for (size_t d = 1; d < rank; ++d) {
        corner[d] += static_cast<int32_t>(steps[d]);
        if (d > box_dims || corner[d] <= static_cast<int64_t>(map.dims[d]) - 1 + map.upper[d - 1]) break;
        corner[d] = map.lower[d - 1];
      }
    }
    map.rank = 2;
    map.dims[1] = map.box[1] = pixels;
    together_.emplace(map, std::array{at[0], 0}, direction);
  }

  std::vector<int32_t> coordinates_;
  std::vector<tma::Box> boxes_;
  std::optional<tma::Box> together_;  // four rows
};

Ranges global_ranges(const Boxes& boxes) {
  Ranges ranges;
  boxes.visit_global([&](uint64_t address, uint64_t bytes) { ranges.push_back({address, bytes}); });
  return ranges;
}

/// For the hazard rules: a tile that begins in the middle of its swizzle's pattern.
void tell_alignment(Warp& warp, int lane, const tma::Box& box, uint32_t address) {
  const uint32_t span = swizzle_span_bytes(box.map().swizzle);
  if (auto* const hazards = warp.cta.cluster.hazards.get(); hazards && span && shared_offset(address) % (8 * span))
    hazards->misaligned_tile(warp, lane, address, 8 * span);
}

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
  tell_alignment(warp, lane, boxes->shape(), address);
  Origin who = cluster.origin(warp, lane);
  warp.counters.tma_loads++;
  warp.counters.tma_box_rows += boxes->shape().rows();
  warp.counters.bytes_from_global += boxes->global_bytes();
  warp.counters.bytes_into_shared += boxes->bytes() * to.size();
  const uint64_t operation = trace_load(cluster, who, to, offset, boxes->bytes(), {map_address, boxes->coordinates()});
  if (cluster.schedule() == Schedule::earliest && to.size() == 1 && boxes->single()) {
    cluster.load_started(boxes->bytes());
    const auto announced = announce_bytes(warp, lane, to[0].barrier);
    if (announced) cluster.hazards->global_read(*announced, hazards::Kind::tma_load, global_ranges(*boxes), true);
    tma::load(boxes->shape(), cluster.global(), window_of(*to[0].cta), offset);
    if (announced)
      bytes_shown(cluster, announced, hazards::Kind::tma_load, *to[0].cta, to[0].barrier,
                  box_ranges(boxes->shape(), offset));
    cluster.note_effect();
    cluster.load_ended(boxes->bytes());
    cluster.trace(who, "tma_load_read", {operation});
    trace_shown(cluster, who, to[0], operation);
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
  auto ranges = [boxes, offset](const std::function<void(uint32_t, uint32_t)>& visit) {
    boxes->shape().visit_shared(offset, visit);
  };
  auto sources = [boxes](const std::function<void(uint64_t, uint64_t)>& visit) { boxes->visit_global(visit); };
  issue_load(warp, lane, to, {boxes->bytes(), read, place, operation, ranges, sources});
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
  boxes->shape().check_shared(offset, source_window_of(from));
  tell_alignment(warp, lane, boxes->shape(), source);
  Origin who = cluster.origin(warp, lane);
  warp.counters.tma_stores++;
  warp.counters.tma_box_rows += boxes->shape().rows();
  warp.counters.bytes_to_global += boxes->global_bytes();
  const uint64_t operation = trace_store(cluster, who, offset, boxes->bytes(), {map_address, boxes->coordinates()});
  GroupTicket ticket = GroupTicket::issue(warp, lane);
  Cluster::Times times = cluster.draw_times();
  const auto reads = ticket.reads_source(), writes = ticket.writes_result();
  const auto tell_written = [&cluster, boxes, writes, reduces] {
    if (writes) cluster.hazards->global_written(*writes, hazards::Kind::tma_store, reduces, global_ranges(*boxes));
  };
  const auto tell = [&cluster, boxes, offset, &from, reads] {
    if (reads) cluster.hazards->shared(*reads, hazards::Kind::tma_store, from, box_ranges(boxes->shape(), offset));
  };
  if (cluster.schedule() == Schedule::earliest && !reduces && boxes->single()) {
    tell();
    tell_written();
    tma::store(boxes->shape(), source_window_of(from), offset, cluster.global());
    if (writes) cluster.hazards->settle();
    cluster.note_effect();
    cluster.trace(who, "tma_store_read", {operation});
    ticket.read_done();
    cluster.trace(who, "tma_store_shown", {operation});
    ticket.written();
    return;
  }
  auto staging = std::make_shared<std::vector<std::byte>>(boxes->bytes());
  uint64_t chain = cluster.new_chain();
  cluster.at(times.read, warp.cta, who, ticket.reading(chain),
             [&cluster, boxes, staging, &from, offset, ticket, who, operation, tell] {
               tell();
               tma::collect(boxes->shape(), source_window_of(from), offset, *staging);
               cluster.trace(who, "tma_store_read", {operation});
               ticket.read_done();
             });
  cluster.at(times.show, warp.cta, who, ticket.writing(chain, reduces),
             [&cluster, boxes, staging, ticket, reduces, reduction, who, operation, tell_written] {
               tell_written();
               boxes->each(*staging, [&](const tma::Box& box, std::span<std::byte> part) {
                 if (reduces)
                   tma::reduce(box, reduction, part, cluster.global());
                 else
                   tma::scatter(box, part, cluster.global());
               });
               if (cluster.hazards) cluster.hazards->settle();
               cluster.note_effect();
               cluster.trace(who, "tma_store_shown", {operation});
               ticket.written();
             });
}

void check_prefetch(Warp& warp, const Instruction& instruction, int lane) {
  Boxes(warp, instruction, lane, warp.address(instruction.address, lane), tma::Direction::load);
}

}  // namespace emu::isa
