// cp.async.bulk and cp.reduce.async.bulk: bytes without a tensor map. PTX ISA, "cp.async.bulk".

#include <memory>

#include "emulator/isa/tma_issue.h"

namespace emu::isa {

void issue_bulk_load(Warp& warp, const Instruction& instruction, int lane) {
  Cluster& cluster = warp.cta.cluster;
  uint32_t address = shared_address(warp, instruction.address, lane);
  uint64_t source = warp.address(warp.second_address(instruction, 0), lane);
  uint32_t barrier = shared_address(warp, warp.second_address(instruction, 1), lane);
  uint64_t bytes = warp.scalar(instruction.operand[1], lane);
  tma::check_bulk(shared_offset(address), source, bytes);
  std::vector<Destination> to = destinations(warp, instruction, lane, address, barrier);
  uint32_t offset = shared_offset(address);
  for (const Destination& each : to) tma::check_shared_range(offset, bytes, window_of(*each.cta));
  if (bytes == 0) return;  // nothing to wait for, and nobody does
  warp.counters.tma_loads++;
  warp.counters.bytes_from_global += bytes;
  warp.counters.bytes_into_shared += bytes * to.size();
  auto read = [&cluster, source](std::span<std::byte> staging) {
    tma::bulk_read_global(cluster.global(), source, staging);
  };
  auto place = [offset](std::span<const std::byte> staging, Cta& cta) {
    tma::bulk_write_shared(window_of(cta), offset, staging);
  };
  auto ranges = [offset, bytes](const std::function<void(uint32_t, uint32_t)>& visit) {
    visit(offset, static_cast<uint32_t>(bytes));
  };
  issue_load(warp, lane, to,
             {bytes, read, place, trace_load(cluster, cluster.origin(warp, lane), to, offset, bytes), ranges,
              [source, bytes](const std::function<void(uint64_t, uint64_t)>& visit) { visit(source, bytes); }});
}

void issue_bulk_store(Warp& warp, const Instruction& instruction, int lane) {
  Cluster& cluster = warp.cta.cluster;
  bool reduces = instruction.modifiers & kReduce;
  auto reduction = static_cast<tma::Reduction>(instruction.modifiers >> kReductionShift & 0xFF);
  auto type = static_cast<tma::ReductionType>(instruction.modifiers >> kTypeShift & 0xFF);
  uint64_t destination = warp.address(instruction.address, lane);
  uint32_t source = shared_address(warp, warp.second_address(instruction, 0), lane);
  uint64_t bytes = warp.scalar(instruction.operand[1], lane);
  tma::check_bulk(destination, shared_offset(source), bytes);
  Cta& from = cluster.cta_of(source);
  uint32_t offset = shared_offset(source);
  tma::check_shared_range(offset, bytes, source_window_of(from));
  if (reduces) tma::check_bulk_reduction(reduction, type, false);
  Origin who = cluster.origin(warp, lane);
  warp.counters.tma_stores++;
  warp.counters.bytes_to_global += bytes;
  const uint64_t operation = trace_store(cluster, who, offset, bytes);
  GroupTicket ticket = GroupTicket::issue(warp, lane);
  Cluster::Times times = cluster.draw_times();
  auto staging = std::make_shared<std::vector<std::byte>>(bytes);
  uint64_t chain = cluster.new_chain();
  cluster.at(times.read, warp.cta, who, ticket.reading(chain),
             [&cluster, staging, &from, offset, ticket, who, operation, reads = ticket.reads_source()] {
               if (reads) {
                 const hazards::Hazards::Bytes range{offset, staging->size()};
                 cluster.hazards->shared(*reads, hazards::Kind::tma_store, from, {&range, 1});
               }
               tma::bulk_read_shared(source_window_of(from), offset, *staging);
               cluster.trace(who, "tma_store_read", {operation});
               ticket.read_done();
             });
  cluster.at(times.show, warp.cta, who, ticket.writing(chain, reduces),
             [&cluster, staging, destination, ticket, reduces, reduction, type, who, operation,
              writes = ticket.writes_result()] {
               if (writes) {
                 const hazards::Hazards::Bytes range{destination, staging->size()};
                 cluster.hazards->global_written(*writes, hazards::Kind::tma_store, reduces, {&range, 1});
               }
               if (reduces)
                 tma::bulk_reduce_global(cluster.global(), destination, reduction, type, *staging);
               else
                 tma::bulk_write_global(cluster.global(), destination, *staging);
               if (writes) cluster.hazards->settle();
               cluster.note_effect();
               cluster.trace(who, "tma_store_shown", {operation});
               ticket.written();
             });
}

void issue_bulk_shared(Warp& warp, const Instruction& instruction, int lane) {
  Cluster& cluster = warp.cta.cluster;
  bool reduces = instruction.modifiers & kReduce;
  auto reduction = static_cast<tma::Reduction>(instruction.modifiers >> kReductionShift & 0xFF);
  auto type = static_cast<tma::ReductionType>(instruction.modifiers >> kTypeShift & 0xFF);
  uint32_t destination = shared_address(warp, instruction.address, lane);
  uint32_t source = shared_address(warp, warp.second_address(instruction, 0), lane);
  uint32_t barrier = shared_address(warp, warp.second_address(instruction, 1), lane);
  uint64_t bytes = warp.scalar(instruction.operand[1], lane);
  tma::check_bulk(shared_offset(destination), shared_offset(source), bytes);
  Cta& to = cluster.cta_of(destination);
  Cta& from = cluster.cta_of(source);
  tma::check_shared_range(shared_offset(source), bytes, source_window_of(from));
  tma::check_shared_range(shared_offset(destination), bytes, window_of(to));
  if (reduces) tma::check_bulk_reduction(reduction, type, true);
  Origin who = cluster.origin(warp, lane);
  Cluster::Times times = cluster.draw_times();
  auto staging = std::make_shared<std::vector<std::byte>>(bytes);
  uint64_t chain = cluster.new_chain();
  uint32_t signal = to.rank << 24 | shared_offset(barrier);
  mbarrier::need_plausible(cluster.mbarrier_word(signal, Access::atomic));
  const auto reads = announce_bytes(warp, lane, signal), writes = announce_bytes(warp, lane, signal);
  cluster.at(times.read, warp.cta, who, {chain}, [&cluster, staging, &from, source, reads, signal] {
    // Its source may be used again when the barrier has been told.
    bytes_shown(cluster, reads, hazards::Kind::bulk_read, from, signal, {{shared_offset(source), staging->size()}});
    tma::bulk_read_shared(source_window_of(from), shared_offset(source), *staging);
  });
  cluster.at(times.show, to, who, {chain, signal},
             [&cluster, staging, &to, destination, signal, who, reduces, reduction, type, writes] {
               bytes_shown(cluster, writes, hazards::Kind::tma_load, to, signal,
                           {{shared_offset(destination), staging->size()}});
               if (reduces)
                 tma::bulk_reduce_shared(window_of(to), shared_offset(destination), reduction, type, *staging);
               else
                 tma::bulk_write_shared(window_of(to), shared_offset(destination), *staging);
               cluster.note_effect();
               complete_bytes(cluster, signal, staging->size(), who);
             });
}

}  // namespace emu::isa
