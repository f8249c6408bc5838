#include "emulator/ptx/control_flow.h"

#include <algorithm>
#include <string_view>

namespace emu::ptx {
namespace {

bool is_branch(const Instruction& i) {
  return i.name() == "bra" || i.name() == "brx";
}
bool is_leave(const Instruction& i) {
  return i.name() == "ret" || i.name() == "exit" || i.name() == "trap";
}

void connect(ControlFlow& flow, uint32_t from, uint32_t to) {
  std::vector<uint32_t>& next = flow.blocks[from].next;
  if (std::find(next.begin(), next.end(), to) != next.end()) return;
  next.push_back(to);
  flow.blocks[to].previous.push_back(from);
}

void make_blocks(const Function& function, ControlFlow& flow) {
  const std::vector<Instruction>& body = function.body;
  const uint32_t size = static_cast<uint32_t>(body.size());
  std::vector<char> starts(size + 1, 0);
  starts[0] = 1;
  for (uint32_t i = 0; i < size; ++i) {
    if (is_branch(body[i]) || is_leave(body[i])) starts[i + 1] = 1;
    if (body[i].name() == "bra") starts[body[i].operands[0].index] = 1;
  }
  for (const std::vector<uint32_t>& table : function.branch_targets) {
    for (uint32_t target : table) starts[target] = 1;
  }
  flow.block_of.resize(size);
  for (uint32_t i = 0; i < size; ++i) {
    if (starts[i]) {
      flow.blocks.emplace_back();
      flow.blocks.back().first = i;
    }
    flow.blocks.back().last = i;
    flow.block_of[i] = static_cast<uint32_t>(flow.blocks.size() - 1);
  }
  for (uint32_t b = 0; b < flow.blocks.size(); ++b) {
    const uint32_t last = flow.blocks[b].last;
    const Instruction& instruction = body[last];
    const bool falls_through = instruction.guard != kNone || !(is_branch(instruction) || is_leave(instruction));
    if (falls_through && last + 1 < size) connect(flow, b, b + 1);
    if (instruction.name() == "bra") {
      connect(flow, b, flow.block_of[instruction.operands[0].index]);
    } else if (instruction.name() == "brx") {
      for (uint32_t target : function.branch_targets[instruction.operands[1].index])
        connect(flow, b, flow.block_of[target]);
    }
    flow.blocks[b].leaves = is_leave(instruction);
  }
}

void mark_reachable(ControlFlow& flow) {
  std::vector<uint32_t> pending{0};
  flow.blocks[0].reachable = true;
  while (!pending.empty()) {
    const uint32_t b = pending.back();
    pending.pop_back();
    for (uint32_t n : flow.blocks[b].next) {
      if (!flow.blocks[n].reachable) flow.blocks[n].reachable = true, pending.push_back(n);
    }
  }
}

/// Which blocks end which part of the function: `level` of a block is the first of the ends, in order of preference,
/// that it can reach. A step to a block of a higher level is a step that never comes back to the way its own level
/// takes.
struct Ends {
  std::vector<uint32_t> level;
  std::vector<char> is_end;
};

Ends find_ends(const Function& function, const ControlFlow& flow) {
  const std::vector<Block>& blocks = flow.blocks;
  const uint32_t size = static_cast<uint32_t>(blocks.size());
  Ends ends{std::vector<uint32_t>(size, kNone), std::vector<char>(size, 0)};
  std::vector<uint32_t> pending;
  const auto spread = [&](uint32_t level) {
    while (!pending.empty()) {
      const uint32_t b = pending.back();
      pending.pop_back();
      for (uint32_t p : blocks[b].previous) {
        if (ends.level[p] == kNone) ends.level[p] = level, pending.push_back(p);
      }
    }
  };
  const auto add = [&](uint32_t b, uint32_t level) {
    ends.level[b] = level;
    ends.is_end[b] = 1;
    pending.push_back(b);
  };

  // All returns of a .func lead to the same place. Of a kernel's, the last in the text is the one that compilers let
  // all ways run into.
  uint32_t level = 0;
  if (!function.is_entry) {
    for (uint32_t b = 0; b < size; ++b) {
      if (blocks[b].leaves && function.body[blocks[b].last].name() == "ret") add(b, level);
    }
    spread(level++);
  }
  for (std::string_view kind : {"ret", "exit", "trap"}) {
    for (uint32_t b = size; b-- > 0;) {
      if (ends.level[b] == kNone && blocks[b].leaves && function.body[blocks[b].last].name() == kind) {
        add(b, level);
        spread(level++);
      }
    }
  }
  // What is left loops for ever. Walk along until everything that follows has been seen: that is a loop's closing step,
  // its end for us.
  std::vector<uint32_t> seen_by(size, kNone);
  for (uint32_t start = 0; start < size; ++start) {
    if (ends.level[start] != kNone) continue;
    uint32_t b = start;
    for (bool moved = true; moved;) {
      seen_by[b] = start;
      moved = false;
      for (uint32_t n : blocks[b].next) {
        if (ends.level[n] == kNone && seen_by[n] != start) {
          b = n;
          moved = true;
          break;
        }
      }
    }
    add(b, level);
    spread(level++);
  }
  return ends;
}

/// Immediate dominators in the reversed graph by the semi-dominator method (Lengauer and Tarjan 1979, in the form of
/// Georgiadis 2005).
class PostDominators {
 public:
  PostDominators(const ControlFlow& flow, const Ends& ends)
      : flow_(flow), ends_(ends), root_(static_cast<uint32_t>(flow.blocks.size())) {}

