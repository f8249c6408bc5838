#include "emulator/report/look_ahead.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string_view>

#include "emulator/hazards/hazards.h"
#include "emulator/isa/families.h"
#include "emulator/isa/tma_issue.h"
#include "emulator/machine/grid.h"

namespace emu {
namespace {

constexpr uint64_t kMostOfOne = 3'000'000;  // instructions followed for one group
constexpr uint64_t kMostOfLap = 10'000;

/// Opcodes whose result depends on nothing but the lane's registers. Sorted.
constexpr auto kComputing = std::to_array<std::string_view>(
    {"abs",  "add",  "addc",  "and",  "bfe",  "bfi",   "bfind", "bmsk",  "brev", "clz",        "cnot",     "copysign",
     "cos",  "cvt",  "cvta",  "div",  "dp2a", "dp4a",  "ex2",   "fma",   "fns",  "getctarank", "isspacep", "lg2",
     "lop3", "mad",  "mad24", "madc", "mapa", "max",   "min",   "mov",   "mul",  "mul24",      "neg",      "not",
     "or",   "popc", "prmt",  "rcp",  "rem",  "rsqrt", "sad",   "selp",  "set",  "setp",       "shf",      "shl",
     "shr",  "sin",  "slct",  "sqrt", "sub",  "subc",  "tanh",  "testp", "xor"});
static_assert(std::ranges::is_sorted(kComputing));

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

uint64_t generic_address(const std::string& text, uint64_t address) {
  return has(text, ".shared") ? kSharedWindow + static_cast<uint32_t>(address) : address;
}

uint32_t accessed_bytes(const std::string& text) {
  size_t digits = text.size();
  while (digits > 0 && text[digits - 1] >= '0' && text[digits - 1] <= '9') --digits;
  const uint32_t bits = digits == text.size() ? 32 : static_cast<uint32_t>(std::stoul(text.substr(digits)));
  const uint32_t count = has(text, ".v2.") ? 2 : has(text, ".v4.") ? 4 : has(text, ".v8.") ? 8 : 1;
  return std::max(1u, bits / 8) * count;
}

LookAhead::Class LookAhead::class_of(const std::string& text) {
  const std::string_view name = std::string_view(text).substr(0, text.find('.'));
  if (std::ranges::binary_search(kComputing, name)) return Class::computes;
  if (name == "ld" || name == "ldu") return Class::loads;
  if (name == "mbarrier") {
    if (has(text, "_wait")) return Class::waits;
    return has(text, ".arrive") || has(text, "_tx") ? Class::signals : Class::skip;
  }
  if (has(text, "mbarrier::") || has(text, "mbarrier.arrive")) return Class::signals;
  if (name == "st" || name == "red" || name == "atom") return Class::stores;
  if (name == "bra") return Class::branches;
  if (name == "bar" || name == "barrier")
    return has(text, ".warp") || has(text, ".cluster") ? Class::skip : Class::barrier;
  if (name == "tcgen05") return has(text, "alloc.cta_group::2") ? Class::joins : Class::skip;  // dealloc as well
  if (text.starts_with("clusterlaunchcontrol.query")) return Class::answers;
  if (name == "elect") return Class::elects;
  if (name == "shfl") return Class::shuffles;
  if (name == "exit" || name == "ret" || name == "trap" || name == "brkpt") return Class::exits;
  constexpr std::array kUnknown{"call", "brx", "vote", "match", "redux", "activemask", "alloca"};
  return std::ranges::find(kUnknown, name) != kUnknown.end() ? Class::unknown : Class::skip;
}

const std::vector<LookAhead::Class>& LookAhead::classes_of(const Program& program) {
  std::vector<Class>& classes = classes_[&program];
  if (classes.empty())
    for (const Instruction& instruction : program.code)
      classes.push_back(class_of(cluster_.grid.text(instruction.source)));
  return classes;
}

void LookAhead::note(Future& future, Deed::Kind kind, uint64_t address, uint32_t source, int lane) const {
  for (Deed& deed : future.deeds)
    if (deed.kind == kind && deed.address == address && deed.source == source) {
      deed.lanes |= 1u << lane;
      return;
    }
  future.deeds.push_back({kind, address, source, 1u << lane});
}

/// The barriers that the instruction tells, where its operands lie as their families put them.
void LookAhead::note_signal(Future& future, Warp& warp, const Instruction& instruction, int lane) const {
  const std::string& text = cluster_.grid.text(instruction.source);
  auto told = [&](uint32_t address) { note(future, Deed::Kind::signal, address, instruction.source, lane); };
  auto shared = [](uint64_t address) {
    return static_cast<uint32_t>(is_shared(address) ? address - kSharedWindow : address);
  };
  if (text.starts_with("mbarrier") || text.starts_with("cp.async.mbarrier")) {
    told(shared(warp.address(instruction.address, lane)));
  } else if (text.starts_with("tcgen05.commit")) {
    const uint32_t address = shared(warp.address(instruction.address, lane));
    if (!instruction.operand[0].present()) return told(address);
    for_lanes(static_cast<uint32_t>(warp.scalar(instruction.operand[0], lane)) & 0xFFFF,
              [&](int rank) { told(static_cast<uint32_t>(rank) << 24 | shared_offset(address)); });
  } else if (text.starts_with("cp.async.bulk") || text.starts_with("cp.reduce.async.bulk")) {
    const uint32_t to = shared(warp.address(instruction.address, lane));
    const uint32_t barrier = shared(warp.address(warp.second_address(instruction, 1), lane));
    if (has(text, ".shared::cta.mbarrier")) return told(shared_rank(to) << 24 | shared_offset(barrier));
    for (const isa::Destination& each : isa::destinations(warp, instruction, lane, to, barrier)) told(each.barrier);
  } else if (has(text, "complete_tx")) {  // st.async, red.async, clusterlaunchcontrol.try_cancel
    const uint32_t to = shared(warp.address(instruction.address, lane));
    told(shared_rank(to) << 24 | shared_offset(shared(warp.address(warp.second_address(instruction, 0), lane))));
  }
}

void LookAhead::note_store(Future& future, Warp& warp, const Instruction& instruction, int lane) const {
  if (watched_.empty()) return;
  const std::string& text = cluster_.grid.text(instruction.source);
  const uint64_t address = generic_address(text, warp.address(instruction.address, lane));
  auto hit = watched_.lower_bound(address);
  if (hit != watched_.end() && *hit < address + accessed_bytes(text))
    note(future, Deed::Kind::store, *hit, instruction.source, lane);
}

Future LookAhead::of(Group& group, uint32_t pc) {
  uint64_t left = std::min(left_, kMostOfOne);
  left_ -= left;
  Future future = follow(group, pc, left, nullptr);
  left_ += left;
  return future;
}

std::vector<Asks> LookAhead::one_lap(Group& group) {
  std::vector<Asks> asks;
  uint64_t left = kMostOfLap;
  follow(group, group.pc, left, &asks);
  return asks;
}

namespace {

/// What is executed here has not happened: the hazard rules are not told of it.
class Untold {
 public:
  explicit Untold(Cluster& cluster) : cluster_(cluster), hazards_(std::move(cluster.hazards)) {}
  ~Untold() { cluster_.hazards = std::move(hazards_); }
  Untold(const Untold&) = delete;

