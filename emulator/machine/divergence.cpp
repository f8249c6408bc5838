// How lanes of a warp part and meet again. See warp.h for the model.

#include <algorithm>

#include "emulator/machine/cluster.h"

namespace emu {

void Cluster::free_group(Group& group) {
  group.state = Group::State::free;
  group.ticket = ++tickets_;
  group.mask = 0;
  group.joins.clear();
  group.frame = {};
}

Group& Cluster::split(Warp& warp, uint32_t lanes, uint32_t pc, uint32_t reconverge) {
  Group& group = *warp.group;
  const Frame* where = group.frame.get();
  if (reconverge == Instruction::kNoReconvergence && where->parent) {
    reconverge = where->return_pc;
    where = where->parent.get();
  }
  bool meet =
      reconverge != Instruction::kNoReconvergence &&
      std::find(warp.unmet.begin(), warp.unmet.end(), std::pair(where->program, reconverge)) == warp.unmet.end();
  if (meet) {
    // A loop that lanes leave one after the other needs one join, not one per turn.
    bool same = !group.joins.empty() && warp.joins[group.joins.back()].is_at(where, reconverge) &&
                (warp.joins[group.joins.back()].expected & group.mask) == group.mask;
    if (!same) group.joins.push_back(warp.new_join(where, reconverge, group.mask));
  }
  group.mask &= ~lanes;
  Group* other = warp.new_group(group.frame, pc, lanes, group.joins);
  other->state = Group::State::ready;
  ready_.push_back(other);
  return *other;
}

Flow Cluster::diverge(Warp& warp, const Instruction& instruction, uint32_t taken, uint32_t target) {
  Group& group = *warp.group;
  if (taken == group.mask) {
    group.pc = target;
    return Flow::jump;
  }
  part(warp, taken, target, instruction.reconverge);
  ++group.pc;
  return Flow::jump;
}

void Cluster::part(Warp& warp, uint32_t lanes, uint32_t pc, uint32_t reconverge) {
  Group& other = split(warp, lanes, pc, reconverge);
  // They may be where lanes meet already.
  if (other.joins.empty() || !warp.joins[other.joins.back()].is_at(other.frame.get(), pc)) return;
  std::erase(ready_, &other);
  Group* waiting = &other;
  arrive_at_joins(warp, waiting);
  if (waiting) {
    waiting->state = Group::State::ready;
    ready_.push_back(waiting);
  }
}

Flow Cluster::return_lanes(Warp& warp, uint32_t lanes, uint32_t reconverge) {
  Group* group = warp.group;
  bool all = lanes == group->mask;
  if (!all) {
    group = &split(warp, lanes, group->pc, reconverge);
    std::erase(ready_, group);
  }
  // Nobody waits for them inside the function any more.
  const Frame& frame = *group->frame;
  size_t keep = group->joins.size();
  while (keep > 0 && warp.joins[group->joins[keep - 1]].frame == &frame) --keep;
  if (keep < group->joins.size()) {
    std::vector<uint32_t> joins = group->joins;
    group->joins.resize(keep);
    drop_from_joins(warp, joins, keep, lanes);
  }
  group->pc = frame.return_pc;
  group->frame = FramePointer(frame.parent);
  if (all) {
    warp.enter(*group);
    return Flow::jump;
  }
  arrive_at_joins(warp, group);
  if (group) {
    group->state = Group::State::ready;
    ready_.push_back(group);
  }
  return Flow::next;
}

/// While `group` stands at its innermost join: waits there for the others (group becomes nullptr), or goes on with all
/// of them.
void Cluster::arrive_at_joins(Warp& warp, Group*& group) {
  while (group && !group->joins.empty() && warp.joins[group->joins.back()].is_at(group->frame.get(), group->pc)) {
    uint32_t id = group->joins.back();
    Join& join = warp.joins[id];
    join.arrived |= group->mask;
    if (join.arrived != join.expected) {
      group->state = Group::State::parked;
      group->ticket = ++tickets_;
      group->wait = {.kind = WaitKind::join, .pc = group->pc, .since = clock};
      group = nullptr;
      return;
    }
    for (auto& other : warp.groups)
      if (other.get() != group && other->state == Group::State::parked && other->wait.kind == WaitKind::join &&
          !other->joins.empty() && other->joins.back() == id) {
        group->mask |= other->mask;
        free_group(*other);
      }
    group->joins.pop_back();
    warp.free_joins.push_back(id);
    join = {};
  }
}

/// After `expected` shrank: lets those who wait go on when nobody else will come.
void Cluster::settle_join(Warp& warp, uint32_t id) {
  Join& join = warp.joins[id];
  if (join.expected == 0) {
    if (std::find(warp.free_joins.begin(), warp.free_joins.end(), id) == warp.free_joins.end()) {
      bool used = std::any_of(warp.groups.begin(), warp.groups.end(), [&](auto& group) {
        return group->state != Group::State::free &&
               std::find(group->joins.begin(), group->joins.end(), id) != group->joins.end();
      });
      if (!used) warp.free_joins.push_back(id);
    }
    return;
  }
  if (join.arrived != join.expected) return;
  for (auto& candidate : warp.groups) {
    if (candidate->state != Group::State::parked || candidate->wait.kind != WaitKind::join ||
        candidate->joins.empty() || candidate->joins.back() != id)
      continue;
    Group* group = candidate.get();
    arrive_at_joins(warp, group);
    if (group) {
      group->state = Group::State::ready;
      group->ticket = ++tickets_;
      group->wait.kind = WaitKind::none;
      ready_.push_back(group);
    }
    return;
  }
}

/// `lanes` leave the joins of `joins` from index `keep` on: nobody shall wait for them there.
void Cluster::drop_from_joins(Warp& warp, const std::vector<uint32_t>& joins, size_t keep, uint32_t lanes) {
  for (size_t i = joins.size(); i-- > keep;) {
    warp.joins[joins[i]].expected &= ~lanes;
    warp.joins[joins[i]].arrived &= ~lanes;
    settle_join(warp, joins[i]);
  }
}

/// Lanes that have waited at a join since `before` may be those that the others wait for: hardware promises progress to
/// each lane. They go on, and this warp's lanes do not wait there again.
bool Cluster::release_joins(uint64_t before) {
  bool released = false;
  for (auto& cta : ctas)
    for (auto& warp : cta->warps)
      for (size_t i = 0; i < warp->groups.size(); ++i) {
        const Group& group = *warp->groups[i];
        if (group.state != Group::State::parked || group.wait.kind != WaitKind::join || group.wait.since > before)
          continue;
        give_up_join(*warp, group.joins.back());
        released = true;
      }
  return released;
}

void Cluster::give_up_join(Warp& warp, uint32_t id) {
  warp.unmet.emplace_back(warp.joins[id].frame->program, warp.joins[id].pc);
  for (auto& group : warp.groups) {
    if (group->state == Group::State::free || std::erase(group->joins, id) == 0) continue;
    if (group->state != Group::State::parked || group->wait.kind != WaitKind::join || group->wait.pc != group->pc)
      continue;
    Group* waiting = group.get();
    arrive_at_joins(warp, waiting);  // an outer one may be at the same place
    if (!waiting) continue;
    waiting->state = Group::State::ready;
    waiting->ticket = ++tickets_;
    waiting->wait.kind = WaitKind::none;
    ready_.push_back(waiting);
  }
  warp.joins[id] = {};
  warp.free_joins.push_back(id);
}

bool Cluster::gather(Warp& warp, uint32_t lanes, WaitKind kind) {
  Group& group = *warp.group;
  group.state = Group::State::parked;
  group.ticket = ++tickets_;
  group.wait = {.kind = kind, .pc = group.pc, .lanes = lanes, .since = clock};
  const auto here_too = [&](const Group& other) {
    return other.state == Group::State::parked && other.wait.kind == kind && other.wait.pc == group.pc &&
           other.frame == group.frame;
  };
  uint32_t here = 0;
  for (auto& other : warp.groups)
    if (here_too(*other)) here |= other->mask;
  if ((here & lanes & warp.live) != (lanes & warp.live)) return false;

  // All are here. They go on as one group, under the joins that they have in common.
  std::vector<uint32_t> common = group.joins;
  for (auto& other : warp.groups)
    if (here_too(*other)) {
      auto [a, b] = std::mismatch(common.begin(), common.end(), other->joins.begin(), other->joins.end());
      common.erase(a, common.end());
    }
  std::vector<std::pair<std::vector<uint32_t>, uint32_t>> left;
  for (auto& other : warp.groups)
    if (here_too(*other)) {
      left.emplace_back(other->joins, other->mask);
      if (other.get() == &group) continue;
      group.mask |= other->mask;
      free_group(*other);
    }
  group.joins = common;
  group.state = Group::State::ready;
  group.wait.kind = WaitKind::none;
  for (auto& [joins, mask] : left) drop_from_joins(warp, joins, common.size(), mask);
  return true;
}

uint32_t Cluster::meet_elsewhere(Warp& warp, Execute execute) {
  for (const auto& first : warp.groups) {
    const auto waits_there = [&](const Group& group) {
      return group.state == Group::State::parked && group.wait.kind == WaitKind::lanes &&
             group.frame->program->code[group.wait.pc].execute == execute;
    };
    if (!waits_there(*first)) continue;
    const uint32_t wanted = first->wait.lanes & warp.live;
    const auto fellow = [&](const Group& group) {
      return waits_there(group) && (group.wait.lanes & warp.live) == wanted;
    };
    uint32_t here = 0;
    for (const auto& group : warp.groups)
      if (fellow(*group)) here |= group->mask;
    if (wanted & ~here) continue;
    std::vector<Group*> met;
    for (const auto& group : warp.groups)
      if (fellow(*group)) met.push_back(group.get());
    for (Group* group : met) {
      group->pc = group->wait.pc + 1;
      wake(*group);
    }
    return wanted;
  }
  return 0;
}

/// Lanes exited: perhaps those that a gathering waited for.
void Cluster::gathered(Warp& warp, Group& group) {
  Group* running = warp.group;
  warp.group = &group;  // no registers are touched
  WaitKind kind = group.wait.kind;
  uint32_t lanes = kind == WaitKind::aligned ? warp.live : group.wait.lanes;
  if (gather(warp, lanes, kind))
    ready_.push_back(&group);
  else if (kind == WaitKind::lanes && group.frame->program->code[group.wait.pc].meets_elsewhere)
    meet_elsewhere(warp, group.frame->program->code[group.wait.pc].execute);
  warp.group = running;
}

}  // namespace emu
