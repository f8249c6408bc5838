#include "emulator/machine/cluster.h"

#include <fmt/format.h>

#include <bit>

#include "emulator/hazards/hazards.h"
#include "emulator/isa/tensor_access.h"
#include "emulator/machine/grid.h"
#include "emulator/report/fault_report.h"

namespace emu {
namespace {

constexpr uint32_t kQuantum = 64;       // warp instructions a group runs before the next one has its turn
constexpr uint64_t kTurnsToAStop = 64;  // turns of a CTA in a cluster before it stands still, on average

}  // namespace

Cluster::Cluster(Grid& grid_, uint64_t id_) : grid(grid_), id(id_) {}
Cluster::~Cluster() = default;

void Cluster::start() {
  live_ctas_ = static_cast<uint32_t>(ctas.size());
  for (auto& cta : ctas) {
    cta->start();
    if (schedule() == Schedule::random && ctas.size() > 1) cta->stands_until = clock + random_delay();
    missing_warps_ += cta->live_warps;
    for (auto& warp : cta->warps) {
      warp->group->state = Group::State::ready;
      ready_.push_back(warp->group);
    }
    trace({cta->rank, 0, grid.program.first_source, -1}, "cta_start", {cta->index.x, cta->index.y, cta->index.z});
  }
  if (grid.device.options().check) hazards = std::make_unique<hazards::Hazards>(*this);
}

/// In turn, or any of them (`random`). Of several CTAs each stands still now and then, from its start on: nothing says
/// that the CTAs of a cluster begin together or keep pace.
Group* Cluster::next_group() {
  if (schedule() == Schedule::random) {
    auto able = ready_.end();
    if (ctas.size() > 1) {
      able = std::partition(ready_.begin(), ready_.end(),
                            [this](const Group* group) { return group->warp->cta.stands_until <= clock; });
      if (able == ready_.begin()) {
        clock = next_event_;
        for (const Group* group : ready_) clock = std::min(clock, group->warp->cta.stands_until);
        return nullptr;
      }
    }
    if (const auto count = static_cast<uint64_t>(able - ready_.begin()); count > 1)
      std::swap(ready_[0], ready_[draw() % count]);
    if (ctas.size() > 1 && draw() % kTurnsToAStop == 0)
      ready_[0]->warp->cta.stands_until = clock + random_delay();  // behind this turn
  }
  Group* group = ready_.front();
  ready_.pop_front();
  return group;
}

Cluster::Stop Cluster::run(bool admitted) {
  try {
    if (ctas.empty() || !ctas[0]->started()) start();
    if (admitted && asks_for_event_)
      event_admitted_ = true, admitted = false;
    else if (admitted)
      ready_.front()->admitted = true;
    while (true) {
      if (grid.overdue()) end_overdue();
      if (next_event_ <= clock && !fire_due()) return Stop::needs_admission;
      if (ready_.empty()) {
        if (live_ctas_ == 0 && events_.empty()) return Stop::finished;
        if (!idle()) return Stop::needs_admission;
        continue;
      }
      Group* group = admitted ? ready_.front() : next_group();
      if (!group) continue;
      if (admitted)
        ready_.pop_front();  // its turn goes on: a loop over visible instructions shall not keep the others from theirs
      else
        quantum_ = schedule() == Schedule::random ? 1 + draw() % kQuantum : kQuantum;
      admitted = false;
      if (!run_group(*group)) {
        ready_.push_front(group);
        watch_for_cycle();
        return Stop::needs_admission;
      }
      if (grid.stopping()) return Stop::needs_admission;
      published_clock.store(clock, std::memory_order_release);
      grid.note_clock(clock);
      watch_for_cycle();
    }
  } catch (const Trap& trap) {
    throw ClusterFault{report_trap(*this, current_, trap)};
  }
}

bool Cluster::run_group(Group& group) {
  Warp& warp = *group.warp;
  Group* running = &group;
  warp.enter(group);
  while (true) {
    const Instruction& instruction = warp.program().code[running->pc];
    uint32_t active = running->mask;
    if (instruction.guard.present()) active &= warp.predicate(instruction.guard);
    if (instruction.aligned && active != 0 && running->mask != warp.live) {
      if (!gather(warp, warp.live, WaitKind::aligned)) return true;
      running = warp.group;
      active = running->mask;
      if (instruction.guard.present()) active &= warp.predicate(instruction.guard);
    }
    current_ = {warp.cta.rank, warp.index, instruction.source, active ? std::countr_zero(active) : -1};
    if (active == 0) {
      ++running->pc;
    } else {
      if (instruction.visible && !running->admitted) return false;
      running->admitted = false;
      if (!warp.pending.empty() && !instruction.drains) resolve_tensor_dependencies(warp, instruction);
      if (!warp.unread.empty() && !instruction.drains) note_tensor_consumption(warp, instruction, active);
      if (warp.registers_held && !instruction.drains && !settle_wgmma(warp, instruction)) return true;
      if (instruction.aligned && active != warp.live)
        throw Trap(
            FaultKind::aligned_divergence,
            fmt::format("an .aligned instruction whose guard is true for some lanes only (lanes {:#010x} of {:#010x}): "
                        "all lanes of the warp must execute it together",
                        active, warp.live),
            "PTX ISA, .aligned: all threads in the warp must execute the same instruction");
      warp.active = active;
      ++warp.counters.instructions;
      ++clock;
      if (instruction.visible) note_outside_read();
      Flow flow = instruction.execute(warp, instruction);
      if (hazards) hazards->settle();
      if (flow == Flow::next) {
        ++running->pc;
      } else if (flow != Flow::jump) {
        return true;
      }
    }
    if (!running->joins.empty()) {
      arrive_at_joins(warp, running);
      if (!running) return true;
    }
    if (clock >= next_event_ || --quantum_ == 0) {
      running->state = Group::State::ready;
      ready_.push_back(running);
      return true;
    }
  }
}

void Cluster::retire_lanes(Warp& warp, uint32_t lanes) {
  if (hazards) hazards->lanes_exit(warp, lanes);
  warp.live &= ~lanes;
  note_effect();
  for (uint32_t join = 0; join < warp.joins.size(); ++join) {
    if (!(warp.joins[join].expected & lanes)) continue;
    warp.joins[join].expected &= ~lanes;
    warp.joins[join].arrived &= ~lanes;
    settle_join(warp, join);
  }
  Cta& cta = warp.cta;
  if (warp.live == 0) {
    --cta.live_warps;
    if (cta.live_warps == 0) {
      if (uint32_t columns = cta.tensor_memory.held_by(cta.owner))
        throw Trap(FaultKind::tensor_memory_leak,
                   fmt::format(
                       "the CTA ends with {} columns of tensor memory still allocated: tcgen05.dealloc them before the "
                       "kernel ends, or the next CTA on this SM blocks in tcgen05.alloc",
                       columns),
                   "PTX ISA, tcgen05.dealloc: all allocated tensor memory must be freed before the kernel exits");
      --live_ctas_;
      if (hazards) hazards->cta_exits(cta);
      trace({cta.rank, 0, grid.program.first_source, -1}, "cta_exit");
    }
  } else {
    for (auto& group : warp.groups)
      if (group->state == Group::State::parked &&
          (group->wait.kind == WaitKind::aligned || group->wait.kind == WaitKind::lanes))
        gathered(warp, *group);
  }
  barrier_lanes_left(warp);
  cluster_lanes_left(warp);
}

Origin Cluster::origin(const Warp& warp, int lane) const {
  const std::vector<Instruction>& code = warp.program().code;
  uint32_t source = code[std::min<size_t>(warp.group->pc, code.size() - 1)].source;
  return {warp.cta.rank, warp.index, source, lane};
}

void Cluster::trace(const Origin& origin, const char* event, std::initializer_list<uint64_t> values,
                    std::span<const int32_t> coordinates) {
  if (grid.device.options().trace_path.empty()) return;
  traced_sources.insert(origin.source);
  trace_text +=
      fmt::format("{} {} {} {} {} {} {}", clock, id, origin.cta_rank, origin.warp, origin.lane, origin.source, event);
  for (uint64_t value : values) trace_text += fmt::format(" {:#x}", value);
  for (int32_t coordinate : coordinates) trace_text += fmt::format(" {}", coordinate);
  trace_text += '\n';
}

}  // namespace emu