 private:
  Cluster& cluster_;
  std::unique_ptr<hazards::Hazards> hazards_;
};

}  // namespace

/// `left`: instructions that may be executed. `lap`: what it asks for goes there, until it is back.
Future LookAhead::follow(Group& group, uint32_t from, uint64_t& left, std::vector<Asks>* lap) {
  Future future;
  Warp& warp = *group.warp;
  const Program& program = *group.frame->program;
  const std::vector<Class>& classes = classes_of(program);
  const InFrame registers(warp, *group.frame);
  const Untold untold(cluster_);
  const std::vector<std::byte> kept(group.frame->file(), group.frame->file() + program.warp_file_bytes);
  const uint32_t active_before = warp.active;
  Group* const group_before = std::exchange(warp.group, &group);
  if (group.state == Group::State::parked && group.wait.kind == WaitKind::mbarrier)
    warp.set_predicate(group.wait.result, kAllLanes, group.mask);

  struct Part {
    uint32_t pc, mask;
  };
  std::vector<Part> parts{{from, group.mask}};
  bool begun = false, answered = false;
  std::map<uint32_t, uint32_t> shuffled;  // by instruction: lanes that have been there
  auto asks = [&](const Instruction& instruction, bool is_wait) {
    const uint64_t address = warp.address(instruction.address, std::countr_zero(warp.active));
    if (lap)
      lap->push_back({instruction.source, generic_address(cluster_.grid.text(instruction.source), address), is_wait});
  };
  while (!parts.empty()) {
    auto [pc, mask] = parts.back();
    parts.pop_back();
    while (mask && pc < program.code.size()) {
      if (left == 0) {
        future.known = false;
        parts.clear();
        break;
      }
      --left;
      const bool back = lap && pc == from && std::exchange(begun, true);
      if (back) break;
      const Instruction& instruction = program.code[pc];
      const uint32_t active = instruction.guard.present() ? mask & warp.predicate(instruction.guard) : mask;
      uint32_t next = pc + 1;
      warp.active = active;
      if (active) try {
          switch (classes[pc]) {
            case Class::skip:
              break;
            case Class::computes:
              if (instruction.execute(warp, instruction) != Flow::next) mask = 0;
              break;
            case Class::loads:
              asks(instruction, false);
              // What another cluster could change is read in its turn only.
              if (lap || !instruction.visible) instruction.execute(warp, instruction);
              break;
            case Class::stores:
              if (cluster_.grid.text(instruction.source).starts_with("atom")) asks(instruction, false);
              for_lanes(active, [&](int lane) { note_store(future, warp, instruction, lane); });
              break;
            case Class::signals:
              for_lanes(active, [&](int lane) { note_signal(future, warp, instruction, lane); });
              break;
            case Class::waits:
              asks(instruction, true);
              warp.set_predicate(instruction.operand[0], lap ? 0 : kAllLanes);
              break;
            case Class::barrier:
              for_lanes(active, [&](int lane) {
                note(future, Deed::Kind::arrive_at_barrier, warp.scalar(instruction.operand[0], lane) & 0xFFFFFFFF,
                     instruction.source, lane);
              });
              break;
            case Class::joins:
              note(future, Deed::Kind::join_peer, 0, instruction.source, std::countr_zero(active));
              break;
            case Class::elects: {
              // Lanes that went different ways before meet there.
              uint32_t leaders = 0;
              for_lanes(active, [&](int lane) {
                const auto members = static_cast<uint32_t>(warp.scalar(instruction.operand[isa::kMembers], lane));
                leaders |= uint32_t{std::countr_zero(members & warp.live) == lane} << lane;
              });
              warp.set_predicate(instruction.operand[1], leaders);
              break;
            }
            case Class::shuffles: {
              // What another lane will bring is not known: as much as the lane has itself, once.
              const uint32_t again = std::exchange(shuffled[pc], shuffled[pc] | active) & active;
              future.known = false;
              mask &= ~again;
              auto* to = warp.write<uint32_t>(instruction.operand[0]);
              const auto* own = warp.read<uint32_t>(instruction.operand[1]);
              for_lanes(active & ~again, [&](int lane) { to[lane] = own[lane]; });
              if (instruction.list_count) warp.set_predicate(warp.listed(instruction.list, 0), kAllLanes);
              break;
            }
            case Class::answers:
              // What cluster launch control will answer is not known: yes, once.
              if (has(cluster_.grid.text(instruction.source), "is_canceled"))
                warp.set_predicate(instruction.operand[0], std::exchange(answered, true) ? 0 : kAllLanes);
              else
                instruction.execute(warp, instruction);
              break;
            case Class::branches:
              if (active != mask) parts.push_back({next, mask & ~active});
              mask = active;
              next = instruction.target;
              break;
            case Class::exits:
              mask &= ~active;
              if (group.frame->parent) future.known = false;
              break;
            case Class::unknown:
              mask &= ~active;
              future.known = false;
              break;
          }
        } catch (const Trap&) {  // it would end here, or what it computes with came from elsewhere
          mask = 0;
          future.known = false;
        }
      pc = next;
    }
  }
  warp.active = active_before;
  warp.group = group_before;
  std::memcpy(group.frame->file(), kept.data(), kept.size());
  return future;
}

}  // namespace emu