  std::vector<uint32_t> compute() {
    number();
    const uint32_t count = static_cast<uint32_t>(order_.size());
    semi_.resize(count);
    label_.resize(count);
    ancestor_.assign(count, kNone);
    for (uint32_t i = 0; i < count; ++i) semi_[i] = label_[i] = i;
    for (uint32_t i = count; i-- > 1;) {
      for_each_previous(order_[i], [&](uint32_t v) { semi_[i] = std::min(semi_[i], semi_[evaluate(number_[v])]); });
      label_[i] = i;
      ancestor_[i] = parent_[i];
    }
    std::vector<uint32_t> dominator(count, 0), result(root_, kNone);
    for (uint32_t i = 1; i < count; ++i) {
      uint32_t d = parent_[i];
      while (d > semi_[i]) d = dominator[d];
      dominator[i] = d;
      result[order_[i]] = order_[d] == root_ ? kNone : order_[d];
    }
    return result;
  }

 private:
  bool kept(uint32_t from, uint32_t to) const { return ends_.level[from] == ends_.level[to]; }

  /// In the reversed graph a block comes before those that lead to it; the root comes before the ends.
  template <class F>
  void for_each_previous(uint32_t b, F f) const {
    for (uint32_t n : flow_.blocks[b].next) {
      if (kept(b, n)) f(n);
    }
    if (ends_.is_end[b]) f(root_);
  }

  void number() {
    number_.assign(root_ + 1, kNone);
    std::vector<std::pair<uint32_t, uint32_t>> pending{{root_, 0}};  // block, number of its parent
    while (!pending.empty()) {
      const auto [b, parent] = pending.back();
      pending.pop_back();
      if (number_[b] != kNone) continue;
      const uint32_t n = number_[b] = static_cast<uint32_t>(order_.size());
      order_.push_back(b);
      parent_.push_back(parent);
      if (b == root_) {
        for (uint32_t e = 0; e < root_; ++e) {
          if (ends_.is_end[e]) pending.emplace_back(e, n);
        }
      } else {
        for (uint32_t p : flow_.blocks[b].previous) {
          if (kept(p, b)) pending.emplace_back(p, n);
        }
      }
    }
  }

  /// The vertex of least semi-dominator on the path to the root of the forest built so far, with the path compressed.
  uint32_t evaluate(uint32_t v) {
    if (ancestor_[v] == kNone) return label_[v];
    path_.clear();
    for (uint32_t u = v; ancestor_[ancestor_[u]] != kNone; u = ancestor_[u]) path_.push_back(u);
    for (size_t i = path_.size(); i-- > 0;) {
      const uint32_t u = path_[i], a = ancestor_[u];
      if (semi_[label_[a]] < semi_[label_[u]]) label_[u] = label_[a];
      ancestor_[u] = ancestor_[a];
    }
    return label_[v];
  }

  const ControlFlow& flow_;
  const Ends& ends_;
  const uint32_t root_;
  std::vector<uint32_t> number_, order_, parent_, semi_, label_, ancestor_, path_;
};

}  // namespace

ControlFlow analyse(const Function& function) {
  ControlFlow flow;
  const uint32_t size = static_cast<uint32_t>(function.body.size());
  flow.reconvergence.assign(size, kNone);
  if (size == 0) return flow;
  make_blocks(function, flow);
  mark_reachable(flow);
  const Ends ends = find_ends(function, flow);
  const std::vector<uint32_t> dominator = PostDominators(flow, ends).compute();

  for (uint32_t b = 0; b < flow.blocks.size(); ++b) flow.blocks[b].post_dominator = dominator[b];
  for (uint32_t i = 0; i < size; ++i) {
    const Instruction& instruction = function.body[i];
    const bool guarded = instruction.guard != kNone;
    if (instruction.name() == "call" && guarded) {
      flow.reconvergence[i] = i + 1;
      continue;
    }
    if (!(guarded && (is_branch(instruction) || is_leave(instruction))) && instruction.name() != "brx") continue;
    const uint32_t b = flow.block_of[i];
    const Block& block = flow.blocks[b];
    const auto ways = std::count_if(block.next.begin(), block.next.end(),
                                    [&](uint32_t n) { return ends.level[n] == ends.level[b]; }) +
                      (block.leaves && ends.is_end[b] ? 1 : 0);
    const bool someone_to_meet = ways > 1 || (block.next.size() == 1 && !block.leaves);
    flow.reconvergence[i] = someone_to_meet && dominator[b] != kNone ? flow.blocks[dominator[b]].first : size;
  }
  return flow;
}

}  // namespace emu::ptx
