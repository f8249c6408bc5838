// cp.async.bulk.tensor and cp.reduce.async.bulk.tensor: boxes of a tensor map. PTX ISA, "cp.async.bulk.tensor".

#include <memory>

#include "emulator/isa/tma_issue.h"

namespace emu::isa {

void issue_tensor_load(Warp& warp, const Instruction& instruction, int lane) {
  Cluster& cluster = warp.cta.cluster;
  uint32_t address = shared_address(warp, instruction.address, lane);
  uint64_t map_address = warp.address(second_address(warp, instruction, 0), lane);
  uint32_t barrier = shared_address(warp, second_address(warp, instruction, 1), lane);
  auto box = std::make_shared<tma::Box>(read_map(warp, map_address), read_coordinates(warp, instruction, lane),
                                        tma::Direction::load);
  std::vector<Cta*> to = destinations(warp, instruction, lane, address);
  uint32_t offset = shared_offset(address);
  for (Cta* cta : to) box->check_shared(offset, window_of(*cta));
  Origin who = cluster.origin(warp, lane);
  warp.counters.tma_loads++;
  warp.counters.tma_box_rows += box->rows();
  warp.counters.bytes_from_global += box->global_bytes();
  warp.counters.bytes_into_shared += box->bytes() * to.size();
  cluster.trace(who, "tma_load", offset, map_address - reinterpret_cast<uint64_t>(cluster.grid_parameters()));
  cluster.load_started();
  Cluster::Times times = cluster.draw_times();
  if (cluster.schedule() == Schedule::earliest && to.size() == 1) {
    tma::load(*box, cluster.global(), window_of(*to[0]), offset);
    cluster.note_effect();
    cluster.load_ended();
    complete_bytes(cluster, *to[0], barrier, box->bytes(), who);
    return;
  }
  auto staging = std::make_shared<std::vector<std::byte>>(box->bytes());
  uint64_t chain = cluster.new_chain();
  uint32_t signal = to[0]->rank << 24 | shared_offset(barrier);
  cluster.at(times.read, warp.cta, who, {chain},
             [&cluster, box, staging] { tma::gather(*box, cluster.global(), *staging); });
  cluster.at(times.show, warp.cta, who, {chain, signal}, [&cluster, box, staging, to, offset, barrier, who] {
    cluster.load_ended();
    for (Cta* cta : to) {
      tma::place(*box, *staging, window_of(*cta), offset);
      cluster.note_effect();
      cluster.trace(who, "tma_shown", offset, box->bytes());
      complete_bytes(cluster, *cta, barrier, box->bytes(), who);
    }
  });
}

void issue_tensor_store(Warp& warp, const Instruction& instruction, int lane) {
  Cluster& cluster = warp.cta.cluster;
  bool reduces = instruction.modifiers & kReduce;
  auto reduction = static_cast<tma::Reduction>(instruction.modifiers >> kReductionShift & 0xFF);
  uint64_t map_address = warp.address(instruction.address, lane);
  uint32_t source = shared_address(warp, second_address(warp, instruction, 0), lane);
  auto box = std::make_shared<tma::Box>(read_map(warp, map_address), read_coordinates(warp, instruction, lane),
                                        reduces ? tma::Direction::reduce : tma::Direction::store);
  Cta& from = cluster.cta_of(source);
  uint32_t offset = shared_offset(source);
  box->check_shared(offset, window_of(from));
  Origin who = cluster.origin(warp, lane);
  warp.counters.tma_stores++;
  warp.counters.tma_box_rows += box->rows();
  warp.counters.bytes_to_global += box->global_bytes();
  cluster.trace(who, "tma_store", offset, box->bytes());
  GroupTicket ticket = GroupTicket::issue(warp, lane);
  Cluster::Times times = cluster.draw_times();
  if (cluster.schedule() == Schedule::earliest && !reduces) {
    tma::store(*box, window_of(from), offset, cluster.global());
    cluster.note_effect();
    ticket.read_done();
    ticket.written();
    return;
  }
  auto staging = std::make_shared<std::vector<std::byte>>(box->bytes());
  uint64_t chain = cluster.new_chain();
  cluster.at(times.read, warp.cta, who, ticket.reading(chain), [box, staging, &from, offset, ticket] {
    tma::collect(*box, window_of(from), offset, *staging);
    ticket.read_done();
  });
  cluster.at(times.show, warp.cta, who, ticket.writing(chain, reduces),
             [&cluster, box, staging, ticket, reduces, reduction] {
               if (reduces)
                 tma::reduce(*box, reduction, *staging, cluster.global());
               else
                 tma::scatter(*box, *staging, cluster.global());
               cluster.note_effect();
               ticket.written();
             });
}

}  // namespace emu::isa
