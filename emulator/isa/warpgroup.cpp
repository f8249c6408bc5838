#include "emulator/isa/warpgroup.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "emulator/isa/tensor_access.h"
#include "emulator/machine/grid.h"

namespace emu {
namespace {

constexpr const char* kSource = "PTX ISA, wgmma.mma_async";
/// A NaN that no arithmetic makes, as an f32 and as two f16.
constexpr uint32_t kPoison = 0xFFFFDEAD;
constexpr uint32_t kGranule = 64;

[[noreturn]] void refuse(const std::string& why) {
  throw Trap(FaultCode::illegal_instruction, why, kSource);
}

/// The value that all lanes must agree on.
uint64_t uniform(const Warp& warp, const Slot& slot, const char* what) {
  const uint64_t value = warp.scalar(slot, 0);
  for (int lane = 1; lane < kLanes; ++lane)
    if (warp.scalar(slot, lane) != value)
      refuse(
          fmt::format("the {} differs between the lanes of warp {} ({:#x} in lane 0, {:#x} in lane {}): it must be "
                      "the same in the whole warpgroup",
                      what, warp.index, value, warp.scalar(slot, lane), lane));
  return value;
}

bool adds_to_d(const Warp& warp, const Slot& scale_d) {
  const uint32_t bits = warp.predicate(scale_d);
  if (bits != 0 && bits != kAllLanes)
    refuse(fmt::format("the predicate scale-d is {:#010x} in the lanes of warp {}: it must be the same in all of them",
                       bits, warp.index));
  return bits != 0;
}

SharedWindow window_of(const Cta& cta) {
  return {cta.window.data(), cta.cluster.grid.device.chip().shared_reserved_bytes, cta.window_bytes};
}

}  // namespace

size_t Warpgroup::Part::granule(const void* at) const {
  return static_cast<size_t>(static_cast<const std::byte*>(at) - file) / kGranule;
}

uint64_t WgmmaForm::packed() const {
  return static_cast<uint64_t>(a) | static_cast<uint64_t>(b) << 8 | static_cast<uint64_t>(d) << 16 | uint64_t{n} << 24 |
         uint64_t{negate_a} << 40 | uint64_t{negate_b} << 41 | uint64_t{saturate} << 42 |
         uint64_t{a_major == Major::mn} << 43 | uint64_t{b_major == Major::mn} << 44;
}

WgmmaForm WgmmaForm::unpack(uint64_t bits) {
  return {.a = static_cast<ElementType>(bits & 0xFF),
          .b = static_cast<ElementType>(bits >> 8 & 0xFF),
          .d = static_cast<AccumulatorType>(bits >> 16 & 0xFF),
          .n = static_cast<uint32_t>(bits >> 24 & 0xFFFF),
          .negate_a = (bits >> 40 & 1) != 0,
          .negate_b = (bits >> 41 & 1) != 0,
          .saturate = (bits >> 42 & 1) != 0,
          .a_major = bits >> 43 & 1 ? Major::mn : Major::k,
          .b_major = bits >> 44 & 1 ? Major::mn : Major::k};
}

Warpgroup& Warpgroup::of(Warp& warp) {
  if (warp.warpgroup) return *warp.warpgroup;
  Cta& cta = warp.cta;
  const uint32_t first = warp.index / 4 * 4, warps = static_cast<uint32_t>(cta.warps.size());
  if (first + 4 > warps || cta.warps[first + 3]->lanes_at_start != kAllLanes)
    refuse(
        fmt::format("wgmma by warp {} of a CTA of {} threads: a warpgroup is four whole warps of which the first is "
                    "a multiple of 4, here warps {} to {}",
                    warp.index, cta.cluster.grid.config.block.count(), first, first + 3));
  auto group = std::make_shared<Warpgroup>(cta, first);
  for (uint32_t w = first; w < first + 4; ++w) cta.warps[w]->warpgroup = group;
  return *group;
}

std::string Warpgroup::missing(const Warp& warp) const {
  const Part& waiting = parts_[warp.index - first_warp_];
  std::string list;
  for (uint32_t w = 0; w < 4; ++w)
    if (parts_[w].issued < waiting.issued) list += fmt::format("{}{}", list.empty() ? "" : ", ", first_warp_ + w);
  return list;
}

/// The instruction that this is warp's part of.
Wgmma& Warpgroup::join(Warp& warp, const Instruction& instruction, uint64_t number) {
  if (number - done_ <= queue_.size()) {
    check_alike(warp, instruction, queued(number));
    return queued(number);
  }
  auto mma = std::make_shared_for_overwrite<Wgmma>();
  mma->instruction = &instruction;
  mma->form = WgmmaForm::unpack(instruction.modifiers);
  mma->a_in_registers = instruction.list2_count != 0;
  mma->adds = adds_to_d(warp, instruction.operand[2]);
  mma->who = cta_.cluster.origin(warp);
  const WgmmaForm& form = mma->form;
  if (!mma->a_in_registers) {
    mma->a_word = uniform(warp, instruction.operand[0], "descriptor of A");
    mma->a = decode_wgmma_matrix_descriptor(mma->a_word, "A");
    check_operand(mma->a, {64, form.a, form.a_major}, "A");
  }
  mma->b_word = uniform(warp, instruction.operand[1], "descriptor of B");
  mma->b = decode_wgmma_matrix_descriptor(mma->b_word, "B");
  check_operand(mma->b, {form.n, form.b, form.b_major}, "B");
  queue_.push_back(mma);
  return *queue_.back();
}

void Warpgroup::check_alike(Warp& warp, const Instruction& instruction, const Wgmma& mma) const {
  if (mma.instruction != &instruction)
    refuse(fmt::format(
        "warp {} executes a wgmma.mma_async that is not the one of the other warps of its warpgroup "
        "(warps {} to {}; the other one is that of PTX line {}): all four must execute the same ones in "
        "the same order",
        warp.index, first_warp_, first_warp_ + 3, cta_.cluster.grid.location(mma.instruction->source).ptx_line));
  const auto same = [&](const char* what, uint64_t own, uint64_t others) {
    if (own != others)
      refuse(fmt::format("the {} is {:#x} in warp {} and {:#x} in warp {}: it must be the same in the whole warpgroup",
                         what, own, warp.index, others, mma.who.warp));
  };
  if (!mma.a_in_registers)
    same("descriptor of A", uniform(warp, instruction.operand[0], "descriptor of A"), mma.a_word);
  same("descriptor of B", uniform(warp, instruction.operand[1], "descriptor of B"), mma.b_word);
  same("predicate scale-d", adds_to_d(warp, instruction.operand[2]), mma.adds);
}

/// The rows of D that the tensor core has already, or takes now.
std::shared_ptr<HeldAccumulator> Warpgroup::hold(Warp& warp, const Instruction& instruction, const Wgmma& mma) {
  Part& mine = part(warp);
  const WgmmaForm& form = mma.form;
  const uint32_t* first = warp.write<uint32_t>(warp.listed(instruction.list, 0));
  for (auto& held : mine.held)
    if (held->registers[0] == first) return held;  // issue() has seen to it that the others are the same, too
  auto held = std::make_shared<HeldAccumulator>();
  held->type = form.d;
  held->n = form.n;
  for (uint32_t i = 0; i < instruction.list_count; ++i)
    held->registers.push_back(warp.write<uint32_t>(warp.listed(instruction.list, i)));
  held->rows.resize(size_t{kFragmentRows} * form.n);
  if (mma.adds) accumulator_to_rows(form.d, form.n, held->registers.data(), held->rows.data(), form.n);
  if (mine.held.empty()) {
    mine.file = warp.file();
    mine.granules.assign(warp.file_bytes() / kGranule + 2, 0);
  }
  for (uint32_t* reg : held->registers) {
    ++mine.granules[mine.granule(reg)];
    if (warp.strict()) std::fill(reg, reg + kLanes, kPoison);
  }
  mine.held.push_back(held);
  warp.registers_held = true;
  return held;
}

/// Gives back the registers of accumulators on which nothing after wgmma `number` works.
void Warpgroup::release(Warp& warp, uint64_t number) {
  Part& mine = part(warp);
  std::erase_if(mine.held, [&](const std::shared_ptr<HeldAccumulator>& held) {
    if (held->last > number) return false;
    rows_to_accumulator(held->type, held->n, held->rows.data(), held->n, held->registers.data());
    for (uint32_t* reg : held->registers) --mine.granules[mine.granule(reg)];
    return true;
  });
  warp.registers_held = !mine.held.empty();
}

bool Warpgroup::issue(Warp& warp, const Instruction& instruction) {
  if (warp.live != kAllLanes)
    refuse(
        fmt::format("wgmma by lanes {:#010x} of warp {}, whose other lanes have exited: the whole warpgroup must "
                    "execute it",
                    warp.live, warp.index));
  for (uint32_t w = 0; w < 4; ++w)
    if (parts_[w].issued <= part(warp).issued && !cta_.warps[first_warp_ + w]->live)
      refuse(
          fmt::format("warp {} executes a wgmma.mma_async, but warp {} of its warpgroup has exited without it: all "
                      "four warps ({} to {}) must execute it",
                      warp.index, first_warp_ + w, first_warp_, first_warp_ + 3));
  Part& mine = part(warp);
  // The tensor core may hold registers that this one wants otherwise: as A, or as part of another D.
  uint64_t must_be_done = 0;
  const auto held_there = [&](const Slot& slot) {
    return slot.bank == Slot::warp && mine.granules[mine.granule(warp.write<uint32_t>(slot))] != 0;
  };
  const auto same_registers = [&](const HeldAccumulator& held) {
    if (held.registers.size() != instruction.list_count) return false;
    for (uint32_t i = 0; i < instruction.list_count; ++i)
      if (held.registers[i] != warp.write<uint32_t>(warp.listed(instruction.list, i))) return false;
    return true;
  };
  if (!mine.held.empty() && mine.file != warp.file()) {
    must_be_done = mine.issued;  // registers of another function
  } else if (!mine.held.empty()) {
    bool overlaps = false, same = false;
    for (uint32_t i = 0; i < instruction.list_count; ++i) overlaps |= held_there(warp.listed(instruction.list, i));
    for (auto& held : mine.held)
      same |= same_registers(*held) && held->type == WgmmaForm::unpack(instruction.modifiers).d;
    if (overlaps && !same) must_be_done = mine.issued;
    if (!warp.strict())
      for (uint32_t i = 0; i < instruction.list2_count; ++i)
        if (held_there(warp.listed(instruction.list2, i))) must_be_done = mine.issued;
  }
  if (must_be_done > 0) {
    if (!reach(warp, must_be_done)) return false;
    release(warp, must_be_done);
  }

  const uint64_t number = mine.issued + 1;
  Wgmma& mma = join(warp, instruction, number);
  const uint32_t w = warp.index - first_warp_;
  mine.issued = number;
  if (mma.a_in_registers) {
    const uint32_t* registers[4];
    for (uint32_t i = 0; i < 4; ++i) registers[i] = warp.read<uint32_t>(warp.listed(instruction.list2, i));
    multiplicand_to_rows(registers, mma.a_dense.data() + size_t{w} * kFragmentRows * kOperandBytesPerRow);
  }
  mma.d[w] = hold(warp, instruction, mma);
  mma.d[w]->last = number;
  mma.warps |= 1u << w;
  if (hazards::Hazards* const hazards = cta_.cluster.hazards.get()) {
    const auto part_of_warp = mine.last = hazards->issue(warp, -1);
    if (!mma.announced) {
      mma.announced = part_of_warp;
      hazards->completes_in_wgmma_group(*mma.announced, cta_.rank, first_warp_, number);
    } else {
      hazards->joins(*mma.announced, *part_of_warp);
    }
  }
  warp.counters.mmas++;
  if (mma.warps == 0xF) start(queue_[number - done_ - 1]);
  return true;
}

/// All four warps have issued it.
void Warpgroup::start(std::shared_ptr<Wgmma> mma) {
  Cluster& cluster = cta_.cluster;
  mma->state = Wgmma::State::issued;
  Cluster::Times times = cluster.draw_times();
  times.show = time_ = std::max(times.show, time_);
  mma->operation = cluster.new_operation();
  cluster.trace(mma->who, "wgmma", {mma->operation, mma->a_in_registers ? 0 : mma->a.start, mma->b.start});
  cluster.mma_started();
  // Apart from the chains that Cluster::new_chain hands out, and those of tcgen05.
  const Cluster::Order order{.chain = uint64_t{1} << 62 | uint64_t{cta_.rank} << 32 | first_warp_};
  cluster.at(times.read, cta_, mma->who, order, [self = shared_from_this(), mma] { self->read(*mma); });
  cluster.at(times.show, cta_, mma->who, order, [self = shared_from_this(), mma] {
    while (mma->state != Wgmma::State::done) self->finish_first();
    self->wake();
  });
  // Somebody waits for it already.
  if (cluster.schedule() == Schedule::latest)
    for (const Part& waiting : parts_)
      if (waiting.waiter && mma->state != Wgmma::State::done) finish_through(waiting.waits_for);
  wake();
}

void Warpgroup::read(Wgmma& mma) {
  if (mma.state != Wgmma::State::issued) return;
  mma.state = Wgmma::State::read;
  cta_.cluster.trace(mma.who, "wgmma_read", {mma.operation});
  const SharedWindow window = window_of(cta_);
  if (!mma.a_in_registers) gather_operand(window, mma.a, {64, mma.form.a, mma.form.a_major}, "A", mma.a_dense.data());
  gather_operand(window, mma.b, {mma.form.n, mma.form.b, mma.form.b_major}, "B", mma.b_dense.data());
  if (mma.announced) {
    const auto tell = [&](const MatrixDescriptor& descriptor, const OperandShape& shape) {
      std::vector<hazards::Hazards::Bytes> ranges;
      for_each_piece(descriptor, shape, [&](uint64_t address, uint64_t bytes) { ranges.push_back({address, bytes}); });
      cta_.cluster.hazards->shared(*mma.announced, hazards::Kind::wgmma_operands, cta_, ranges);
    };
    if (!mma.a_in_registers) tell(mma.a, {64, mma.form.a, mma.form.a_major});
    tell(mma.b, {mma.form.n, mma.form.b, mma.form.b_major});
  }
}

void Warpgroup::finish_first() {
  std::shared_ptr<Wgmma> mma = queue_.front();
  read(*mma);
  auto& [a, b] = packed_operands();
  const WgmmaForm& form = mma->form;
  a.pack(form.a, 64, mma->a_dense.data(), form.negate_a);
  b.pack(form.b, form.n, mma->b_dense.data(), form.negate_b);
  std::array<uint32_t*, 64> rows;
  for (uint32_t row = 0; row < rows.size(); ++row)
    rows[row] = mma->d[row / kFragmentRows]->rows.data() + size_t{row % kFragmentRows} * form.n;
  const bool eight_bits = form.a == ElementType::e4m3 || form.a == ElementType::e5m2;
  fused_multiply_add(a, b,
                     {.type = form.d,
                      .input = mma->adds,
                      .rule = eight_bits ? FusedRule::hopper8 : FusedRule::wide,
                      .saturate = form.saturate},
                     rows);
  mma->state = Wgmma::State::done;
  queue_.pop_front();
  ++done_;
  Cluster& cluster = cta_.cluster;
  cluster.mma_ended();
  cluster.note_effect();
  cluster.trace(mma->who, "wgmma_shown", {mma->operation});
}

/// Those that have started, up to `number`.
void Warpgroup::finish_through(uint64_t number) {
  while (done_ < number && !queue_.empty() && queue_.front()->state != Wgmma::State::gathering) {
    const Origin outer = cta_.cluster.act_as(queue_.front()->who);
    finish_first();
    cta_.cluster.act_as(outer);
  }
}

void Warpgroup::wake() {
  for (Part& waiting : parts_)
    if (waiting.waiter && done_ >= waiting.waits_for) cta_.cluster.wake(*std::exchange(waiting.waiter, nullptr));
}

/// True when wgmma `number` and those before it are done; else the running group waits for them.
bool Warpgroup::reach(Warp& warp, uint64_t number) {
  if (done_ < number && cta_.cluster.schedule() == Schedule::latest) {
    finish_through(number);
    wake();
  }
  if (done_ >= number) return true;
  Part& mine = part(warp);
  mine.waits_for = number;
  mine.waiter = &cta_.cluster.park(warp, warp.group->mask, {.kind = WaitKind::wgmma}, warp.group->pc);
  return false;
}

void Warpgroup::commit(Warp& warp) {
  Part& mine = part(warp);
  mine.groups.push_back(mine.issued);
}

bool Warpgroup::wait(Warp& warp, uint64_t pending) {
  Part& mine = part(warp);
  if (mine.groups.size() <= pending) return true;
  const uint64_t number = mine.groups[mine.groups.size() - 1 - pending];
  if (!reach(warp, number)) return false;
  if (cta_.cluster.hazards) cta_.cluster.hazards->wgmma_waited(warp, first_warp_, number);
  mine.groups.erase(mine.groups.begin(), mine.groups.end() - static_cast<std::ptrdiff_t>(pending));
  release(warp, number);
  return true;
}

bool Warpgroup::settle(Warp& warp, const Instruction& instruction) {
  Part& mine = part(warp);
  // ptxas lets no wgmma be under way across a call (C7510: "serialized due to the presence of Extern calls"), so the
  // registers held are this function's.
  bool touches = instruction.changes_frame;
  for (uint32_t i = 0; i < instruction.touched_count; ++i) {
    const Range& range = warp.program().touched[instruction.touched + i];
    touches |= mine.granules[range.begin / kGranule] != 0;
  }
  if (!touches || (warp.strict() && !instruction.changes_frame)) return true;
  if (!reach(warp, mine.issued)) return false;
  cta_.cluster.trace(cta_.cluster.origin(warp), "wgmma_registers_before_wait");
  if (cta_.cluster.hazards && mine.last) cta_.cluster.hazards->wgmma_registers_used(warp, mine.last->record);
  release(warp, mine.issued);
  return true;
}

bool settle_wgmma(Warp& warp, const Instruction& instruction) {
  return warp.warpgroup->settle(warp, instruction);
}

}  // namespace emu
